"""The messages of the API that describe one output of a run (its text, words, tokens and warnings),
and the requests and answers of ``/v1/look`` and the paths below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from dragoman.forms.form import Form
from dragoman.forms.shown_words import words_of
from dragoman.models.interface import Part
from dragoman.search import hypothesis as search
from dragoman.serving.http.messages import KeyedMessage, Message

Side = Literal["source", "target"]
Place = Annotated[int, Field(ge=0)]

MAX_PIECES = 50
"""The largest number of tokens of a word whose vectors are sent. The same number is in
``web/src/look/look.ts``."""


class DetectedLanguage(Message):
    """A language that was detected from a text."""

    confidence: float
    """The confidence in percent, from 0 to 100."""
    language: str
    """The code of the language, such as `en`."""


class TranslationWarning(Message):
    """A possible problem in the translation of a sentence."""

    code: Literal[
        "language", "unknown", "omitted", "coverage", "lost", "repeated", "cut_off", "length"
    ]
    """The kind of problem. `language`: the source is not in the run's source language. `unknown`: a
    word that did not occur in the training text. `omitted`: source words without a counterpart in
    the translation. `coverage`: the share of the source that the translation covers, given if words
    were omitted or the length is unusual. `lost`: a placeholder or address is missing from the
    translation. `repeated`: the translation repeats itself. `cut_off`: the translation was cut at
    the maximum length. `length`: the length is unusual for this source."""
    side: Literal["source", "target"]
    """The sentence that the warning is about: the source or its translation (target)."""
    begin: int
    """The position of the first character in that sentence, from 0, in Unicode code points."""
    end: int
    """The position after the last character, in Unicode code points."""
    text: str
    """The characters from `begin` to `end`."""
    languages: list[str] = Field(default=[])
    """For `language`: the languages that the source may be in. Empty if they cannot be
    recognised."""
    covered: float | None = None
    """For `coverage`: the share of the source words that are covered, from 0 to 1."""
    message: str
    """The warning as an English sentence."""


class Word(Message):
    """A word of a translation, or the punctuation between words."""

    before: str
    """The white space before the word. The `before` and `text` of all words in order, joined, give
    the translation."""
    text: str
    """The word without the white space around it."""
    probability: float
    """The probability of the word given the source and the words before it, from 0 to 1."""
    first: int
    """The number of the first token of the word, from 0."""
    count: int
    """The number of tokens of the word."""
    source: list[tuple[int, int]] | None = None
    """The positions of the source words that this word was translated from, by the model's
    attention: for each, the first character and the position after the last. Empty if it has no
    clear source. Present only with `warnings`."""


class Token(Message):
    """A token that the model chose in one step of the search."""

    id: int
    """The number of the token in the vocabulary."""
    piece: str
    """The token as the vocabulary writes it, with ▁ for a space."""
    log_probability: float
    """The log-probability of the token given the source and the tokens before it, in nats."""


class Hypothesis(Message):
    """A translation of one sentence, with its words."""

    text: str
    """The text of the translated sentence."""
    score: float
    """The log-probability divided by the length penalty. A higher score is better."""
    log_probability: float
    """The log-probability of all tokens, including the end symbol, in nats."""
    finished: bool
    """True if the model ended the sentence; false if it was cut at the maximum length."""
    words: list[Word]
    """The words of the text, in order."""
    tokens: list[Token]
    """The tokens of the text, in order."""
    warnings: list[TranslationWarning] | None = None
    """The possible problems of the best hypothesis. Without `warnings` in the request, only those
    with the code `lost`, if any. Absent for the other hypotheses."""


def texts_of(target: Form, hypotheses: Sequence[search.Hypothesis]) -> list[str]:
    """Decode the tokens of each hypothesis into text."""
    return target.raw([hypothesis.tokens for hypothesis in hypotheses])


def hypothesis_message(target: Form, hypothesis: search.Hypothesis, text: str) -> Hypothesis:
    """Convert a hypothesis, with its words and tokens, into a message. ``text`` is its decoded
    text."""
    tokens, values = hypothesis.tokens, hypothesis.token_log_probabilities
    pieces = target.names_of(tokens)
    words = words_of(text, pieces, values, spaced=target.spaced)
    return Hypothesis(
        text=text,
        score=hypothesis.score,
        log_probability=hypothesis.log_probability,
        finished=hypothesis.finished,
        words=[Word.model_validate(word, from_attributes=True) for word in words],
        tokens=[
            Token(id=token, piece=piece, log_probability=value)
            for token, piece, value in zip(tokens, pieces, values, strict=False)
        ],
    )


class Head(Message):
    """A head of an attention layer."""

    part: Part
    """The attention: `encoder` and `decoder` are self-attention, `cross` is the attention of the
    decoder to the encoder."""
    layer: int = Field(ge=0)
    """The number of the layer, from 0."""
    head: int = Field(ge=0)
    """The number of the head in its layer, from 0."""


class LookRequest(KeyedMessage):
    """A request to inspect the model on one sentence: `POST /v1/look` and `POST /v1/look/heads`.
    The sentence is translated as by `/v1/translate`, and the plain PyTorch model then reads both
    texts. With heads switched off or tokens hidden, that model also translates. Language models,
    masked models, classifiers, taggers and parsers read the text as a whole."""

    text: str
    """The text that the model reads."""
    sentence: int | None = Field(default=None, ge=0)
    """The number of the sentence to inspect, from 0, as `/v1/translate` splits the text. Default:
    the whole text as one sentence."""
    source: str = "auto"
    """The source language as a code, or `auto` to detect it."""
    target: str | None = None
    """The target language as a code. Required if there are several."""
    run: str | None = None
    """The name of the run. Default: a run for these languages."""
    beam: int | None = Field(default=None, ge=1)
    """The number of hypotheses kept at each step of the search. Default: the run's setting."""
    length_penalty: float | None = Field(default=None, ge=0, le=10)
    """The exponent of the length penalty; 0 switches it off. Default: the run's setting."""
    max_length: int | None = Field(default=None, ge=1, le=1000)
    """The maximum number of tokens in the translation. Default: the run's setting."""
    prefix_tokens: tuple[Place, ...] = Field(default=(), max_length=1000, fail_fast=True)
    """The first tokens of the output. For a run that reads no source, these tokens are used instead
    of `text`, and the model continues them until the output is as long as `text`."""
    given: tuple[Place, ...] = Field(default=(), max_length=1000, fail_fast=True)
    """The tokens of a complete output, without the end symbol. The model reads this output; there
    is no search."""
    heads_off: tuple[Head, ...] = Field(default=(), max_length=1000, fail_fast=True)
    """The heads whose output is set to zero."""
    hidden: tuple[Place, ...] = Field(default=(), max_length=1000, fail_fast=True)
    """The positions of source tokens, from 0, that no head may attend to."""
    compare: tuple[Place, ...] = Field(default=(), max_length=1000, fail_fast=True)
    """The tokens of another output, without the end symbol. Its log-probability is returned as
    `compared`."""
    attention: tuple[Part, ...] = Field(
        default=("encoder", "decoder", "cross"), max_length=3, fail_fast=True
    )
    """The attentions whose weights are returned. For long texts, leave the list empty and request
    single heads (`/v1/look/attention`)."""
    attention_within: int | None = Field(default=None, ge=0)
    """The maximum number of weights to return. If the request selects more, the answer has no
    weights. Default: a request for more weights than the server allows is refused."""
    maps: int = Field(default=0, ge=0, le=128)
    """The maximum number of rows and columns of a small map of each head. 0: no maps."""
    steps: bool = True
    """Return the candidates at each step of the search."""
    choices: int = Field(default=0, ge=0, le=20)
    """The number of most probable tokens to return for each position of the output."""


