"""A tagging head: the mean of the rows of a word's tokens, and a linear layer over the word and its
two neighbours.

    m_w = mean_{p of w} x_p                     x (P, D) the rows of the last layer
    logits_w = W [m_{w-1}; m_w; m_{w+1}] + b    zeros before and after a sentence

Devlin et al. (2019, §5.3) read the row of a word's first token. The mean suits all kinds of stacks:
an LSTM or a decoder runs from left to right, so the first row contains nothing of the word's
ending, and endings say most about new words. The neighbours (the window of Collobert et al., 2011,
§3.3.1) show such a stack the next word, and they show any stack which rows are near, which it would
otherwise have to learn.

Shapes: P packed rows, W words, D width, K tags.
"""

from __future__ import annotations

from dragoman.models.catalogue.classifier import Classifier
from dragoman.models.catalogue.networks import new_network
from dragoman.models.interface import Memory, Network, writing
from dragoman.models.settings import ModelSettings
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import PlainLinear


class WordTagger(Classifier):
    """A network of one stack, of any kind, with a tagging head.

    ``encode`` returns the rows of all tokens. ``data.labelled.WordRows`` turns them into the rows
    of words (W, 3 D), and ``project`` maps these to logits (W, K).
    """

    def __init__(self, body: Network, labels: int) -> None:
        super().__init__(body, labels)
        self.head = PlainLinear(3 * body.settings.model_dim, labels)

    def encode(self, source: Sequences) -> Memory:
        memory = self.body.encode(source)
        if self.settings.reads:
            return memory
        # The source is fed to the decoder as if the model had written it.
        return Memory(writing(self.body).decode(source, memory), source.layout)


def new_tagger(settings: ModelSettings, vocabulary: int, tags: int) -> WordTagger:
    """Make a tagger with random weights from torch's generator."""
    return WordTagger(new_network(settings, vocabulary, vocabulary), tags)
