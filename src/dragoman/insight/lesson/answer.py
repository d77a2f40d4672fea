"""The content of a lesson, as the page and the file ``lesson.html`` get it. All numbers are those
of the run; texts for readers are written by the page, in its language.

Shapes: L layers, H heads, S source tokens, T output tokens with the end symbol, K width of a head.
Layers, heads, words and tokens count from 0.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from dragoman.search.hypothesis import ContinuationRecord

Matrix = list[list[float]]
Weights = list[list[Matrix]]
"""The attention weights of all layers and heads."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class LessonSentence(_Part):
    """A sentence, its translation, and where each head looked."""

    text: str
    """The sentence that the run read."""
    tokens: list[str]
    """The S tokens of the sentence as the vocabulary writes them, with the end symbol."""
    words: list[int]
    """The number of the word that each token belongs to."""
    output: str
    """The translation that the plain model writes."""
    is_cut: bool
    """True if the run did not end the translation, and it was cut."""
    output_tokens: list[str]
    """The T tokens of the translation, with the end symbol."""
    output_words: list[int]
    """The number of the word that each of these tokens belongs to."""
    probabilities: list[float]
    """(T,): the probability of each token of the translation, given the tokens before it."""
    served: str | None = None
    """The translation by the faster model with rounded numbers that serves the run. Absent if it is
    the same, and if the translation was cut."""
    reference: str | None = None
    """The translation that the test set expects. Absent if there is none."""
    place: int
    """The token of the translation that the lesson is about."""
    encoder: Weights
    """(L, H, S, S): the self-attention of the encoder."""
    decoder: Weights
    """(L, H, T, T): the self-attention of the decoder. Its columns are the tokens that were read,
    beginning with the start symbol."""
    cross: Weights
    """(L, H, T, S): the attention of the decoder to the source."""


class LessonModel(_Part):
    """The sizes and settings of the run, from its recipe."""

    name: str
    """The name of the run that the lesson is about."""
    source: str
    """The code of the source language."""
    target: str
    """The code of the target language."""
    sizes: dict[str, int | str]
    """The sizes under their names in recipes: `encoder_layers`, `decoder_layers`, `heads`,
    `model_dim`, `ffn_dim`, `key_width` and `norm`."""
    embedding_scale: float
    """The factor of the embeddings: √d_model, or 1."""
    scaled: bool
    """True if scores are divided by √d_k."""
    positions: str
    """The kind of the positional encoding."""
    source_vocabulary: int
    """The number of tokens in the source vocabulary."""
    target_vocabulary: int
    """The number of tokens in the target vocabulary (V)."""
    parameters: int
    """The number of all parameters of the model."""
    label_smoothing: float
    """The label smoothing of the training (ε)."""
    updates: int
    """The number of updates of the training; 0 if it was not recorded."""
    beam: int
    """The number of hypotheses that the search keeps."""
    length_penalty: float
    """The exponent of the length penalty (α)."""


class Cut(_Part):
    """The way from a word to its tokens."""

    word: str
    """The word as the vocabulary gets it: that of the sentence, or of what Moses makes of it."""
    steps: list[list[str]]
    """The symbols of the word after each merge, from its characters to its tokens. For a vocabulary
    without merges, only its characters and its tokens."""
    ids: list[int]
    """The numbers of its tokens in the vocabulary."""
    unknown: int
    """The number of these tokens that stand for characters that the vocabulary does not know."""


class Swap(_Part):
    """The sentence with two of its words exchanged."""

    words: tuple[int, int]
    """The numbers of the two words."""
    text: str
    """The sentence with the two words exchanged."""
    output: str
    """The translation of the changed sentence, with positions."""
    without: str
    """Its translation if the encoder gets no positions."""
    difference: float
    """Without positions, the largest difference between the encoder's row of a token and that of
    the same token in the original sentence, relative to the size of the latter."""


class PositionStep(_Part):
    """The positions of the sentence, and what happens without them."""

    encodings: dict[str, Matrix]
    """The first numbers of each row that an encoding gives to the S positions, by its name."""
    without: str
    """The translation of the sentence if the encoder gets no positions."""
    swaps: list[Swap]
    """The sentence with each pair of words exchanged."""


class OpenedHeads(_Part):
    """The computation of one row of attention by all heads of a layer."""

    layer: int
    """The layer to which these heads belong."""
    row: int
    """The number of the token that attends."""
    scale: float
    """The scale of the products: 1 / √d_k, or 1."""
    queries: Matrix
    """(H, K): the query of each head."""
    keys: list[Matrix]
    """(H, S, K): the keys of each head."""
    values: list[Matrix]
    """(H, S, K): the values of each head."""
    products: Matrix
    """(H, S): the products q · k."""
    weights: Matrix
    """(H, S): the attention weights of each head."""
    outputs: Matrix
    """(H, K): the sum of the weighted values of each head."""
    adds: Matrix
    """(H, S): the size (root mean square) of weight × v W^O, which a token adds through a head."""


class Change(_Part):
    """The translation after a change to the model."""

    layer: int | None = None
    """The encoder layer that is switched off, with all its heads or with ``head`` alone."""
    head: int | None = None
    """The head that is switched off. Absent: all heads of the layer."""
    hidden: int | None = None
    """The source word that is hidden. Absent with ``layer``; if both are absent, all heads of the
    encoder are switched off."""
    output: str
    """The translation that the run writes under the change."""
    probability: float
    """The probability of the token ``place`` of the original translation, under the change, given
    the tokens before it."""
    best: str
    """The token that is then the most probable one, as the vocabulary writes it."""