class AttentionRequest(LookRequest):
    """A request for the weights of a layer or head: `POST /v1/look/attention`. `part`, `layer`,
    `head` and `mean` select the weights. All other fields have the same meaning as in
    `/v1/look`."""

    part: Part
    """The attention: `encoder` and `decoder` are self-attention, `cross` is the attention of the
    decoder to the encoder."""
    layer: int = Field(ge=0)
    """The number of the layer, from 0."""
    head: int | None = Field(default=None, ge=0)
    """The number of the head, from 0. Default: all heads of the layer."""
    mean: bool = False
    """Return the mean of the layer's heads. Heads in `heads_off` are left out of the mean."""


class WordRequest(LookRequest):
    """A request for the attention and vectors of a word: `POST /v1/look/word`. `side`, `first` and
    `count` select the word. All other fields have the same meaning as in `/v1/look`."""

    side: Side
    """The side of the word: the source or the output (target)."""
    first: Place
    """The number of the word's first token, from 0. The last token of the output is the end
    symbol."""
    count: int = Field(default=1, ge=1, le=MAX_PIECES)
    """The number of tokens of the word."""


class CellRequest(LookRequest, Head):
    """A request for the computation of one attention weight: `POST /v1/look/cell`. `part`, `layer`,
    `head`, `row` and `column` select the weight. All other fields have the same meaning as in
    `/v1/look`."""

    row: Place
    """The token that attends, from 0. In `decoder` and `cross`, the step that chose output token
    `row`."""
    column: Place
    """The token that is attended to, from 0. In `decoder`, token 0 is the start symbol."""


