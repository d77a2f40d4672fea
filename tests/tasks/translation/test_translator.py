"""The predictor: one line out for one line in whatever it is, and the same however it is called."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from recipe_of_files import recipe_of
from torch import Tensor
from untrained_run import untrained_run

import dragoman
from dragoman.base.errors import DataError, DragomanError, RecipeError, RunError, SearchError
from dragoman.engine.predictor import WINDOW, parts, windows
from dragoman.engine.settings import TranslatorSettings, parse_search
from dragoman.forms.form import Passage, Piece
from dragoman.forms.text_form import MosesText
from dragoman.models.shortlist import ShortlistSettings
from dragoman.native import library
from dragoman.nn.layout import Sequences
from dragoman.runs.corpora import learn_vocabularies
from dragoman.runs.prepare import prepare
from dragoman.runs.run import NOTES, SEVERAL_SENTENCES
from dragoman.search.settings import SearchSettings
from dragoman.tasks.catalogue import Run
from dragoman.tasks.translation.result import Translation
from dragoman.tasks.translation.shortlist import learn_shortlist
from dragoman.tasks.translation.translator import Translator
from dragoman.training.weights import load_weights, save_weights

NASTY = [
    "", " ", "\t", "The dog sleeps.", "🦄 🤖", "nul \x00 here", "bad \udcff byte",
    "\u2028line\u2029",
    "▁▁▁", "<s> </s> <unk>", "word " * 3000, "x" * 100_000, "Ein Hund.\r", "한국어 문장입니다.",
]  # fmt: skip


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return dragoman.load(tiny_run, TranslatorSettings(precision="fp32"))


@pytest.mark.parametrize("precision", ["fp32", "auto"])
def test_one_line_for_one_line_whatever_it_is(tiny_run: Path, precision: str) -> None:
    translator = dragoman.load(tiny_run, TranslatorSettings.check(precision=precision))
    settings = SearchSettings(beam=2, max_length=20)
    results = translator.batch(NASTY, settings=settings)
    assert len(results) == len(NASTY)
    for source, result in zip(NASTY, results, strict=True):
        assert result.source == source
        assert "\n" not in result.text
        result.text.encode("utf-8")
    assert [r.text for r in results[:3]] == ["", "", ""]


def test_a_batch_is_what_each_gives_alone(translator: Translator) -> None:
    sources = ["The dog sleeps.", "A small man eats the old dinosaur.", "Who sees the queen?"]
    together = translator.batch(sources)
    for source, result in zip(sources, together, strict=True):
        alone = translator(source)
        assert alone.text == result.text
        assert alone.score == pytest.approx(result.score, abs=1e-4)


def test_a_translations_score_is_what_force_decoding_gives_it(translator: Translator) -> None:
    found = translator("The dog sleeps.", settings=SearchSettings(beam=3, max_length=30))
    (scored,) = translator.score([("The dog sleeps.", found.text)])
    if scored.ids == found.ids and len(found.token_log_probabilities) == len(found.ids) + 1:
        np.testing.assert_allclose(
            found.token_log_probabilities, scored.token_log_probabilities, atol=1e-4
        )
    assert len(scored.token_log_probabilities) == len(scored.ids) + 1
    assert max(scored.token_log_probabilities) <= 0.0


def test_prefix_n_best_and_alternatives(translator: Translator) -> None:
    result = translator(
        "The dog sleeps.", prefix="Der Hund", settings=SearchSettings(beam=4, n_best=3)
    )
    everyone = [result, *result.alternatives]
    assert len(everyone) == 3
    assert all(t.text.startswith("Der Hund") for t in everyone)
    assert [t.score for t in everyone] == sorted((t.score for t in everyone), reverse=True)
    assert len({t.ids for t in everyone}) == 3


def test_a_prefix_begins_the_first_piece_of_a_line_alone(tiny_run: Path) -> None:
    """A line that is split is still one translation, which begins once as it was told to."""
    split = dragoman.load(tiny_run, TranslatorSettings(precision="fp32", longest=30))
    line, prefix = "The dog sleeps. " * 12, "Der Hund und"
    begun = split.run.target.tokens([prefix])[0]
    settings = SearchSettings(beam=1, max_length=8)
    whole = split(line, prefix=prefix, settings=settings)
    assert len(whole.ids) > 20, "several pieces"
    assert list(whole.ids[: len(begun)]) == begun
    free = split(line, settings=settings)
    assert whole.text.count(prefix) - 1 == free.text.count(prefix) == 0


@pytest.mark.parametrize("how", ["lossless", "identity"])
def test_a_long_line_of_spaces_is_a_line(how: str, tmp_path: Path) -> None:
    changes = ["text.lossless=true"] if how == "lossless" else ["text.normalization=identity"]
    run = untrained_run(tmp_path, *changes, "text.byte_fallback=true")
    translator = dragoman.load(run, TranslatorSettings(precision="fp32", longest=50))
    settings = SearchSettings(beam=1, max_length=3)
    assert translator(" " * 900 + "a", settings=settings).text
    for space in (" ", "\t", "\u3000", " \u2028"):
        assert translator(space * 900, settings=settings).text == ""


def test_sampling_is_drawn_by_its_seed(translator: Translator) -> None:
    def draw(seed: int) -> str:
        changes = ["sampling.temperature=1.0", f"sampling.seed={seed}", "max_length=15"]
        return translator("The dog sleeps.", settings=parse_search(SearchSettings(), changes)).text

    assert draw(1) == draw(1)
    assert len({draw(seed) for seed in range(5)}) > 1


def test_a_sample_of_two_sentences_is_a_sample_of_each(tiny_run: Path) -> None:
    """Not the best of what both have made."""
    changes = ["sampling.temperature=1.0", "max_length=6", "n_best=4", "beam=4"]
    text = "The dog sleeps. The small man eats."
    split = dragoman.load(tiny_run, TranslatorSettings(precision="fp32", longest=12))
    found = split(text, settings=parse_search(SearchSettings(), changes))
    assert len(found.parts) == 2
    each = [[part.text, *(other.text for other in part.alternatives)] for part in found.parts]
    drawn = [found.text, *(other.text for other in found.alternatives)]
    assert drawn == [found.passage.join(list(pieces)) for pieces in zip(*each, strict=True)]


def test_no_output_holds_the_unknown_symbol(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = translator.run.target_text.unknown
    model = translator.run.model()
    project = model.project

    def fond_of_unknown(hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        logits = project(hidden, ids)
        logits[:, unknown] += 100
        return logits

    monkeypatch.setattr(translator.run, "model", lambda: model)
    monkeypatch.setattr(model, "project", fond_of_unknown)
    fond = Translator(translator.run, TranslatorSettings(precision="fp32"))
    assert fond("The dog sleeps.").ids
    assert unknown not in fond("The dog sleeps.").ids


def test_a_run_of_moses_tokens_is_always_asked_in_moses_tokens(tmp_path: Path) -> None:
    """Translating, forcing a beginning, scoring and looking all read what training has read."""
    pytest.importorskip("sacremoses")
    moses = dragoman.load(
        untrained_run(tmp_path, "data.moses=true"), TranslatorSettings(precision="fp32")
    )
    text, model = moses.run.source_text, moses.run.model()
    source, target = "Mr. Smith's dog (the OLD one) sleeps.", "Der Hund, sagt er, schläft & isst."
    read = text.encode_lists([MosesText("en").prepare(source)])[0]
    wanted = text.encode_lists([MosesText("de").prepare(target)])[0]
    assert wanted != text.encode_lists([target])[0], "the text must tell"

    assert moses.source_ids(source) == [*read, text.eos]
    (scored,) = moses.score([(source, target)])
    assert list(scored.ids) == wanted and scored.text == target
    with torch.inference_mode():
        memory = model.encode(Sequences.of([torch.tensor([*read, text.eos])]))
        hidden = model.decode(Sequences.of([torch.tensor([text.bos, *wanted])]), memory)
        each = model.project(hidden).log_softmax(-1)
    steps = each.gather(1, torch.tensor([*wanted, text.eos])[:, None])[:, 0]
    np.testing.assert_allclose(scored.token_log_probabilities, steps.numpy(), atol=1e-4)
    begun = moses(source, prefix=target, settings=SearchSettings(beam=1, max_length=60))
    assert list(begun.ids[: len(wanted)]) == wanted
    assert moses.look(source, begun.ids).source == text.pieces([*read, text.eos])


def test_attention_has_a_row_for_every_token(translator: Translator) -> None:
    record = translator("The dog sleeps.", attention=True).attention
    assert record is not None
    assert record.source[-1] == "</s>"
    assert record.encoder.shape[:2] == record.cross.shape[:2] == (2, 4)
    for weights in (record.encoder, record.decoder, record.cross):
        np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)


def test_a_shortlist_is_learned_kept_and_refused_when_stale(tiny_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(tiny_run, folder)
    wanted = TranslatorSettings(shortlist=True)
    with pytest.raises(RunError, match=r"does not exist. Learn one with: dragoman shortlist"):
        dragoman.load(folder, wanted)
    learned = learn_shortlist(Run.open(folder), ShortlistSettings(always=20, per_token=4))
    assert learned.path.is_file() and learned.sentences > 0
    assert 20 < learned.allowed < learned.vocabulary
    short = dragoman.load(folder, wanted)
    assert "shortlist" in short.description
    settings = SearchSettings(beam=3, n_best=2, max_length=12)
    texts = ["The dog sleeps.", "Who sees the queen?", "A small man eats."]
    together = short.batch(texts, settings=settings, prefixes=["", "Zum Beispiel", ""])
    assert together[1].text.startswith("Zum Beispiel")
    assert together[1].score > float("-inf")
    for text, result in zip(texts[::2], together[::2], strict=True):
        alone = short(text, settings=settings)
        assert alone.text == result.text and len(alone.alternatives) == 1
        assert alone.score == pytest.approx(result.score, abs=1e-3)
        if short.precision == "int8":
            source = short.source_ids(text)
            allowed = set(learned.shortlist.tokens_for(source).tolist())
            assert set(alone.ids) <= allowed
    drawn = parse_search(SearchSettings(), ["sampling.temperature=1.0", "max_length=8"])
    assert short(texts[0], settings=drawn).text == short(texts[0], settings=drawn).text
    weights = load_weights(folder / "model.safetensors")
    tensors = {name: value + 1e-3 for name, value in weights.tensors.items()}
    save_weights(folder / "model.safetensors", tensors, weights.metadata)
    with pytest.raises(RunError, match="for other weights"):
        dragoman.load(folder, wanted)
    learned.path.write_bytes(b"damaged")
    with pytest.raises(RunError, match="damaged"):
        dragoman.load(folder, wanted)


def test_a_shortlist_without_int8_is_left_out(tiny_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(tiny_run, folder)
    learn_shortlist(Run.open(folder))
    plain = dragoman.load(folder, TranslatorSettings(shortlist=True, precision="fp32"))
    assert "the shortlist is left out" in plain.description
    assert plain("The dog sleeps.").text == dragoman.load(
        folder, TranslatorSettings(precision="fp32")
    )("The dog sleeps.").text  # fmt: skip


@pytest.mark.parametrize("what", ["not built", "damaged"])
def test_int8_without_a_library_that_can_be_used(
    what: str, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It falls back with one line, and translates what plain torch translates."""
    path = tmp_path / "libdragoman.so"
    if what == "damaged":
        path.write_bytes(b"no library at all")
    monkeypatch.setenv("DRAGOMAN_NATIVE_LIBRARY", str(path))
    library.reset()
    try:
        fallen = dragoman.load(tiny_run, TranslatorSettings(precision="int8"))
        settings = SearchSettings(beam=2, max_length=8)
        found = fallen("The dog sleeps.", settings=settings)
        assert what in fallen.description and "\n" not in fallen.description
        plain = TranslatorSettings.check(precision=fallen.precision)
        assert fallen.precision in ("bf16", "fp32")
        expected = dragoman.load(tiny_run, plain)("The dog sleeps.", settings=settings)
        assert found.text == expected.text
        assert found.score == pytest.approx(expected.score, abs=1e-4)
    finally:
        monkeypatch.undo()
        library.reset()


