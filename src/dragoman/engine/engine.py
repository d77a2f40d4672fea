"""A model ready for inference: the network, the forms of its source and target, the fastest path on
this machine, and the limits of its search.

Translation, generation, evaluation, serving and inspection all use an ``Engine``. The forms define
which symbols an output may not contain, how an input is cut and how long an output may become; the
engine applies these limits and chooses the path that runs the model::

    raw --source form--> values --request, search--> hypotheses --target form--> raw

An engine turns tokens into hypotheses; ``Translator`` and the server convert text to tokens and
back. If kernels run the model, and an earlier process has measured them on this machine, torch is
imported only when the network itself is needed: to score a given output, or to read its attention
(``attention.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DragomanError, RunError, SearchError
from dragoman.engine.machine import cores
from dragoman.engine.settings import EngineSettings
from dragoman.forms.form import Form, Passage, Values
from dragoman.forms.sides import Forms
from dragoman.forms.text_form import TextForm, as_text
from dragoman.models.catalogue.fastest import (
    Path,
    as_it_is,
    beside_ctc,
    fastest,
    together,
    without_torch,
)
from dragoman.models.searched import Source
from dragoman.models.shortlist import Shortlist
from dragoman.runs.run import Run
from dragoman.runs.user_cache import cache_folder
from dragoman.search.hypothesis import Hypothesis, StepRecord
from dragoman.search.offline import Searcher
from dragoman.search.request import Request
from dragoman.search.scheduler import Scheduler
from dragoman.search.settings import SearchSettings

if TYPE_CHECKING:
    import torch

    from dragoman.engine.attention import AttentionReader
    from dragoman.models.ensemble import Ensemble
    from dragoman.models.interface import Network, Writing
    from dragoman.training.settings import GuidedSettings


class Engine:
    """One model, ready for inference. Several threads may call only its ``scheduler``."""

    def __init__(
        self,
        network: Network | None,
        source: Form,
        target: Form,
        search: SearchSettings,
        *,
        path: Path | None = None,
        settings: EngineSettings | None = None,
        device: torch.device | str = "cpu",
        ensemble: Ensemble | None = None,
        places: int | None = None,
        guided: GuidedSettings | None = None,
        opens: Callable[[], Network] | None = None,
        writes: bool = True,
    ) -> None:
        """``network``: the model in torch; None: ``opens`` makes it when it is first needed.
        ``search``: the search settings, unless a request has its own. ``path``: the implementation
        that runs the model; None: the network itself. ``ensemble``: the plain models of several
        runs together, where ``path`` runs several; ``network`` is then the model of the first run.
        ``places``: the number of positions that the model has on either side
        (``ModelSettings.longest``); None: that of ``network``. ``guided``: the settings by which a
        head was trained to align. ``writes``: True if outputs are searched for; False for a model
        that only makes predictions about its input."""
        self._made = network
        self._opens = opens
        self._ensemble = ensemble
        self._guided = guided
        self.places = places
        """The number of positions that the model has on either side; None: any number."""
        if network is not None and places is None:
            self.places = network.settings.longest
        self.source = source
        self.target = target
        self.search_settings = search
        self.settings = settings or EngineSettings()
        self.writes = writes
        self._path = path
        self.device = device

    @classmethod
    def open(
        cls,
        run: Run,
        settings: EngineSettings,
        search: SearchSettings | None = None,
        shortlist: Shortlist | None = None,
        others: Sequence[Run] = (),
    ) -> Engine:
        """Open the engine of a run; with ``others``, that of an ensemble, whose text and search are
        those of ``run``. Errors: ``RunError``, also for a run that writes nothing."""
        if not run.task.writes:
            raise RunError(run.writes_no_text)
        if run.lacks_tag:
            raise RunError(run.lacks_tag)
        forms = run.source, run.target, search or run.recipe.search
        chosen = settings.precision, shortlist, cache_folder()
        guided = run.recipe.training.guided
        if not others:
            # Held: by the time that the network is asked for, a training may have put other weights
            # into the run.
            held, sizes = run.held_weights(), (run.source.size, run.target.size)
            path = None
            if not run.task.reads_files:  # rows are read by torch
                path = without_torch(run.recipe.model, sizes, held, *chosen, cache_folder("packed"))
            if path is not None:
                return cls(
                    None, *forms, path=path, settings=settings, guided=guided,
                    places=run.recipe.model.longest,
                    opens=lambda: _writing(run.model_of(held.read_again())),
                )  # fmt: skip
            network = _writing(run.model())
            path = fastest(network, *chosen)
            return cls(network, *forms, path=path, settings=settings, guided=guided)
        from dragoman.engine.ensemble import readers_of
        from dragoman.models.ensemble import Ensemble

        readers = readers_of([run, *others])
        networks = [_writing(member.model()) for member in (run, *others)]
        path = together([fastest(network, *chosen) for network in networks], readers)
        ensemble = Ensemble(networks, readers)
        places = [p for network in networks if (p := network.settings.longest) is not None]
        return cls(
            networks[0], *forms, path=path, settings=settings, ensemble=ensemble,
            places=min(places, default=None), guided=guided,
        )  # fmt: skip

    @classmethod
    def reading(cls, run: Run, settings: EngineSettings) -> Engine:
        """Open the engine of a run that only reads: for the probabilities of its outputs and for
        inspection."""
        context = run.recipe.plan.context
        return cls(
            run.model(), *run.forms, run.recipe.search,
            settings=settings, places=context, writes=False,
        )  # fmt: skip

    @cached_property
    def path(self) -> Path:
        """The implementation that runs the model; only models that write have one.

        Errors: ``RunError`` for a search by CTC in a model that was trained without it.
        """
        path = self._path or as_it_is(_writing(self._network), self.device)
        weight = self.search_settings.ctc_weight
        if not weight:
            return path
        head = self._network.ctc
        if head is None:
            raise RunError(
                f"search.ctc_weight = {weight:g}, but the model was trained without CTC. Set it "
                "to 0, or train with training.ctc_weight = 0.3"
            )
        return beside_ctc(path, head, weight, eos=self.target.eos, device=self.device)

    @property
    def description(self) -> str:
        """One line that names the implementation which runs the model on this machine, and the
        reason."""
        return self.path.reason if self.writes else "fp32 on plain torch"

    @property
    def _network(self) -> Network:
        if self._made is None:
            assert self._opens is not None, "a network, or what opens one"
            self._made = self._opens()
        return self._made

    @property
    def network(self) -> Network:
        """The model itself, for inspection. Errors: ``DragomanError`` for an ensemble, which is not
        a single network."""
        if self._ensemble is not None:
            raise DragomanError("an ensemble has no attention to look at. Open one of its runs")
        return self._network

    @property
    def has_inside(self) -> bool:
        """True if there is one ``network`` to inspect; False for an ensemble, which has several."""
        return self._ensemble is None

    @cached_property
    def attention(self) -> AttentionReader:
        """The reader of the network's attention. Errors: ``DragomanError`` for an ensemble."""
        from dragoman.engine.attention import AttentionReader

        writes = self.writes and self.network.settings.writes
        return AttentionReader(
            self.network, self.source, self.target, writes=writes, guided=self._guided
        )

    def over(self, network: Network) -> Engine:
        """Return an engine with the same forms and search, but another network, which runs without
        a fast path."""
        return Engine(network, self.source, self.target, self.search_settings)

    def between(self, forms: Forms) -> Engine:
        """Return an engine of the same model with other forms of the same vocabularies."""
        return Engine(
            None, *forms, self.search_settings, path=self._path, settings=self.settings,
            device=self.device, places=self.places, guided=self._guided,
            opens=lambda: self._network,
        )  # fmt: skip

    @property
    def written(self) -> TextForm:
        """The target form of a model that writes text. Errors: ``RunError`` for any other model."""
        return as_text(self.target)

    @property
    def workers(self) -> int:
        """The number of threads with which a search is fastest; each thread has its own batch. 0
        for a model that writes nothing."""
        if not self.writes:
            return 0
        return (self.settings.threads or cores()) if self.path.one_core_each else 1

    @cached_property
    def longest(self) -> int:
        """The most values of a source that the model reads at once: the number in the settings, but
        no more than the model has positions."""
        wished = self.settings.longest
        return wished if self.places is None else min(wished, self.places)

    # ---- text to values

    def cut(self, texts: Sequence[str], *, whole: bool) -> list[Passage]:
        """Cut each text into the pieces that are searched for one by one: see ``Form.cut``."""
        return self.source.cut(texts, self.target, longest=self.longest, whole=whole)

    def request(
        self,
        values: Sequence[int] | Source,
        settings: SearchSettings | None = None,
        prefix: Iterable[int] = (),
        record: list[StepRecord] | None = None,
        raw: str | None = None,
    ) -> Request:
        """Make the request for a search. ``values`` are those of the source form, with the end
        symbol; ``raw`` is the source as it was given, which only a form whose outputs have rules
        needs.

        The output is limited to the positions of the model, whatever ``settings`` say. Errors:
        ``SearchError`` if ``min_length`` exceeds that limit; ``DataError`` for a source that has no
        output.
        """
        chosen = settings or self.search_settings
        source = np.asarray(values)
        longest = self.source.longest_output(len(source), chosen.max_extra)
        most = None if self.places is None else self.places - 1  # the begin symbol takes one
        if most is not None:
            if chosen.min_length > most:
                raise SearchError(
                    f"min_length is {chosen.min_length}, but this model writes at most {most} "
                    f"tokens, because it has {self.places} positions (model.positions). Set "
                    "min_length to that or less"
                )
            longest = min(longest, most)
            if chosen.max_length is not None:
                chosen = chosen.model_copy(update={"max_length": min(chosen.max_length, most)})
        rules = None if raw is None else self.target.rules(raw, most)
        return Request(source, chosen, tuple(prefix), record, longest, rules)

    def requests(
        self,
        passages: Sequence[Passage],
        settings: SearchSettings,
        begun: Sequence[Sequence[int]] | None = None,
    ) -> list[Request]:
        """Make the request for each piece of each passage. ``begun``: for each passage, the tokens
        that its output begins with, if any. Errors: those of ``request``."""
        begins = [
            begin if place == 0 else ()
            for passage, begin in zip(passages, begun or [()] * len(passages), strict=True)
            for place in range(len(passage.pieces))
        ]
        sources = self.source.arrays([piece.values for whole in passages for piece in whole.pieces])
        return [
            self.request(source, settings, begin)
            for source, begin in zip(sources, begins, strict=True)
        ]

    # ---- generating

    def scheduler(self, spare: int = 0) -> Scheduler:
        """Make a scheduler, a batch that searches join and leave, for one thread of a server.
        ``spare``: the number of rows (hypotheses) that it has in addition to those of the
        settings."""
        rows = self.settings.rows + spare
        return Scheduler(self.path.searched, **self._batch | {"capacity_rows": rows})

    @cached_property
    def searcher(self) -> Searcher:
        """The searcher for any number of requests. It keeps its batches between calls."""
        return Searcher(self.path.searched, workers=self.workers, **self._batch)

    def search(self, requests: Iterable[Request]) -> list[list[Hypothesis]]:
        """Return the n best hypotheses of each request."""
        return list(self.searcher(requests))

    # ---- scoring, by the network itself

    def score(
        self, sources: Sequence[Sequence[int] | Values], targets: Sequence[Sequence[int]]
    ) -> list[Hypothesis]:
        """Score given outputs (force decoding). ``sources``: values of the source form;
        ``targets``: tokens."""
        import torch

        from dragoman.search.forced_decoding import force_decode

        return force_decode(
            self._ensemble or _writing(self._network),
            [torch.as_tensor(np.asarray(values)) for values in sources],
            targets,
            bos=self.target.bos,
            eos=self.target.eos,
            settings=self.search_settings,
            device=self.device,
        )

    def score_windows(
        self, texts: Iterable[Sequence[int]], context: int, stride: int
    ) -> Iterator[list[float]]:
        """Yield for each text the log-probabilities of its tokens and of its end symbol, for a
        model that reads no source, window by window (``search/forced_decoding.py``)."""
        from dragoman.search.forced_decoding import score_windows, whole

        return whole(score_windows(texts=texts, context=context, stride=stride, **self._alone))

    def score_parts(
        self, tokens: Sequence[int], context: int, stride: int, together: int
    ) -> Iterator[list[float]]:
        """Score one text as ``score_windows`` does, and yield the scores as they are computed:
        windows of at most ``together`` tokens at a time, but at least one window."""
        from dragoman.search.forced_decoding import score_windows

        for part, _ in score_windows(
            texts=[tokens], context=context, stride=stride, tokens_per_batch=together, **self._alone
        ):
            yield part

    def output_log_probabilities(
        self, values: Sequence[Sequence[int]], places: Sequence[Sequence[int]]
    ) -> list[npt.NDArray[np.float32]]:
        """Return log P of every output at some places of each input, (places, V) per input, for a
        model that writes nothing."""
        import torch

        from dragoman.nn.layout import Sequences

        source = Sequences.of([torch.tensor(list(ids)) for ids in values]).to(self.device)
        with torch.inference_mode():
            memory = self.network.encode(source)
            begins = memory.layout.offsets.tolist()
            rows = [
                begin + place for begin, some in zip(begins, places, strict=False) for place in some
            ]
            hidden = memory.rows[rows]
            scores = torch.log_softmax(self.network.project(hidden).float(), dim=-1).cpu()
        return [part.numpy() for part in scores.split([len(some) for some in places])]

    # ---- inside

    @property
    def _alone(self) -> dict[str, Any]:
        """The arguments for scoring texts with a model that reads no source."""
        import torch

        (nothing,) = self.source.values([""])
        return {
            "model": self._ensemble or self._network,
            "source": torch.tensor(nothing),
            "bos": self.target.bos,
            "eos": self.target.eos,
            "device": self.device,
        }

    @property
    def _rows(self) -> int:
        """The number of rows (hypotheses) of a batch: that of the settings if it is set, else the
        fastest."""
        asked = "rows" in self.settings.model_fields_set
        return self.settings.rows if asked else self.path.rows

    @property
    def _batch(self) -> dict[str, Any]:
        """The arguments of every batch of searches."""
        return {
            "bos": self.target.bos,
            "eos": self.target.eos,
            "forbidden": self.target.forbidden,
            "capacity_rows": self._rows,
        }


def _writing(network: Network) -> Writing:
    """Call ``models.interface.writing``, which imports torch, only where torch is imported
    anyway."""
    from dragoman.models.interface import writing

    return writing(network)