class Weights(Message):
    """The attention weights of several layers and heads."""

    shape: tuple[int, int, int, int]
    """The numbers of layers, of heads, of tokens that attend and of tokens that are attended to."""
    data: str
    """The weights in base64: 16-bit floats, little-endian, in row-major order (the last axis varies
    fastest)."""


class Maps(Message):
    """The attention weights of all heads at a reduced size: each cell is the maximum of its
    block."""

    shape: tuple[int, int, int, int]
    """The numbers of layers, heads, rows and columns."""
    data: str
    """The weights in base64, one byte for each: 255 stands for a weight of 1. They are in row-major
    order (the last axis varies fastest)."""


class StepCandidate(Message):
    """A candidate for the next token of a hypothesis."""

    parent: int
    """The number of the extended hypothesis among those kept at the previous step, from 0."""
    id: int
    """The number of the token in the vocabulary."""
    piece: str
    """The token as the vocabulary writes it, with ▁ for a space."""
    log_probability: float
    """The log-probability of the token, in nats."""
    total: float
    """The log-probability of the whole hypothesis, in nats."""
    outcome: str
    """The decision of the search about the candidate. `kept`: it is extended at the next step.
    `ended`: it is a finished hypothesis. `dropped`: it was not among the best."""


class Step(Message):
    """A step of the search and its candidates."""

    place: int
    """The position in the output that the step filled, from 0."""
    candidates: list[StepCandidate]
    """The best candidates of the step, best first."""


class Choice(Message):
    """A possible token at a position of the output."""

    id: int
    """The number of the token in the vocabulary."""
    piece: str
    """The token as the vocabulary writes it, with ▁ for a space."""
    probability: float
    """The probability of the token given the source and the tokens before it, from 0 to 1."""


class ModelInfo(Message):
    """The sizes of the model. Sizes that this kind of model does not have are null."""

    kind: str
    """The kind of the model, as `model.kind` in a recipe."""
    attentions: dict[Part, list[int]]
    """The number of heads of each attention layer, for `encoder`, `decoder` and `cross`."""
    model_dim: int
    """The width of the model (d_model)."""
    ffn_dim: int | None = None
    """The width of the feed-forward layers (d_ff)."""
    heads: int | None = None
    """The number of heads of an attention layer (h)."""
    key_width: int | None = None
    """The width of the queries and keys of a head (d_k)."""
    channels: int | None = None
    """The number of channels of a convolutional model."""
    kernel_width: int | None = None
    """The number of positions that a convolution covers."""
    encoder_layers: int
    """The number of layers of the encoder."""
    decoder_layers: int
    """The number of layers of the decoder."""
    source_vocabulary: int
    """The number of tokens in the source vocabulary."""
    target_vocabulary: int
    """The number of tokens in the target vocabulary."""
    norm: str | None = None
    """The position of the layer normalisation, as `norm` in a recipe."""
    parameters: int
    """The number of parameters of the model."""


