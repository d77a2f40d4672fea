"""What is seen of a corpus before it is trained on: nothing in a sound one, each damage by name."""

from __future__ import annotations

import gzip
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from korean_sentences import is_in_korean
from sacremoses import MosesTokenizer
from scripts import ENGLISH, SCRIPTS, numbers, written

from dragoman.data.corpus_checks import Doubt, find_doubts
from dragoman.data.correspondence import BlockSampler, find_correspondence
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.demo.corpus import demo_corpus
from dragoman.forms.form import Pair
from dragoman.forms.identification import can_identify, close_to, identify, other_language

Lines = list[tuple[str, str]]
FRENCH = (
    "Les enfants jouent dans le jardin avec un chien qui ne dort pas.",
    "Je ne sais pas ce que tu veux faire de la maison de ton père.",
    "Une femme est assise sur le banc et lit des livres pour les enfants.",
)


def invented(pairs: int, words: int = 400, seed: int = 0) -> Lines:
    """Translations between two languages that are nobody's: one word for each, in another order."""
    draw = random.Random(seed)
    letters = "abcdefghijklmnop"
    english, german = (
        ["".join(draw.choices(letters[half : half + 8], k=6)) for _ in range(words)]
        for half in (0, 8)
    )
    lines = []
    for _ in range(pairs):
        chosen = [min(int(draw.paretovariate(0.8)), words) - 1 for _ in range(draw.randint(5, 12))]
        target = [german[word] for word in chosen]
        draw.shuffle(target)
        lines.append((" ".join(english[word] for word in chosen), " ".join(target)))
    return lines


@cache
def sound(code: str = "de") -> tuple[tuple[str, str], ...]:
    pairs = demo_corpus(train_pairs=1200, dev_pairs=10, test_pairs=10).train
    return tuple((pair.source, pair.target) for pair in pairs)


def looked_at(lines: Sequence[tuple[str, str]]) -> BlockSampler:
    sampler = BlockSampler()
    pairs = [Pair(number, *line) for number, line in enumerate(lines, 1)]
    assert list(sampler.watch(iter(pairs))) == pairs
    return sampler


def doubts(lines: Sequence[tuple[str, str]], languages: str = "en-de") -> list[Doubt]:
    source, target = languages.split("-")
    corpus = CorpusSettings(source="my.en", target="my.de")
    return find_doubts(corpus, looked_at(lines).blocks, (source, target))


def shifted(lines: Lines, start: int = 0, by: int = 1) -> Lines:
    """The targets from ``start`` on stand ``by`` lines too late."""
    targets = [target for _, target in lines]
    late = targets[:start] + targets[start : start + by] + targets[start : len(targets) - by]
    return [(source, target) for (source, _), target in zip(lines, late, strict=True)]


def exchanged(lines: Lines, every: int = 20) -> Lines:
    return [(t, s) if n % every == 7 else (s, t) for n, (s, t) in enumerate(lines)]


def mixed_up(lines: Lines, every: int = 20) -> Lines:
    """Every so many targets are handed round."""
    places = list(range(3, len(lines), every))
    targets = {place: lines[other][1] for place, other in zip(places, places[::-1], strict=True)}
    return [(source, targets.get(n, target)) for n, (source, target) in enumerate(lines)]


def latin_1(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "surrogateescape")


