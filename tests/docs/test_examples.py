"""Every block of commands or of Python in README and guides: parsed always, run by the slow tests.

A block says what it holds: ``console`` has commands after "$ " and perhaps what they print, ``sh``
has commands alone, ``python`` is run, ``toml`` is a recipe (``test_settings_page.py``); ``text``
and ``json`` are shown.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import soundfile
from foreign_models import marian_folder
from PIL import Image
from row_files import RATE, tone, write_wav
from tiny_cells import tiny_cell
from tiny_scenes import write_scenes
from tiny_shapes import write_blocks
from tiny_tasks import tiny_recipe_of

from dragoman.cli.app import PANELS

ROOT = Path(__file__).parents[2]
RECORDS = {"results.md", "experiments.md", "decisions.md", "settings.md"}
"""What was done once, with its commands, and what has none."""
GUIDES = [
    ROOT / "README.md",
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if path.name not in RECORDS and path.parent.name not in ("experiments", "decisions")
    ),
]
NOT_RUN = {
    r"make |git |cd ": "they make an environment; test_readme.py knows the targets",
    r"pip |\. \.venv": "installing is `make test-slow`'s test of wheels",
    r"docker |kill |systemctl ": "they need an engine, or a server to stop",
    r"torchrun |OMP_NUM_THREADS|CUDA_VISIBLE": "test_readme.py gives them to torchrun's own parser",
    r"python benchmarks/": "they take hours, on text that is not in the tree",
    r"dragoman data (get|list)": "they fetch what is on other machines",
    r"dragoman train (movie-reviews|wsj-sample|multi30k)": "their text is not in the tree",
    r"dragoman .*mnist": "its pictures are not in the tree",
    r"dragoman \w+ .*(recordings|photos|idx3|pixels)": "what they read is not in the tree",
    r"dragoman train scenes$|dragoman detect .*data/scenes": "they are made of MNIST",
    r"dragoman (sweep|ablate|demo)\b(?!.*--list)": "minutes; tests/cli and tests/studies run them",
    r"dragoman compare .*--to report\.html": "it starts processes and measures; tests/studies",
    r"dragoman figure --all": "all figures take half a minute; tests/insight",
    r"dragoman .*--page": "its page stays until Ctrl-C; tests/serving",
    r"dragoman doctor --measure": "it times for a minute; tests/engine",
    r"dragoman .*(s3|gs)://": "buckets are on other machines; tests/cluster has one of its own",
    r"dragoman .*--watch": "it goes on until it is ended; tests/cluster/test_watch.py",
    r"dragoman prepare big\.toml|dragoman train prepared": "tests/cluster/test_prepare.py",
    r"dragoman serve ": "the server that answers the lines of curl is started by this file",
}
"""Commands that are only parsed, and why."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and content of each block."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """Each command of a page's blocks, in order, as a shell takes it."""
    found = []
    for language, content in blocks(page):
        joined = content.replace("\\\n", " ")
        lines = [line.strip() for line in joined.splitlines()]
        if language == "console":
            found += [line[2:] for line in lines if line.startswith("$ ")]
        elif language == "sh":
            found += [line for line in lines if line and not line.startswith("#")]
    return found


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_block_says_what_it_holds(page: Path) -> None:
    for language, content in blocks(page):
        assert language in ("console", "sh", "python", "toml", "text", "json"), content
        if language == "console":
            assert content.startswith("$ "), content


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_command_can_be_given(page: Path) -> None:
    """Verbs read their arguments: unknown options, missing values and wrong choices are refused."""
    verbs = {name: verb for panel in PANELS.values() for name, verb in panel.items()}
    for line in commands(page):
        for part in re.split(r"\s\|\s|&&", line):
            words = shlex.split(re.split(r"\s[<>#]\s?", part)[0])
            if words[:1] == ["dragoman"] and not words[1].isupper():
                verb, given = verbs[words[1]], words[2:]
                if words[1] == "data":
                    verb, given = verb.commands[given[0]], given[1:]
                if "--help" not in given:
                    verb.make_context(words[1], given)