def test_it_goes_on_after_an_error(translator: Translator) -> None:
    before = translator("The dog sleeps.")
    with pytest.raises(SearchError, match="prefix"):
        translator.batch(
            ["The dog sleeps.", "A man eats."],
            settings=SearchSettings(max_length=2),
            prefixes=["", "Der Hund und der Mann"],
        )
    assert translator("The dog sleeps.") == before


def test_paragraphs_keep_their_spacing(translator: Translator) -> None:
    text = "The dog sleeps.  The man eats.\n\n\tWho sees it?\n"
    out = translator.paragraphs(text, settings=SearchSettings(beam=1, max_length=8))
    for gap in ("  ", "\n\n\t"):
        assert gap in out
    assert out.endswith("\n")


def test_a_line_that_is_too_long_is_split_or_cut(
    tiny_run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long = "The dog sleeps. " * 40
    settings = SearchSettings(beam=1, max_length=6)
    for how in ("split", "cut"):
        translator = Translator(
            Run.open(tiny_run),
            TranslatorSettings.check(longest=50, long_lines=how, precision="fp32"),
        )
        caplog.clear()
        result = translator(long, settings=settings)
        assert how in caplog.text
        caplog.clear()
        list(translator.batch([long, f"A {long}"], settings=settings))
        assert len(caplog.records) == (2 if how == "cut" else 0), "lines are split without loss"
        assert (len(result.ids) > 6) is (how == "split")


def test_stream_reads_no_further_than_a_window(translator: Translator) -> None:
    taken = 0

    def source() -> Iterator[str]:
        nonlocal taken
        for _ in range(3 * WINDOW):
            taken += 1
            yield ""

    first = list(itertools.islice(translator.stream(source()), 5))
    assert len(first) == 5
    assert taken == WINDOW


def test_each_comes_as_soon_as_it_can(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["The dog sleeps.", "", "Who sees the queen? The dog sleeps."] * 20
    expected = translator.batch(texts, prefixes=["Der"] * len(texts))
    monkeypatch.setattr(translator.engine.searcher, "_window", 4)
    made = []
    right = Translation.of

    def counted(*arguments: Any, **named: Any) -> Translation:
        made.append(1)
        return right(*arguments, **named)

    monkeypatch.setattr(Translation, "of", counted)
    waiting = translator.each(texts, prefix="Der")
    found = [next(waiting)]
    assert len(made) < 20, "two windows of four, and what runs"
    found += waiting
    assert [one.text for one in found] == [one.text for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected])


def test_windows_do_not_wait_for_what_does_not_come() -> None:
    def slow() -> Iterator[str]:
        yield "a"
        yield "b"
        time.sleep(0.5)
        yield "c"

    assert list(windows(slow(), size=10, patience=0.1)) == [["a", "b"], ["c"]]
    assert list(windows(map(str, range(5)), size=2, patience=5.0)) == [
        ["0", "1"], ["2", "3"], ["4"],
    ]  # fmt: skip


def test_lines_that_keep_coming_are_not_kept_waiting() -> None:
    """A window has an age: no line waits for the thousandth that comes after it."""

    def steady() -> Iterator[str]:
        for number in range(150):
            time.sleep(0.02)
            yield str(number)

    first = next(windows(steady(), size=1000, patience=0.2))
    assert first[0] == "0" and len(first) < 100


def test_windows_hand_on_a_damaged_file() -> None:
    def damaged() -> Iterator[str]:
        yield "a"
        raise DataError("in.gz is damaged")

    for made in (windows(damaged()), parts(damaged(), 10)):
        assert next(made) == ["a"], "what came before it is not lost"
        with pytest.raises(DataError, match="damaged"):
            next(made)


def test_windows_hand_on_an_error_of_reading() -> None:
    def broken() -> Iterator[str]:
        yield "a"
        raise OSError("the disk is gone")

    made = windows(broken())
    assert next(made) == ["a"]
    with pytest.raises(OSError, match="disk is gone"):
        next(made)


def test_parts_have_a_size() -> None:
    assert list(parts(range(5), 2)) == [[0, 1], [2, 3], [4]] and list(parts([], 2)) == []


def test_any_iterable_of_texts_is_taken(translator: Translator) -> None:
    texts = ["The dog sleeps.", "Who sees the queen?"]
    settings = SearchSettings(beam=1, max_length=6)
    listed = translator.batch(texts, settings=settings, prefixes=["Der", ""])
    once = translator.batch(iter(texts), settings=settings, prefixes=iter(["Der", ""]))
    assert once == listed
    assert translator.score(zip(texts, texts, strict=True)) == translator.score(
        list(zip(texts, texts, strict=True))
    )
    with pytest.raises(DragomanError, match="2 texts and 1 prefix"):
        translator.batch(texts, prefixes=["Der"])
    for wrong in (translator.batch, translator.stream):
        with pytest.raises(TypeError, match=r"Give .*one to translator\(\)"):
            list(wrong("The dog sleeps."))
    with pytest.raises(TypeError, match="number 1, counted from 0, is NoneType"):
        translator.batch(["The dog sleeps.", None])  # type: ignore[list-item]


def test_more_hypotheses_and_wider_beams_are_asked_for_by_name(translator: Translator) -> None:
    several = translator("The dog sleeps.", n_best=6)
    expected = translator("The dog sleeps.", settings=SearchSettings(beam=6, n_best=6))
    assert several == expected and len(several.alternatives) == 5
    assert translator("The dog sleeps.", beam=1) == translator(
        "The dog sleeps.", settings=SearchSettings(beam=1)
    )
    drawn = parse_search(SearchSettings(max_length=5), ["sampling.temperature=1.0"])
    assert len(translator("The dog sleeps.", settings=drawn, n_best=9).alternatives) == 8
    assert translator.batch(["The dog sleeps."], n_best=6) == [expected]
    with pytest.raises(RecipeError, match="Raise beam"):
        translator("The dog sleeps.", beam=2, n_best=3)


def _with_note(run: Path, to: Path, share: object) -> Path:
    """A copy of a run whose training text had this share of lines of several sentences."""
    path = _copy(run, to) / NOTES
    notes = json.loads(path.read_text(encoding="utf-8"))
    del notes[SEVERAL_SENTENCES]
    if share is not None:
        notes[SEVERAL_SENTENCES] = share
    path.write_text(json.dumps(notes), encoding="utf-8")
    return to


def test_where_single_sentences_were_learned_they_are_translated_one_by_one(
    tiny_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, settings = "The dog sleeps.", "Who sees it?", SearchSettings(max_length=9)
    line = f"{first}  {second} "

    def opened(run: Path, **values: object) -> Translator:
        return dragoman.load(run, TranslatorSettings.check(precision="fp32", **values))

    single = opened(tiny_run)  # the demo's grammar writes single sentences
    apart = single.batch([first, second], settings=settings)
    found = single(line, settings=settings)
    assert found.text == f"{apart[0].text}  {apart[1].text}"
    assert found.ids == apart[0].ids + apart[1].ids
    assert [part.source for part in found.parts] == [first, second]
    assert [part.ids for part in found.parts] == [one.ids for one in apart]
    assert found.finished == all(one.finished for one in apart)
    assert not caplog.text
    item = single(f" 1) {first}", settings=settings, n_best=2)
    alone = single(first, settings=settings, n_best=2)
    assert item.text == f"1) {alone.text}"
    assert [one.text for one in item.alternatives] == [
        f"1) {one.text}" for one in alone.alternatives
    ]
    as_one = opened(tiny_run, whole=True)(line, settings=settings)
    assert len(as_one.ids) <= 9 < len(found.ids)
    watched = single(line, settings=settings, attention=True)
    assert watched.ids == as_one.ids and watched.attention is not None
    assert len(watched.attention.source) == len(single.source_ids(line))

    several = opened(_with_note(tiny_run, tmp_path / "several", 0.4))
    assert several(line, settings=settings).ids == as_one.ids
    assert not caplog.text
    for number, share in enumerate((None, "much", [0.0])):
        unknown = opened(_with_note(tiny_run, tmp_path / f"unknown-{number}", share))
        caplog.clear()
        assert unknown.batch([first, line, line], settings=settings)[1].ids == as_one.ids
        assert caplog.text.count("--paragraphs") == 1, "said once"
    (tmp_path / "unknown-0" / NOTES).write_text("{", encoding="utf-8")
    assert opened(tmp_path / "unknown-0")(line, settings=settings).ids == as_one.ids


def test_lines_of_several_sentences_are_counted_when_training_begins(
    parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    """Every third line of the text is two sentences."""
    lines = [path.read_text(encoding="utf-8").splitlines()[:300] for path in parallel_text]
    files = []
    for side, texts in zip(("en", "de"), lines, strict=True):
        joined = [
            f"{a} {b}" if n % 3 == 0 else a for n, (a, b) in enumerate(itertools.pairwise(texts))
        ]
        files.append(tmp_path / f"my.{side}")
        files[-1].write_text("\n".join(joined) + "\n", encoding="utf-8")
    recipe, _ = recipe_of(
        [str(file) for file in files], changes=["text.vocabulary=400", "data.split.test=0"]
    )
    learn_vocabularies(recipe, tmp_path, lambda _: None)
    notes = prepare(recipe, tmp_path, lambda _: None).notes
    assert notes[SEVERAL_SENTENCES] == pytest.approx(1 / 3, abs=0.05)


def test_settings_that_are_wrong() -> None:
    with pytest.raises(DragomanError, match=r"--long-lines.*'split' or 'cut'.*'fold'"):
        TranslatorSettings.check(long_lines="fold")
    with pytest.raises(RecipeError, match="did you mean 'beam'"):
        parse_search(SearchSettings(), ["baem=3"])
    with pytest.raises(RecipeError, match=r"^how to search: search\.beam: .* \(given: 5000\)"):
        parse_search(SearchSettings(), ["beam=5000"])  # nobody gave a recipe
    with pytest.raises(RecipeError, match=r"^--set 'beam' is not of the form key=value"):
        parse_search(SearchSettings(), ["beam"])


def _copy(run: Path, to: Path) -> Path:
    shutil.copytree(run, to, ignore=shutil.ignore_patterns("training"))
    return to


def test_a_run_works_without_its_training_folder(tiny_run: Path, tmp_path: Path) -> None:
    assert dragoman.load(_copy(tiny_run, tmp_path / "run"))("The dog sleeps.").text is not None


def test_folders_that_are_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run folder"):
        dragoman.load(tmp_path / "nothing")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(RunError, match="is a file; a run is a folder"):
        dragoman.load(tmp_path / "model.safetensors")
    with pytest.raises(RunError, match=r"no recipe\.toml"):
        dragoman.load(tmp_path)


def test_truncated_weights(tiny_run: Path, tmp_path: Path) -> None:
    run = _copy(tiny_run, tmp_path / "run")
    weights = run / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(RunError, match=r"model\.safetensors is damaged"):
        dragoman.load(run)
    weights.unlink()
    with pytest.raises(RunError, match="dragoman resume"):
        dragoman.load(run)


def test_weights_that_do_not_fit_the_recipe(tiny_run: Path, tmp_path: Path) -> None:
    run = _copy(tiny_run, tmp_path / "run")
    recipe = run / "recipe.toml"
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace("ffn_dim = 64", "ffn_dim = 65"), encoding="utf-8")
    with pytest.raises(RunError, match=r"tensors differ.*If the recipe was edited, restore it$"):
        dragoman.load(run)


def test_what_is_no_text_is_told_where_it_stands(tiny_run: Path) -> None:
    translator = dragoman.load(tiny_run)
    with pytest.raises(TypeError, match="number 1, counted from 0, is int"):
        translator(["a", 3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="number 0, counted from 0, is int"):
        translator(b"a")  # type: ignore[call-overload]


def test_several_sentences_that_were_not_cut_come_before_better_ones_that_were() -> None:
    def choices(*given: tuple[str, float, bool]) -> Translation:
        first, *others = (
            Translation("", text, score, (), finished=finished) for text, score, finished in given
        )
        return replace(first, alternatives=tuple(others))

    parts = [
        choices(("a", -1.0, True), ("A", -1.1, False)),
        choices(("b", -1.0, True), ("B", -3.0, True)),
    ]
    passage = Passage("", (Piece("", " ", ()), Piece("", "", ())))
    joined = Translation.join("", passage, parts)
    assert [joined.text, *(other.text for other in joined.alternatives)] == ["a b", "a B"]