DAMAGE: dict[str, tuple[str, Callable[[Lines], Lines]]] = {
    "shifted": ("shifted", shifted),
    "shifted from the middle on": ("shifted", lambda lines: shifted(lines, 600, 2)),
    "every twentieth exchanged": ("exchanged", exchanged),
    "every tenth mixed up": ("unrelated", lambda lines: mixed_up(lines, 10)),
    "another order": ("unrelated", lambda lines: mixed_up(lines, 1)),
    "another language": (
        "language",
        lambda lines: [(s, FRENCH[n % 3]) for n, (s, _) in enumerate(lines)],
    ),
    "files in the wrong order": ("language", lambda lines: [(t, s) for s, t in lines]),
    "one language": (
        "language",
        lambda lines: [(s, lines[n - 1][0]) for n, (s, _) in enumerate(lines)],
    ),
    "Latin-1": ("encoding", lambda lines: [(s, latin_1(t)) for s, t in lines]),
    "encoded twice": (
        "encoding",
        lambda lines: [(s, t.encode().decode("latin-1")) for s, t in lines],
    ),
    "tokens": (
        "tokenised",
        lambda lines: [(s, re.sub(r"([.,?])", r" \1", t).replace("'", "&apos;")) for s, t in lines],
    ),
    "parts of words": (
        "tokenised",
        lambda lines: [(re.sub(r"(\w\w)(?=\w)", r"\1@@ ", s), t) for s, t in lines],
    ),
    "SentencePiece": (
        "tokenised", lambda lines: [(s, "\u2581" + t.replace(" ", " \u2581")) for s, t in lines]
    ),
    "a header": ("header", lambda lines: [("source", "target"), *lines]),
    "numbers": ("numbers", lambda lines: [(str(n), s) for n, (s, _) in enumerate(lines)]),
    "subtitles": (
        "subtitles",
        lambda lines: [
            row
            for n, line in enumerate(lines[:300], 1)
            for row in (
                (str(n), str(n)), ("00:00:01,000 --> 00:00:02,500",) * 2, line, ("", "")
            )
        ],
    ),
}  # fmt: skip


@pytest.mark.system
@pytest.mark.parametrize("name", DAMAGE)
def test_each_damage_is_named_with_lines_that_show_it(name: str) -> None:
    kind, damage = DAMAGE[name]
    lines = damage(list(sound()))
    found = doubts(lines)
    assert kind in {doubt.kind for doubt in found}
    for doubt in found:
        assert doubt.corpus == "my.en + my.de"
        assert 1 <= len(doubt.lines) <= 3
        assert all(line.startswith("line ") for line in doubt.lines)
        assert str(doubt).encode()
        assert is_in_korean(doubt.words), doubt.words
    first = next(doubt for doubt in found if doubt.kind == kind).lines[0]
    number = int(first.split()[1].rstrip(":"))
    assert any(repr(side)[1:20] in first for side in lines[number - 1]) or kind == "encoding"


OTHER_SENTENCES: dict[str, Callable[[Lines], Lines]] = {
    "Latin-1 among UTF-8": lambda lines: [
        (s, latin_1(t) if n % 5 == 0 else t) for n, (s, t) in enumerate(lines)
    ],
    "one language": DAMAGE["one language"][1],
    "copied": lambda lines: [(s, s) for s, _ in lines],
    "labels": lambda lines: [(s, "good" if n % 3 else "bad") for n, (s, _) in enumerate(lines)],
    "shifted to the middle": lambda lines: shifted(lines[:600]) + lines[600:],
    "shifted in the middle": lambda lines: lines[:300] + shifted(lines[300:900]) + lines[900:],
}


@pytest.mark.parametrize("name", OTHER_SENTENCES)
def test_the_page_says_it_in_korean(name: str) -> None:
    languages = "und-en" if name == "one language" else "en-de"
    found = doubts(OTHER_SENTENCES[name](list(sound())), languages)
    assert found and all(is_in_korean(doubt.words) for doubt in found), found


@pytest.mark.parametrize("pairs", [1, 150, 1200])
@pytest.mark.parametrize("languages", ["en-de", "und-und"])
def test_a_sound_corpus_raises_no_doubt(pairs: int, languages: str) -> None:
    assert doubts(sound()[:pairs], languages) == []


def test_the_share_of_strangers_is_measured() -> None:
    """Against the share that was planted, in languages that no list of words knows."""
    lines = invented(2000)
    for every in (0, 20, 4):
        planted = 1 / every if every else 0.0
        found = find_correspondence(looked_at(mixed_up(lines, every) if every else lines).blocks)
        assert found.judged > 1000
        assert abs(found.unrelated - planted) < 0.02, every
        assert found.moved == () and found.reversed == 0
    found = find_correspondence(looked_at(exchanged(lines, 10)).blocks)
    assert abs(found.reversed - 0.1) < 0.02