RUNS = {
    "translation": "demo en-de en-ko base small lstm transformer 1 2 3",
    "language-model": "diary german",
    "masked": "blanks",
    "classification": "letters letters-from-diary topics",
    "tagging": "tagged wsj",
    "parsing": "trees",
    "detection": "scenes",
    "codes": "codes",
    "painting": "shapes",
}
"""The runs that pages use, by what they were trained for."""

RUNS_SERVED = (
    *("demo", "diary", "blanks", "letters", "trees", "tagged", "tones", "digits", "scenes"),
    *("lines", "talks", "shapes"),
)

CHANGES = {
    "translation": ["model.encoder_layers=2"],  # look.md opens the second
    "language-model": ["languages.target=de"],  # translate.md reranks German by it
}

PROGRAM = """\
#!{python}
# dragoman with trainings of two updates of a tiny model
import sys
words, changes = sys.argv[1:], []
if words[0] in ("train", "resume"):
    for option in ("--minutes", "--epochs"):
        while option in words:
            place = words.index(option)
            del words[place : place + 2]
if words[0] == "train":
    changes = ["training.updates=2", "training.validate_every=2", "training.schedule.warmup=1",
               "training.average_last=0", "evaluation.dev_sentences=5", "training.precision=fp32"]
    words += [f"--set={{change}}" for change in changes]
sys.argv[1:] = words
if __name__ == "__main__":  # and not in the processes that it starts
    from dragoman.cli.app import main
    main()
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny run of every task, and all files that pages name."""
    from dragoman.demo.corpus import demo_corpus
    from dragoman.tasks.training import train

    folder = tmp_path_factory.mktemp("shelf")
    for task, names in RUNS.items():
        text = folder / f"text-{task}"
        text.mkdir()
        first, *others = names.split()
        run = folder / "runs" / first
        recipe = tiny_recipe_of(task, text, *CHANGES.get(task, ()))
        train(recipe, run, say=lambda _: None, display=False, measure=False)
        for other in others:
            shutil.copytree(run, folder / "runs" / other)
    for name, source in (("tones", "frames"), ("digits", "picture")):
        recipe = tiny_cell("classification", "encoder", source, folder / f"files-{source}")
        train(recipe, folder / "runs" / name, say=lambda _: None, display=False, measure=False)
    shutil.copytree(folder / "runs" / "digits", folder / "runs" / "captions")  # judges pictures
    files = folder / "files"
    files.mkdir()
    of_sound = tiny_cell("translation", "transformer", "frames", folder / "text-talks")
    of_sound = of_sound.change(["training.ctc_weight=0.3"])  # which times words
    train(of_sound, folder / "runs" / "talks", say=lambda _: None, display=False, measure=False)
    lines = tiny_cell("translation", "transformer", "line", folder / "text-lines")
    train(lines, folder / "runs" / "lines", say=lambda _: None, display=False, measure=False)
    shutil.copytree(folder / "runs" / "lines", folder / "runs" / "multi30k-en-reader")
    for name in ("talk.wav", "monday.wav", "tuesday.wav"):
        write_wav(files / name, tone(400, 0.5))
    write_wav(files / "one.wav", tone(300, 0.3))
    soundfile.write(files / "talk.mp3", tone(300, 0.5), RATE)
    soundfile.write(files / "two.flac", tone(300, 0.3), RATE)
    Image.new("L", (28, 28)).save(files / "digit.png")
    Image.new("L", (60, 12), 255).save(files / "line.png")
    write_scenes(files, 40, name="scenes.json")
    write_blocks(files, copies=6, name="captions.tsv")
    shutil.copy(files / "scenes-001.png", files / "a.png")
    shutil.copy(files / "scenes.json", files / "boxes.json")
    old = demo_corpus(train_pairs=900, dev_pairs=1, test_pairs=1).train
    english, german = [pair.source for pair in old[:300]], [pair.target for pair in old[:300]]

    def write(name: str, lines: list[str]) -> None:
        (files / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    for name in ("my", "new"):
        write(f"{name}.en", english)
        write(f"{name}.de", german)
    write("my.ko", german)
    write("old.en", [pair.source for pair in old])
    write("old.de", [pair.target for pair in old])
    for name in ("letter.en", "test.en", "chapter.txt", "letter.txt", "new.txt"):
        write(name, english[:4])
    for name in ("test.de", "other.de", "theirs.de"):
        write(name, german[:4])
    write("diary.txt", english)
    head = "id,name,weight,price,description"
    write("products.csv", [head, *(f'{n},{one},,1,"{one}"' for n, one in enumerate(english[:3]))])
    (files / "corpus").mkdir()
    for name in ("a", "b"):
        packed = gzip.compress("".join(f"{line}\n" for line in english[:20]).encode())
        (files / "corpus" / f"{name}.en.gz").write_bytes(packed)
    write("articles.jsonl", [json.dumps({"id": 1, "body": line}) for line in english[:20]])
    write("letters.tsv", [f"{'ab'[n % 2]}\t{line}" for n, line in enumerate(english)])
    write("my.tsv", [f"{a}\t{b}" for a, b in zip(english, german, strict=True)])
    shutil.copy(folder / "text-parsing" / "toy.mrg", files / "trees.mrg")
    (tagged,) = (path for path in (folder / "text-tagging").iterdir() if path.is_file())
    shutil.copy(tagged, files / "tagged.tsv")
    write_documents(files, english, german)
    tags = {">>de<<": ">>deu<<", ">>ko<<": ">>kor<<"}
    for name, known in (
        ("opus-mt-en-de", {tag: tag.strip("<>") for tag in tags}),
        ("opus-mt-en-mul", tags),
    ):
        table = marian_folder(files / name) / "vocab.json"
        pieces = json.loads(table.read_text())
        table.write_text(json.dumps({known.get(piece, piece): n for piece, n in pieces.items()}))
    return folder


def write_documents(files: Path, english: list[str], german: list[str]) -> None:
    """A document of Word, a folder of documents, and a translation memory."""
    from docx import Document

    document = Document()
    for line in english[:3]:
        document.add_paragraph(line)
    document.save(str(files / "contract.docx"))
    for folder in ("manual", "locale"):
        (files / folder).mkdir()
        (files / folder / "page.md").write_text(f"# {english[0]}\n", encoding="utf-8")
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="de"><seg>{b}</seg></tuv></tu>'
        for a, b in zip(english, german, strict=True)
    )
    head = '<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>'
    (files / "memory.tmx").write_text(f"{head}{units}</body></tmx>", encoding="utf-8")


