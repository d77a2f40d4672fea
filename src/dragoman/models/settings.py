"""The settings of every kind of model, and the kinds by the names that recipes use (``KINDS``).
This module does not import torch, so that a recipe can be read without it."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from dragoman.base.settings import Settings, one_of
from dragoman.nn.settings import AttentionSettings, LayerSettings, Norm, PositionSettings

UNKNOWN = 0
"""The id of ``<unk>``, the same in every vocabulary of the project."""
BEGIN = 1
"""The id of ``<s>``, with which every output begins, the same in every vocabulary of the
project."""

_WIDEST = 65_536
"""The greatest width of a model, and of its heads together: the kernels count in 32 bits."""
_MOST_CODES = 65_000
"""The most codes of an autoencoder of pictures: stores keep codes in 16 bits, together with three
symbols."""


class ModelSettings(Settings):
    """The settings that every kind of model has; ``KINDS`` lists the kinds."""

    kind: str
    """The kind of model."""
    model_dim: int = Field(ge=1, le=65_536)
    """Width of embeddings and layers."""

    reads: ClassVar[bool] = True
    """True if the model reads a source, which is given as a whole."""
    writes: ClassVar[bool] = True
    """True if the model writes token by token; False if it makes a prediction for each row that it
    has read."""
    usual_dropout: ClassVar[tuple[float, ...]] = (0.1, 0.2, 0.3, 0.4)
    """The dropout rates that ``dragoman sweep`` tries by default."""

    @property
    def shares_vocabulary(self) -> bool:
        """True if source and target must use one vocabulary."""
        return False

    @property
    def longest(self) -> int | None:
        """The most tokens on either side for which the model has positions; None: any number."""
        return None

    @property
    def cross_heads(self) -> tuple[int, ...]:
        """The number of heads that attend to the source, for each layer of the decoder that has
        such heads."""
        return ()

    @property
    def sizes(self) -> dict[str, int | str]:
        """The sizes to show to readers, under the paper's names where it has names for them."""
        return {"model_dim": self.model_dim}


class EncoderDecoderSettings(ModelSettings):
    """Settings of models with an encoder and a decoder."""

    tie: Literal["all", "target", "none"] = "all"
    """Weight tying. all: one matrix for source, target and output (as in the paper); target: for
    target and output; none: no tying (as in the paper of the convolutional model)."""

    @property
    def shares_vocabulary(self) -> bool:
        return self.tie == "all"


class StackSettings(LayerSettings, ModelSettings):
    """Settings of models whose layers are self-attention and feed-forward."""

    positions: PositionSettings = PositionSettings()
    """The encoding of positions."""
    scale_embeddings: bool = True
    """Multiply embeddings by √d_model (the paper). Off: they are used as they are."""

    @property
    def embedding_scale(self) -> float:
        """The factor of embeddings."""
        return math.sqrt(self.model_dim) if self.scale_embeddings else 1.0

    @property
    def longest(self) -> int | None:
        return self.positions.maximum if self.positions.kind == "learned" else None

    @property
    @abstractmethod
    def stacks(self) -> tuple[int, int]:
        """The numbers of layers of the encoder and the decoder."""

    @property
    def sizes(self) -> dict[str, int | str]:
        heads, (encoder_layers, decoder_layers) = self.attention.num_heads, self.stacks
        return {
            "model_dim": self.model_dim,
            "ffn_dim": self.ffn_dim,
            "heads": heads,
            "key_width": self.attention.key_width or self.model_dim // heads,
            "encoder_layers": encoder_layers,
            "decoder_layers": decoder_layers,
            "norm": self.norm,
        }


