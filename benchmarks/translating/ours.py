"""dragoman, as its users have it: ``Translator`` on text, ``search`` on token ids."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from conversation import Job, converse
from safetensors.torch import load_file

import dragoman
from dragoman.inference.fast import Path as FastPath
from dragoman.inference.fast import fastest
from dragoman.models.transformer import Transformer, TransformerSettings
from dragoman.search.offline import search
from dragoman.search.request import Request, SearchSettings

BOS, EOS = 1, 2


class Ours:
    version = "this"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.precision = ""
        self.threads = 0
        self.path: FastPath | None = None
        self.translator: Any = None

    def prepare(self, job: Job) -> None:
        if (job["precision"], job["threads"]) == (self.precision, self.threads):
            return
        self.precision, self.threads = job["precision"], job["threads"]
        run = self.folder / "run"
        if run.exists():
            settings = dragoman.TranslatorSettings(
                precision=self.precision, threads=self.threads, rows=job["rows"]
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
            self.path = fastest(model.requires_grad_(False), self.precision)

    def translate(self, job: Job, sources: list[Any]) -> list[Any]:
        settings = SearchSettings(beam=job["beam"], max_length=job["length"])
        if self.translator is not None:
            return [t.text for t in self.translator.stream(sources, settings=settings)]
        assert self.path is not None
        workers = self.threads if self.path.precision == "int8" else 1
        found = search(
            self.path.model,
            [Request(torch.tensor(source), settings) for source in sources],
            bos=BOS, eos=EOS, capacity_rows=job["rows"], workers=workers,
        )  # fmt: skip
        return [list(hypotheses[0].tokens) for hypotheses in found]


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    converse(Ours(Path(sys.argv[1])))
