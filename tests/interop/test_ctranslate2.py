"""Transformers of CTranslate2: the weights that its files hold, and what its own test model
writes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from foreign_models import (
    PAIRS,
    ctranslate2_folder,
    model_bin,
    quantised,
    sentencepiece_model,
    transformer_variables,
)

from dragoman.base.errors import RunError
from dragoman.engine.settings import TranslatorSettings
from dragoman.interop.folder import import_model
from dragoman.nn.layout import Sequences
from dragoman.search.settings import SearchSettings
from dragoman.tasks.catalogue import Run

ROWS = (12, 12)
AREN = Path(os.environ.get("DRAGOMAN_AREN", "no such folder"))
"""``tests/data/models/v2`` of CTranslate2's repository, where somebody has it."""


def imported(folder: Path) -> Run:
    import_model(folder, folder.parent / "run", ("ar", "en"))
    return Run.open(folder.parent / "run")


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_each_version_of_the_file_gives_its_weights(tmp_path: Path, version: int) -> None:
    run = imported(ctranslate2_folder(tmp_path / "model", version=version))
    held, given = run.model().state_dict(), transformer_variables(ROWS)
    key = given["decoder/layer_1/attention/linear_1/weight"][:8]
    assert np.array_equal(held["decoder.1.cross_attention.key.weight"], key)
    # Symbol 0 of a source is </s>, which nothing attends to; of a target it is <blank>.
    assert np.array_equal(
        held["source_embedding.weight"],
        given["encoder/embeddings_0/weight"][[2, 1, 11, 0, *range(3, 11)]],
    )
    assert np.array_equal(
        held["output_bias"], given["decoder/projection/bias"][[0, 11, 1, 2, *range(3, 11)]]
    )
    assert not run.recipe.model.attend_unknown
    assert run.source.tokens(["cab"]) == [[6, 4, 5]]
    assert run.target.raw([[5, 4, 6]]) == ["tsu"]


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_integers_become_what_their_scale_says(tmp_path: Path, kind: str) -> None:
    run = imported(ctranslate2_folder(tmp_path / "model", kind))
    made = quantised(transformer_variables(ROWS), kind)
    name = "encoder/layer_0/ffn/linear_1/weight"
    scale = np.float32(made[f"{name}_scale"])
    wanted = made[name].astype(np.float32) / (scale[:, None] if scale.ndim else scale)
    assert np.array_equal(run.model().state_dict()["encoder.0.feed_forward.outer.weight"], wanted)


def test_what_follows_the_source_does_not_count(tmp_path: Path) -> None:
    """A model without ``add_source_eos`` reads the letters alone: the place of our ``</s>`` changes
    nothing."""
    run = imported(ctranslate2_folder(tmp_path / "model"))
    model = run.model()
    source = torch.tensor(run.source.values(["abc"])[0])
    rows = model.encode(Sequences.of([source])).rows[:3]
    alone = model.encode(Sequences.of([source[:3]])).rows
    assert torch.allclose(rows, alone, atol=1e-6)


def test_words_between_spaces_where_tokens_are_words(tmp_path: Path) -> None:
    folder = ctranslate2_folder(tmp_path / "model")
    names = ["<blank>", "<s>", "</s>", "the", "dog", "▁cat", *"abcde", "<unk>"]
    (folder / "source_vocabulary.txt").write_text("\n".join(names) + "\n")
    said = import_model(folder, tmp_path / "run", ("en", "de"))
    assert said == [
        "there is no tokenizer for the source: its tokens are what spaces separate",
        "there is no tokenizer for the target: its tokens are characters",
    ]
    assert Run.open(tmp_path / "run").source.tokens(["the cat dogs"]) == [[4, 6, 2]]


def packed(root: Path, **more: object) -> Path:
    """A package as argos has it, with a folder of stanza that is not looked at."""
    folder = root / "translate-en_de-1_0"
    lines = [pair.source for pair in PAIRS.train] + [pair.target for pair in PAIRS.train]
    (folder / "model").mkdir(parents=True)
    spm = sentencepiece_model(lines, 150)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=spm)
    table = ["<unk>", "<s>", "</s>", *map(pieces.id_to_piece, range(3, pieces.vocab_size()))]
    (folder / "sentencepiece.model").write_bytes(spm)
    (folder / "model" / "shared_vocabulary.json").write_text(json.dumps(table))
    (folder / "model" / "config.json").write_text(json.dumps({"add_source_eos": True}))
    variables = transformer_variables((len(table), len(table)))
    (folder / "model" / "model.bin").write_bytes(model_bin(variables))
    (folder / "stanza" / "en").mkdir(parents=True)
    (folder / "stanza" / "en" / "tokenize.pt").write_bytes(b"a pickle")
    metadata = {"from_code": "pt", "to_code": "zt", "from_name": "Portuguese", **more}
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return folder


def zipped(folder: Path) -> Path:
    shutil.make_archive(str(folder), "zip", folder.parent, folder.name)
    return folder.with_name(f"{folder.name}.zip").rename(folder.with_suffix(".argosmodel"))


def test_a_package_of_argos_is_its_model_with_what_it_says(tmp_path: Path) -> None:
    folder = packed(tmp_path)
    assert import_model(zipped(folder), tmp_path / "run", None) == []
    run = Run.open(tmp_path / "run")
    assert (run.recipe.languages.source, run.recipe.languages.target) == ("pt", "zt")
    assert (run.recipe.search.beam, run.recipe.search.length_penalty) == (4, 0.2)
    assert run.recipe.search.stop == "full"
    shutil.copy(folder / "sentencepiece.model", folder / "model")
    (folder / "model").rename(tmp_path / "alone")
    (tmp_path / "run").rename(tmp_path / "package")
    alone, run = imported(tmp_path / "alone"), Run.open(tmp_path / "package")
    text = [pair.source for pair in PAIRS.test]
    assert alone.source.values(text) == run.source.values(text)
    assert (alone.recipe.search.beam, alone.recipe.search.length_penalty) == (2, 1.0)