class TransformerSettings(StackSettings, EncoderDecoderSettings):
    """A Transformer. The defaults are the paper's base model (table 3)."""

    kind: Literal["transformer"] = "transformer"
    """The kind of model."""
    encoder_layers: int = Field(6, ge=1, le=256)
    """The number of encoder layers (N)."""
    decoder_layers: int = Field(6, ge=1, le=256)
    """The number of decoder layers (N)."""
    zero_start: bool = False
    """Use zeros as the embedding of the start symbol ``<s>`` of an output, so that only its
    position is read (Marian)."""
    output_bias: bool = False
    """Add a bias, one number for each token, to the output layer (Marian). The paper has none."""
    attend_unknown: bool = True
    """Allow attention to ``<unk>`` tokens. Off: they are masked, like padding."""
    next_word: bool = False
    """Also give the decoder the encoder's output for the next word of the sentence (Ma et al.,
    2017). For outputs that keep the word order, such as trees."""

    @property
    def cross_heads(self) -> tuple[int, ...]:
        return (self.attention.num_heads,) * self.decoder_layers

    @property
    def stacks(self) -> tuple[int, int]:
        return self.encoder_layers, self.decoder_layers

    @model_validator(mode="after")
    def _agree(self) -> TransformerSettings:
        check_heads(self.model_dim, self.attention)
        check_line(self.positions)
        width = self.positions.width
        if self.positions.combine == "add" and width not in (None, self.model_dim):
            raise ValueError(
                f"positions that are added are as wide as the model ({self.model_dim}, not "
                f'{width}): leave positions.width out, or set positions.combine = "concatenate"'
            )
        if self.positions.combine == "concatenate":
            if width is None or not 0 < width < self.model_dim:
                raise ValueError(
                    "positions that are concatenated need positions.width between 1 and "
                    f"model_dim - 1 = {self.model_dim - 1}"
                )
            if self.tie != "none":
                raise ValueError(
                    "with positions concatenated, embeddings are narrower than the output "
                    'layer, so they cannot be tied: set tie = "none"'
                )
        return self


class RecurrentSettings(EncoderDecoderSettings):
    """A recurrent model: an LSTM encoder and decoder with attention."""

    kind: Literal["recurrent"] = "recurrent"
    """The kind of model."""
    model_dim: int = Field(512, ge=2, le=65_536, multiple_of=2)
    """The width of embeddings and layers. Each direction of the first encoder layer has half of
    this width."""
    encoder_layers: int = Field(2, ge=1, le=1_000)
    """The number of encoder layers. The first is bidirectional."""
    decoder_layers: int = Field(2, ge=1, le=1_000)
    """The number of decoder layers."""
    attention: Literal["general", "dot", "additive"] = "general"
    """The attention score. general: with a matrix between decoder state and source; dot: their dot
    product (both Luong et al., 2015); additive: a feed-forward layer (Bahdanau et al., 2015)."""
    attends: Literal["last", "first"] = "last"
    """The decoder layer that attends to the source. last: the last layer (Luong et al.); first: the
    first layer, and all further layers read its result (GNMT: Wu et al., 2016)."""
    input_feeding: bool = False
    """Input feeding: the attention's result for each token is an input of the next step. Training
    then proceeds token by token."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout on embeddings, between layers and before the output."""
    dropout_kind: Literal["plain", "variational"] = "plain"
    """plain: a new mask at every step (Zaremba et al., 2014); variational: one mask per sentence,
    also on the recurrent connections (Gal and Ghahramani, 2016)."""

    usual_dropout: ClassVar[tuple[float, ...]] = (0.2, 0.3, 0.4, 0.5)

    @property
    def cross_heads(self) -> tuple[int, ...]:
        return (1,)

    @property
    def sizes(self) -> dict[str, int | str]:
        return self.model_dump(include={"model_dim", "encoder_layers", "decoder_layers"})

    def reads_context(self, layer: int) -> bool:
        """Return True if a layer of the decoder reads the attention's result in addition to its
        input."""
        if self.attends == "first" and layer > 0:
            return True
        return self.input_feeding and layer == 0

    @model_validator(mode="after")
    def _agree(self) -> RecurrentSettings:
        if self.attends == "first" and self.decoder_layers == 1 and not self.input_feeding:
            raise ValueError(
                'with attends = "first" and one decoder layer, no layer would use the '
                "attention. Set decoder_layers = 2 or more, or input_feeding = true"
            )
        return self


