"""Tunes a run on new text without forgetting the old: blends its weights, and measures the run on
both texts, before and after tuning.

A tuned run that keeps old text (``data.old``) keeps the weights that it began with, too. They are
blended with the tuned ones by w = (1 - α) · old + α · tuned, one α for all weights (Wortsman et
al., 2022, "Robust fine-tuning of zero-shot models").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from dragoman.base.atomic import write_text
from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.metrics.significance import compare_systems
from dragoman.models.interface import Network
from dragoman.nn.linear import refresh
from dragoman.runs.corpora import moses_of, plain_pairs
from dragoman.runs.evaluation_set import EvaluationSet
from dragoman.runs.lineage import warn_of_learned
from dragoman.runs.prepare import Say, side_pairs
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import TUNED, TUNING, WEIGHTS, Run, load_forms
from dragoman.tasks import catalogue
from dragoman.tasks.shared.evaluation import EvaluationRequest, SearchReport
from dragoman.training.weights import average_weights, open_weights, save_weights

ALPHAS = tuple(step / 10 for step in range(11))
"""The shares of the tuned weights that are tried."""
FORGOTTEN = 0.015
"""The share by which the loss on the old text may rise. docs/experiments/tuning-keeps.md shows how
much BLEU this cost."""
_ALPHA = "alpha"
"""Among the metadata of blended weights: the share of the tuned ones."""


def blend(
    recipe: Recipe, folder: Path, model: Network, forms: Forms, device: torch.device, say: Say
) -> None:
    """Blend the weights of a tuned run with those that it began with, unless they are blended
    already, and say how.

    The α is that with the lowest loss on the dev set of the new text, among those whose loss on the
    dev set of the old text is at most ``FORGOTTEN`` above that of the old weights. ``model`` is
    filled with other weights.
    """
    path, old = folder / WEIGHTS, recipe.of_old_text
    with open_weights(path) as file:
        metadata = dict(file.metadata)
    if _ALPHA in metadata:
        return
    assert old is not None, "the recipe is checked"
    dev_sets = [side_pairs(text_recipe, "dev") for text_recipe in (recipe, old)]
    if not all(dev_sets):
        say("warning: the weights are not blended, because one of the dev sets is empty")
        return
    losses: dict[float, list[float]] = {}
    for alpha in ALPHAS:
        model.load_state_dict(weights_between(folder / TUNED, path, alpha))
        refresh(model)
        losses[alpha] = [loss_on(recipe, model, forms, pairs, device) for pairs in dev_sets]
    most = (1 + FORGOTTEN) * losses[0.0][1]
    best = min((losses[alpha][0], alpha) for alpha in ALPHAS if losses[alpha][1] <= most)[1]
    # "updates" tells the trainer that these weights were not validated, if the run is resumed.
    blend = {"weights": f"blend {best:g}", _ALPHA: f"{best:g}", "updates": metadata["update"]}
    save_weights(path, weights_between(folder / TUNED, path, best), blend)
    say(
        f"blended: {best:g} of the tuned weights and {1 - best:g} of the old ones (dev loss of the "
        f"new text {losses[best][0]:.3f}, of the old {losses[best][1]:.3f})"
    )


def weights_between(old: Path, tuned: Path, alpha: float) -> dict[str, torch.Tensor]:
    """The weights (1 - α) · old + α · tuned of two files. Errors: ``RunError``."""
    return average_weights([old, tuned], [1 - alpha, alpha])


def loss_on(
    recipe: Recipe, model: Network, forms: Forms, pairs: Sequence[Pair], device: torch.device
) -> float:
    """The mean loss of ``model`` in nats per token of the targets of ``pairs``, which are prepared
    by Moses if the recipe says so."""
    # The validation also searches, which takes most of its time: here for one sentence alone.
    briefly = recipe.evaluation.model_copy(update={"dev_sentences": 1})
    recipe = recipe.model_copy(update={"evaluation": briefly})
    validation = catalogue.runtime_of(recipe.spec).parts().validation
    with reading(model):
        loss: float = validation(model, recipe, forms, pairs, device)(0).scores["loss"]
    return loss


@contextmanager
def reading(model: Network) -> Iterator[None]:
    """Use a model without learning: in evaluation mode and without gradients."""
    training = model.training
    model.eval()
    with torch.no_grad():
        yield
    model.train(training)


def measure_tuning(run: Run, after: SearchReport) -> None:
    """Score a tuned run, and the run that it began as, on the test sets of the new and the old
    text, and write the scores into its ``tuning.json``. ``after``: its report on the new one.

    Errors: ``RunError`` and ``DataError`` for weights or text that are not there any more.
    """
    old = run.recipe.of_old_text
    assert old is not None, "only for a run that keeps old text"
    before = type(run)(run.folder, run.recipe, TUNED)
    pairs = plain_pairs(old, "test")
    warn_of_learned(run, pairs)
    name = "the held-out old test set" if old.data.test is None else old.data.test.name
    of_old = _report(run, EvaluationSet(pairs, [[pair.target for pair in pairs]], name))
    domains = [
        _domain(domain, before, run, report)
        for domain, report in (("new", after), ("old", of_old))
        if report.pairs
    ]
    content = {"domains": domains, "weights": run.weights_summary}
    write_text(run.folder / TUNING, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _domain(name: str, before: Run, run: Run, after: SearchReport) -> dict[str, Any]:
    """One domain of ``tuning.json``: the loss and BLEU of both runs, and whether they differ."""
    references = [[pair.target for pair in after.pairs]]
    began = _report(before, EvaluationSet(after.pairs, references, after.test))
    systems = {"before": [began.outputs()], "after": [after.outputs()]}
    language = run.recipe.languages.target
    comparison = compare_systems(systems, references, language, metrics=["BLEU"])
    (bleu,), forms = comparison.comparisons, load_forms(run.recipe, run.folder, prepared=True)
    prepare = moses_of(run.recipe) or (lambda pair: pair)
    pairs = list(map(prepare, after.pairs))
    cpu = torch.device("cpu")
    losses = [loss_on(run.recipe, side.model(), forms, pairs, cpu) for side in (before, run)]
    return {
        "name": name,
        "test": after.test,
        "sentences": len(pairs),
        "loss": losses,
        "bleu": [score.value for score in bleu.scores],
        "p_value": bleu.scores[1].p_value,
        "method": comparison.method,
        "signature": bleu.signature,
    }


def _report(run: Run, examples: EvaluationSet) -> SearchReport:
    report: SearchReport = catalogue.runtime_of(run.task).evaluate.report(
        EvaluationRequest(run), examples
    )
    return report
