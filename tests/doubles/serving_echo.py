"""A server to test: it translates every text into itself, as slowly and as wrongly as it is told.

Not a test: ``test_serving_*.py`` and the page's tests import it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import httpx
import torch
from fastapi import FastAPI
from refusal_kinds import KINDS
from torch import Tensor
from warm_server import WarmProcess, warm_process

from dragoman.engine.engine import Engine
from dragoman.forms.subwords.text import TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.forms.text_form import TextForm
from dragoman.models.interface import AttentionLayer, DecodeState, Memory, Writing
from dragoman.models.settings import ModelSettings, TransformerSettings
from dragoman.models.transformer.model import Transformer
from dragoman.nn import probes
from dragoman.nn.embedding import Embedding
from dragoman.nn.layout import Sequences
from dragoman.runs.run import Run
from dragoman.search.settings import SearchSettings
from dragoman.server import app as application
from dragoman.server.server import serve_app
from dragoman.serving.operate.log import set_up
from dragoman.serving.operate.middleware import Meters
from dragoman.serving.operate.settings import ServeSettings, bind, parse_settings
from dragoman.serving.service.catalogue import LanguageDetector
from dragoman.serving.service.served_run import ServedRun
from dragoman.tasks import program
from dragoman.tasks.translation.served import ServedTranslator

Served = Callable[..., contextlib.AbstractAsyncContextManager[httpx.AsyncClient]]
"""Settings of a server -> a client of it."""

SENTENCES = [
    "The animal didn't cross the street because it was too tired.",
    "Das Tier überquerte die Straße nicht, weil es zu müde war.",
    "그 동물은 너무 피곤해서 길을 건너지 않았다.",
    "A small man eats a dinosaur. Ein kleiner Mann isst einen Dinosaurier!",
    "Where is the bread? Wo ist das Brot?",
]
TEXT = learn_vocabulary(
    SENTENCES, TextSettings(vocabulary=420, byte_fallback=True, character_coverage=1)
)
ADDRESS = "http://127.0.0.1"
detector = functools.cache(LanguageDetector)
"""One for all tests: making it takes a second."""


UNTRAINED: Any = SimpleNamespace(
    folder="nowhere",
    written=0,
    recipe=SimpleNamespace(
        data=SimpleNamespace(embedded=""), training=SimpleNamespace(label_smoothing=0.0)
    ),
    lexicon=lambda: None,
    verdict=tuple,
    notes=dict,
    longest_words=lambda: None,
    scores=dict,
    metrics=tuple,
    sources_while_learning=list,
)
"""A run of which nothing is known."""


class EchoState(DecodeState):
    """Each row knows its source and how far it has come."""

    def __init__(self, memory: Memory) -> None:
        self.sources: list[Tensor] = []
        self.taken = torch.zeros(0, dtype=torch.int64)
        self.admit(memory)

    @property
    def rows(self) -> int:
        return len(self.sources)

    @property
    def lengths(self) -> Tensor:
        return self.taken

    def select(self, rows: Tensor) -> None:
        self.sources = [self.sources[row] for row in rows.tolist()]
        self.taken = self.taken[rows]

    def admit(self, memory: Memory) -> None:
        self.sources += torch.split(memory.rows[:, 0].long(), list(memory.layout.lengths))
        self.taken = torch.cat([self.taken, torch.zeros(memory.layout.batch, dtype=torch.int64)])


def in_step(source: int, target: int) -> Tensor:
    """(target, source) weights of a translation that keeps the order of its source."""
    places = (torch.arange(target) + 0.5) * source / max(1, target) - 0.5
    weights = (1 - (places[:, None] - torch.arange(source)).abs()).clamp(min=0)
    return weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-9)


def probabilities_after(source: Tensor, place: int) -> Tensor:
    """(V,) what is written behind ``place`` tokens."""
    probabilities = torch.full((TEXT.size,), 0.05 / (TEXT.size - 2))
    token = int(source[min(place, len(source) - 1)])
    probabilities[token] = 0.8
    probabilities[(token + 1) % TEXT.size] = 0.15
    return probabilities


class EchoModel(Writing):
    """Copies its source: the right token has 0.8, the one after it in the vocabulary 0.15."""

    def __init__(
        self,
        *,
        step_seconds: float = 0.0,
        fails_at: int | None = None,
        gate: threading.Event | None = None,
    ) -> None:
        """``fails_at``: a source token at which the model fails. ``gate``: no step is taken until
        it is set."""
        super().__init__()
        self.settings = ModelSettings(kind="echo", model_dim=2)
        self.embedding = Embedding(TEXT.size, 2)
        self.step_seconds, self.fails_at, self.gate = step_seconds, fails_at, gate
        self.seen_rows: list[int] = []

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return (AttentionLayer("cross", 0, 1, 1.0, "echo"),)

    @property
    def output_layer(self) -> Embedding:
        return self.embedding

    def input_terms(self, tokens: Tensor, side: str) -> dict[str, Tensor]:
        return {"embedding": self.embedding(tokens)}

    def encode(self, source: Sequences) -> Memory:
        if self.fails_at is not None and bool((source.values == self.fails_at).any()):
            raise RuntimeError("the model broke")
        return Memory(source.values.float()[:, None], source.layout)

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        lengths, sources = target_in.layout.lengths, memory.layout.lengths
        weights = torch.zeros(len(lengths), 1, max(lengths), max(sources))
        for row, (target, source) in enumerate(zip(lengths, sources, strict=True)):
            # The start symbol in front of a target and the end symbol of a source are no tokens.
            weights[row, 0, : target - 1, : source - 1] = in_step(source - 1, target - 1)
        if (probe := probes.opened.get()) is not None:
            probe.take_attention("echo", weights)
        read = torch.split(memory.rows[:, 0].long(), list(sources))
        places = [(one, place) for one, n in zip(read, lengths, strict=True) for place in range(n)]
        return torch.stack([probabilities_after(source, place) for source, place in places]).log()

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """What ``decode`` gives are the logits."""
        return hidden if ids is None else hidden[..., ids]

    def start(self, memory: Memory) -> EchoState:
        return EchoState(memory)

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, EchoState)
        if self.gate is not None:
            self.gate.wait(30)
        time.sleep(self.step_seconds)
        self.seen_rows.append(state.rows)
        places = zip(state.sources, state.taken.tolist(), strict=True)
        probabilities = [probabilities_after(source, place) for source, place in places]
        state.taken = state.taken + tokens.shape[1]
        return torch.stack(probabilities).log()


def echo_run(
    name: str = "echo",
    languages: tuple[str, str] = ("en", "de"),
    *,
    model: EchoModel | None = None,
    settings: ServeSettings | None = None,
) -> ServedTranslator:
    search = SearchSettings(beam=2, max_extra=5)
    return served_by(model or EchoModel(), name, languages, settings=settings, search=search)


def served_by(
    model: Writing,
    name: str = "tiny",
    languages: tuple[str, str] = ("en", "de"),
    *,
    search: SearchSettings,
    settings: ServeSettings | None = None,
) -> ServedTranslator:
    """A run of any model over the vocabulary of the tests, run as it is."""
    chosen = settings or ServeSettings()
    forms = [TextForm(TEXT, language) for language in languages]
    engine = Engine(model, *forms, search, settings=chosen)
    return ServedTranslator(name, engine, chosen, UNTRAINED)


def tiny_model() -> Transformer:
    """A plain model that knows nothing, to look into and to align by."""
    torch.manual_seed(3)
    sizes = TransformerSettings.model_validate(
        {"model_dim": 16, "ffn_dim": 32, "encoder_layers": 2, "decoder_layers": 2}
        | {"attention": {"num_heads": 2}}
    )
    return Transformer(sizes, TEXT.size, TEXT.size).eval()


def create_app(
    runs: Sequence[ServedRun], settings: ServeSettings, detector: LanguageDetector
) -> FastAPI:
    """A server of these runs, and of every task."""
    return application.create_app(runs, settings, detector, program.serving_tasks())


def open_run(run: Run, settings: ServeSettings, name: str) -> ServedRun:
    """A run that is served."""
    return program.serving_tasks().open(run, settings, name)


@contextlib.asynccontextmanager
async def client_of(
    *runs: ServedRun, settings: ServeSettings | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """A client that talks to a server of ``runs`` in this very process."""
    app = create_app(runs or (echo_run(),), settings or ServeSettings(), detector())
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
            yield client


def at(client: httpx.AsyncClient, host: str) -> httpx.AsyncClient:
    """Another client of the same server, at another address."""
    transport = client._transport
    assert isinstance(transport, httpx.ASGITransport)
    other = httpx.ASGITransport(transport.app, raise_app_exceptions=False, client=(host, 1))
    return httpx.AsyncClient(transport=other, base_url=ADDRESS)


def serves(run: Run, name: str, **always: Any) -> Served:
    """Opens a client of a server of that run alone; ``always``: settings that it always has."""

    def opened(**changes: Any) -> contextlib.AbstractAsyncContextManager[httpx.AsyncClient]:
        settings = ServeSettings(**always, **changes)
        return client_of(open_run(run, settings, name), settings=settings)

    return opened


async def post(client: httpx.AsyncClient, path: str, **values: Any) -> Any:
    """What a request that must be served is answered."""
    answer = await client.post(path, json=values)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(
    run: Run, name: str, path: str, values: Any, status: int, words: str, **settings: Any
) -> str:
    """The one error that a server of that run and of an echo gives, with some words in it; it is
    served on."""

    async def check() -> str:
        both = open_run(run, ServeSettings(**settings), name), echo_run()
        async with client_of(*both) as client:
            answer = await client.post(path, json=values)
            assert answer.status_code == status, answer.text
            body = answer.json()
            assert list(body) == ["error", "code", "values"] and words in body["error"]
            kind = KINDS[body["code"]]
            assert (kind.status, set(kind.values)) == (status, set(body["values"])), body
            assert (await client.get("/health")).json() == {"status": "ok"}
            error: str = answer.json()["error"]
            return error

    return asyncio.run(check())


def events_of(body: str) -> list[tuple[str, Any]]:
    """The events of a stream."""
    found = []
    for block in body.strip().split("\n\n"):
        name, data = block.split("\n", 1)
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def meters_of(client: httpx.AsyncClient) -> Meters:
    """The figures of the server that a client of ``client_of`` talks to."""
    transport = client._transport
    assert isinstance(transport, httpx.ASGITransport)
    app: Any = transport.app
    meters: Meters = app.state.service.meters
    return meters


async def until(condition: object, seconds: float = 10) -> None:
    """Wait until ``condition()`` is true; fail if it does not become so."""
    assert callable(condition)
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


@contextlib.contextmanager
def server_process(
    *changes: str, step_seconds: float = 0.0, said: list[str] | None = None
) -> Iterator[tuple[WarmProcess, str]]:
    """A server of its own that echoes -> the process and its address. ``said``: takes the lines of
    its log, once it is up."""
    with warm_process(serve_echo, changes, said, ECHO_STEP_SECONDS=str(step_seconds)) as served:
        yield served


def serve_echo(changes: list[str]) -> None:
    """A server with these settings that echoes, until it is stopped."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    chosen = parse_settings({"port": 0}, changes)
    slow = EchoModel(step_seconds=float(os.environ["ECHO_STEP_SECONDS"]))
    set_up(chosen.log)
    echo = create_app([echo_run(model=slow, settings=chosen)], chosen, LanguageDetector())
    serve_app(echo, chosen, bind(chosen), {})
