"""How many functions and files one sentence goes through, and one update of a training.

    .venv/bin/python tests/walks.py
    .venv/bin/python tests/walks.py --list parse

Counted are the functions of ``src/dragoman`` that are called, each once, by ``sys.setprofile``:
methods, properties and functions within others too, comprehensions and lambdas not. Everything is
warm: a sentence went through before the one that is counted, so that what is made once and kept
counts for nothing. Models are small and of random weights, computed by kernels where the machine
has them; what happens in these is not seen.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "doubles"), str(ROOT / "tests" / "serving")]
os.environ |= {"OMP_NUM_THREADS": "1", "DRAGOMAN_MEASURE": "off"}
SOURCE = str(ROOT / "src" / "dragoman")
SENTENCES = ("the dog sees a tree .", "a cat sees the old dog .")

Found = dict[str, set[CodeType]]
"""The functions that were called, by file."""


class Watch:
    """Whether calls are counted now, in all threads."""

    def __init__(self) -> None:
        self.found: Found = defaultdict(set)
        self.is_on = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not self.is_on or event != "call" or not code.co_filename.startswith(SOURCE):
            return
        if not code.co_name.startswith("<"):
            self.found[code.co_filename.removeprefix(SOURCE + os.sep)].add(code)

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


def translate(watch: Watch, folder: Path) -> None:
    """``POST /v1/translate``."""
    from serving_echo import post, serves
    from untrained_run import untrained_run

    from dragoman.tasks.catalogue import Run

    run = untrained_run(folder, "model.encoder_layers=1", "model.decoder_layers=1")

    async def ask() -> None:
        async with serves(Run.open(run), "walk")() as client:
            await post(client, "/v1/translate", text=SENTENCES[0])
            with watch.counting():
                await post(client, "/v1/translate", text=SENTENCES[1])

    asyncio.run(ask())


def parse(watch: Watch, folder: Path) -> None:
    """``dragoman parse``, from the open run on."""
    from untrained_run import untrained_run

    from dragoman.tasks.catalogue import Run
    from dragoman.tasks.parsing.parser import Parser

    parser = Parser(Run.open(untrained_run(folder, recipe_name="demo-trees")))
    parser(SENTENCES[0])
    with watch.counting():
        parser(SENTENCES[1])


def update(watch: Watch, folder: Path) -> None:
    """One update of a translator's training, its report among it."""
    from tiny_tasks import tiny_recipe_of

    from dragoman.tasks.training import train
    from dragoman.training.trainer import Trainer

    own, done = Trainer._update, 0

    def counted(trainer: Trainer, *given: Any) -> None:
        nonlocal done
        done += 1
        if done != 2:
            return own(trainer, *given)
        with watch.counting():
            own(trainer, *given)

    Trainer._update = counted  # type: ignore[method-assign]
    recipe = tiny_recipe_of("translation", folder, "training.updates=3")
    train(recipe, folder / "run", say=lambda _: None, display=False, measure=False)
    assert done == 3


WALKS: dict[str, Callable[[Watch, Path], None]] = {
    "translate": translate,
    "update": update,
    "parse": parse,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("walks", nargs="*", metavar="WALK", help=", ".join(WALKS))
    options.add_argument("--list", action="store_true", help="name the functions of each file")
    given = options.parse_args()
    if unknown := set(given.walks) - WALKS.keys():
        options.error(f"there is no {', '.join(sorted(unknown))}: choose of {', '.join(WALKS)}")
    for name in given.walks or WALKS:
        watch = Watch()
        threading.setprofile(watch)
        sys.setprofile(watch)
        with tempfile.TemporaryDirectory() as folder:
            WALKS[name](watch, Path(folder))
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        count = sum(map(len, watch.found.values()))
        print(f"{name}: {count} functions in {len(watch.found)} files")
        for file, codes in sorted(watch.found.items()) if given.list else ():
            print(f"  {file}: {', '.join(sorted(code.co_qualname for code in codes))}")


if __name__ == "__main__":
    main()
