"""CTranslate2 over the same weights, as ``dragoman export`` writes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ctranslate2
from conversation import Job, converse

SPECIAL = {0: "<unk>", 1: "<s>", 2: "</s>"}


class CTranslate2:
    version = ctranslate2.__version__

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loaded: tuple[Any, ...] = ()
        self.translator: Any = None
        self.texts: Any = None
        if (folder / "run").exists():
            import sentencepiece

            def text(side: str) -> Any:
                own = folder / "run" / f"{side}.model"
                return sentencepiece.SentencePieceProcessor(
                    str(own if own.exists() else folder / "run" / "shared.model")
                )

            self.texts = text("source"), text("target")

    def prepare(self, job: Job) -> None:
        # What a job leaves out is as CTranslate2 ships it.
        wanted = job["compute_type"], job.get("workers", 1), job.get("threads", 0)
        if wanted == self.loaded:
            return
        self.translator = None
        self.translator = ctranslate2.Translator(
            str(self.folder / "ctranslate2"),
            compute_type=wanted[0],
            inter_threads=wanted[1],
            intra_threads=wanted[2],
        )
        self.loaded = wanted

    def translate(self, job: Job, sources: list[Any]) -> list[Any]:
        ids = sources if self.texts is None else self.texts[0].encode(sources)
        # It adds the end symbol itself.
        tokens = [[SPECIAL.get(i, str(i)) for i in sentence if i != 2] for sentence in ids]
        # One more than asked for: ours spends a step on the end symbol, so that all do equal work.
        longest = job["length"] + 1 if job["length"] else max(map(len, tokens)) + 51
        results = self.translator.translate_batch(
            tokens,
            beam_size=job["beam"],
            max_batch_size=job.get("batch", 0),
            batch_type=job.get("batch_type", "examples"),
            max_decoding_length=longest,
            length_penalty=job["alpha"],
        )
        ids_of = {name: i for i, name in SPECIAL.items()}
        found = [[ids_of[t] if t in ids_of else int(t) for t in r.hypotheses[0]] for r in results]
        found = [f[: job["length"]] for f in found]
        return found if self.texts is None else self.texts[1].decode(found)


if __name__ == "__main__":
    converse(CTranslate2(Path(sys.argv[1])))
