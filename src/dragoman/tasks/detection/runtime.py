"""The specification and the runtime of detection: a model reads a picture and writes boxes around
what is in it. The runtime has what trains, evaluates and predicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dragoman.base.errors import DataError
from dragoman.base.measure import LOSS, percent
from dragoman.base.task import Side
from dragoman.forms.boxes import PER_BOX, BoxForm, BoxSymbols, Read, scene_of
from dragoman.forms.form import Form, Pair
from dragoman.forms.sides import Forms
from dragoman.models.settings import ModelSettings, TransformerSettings
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import Sections
from dragoman.runs.recipe.spec import Examples, Spec
from dragoman.sources.picture.form import PictureSource
from dragoman.sources.shared.rows import input_of
from dragoman.tasks.shared.progress_made import MIN_ANSWERS
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime

if TYPE_CHECKING:
    from dragoman.models.interface import Network

BEGUN_AP50 = 0.1
"""The AP50 below which hardly any box is in the right place."""


@dataclass(frozen=True)
class DetectionSpec(Spec):
    """The task of a detector, which reads pictures. A search writes boxes as symbols of places and
    labels."""

    sections: ClassVar[frozenset[str]] = frozenset({"search", "boxes"})
    target_file: ClassVar[str] = "target.json"
    only_format: ClassVar[tuple[str, str]] = ("coco", "boxes in COCO's JSON")
    search_rules: ClassVar[str] = "boxes have their own rules"
    never_generated: ClassVar[str] = "boxes"
    reads_rows: ClassVar[bool] = True
    fixed_pictures: ClassVar[bool] = True

    def check_source(self, recipe: Sections) -> None:
        if not recipe.source.patches:
            raise ValueError(
                f'source.kind = "{recipe.source.kind}" has no places for boxes, but a '
                f'{self.called} reads pictures: set source.kind = "picture"'
            )
        super().check_source(recipe)

    def check_rest(self, recipe: Sections) -> None:
        if recipe.boxes.kind == "set" and recipe.model.kind != "transformer":
            raise ValueError(
                'boxes.kind = "set" needs layers that see all queries at once, but model.kind = '
                f'"{recipe.model.kind}" has none: set model.kind = "transformer"'
            )
        longest, wanted = recipe.model.longest, PER_BOX * recipe.boxes.most + 1
        room = recipe.plan.max_target if longest is None else min(longest, recipe.plan.max_target)
        if room < wanted:
            raise ValueError(
                f"boxes.most = {recipe.boxes.most} takes {wanted:,} symbols, but the model can "
                f"learn at most {room:,}. Raise plan.max_target (and model.positions.maximum, if "
                "it is lower), or set fewer boxes"
            )

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        return Forms(given["source"], BoxForm(BoxSymbols.load(folder / self.target_file)))

    def learn_target(self, recipe: Sections, examples: Examples, folder: Path) -> list[str]:
        source = PictureSource.of(recipe.source)
        read = Read(source.height, source.width)
        scenes = (scene_of(pair.target) for _, pair in examples())
        symbols = BoxSymbols.learn(scenes, recipe.boxes, read)
        _check_count(examples, symbols)
        symbols.save(folder / self.target_file)
        shown = ", ".join(symbols.labels[:8])
        more = f" and {len(symbols.labels) - 8:,} more" if len(symbols.labels) > 8 else ""
        return [f"{len(symbols.labels):,} categories: {shown}{more}"]

    def check_target(self, recipe: Sections, examples: Examples, learned: Forms, run: Path) -> None:
        symbols = learned.boxes.symbols
        for name, pair in examples():
            label = symbols.unknown_label(scene_of(pair.target))
            if label is not None:
                raise DataError(
                    f"{name}, image {pair.line}: {label[:60]!r} is not a category of {run}, which "
                    f"has {', '.join(symbols.labels[:8])}. Remove these boxes, or train a new run"
                )
        if symbols.kind != recipe.boxes.kind:
            raise DataError(
                f"{run} was trained with boxes.kind = {symbols.kind}, and its weights do not fit "
                f"{recipe.boxes.kind}. Keep boxes.kind, or train without --from"
            )
        _check_count(examples, symbols)

    def check_held(
        self, recipe: Sections, held: Mapping[str, Sequence[Pair]], learned: Forms
    ) -> list[str]:
        symbols, said = learned.boxes.symbols, []
        for side, pairs in held.items():
            labels = [symbols.unknown_label(scene_of(pair.target)) for pair in pairs]
            if unknown := [label for label in labels if label is not None]:
                said.append(
                    f"warning: {unknown[0]!r} is a category of {side} that is not in training. "
                    "Its boxes cannot be found and lower the scores"
                )
        return said

    def new_network(self, settings: ModelSettings, forms: Forms) -> Network:
        if forms.boxes.symbols.kind == "tokens":
            return super().new_network(settings, forms)
        from dragoman.tasks.detection.head import SetPredictor

        assert isinstance(settings, TransformerSettings)
        return SetPredictor(settings, input_of(forms.source), forms.boxes.symbols)


def _check_count(examples: Examples, symbols: BoxSymbols) -> None:
    """Raise ``DataError`` for a picture with more boxes than the model can write."""
    for name, pair in examples():
        count = len(scene_of(pair.target).single)
        if count > symbols.most:
            raise DataError(
                f"{name}, image {pair.line}: {Path(pair.source).name} has {count:,} boxes, but at "
                f"most {symbols.most:,} are allowed in a picture. Set boxes.most={count}"
            )


DETECTION = DetectionSpec(
    name="detection",
    called="detector",
    texts=(),
    writes=True,
    noun="pictures",
    counted="target tokens",
    metrics={
        "ap50": percent("AP50", share=True),
        "ap": percent("AP", share=True),
        "loss": LOSS,
    },
    finished={
        "ap_s": percent("AP (small)", share=True),
        "ap_m": percent("AP (medium)", share=True),
        "ap_l": percent("AP (large)", share=True),
    },
    evaluation_options=("beam", "precision", "output"),
    verbs=(("detect", "FILES"),),
    hub_tag="object-detection",
    limits=(
        "It finds only the categories that it was trained on, and at most boxes.most boxes.",
        "It does not see what is cut off when a picture is resized.",
    ),
)


class DetectionRuntime(Runtime):
    """Detection: the model reads a picture and writes boxes around the objects in it."""

    spec: ClassVar[Spec] = DETECTION
    begun: ClassVar[tuple[str, float]] = ("ap50", BEGUN_AP50)
    test_file: ClassVar[str] = "test.json"
    counts: ClassVar[str] = "categories of boxes"
    written: ClassVar[str] = "symbols of boxes"

    def builders(self) -> Builders:
        from dragoman.tasks.detection.sizes import DetectionBuilder

        return (DetectionBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.detection.detector import Detector
        from dragoman.tasks.detection.evaluation import DetectionEvaluation, DetectionValidation
        from dragoman.tasks.detection.learning import PicturesWithBoxes, objective_of

        return Parts(
            PicturesWithBoxes, objective_of, DetectionValidation, DetectionEvaluation(), Detector
        )

    def count_target(self, counts: Counter[str], pair: Pair) -> None:
        counts.update(box.label for box in scene_of(pair.target).single)

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        """Return the scores of a guess that gives each picture the true boxes of the next
        picture."""
        from dragoman.tasks.detection.metrics import ScoredBox, average_precision

        if len(pairs) < MIN_ANSWERS:
            return {}
        boxes = [scene_of(pair.target).boxes for pair in pairs]
        guesses = [[ScoredBox(box, 1.0) for box in some] for some in (*boxes[1:], boxes[0])]
        scores = average_precision(boxes, guesses).scores
        return {name: scores[name] for name in ("ap50", "ap") if name in scores}
