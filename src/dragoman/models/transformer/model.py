"""The Transformer (paper §3): an encoder and a decoder of self-attention and feed-forward layers.

Paper to code: d_model ``model_dim``, d_ff ``ffn_dim``, h ``num_heads``, N ``encoder_layers`` and
``decoder_layers``, P_drop ``dropout``. Departures, all settings: pre-norm, no norm, no residual
connections, positions other than sinusoidal, value width free of key width, vocabularies that are
not shared, hints about the next word (``NextWord``); for models of other programs also activations
other than ReLU, an output bias, a start symbol without embedding, embeddings that are not scaled.

Shapes: B sources, P packed rows, N rows of a search, t new tokens, D width, W most words of a
source, including its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.models.encoding import EncoderDecoder, LayeredEncoder, SourceInput
from dragoman.models.interface import AttentionLayer, DecodeState, Memory, Part
from dragoman.models.search_states import CachedState, KeysAndValues
from dragoman.models.settings import BEGIN, UNKNOWN, TransformerSettings
from dragoman.nn.attention import MultiHeadAttention, mask_of_keys
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import Positions, add_positions, embed
from dragoman.nn.layers import Around, DecoderLayer, EncoderLayer, LayerNorm, NoNorm, stack_of
from dragoman.nn.layout import Layout, Sequences, join
from dragoman.nn.linear import Computing, Linear

_SPECIAL = 3
"""The number of special tokens at the beginning of every vocabulary, which stand for no word:
unknown, begin, end."""


class NextWord(nn.Module):
    """Hints for a decoder about the source word that its output reaches next.

    An output that keeps the order of its source (the brackets and tags of a tree) shows how many
    words it has passed. The encoder's row of the first word that it has not passed, or of the end,
    is added to the decoder's input, so that the decoder need not learn to count (deterministic
    attention: Ma et al., 2017, *Deterministic Attention for Sequence-to-Sequence Constituent
    Parsing*).

    By default, each source token begins a word, and each target token that is not special stands
    for one; ``tell`` sets which tokens really do.
    """

    begins: Tensor
    """(source vocabulary,) bool: True for a token that begins a word, as the end symbol does."""
    stands: Tensor
    """(target vocabulary,) int64: 1 for a token that stands for a word, else 0."""

    def __init__(self, source_vocabulary: int, target_vocabulary: int, width: int) -> None:
        super().__init__()
        self.row = Linear(width, width, bias=False)
        begins = torch.tensor([True] * source_vocabulary)
        stands = torch.tensor([int(token >= _SPECIAL) for token in range(target_vocabulary)])
        self.register_buffer("begins", begins, persistent=False)
        self.register_buffer("stands", stands, persistent=False)

    def tell(self, begins: Tensor, stands: Iterable[int]) -> None:
        """Set which tokens begin and stand for words. ``begins``: as the attribute; ``stands``: the
        ids of the target tokens that stand for a word."""
        self.begins.copy_(begins)
        self.stands.zero_()
        self.stands[torch.tensor(list(stands))] = 1

    def words(self, memory: Memory) -> tuple[Tensor, Layout]:
        """Return the hint for each word of B sources: packed rows (P, D) and their layout."""
        assert memory.tokens is not None, "words are those of the tokens that were read"
        layout = memory.layout
        begins = self.begins[memory.tokens]
        begins[layout.offsets[:-1].long()] = True
        counts = torch.bincount(layout.sequence[begins], minlength=layout.batch)
        return self.row(memory.rows[begins]), Layout(counts.tolist(), layout.device)

    def next_word_rows(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Return the hints (P, D) for the tokens of ``target_in``, under teacher forcing."""
        words, of_words = self.words(memory)
        layout = target_in.layout
        stands = self.stands[target_in.values]
        past = stands.cumsum(0)
        before = (past - stands)[layout.offsets[:-1].long()]
        past = past - before[layout.sequence]
        begin, end = of_words.offsets[:-1].long(), of_words.offsets[1:].long()
        place = torch.minimum(begin[layout.sequence] + past, end[layout.sequence] - 1)
        return words.index_select(0, place)


