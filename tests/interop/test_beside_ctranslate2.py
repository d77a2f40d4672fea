"""Beside CTranslate2 and argos themselves: ``make test-interop`` runs these tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_run import APART, LINES, PAIRS, SHARED, random_run
from sentencepiece import SentencePieceProcessor

from dragoman.engine.settings import TranslatorSettings
from dragoman.interop import to_ctranslate2
from dragoman.interop.export import export_run
from dragoman.interop.folder import import_model
from dragoman.models.shortlist import learn
from dragoman.runs.run import SHORTLIST
from dragoman.search.settings import SearchSettings
from dragoman.tasks.catalogue import Run

ctranslate2 = pytest.importorskip("ctranslate2", reason="make test-interop installs CTranslate2")

GREEDY = SearchSettings(beam=1, max_length=20, length_penalty=0)
PLAIN = TranslatorSettings(precision="fp32", whole=True, threads=1)
GIVEN = {"beam_size": 1, "max_decoding_length": 20, "disable_unk": True}
SETTINGS = {
    "shared": SHARED,
    "apart": APART,
    "pre-norm": (*SHARED, "model.norm=pre", "model.activation=swish", "model.tie=target"),
    "learned": (
        *SHARED, "model.positions.kind=learned", "model.positions.maximum=90",
        "model.scale_embeddings=false", "model.zero_start=true", "model.norm_epsilon=0.01",
    ),
}  # fmt: skip


def tokens_of(folder: Path, lines: Sequence[str]) -> list[list[str]]:
    processor = SentencePieceProcessor(model_file=str(folder / "source.spm"))
    return processor.encode(list(lines), out_type=str)


def opened(folder: Path) -> Any:
    return ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)


def is_close(run: Run, folder: Path) -> bool:
    """Whether log-probabilities of 40 pairs are the same here and there."""
    pairs = [(pair.source, pair.target) for pair in PAIRS.test[:40]]
    target = SentencePieceProcessor(model_file=str(folder / "target.spm"))
    written = target.encode([text for _, text in pairs], out_type=str)
    sources = tokens_of(folder, [text for text, _ in pairs])
    theirs = opened(folder).score_batch(sources, written)
    ours = run.open_predictor(PLAIN).score(pairs)
    return all(
        np.allclose(one.token_log_probabilities, other.log_probs, atol=2e-4)
        for one, other in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_outputs_and_probabilities_are_the_same(tmp_path: Path, name: str) -> None:
    run = random_run(tmp_path / "run", *SETTINGS[name])
    folder = export_run(run, "ctranslate2", tmp_path / "there", None)
    assert is_close(run, folder)
    results = opened(folder).translate_batch(tokens_of(folder, LINES), **GIVEN)
    mine = run.open_predictor(PLAIN).batch(LINES, settings=GREEDY)
    same = [
        run.target.names_of(found.ids) == result.hypotheses[0]
        for found, result in zip(mine, results, strict=True)
    ]
    assert np.mean(same) >= 0.999


@pytest.mark.parametrize(
    "changed",
    [{"activation": "gelu"}, {"scale_embeddings": False}, {"zero_start": True},
     {"norm_epsilon": 0.5}, {"attention": {"num_heads": 1}}],
)  # fmt: skip
def test_a_wrong_setting_would_be_seen(tmp_path: Path, changed: dict[str, Any]) -> None:
    run = random_run(tmp_path / "run", *SHARED)
    folder = export_run(run, "ctranslate2", tmp_path / "there", None)
    model = run.recipe.model
    wrong = type(model).model_validate(model.model_dump() | changed)
    weights = {name: value.numpy() for name, value in run.model().state_dict().items()}
    tokens = [text.pieces(range(text.size)) for text in (run.source_text, run.target_text)]
    to_ctranslate2.write_model(wrong, weights, tokens, folder)
    assert not is_close(run, folder)


def test_a_shortlist_allows_the_same_tokens(tmp_path: Path) -> None:
    """With it, an output is the greedy one exactly where all tokens of that are allowed."""
    run = random_run(tmp_path / "run", *SHARED)
    pairs = [(run.source_text.encode([p.source])[0], run.target_text.encode([p.target])[0])
             for p in PAIRS.train[:200]]  # fmt: skip
    size = run.source.size
    shortlist = learn(pairs, size, size)
    shortlist.save(run.folder / SHORTLIST, run.weights_hash)
    folder = export_run(run, "ctranslate2", tmp_path / "there", None)
    translator, same = opened(folder), 0
    symbols = [run.target.bos, run.target_text.unknown, run.target.eos]
    for line, tokens in zip(LINES[:60], tokens_of(folder, LINES[:60]), strict=True):
        plain, short = (
            list(map(run.target.names_of(range(size)).index, one.hypotheses[0]))
            for one in (
                translator.translate_batch([tokens], **GIVEN)[0],
                translator.translate_batch([tokens], use_vmap=True, **GIVEN)[0],
            )
        )
        allowed = {*shortlist.tokens_for(run.source.values([line])[0]).tolist(), *symbols}
        assert allowed.issuperset(short)
        assert (plain == short) == allowed.issuperset(plain)
        same += plain == short
    assert same < 60


def test_argos_translates_with_a_package(tmp_path: Path, monkeypatch: Any) -> None:
    """Its cutter of sentences is replaced, because it would download a model."""
    monkeypatch.setenv("ARGOS_PACKAGES_DIR", str(tmp_path / "packages"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("ARGOS_COMPUTE_TYPE", "float32")
    package = pytest.importorskip("argostranslate.package")
    translate = pytest.importorskip("argostranslate.translate")

    class Whole:
        def __init__(self, _: Any) -> None: ...

        def split_sentences(self, text: str) -> list[str]:
            return [text]

    monkeypatch.setattr(translate, "MiniSBDSentencizer", Whole)
    run = random_run(tmp_path / "run", *SHARED, "text.byte_fallback=false")
    package.install_from_path(export_run(run, "argos", tmp_path / "there", None))
    folder = export_run(run, "ctranslate2", tmp_path / "beside", None)
    target = SentencePieceProcessor(model_file=str(folder / "target.spm"))
    for line, tokens in zip(LINES[:5], tokens_of(folder, LINES[:5]), strict=True):
        given = {"beam_size": 4, "num_hypotheses": 4, "length_penalty": 0.2}
        result = opened(folder).translate_batch([tokens], replace_unknowns=True, **given)
        wanted = target.decode(result[0].hypotheses[0]).replace("_", " ")
        assert translate.translate(line, "en", "de").strip() == wanted.strip()


def test_a_model_that_ctranslate2_wrote_gives_the_same_outputs_here(tmp_path: Path) -> None:
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.model_spec import visit_spec

    width, inner, draw = 16, 24, np.random.default_rng(3)
    names = ["<unk>", "<s>", "</s>", *"abcdefghijklm"]
    shapes = {
        "self_attention/linear_0": (3 * width, width), "self_attention/linear_1": (width, width),
        "/attention/linear_0": (width, width), "/attention/linear_1": (2 * width, width),
        "/attention/linear_2": (width, width), "ffn/linear_0": (inner, width),
        "ffn/linear_1": (width, inner), "embeddings": (len(names), width),
        "embeddings_0": (len(names), width), "projection": (len(names), width),
    }  # fmt: skip

    def fill(layer: Any, name: str, _: Any) -> None:
        place, kind = name.rsplit("/", 1) if "/" in name else ("", name)
        shape = next((one for end, one in shapes.items() if place.endswith(end)), (width,))
        if kind in ("gamma", "beta", "weight", "bias"):
            one = draw.normal(kind == "gamma", 0.5, shape[:1] if kind == "bias" else shape)
            setattr(layer, kind, one.astype("f4"))

    spec = TransformerSpec.from_config((2, 1), 2, pre_norm=True)
    visit_spec(spec, fill)
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.add_source_eos = True
    spec.validate()
    folder = tmp_path / "there"
    folder.mkdir()
    spec.save(str(folder))
    import_model(folder, tmp_path / "run", ("en", "de"))
    lines = ["".join(draw.choice(names[3:], count)) for count in range(1, 41)]
    mine = Run.open(tmp_path / "run").open_predictor(PLAIN).batch(lines, settings=GREEDY)
    results = opened(folder).translate_batch([[*line] for line in lines], **GIVEN)
    assert [one.text for one in mine] == ["".join(result.hypotheses[0]) for result in results]