@pytest.mark.system
@pytest.mark.parametrize("by", [1, 3])
@pytest.mark.parametrize("start", [0, 1200, 1700])
def test_where_lines_are_shifted_is_found(start: int, by: int) -> None:
    (moved,) = find_correspondence(looked_at(shifted(invented(2000), start, by)).blocks).moved
    assert moved.by == by
    assert abs(moved.first - start) <= 64 and moved.from_start == (start == 0) and moved.to_end
    for pair, other in moved.examples:
        assert other.line == pair.line + by


@pytest.mark.parametrize("pairs", [0, 1, 31, 32, 33, 5000, 20_000])
def test_a_sample_is_spread_over_everything_and_bounded(pairs: int) -> None:
    blocks = looked_at([(str(n), "x") for n in range(pairs)]).blocks
    assert sum(map(len, blocks)) == min(pairs, sum(map(len, blocks)), 128 * 32)
    if pairs <= 4096:
        assert sum(map(len, blocks)) == pairs
    for block in blocks:
        assert [pair.line for pair in block] == list(range(block[0].line, block[-1].line + 1))
    firsts = [block[0].line for block in blocks]
    assert firsts == sorted(set(firsts))
    if pairs:
        assert firsts[0] == 1
        gaps = [b - a for a, b in zip(firsts, [*firsts[1:], pairs + 1], strict=True)]
        assert max(gaps) <= 4 * min(gaps[:-1] or gaps) + 32


LANGUAGES = {
    "fr": " ".join(FRENCH),
    "es": "El hombre no sabe lo que es la vida, y las mujeres que viven en una casa con él.",
    "it": "Non so che cosa sia, ma il libro è in una stanza con la porta della casa di un amico.",
    "nl": "Het huis van de man is niet groot, maar ik weet dat een kind met de hond in het bos is.",
    "sv": "Det är en man som har på sig hatt och inte vill gå till skogen, för han är trött.",
    "pl": "Nie wiem, co to jest, ale on się nie boi i że to do mnie na pewno jak było po prostu.",
    "tr": "Bu ev çok güzel ve ben bir gün burada yaşamak için çalışıyorum, o da öyle mi değil mi.",
    "ru": "Я не знаю, что это такое, но он был в доме, а она с ним на улице, и это как мы по делу.",
    "uk": "Я не знаю, що це таке, але він був у домі, а вона з ним на вулиці, і це як ми до нього.",
    "ja": "私は東京に住んでいます。", "zh": "我住在北京。", "ko": "나는 서울에 산다.",
    "el": "Δεν ξέρω τι είναι αυτό.", "he": "אני לא יודע מה זה.", "th": "ฉันไม่รู้",
}  # fmt: skip


@pytest.mark.parametrize("code", LANGUAGES)
def test_languages_are_told_by_script_and_small_words(code: str) -> None:
    found = identify([LANGUAGES[code]])
    assert can_identify(code) and code in found
    assert found <= close_to(code) | ({"yi"} if code == "he" else set())
    assert identify(["", "123 456 !?"]) == frozenset()
    assert not can_identify("und")


def test_text_of_another_language_is_named() -> None:
    german = ["Das ist nicht der Hund, und die Katze ist in dem Haus."]
    assert other_language(german, "en") == "German"
    assert other_language(german, "de-AT") == other_language(["12"], "en") == ""
    assert other_language(["ਇਹ ਪੰਜਾਬੀ ਹੈ"], "de") == "pa", "a language without a name has its code"
    assert other_language(german, "tlh") == "", "text of an unknown language cannot be told"


@pytest.mark.parametrize("languages", ["en-de", "de-en", "und-und"])
def test_half_of_the_pairs_may_be_exchanged(languages: str) -> None:
    lines = [(t, s) if n % 2 else (s, t) for n, (s, t) in enumerate(sound(), 1)]
    (found,) = (one for one in doubts(lines, languages) if one.kind == "exchanged")
    share = float(found.words.split()[1].removesuffix("%"))
    assert share == pytest.approx(50, abs=6)
    wrong = {"en-de": 1, "de-en": 0}.get(languages)  # the lines that are, by their number modulo 2
    numbers = {int(line.split()[1].rstrip(":")) % 2 for line in found.lines}
    assert len(numbers) == 1 and (wrong is None or numbers == {wrong})
    assert not any(one.kind == "language" for one in doubts(lines, languages))