class Following:
    """The hints during a search: the words of its sources, and the number of words that each row
    has passed."""

    def __init__(self, next_word: NextWord) -> None:
        """Begin without rows, which ``admit`` adds."""
        self._next_word = next_word
        none = next_word.stands[:0]
        self._last = self._owners = self._past = none
        """The place of each source's last word (B,), the source of each row (N,), and the number of
        words that each row has passed (N,)."""
        self._words = none.to(next_word.row.weight.dtype)[:, None, None]
        """(B, W, D) the hint for each word of each source."""

    def next_word_rows(self, tokens: Tensor) -> Tensor:
        """Count the words in the new ``tokens`` (N, t), and return the hints (N x t, D) for
        them."""
        past = self._past[:, None] + self._next_word.stands[tokens].cumsum(1)  # (N, t)
        self._past = past[:, -1]
        place = torch.minimum(past, self._last[self._owners][:, None])
        return self._words[self._owners[:, None], place].flatten(0, 1)

    def select(self, rows: Tensor) -> None:
        """Keep some rows, as ``DecodeState.select`` does."""
        rows = rows.to(self._owners.device)
        self._past = self._past[rows]
        kept, self._owners = torch.unique(self._owners[rows], return_inverse=True)
        if len(kept) < len(self._words):
            self._words, self._last = self._words[kept], self._last[kept]

    def admit(self, memory: Memory) -> None:
        """Add the sources of ``memory``, with one row each, as ``DecodeState.admit`` does."""
        words, layout = self._next_word.words(memory)
        grid, owners = layout.pad(words), torch.arange(layout.batch, device=layout.device)
        last = torch.tensor(layout.lengths, device=layout.device) - 1
        self._words = join(self._words, grid) if len(self._words) else grid
        self._owners = torch.cat([self._owners, len(self._last) + owners])
        self._last = torch.cat([self._last, last])
        self._past = torch.cat([self._past, torch.zeros_like(owners)])


@dataclass(frozen=True)
class Sublayer:
    """One sub-layer of a stack (paper §3.1), for inspection."""

    side: Literal["encoder", "decoder"]
    layer: int
    """The number of the layer, from 0 within its side."""
    kind: Literal["self-attention", "cross-attention", "feed-forward"]
    norm: LayerNorm | NoNorm
    """The norm of the sub-layer's residual connection: after the sum, or with pre-norm before the
    sub-layer."""

    @property
    def name(self) -> str:
        """The name of the sub-layer for probes (``nn/probes.py``)."""
        return self.norm.sublayer


class TransformerState(CachedState):
    """The state of a search on the plain path."""

    def __init__(
        self, next_word: NextWord | None, sources_of: KeysAndValues, memory: Memory
    ) -> None:
        self.following = None if next_word is None else Following(next_word)
        """The words of the sources, for a decoder with hints about the next word; else None."""
        super().__init__(sources_of, memory)

    def select(self, rows: Tensor) -> None:
        super().select(rows)
        if self.following is not None:
            self.following.select(rows)

    def admit(self, memory: Memory) -> None:
        if self.following is not None:
            self.following.admit(memory)
        super().admit(memory)


