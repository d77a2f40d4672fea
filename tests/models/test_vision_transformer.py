"""The class token and positions on a grid; the whole beside another implementation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from implementations import drawn
from tiny_cells import tiny_cell
from tiny_tasks import tiny_recipe_of
from torch import Tensor

from dragoman.base.errors import RecipeError
from dragoman.models.catalogue.classifier import Classifier, new_classifier
from dragoman.models.encoding import ClassToken
from dragoman.models.settings import EncoderSettings
from dragoman.nn.embedding import Positions, sinusoidal
from dragoman.nn.layout import Sequences
from dragoman.nn.settings import PositionSettings
from dragoman.sources.picture.form import PicturesForm, PictureSource, patches_of

SOURCE = PictureSource(height=8, width=12, channels=3, patch=4)
"""2 x 3 patches."""


def built(**changes: object) -> Classifier:
    torch.manual_seed(0)
    settings = EncoderSettings.model_validate(
        {"model_dim": 16, "ffn_dim": 24, "layers": 2, "attention": {"num_heads": 4}, "dropout": 0.0}
        | {"class_token": True, "positions": {"kind": "learned", "maximum": 7}}
        | changes
    )
    return drawn(new_classifier(settings, SOURCE, 3))


def pictures(count: int) -> tuple[Tensor, list[Tensor]]:
    """(B, H, W, C) bytes, and their patches."""
    torch.manual_seed(1)
    made = torch.randint(0, 256, (count, 8, 12, 3), dtype=torch.uint8)
    return made, [torch.from_numpy(patches_of(one.numpy(), 4)) for one in made]


def test_the_label_is_said_by_the_row_of_the_class_token() -> None:
    model, (_, patches) = built(), pictures(2)
    with torch.no_grad():
        rows = model.body.encode(Sequences.of(patches))
        said = model.encode(Sequences.of(patches))
        assert rows.layout.lengths == (7, 7) and model.memory_length(6) == 7
        assert torch.equal(said.rows, rows.rows[[0, 7]])
        alone = model.encode(Sequences.of(patches[1:])).rows
        assert torch.allclose(alone, said.rows[1:], atol=1e-5)
        front = model.body.front_end
        assert isinstance(front, ClassToken)
        made = front(Sequences.of([patches[0][:2], patches[1]]))  # the end of one is not read
        plain = front.made(Sequences.of([patches[0][:2], patches[1]])).values
        wanted = [front.token[None], plain[:2], front.token[None], plain[2:]]
        assert torch.allclose(made.values, torch.cat(wanted), atol=1e-6)
    model.requires_grad_()
    model.project(model.encode(Sequences.of(patches)).rows).sum().backward()
    assert front.token.grad is not None and front.token.grad.abs().sum() > 0


def test_a_grid_tells_row_and_column() -> None:
    found = Positions(PositionSettings(kind="sinusoidal-2d"), 10, across=3, skipped=1)(
        torch.arange(7), None, torch.float64
    )
    assert (found[0] == 0).all()
    for place in range(6):
        row, column = (sinusoidal(torch.tensor([one]), 5)[0] for one in divmod(place, 3))
        assert torch.equal(found[1 + place], torch.cat([row, column]))
    model, (_, patches) = built(positions={"kind": "sinusoidal-2d"}), pictures(1)
    own = model.body.source_positions
    assert isinstance(own, Positions) and torch.equal(
        own(torch.arange(7), None, found.dtype)[:, :8],
        torch.cat([torch.zeros(1, 8), sinusoidal(torch.arange(6) // 3, 8)]),
    )
    with torch.no_grad():
        before = model.encode(Sequences.of(patches)).rows
        swapped = patches[0][[0, 3, 2, 1, 4, 5]]
        assert not torch.allclose(before, model.encode(Sequences.of([swapped])).rows)


def test_places_are_called_by_row_and_column_and_the_class_token_by_its_name() -> None:
    form = PicturesForm(SOURCE)
    values = pictures(1)[1][0].numpy()
    assert form.row_labels(values, 6) == ["▁1,1", "▁1,2", "▁1,3", "▁2,1", "▁2,2", "▁2,3"]
    assert form.row_labels(values, 7) == ["▁class", *form.row_labels(values, 6)]


def test_both_are_for_patches(tmp_path: Path) -> None:
    text = tiny_recipe_of("classification", tmp_path)
    frames = tiny_cell("classification", "encoder", "frames", tmp_path / "frames")
    picture = tiny_cell("classification", "encoder", "picture", tmp_path / "picture")
    for recipe in (text, frames):
        for change in ("class_token=true", "positions.kind=sinusoidal-2d"):
            with pytest.raises(
                RecipeError, match=r"is for the patches of pictures, (?:but|not) source"
            ):
                recipe.change([f"model.{change}"])
    assert picture.change(["model.class_token=true", "model.positions.kind=sinusoidal-2d"])
    learned = ["model.class_token=true", "model.positions.kind=learned"]
    with pytest.raises(RecipeError, match=r"the class token needs a position too. Set it to 5"):
        picture.change([*learned, "model.positions.maximum=4"])
    assert picture.change([*learned, "model.positions.maximum=5"]).model.longest == 4
    (tmp_path / "two").mkdir()
    written = tiny_recipe_of("translation", tmp_path / "two")
    with pytest.raises(RecipeError, match=r'is for model.kind = "encoder"'):
        written.change(["model.positions.kind=sinusoidal-2d"])


@pytest.mark.slow
def test_equals_transformers_vit() -> None:
    """Theirs has GELU by default, and ours the paper's ReLU. Their eager attention computes its
    softmax in fp32."""
    vit = pytest.importorskip("transformers.models.vit.modeling_vit")
    config = vit.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
        hidden_act="relu", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-5, image_size=(8, 12), patch_size=4, num_channels=3, qkv_bias=True,
        num_labels=3, attn_implementation="sdpa",
    )  # fmt: skip
    theirs, model = vit.ViTForImageClassification(config).double().eval(), built().double()
    state, (made, patches) = theirs.state_dict(), pictures(2)
    with torch.no_grad():
        copied = set()
        for name, value in model.state_dict().items():
            for ours, other in _THEIR_NAMES:
                name = name.replace(ours, other)
            if name.endswith("projection.weight"):  # (D, p x p x C) -> (D, C, p, p)
                value = value.view(16, 4, 4, 3).permute(0, 3, 1, 2)
            state[name].copy_(value.view(state[name].shape))
            copied.add(name)
        assert copied == set(state), "all of them"
        pixels = made.permute(0, 3, 1, 2).double() / 127.5 - 1
        wanted = theirs(pixel_values=pixels).logits
        found = model.project(model.encode(Sequences.of(patches)).rows)
    assert wanted.std() > 0.1 and (found - wanted).abs().max() < 1e-9


_THEIR_NAMES = [
    ("body.front_end.made.out", "vit.embeddings.patch_embeddings.projection"),
    ("body.front_end.token", "vit.embeddings.cls_token"),
    ("body.source_positions.table", "vit.embeddings.position_embeddings"),
    ("body.encoder_norm", "vit.layernorm"),
    ("body.encoder", "vit.layers"),
    ("head", "classifier"),
    ("attention_norm", "layernorm_before"),
    ("feed_forward_norm", "layernorm_after"),
    ("feed_forward.inner", "mlp.fc1"),
    ("feed_forward.outer", "mlp.fc2"),
    ("attention.output", "attention.o_proj"),
    ("query", "q_proj"),
    ("key", "k_proj"),
    ("value", "v_proj"),
]