@pytest.mark.parametrize("names", [("src.spm.model", "tgt.spm.model"), ("joint.spm.model",)])
def test_tokenizers_have_the_names_that_quickmt_gives(tmp_path: Path, names: list[str]) -> None:
    folder = packed(tmp_path / "package")
    for name in names:
        shutil.copy(folder / "sentencepiece.model", folder / "model" / name)
    quickmt = (folder / "model").rename(tmp_path / "quickmt-en-de")
    assert import_model(quickmt, tmp_path / "run", None) == []
    run = Run.open(tmp_path / "run")
    assert run.recipe.languages.target == "de"
    (tokens,) = run.source.tokens(["The dog sleeps."])
    pieces = sentencepiece.SentencePieceProcessor(str(folder / "sentencepiece.model"))
    assert run.source.names_of(tokens) == pieces.encode("The dog sleeps.", out_type=str)


def test_packages_that_cannot_be_read_alike_are_refused(tmp_path: Path) -> None:
    begins = packed(tmp_path / "begins", target_prefix="__de__")
    with pytest.raises(RunError, match="has a target_prefix"):
        import_model(begins, tmp_path / "run", None)
    older = packed(tmp_path / "older")
    (older / "sentencepiece.model").rename(older / "bpe.model")
    with pytest.raises(RunError, match=r"bpe.model was written by subword-nmt \(BPE\)"):
        import_model(zipped(older), tmp_path / "run", None)
    assert not (tmp_path / "run").exists()


REFUSED = {
    "whisper": ({"name": "WhisperSpec"}, {}, "is a WhisperSpec"),
    "old": ({"version": 1}, {}, "version 1, but only 2 to 6 can be read"),
    "new": ({"version": 9}, {}, "version 9"),
    "rotary": ({}, {"encoder/layer_0/self_attention/rotary_dim": np.array(4, np.int32)}, "rotary"),
    "gated": ({}, {"encoder/layer_0/ffn/linear_0_noact/weight": np.ones((2, 2), "f4")}, "GLU"),
    "activation": ({}, {"encoder/activation": np.array(5, np.int8)}, "activation 5"),
    "heads": ({}, {"encoder/num_heads": np.array(3, np.int16)}, "num_heads"),
    "shape": ({}, {"encoder/layer_1/ffn/linear_0/weight": np.ones((16, 9), "f4")}, "16 x 9"),
    "rows": ({}, {"decoder/embeddings/weight": np.ones((13, 8), "f4")}, "model has 13"),
    "scale": ({}, {"decoder/embeddings/weight": np.ones((12, 8), "i1")}, "without a valid scale"),
    "infinite": ({}, {"decoder/projection/bias": np.full(12, np.inf, "f4")}, "not finite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_model_here_has_is_refused(tmp_path: Path, name: str) -> None:
    written, changed, message = REFUSED[name]
    folder = ctranslate2_folder(tmp_path / "model")
    content = model_bin({**transformer_variables(ROWS), **changed}, **written)
    (folder / "model.bin").write_bytes(content)
    with pytest.raises(Exception, match=message) as error:
        imported(folder)
    assert error.type.__module__ == "dragoman.base.errors"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("content", "message"),
    [("[]", "not a table of settings"), ('{"add_source_bos": true}', "begin symbol"),
     ('{"layer_norm_epsilon": "x"}', "not a number"), ('{"unk_token": 3}', "not a token")],
)  # fmt: skip
def test_settings_that_cannot_be_kept_are_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    folder = ctranslate2_folder(tmp_path / "model")
    (folder / "config.json").write_text(content)
    with pytest.raises(RunError, match=message):
        imported(folder)


def test_a_vocabulary_of_another_size_is_refused(tmp_path: Path) -> None:
    folder = ctranslate2_folder(tmp_path / "model")
    (folder / "target_vocabulary.txt").write_text("<s>\n</s>\na\n")
    with pytest.raises(RunError, match="4 tokens, but the model has 12"):
        imported(folder)


@pytest.mark.skipif(not AREN.is_dir(), reason="names the folder with CTranslate2's test models")
def test_a_model_that_others_trained_writes_what_they_expect(tmp_path: Path) -> None:
    """Greedy outputs and log-probabilities of CTranslate2 4.8.5 in fp32."""
    import_model(AREN / "aren-transliteration", tmp_path / "run", ("ar", "en"))
    translator = Run.open(tmp_path / "run").open_predictor(TranslatorSettings(precision="fp32"))
    expected = {
        "آتزمون": ("atzmon", -1.0617094), "آتشيسون": ("achison", -1.1135726),
        "آرثر": ("arther", -0.3276987), "آدامز": ("adams", -0.6336050),
        "محمد": ("mahmad", -2.1113114), "القاهرة": ("qahra", -2.0396218),
    }  # fmt: skip
    found = translator.batch(expected, settings=SearchSettings(beam=1, length_penalty=0))
    assert [one.text for one in found] == [text for text, _ in expected.values()]
    scores = translator.score((word, text) for word, (text, _) in expected.items())
    for one, (_, score) in zip(scores, expected.values(), strict=True):
        assert sum(one.token_log_probabilities) == pytest.approx(score, abs=1e-3)
