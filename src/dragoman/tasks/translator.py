"""The predictor: text in, translations out. The command line, the server and every picture use it.

    translator = dragoman.load("runs/x")
    translator("Guten Tag").text
    translator.batch(["Eins.", "Zwei."])
    for translation in translator.stream(open("big.de")): ...

One sentence's way: normalise and cut into tokens (SentencePiece), ``encode`` once, search, join
tokens to text again. A line of several sentences is cut into them first where the model has learned
from single sentences, or where it has more tokens than ``longest``; a sentence that is still too
long is cut into pieces.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field, ValidationError

from dragoman.errors import DragomanError, RunError
from dragoman.forms.segmentation import Sentence, rejoin, segment, writes_spaces
from dragoman.forms.text import Text
from dragoman.inference.fast import Path as FastPath
from dragoman.inference.fast import fastest
from dragoman.inference.settings import Precision
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.pictures.notebook import translation_html
from dragoman.pictures.records import AttentionRecord
from dragoman.pictures.words import in_words
from dragoman.recipe import Recipe
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.offline import Searcher
from dragoman.search.request import Request
from dragoman.search.scoring import force_decode
from dragoman.search.settings import SearchSettings
from dragoman.settings import Settings
from dragoman.tasks.machine import cores
from dragoman.tasks.prepare import SEVERAL_SENTENCES, cache_folder
from dragoman.tasks.run import Run, load_shortlist

logger = logging.getLogger("dragoman")

WINDOW = 1000
"""Lines that ``stream`` holds at once: enough to sort by length, little enough to stay small."""


class TranslatorSettings(Settings):
    """How a translator treats its input and this machine."""

    precision: Precision = "auto"
    """auto: the fastest that this machine can run with the quality kept; or int8, bf16, fp32."""
    rows: int = Field(64, ge=1, le=65_536)
    """Hypotheses under way at once: sentences x beam."""
    longest: int = Field(250, ge=2, le=100_000)
    """Source tokens of one piece of text that is translated whole."""
    long_lines: Literal["split", "cut"] = "split"
    """What happens to longer ones: split into sentences and pieces, or cut off at the end."""
    whole: bool = False
    """Translate a line as one also where it has several sentences and the run has learned from
    single ones. Otherwise they are translated one by one: such a model tends to stop after the
    first."""
    shortlist: bool = False
    """Choose among the words that a source can lead to (``dragoman shortlist`` learns them), not
    among all: faster, with int8. Probabilities are then relative to that choice."""
    threads: int = Field(0, ge=0, le=1024)
    """Processor cores to use; 0: all that this process may use."""

    @classmethod
    def check(cls, **values: object) -> Self:
        """The settings, or a ``DragomanError`` that says in one line what is allowed."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problem = error.errors()[0]
            name = "-".join(str(part) for part in problem["loc"]).replace("_", "-")
            given = problem["input"]
            raise DragomanError(f"--{name}: {problem['msg']} (given: {given!r})") from None