class ConvolutionalSettings(EncoderDecoderSettings):
    """A convolutional model (ConvS2S: Gehring et al., 2017). The defaults suit a small corpus; the
    paper's models have 15 or more layers with 512 or more channels."""

    kind: Literal["convolutional"] = "convolutional"
    """The kind of model."""
    model_dim: int = Field(256, ge=1, le=65_536)
    """The width of embeddings, queries and keys."""
    channels: int = Field(256, ge=1, le=32_768)
    """The width of the blocks."""
    kernel_width: int = Field(3, ge=1, le=1_001)
    """The kernel width of the convolutions, in tokens (k); must be odd."""
    encoder_layers: int = Field(4, ge=1, le=1_000)
    """The number of encoder blocks."""
    decoder_layers: int = Field(3, ge=1, le=1_000)
    """The number of decoder blocks, each with its own attention."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout on embeddings, on the input of each block, and before the output."""
    positions: int = Field(256, ge=1, le=1_000_000)
    """The number of position embeddings, and so the maximum number of tokens on either side: longer
    input is cut, and outputs cannot be longer. Embeddings beyond the longest training pair stay
    untrained."""

    @property
    def longest(self) -> int | None:
        return self.positions

    @property
    def cross_heads(self) -> tuple[int, ...]:
        return (1,) * self.decoder_layers

    @property
    def sizes(self) -> dict[str, int | str]:
        names = {"model_dim", "channels", "kernel_width", "encoder_layers", "decoder_layers"}
        return self.model_dump(include=names)

    @model_validator(mode="after")
    def _agree(self) -> ConvolutionalSettings:
        if self.kernel_width % 2 == 0:
            raise ValueError(
                f"kernel_width {self.kernel_width} must be odd, because a block of the encoder "
                "reads as many tokens before a position as after it"
            )
        return self


class SingleStackSettings(StackSettings):
    """A stack of self-attention and feed-forward layers."""

    layers: int = Field(6, ge=1, le=256)
    """The number of layers (N)."""
    norm: Norm = "pre"
    """Layer normalisation. pre: before each sub-layer (GPT-2 and later); post: after the residual
    sum (the paper, BERT); none: nowhere."""
    tie: bool = True
    """Use one matrix for the input embeddings and the output layer."""

    @property
    def stacks(self) -> tuple[int, int]:
        return (0, self.layers) if self.writes else (self.layers, 0)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        check_heads(self.model_dim, self.attention)
        if self.kind != "encoder":
            check_line(self.positions)
        if self.positions.combine != "add":
            raise ValueError(
                f'a model of kind {self.kind} adds positions: set positions.combine = "add"'
            )
        if self.positions.width not in (None, self.model_dim):
            raise ValueError(
                f"positions that are added are as wide as the model ({self.model_dim}, not "
                f"{self.positions.width}). Leave positions.width out"
            )
        return self


class DecoderSettings(SingleStackSettings):
    """A Transformer decoder without an encoder, for language models (GPT's architecture)."""

    kind: Literal["decoder"] = "decoder"
    """The kind of model."""

    reads: ClassVar[bool] = False


class EncoderSettings(SingleStackSettings):
    """A Transformer encoder without a decoder, for masked models, classifiers and taggers (BERT's
    architecture). It predicts something for each token, or for the whole text."""

    kind: Literal["encoder"] = "encoder"
    """The kind of model."""
    attend_unknown: bool = True
    """Allow attention to ``<unk>`` tokens. Off: they are masked, like padding."""
    class_token: bool = False
    """Put a learned row before the patches of a picture, and choose the label by what the last
    layer makes of it (Vision Transformer). Off: by the mean of all rows. With learned positions it
    takes one of them: raise ``positions.maximum`` by 1."""

    writes: ClassVar[bool] = False

    @property
    def longest(self) -> int | None:
        longest = super().longest
        return None if longest is None else longest - self.class_token