@pytest.fixture
def shell(shelf: Path, tmp_path: Path) -> Path:
    """A folder with all files that pages name, and a program ``dragoman``."""
    shutil.copytree(shelf / "files", tmp_path, dirs_exist_ok=True)
    for text in shelf.glob("text-*"):  # where the recipes of the runs say that it is
        shutil.copytree(text, tmp_path / text.name)
    program = tmp_path / "bin" / "dragoman"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "runs").mkdir()
    return tmp_path


def take_runs(text: str, shelf: Path, here: Path) -> None:
    """The runs that a command reads, where no command before it has made them."""
    made = set(re.findall(r"--to (?:runs/)([\w-]+)", text))
    if text.startswith("dragoman train "):  # which refuses a folder that is already a run
        begun = set(re.findall(r"--from runs/([\w-]+)", text))
        for run in (run for run in (here / "runs").iterdir() if run.name not in begun):
            shutil.rmtree(run)
    for name in set(re.findall(r"runs/([\w-]+)", text)) - made:
        if (shelf / "runs" / name).is_dir() and not (here / "runs" / name).exists():
            shutil.copytree(shelf / "runs" / name, here / "runs" / name)


def environment(here: Path) -> dict[str, str]:
    path = f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}


def is_run(line: str) -> bool:
    return not line.startswith("curl ") and not any(re.match(one, line) for one in NOT_RUN)


# The examples of --help, in verbs.md, name files of everybody's: they are parsed above.
TO_RUN = [page for page in GUIDES if page.name != "verbs.md" and any(map(is_run, commands(page)))]