class OwnAnswer(Message):
    """The output of the plain model, where it differs from the output that was inspected. The
    search may use a faster model whose numbers are rounded."""

    text: str
    """The text that the plain model writes."""
    place: int
    """The number of the first output token that differs, from 0."""


class LookAnswer(Message):
    """The result of inspecting the model on one text. Row t of `decoder` and `cross` belongs to the
    step that chose output token t. The columns of `decoder` are the tokens that this step read,
    beginning with the start symbol. If the run generates no text, there are no target tokens, and
    `best` is its prediction."""

    run: str
    """The name of the run that was inspected."""
    source: str
    """The source language as a code."""
    target: str
    """The target language as a code."""
    detected: DetectedLanguage | None = None
    """The detected source language, if `source` was `auto`."""
    sentences: list[str]
    """The sentences of the text. One of them was inspected, or the whole text as one."""
    beam: int
    """The number of hypotheses kept at each step of the search."""
    length_penalty: float
    """The exponent of the length penalty."""
    source_tokens: list[str]
    """The source tokens as the vocabulary writes them, including the end symbol."""
    source_ids: list[int]
    """The numbers of the source tokens in the vocabulary."""
    source_words: list[int]
    """The number of the word that each source token belongs to, from 0."""
    target_tokens: list[str]
    """The output tokens as the vocabulary writes them. The last is the end symbol."""
    target_words: list[int]
    """The number of the word that each output token belongs to, from 0."""
    best: Hypothesis
    """The output of the run that was inspected."""
    own: OwnAnswer | None = None
    """The output of the plain model. Absent if it is the same."""
    compared: float | None = None
    """The log-probability of `compare`, including its end symbol, in nats. Absent without
    `compare`."""
    model: ModelInfo
    """The sizes of the model that was inspected."""
    attention: dict[Part, Weights]
    """The requested attention weights. The keys are `encoder`, `decoder` and `cross`."""
    maps: dict[Part, Maps] = Field(default_factory=dict)
    """The small maps of all heads. The keys are `encoder`, `decoder` and `cross`. Empty if `maps`
    is 0."""
    choices: list[list[Choice]] = Field(default_factory=list)
    """The most probable tokens for each position of the output, best first. Empty if `choices` is
    0."""
    steps: list[Step]
    """The steps of the search. Empty if `steps` is false or no search was made."""


class Stage(Message):
    """The vectors of the word's tokens at one stage of the model."""

    name: str
    """The name of the stage: `embedding`, `position`, `sum`, `encoder.0`, …, `decoder.0`, …."""
    sizes: list[float]
    """The root mean square of each token's vector."""


class WordAnswer(Message):
    """The attention and the vectors of a word in every layer and head."""

    attention: dict[Part, Weights]
    """The attention weights with which the word attends to others (its rows). A source word has
    rows in `encoder`; an output word has rows in `decoder` and `cross`."""
    looked_at: dict[Part, Weights]
    """The attention weights with which other tokens attend to the word (its columns, transposed).
    Empty for an output word."""
    stages: list[Stage]
    """The stages of the model, from the embedding to the last layer."""
    vectors: Weights
    """The vectors of the word's tokens. Shape: 1, stages, tokens, width of the model."""


class CellAnswer(Message):
    """The computation of an attention weight: softmax(q · k × scale) over the keys. The head adds
    weight × v W^O to the vector of the token that attends."""

    query: list[float]
    """The query q of the token that attends."""
    key: list[float]
    """The key k of the token that is attended to."""
    value: list[float]
    """The value v of the token that is attended to."""
    product: float
    """The dot product q · k."""
    scale: float
    """The scale of the product, 1 / √d_k."""
    weight: float
    """The attention weight, from 0 to 1."""
    adds: list[float]
    """The vector weight × v W^O, as wide as the model."""
    adds_size: float
    """The root mean square of `adds`."""
    head_size: float
    """The root mean square of the vector that the head adds for all keys together."""


class HeadsAnswer(Message):
    """The effect of each head on the probability of the output."""

    log_probability: float
    """The log-probability of the output, including its end symbol, in nats."""
    fallen: dict[Part, list[list[float]]]
    """The decrease of the log-probability, in nats, if the output of a head is set to zero: for
    each attention, a list of layers with a list of heads."""