def test_one_language_is_not_taken_for_exchanged_sides() -> None:
    lines = [(s, sound()[n - 1][0]) for n, (s, _) in enumerate(sound())]
    assert "exchanged" not in {one.kind for one in doubts(lines)}


def test_a_side_without_any_word_divides_nothing_by_zero() -> None:
    """A warning of numpy would be an error here."""
    for lines in ([("", target) for _, target in sound()], [(s, "") for s, _ in sound()]):
        assert "exchanged" not in {one.kind for one in doubts(lines)}


def test_a_file_that_is_given_twice_is_all_that_is_said() -> None:
    lines = [("source", "source"), *((s, s) for s, _ in sound())]
    (found,) = doubts(lines)
    assert found.kind == "copied" and "the same text" in found.words
    corpus = CorpusSettings(source="my.en", target="./my.en")
    (found,) = find_doubts(corpus, looked_at(lines).blocks, ("en", "de"))
    assert "the same file is given twice" in found.words


@pytest.mark.parametrize(
    ("cut", "name"),
    [
        (lambda text: re.sub("(....)", "\\1@@ ", text), "my.de"),
        (lambda text: ("\u2581" + text.replace(" ", " \u2581")).replace("e", "e "), "my.de.gz"),
        (lambda text: str(MosesTokenizer("de").tokenize(text, return_str=True)), "my.de"),
    ],
)
def test_tokens_are_undone_by_the_command_that_is_told(
    cut: Callable[[str], str], name: str, tmp_path: Path
) -> None:
    texts = [text for _, text in sound()[:200]]
    packed = "\n".join(map(cut, texts)).encode() + b"\n"
    (tmp_path / name).write_bytes(gzip.compress(packed) if name.endswith("gz") else packed)
    lines = [(source, cut(text)) for (source, _), text in zip(sound(), texts, strict=False)]
    corpus = CorpusSettings(source="my.en", target=str(tmp_path / name))
    (found,) = find_doubts(corpus, looked_at(lines).blocks, ("en", "de"))
    assert found.kind == "tokenised"
    command = found.words.split("undo it: ")[1]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(command, shell=True, cwd=tmp_path, check=True, env={**os.environ, "PATH": path})
    made = (tmp_path / "plain-my.de").read_text(encoding="utf-8").splitlines()
    assert made == texts


@pytest.mark.parametrize("every", [20, 5])
def test_strangers_are_counted_among_short_and_long_lines(every: int) -> None:
    """A short and a long side are mostly strangers: they are judged too."""
    draw = random.Random(1)
    lines = [
        (" ".join(source.split()[:words]), " ".join(target.split()[:words]))
        for source, target in invented(4000, words=60)
        for words in [draw.choice((3, 3, 3, 12))]
    ]
    found = find_correspondence(looked_at(mixed_up(lines, every)).blocks)
    assert 0.6 / every < found.unrelated < 1.5 / every


@pytest.mark.system
@pytest.mark.parametrize("pairs", [500, 2000])
@pytest.mark.parametrize("script", ["Korean", "Japanese"])
def test_a_tenth_that_is_shuffled_is_found_in_other_scripts(script: str, pairs: int) -> None:
    sentences = [[number % 300 for number in sentence] for sentence in numbers(pairs)]
    lines = [(written(ENGLISH, one), written(SCRIPTS[script], one)) for one in sentences]
    assert doubts(lines, "en-und") == []
    (found,) = doubts(mixed_up(lines, 10), "en-und")
    assert found.kind == "unrelated"
    late = (
        lines[: pairs // 2] + shifted(lines[pairs // 2 : pairs * 3 // 5]) + lines[pairs * 3 // 5 :]
    )
    assert {one.kind for one in doubts(late, "en-und")} & {"unrelated", "shifted"}
