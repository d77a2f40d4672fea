"""A run as a model of another program: what can be said there, and the folder that is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from dragoman.base.atomic import creating_folder, write_text
from dragoman.base.errors import RunError
from dragoman.interop import to_argos, to_ctranslate2, to_huggingface
from dragoman.models.settings import TransformerSettings
from dragoman.pictures.card import card_markdown
from dragoman.tasks.catalogue import Run
from dragoman.tasks.report import summarise

PROGRAMS: dict[str, Any] = {
    "huggingface": to_huggingface,
    "ctranslate2": to_ctranslate2,
    "argos": to_argos,
}
"""The programs by the names that ``--to`` has."""


def export_run(run: Run, name: str, folder: Path, licence: str | None) -> Path:
    """Write a run as a model of the program ``name`` into a new folder. Return the path of the
    model: the folder, or a file in it.

    ``licence``: the identifier of a licence for the card. Errors: ``RunError`` that names the
    setting, for what the program cannot compute; ``FileError`` if the folder cannot be written.
    """
    program = PROGRAMS[name]
    run.require_task("translation", "which cannot be exported")
    if (reason := next(chain(_reasons(run), program.reasons(run)), None)) is not None:
        raise RunError(f"{run.folder} cannot be exported to {program.PROGRAM}: {reason}")
    model = run.model()
    weights = {key: value.numpy() for key, value in model.state_dict().items()}
    summary = replace(summarise(run), recipe="", machine=())
    with creating_folder(folder) as temporary:
        card = card_markdown(
            summary, library=program.LIBRARY, licence=licence, use=program.use(run, folder)
        )
        write_text(temporary / "README.md", card)
        made: Path = program.write(run, weights, temporary)
        inside = made.relative_to(temporary)
    return folder / inside


def _reasons(run: Run) -> Iterator[str]:
    """Yield the settings that none of the programs can compute."""
    recipe, model = run.recipe, run.recipe.model
    if not isinstance(model, TransformerSettings):
        yield f'model.kind = "{model.kind}": it computes Transformers'
        return
    for text in (run.source_text, run.target_text):
        if (text.unknown, text.bos, text.eos) != (0, 1, 2):
            yield "a vocabulary whose symbols are not the tokens 0, 1 and 2"
    attention = model.attention
    head = model.model_dim // attention.num_heads
    if model.norm == "none":
        yield 'model.norm = "none": its layers are normalised'
    if not model.residual:
        yield "model.residual = false: its layers have residual connections"
    if not model.attend_unknown:
        yield "model.attend_unknown = false: it attends to all tokens"
    if model.positions.combine != "add":
        yield 'model.positions.combine = "concatenate": it adds positions'
    if attention.key_width not in (None, head) or attention.value_width not in (None, head):
        yield "model.attention.key_width or value_width: its heads are model_dim / num_heads wide"
    if not attention.scaled:
        yield "model.attention.scaled = false: it scales the scores of attention"
    if not attention.whole_input:
        yield "model.attention.whole_input = false: its heads read the whole input"
    if recipe.data.moses:
        yield "data.moses = true: it does not prepare text as Moses does"
    if recipe.text.lossless:
        yield "text.lossless = true: it cuts text without the rules for spaces"
    if recipe.text.normalization == "nfc":
        yield 'text.normalization = "nfc": its SentencePiece models cannot compose characters'