@pytest.mark.slow
@pytest.mark.parametrize("page", TO_RUN, ids=lambda page: page.name)
def test_every_command_runs(page: Path, shelf: Path, shell: Path) -> None:
    for line in filter(is_run, commands(page)):
        take_runs(line, shelf, shell)
        done = subprocess.run(
            line, shell=True, cwd=shell, env=environment(shell), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, f"{page.name}: {line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, f"{page.name}: {line}\n{done.stderr}"


WITH_PYTHON = [page for page in GUIDES if any(name == "python" for name, _ in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_the_python_of_every_page_runs(page: Path, shelf: Path, shell: Path) -> None:
    """All of a page in one program: its later blocks use names of its earlier ones."""
    code = "\n".join(content for language, content in blocks(page) if language == "python")
    code = code.replace("training.updates=200", "training.updates=2")
    if "from openai import" in code:
        pytest.importorskip("openai", reason="the package openai is not installed")
    take_runs(code.replace('"runs/short"', ""), shelf, shell)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=shell, env=environment(shell),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, f"{page.name}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def server(shelf: Path) -> Iterator[int]:
    """A server over a run of every task that is served -> its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    runs = [str(shelf / "runs" / one) for one in RUNS_SERVED]
    command = [sys.executable, "-m", "dragoman", "serve", *runs, "--port", str(port), "--no-page"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment(shelf))
    try:
        until = time.monotonic() + 120
        while True:
            try:
                urlopen(f"http://127.0.0.1:{port}/ready", timeout=5).close()
                break
            except (URLError, OSError):
                assert time.monotonic() < until and process.poll() is None
                time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there")
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_request_is_answered(page: Path, server: int, shelf: Path) -> None:
    for line in commands(page):
        if line.startswith("curl "):
            asked = re.sub(r"(localhost|127\.0\.0\.1):5050", f"127.0.0.1:{server}", line)
            words = [*shlex.split(asked), "--silent", "--fail-with-body"]
            done = subprocess.run(
                words, cwd=shelf / "files", capture_output=True, text=True, timeout=120
            )
            assert done.returncode == 0, f"{page.name}: {line}\n{done.stdout}"


def answers(page: Path) -> list[tuple[str, object]]:
    """Each request that is followed by its answer in JSON."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(
        r"^```(?:sh|console)\n(?:\$ )?(curl [^`]*?)\n```\n\n```json\n(.*?)^```", text, re.M | re.S
    )
    return [(request.replace("\\\n", " "), json.loads(answer)) for request, answer in found]


def lacking(shown: object, given: object, where: str = "answer") -> Iterator[str]:
    """What a page shows and an answer does not have; "…" stands for more of the same."""
    if shown == "…":
        return
    if isinstance(shown, dict) and isinstance(given, dict):
        for name, value in shown.items():
            if name not in given:
                yield f"{where}.{name}"
            else:
                yield from lacking(value, given[name], f"{where}.{name}")
    elif isinstance(shown, list) and isinstance(given, list):
        for one in shown[:1] if given else ():
            yield from lacking(one, given[0], f"{where}[0]")
    elif isinstance(shown, int | float) and isinstance(given, int | float):
        return
    elif type(shown) is not type(given):
        yield f"{where}: {type(given).__name__}"


def test_the_page_of_the_api_shows_answers() -> None:
    assert len(answers(ROOT / "docs" / "http-api.md")) >= 14
    wrong = lacking({"a": [{"b": 1.5}], "c": "d"}, {"a": [{"e": 1}], "c": 2})
    assert list(wrong) == ["answer.a[0].b", "answer.c: int"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there")
def test_answers_have_the_fields_that_the_page_of_the_api_shows(server: int, shelf: Path) -> None:
    for request, shown in answers(ROOT / "docs" / "http-api.md"):
        asked = re.sub(r"(localhost|127\.0\.0\.1):5050", f"127.0.0.1:{server}", request)
        done = subprocess.run(
            [*shlex.split(asked), "--silent"], cwd=shelf / "files", capture_output=True, timeout=120
        )
        wrong = list(lacking(shown, json.loads(done.stdout)))
        assert not wrong, f"{request}\n{wrong}"
