"""How well a tagger tags while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from dragoman.data.files.pair import Pair
from dragoman.data.labelled import TaggedBatch, WordCutter, tagged_batch
from dragoman.forms.tags import tags_of
from dragoman.metrics.tagging import TagScores, has_spans
from dragoman.specs.tagging import words_and_tags
from dragoman.tasks.classification.labeller import in_batches
from dragoman.tasks.shared.examples import reading_of
from dragoman.tasks.shared.validation import TOKENS_AT_ONCE, Validation
from dragoman.tasks.tagging.tagger import underscored
from dragoman.training.losses.loss import smoothed_cross_entropy
from dragoman.training.records import Evaluation, Sample

_SAMPLES = 5


class TaggedValidation(Validation[TaggedBatch]):
    """``accuracy`` and ``loss``, and ``f1`` of spans where tags have them; some sentences are shown
    with the tags that were chosen. Of a long sentence the beginning is measured."""

    without = "without words"

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[TaggedBatch]]:
        kept = [(pair, *words_and_tags(pair, "dev")) for pair in pairs if pair.source.split()]
        pieces = WordCutter(self.forms.source)([words for _, words, _ in kept])
        reading = reading_of(self.recipe, self.forms)
        sizes = [sum(map(len, one)) for one in pieces]
        order = sorted(range(len(kept)), key=sizes.__getitem__)
        values = tags_of(self.forms).numbers([pair.target for pair, _, _ in kept])
        batches = []
        for part in in_batches([sizes[place] for place in order], reading, TOKENS_AT_ONCE):
            numbers = [order[place] for place in part]
            read, own = [pieces[n] for n in numbers], [values[n] for n in numbers]
            batches.append(tagged_batch(read, own, reading))
        return [kept[number][0] for number in order], batches

    def __call__(self, update: int) -> Evaluation:
        form = tags_of(self.forms)
        total, known, chosen = 0.0, 0, list[list[str]]()
        for batch in self.batches:
            batch = batch.to(self.device)
            rows = self.model.encode(batch.read.source).rows
            logits = self.model.project(batch.read.windows(rows))  # (W, K)
            has_one = batch.tags >= 0  # others training had not: no tag is right
            total += float(smoothed_cross_entropy(logits[has_one], batch.tags[has_one], 0.0)[1])
            known += int(has_one.sum())
            names = iter(form.shown(logits.argmax(dim=-1).tolist()))
            chosen += [list(islice(names, count)) for count in batch.read.counts]
        words = [pair.source.split() for pair in self.pairs]
        true = [
            pair.target.split()[: len(found)]
            for pair, found in zip(self.pairs, chosen, strict=True)
        ]
        scores = TagScores.of(
            true, chosen, [[True] * len(one) for one in true], has_spans(form.counts)
        ).figures()
        samples = tuple(
            Sample(
                self.pairs[one].source,
                underscored(words[one][: len(true[one])], true[one]),
                underscored(words[one][: len(true[one])], chosen[one]),
            )
            for one in self.spread(_SAMPLES)
        )
        kept: dict[str, float] = {
            name: scores[name] for name in ("accuracy", "f1") if name in scores
        }
        if known:  # else no tag of dev has a probability
            kept["loss"] = total / known
        return Evaluation(kept, samples)
