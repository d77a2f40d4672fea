"""Sizes and choices of a model. They need no torch, so that a recipe is read without it."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from dragoman.nn.settings import AttentionSettings, Norm, PositionSettings
from dragoman.settings import Settings

UNKNOWN = 0
"""The id of ``<unk>``, the same in every vocabulary of the project."""

_WIDEST = 65_536
"""Of a model, and of its heads together: the kernels count in 32 bits."""


class ModelSettings(Settings):
    """What the settings of every kind of model say; ``kinds.py`` lists the kinds."""

    kind: str
    """The kind of model."""
    model_dim: int = Field(ge=1, le=65_536)
    """Width of embeddings and layers."""

    reads: ClassVar[bool] = True
    """Whether it reads something that is given whole, a source."""
    writes: ClassVar[bool] = True
    """Whether it writes, token by token; else it says something of each row that it has read."""
    usual_dropout: ClassVar[tuple[float, ...]] = (0.1, 0.2, 0.3, 0.4)
    """What ``dragoman sweep`` tries unless told otherwise."""

    @property
    def shares_vocabulary(self) -> bool:
        """Whether source and target must be written in one vocabulary."""
        return False

    @property
    def longest(self) -> int | None:
        """The most tokens of either side that it can tell the places of; None: any number."""
        return None

    @property
    def cross_heads(self) -> tuple[int, ...]:
        """How many heads look at the source, in each layer of the decoder that has some."""
        return ()

    @property
    def sizes(self) -> dict[str, int | str]:
        """What a reader is told of it, by the names of the paper where it has them."""
        return {"model_dim": self.model_dim}


class TransformerSettings(ModelSettings):
    """Sizes and choices of a Transformer. The defaults are the paper's base model (table 3)."""

    kind: Literal["transformer"] = "transformer"
    """The kind of model."""
    model_dim: int = Field(512, ge=1, le=65_536)
    """Width of embeddings and layers (d_model)."""
    ffn_dim: int = Field(2048, ge=1, le=1_000_000)
    """Width inside the feed-forward layers (d_ff)."""
    encoder_layers: int = Field(6, ge=1, le=256)
    """Layers of the encoder (N)."""
    decoder_layers: int = Field(6, ge=1, le=256)
    """Layers of the decoder (N)."""
    attention: AttentionSettings = AttentionSettings()
    """Heads and their widths."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """On the output of every sub-layer and on embeddings (P_drop)."""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """Inside the feed-forward layers, after the ReLU. The paper has none here."""
    norm: Norm = "post"
    """post: normalise after the residual sum (the paper); pre: before each sub-layer; none:
    nowhere, which shows what norms are good for."""
    residual: bool = True
    """Add what a sub-layer reads to what it gives out (the paper). Off shows why the paper does it:
    deep stacks do not learn."""
    positions: PositionSettings = PositionSettings()
    """How positions are told."""
    tie: Literal["all", "target", "none"] = "all"
    """One matrix for source, target and output (the paper), for target and output, or none."""
    attend_unknown: bool = True
    """Whether ``<unk>`` tokens may be attended to; off, they are masked as padding is."""
    next_word: bool = False
    """Whether the decoder is told what the encoder made of the word that its output comes to next
    (Ma et al., 2017). For outputs that keep the order of the words: trees."""

    @property
    def shares_vocabulary(self) -> bool:
        return self.tie == "all"

    @property
    def longest(self) -> int | None:
        return self.positions.maximum if self.positions.kind == "learned" else None

    @property
    def cross_heads(self) -> tuple[int, ...]:
        return (self.attention.num_heads,) * self.decoder_layers

    @property
    def sizes(self) -> dict[str, int | str]:
        heads = self.attention.num_heads
        return {
            "model_dim": self.model_dim,
            "ffn_dim": self.ffn_dim,
            "heads": heads,
            "key_width": self.attention.key_width or self.model_dim // heads,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            "norm": self.norm,
        }

    @model_validator(mode="after")
    def _agree(self) -> TransformerSettings:
        check_heads(self.model_dim, self.attention)
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


class RecurrentSettings(ModelSettings):
    """Sizes and choices of a recurrent model."""

    kind: Literal["recurrent"] = "recurrent"
    """The kind of model."""
    model_dim: int = Field(512, ge=2, le=65_536, multiple_of=2)
    """Width of embeddings and layers; each direction of the first encoder layer has half of it."""
    encoder_layers: int = Field(2, ge=1, le=1_000)
    """Layers of the encoder; the first reads in both directions."""
    decoder_layers: int = Field(2, ge=1, le=1_000)
    """Layers of the decoder."""
    attention: Literal["general", "dot", "additive"] = "general"
    """How a decoder's row is compared with the source: general, by a matrix between them; dot, as
    it is (Luong et al., 2015, both); additive, by a layer of its own (Bahdanau et al., 2015)."""
    attends: Literal["last", "first"] = "last"
    """Which layer of the decoder looks at the source: the last (Luong et al.), or the first, whose
    finding all further ones read (GNMT: Wu et al., 2016)."""
    input_feeding: bool = False
    """What was found for a token is read together with the next one. Training then goes token by
    token."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """On embeddings, between layers and before the output."""
    dropout_kind: Literal["plain", "variational"] = "plain"
    """plain: drawn anew at every step (Zaremba et al., 2014); variational: one mask a sentence,
    also from step to step within a layer (Gal and Ghahramani, 2016)."""
    tie: Literal["all", "target", "none"] = "all"
    """One matrix for source, target and output, for target and output, or none."""

    usual_dropout: ClassVar[tuple[float, ...]] = (0.2, 0.3, 0.4, 0.5)

    @property
    def shares_vocabulary(self) -> bool:
        return self.tie == "all"

    @property
    def cross_heads(self) -> tuple[int, ...]:
        return (1,)

    @property
    def sizes(self) -> dict[str, int | str]:
        return self.model_dump(include={"model_dim", "encoder_layers", "decoder_layers"})

    def reads_context(self, layer: int) -> bool:
        """Whether this layer of the decoder reads what the attention found, beside its input."""
        if self.attends == "first" and layer > 0:
            return True
        return self.input_feeding and layer == 0

    @model_validator(mode="after")
    def _agree(self) -> RecurrentSettings:
        if self.attends == "first" and self.decoder_layers == 1 and not self.input_feeding:
            raise ValueError(
                'with attends = "first" and one decoder layer, what the attention finds would '
                "reach no layer: set decoder_layers = 2 or more, or input_feeding = true"
            )
        return self


class ConvolutionalSettings(ModelSettings):
    """Sizes and choices of a convolutional model (ConvS2S: Gehring et al., 2017). The defaults suit
    a small corpus; the paper has 15 layers and more, of 512 channels and more."""

    kind: Literal["convolutional"] = "convolutional"
    """The kind of model."""
    model_dim: int = Field(256, ge=1, le=65_536)
    """Width of embeddings, and of queries and keys."""
    channels: int = Field(256, ge=1, le=32_768)
    """Width of the blocks."""
    kernel_width: int = Field(3, ge=1, le=1_001)
    """Tokens that a block reads at once (k): an odd number."""
    encoder_layers: int = Field(4, ge=1, le=1_000)
    """Blocks of the encoder."""
    decoder_layers: int = Field(3, ge=1, le=1_000)
    """Blocks of the decoder, each with an attention of its own."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """On embeddings, on what each block reads, and before the output."""
    positions: int = Field(256, ge=1, le=1_000_000)
    """Positions that it has embeddings for, so the most tokens of either side: longer input is cut,
    and no output becomes longer. Those beyond the longest pair of training stay as drawn."""
    tie: Literal["all", "target", "none"] = "all"
    """One matrix for source, target and output, for target and output, or none (the paper)."""

    @property
    def shares_vocabulary(self) -> bool:
        return self.tie == "all"

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
                f"kernel_width {self.kernel_width} is even; a block of the encoder reads as many "
                "tokens before as behind its own: take an odd number"
            )
        return self


class StackSettings(ModelSettings):
    """Sizes and choices of a stack of self-attention and feed-forward layers that stands alone."""

    model_dim: int = Field(512, ge=1, le=65_536)
    """Width of embeddings and layers (d_model)."""
    ffn_dim: int = Field(2048, ge=1, le=1_000_000)
    """Width inside the feed-forward layers (d_ff)."""
    layers: int = Field(6, ge=1, le=256)
    """Number of layers (N)."""
    attention: AttentionSettings = AttentionSettings()
    """Heads and their widths."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """On the output of every sub-layer and on embeddings (P_drop)."""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """Inside the feed-forward layers, after the ReLU."""
    norm: Norm = "pre"
    """pre: normalise before each sub-layer (GPT-2 on); post: after the residual sum (the paper,
    BERT); none: nowhere."""
    residual: bool = True
    """Add what a sub-layer reads to what it gives out (the paper)."""
    positions: PositionSettings = PositionSettings()
    """How positions are told; they are added."""
    tie: bool = True
    """One matrix for what is read and for the output."""

    @property
    def longest(self) -> int | None:
        return self.positions.maximum if self.positions.kind == "learned" else None

    @property
    def sizes(self) -> dict[str, int | str]:
        heads = self.attention.num_heads
        return {
            "model_dim": self.model_dim,
            "ffn_dim": self.ffn_dim,
            "heads": heads,
            "key_width": self.attention.key_width or self.model_dim // heads,
            "encoder_layers": 0 if self.writes else self.layers,
            "decoder_layers": self.layers if self.writes else 0,
            "norm": self.norm,
        }

    @model_validator(mode="after")
    def _agree(self) -> Self:
        check_heads(self.model_dim, self.attention)
        if self.positions.combine != "add":
            raise ValueError(
                f'a model of kind {self.kind} adds positions: set positions.combine = "add"'
            )
        if self.positions.width not in (None, self.model_dim):
            raise ValueError(
                f"positions that are added are as wide as the model ({self.model_dim}, not "
                f"{self.positions.width}): leave positions.width out"
            )
        return self


class DecoderSettings(StackSettings):
    """Sizes and choices of a Transformer's decoder by itself, which reads nothing (GPT's shape)."""

    kind: Literal["decoder"] = "decoder"
    """The kind of model."""

    reads: ClassVar[bool] = False


class EncoderSettings(StackSettings):
    """Sizes and choices of a Transformer's encoder by itself, which writes nothing (BERT's shape):
    of each token that it reads, or of all together, it says what it was taught to say."""

    kind: Literal["encoder"] = "encoder"
    """The kind of model."""
    attend_unknown: bool = True
    """Whether ``<unk>`` tokens may be attended to; off, they are masked as padding is."""

    writes: ClassVar[bool] = False


class RecurrentDecoderSettings(ModelSettings):
    """Sizes and choices of LSTM layers that read nothing (the shape of AWD-LSTM and ULMFiT)."""

    kind: Literal["recurrent-decoder"] = "recurrent-decoder"
    """The kind of model."""
    model_dim: int = Field(400, ge=1, le=65_536)
    """Width of embeddings, of the last layer and of the output."""
    hidden_dim: int | None = Field(None, ge=1, le=65_536)
    """Width of the layers before the last; as ``model_dim`` if not given."""
    layers: int = Field(3, ge=1, le=1_000)
    """Number of layers."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Between layers and before the output: one mask for each window, the same at every step."""
    embedding_dropout: float = Field(0.3, ge=0, lt=1)
    """On embeddings: one mask for each window, the same at every step."""
    recurrent_dropout: float = Field(0.2, ge=0, lt=1)
    """On the state that a layer hands to its next step: one mask for each window, the same at every
    step (Gal and Ghahramani, 2016)."""
    tie: bool = True
    """One matrix for what is read back and for the output."""

    reads: ClassVar[bool] = False

    @property
    def widths(self) -> tuple[int, ...]:
        """Of what each layer gives out."""
        inner = self.hidden_dim or self.model_dim
        return (inner,) * (self.layers - 1) + (self.model_dim,)

    @property
    def sizes(self) -> dict[str, int | str]:
        return {
            "model_dim": self.model_dim,
            "encoder_layers": 0,
            "decoder_layers": self.layers,
        }


def check_heads(model_dim: int, attention: AttentionSettings) -> None:
    """Errors: ``ValueError`` for heads that do not fit into a model of that width."""
    shared_out = attention.key_width is None or not attention.whole_input
    if shared_out and model_dim % attention.num_heads:
        remedy = "set attention.key_width or " if attention.whole_input else ""
        raise ValueError(
            f"model_dim {model_dim} is no multiple of num_heads "
            f"{attention.num_heads}; {remedy}change one of them"
        )
    widest = max(attention.key_width or 1, attention.value_width or 1) * attention.num_heads
    if widest > _WIDEST:
        raise ValueError(f"all heads together are {widest:,} wide; {_WIDEST:,} is the most")
