"""dragoman, as its users have it: ``Translator`` on text, ``search`` on token ids."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from conversation import Job, converse
from safetensors.torch import load_file

import dragoman
from dragoman.models.catalogue.fastest import fastest
from dragoman.models.settings import TransformerSettings
from dragoman.models.shortlist import Shortlist
from dragoman.models.transformer.model import Transformer
from dragoman.native import library
from dragoman.search.offline import Searcher
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings

BOS, EOS = 1, 2


class Ours:
    version = f"{metadata.version('dragoman')}, {library.status().level or 'no'} kernels"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.precision = ""
        self.threads = 0
        self.loaded: tuple[Any, ...] = ()
        self.searcher: Searcher | None = None
        self.translator: Any = None

    def prepare(self, job: Job) -> None:
        short = bool(job.get("shortlist"))
        wanted = job["precision"], job["threads"], job["rows"], short
        if wanted == self.loaded:
            return
        self.loaded = wanted
        self.precision, self.threads, *_ = wanted
        run = self.folder / "run"
        if run.exists():
            settings = dragoman.TranslatorSettings(
                precision=self.precision, threads=self.threads, rows=job["rows"], shortlist=short
            )
            self.translator = dragoman.load(run.resolve(), settings)
        else:
            torch.set_num_threads(1 if self.precision == "int8" else self.threads)
            settings_of_model = (self.folder / "model.json").read_text(encoding="utf-8")
            model_settings = TransformerSettings.model_validate_json(settings_of_model)
            weights = load_file(self.folder / "model.safetensors")
            size = len(weights["source_embedding.weight"])
            model = Transformer(model_settings, size, size)
            model.load_state_dict(weights)
            shortlist = None
            if short:
                path = self.folder / "shortlist.safetensors"
                shortlist = Shortlist.load(path, "random", size, size, EOS)
            path = fastest(model.requires_grad_(False), self.precision, shortlist)
            workers = self.threads if path.one_core_each else 1
            self.searcher = Searcher(
                path.searched, bos=BOS, eos=EOS, capacity_rows=job["rows"], workers=workers
            )

    def translate(self, job: Job, sources: list[Any]) -> list[Any]:
        settings = SearchSettings(
            beam=job["beam"], max_length=job["length"], length_penalty=job["alpha"]
        )
        if self.translator is not None:
            if len(sources) == 1:
                return [self.translator(sources[0], settings=settings).text]
            return [t.text for t in self.translator.stream(sources, settings=settings)]
        assert self.searcher is not None
        asked = [Request(torch.tensor(source), settings) for source in sources]
        return [list(hypotheses[0].tokens) for hypotheses in self.searcher(asked)]


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    converse(Ours(Path(sys.argv[1])))