class RecurrentDecoderSettings(ModelSettings):
    """LSTM layers without an encoder, for language models (the architecture of AWD-LSTM and
    ULMFiT)."""

    kind: Literal["recurrent-decoder"] = "recurrent-decoder"
    """The kind of model."""
    model_dim: int = Field(400, ge=1, le=65_536)
    """The width of the embeddings, the last layer and the output."""
    hidden_dim: int | None = Field(None, ge=1, le=65_536)
    """The width of all layers before the last. Default: ``model_dim``."""
    layers: int = Field(3, ge=1, le=1_000)
    """The number of layers."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout between layers and before the output, with one mask per window for all steps."""
    embedding_dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on embeddings, with one mask per window for all steps."""
    recurrent_dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout on the recurrent state, with one mask per window for all steps (Gal and Ghahramani,
    2016)."""
    tie: bool = True
    """Use one matrix for the input embeddings and the output layer."""

    reads: ClassVar[bool] = False

    @property
    def widths(self) -> tuple[int, ...]:
        """The width of the output of each layer."""
        inner = self.hidden_dim or self.model_dim
        return (inner,) * (self.layers - 1) + (self.model_dim,)

    @property
    def sizes(self) -> dict[str, int | str]:
        return {
            "model_dim": self.model_dim,
            "encoder_layers": 0,
            "decoder_layers": self.layers,
        }


class CodesSettings(ModelSettings):
    """A convolutional autoencoder that turns the patches of a picture into codes, and codes into a
    picture."""

    kind: Literal["codes"] = "codes"
    """The kind of model."""
    model_dim: int = Field(64, ge=1, le=4_096)
    """The width of the layers."""
    blocks: int = Field(2, ge=1, le=64)
    """The number of residual blocks before the codes, and again after them. Those before see each
    patch alone; those after have two 3 x 3 convolutions over the grid of patches."""
    levels: tuple[Annotated[int, Field(ge=2, le=64)], ...] = Field(
        (8, 6, 5), min_length=1, max_length=16
    )
    """The number of levels of each number of a code (finite scalar quantisation). The product of
    all is the number of codes: (8, 6, 5) makes 240."""

    reads: ClassVar[bool] = False
    writes: ClassVar[bool] = False

    @property
    def sizes(self) -> dict[str, int | str]:
        return {"model_dim": self.model_dim, "blocks": self.blocks, "codes": math.prod(self.levels)}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if math.prod(self.levels) > _MOST_CODES:
            raise ValueError(
                f"levels make {math.prod(self.levels):,} codes, more than {_MOST_CODES:,}"
            )
        return self


def check_line(positions: PositionSettings) -> None:
    """Raise ``ValueError`` for positions on a grid, which only an encoder of pictures has."""
    if positions.kind == "sinusoidal-2d":
        raise ValueError(
            'positions.kind = "sinusoidal-2d" is for model.kind = "encoder", which reads '
            "pictures. Choose another kind of positions"
        )


def check_heads(model_dim: int, attention: AttentionSettings) -> None:
    """Raise ``ValueError`` for heads that do not fit into a model of that width."""
    shared_out = attention.key_width is None or not attention.whole_input
    if shared_out and model_dim % attention.num_heads:
        remedy = "set attention.key_width or " if attention.whole_input else ""
        raise ValueError(
            f"model_dim {model_dim} is not a multiple of num_heads {attention.num_heads}; "
            f"{remedy}change one of them"
        )
    widest = max(attention.key_width or 1, attention.value_width or 1) * attention.num_heads
    if widest > _WIDEST:
        raise ValueError(f"all heads together are {widest:,} wide. At most {_WIDEST:,} is allowed")


KINDS: dict[str, type[ModelSettings]] = {
    "transformer": TransformerSettings,
    "recurrent": RecurrentSettings,
    "convolutional": ConvolutionalSettings,
    "decoder": DecoderSettings,
    "encoder": EncoderSettings,
    "recurrent-decoder": RecurrentDecoderSettings,
    "codes": CodesSettings,
}
"""The settings by kind. ``models/catalogue/networks.py`` has the networks, so that a recipe can be
read without torch."""

DEFAULT = "transformer"
"""The kind of a recipe that names none, such as recipes from before there were other kinds."""

if TYPE_CHECKING:
    AnyModel = ModelSettings
else:
    problem = f"there is no such kind of model. Use one of {', '.join(KINDS)}"
    AnyModel = one_of(KINDS, DEFAULT, problem)
"""A field that holds the settings of some kind of model, told by its ``kind``."""
