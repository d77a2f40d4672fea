"""The contribution of each word of a text to its label, by a gradient and by attention.

*Gradient times input* (Shrikumar et al., 2017): for the input e_i of the first layer at each token,
its position included, e_i · ∂ log P(label) / ∂ e_i, the change of the label's log-probability for a
small step along e_i. *Attention*: how much all rows of the last layer look at a token, on average
over rows and heads. They answer different questions and often disagree: attention shows where
values were taken from, but not their effect (Jain and Wallace, 2019); a gradient shows the effect
of small changes, but not of leaving a word out. Neither is a reason.

Shapes: P tokens that are read, D width.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from dragoman.base.wording import enough
from dragoman.forms.form import Form
from dragoman.models.interface import Network
from dragoman.nn.probes import Probe
from dragoman.pictures.labels import plain_table
from dragoman.tasks.classification.labeller import Labeller

WARNING = (
    "Gradient (nats, + speaks for the label) and attention measure different things and often "
    "disagree; neither is a reason."
)


@dataclass(frozen=True)
class ReasonWord:
    """One word, and the sums over its tokens."""

    text: str
    number: int
    """The place of the word in the text, from 0."""
    gradient: float
    """The sum in nats: positive if the word speaks for the label."""
    attention: float | None
    """The share of the attention, 0 to 1; None if the model has no attention."""


@dataclass(frozen=True)
class Reasons:
    """The contribution of each word of a text to its label."""

    label: str
    probability: float
    words: tuple[ReasonWord, ...]
    """The words that the model read, without special symbols."""


def table(why: Reasons) -> str:
    """A table in plain text with a row for each word."""
    has_attention = any(word.attention is not None for word in why.words)
    header = ["word", "gradient", *(["attention %"] if has_attention else [])]
    digits = enough(max((abs(word.gradient) for word in why.words), default=0.0), 3)
    rows: list[list[str | int | float]] = []
    for word in why.words:
        rows.append([word.text, f"{word.gradient:+z.{digits}f}"])
        if word.attention is not None:
            rows[-1].append(f"{100 * word.attention:.1f}")
    return plain_table(header, rows)


def reasons(labeller: Labeller, text: str) -> Reasons:
    """Explain the most probable label of a text."""
    form, network = labeller.engine.source, labeller.network
    text = labeller.beginning(text)
    tokens, numbers = _tokens_and_words(form, text)
    source = labeller.reading.texts([np.array(tokens, np.int32)])
    read = source.layout.total - 1  # without the special symbol
    begin = 1 if labeller.reading.before else 0
    leaf = _Leaf()
    with leaf, torch.enable_grad():
        scores = torch.log_softmax(network.project(network.encode(source).rows)[0].double(), 0)
        chosen = int(scores.argmax())
        (gradient,) = torch.autograd.grad(scores[chosen], leaf.rows)
    scores = scores.detach()
    pull = (gradient.double() * leaf.rows.detach().double()).sum(dim=1)  # (P,)
    looked = _mean_attention(network, leaf)
    words = []
    plain_words = text.split()
    for number in dict.fromkeys(numbers[:read]):
        own = [begin + place for place, at in enumerate(numbers[:read]) if at == number]
        attention = None if looked is None else float(looked[own].sum())
        words.append(ReasonWord(plain_words[number], number, float(pull[own].sum()), attention))
    return Reasons(labeller.labels.names[chosen], float(scores[chosen].exp()), tuple(words))


def _tokens_and_words(form: Form, text: str) -> tuple[list[int], list[int]]:
    """The tokens of a text, and for each token the number of its word.

    Words are tokenised one by one, which gives the same tokens: no token crosses a space. A
    vocabulary that keeps spaces (``text.lossless``) joins them to the next word.
    """
    (tokens,) = form.tokens([text])
    vocabulary = form.vocabulary
    if vocabulary is not None and vocabulary.settings.lossless:
        ends = [match.end() for match in re.finditer(r"\S+", text)]
        ends[-1:] = [len(text)]
        parts = form.tokens([text[begin:end] for begin, end in pairwise([0, *ends])])
        alone = [token for part in parts for token in part]
        numbers = [number for number, part in enumerate(parts) for _ in part]
    else:
        ((alone, numbers),) = form.tokens_of_words([text])
    if alone != tokens:  # Moses cuts single words differently: here a space begins a word
        begins = [piece.startswith("\u2581") for piece in form.names_of(tokens)]
        last = len(text.split()) - 1
        numbers = [min(max(0, sum(begins[: at + 1]) - 1), last) for at in range(len(tokens))]
    return tokens, numbers


def _mean_attention(network: Network, probe: Probe) -> Tensor | None:
    """(P,) the attention of the last layer to each token; None if the model has no attention."""
    if not network.attentions:
        return None
    weights = probe.attention[network.attentions[-1].name][0]  # (H, P, P)
    return weights.double().mean(dim=(0, 1))


class _Leaf(Probe):
    """A probe that keeps the input of the first layer for differentiation."""

    rows: Tensor
    """(P, D) the rows of the text. A decoder without a source embeds an empty memory first."""

    def take_embedded(self, rows: Tensor) -> Tensor:
        self.rows = rows.detach().requires_grad_()
        return self.rows
