"""Runs as models of other programs: the same tokens, logits and outputs in transformers, and the
same run again when the files are imported. ``test_beside_ctranslate2.py`` has the other programs.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Dragoman
from foreign_models import exact_marian
from random_run import APART, LINES, SHARED, random_run
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from dragoman.base.errors import RunError
from dragoman.engine.settings import TranslatorSettings
from dragoman.interop import huggingface, to_ctranslate2
from dragoman.interop.export import export_run
from dragoman.interop.folder import import_model
from dragoman.models.shortlist import Shortlist
from dragoman.nn.layout import Sequences
from dragoman.search.settings import SearchSettings
from dragoman.tasks.catalogue import Recipe, Run

GREEDY = SearchSettings(beam=1, max_length=20, length_penalty=0)
PLAIN = TranslatorSettings(precision="fp32", whole=True, threads=1)


@pytest.fixture(scope="module", params=[SHARED, APART], ids=["shared", "apart"])
def both(request: pytest.FixtureRequest, tmp_path_factory: Any) -> tuple[Run, Path]:
    """A run, and the folder of Hugging Face that was made of it."""
    folder = tmp_path_factory.mktemp("exported")
    run = random_run(folder / "run", *request.param)
    return run, export_run(run, "huggingface", folder / "there", None)


def logits_of(run: Run, folder: Path, length: int) -> tuple[Tensor, Tensor]:
    """Logits of random tokens in fp64, here and there."""
    draw = torch.Generator().manual_seed(length)
    read = torch.randint(3, run.source.size, (length,), generator=draw)
    written = torch.randint(3, run.target.size, (length,), generator=draw)
    written[0] = run.target.bos
    model = run.model().double()
    memory = model.encode(Sequences.of([read]))
    ours = model.project(model.decode(Sequences.of([written]), memory))
    theirs = exact_marian(folder)(input_ids=read[None], decoder_input_ids=written[None]).logits[0]
    return ours, theirs


@pytest.mark.parametrize("length", [1, 40, 200])
def test_logits_are_the_same(both: tuple[Run, Path], length: int) -> None:
    ours, theirs = logits_of(*both, length)
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().max().item() <= 1e-9


@pytest.mark.parametrize(
    "changed",
    [{"scale_embedding": False}, {"activation_function": "silu"}, {"encoder_attention_heads": 1},
     {"decoder_attention_heads": 1}, {}],
)  # fmt: skip
def test_a_wrong_setting_would_be_seen(
    both: tuple[Run, Path], tmp_path: Path, changed: dict[str, Any], monkeypatch: Any
) -> None:
    """No change of the settings: the columns are not moved."""
    run, _ = both
    if not changed:
        monkeypatch.setattr(huggingface, "columns", np.arange)
    folder = export_run(run, "huggingface", tmp_path / "there", None)
    config = json.loads((folder / "config.json").read_text())
    assert changed.keys() <= config.keys()
    (folder / "config.json").write_text(json.dumps(config | changed))
    ours, theirs = logits_of(run, folder, 40)
    assert (ours - theirs).abs().max().item() > 1e-6


def test_tokens_and_greedy_outputs_are_the_same(both: tuple[Run, Path]) -> None:
    run, folder = both
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.pad_token_id == run.target.bos
    lines = [*LINES, "Zürich 서울 → sz", "  a  b ", "#☃ß", "Ａ ﬁ"]
    assert tokenizer(lines)["input_ids"] == [list(ids) for ids in run.source.values(lines)]
    theirs = tokenizer(text_target=lines)["input_ids"]
    assert theirs == [list(ids) for ids in run.target.values(lines)]
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    mine = run.open_predictor(PLAIN).batch(LINES, settings=GREEDY)
    for begin in range(0, len(LINES), 100):
        given = tokenizer(LINES[begin : begin + 100], return_tensors="pt", padding=True)
        written = model.generate(**given, num_beams=1, max_new_tokens=20, max_length=None)
        texts = tokenizer.batch_decode(written, skip_special_tokens=True)
        for found, ids, text in zip(mine[begin : begin + 100], written, texts, strict=True):
            cut = ids[1:].tolist()
            assert list(found.ids) == (cut[: cut.index(2)] if 2 in cut else cut)
            if "\ufffd" not in text:  # bytes of no character, which are left out here
                assert found.text.strip() == text


@pytest.mark.parametrize("kind", ["bpe", "char", "word"])
def test_each_kind_of_vocabulary_cuts_text_as_here(tmp_path: Path, kind: str) -> None:
    changes = (f"text.kind={kind}", "text.vocabulary=400", "model.model_dim=8")
    run = random_run(tmp_path / "run", *changes)
    tokenizer = AutoTokenizer.from_pretrained(
        export_run(run, "huggingface", tmp_path / "there", None)
    )
    lines = [*LINES[:50], "Zürich ☃  x", ""]
    assert tokenizer(lines)["input_ids"] == [list(ids) for ids in run.source.values(lines)]


def test_the_card_tells_how_the_model_is_used(
    both: tuple[Run, Path], tmp_path: Path, monkeypatch: Any
) -> None:
    """Its lines run, and translate."""
    run, folder = both
    monkeypatch.chdir(folder.parent)
    card = (folder / "README.md").read_text()
    found = re.search("```python\n(.*?)\n```", card, re.DOTALL)
    assert found is not None and "\nlicense:" not in card
    said = io.StringIO()
    with redirect_stdout(said):
        exec(
            found[1]
            .replace('"..."', f'"{LINES[0]}"')
            .replace("generate(", "generate(max_length=30, ")
        )
    assert said.getvalue().startswith("[")
    named = export_run(run, "huggingface", tmp_path / "there", "cc-by-4.0")
    assert '\nlicense: "cc-by-4.0"\n' in (named / "README.md").read_text()
    assert "library_name: transformers" in card


@pytest.mark.parametrize("name", ["huggingface", "ctranslate2"])
@pytest.mark.parametrize("changes", [SHARED, APART], ids=["shared", "apart"])
def test_the_files_are_the_run_again_when_they_are_imported(
    tmp_path: Path, name: str, changes: tuple[str, ...]
) -> None:
    run = random_run(tmp_path / "run", *changes)
    there = export_run(run, name, tmp_path / "there", None)
    import_model(there, tmp_path / "again", ("en", "de"))
    same_run(run, Run.open(tmp_path / "again"))


@pytest.mark.parametrize(
    "changes",
    [("model.norm=pre",), ("model.positions.kind=learned", "model.positions.maximum=300"),
     ("model.positions.kind=marian", "model.zero_start=true", "model.norm_epsilon=1e-3"),
     ("model.tie=target", "model.scale_embeddings=false", "model.activation=swish")],
)  # fmt: skip
def test_ctranslate2_has_what_hugging_face_lacks(tmp_path: Path, changes: tuple[str, ...]) -> None:
    run = random_run(tmp_path / "run", *SHARED, *changes)
    there = export_run(run, "ctranslate2", tmp_path / "there", None)
    import_model(there, tmp_path / "again", ("en", "de"))
    same_run(run, Run.open(tmp_path / "again"))


def same_run(run: Run, again: Run) -> None:
    """Logits in fp32, bit for bit, and tokens."""
    assert [list(one) for one in again.source.values(LINES)] == [
        list(one) for one in run.source.values(LINES)
    ]
    read = Sequences.of([torch.tensor(run.source.values(LINES)[0])])
    written = Sequences.of([torch.tensor([run.target.bos, *run.target.tokens(LINES)[0]])])
    found = [
        model.project(model.decode(written, model.encode(read)))
        for model in (run.model(), again.model())
    ]
    assert torch.equal(*found)


def test_a_package_of_argos_is_the_run_again(tmp_path: Path) -> None:
    run = random_run(tmp_path / "run", *SHARED)
    package = export_run(run, "argos", tmp_path / "there", None)
    assert package.name == "translate-en_de-1_0.argosmodel"
    with zipfile.ZipFile(package) as archive:
        about = json.loads(archive.read("translate-en_de-1_0/metadata.json"))
        assert {"translate-en_de-1_0/README.md", "translate-en_de-1_0/sentencepiece.model"} < set(
            archive.namelist()
        )
    assert (about["from_code"], about["to_name"]) == ("en", "German")
    import_model(package, tmp_path / "again", None)
    again = Run.open(tmp_path / "again")
    assert again.languages == ("en", "de")
    same_run(run, again)


def test_a_shortlist_is_a_map_of_ctranslate2() -> None:
    """A token with a space cannot be said there, and is left out."""
    numbers = [np.array(one, np.int32) for one in ([0, 2], [0, 0, 2, 3, 4], [3, 4, 1, 1])]
    tokens = ["<unk>", "a", "b\t", "▁c", "d e"]
    assert to_ctranslate2.vmap(Shortlist(*numbers), tokens[:4], tokens) == (
        "\t<unk>\n<unk>\t\na\t▁c\n▁c\ta\n"
    )


REFUSED = {
    "pre-norm": ("huggingface", "model.norm=pre", 'model.norm = "pre"'),
    "no norm": ("ctranslate2", "model.norm=none", 'model.norm = "none"'),
    "positions": ("huggingface", "model.positions.kind=index", 'positions.kind = "index"'),
    "index": ("ctranslate2", "model.positions.kind=index", 'positions.kind = "index"'),
    "epsilon": ("huggingface", "model.norm_epsilon=1e-3", "norm_epsilon = 0.001"),
    "residual": ("huggingface", "model.residual=false", "residual = false"),
    "unknown": ("ctranslate2", "model.attend_unknown=false", "attend_unknown = false"),
    "scale": ("ctranslate2", "model.attention.scaled=false", "attention.scaled = false"),
    "slices": ("argos", "model.attention.whole_input=false", "whole_input = false"),
    "wide": ("huggingface", "model.attention.key_width=5", "attention.key_width or value_width"),
    "moses": ("huggingface", "data.moses=true", "data.moses = true"),
    "composed": ("ctranslate2", "text.normalization=nfc", 'normalization = "nfc"'),
    "lossless": ("ctranslate2", "text.lossless=true", "text.lossless = true"),
    "two": ("argos", "text.shared=false", "text.shared = false"),
    "language": ("argos", "languages.target=und", "languages of the run are not known"),
    "lstm": ("ctranslate2", "model.kind=recurrent", 'model.kind = "recurrent"'),
    "beside": (
        "ctranslate2", "model.positions.combine=concatenate", 'combine = "concatenate"'
    ),
}  # fmt: skip
NEEDED = {
    "lossless": ("text.byte_fallback=true",),
    "two": ("model.tie=none",),
    "beside": ("model.positions.width=4", "model.tie=none"),
}


@pytest.fixture(scope="module")
def run_to_change(tmp_path_factory: Any) -> Run:
    run = random_run(tmp_path_factory.mktemp("changed") / "run", *SHARED)
    for side in ("source", "target"):
        run.target_text.save(run.folder / f"{side}.model")
    return run


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_program_cannot_compute_is_refused_by_name(
    run_to_change: Run, tmp_path: Path, case: str
) -> None:
    name, change, message = REFUSED[case]
    small = SHARED if case != "lstm" else ()
    if case == "lstm":
        recipe = Recipe.load("demo-recurrent", [])
    else:
        recipe = Recipe.load("demo", [*small, *NEEDED.get(case, ()), change])
    changed = Run(run_to_change.folder, recipe)
    with pytest.raises(RunError, match=re.escape(message)):
        export_run(changed, name, tmp_path / "there", None)
    assert not list(tmp_path.iterdir())


def test_what_is_interrupted_leaves_nothing(
    run_to_change: Run, tmp_path: Path, monkeypatch: Any
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(to_ctranslate2, "_write_binary", stop)
    with pytest.raises(KeyboardInterrupt):
        export_run(run_to_change, "argos", tmp_path / "there", None)
    assert not list(tmp_path.iterdir())


def test_a_run_of_another_task_is_refused(tmp_path: Path) -> None:
    """A parser, whose decoder may read the next word of its source (``next_word``)."""
    parser = Run(tmp_path, Recipe.load("demo-trees"))
    with pytest.raises(RunError, match="is a parser, which cannot be exported"):
        export_run(parser, "huggingface", tmp_path / "there", None)


def test_the_verb_writes_a_new_folder_alone(
    run_to_change: Run, tmp_path: Path, dragoman: Dragoman
) -> None:
    run, folder = str(run_to_change.folder), tmp_path / "there"
    assert "set the program: --to huggingface" in dragoman("export", run, str(folder)).err
    given = ("export", run, str(folder), "--to", "ctranslate2")
    done = dragoman(*given)
    assert done.code == 0
    assert done.out == f"{folder} is written; {folder}/README.md says how it is used\n"
    assert "the card states no licence" in done.err
    again = dragoman(*given)
    assert (again.code, again.err) == (1, f"error: {folder} already exists. Give a new folder\n")
