"""Everything that ``dragoman look`` shows of one output.

It shows the attention of every layer and head, what changes if words are hidden or heads are
switched off, the importance of heads, and the alignment of words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.errors import DataError, DragomanError
from dragoman.base.wording import decimals, plural
from dragoman.engine.alignment_head import AlignmentScores, HeadLinks
from dragoman.engine.predictor import Output, Predictor
from dragoman.insight.experiments import (
    Change,
    Importance,
    WhatIf,
    find_words,
    head_importance,
    name_heads,
    parse_heads,
    source_words,
    what_if,
)
from dragoman.insight.options import LookOptions
from dragoman.insight.panels import aer_panels, attention_panels, attention_table, importance_panels
from dragoman.insight.subject import Subject
from dragoman.metrics.alignment import read_gold
from dragoman.models.interface import Network
from dragoman.pictures.explorer import Exhibit, look_html
from dragoman.pictures.figure import DataTable
from dragoman.pictures.panels import heatmap_svg
from dragoman.pictures.records import (
    KINDS,
    AttentionKind,
    AttentionRecord,
    Heatmap,
    merged_to_words,
)
from dragoman.runs.run import Run


@dataclass(frozen=True)
class LookResult:
    """The result of ``dragoman look``, before it is printed."""

    name: str
    """The name of the run."""
    source: str
    """The input of the model; "" for a model that reads nothing."""
    output: Output
    record: AttentionRecord
    """The attention weights between words, or between pieces with ``LookOptions.pieces``. If the
    options change the model, these are the weights under the change."""
    heatmap: Heatmap
    """The weights of the selected layer and head."""
    kind: AttentionKind
    what_if: WhatIf | None
    summary: str
    """The change in words, such as "What if hidden: …"; "" without a change."""
    importance: Importance | None
    alignment: AlignmentScores | None
    lines: tuple[str, ...]
    """The findings as lines of text."""

    @property
    def doubt(self) -> str:
        """A line of text that compares two log-probabilities of the output that the unchanged model
        writes: that by the unchanged model, then that by the changed one. Empty if nothing but a
        prefix is changed."""
        if self.what_if is None or not self.what_if.change.reaches_in:
            return ""  # a prefix changes the output, not the probabilities
        return (
            f"log P of the first output: {decimals(self.what_if.before_log_probability, 2)}, "
            f"under the change {decimals(self.what_if.before_under_change, 2)}"
        )

    def as_text(self, kind: str) -> str:
        """Return the result as the text of a file. ``kind``: ``.html`` for the whole page, ``.svg``
        for the picture of the selected layer and head, ``.csv`` for every weight."""
        if kind == ".svg":
            return heatmap_svg(self.heatmap)
        if kind == ".csv":
            tables = {name: attention_table(self.record, name) for name in KINDS}
            rows = [(name, *row) for name, table in tables.items() for row in table.rows]
            return DataTable(("attention", *tables[self.kind].header), rows).csv()
        changed = None
        if self.what_if is not None:
            before, after = self.what_if.before.text, self.what_if.after.text
            changed = self.summary, before, after, self.doubt
        text = "Each small picture is a head of a layer; then the mean of the last layer's heads."
        heads = [head for name in self.record.kinds for head in attention_panels(self.record, name)]
        exhibits: list[Exhibit] = [("Every head at a glance", text, heads)]
        if self.importance is not None:
            text = "By how much the loss of held-out references grows without each head."
            exhibits.append(("Which heads matter", text, importance_panels(self.importance)))
        if self.alignment is not None:
            text = "Alignment error rate of each head against the links that were given."
            exhibits.append(("Alignment", text, aer_panels(self.alignment)))
        return look_html(
            self.record,
            title=self.name,
            source=self.source,
            translation=(self.what_if.after if self.what_if else self.output).text,
            changed=changed,
            exhibits=exhibits,
        )


def look_at_sentence(run: Run, options: LookOptions) -> LookResult:
    """Examine ``options.sentence`` with a run. Errors: ``DragomanError`` for options that do not
    apply to this run or sentence, such as a layer that the model does not have."""
    if options.kind not in (*KINDS, None):
        raise DragomanError(f"--kind {options.kind}: use one of {', '.join(KINDS)}")
    if not options.sentence.strip():
        raise DragomanError("the sentence is empty. Give a sentence to look at")
    subject = Subject.open(run, options.sentence, looking=True)
    predictor = subject.predictor
    plain = subject.plain
    _refuse_without_meaning(run, predictor, options)
    of_rows = predictor.run.task.reads_files
    ids = [] if of_rows else predictor.ids_to_show(options.sentence)
    longest = predictor.engine.longest
    if len(ids) > longest:
        raise DragomanError(f"the sentence has more than {longest} tokens. Give a part of it")
    output = subject.output
    if options.target is not None:
        translator: Any = predictor  # every other run refuses a target
        (output,) = translator.score([(options.sentence, options.target)])
    names, _ = source_words(predictor, options.sentence)
    change = Change(
        find_words(names, options.hide), parse_heads(predictor, options.head_off), options.prefix
    )
    effect = None
    if change != Change():
        effect = what_if(plain, options.sentence, change)
    pieces = predictor.look(options.sentence, output.ids)
    shown = pieces
    if effect is not None:
        through = change.on(predictor, options.sentence).probe(record=True)
        shown = predictor.look(options.sentence, effect.after.ids, through)
    record = shown if options.pieces else merged_to_words(shown)
    kind = options.kind or _likeliest(record)
    layers = [a.name for a in predictor.plain.attentions_of(kind)]
    heatmap = _choose(record, kind, options, layers, change)
    if effect is not None:
        heatmap = replace(heatmap, title=f"{heatmap.title}, under the change")
    lines = list[str]()
    if options.target is None:
        lines += _own_lines(output, plain.own_output(options.sentence))
    if not of_rows:
        lines += _unknown_lines(predictor, ids)
    importance = None
    if options.importance:
        if not subject.pairs:
            raise DragomanError(
                f"{run.folder} has no held-out pairs to measure on. Evaluate it first: dragoman "
                f"evaluate {run.folder}"
            )
        importance = head_importance(predictor, subject.pairs)
        lines += _importance_lines(importance)
    scores = None
    if options.gold is not None:
        scores, alignment_lines = _align(options.gold, options.gold_base, pieces)
        lines += alignment_lines
    return LookResult(
        subject.name,
        options.sentence if predictor.reads else "",
        output,
        record,
        heatmap,
        kind,
        effect,
        _summary(change, names, predictor.plain),
        importance,
        scores,
        tuple(lines),
    )


def _own_lines(output: Output, own: Output) -> Iterator[str]:
    """Make a note if the run and its plain model write different texts. ``output``: the output of
    the run, which may be computed in a lower precision; ``own``: the output of the plain model in
    fp32."""
    if output.ids != own.ids:
        yield (
            "The run writes this text in a fast way that rounds numbers; the weights are those of "
            f"the plain model as it reads the text. Alone, the plain model writes: {own.text}"
        )


def _unknown_lines(predictor: Predictor[object], ids: Sequence[int]) -> Iterator[str]:
    """Make a note if some of the tokens ``ids`` of the text are unknown to the run's
    vocabulary."""
    given = predictor.run.source_text if predictor.reads else predictor.run.target_text
    unknown = list(ids).count(given.unknown)
    if unknown:
        yield (
            f"{plural(unknown, 'token')} of {len(ids)} {'is' if unknown == 1 else 'are'} unknown "
            "to the run's vocabulary; the model sees that a token is there, but not which."
        )


def _align(
    path: Path, base: int | None, pieces: AttentionRecord
) -> tuple[AlignmentScores, list[str]]:
    """Compare the attention of one sentence pair with the word links in the file ``path``. Return
    the alignment scores of each head, and lines of text that report them.

    ``base``: the number of the first word in the file; ``pieces``: the attention between pieces.
    Errors: ``DataError`` for a file of more than one line.
    """
    gold = read_gold(path, first=base)
    if len(gold) != 1:
        raise DataError(f"{path} has {plural(len(gold), 'line')}, but must have one")
    looked, words = HeadLinks.of_record(pieces), merged_to_words(pieces)
    scores = AlignmentScores.of([looked], gold)
    best = scores.best
    links = sorted(looked.by(best), key=lambda link: link[1])
    return scores, [
        (
            f"{scores.quality(best)}: {best}; an oracle, chosen with these same links. To choose "
            "on other pairs: dragoman align RUN FILES --gold LINKS"
        ),
        "  ".join(f"{words.source[s]}–{words.target[t]}" for s, t in links),
    ]


def _refuse_without_meaning(run: Run, predictor: Predictor[object], options: LookOptions) -> None:
    """Raise ``DragomanError`` for options that do not apply to this kind of run. A run that reads
    one text and writes another accepts all options."""
    if not predictor.reads:
        names = ["target", "hide", "prefix", "gold"]
        why = (
            "reads nothing before it writes, so only the given text is shown. Use --head-off, "
            "--kind, --layer and --head"
        )
    elif not predictor.run.task.writes:
        names = ["target", "prefix", "gold", "importance"]
        why = "writes no text. Use --hide, --head-off, --kind, --layer and --head"
    elif not predictor.run.task.writes_text:
        names = ["target", "prefix", "gold"]
        written = {"parsing": "the tree of what it reads", "painting": "codes of a picture"}
        why = (
            f"writes {written.get(predictor.run.task.name, 'symbols')}, not text. Use --hide, "
            "--head-off, --kind, --layer, --head and --importance"
        )
    elif predictor.run.task.reads_files:
        names = ["target", "prefix", "gold", "importance"]
        why = f"reads {predictor.run.task.noun}. Use --hide, --head-off, --kind, --layer and --head"
    else:
        return
    wrong = [f"--{name}" for name in names if getattr(options, name) not in (None, "", [], False)]
    if wrong:
        raise DragomanError(f"{', '.join(wrong)}: {run.folder} {why}")


def _likeliest(record: AttentionRecord) -> AttentionKind:
    """Return the kind of attention that is shown by default: the first of cross, decoder and
    encoder that ``record`` has."""
    has = record.kinds
    first: tuple[AttentionKind, ...] = ("cross", "decoder", "encoder")
    return next((kind for kind in first if kind in has), "cross")


def _choose(
    record: AttentionRecord,
    kind: AttentionKind,
    options: LookOptions,
    names: Sequence[str],
    change: Change,
) -> Heatmap:
    """Return the heatmap of the layer and head that ``options`` select. ``names``: the name of each
    layer's attention. Errors: ``DragomanError`` for an attention that the model does not have."""
    weights = record.weights(kind)
    if not len(weights):
        has = ", ".join(record.kinds) or "none"
        raise DragomanError(f"--kind {kind}: this model has no such attention. Use one of {has}")
    layers, heads = weights.shape[:2]
    layer = layers if options.layer is None else options.layer
    for given, most, what in ((layer, layers, "layers"), (options.head or 1, heads, "heads")):
        if given > most:
            raise DragomanError(f"there is no {what[:-1]} {given}: {kind} has {most} {what}")
    off = {head for name, head in change.heads_off if name == names[layer - 1]}
    head = None if options.head is None else options.head - 1
    return record.heatmap(kind, layer - 1, head, off=off)


def _summary(change: Change, names: tuple[str, ...], model: Network) -> str:
    parts = []
    if change.hidden:
        parts.append("hidden: " + ", ".join(f"“{names[word]}”" for word in change.hidden))
    if change.heads_off:
        parts.append("heads off: " + ", ".join(name_heads(model, change.heads_off)))
    if change.prefix:
        parts.append(f"it begins “{change.prefix}”")
    return "What if " + "; ".join(parts) if parts else ""


def _importance_lines(effects: Importance) -> Iterator[str]:
    yield f"Loss of {effects.sentences} held-out references: {effects.whole:.3f} nats per token."
    yield "It grows without one head, heads from left to right:"
    for kind in effects.without:
        for layer, grown in enumerate(effects.growth(kind)):
            heads = "  ".join(f"{value:+.3f}" for value in np.asarray(grown))
            yield f"  {kind:<8} layer {layer + 1}  {heads}"
