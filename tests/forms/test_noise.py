"""Noise in source text: as much as was asked for, in any script, and the same wherever it is
drawn."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from tiny_cells import tiny_cell

from dragoman.base.errors import RecipeError
from dragoman.forms.lexicon import words_in
from dragoman.runs.corpora import learn_vocabularies
from dragoman.runs.prepare import prepare
from dragoman.sources.augment import (
    NoiseSettings,
    typo,
    with_noise,
    without_accents,
    without_punctuation,
)
from dragoman.tasks.catalogue import runtime_of

TEXTS = {
    "German": "Der Café-Besitzer, ein älterer Mann, kauft heute 3.5 Kilo große Äpfel.",
    "Korean": "무엇이든 한국어로 된 긴 문장을, 여기에 써 보세요.",
    "Hindi": "हिन्दी में एक लंबा वाक्य, लिखिए।",
    "Greek": "Ο γέρος διαβάζει ένα βιβλίο στα παιδιά.",
}


def words(text: str) -> list[str]:
    return [text[begin:end] for begin, end in words_in(text)]


def distance(first: str, second: str) -> int:
    """The edit distance with exchanges of neighbours (Damerau)."""
    rows = [list(range(len(second) + 1))]
    for i, letter in enumerate(first, 1):
        row = [i]
        for j, other in enumerate(second, 1):
            row.append(min(row[-1] + 1, rows[-1][j] + 1, rows[-1][j - 1] + (letter != other)))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                row[-1] = min(row[-1], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


@pytest.mark.parametrize("language", TEXTS)
def test_a_typing_error_is_one_edit_and_keeps_the_first_letter_and_the_script(
    language: str,
) -> None:
    text = TEXTS[language]
    letters = sorted({letter for letter in text if letter.isalpha()})
    draw, kinds = np.random.default_rng(1), set()
    for word in words(text) * 40:
        wrong = typo(word, letters, draw)
        if len(word) < 3:
            assert wrong == word
            continue
        assert wrong[0] == word[0] and distance(word, wrong) == 1
        assert set(wrong) <= set(word) | set(letters)
        kinds.add((len(wrong) - len(word), sorted(wrong) == sorted(word)))
    assert kinds >= {(1, False), (-1, False), (0, True), (0, False)}


def test_the_shares_are_those_of_the_settings_and_numbers_stay() -> None:
    text = " ".join(f"word{'abcdefghij'[n % 10]}" for n in range(1000)) + " 3.5 1234"
    typos = with_noise(text, NoiseSettings(typos=0.1, texts=1), 5)
    changed = sum(map(str.__ne__, text.split(), typos.split()))
    assert 70 < changed < 130 and typos.endswith(" 3.5 1234")
    fewer = with_noise(text, NoiseSettings(words=0.2, texts=1), 5)
    assert 750 < len(fewer.split()) < 850 and fewer.endswith(" 3.5 1234")
    half = NoiseSettings(case=1, texts=0.5)
    assert 60 < sum(with_noise("Der Hund", half, seed) == "der hund" for seed in range(200)) < 140
    assert not NoiseSettings().is_on and NoiseSettings(words=0.1).is_on


def test_noise_is_a_function_of_its_seed() -> None:
    settings = NoiseSettings(typos=0.3, words=0.1, case=0.3, punctuation=0.3, accents=0.3, texts=1)
    for text in TEXTS.values():
        drawn = [with_noise(text, settings, seed) for seed in range(20)]
        assert drawn == [with_noise(text, settings, seed) for seed in range(20)]
        assert len(set(drawn)) > 10


def test_a_text_is_never_emptied() -> None:
    settings = NoiseSettings(words=0.99, punctuation=1, texts=1)
    for text in ("…", "Hund.", "", "  ", "?!"):
        assert all(with_noise(text, settings, seed) in (text, "Hund") for seed in range(30))


def test_accents_and_punctuation_go_and_letters_of_other_scripts_stay() -> None:
    assert without_accents("Éa ç ñ ű ạ ø ß Ά") == "Ea c n u a ø ß Α"
    for language in ("Korean", "Hindi"):
        assert without_accents(TEXTS[language]) == unicodedata.normalize("NFC", TEXTS[language])
    assert without_punctuation("„Don't“, he said: 3.5!") == "Don't he said 3.5"
    assert without_punctuation(TEXTS["Hindi"]) == "हिन्दी में एक लंबा वाक्य लिखिए"


def test_a_source_gets_noise_by_seed_update_and_example_alone(tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "text", tmp_path / "files").change(
        ["training.noise.typos=0.5", "training.noise.texts=1"]
    )
    (tmp_path / "run").mkdir()
    learn_vocabularies(recipe, tmp_path / "run", lambda _: None)
    prepared = prepare(recipe, tmp_path / "run", lambda _: None)
    examples = runtime_of(recipe.spec).parts().examples(prepared.train, recipe, prepared.forms)
    clean = prepared.train

    def read(update: int, *numbers: int) -> list[bytes]:
        batch = examples.batch(update, numbers)
        targets = batch.target_out.split(list(batch.target_in.layout.lengths))
        for number, target in zip(numbers, targets, strict=True):
            assert target[:-1].tolist() == clean.values("target", number).tolist()
        return [p.numpy().tobytes() for p in batch.source.values.split(batch.source.layout.lengths)]

    together = read(3, 4, 0, 2)
    assert together == [read(3, number)[0] for number in (4, 0, 2)]
    assert together != read(4, 4, 0, 2)
    quiet = runtime_of(recipe.spec).parts().examples(
        clean, recipe.change(["training.noise.typos=0"]), prepared.forms
    )  # fmt: skip
    plain = quiet.batch(3, (4, 0, 2)).source.values.numpy().tobytes()
    assert b"".join(together) != plain


def test_noise_is_refused_where_it_does_not_fit(tmp_path: Path) -> None:
    noise = ["training.noise.typos=0.1"]
    with pytest.raises(RecipeError, match=r"training\.noise is for translators of text"):
        tiny_cell("classification", "encoder", "text", tmp_path / "labels").change(noise)
    with pytest.raises(RecipeError, match=r"training\.noise is for translators of text"):
        tiny_cell("translation", "transformer", "frames", tmp_path / "heard").change(noise)
    guided = [*noise, "training.guided.weight=0.1"]
    with pytest.raises(RecipeError, match=r"changes the words that training\.guided aligns"):
        tiny_cell("translation", "transformer", "text", tmp_path / "text").change(guided)
