"""Marian's own models: the same logits as transformers with Marian's table of positions."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from foreign_models import random_marian
from safetensors.torch import load_file, save_file
from transformers import MarianConfig, MarianMTModel

from dragoman.base.errors import RunError
from dragoman.interop.export import export_run
from dragoman.interop.folder import import_model
from dragoman.nn.layout import Sequences
from dragoman.tasks.catalogue import Run

TOKENS = ["</s>", "<unk>", *"abcdefgh", "'", '"']
SETTINGS = """dec-depth: 2
dim-emb: 16
dim-vocabs:
  - 12
  - 12
enc-depth: 2
input-types:
  []
lemma-dependency: ""
tied-embeddings-all: true
transformer-dim-ffn: 24
transformer-decoder-autoreg: self-attention
transformer-ffn-activation: swish
transformer-heads: 4
transformer-postprocess: dan
transformer-preprocess: ""
type: transformer
"""
DECODER = "vocabs:\n  - /x/v.vocab.yml\n  - /x/v.vocab.yml\nbeam-size: 5\nnormalize: 0.7\n"


def theirs() -> MarianMTModel:
    """A random model of transformers with Marian's positions and norm."""
    model = random_marian(
        MarianConfig(
            vocab_size=13, pad_token_id=12, eos_token_id=0, decoder_start_token_id=12, d_model=16,
            encoder_ffn_dim=24, decoder_ffn_dim=24, encoder_layers=2, decoder_layers=2,
            encoder_attention_heads=4, decoder_attention_heads=4, scale_embedding=True,
            activation_function="swish", max_position_embeddings=64,
        )
    )  # fmt: skip
    angles = np.arange(64)[:, None] * np.exp(np.arange(8) * -(math.log(1e4) / 7))
    table = torch.from_numpy(np.concatenate([np.sin(angles), np.cos(angles)], 1)).float()
    for part in (model.model.encoder, model.model.decoder):
        part.embed_positions.weight.data = table
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    model.model.shared.weight.data[12] = 0  # Marian begins with zeros
    return model


def arrays(model: MarianMTModel, settings: str = SETTINGS) -> dict[str, np.ndarray]:
    """The weights by Marian's names."""
    held = {name: one.numpy() for name, one in model.state_dict().items()}
    made = {
        "special:model.yml": np.frombuffer(settings.encode() + bytes(9), "i1"),
        "Wemb": held["model.shared.weight"][:12],
        "decoder_ff_logit_out_b": held["final_logits_bias"][:, :12],
    }
    for side, names in (
        ("encoder", {"self_attn": "self"}),
        ("decoder", {"self_attn": "self", "encoder_attn": "context"}),
    ):
        for number in range(2):
            old, new = f"model.{side}.layers.{number}.", f"{side}_l{number + 1}_"
            places = {"fc1": ("ffn", "1"), "fc2": ("ffn", "2")}
            norms = {"final_layer_norm": "ffn_ffn"}
            for name, other in names.items():
                norms[f"{name}_layer_norm"] = f"{other}_Wo"
                for part, short in (("q", "q"), ("k", "k"), ("v", "v"), ("out", "o")):
                    places[f"{name}.{part}_proj"] = (other, short)
            for name, (prefix, ending) in places.items():
                made[f"{new}{prefix}_W{ending}"] = held[f"{old}{name}.weight"].T.copy()
                made[f"{new}{prefix}_b{ending}"] = held[f"{old}{name}.bias"][None]
            for name, other in norms.items():
                made[f"{new}{other}_ln_scale"] = held[f"{old}{name}.weight"][None]
                made[f"{new}{other}_ln_bias"] = held[f"{old}{name}.bias"][None]
    return made


def folder_of(folder: Path, made: dict[str, np.ndarray]) -> Path:
    folder.mkdir()
    np.savez(folder / "model.npz", **made)
    table = "".join(f"{json.dumps(name)}: {number}\n" for number, name in enumerate(TOKENS))
    (folder / "v.vocab.yml").write_text(table)
    (folder / "decoder.yml").write_text(DECODER)
    return folder


def test_logits_are_the_same(tmp_path: Path) -> None:
    model = theirs()
    folder = folder_of(tmp_path / "toy-en-de", arrays(model))
    import_model(folder, tmp_path / "run", None)
    run = Run.open(tmp_path / "run")
    search = run.recipe.search
    assert (search.beam, search.length_penalty, search.penalty) == (5, 0.7, "marian")
    assert search.stop == "empty"
    names = [1, 12, 0, *range(2, 12)]  # our ids begin with <unk>, <s> and </s>
    read, written = torch.tensor([5, 3, 9, 12, 2]), torch.tensor([1, 4, 8, 8, 11])
    ours = run.model()
    mine = ours.project(ours.decode(Sequences.of([written]), ours.encode(Sequences.of([read]))))
    order = torch.tensor(names)
    expected = model(input_ids=order[read][None], decoder_input_ids=order[written][None]).logits[0]
    kept = [number for number in range(13) if number != 1]
    assert torch.allclose(mine[:, kept], expected[:, order[kept]], atol=1e-4)
    assert mine[:, 1].max() < -1e8
    assert run.source.tokens(["ab'"]) == [[3, 4, 11]]