class Transformer(EncoderDecoder, LayeredEncoder, Computing):
    """An encoder and a decoder with their embeddings.

    With ``tie="all"``, source and target must share one vocabulary.
    """

    settings: TransformerSettings

    def __init__(
        self, settings: TransformerSettings, source_vocabulary: SourceInput, target_vocabulary: int
    ) -> None:
        positions, width = settings.positions, settings.model_dim
        own = width
        if positions.combine == "concatenate":
            assert positions.width is not None
            own = width - positions.width
        if settings.tie == "all":
            assert source_vocabulary == target_vocabulary, "a shared matrix needs one vocabulary"
        super().__init__(settings, source_vocabulary, target_vocabulary, own)
        if settings.output_bias:
            self.output_bias = nn.Parameter(torch.zeros(target_vocabulary))
        self.source_positions = Positions(positions, positions.width or width)
        self.target_positions = Positions(positions, positions.width or width)
        self.dropout = Dropout(settings.dropout)
        self.encoder = stack_of(EncoderLayer, settings, "encoder", settings.encoder_layers)
        self.decoder = stack_of(DecoderLayer, settings, "decoder", settings.decoder_layers)
        self.next_word: NextWord | None = None
        if settings.next_word:
            assert isinstance(source_vocabulary, int), "rows have no next word"
            self.next_word = NextWord(source_vocabulary, target_vocabulary, width)
        self.encoder_norm = Around(settings).last_norm()
        self.decoder_norm = Around(settings).last_norm()

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return tuple(
            AttentionLayer(part, number, attention.heads, attention.scale, attention.name)
            for part, number, attention in self._attending()
        )

    @property
    def sublayers(self) -> tuple[Sublayer, ...]:
        """All sub-layers, in the order of computing."""
        sublayers = []
        for number, reading in enumerate(self.encoder):
            sublayers += [
                Sublayer("encoder", number, "self-attention", reading.attention_norm),
                Sublayer("encoder", number, "feed-forward", reading.feed_forward_norm),
            ]
        for number, writing in enumerate(self.decoder):
            sublayers += [
                Sublayer("decoder", number, "self-attention", writing.self_attention_norm),
                Sublayer("decoder", number, "cross-attention", writing.cross_attention_norm),
                Sublayer("decoder", number, "feed-forward", writing.feed_forward_norm),
            ]
        return tuple(sublayers)

    def query_matrix(self, attention: AttentionLayer) -> Tensor:
        """Return W^Q of all heads, (H x K, D); (H, K, D / H) if each head reads only a slice of its
        input."""
        (module,) = (layer for _, _, layer in self._attending() if layer.name == attention.name)
        return module.query.weight.detach()

    # ---- writing

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        layout = target_in.layout
        tokens = target_in.values
        key_mask = None if self.settings.attend_unknown else tokens != UNKNOWN
        x = self.embed_target(tokens, layout.positions, layout.row_keys)
        if self.next_word is not None:
            next_word_rows = self.next_word.next_word_rows(target_in, memory)
            x = x + self.dropout.forward(next_word_rows, layout.row_keys)
        for layer in self.decoder:
            x = layer(x, layout, key_mask, memory.rows, memory.layout, memory.key_mask)
        return x if self.decoder_norm is None else self.decoder_norm.forward(x)

    def start(self, memory: Memory) -> TransformerState:
        return TransformerState(self.next_word, self._keys_and_values, memory)

    def advance(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, TransformerState)  # a state comes back to the model that made it
        cache, new = state.cache, tokens.shape[1]
        key_mask = None if self.settings.attend_unknown else tokens != UNKNOWN
        places = cache.places(new)
        x = self.embed_target(tokens.flatten(), places.flatten())  # (N x t, D)
        if state.following is not None:
            x = x + state.following.next_word_rows(tokens)
        cache.begin(key_mask, new)
        for layer, past in zip(self.decoder, cache.layers, strict=True):
            x = layer.step(x, new, past)
        cache.end(new)
        x = x.unflatten(0, (-1, new))[:, -1]  # (N, D)
        return x if self.decoder_norm is None else self.decoder_norm.forward(x)

    # ---- parts that faster ways to run the model use too

    def embed_target(
        self, tokens: Tensor, positions: Tensor, row_keys: Tensor | None = None
    ) -> Tensor:
        """Return the input of the decoder's first layer for tokens (P,) at positions (P,): (P, D).

        ``row_keys`` (P,) are those of the rows, for dropout.
        """
        rows = embed(
            tokens,
            self.written_embedding,
            self.dropout,
            scale=self.embedding_scale,
            positions=positions,
            encoding=self.target_positions,
            row_keys=row_keys,
        )
        if not self.settings.zero_start:
            return rows
        starts = (tokens == BEGIN).nonzero()[:, 0]
        weight = self.written_embedding.weight
        only_positions = add_positions(
            weight.new_zeros(len(starts), weight.shape[1]),
            self.dropout,
            positions=positions[starts],
            encoding=self.target_positions,
            row_keys=None if row_keys is None else row_keys[starts],
        )
        return rows.index_copy(0, starts, only_positions.to(rows.dtype))

    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        of_source, places = side == "source", torch.arange(len(tokens))
        embedding = self.source_embedding if of_source else self.written_embedding
        encoding = self.source_positions if of_source else self.target_positions
        word = embedding(tokens) * self.embedding_scale
        if self.settings.zero_start and not of_source:
            word = word.masked_fill((tokens == BEGIN)[:, None], 0.0)
        lengths = torch.full_like(places, len(tokens)) if of_source else None
        place = encoding(places, lengths, word.dtype)
        if self.settings.positions.combine == "add":
            return {"embedding": word, "position": place, "sum": word + place}
        # Side by side; each is shown as wide as the model.
        word, place = F.pad(word, (0, place.shape[1])), F.pad(place, (word.shape[1], 0))
        return {"embedding": word, "position": place, "sum": word + place}

    # ---- inside

    def _keys_and_values(self, memory: Memory) -> tuple[list[tuple[Tensor, Tensor]], Tensor | None]:
        """Return the keys and values of the sources in each layer, and their mask."""
        layout, sources = memory.layout, []
        for attention in (layer.cross_attention for layer in self.decoder):
            key = attention.split(layout.pad(attention.key(memory.rows)))
            value = attention.split(layout.pad(attention.value(memory.rows)))
            sources.append((key, value))  # (B, H, S, K), (B, H, S, Kv)
        return sources, mask_of_keys(layout, memory.key_mask)

    def _attending(self) -> Iterator[tuple[Part, int, MultiHeadAttention]]:
        """Yield every attention, with its part and the number of its layer."""
        for number, encoding in enumerate(self.encoder):
            yield "encoder", number, encoding.attention
        for number, decoding in enumerate(self.decoder):
            yield "decoder", number, decoding.self_attention
            yield "cross", number, decoding.cross_attention