@dataclass(frozen=True)
class Translation:
    """One translation. ``str(translation)`` is its text."""

    source: str
    """The text that was given."""
    text: str
    """Its translation: one line for one line."""
    score: float
    """Log-probability over length penalty (see ``search.hypothesis``); higher is better. Summed
    over the sentences of a text that was split."""
    token_log_probabilities: tuple[float, ...]
    """log P of each token, in nats, and of the end symbol if the model ended the sentence. With a
    shortlist, P is the share among the tokens that it allows."""
    alternatives: tuple[Translation, ...] = ()
    """The further hypotheses when more than one was asked for, best first."""
    ids: tuple[int, ...] = ()
    """The tokens as ids."""
    prepared: str = ""
    """What the model wrote before it was put back into plain text; the same as ``text`` but where
    the model was trained on text prepared by Moses."""
    attention: AttentionRecord | None = None
    """Where every layer and head looked, when asked for."""
    vocabulary: Text | None = field(default=None, repr=False, compare=False)
    """What the ids are of."""

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Target tokens as the vocabulary writes them, without the end symbol."""
        return () if self.vocabulary is None else tuple(self.vocabulary.pieces(self.ids))

    def __str__(self) -> str:
        return self.text

    def __getstate__(self) -> dict[str, Any]:
        """To another process goes what the tokens are, not the whole vocabulary."""
        return {**self.__dict__, "tokens": self.tokens, "vocabulary": None}

    def _repr_html_(self) -> str:
        """How a notebook shows it: the probability of each token, attention if asked for."""
        return translation_html(
            self.source,
            self.text,
            self.tokens,
            self.token_log_probabilities,
            self.score,
            [(other.text, other.score) for other in self.alternatives],
            None if self.attention is None else in_words(self.attention),
        )


def with_beams(settings: SearchSettings, beam: int | None, n_best: int | None) -> SearchSettings:
    """Another width, more hypotheses; the beam is widened to hold them unless it is given.

    Errors: ``RecipeError`` where the two do not agree.
    """
    changes = [] if beam is None else [f"beam={beam}"]
    if n_best is not None:
        changes.append(f"n_best={n_best}")
        if beam is None and settings.sampling is None and n_best > settings.beam:
            changes.append(f"beam={n_best}")
    return parse_search(settings, changes) if changes else settings


def parse_search(settings: SearchSettings, changes: Sequence[str]) -> SearchSettings:
    """Search settings with ``key=value`` merged in. Errors: ``RecipeError``."""
    recipe = Recipe(search=settings).change([f"search.{change}" for change in changes])
    return recipe.search


class Translator:
    """A trained model, ready to translate. Make one with ``dragoman.load``.

    Not for several threads at once; a server gives each run one thread.
    """

    def __init__(
        self,
        run: Run,
        settings: TranslatorSettings | None = None,
        search_settings: SearchSettings | None = None,
    ) -> None:
        self.run = run
        self.settings = settings or TranslatorSettings()
        self.search_settings = search_settings or run.recipe.search
        self.plain = run.model()
        """The model without fast paths, for looking; whoever changes it opens his own."""
        shortlist = load_shortlist(run) if self.settings.shortlist else None
        self._path: FastPath = fastest(
            self.plain, self.settings.precision, shortlist, cache_folder()
        )
        self._threads = self.settings.threads or cores()
        self._single = learned_single_sentences(run)
        self._has_warned = False

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process goes the folder's path, and the run is opened anew there."""
        return _reopened, (self.run.folder.absolute(), self.settings, self.search_settings)

    @property
    def description(self) -> str:
        """One line: which path translates on this machine, and why."""
        return self._path.reason

    @property
    def precision(self) -> str:
        """What it computes in: int8, bf16 or fp32."""
        return self._path.precision

    # ---- translating

    def __call__(
        self,
        text: str,
        *,
        settings: SearchSettings | None = None,
        beam: int | None = None,
        n_best: int | None = None,
        prefix: str = "",
        attention: bool = False,
    ) -> Translation:
        """Translate one text. ``prefix`` is how the translation must begin.

        ``settings`` replace the run's own; ``beam`` and ``n_best`` change them. With ``attention``
        the text is translated as one, however many sentences it has. Several texts go to
        ``batch``, any number to ``stream``.
        """
        if not isinstance(text, str):
            raise TypeError(
                f"a translator takes one text, not {type(text).__name__}; "
                "give several to translator.batch, or any number to translator.stream"
            )
        chosen = with_beams(settings or self.search_settings, beam, n_best)
        whole = attention or self.settings.whole
        (translation,) = self._translate([text], chosen, [prefix], whole=whole)
        if attention:
            return replace(translation, attention=self.look(text, translation.ids))
        return translation

    def batch(
        self,
        texts: Iterable[str],
        *,
        settings: SearchSettings | None = None,
        beam: int | None = None,
        n_best: int | None = None,
        prefixes: Iterable[str] | None = None,
    ) -> list[Translation]:
        """Translate several texts, in their order. Each gives one line, an empty one an empty one.

        ``prefixes``: how each translation must begin, "" for those that may begin as they like.
        Errors: ``SearchError`` for a prefix that is too long.
        """
        listed = _listed(texts, "batch")
        begun = None if prefixes is None else _listed(prefixes, "batch")
        if begun is not None and len(begun) != len(listed):
            raise DragomanError(f"{len(listed)} texts and {len(begun)} prefixes: give one for each")
        chosen = with_beams(settings or self.search_settings, beam, n_best)
        return self._translate(listed, chosen, begun, whole=self.settings.whole)

    def _translate(
        self,
        texts: Sequence[str],
        settings: SearchSettings,
        prefixes: Sequence[str] | None,
        *,
        whole: bool,
    ) -> list[Translation]:
        begun: list[list[int]] = [[] for _ in texts]
        if prefixes and any(prefixes):
            begun = self.run.target_ids(prefixes)
        pieces: list[tuple[int, str, list[int]]] = []  # text, separator behind, source tokens
        beginnings: list[list[int]] = []
        for number, (text, ids) in enumerate(zip(texts, self.run.source_ids(texts), strict=True)):
            for place, (part, behind) in enumerate(self._pieces(text, ids, whole=whole)):
                pieces.append((number, behind, part))
                beginnings.append(begun[number] if place == 0 else [])
        lengths = [len(ids) for _, _, ids in pieces]
        sources = torch.tensor([token for _, _, ids in pieces for token in ids]).split(lengths)
        requests = [
            Request(source, settings, tuple(beginning))
            for source, beginning in zip(sources, beginnings, strict=True)
        ]
        # int8 kernels run on one core each; torch spreads over all of them.
        found = self._searcher.each(
            requests, lambda n, hypotheses: self._translation(texts[pieces[n][0]], *hypotheses)
        )
        by_text: list[list[tuple[str, Translation]]] = [[] for _ in texts]
        for (number, behind, _), translation in zip(pieces, found, strict=True):
            by_text[number].append((behind, translation))
        return [self._join(text, parts) for text, parts in zip(texts, by_text, strict=True)]

    def stream(
        self, texts: Iterable[str], *, settings: SearchSettings | None = None
    ) -> Iterator[Translation]:
        """Translate any number of texts, a window at a time, in their order and in flat memory."""
        if isinstance(texts, str):
            raise TypeError("translator.stream takes many texts; give a single one to translator()")
        waiting = iter(texts)
        while window := list(islice(waiting, WINDOW)):
            yield from self.batch(window, settings=settings)

    def paragraphs(
        self, text: str, *, settings: SearchSettings | None = None, prefix: str = ""
    ) -> str:
        """Running text: its sentences are translated and put back between their own spaces.

        ``prefix`` is how the translation of the first must begin.
        """
        sentences = segment(text, self.run.recipe.languages.source)
        first = next((n for n, sentence in enumerate(sentences) if sentence.text), None)
        prefixes = [prefix if n == first else "" for n in range(len(sentences))]
        results = self._translate(
            [s.text for s in sentences], settings or self.search_settings, prefixes, whole=True
        )
        return rejoin(sentences, [r.text for r in results], self.run.recipe.languages.target)

    # ---- measuring and looking

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[Translation]:
        """Score given translations (force decoding): ``text`` is the given target."""
        pairs = list(pairs)
        sources = [source for source, _ in pairs]
        targets = self.run.target_ids([target for _, target in pairs])
        return [
            self._translation(source, hypothesis, text=target)
            for (source, target), hypothesis in zip(
                pairs, self.score_ids(sources, targets), strict=True
            )
        ]

    def score_ids(
        self, sources: Sequence[str], targets: Sequence[Sequence[int]]
    ) -> list[Hypothesis]:
        """``score`` of translations that are given as tokens, without end symbols."""
        return force_decode(
            self.plain,
            [torch.tensor(ids) for ids in self.run.source_ids(sources)],
            targets,
            bos=self.run.target_text.bos,
            eos=self.run.target_text.eos,
            length_penalty=self.search_settings.length_penalty,
        )

    def look(
        self, source: str, target_ids: Sequence[int], through: Probe | None = None
    ) -> AttentionRecord:
        """Every attention weight of a translation, by the plain model: see ``AttentionRecord``.

        ``through``: a recording probe that reaches in, with heads switched off or words hidden.
        """
        model, target_text = self.plain, self.run.target_text
        ids = self.source_ids(source)
        prefix = [target_text.bos, *target_ids]
        with torch.inference_mode(), through or Probe() as probe:
            memory = model.encode(Sequences.of([torch.tensor(ids)]))
            model.decode(Sequences.of([torch.tensor(prefix)]), memory)

        def stack(part: str, rows: int, columns: int) -> npt.NDArray[np.float32]:
            weights = [probe.attention[one.name][0] for one in model.attentions_of(part)]
            if not weights:
                return np.zeros((0, 0, rows, columns), np.float32)
            stacked: npt.NDArray[np.float32] = torch.stack(weights).float().numpy()
            return stacked

        s, t = len(ids), len(prefix)
        return AttentionRecord(
            source=self.run.source_text.pieces(ids),
            target=[*target_text.pieces(target_ids), target_text.pieces([target_text.eos])[0]],
            encoder=stack("encoder", s, s),
            decoder=stack("decoder", t, t),
            cross=stack("cross", t, s),
        )

    # ---- inside

    def source_ids(self, text: str) -> list[int]:
        """Source tokens with the end symbol."""
        return self.run.source_ids([text])[0]

    def _pieces(self, text: str, ids: list[int], *, whole: bool) -> list[tuple[list[int], str]]:
        """The parts of one text that are translated by themselves, and what stands behind each."""
        eos, longest = self.run.source_text.eos, self.settings.longest
        if len(ids) == 1 or not text.strip():
            return []
        if len(ids) > longest and self.settings.long_lines == "cut":
            logger.warning("a line of %d tokens is cut to %d", len(ids), longest)
            return [([*ids[: longest - 1], eos], "")]
        if len(ids) > longest:
            logger.warning("a line of %d tokens is longer than %d and is split", len(ids), longest)
            sentences = segment(text, self.run.recipe.languages.source)
        else:
            sentences = [Sentence(text, "")] if whole else self._sentences(text)
        parts: list[tuple[list[int], str]] = []
        for sentence in sentences:
            tokens = ids[:-1] if len(sentences) == 1 else self.source_ids(sentence.text)[:-1]
            for begin in range(0, len(tokens), longest - 1):
                parts.append(([*tokens[begin : begin + longest - 1], eos], self._space))
            if parts and sentence.gap:
                parts[-1] = (parts[-1][0], sentence.gap.replace("\n", " "))
        return [*parts[:-1], (parts[-1][0], "")] if parts else []

    def _sentences(self, text: str) -> list[Sentence]:
        """The sentences of a line where they are to be translated one by one, else the line."""
        if self._single is False or (self._single is None and self._has_warned):
            return [Sentence(text, "")]
        sentences = segment(text, self.run.recipe.languages.source)
        if self._single or len(sentences) == 1:
            return sentences
        if sum(bool(sentence.text) for sentence in sentences) > 1:
            self._has_warned = True
            logger.warning(
                "%r has more than one sentence and is translated as one. A model that has learned "
                "from single sentences may leave out all but the first: --paragraphs (from Python: "
                "translator.paragraphs) translates them one by one",
                text if len(text) < 60 else f"{text[:60]}…",
            )
        return [Sentence(text, "")]

    @cached_property
    def _space(self) -> str:
        """What stands between two pieces whose source has nothing between them."""
        return " " if writes_spaces(self.run.recipe.languages.target) else ""

    @cached_property
    def _searcher(self) -> Searcher:
        target = self.run.target_text
        return Searcher(
            self._path.model,
            bos=target.bos,
            eos=target.eos,
            forbidden=target.forbidden,
            capacity_rows=self.settings.rows,
            workers=self._threads if self._path.one_core_each else 1,
        )

    def _join(self, source: str, parts: Sequence[tuple[str, Translation]]) -> Translation:
        """One translation of the parts of a text, with what stands behind each."""
        if not parts:
            return Translation(source, "", 0.0, ())
        if len(parts) == 1:
            return parts[0][1]
        return Translation(
            source,
            "".join(part.text + behind for behind, part in parts),
            sum(part.score for _, part in parts),
            tuple(value for _, part in parts for value in part.token_log_probabilities),
            ids=tuple(i for _, part in parts for i in part.ids),
            prepared="".join(part.prepared + behind for behind, part in parts),
            vocabulary=self.run.target_text,
        )

    def _translation(
        self, source: str, hypothesis: Hypothesis, *others: Hypothesis, text: str | None = None
    ) -> Translation:
        """``others`` become its alternatives; ``text`` is what was given, where it was."""
        target = self.run.target_text
        return Translation(
            source,
            self.run.plain_text(hypothesis.tokens) if text is None else text,
            hypothesis.score,
            hypothesis.token_log_probabilities,
            tuple(self._translation(source, other) for other in others),
            ids=hypothesis.tokens,
            prepared=target.decode(hypothesis.tokens),
            vocabulary=target,
        )


def learned_single_sentences(run: Run) -> bool | None:
    """Whether hardly a line of the training text had more than one sentence; None: not known.

    Runs of earlier versions do not say, nor do those of Moses tokens.
    """
    try:
        share = run.notes().get(SEVERAL_SENTENCES)
    except RunError:  # a damaged note must not keep anybody from translating
        return None
    return share < _SEVERAL if isinstance(share, float) else None


_SEVERAL = 0.02
"""Below this share of training lines with several sentences a model has not learned to go on: 0.0
of the demo's lines have several, 0.0001 of Multi30k's and Tatoeba's, 0.37 of Python's manual's."""


def _reopened(
    folder: Path, settings: TranslatorSettings, search_settings: SearchSettings
) -> Translator:
    return Translator(Run.open(folder), settings, search_settings)


def _listed(texts: Iterable[str], method: str) -> list[str]:
    """Errors: ``TypeError`` for one text, or for what is none."""
    if isinstance(texts, str):
        raise TypeError(f"translator.{method} takes several texts; give one to translator()")
    listed = list(texts)
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(
                f"translator.{method} takes texts; number {number}, counted from 0, is "
                f"{type(text).__name__}"
            )
    return listed