@pytest.mark.parametrize("wrong", ["", "positions", "start"])
def test_what_came_from_marian_goes_to_hugging_face(tmp_path: Path, wrong: str) -> None:
    """Positions and the empty start are exact there; the epsilon of the norms is not."""
    import_model(folder_of(tmp_path / "toy-en-de", arrays(theirs())), tmp_path / "run", None)
    run = Run.open(tmp_path / "run")
    folder = export_run(run, "huggingface", tmp_path / "there", None)
    assert "epsilon 1e-05 here; the run uses 1e-06" in (folder / "README.md").read_text()
    model = MarianMTModel.from_pretrained(folder)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    if wrong == "positions":
        table = model.model.encoder.embed_positions
        table.weight.data = table.create_weight()
    if wrong == "start":
        model.get_decoder().embed_tokens.weight.data[1] = 0.1
    read, written = torch.tensor([5, 3, 9, 12, 2]), torch.tensor([1, 4, 8, 8, 11])
    ours = run.model()
    mine = ours.project(ours.decode(Sequences.of([written]), ours.encode(Sequences.of([read]))))
    expected = model(input_ids=read[None], decoder_input_ids=written[None]).logits[0]
    kept = [number for number in range(13) if number != 1]
    assert torch.allclose(mine[:, kept], expected[:, kept], atol=1e-5) == (not wrong)
    import_model(folder, tmp_path / "again", None)
    again = Run.open(tmp_path / "again")
    assert again.recipe.model.positions.kind == "marian"
    assert torch.equal(again.model().source_embedding.weight, ours.source_embedding.weight)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_positions_of_another_kind_are_refused_on_either_side(tmp_path: Path, side: str) -> None:
    import_model(folder_of(tmp_path / "toy-en-de", arrays(theirs())), tmp_path / "run", None)
    folder = export_run(Run.open(tmp_path / "run"), "huggingface", tmp_path / "there", None)
    tensors = load_file(folder / "model.safetensors")
    tensors[f"model.{side}.embed_positions.weight"] += 0.1
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(RunError, match="neither those of MarianMTModel nor of Marian"):
        import_model(folder, tmp_path / "again", None)
    assert not (tmp_path / "again").exists()


REFUSED = {
    "type": ("type: transformer", "type: s2s", "type is 's2s'"),
    "ssru": ("autoreg: self-attention", "autoreg: rnn", "autoreg is 'rnn'"),
    "pre-norm": ('preprocess: ""', "preprocess: n", "preprocess is 'n'"),
    "post": ("postprocess: dan", "postprocess: da", "postprocess is 'da'"),
    "factors": ("type: transformer", "lemma-dim-emb: 4", "lemma-dim-emb is '4'"),
    "no number": ("dim-emb: 16", "dim-emb: wide", "dim-emb is 'wide'"),
    "wider": ("dim-emb: 16", "dim-emb: 32", "has the shape"),
    "deeper": ("enc-depth: 2", "enc-depth: 3", "lack encoder_l3"),
    "activation": ("activation: swish", "activation: tanh", "ffn-activation 'tanh'"),
    "activations": ("activation: swish", "activation:\n  - relu", "ffn-activation \\['relu'\\]"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(tmp_path: Path, name: str) -> None:
    old, new, message = REFUSED[name]
    folder = folder_of(tmp_path / "model", arrays(theirs(), SETTINGS.replace(old, new)))
    with pytest.raises(RunError, match=message) as error:
        import_model(folder, tmp_path / "run", None)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_files_that_are_missing_or_cut_are_refused(tmp_path: Path) -> None:
    whole = arrays(theirs())
    for number, (gone, message) in enumerate(
        (("special:model.yml", "no special:model"), ("Wemb", "lack Wemb"))
    ):
        made = {name: one for name, one in whole.items() if name != gone}
        with pytest.raises(RunError, match=message):
            import_model(folder_of(tmp_path / f"{number}", made), tmp_path / "run", None)
    folder = folder_of(tmp_path / "model", whole)
    content = (folder / "model.npz").read_bytes()
    (folder / "model.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(RunError, match="damaged or cut short"):
        import_model(folder, tmp_path / "run", None)
    (folder / "v.vocab.yml").unlink()
    (folder / "model.npz").write_bytes(content)
    with pytest.raises(RunError, match=r"has no v\.vocab\.yml"):
        import_model(folder, tmp_path / "run", None)
    assert not (tmp_path / "run").exists()


def test_a_script_that_changes_the_text_is_not_run_and_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model", arrays(theirs()))
    before = import_model(folder, tmp_path / "first", None)
    (folder / "preprocess.sh").write_text("touch never\n")
    told = import_model(folder, tmp_path / "second", None)
    assert [line for line in told if line not in before] == [
        "preprocess.sh is not run: what it changes in a text stays as it is"
    ]
    first, second = (Run.open(tmp_path / name) for name in ("first", "second"))
    assert first.source_text.fingerprint == second.source_text.fingerprint


def test_numbers_too_large_for_fp32_are_refused(tmp_path: Path) -> None:
    made = arrays(theirs())
    made["Wemb"] = made["Wemb"].astype("f8") * 1e300
    with pytest.raises(RunError, match="Wemb is damaged: it contains numbers that are not finite"):
        import_model(folder_of(tmp_path / "model", made), tmp_path / "run", None)


def test_settings_of_many_bytes_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model", arrays(theirs(), SETTINGS + "\n" * (2 << 20)))
    with pytest.raises(RunError, match=r"special:model\.yml has more than 2,097,152 bytes"):
        import_model(folder, tmp_path / "run", None)


def test_a_long_line_takes_time_in_proportion(tmp_path: Path) -> None:
    """Its spaces are read once: tried from each of them, these would take hours."""
    line = "\nnote: a" + " " * 1_000_000 + "b\n"
    folder = folder_of(tmp_path / "model", arrays(theirs(), SETTINGS + line))
    import_model(folder, tmp_path / "run", None)