class LessonSublayer(_Part):
    """The sizes (root mean squares) of the rows around one sub-layer."""

    side: str
    """The stack of the sub-layer: encoder or decoder."""
    layer: int
    """The layer to which the sub-layer belongs."""
    kind: str
    """The kind of the sub-layer: self-attention, cross-attention or feed-forward."""
    stream: list[float]
    """The size of the input of each token."""
    added: list[float]
    """The size of what the sub-layer adds to each token."""
    after: list[float]
    """The size of each token's row that goes on to the next sub-layer."""


class Forced(_Part):
    """A step of teacher forcing: the decoder reads the right tokens and guesses the next one."""

    wanted: str
    """The token that is right at this step."""
    probability: float
    """The probability of the right token, from 0 to 1."""
    best: str
    """The token that the run finds most probable."""


class DecoderStep(_Part):
    """The mask of the decoder, and teacher forcing beside generating."""

    unmasked: list[Matrix]
    """(H, T, T): the weights of the first layer's heads without the mask."""
    forced: list[Forced]
    """The steps of teacher forcing with the reference, or with the run's own translation."""
    is_reference: bool
    """True if these are the steps of the reference."""
    mistake: str | None = None
    """The wrong token that the run is made to write. Absent at the end symbol."""
    after_mistake: str | None = None
    """The translation that the run then writes. Absent without ``mistake``."""


class Ranked(_Part):
    """A finished hypothesis of the beam."""

    output: str
    """The text of the hypothesis, as people read it."""
    length: int
    """The number of its tokens, with the end symbol."""
    log_probability: float
    """The log-probability of the hypothesis, in nats."""
    scores: list[float]
    """Its score for each value of ``alphas``."""


class NextStep(_Part):
    """The choice of the token ``place``, and the search."""

    candidates: list[str]
    """The most probable tokens as the vocabulary writes them, best first."""
    temperatures: list[float]
    """Some temperatures T, by which the logits are divided."""
    probabilities: Matrix
    """The probabilities of the candidates at each temperature."""
    wanted: float
    """The probability that label smoothing asks for the right token: 1 - ε + ε / V."""
    alphas: list[float]
    """The values of α with which hypotheses are scored."""
    hypotheses: list[Ranked]
    """The finished hypotheses of the beam, the most probable first."""
    beam: list[list[ContinuationRecord]]
    """The candidates at each step of the search, as in `/v1/look`."""
    pieces: dict[int, str]
    """The tokens of ``beam`` as the vocabulary writes them."""
    chosen: list[int]
    """The tokens of the translation, as numbers in the vocabulary."""


class Moment(_Part):
    """The run at an earlier update, from its snapshot."""

    update: int
    """The update after which the snapshot was saved."""
    output: str
    """The translation of the sentence at this update."""
    probability: float
    """The probability of the token ``place`` of the final translation, given the tokens before
    it."""
    best: str
    """The token that is then the most probable one, as the vocabulary writes it."""


class Heard(_Part):
    """A sentence of the development set, as a validation translated it."""

    update: int
    """The update after which the validation ran."""
    source: str
    """The sentence of the development set, in the source language."""
    output: str
    """The translation that the run wrote at this update."""
    reference: str
    """The translation that the data expects."""


class LearningStep(_Part):
    """The training of the run, as far as it was recorded."""

    training: list[tuple[int, float]]
    """Some updates with the loss on the training data, in nats per token."""
    development: list[tuple[int, float]]
    """The updates of the validations with the loss on the development data."""
    samples: list[Heard]
    """Samples of the validations, the earliest first."""
    moments: list[Moment]
    """The run at its snapshots, the earliest first. Empty if none are kept."""


class Beside(_Part):
    """Another run, of another family of models, while it learned."""

    name: str
    """The name of the other run."""
    family: str
    """The family of its model, as recipes call it: `recurrent` or `convolutional`."""
    outputs: list[tuple[int, str]]
    """Some updates with the translation of the sentence; the last is that of the finished run."""


class Lesson(_Part):
    """The lesson about one run and one sentence."""

    model: LessonModel
    """The run that the lesson is about."""
    is_own: bool
    """True if the sentence is one of the run's own test data, because the run does not read
    English."""
    sentence: LessonSentence
    """The sentence of the lesson, with its translation."""
    other: LessonSentence | None = None
    """A sentence that differs in one word, which decides what a pronoun stands for. Absent if none
    is known."""
    focus: int
    """The token of the sentence that the lesson is about, such as that of "it"."""
    deciding: int | None = None
    """The word in which the two sentences differ. Absent without ``other``."""
    encoder: tuple[int, int]
    """The layer and the number of the encoder head whose removal makes the token
    ``place`` least probable."""
    cross: tuple[int, int]
    """The layer and the number of the cross-attention head whose removal makes the token
    ``place`` least probable."""
    pieces: list[Cut]
    """Step 1: the words and their tokens."""
    positions: PositionStep
    """Step 2: positions, and orders of the words."""
    attention: OpenedHeads
    """Steps 3 and 4: the token ``focus`` in the layer of ``encoder``."""
    changes: list[Change]
    """Steps 5 and 8: the sentence with heads switched off and with words hidden."""
    other_changes: list[Change]
    """The changes of ``changes`` for ``other``. Empty without it."""
    sublayers: list[LessonSublayer]
    """Step 6, in the order of computing."""
    decoding: DecoderStep
    """Step 7: the mask of the decoder."""
    memory: OpenedHeads
    """Step 8: the token ``place`` in the layer of ``cross``."""
    next: NextStep
    """Step 9: the choice of the next token."""
    learning: LearningStep
    """Step 10: the training of the run."""
    beside: list[Beside] = []
    """Step 10: runs of the server that translate between the same languages and are no
    Transformers, one of each family."""
