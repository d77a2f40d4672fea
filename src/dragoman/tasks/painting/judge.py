"""A judge of pictures: another run, which reads a picture and says what it shows.

    judge = dragoman.Judge("runs/captions")
    best, *others = painter.paint("a small red circle", count=8, sampling=draw, judge=judge)

It writes the caption of a picture, or it has a label for each caption. Of several pictures of a
caption, the best is the one of which the judge finds the caption the most probable (Ramesh et al.,
2021, "Zero-Shot Text-to-Image Generation", section 2.6, with a model of captions in the place of
CLIP).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dragoman.engine.settings import EngineSettings, TranslatorSettings
from dragoman.errors import RunError
from dragoman.forms.rows.idx import Bytes
from dragoman.forms.rows.settings import PictureSource
from dragoman.pictures.bitmaps import png_of
from dragoman.runs.run import Run
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.translation.translator import Translator


class Judge:
    """A finished run that reads pictures. Not for several threads at once."""

    def __init__(self, run: Run | str | Path, precision: str = "auto") -> None:
        """Errors: ``RunError``, also for a run that does not say what a picture shows."""
        self.run = run if isinstance(run, Run) else Run.open(run)
        task, source = self.run.task, self.run.recipe.source
        if task.name not in ("translation", "classification") or not isinstance(
            source, PictureSource
        ):
            raise RunError(
                f"{self.run.folder} is no judge of pictures: that is a run which reads pictures, "
                "and writes their captions or has them as labels"
            )
        self._reads: Translator | Labeller
        if task.name == "translation":
            settings = TranslatorSettings.model_validate({"precision": precision})
            self._reads = Translator(self.run, settings)
        else:
            self._reads = Labeller(self.run, EngineSettings(precision="fp32"))

    def captions(self, pictures: Sequence[Bytes]) -> list[str]:
        """What it says that each picture (H, W, C) shows."""
        with tempfile.TemporaryDirectory() as folder:
            files = _written(pictures, Path(folder))
            if isinstance(self._reads, Labeller):
                return [one.label for one in self._reads(files)]
            return [one.text for one in self._reads.stream(files)]

    def log_probabilities(self, pictures: Sequence[Bytes], captions: Sequence[str]) -> list[float]:
        """log P of a caption for each picture (H, W, C), in nats; of one that is no label, minus
        infinity. Errors: ``DataError`` for a caption that cannot be read."""
        with tempfile.TemporaryDirectory() as folder:
            files = _written(pictures, Path(folder))
            if not isinstance(self._reads, Labeller):
                scored = self._reads.score(zip(files, captions, strict=True))
                return [math.fsum(one.token_log_probabilities) for one in scored]
            labels = {name: number for number, name in enumerate(self._reads.labels.names)}
            return [
                float(one.log_probabilities[labels[caption]]) if caption in labels else -math.inf
                for one, caption in zip(self._reads(files), captions, strict=True)
            ]


def _written(pictures: Sequence[Bytes], folder: Path) -> list[str]:
    """The names of files with these pictures: what reads pictures reads files."""
    files = []
    for number, picture in enumerate(pictures):
        file = folder / f"{number}.png"
        file.write_bytes(png_of(picture))
        files.append(str(file))
    return files
