"""Marian models of Hugging Face: the same logits, the same outputs, the same tokens."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from foreign_models import PAIRS, SHAPES, exact_marian, marian_folder, saved_by_torch
from torch import Tensor
from transformers import MarianMTModel, MarianTokenizer

from dragoman.base.errors import RunError
from dragoman.engine.settings import TranslatorSettings
from dragoman.interop.folder import import_model
from dragoman.nn.layout import Sequences
from dragoman.search.settings import SearchSettings
from dragoman.tasks.catalogue import Run

LINES = [pair.source for pair in PAIRS.test]


@pytest.fixture(scope="module", params=range(len(SHAPES)), ids=["swish", "relu"])
def both(request: pytest.FixtureRequest, tmp_path_factory: Any) -> tuple[Path, Run]:
    """A folder of Hugging Face, and the run that was made of it."""
    folder = tmp_path_factory.mktemp("marian") / "opus-mt-en-de"
    marian_folder(folder, SHAPES[request.param])
    (said,) = import_model(folder, folder.parent / "run", None)
    assert "several languages: de, ko." in said
    return folder, Run.open(folder.parent / "run")


def ids_of(run: Run, tokenizer: MarianTokenizer, side: str) -> list[int]:
    """For each of our ids, the id of the same token there."""
    pieces = getattr(run, side).names_of(range(getattr(run, side).size))
    table = tokenizer.get_vocab()
    words = (piece.lstrip("▁") if ">>" in piece else piece for piece in pieces)
    found = [table.get(word, table["<unk>"]) for word in words]
    found[1] = table["<pad>"]
    return found


@pytest.mark.parametrize("length", [1, 40, 200])
def test_logits_are_the_same(both: tuple[Path, Run], length: int) -> None:
    folder, run = both
    tokenizer = MarianTokenizer.from_pretrained(folder)
    sources, targets = (ids_of(run, tokenizer, side) for side in ("source", "target"))
    draw = torch.Generator().manual_seed(length)
    read = torch.randint(3, len(sources), (length,), generator=draw)
    written = torch.randint(3, len(targets), (length,), generator=draw)
    written[0] = run.target.bos
    ours = run.model().double()
    memory = ours.encode(Sequences.of([read]))
    mine: Tensor = ours.project(ours.decode(Sequences.of([written]), memory))
    theirs = exact_marian(folder)(
        input_ids=torch.tensor(sources)[read][None],
        decoder_input_ids=torch.tensor(targets)[written][None],
    ).logits[0]
    known = len(set(targets))  # the tokens behind these are <unk> there
    assert known < len(targets)
    difference = (mine[:, :known] - theirs[:, targets[:known]]).abs().max().item()
    assert difference <= 1e-9
    unknown = targets[0]
    assert torch.allclose(mine[:, known:], theirs[:, [unknown]] - 30, atol=1e-6)


def test_greedy_outputs_are_the_same(both: tuple[Path, Run]) -> None:
    folder, run = both
    tokenizer = MarianTokenizer.from_pretrained(folder)
    targets = ids_of(run, tokenizer, "target")
    model = MarianMTModel.from_pretrained(folder).eval()
    translator = run.with_tag("ko").open_predictor(TranslatorSettings(precision="fp32", whole=True))
    greedy = SearchSettings(beam=1, max_length=20, length_penalty=0)
    mine = translator.batch(LINES, settings=greedy)
    for line, found in zip(LINES, mine, strict=True):
        given = tokenizer([f">>ko<< {line}"], return_tensors="pt")
        expected = model.generate(**given, num_beams=1, max_new_tokens=20)[0].tolist()
        cut = expected[1 : expected.index(0, 1)] if 0 in expected[1:] else expected[1:]
        assert [targets[one] for one in found.ids] == cut


def test_tokens_are_the_same(both: tuple[Path, Run]) -> None:
    folder, run = both
    tokenizer = MarianTokenizer.from_pretrained(folder)
    lines = [
        *LINES,
        "“It ’s,” he… «said».",
        "Zürich 서울 → sz s der",
        ">>ko<< The dog sleeps.",
        "  a  b ",
        "#☃ß",
    ]
    for side, given in (("source", {}), ("target", {"text_target": lines})):
        theirs = tokenizer(**given)["input_ids"] if given else tokenizer(lines)["input_ids"]
        names = ids_of(run, tokenizer, side)
        assert names[-1] == names[0]  # one that the table lacks
        ours = getattr(run, side).values(lines)
        if side == "target":
            ours[-3], theirs[-3] = [], []  # a tag is read, and never written
        assert [[names[one] for one in ids] for ids in ours] == theirs


def test_its_settings_are_those_of_the_folder(both: tuple[Path, Run]) -> None:
    folder, run = both
    assert (run.recipe.languages.source, run.recipe.languages.target) == ("en", "de")
    assert (run.recipe.search.beam, run.recipe.search.penalty) == (3, "marian")
    assert (
        run.recipe.model.activation
        == json.loads((folder / "config.json").read_text())["activation_function"]
    )


def test_wrong_positions_would_be_seen(both: tuple[Path, Run], tmp_path: Path) -> None:
    """The check of the logits fails where a setting of the import is wrong."""
    _, run = both
    shutil.copytree(run.folder, tmp_path / "run")
    recipe = tmp_path / "run" / "recipe.toml"
    right = Run.open(tmp_path / "run").model()
    source = Sequences.of([torch.arange(3, 40)])
    for old, new in (
        ('kind = "sinusoidal"', 'kind = "marian"'),
        ("scale_embeddings = true", "scale_embeddings = false"),
        ("norm_epsilon = 1e-05", "norm_epsilon = 1e-03"),
        ('activation = "', 'activation = "gelu" #'),
    ):
        text = recipe.read_text()
        assert old in text
        recipe.write_text(text.replace(old, new))
        wrong = Run.open(tmp_path / "run").model()
        far = (wrong.encode(source).rows - right.encode(source).rows).abs().max().item()
        assert far > 1e-6, new
        recipe.write_text(text)


@pytest.mark.parametrize("kind", ["bin", "half", "bfloat"])
def test_other_files_of_weights_give_the_same(tmp_path: Path, kind: str) -> None:
    folder = marian_folder(tmp_path / "opus-mt-en-de")
    model = MarianMTModel.from_pretrained(folder)
    if kind != "bin":
        model = model.to({"half": torch.float16, "bfloat": torch.bfloat16}[kind])
        model.save_pretrained(folder)
    else:
        (folder / "model.safetensors").unlink()
        saved_by_torch(folder / "pytorch_model.bin", model.state_dict())
    import_model(folder, tmp_path / "run", None)
    mine = Run.open(tmp_path / "run").model().state_dict()["encoder.1.feed_forward.inner.bias"]
    theirs = model.state_dict()["model.encoder.layers.1.fc1.bias"].float()
    assert torch.equal(mine, theirs)


REFUSED = {
    "t5": ({"model_type": "t5"}, "type 't5'.*relative positions"),
    "nllb": ({"model_type": "m2m_100"}, "NLLB"),
    "pre-norm": ({"normalize_before": True}, "normalize_before"),
    "activation": ({"activation_function": "tanh"}, "activation_function 'tanh'"),
    "no width": ({"d_model": None}, "d_model is None"),
    "a text": ({"d_model": "16"}, "d_model is '16'"),
    "wider": ({"d_model": 32}, "has the shape"),
    "deeper": ({"encoder_layers": 3}, "lack model.encoder.layers.2"),
    "rows": ({"vocab_size": 7}, "to different models"),
    "inner": ({"encoder_ffn_dim": 44}, "differ"),
    "heads": ({"encoder_attention_heads": 3, "decoder_attention_heads": 3}, "num_heads"),
    "start": ({"decoder_start_token_id": 0}, "decoder_start_token_id must not be"),
    "beam": ({"num_beams": -1}, "num_beams"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_config_that_does_not_fit_is_refused(tmp_path: Path, name: str) -> None:
    changed, message = REFUSED[name]
    folder = marian_folder(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changed}))
    (folder / "generation_config.json").unlink()
    with pytest.raises(Exception, match=message) as error:
        import_model(folder, tmp_path / "run", None)
    assert error.type.__module__ == "dragoman.base.errors"
    assert "\n" not in str(error.value) or name == "heads"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


@pytest.mark.parametrize("name", ["vocab.json", "source.spm", "target.spm", "model.safetensors"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = marian_folder(tmp_path / "model")
    (folder / name).unlink()
    with pytest.raises(RunError, match=f"has no {name}"):
        import_model(folder, tmp_path / "run", None)


@pytest.mark.parametrize(
    ("table", "message"),
    [('{"a": 0, "b": 2}', "gaps"), ('{"a": 0, "a2": "1"}', "is not a table"), ("3", "no tokens"),
     ('["a", "a"]', "twice"), ('["a", ""]', "empty"), ("[", "damaged")],
)  # fmt: skip
def test_a_damaged_vocabulary_is_refused(tmp_path: Path, table: str, message: str) -> None:
    folder = marian_folder(tmp_path / "model")
    (folder / "vocab.json").write_text(table)
    with pytest.raises(RunError, match=message):
        import_model(folder, tmp_path / "run", None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("generation_config.json", "[1]", "is not a table of settings"),
        ("tokenizer_config.json", "5", ""),
        ("config.json", {"encoder_layers": 900_000}, "encoder_layers is 900000"),
        ("config.json", {"activation_function": []}, "activation_function"),
        ("generation_config.json", {"length_penalty": 10**400}, "is not an allowed number"),
    ],
)
def test_settings_of_another_kind_are_refused(
    name: str, content: Any, message: str, tmp_path: Path
) -> None:
    """Before memory is taken for them; what names the languages may be left out."""
    folder = marian_folder(tmp_path / "model")
    path = folder / name
    if isinstance(content, dict):
        content = json.dumps(json.loads(path.read_text()) | content)
    path.write_text(content)
    if message:
        with pytest.raises(RunError, match=message):
            import_model(folder, tmp_path / "run", ("en", "de"))
    else:
        import_model(folder, tmp_path / "run", ("en", "de"))
