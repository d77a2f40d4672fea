"""The shape of the house, read from its own source: who may import whom, and what stays light."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import dragoman

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dragoman"

# The files of a task's folder lie on floors by their names; all others on that of "tasks".
TRAINING = "train, measure and tell of any task"
SIZES, ENDPOINT, VERB = "sizes", "endpoint", "verb"
LEARNED = "what a task learns"
FLOOR_OF = {
    LEARNED: ("form", "head", "metrics"),
    SIZES: ("sizes",),
    ENDPOINT: (
        "endpoint", "documents_endpoint", "libretranslate", "lines_endpoint", "messages", "served",
    ),
    VERB: ("align_verb", "demo", "documents_verb", "verb"),
}  # fmt: skip
TABLES = ("catalogue", "program")
"""Files of tasks/ that name every task."""

# How many modules outside a task's folder import something of it; ``slices.py`` prints them. Two
# name all tasks: ``tasks/catalogue.py`` and ``tasks/program.py``. A painter learns from the
# pictures of its codes, so ``painting/sizes.py`` reads them as ``codes/sizes.py`` does.
FOREIGN = {
    "classification": 2,
    "codes": 2,
    "detection": 2,
    "language_model": 2,
    "masked": 2,
    "painting": 2,
    "parsing": 2,
    "tagging": 2,
    "transcription": 2,
    "translation": 2,
}

# How many places outside sources/ ask which kind of source or form they have, by isinstance, kind,
# is_text or "width is None"; ``slices.py`` prints them.
QUESTIONS = 5
_ROOTS = {"SourceSettings", "Form", "FrontEnd"}
_KINDS = {"frames", "line", "picture", "text"}

# Lowest first. Imports point down only; what stands on one level does not import each other.
LEVELS = (
    {"base"},
    {"native", "stores", "forms", "metrics"},
    {"nn", "sources", "alignment", "pictures", "formats", "demo"},
    {"models", "data"},
    {"training", "search", "cluster"},
    {"recipe"},
    {"runs"},
    {"engine", "sizing"},
    {"documents", "serving", "console", "insight"},
    # From here to "program": the files of tasks/.
    {LEARNED},
    {SIZES},
    {"tasks"},
    {"catalogue"},
    {TRAINING},
    {ENDPOINT},
    {VERB},
    {"program"},
    {"server", "prepare", "studies", "interop"},
    {"cli"},
    # The public face and `python -m dragoman` hand on what lies below; nothing imports them.
    {"__init__", "__main__"},
)
LEVEL_OF = {name: level for level, names in enumerate(LEVELS) for name in names}

# A distribution is not always imported by its own name.
DISTRIBUTION_OF = {
    "charset_normalizer": "charset-normalizer",
    "PIL": "pillow",
    "markdown_it": "markdown-it-py",
    "prometheus_client": "prometheus-client",
    "python_multipart": "python-multipart",
    "resvg_py": "resvg-py",
    "tomli_w": "tomli-w",
    "yaml": "PyYAML",
}


@dataclass(frozen=True)
class Import:
    """One import statement of the house."""

    importer: str  # dragoman.search.beam
    imported: str  # dragoman.models.interface, or numpy
    line: int
    at_top: bool  # runs when the module is imported

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}, imports {self.imported}"


def modules() -> dict[str, Path]:
    """Dotted name -> file, of everything in the package."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)] = path
    return found


MODULES = modules()


def part(module: str) -> str:
    """dragoman.search.beam -> search; dragoman and dragoman.__init__ -> __init__."""
    pieces = module.split(".")
    if pieces[1:2] == ["tasks"] and len(pieces) == 4:
        return next((floor for floor, names in FLOOR_OF.items() if pieces[3] in names), "tasks")
    if pieces[1:3] == ["runs", "recipe"]:
        return "recipe"
    if pieces[1:2] == ["tasks"] and pieces[2:3] != ["shared"] and len(pieces) == 3:
        return pieces[2] if pieces[2] in TABLES else TRAINING
    return pieces[1] if len(pieces) > 1 else "__init__"


@cache
def tree_of(path: Path) -> ast.Module:
    """A file, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(module: str, path: Path) -> Iterator[Import]:
    """All imports of one file: at the top, inside functions, for types alone, and by name."""
    tree = tree_of(path)
    package = ".".join(path.relative_to(SOURCE.parent).parent.parts)
    to_do: list[tuple[ast.AST, bool]] = [(tree, True)]
    while to_do:
        node, at_top = to_do.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            at_top = False
        to_do += [(child, at_top) for child in ast.iter_child_nodes(node)]
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            # `from dragoman.nn import layout` imports the module, not a name of its package.
            names = [
                full if (full := f"{base}.{alias.name}") in MODULES else base
                for alias in node.names
            ]
        elif (
            isinstance(node, ast.Call)
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
            and ast.unparse(node.func).endswith("import_module")
        ):
            names = [node.args[0].value]
        for name in dict.fromkeys(names):
            yield Import(module, name, node.lineno, at_top)


@cache
def imports() -> list[Import]:
    """Of the whole house, which takes seconds to read."""
    return [found for module, path in MODULES.items() for found in imports_of(module, path)]


def within() -> list[Import]:
    return [found for found in imports() if found.imported.split(".")[0] == "dragoman"]


def foreign_files() -> dict[str, list[str]]:
    """By task: the modules outside its folder that import something of it."""
    tasks = sorted(path.parent.name for path in SOURCE.glob("tasks/*/__init__.py"))
    found: dict[str, set[str]] = {task: set() for task in tasks if task != "shared"}
    for one in within():
        folder = one.imported.split(".")[:3]
        if (
            folder[1:2] == ["tasks"]
            and folder[-1] in found
            and one.importer.split(".")[:3] != folder
        ):
            found[folder[-1]].add(one.importer)
    return {task: sorted(modules) for task, modules in found.items()}


def outside() -> list[Import]:
    own = sys.stdlib_module_names | {"dragoman", "__future__"}
    return [found for found in imports() if found.imported.split(".")[0] not in own]


def trees() -> dict[str, ast.Module]:
    """The parsed files of the package, by their paths in the repository."""
    return {str(path.relative_to(ROOT)): tree_of(path) for path in MODULES.values()}


def classes_of_sources(files: dict[str, ast.Module]) -> set[str]:
    """The names of the settings of sources, the forms and the front ends, with their bases."""
    bases = {
        node.name: {ast.unparse(base).split("[")[0] for base in node.bases}
        for tree in files.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = set(_ROOTS)
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return found


def asks_kind(node: ast.AST, classes: set[str]) -> bool:
    """Whether an expression asks which kind of source, form or front end it has: by its class, by
    its ``kind``, by ``is_text``, or by whether it has a ``width`` or a ``vocabulary``."""

    def names(of: ast.AST) -> set[str]:
        return {each.id for each in ast.walk(of) if isinstance(each, ast.Name)}

    match node:
        case ast.Attribute(attr="is_text"):
            return True
        case ast.Call(func=ast.Name("isinstance" | "issubclass"), args=[_, asked]):
            return bool(names(asked) & classes)
        case ast.Call(func=ast.Name("getattr" | "hasattr"), args=[base, *_]):
            return ast.unparse(base).split(".")[-1] in ("source", "form", "front_end")
        case ast.MatchClass(cls=ast.Name(name)):
            return name in classes
        case ast.Match(subject=ast.Attribute(base, "kind")):
            return ast.unparse(base).endswith("source")
        case ast.Compare(left, [ast.Is() | ast.IsNot()], [ast.Constant(None)]):
            asked = ast.unparse(left)
            return asked.endswith("source.vocabulary") or (
                asked.endswith(".width") and not asked.startswith(("positions.", "self."))
            )
        case ast.Compare():
            asked = ast.unparse(node)
            said = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
            of_source = "source" in asked or "text" not in said
            return ("kind" in asked and of_source and bool(said & _KINDS)) or (
                "type(" in asked and bool(names(node) & classes)
            )
    return False


def questions() -> Iterator[str]:
    """Each place outside ``sources/`` that asks for the kind of a source: file, line and text."""
    files = trees()
    classes = classes_of_sources(files)
    for path, tree in files.items():
        if not path.startswith("src/dragoman/sources/"):
            for node in ast.walk(tree):
                if asks_kind(node, classes):
                    yield f"{path}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def test_every_part_has_a_level() -> None:
    unknown = {part(module) for module in MODULES} - LEVEL_OF.keys()
    assert not unknown, f"give {sorted(unknown)} a level in {Path(__file__).name}"


def test_imports_point_down() -> None:
    def points_down(found: Import) -> bool:
        importer, imported = part(found.importer), part(found.imported)
        return importer == imported or LEVEL_OF[imported] < LEVEL_OF[importer]

    wrong = [str(found) for found in within() if not points_down(found)]
    assert not wrong, "imports point down only:\n" + "\n".join(wrong)


def test_few_files_outside_a_task_import_it() -> None:
    """If a number falls, write the smaller one."""
    assert {task: len(files) for task, files in foreign_files().items()} == FOREIGN


def test_a_source_acts_for_itself() -> None:
    """If the number falls, write the smaller one."""
    asked = sorted(questions())
    assert len(asked) == QUESTIONS, "\n".join(asked)


def test_no_circles() -> None:
    """Whoever imports a module imports the packages that it is in, too."""
    below: dict[str, set[str]] = {module: set() for module in MODULES}
    for found in within():
        pieces = found.imported.split(".")
        for name in (".".join(pieces[:end]) for end in range(2, len(pieces) + 1)):
            if name in below and not f"{found.importer}.".startswith(f"{name}."):
                below[found.importer].add(name)
    finished: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, "a circle: " + " -> ".join([*way, module])
        if module not in finished:
            for next_module in sorted(below[module]):
                visit(next_module, (*way, module))
            finished.add(module)

    for module in below:
        visit(module, ())


def test_no_circles_of_folders() -> None:
    """A folder in a folder is one of its own; files at the top of the house are none."""

    def folder(module: str) -> str:
        if part(module) not in MODULES[module].parts:
            return part(module)
        return "/".join(MODULES[module].relative_to(SOURCE).parts[:-1])

    below: dict[str, set[str]] = {}
    for found in within():
        if found.imported in MODULES and found.importer in MODULES:
            of, to = folder(found.importer), folder(found.imported)
            if of and to and of != to:
                below.setdefault(of, set()).add(to)

    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, "a circle of folders: " + " -> ".join([*way, name])
        if name in done:
            return
        for other in sorted(below.get(name, ())):
            visit(other, (*way, name))
        done.add(name)

    for name in list(below):
        visit(name, ())


def test_c_is_spoken_in_one_place() -> None:
    wrong = [
        str(i)
        for i in imports()
        if i.imported.split(".")[0] == "ctypes" and part(i.importer) != "native"
    ]
    assert not wrong, "ctypes stays in native/:\n" + "\n".join(wrong)


def test_a_model_is_looked_into_through_probes() -> None:
    """A hook stays on a model for everybody, and what its parts are called is its own affair."""
    hooks = re.compile(r"register_\w*hook|get_submodule|get_parameter")
    names = re.compile(r"(encoder|decoder)\.\S*(attention|feed_forward|norm)")
    wrong = [
        f"{module}, line {number}: {line.strip()}"
        for module, path in MODULES.items()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if hooks.search(line) or (part(module) not in ("nn", "models") and names.search(line))
    ]
    assert not wrong, "use nn/probes.py and what the model says of itself:\n" + "\n".join(wrong)


def test_every_import_is_declared() -> None:
    """At the top of a module only the core's dependencies; those of extras inside functions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}

    core = names(project["dependencies"])
    extras = set().union(
        *(names(r) for extra, r in project["optional-dependencies"].items() if extra != "dev")
    )
    wrong = []
    for found in outside():
        top = found.imported.split(".")[0]
        distribution = DISTRIBUTION_OF.get(top, top)
        # What serves needs its extra throughout; the verb that starts it imports it inside.
        serves = part(found.importer) in ("serving", "server", ENDPOINT)
        allowed = core | extras if serves or not found.at_top else core
        if distribution not in allowed:
            wrong.append(str(found))
    assert not wrong, "not declared in pyproject.toml, or of an extra:\n" + "\n".join(wrong)


def test_pictures_and_metrics_need_no_torch() -> None:
    light = {"pictures", "metrics", "errors", "settings"}
    of_tasks = {"drawing", "metrics", "runtime", "sizes"}
    wrong = [
        str(found)
        for found in outside()
        if found.imported.split(".")[0] == "torch"
        and (
            part(found.importer) in light
            or (found.at_top and set(found.importer.split(".")[3:]) & of_tasks)
        )
    ]
    assert not wrong, "\n".join(wrong)


ANSWERS = """
data list
data show my.en my.de
compare my.en my.de --reference my.de
figure --list
ablate demo --list
"""
MISTAKES = """
data get nothing
data show no.en my.de
train no.en my.de
train my.en short.de
train no-recipe
train my.en my.de --recipe no-recipe
train my.en my.de --minutes 1 --epochs 2
train my.en my.de --set model.dropuot=0.1
train my.en my.de --to run
train my.en my.de --from nowhere
train my.jsonl --keys a b
demo --to run
demo --set sead=1
resume nowhere
translate nowhere
fill nowhere
translate run --ensemble nowhere
train my.en my.de --seeds 1,x
train my.en my.de --seeds 1 --seed 2
sweep no-recipe
sweep demo --search-space model.dropout=1
sweep demo --search-space model.dropuot=0.1,0.2
sweep demo --to run
ablate demo --rows no-row
compare run run --to r.pdf
ablate demo --seeds 1,x
ablate demo --to run
evaluate nowhere
evaluate run no.en my.de
align nowhere my.en my.de
align run no.en my.de
align run my.en my.de --gold no.links
align run my.en my.de --oracle
score nowhere my.en my.de
score run no.en my.de
compare my.en no.de --reference my.de
compare nowhere run
average nowhere
shortlist nowhere
look nowhere Hello.
look run Hello. --to look.pdf
figure no-figure
serve nowhere
serve run --set limits.charactrs=5
serve run --api-keys no-keys
serve run --port taken
"""


def test_what_needs_no_torch_does_not_wait_for_it(tmp_path: Path) -> None:
    """Importing torch takes seconds: a look at text, or a mistake, is answered before."""
    (tmp_path / "my.en").write_text("The dog sleeps.\nThe man eats.\nA cat.\n", encoding="utf-8")
    (tmp_path / "my.de").write_text("Der Hund.\nEr isst.\nEine Katze.\n", encoding="utf-8")
    (tmp_path / "short.de").write_text("Der Hund schläft.\n", encoding="utf-8")
    (tmp_path / "my.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_text("name = 'empty'\n", encoding="utf-8")
    lines = [line for line in (ANSWERS + MISTAKES).splitlines() if line]
    program = f"""
import contextlib, io, json, socket, sys
from dragoman.cli.app import main

taken = socket.create_server(("127.0.0.1", 0))

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise AssertionError("torch is imported")

sys.meta_path.insert(0, NoTorch())
ends = {{}}
for line in {lines!r}:
    sys.argv = ["dragoman", *line.replace("taken", str(taken.getsockname()[1])).split()]
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main()
            ends[line] = 0
        except SystemExit as end:
            ends[line] = end.code
        except AssertionError as error:
            ends[line] = str(error)
print(json.dumps(ends))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    ends = json.loads(done.stdout or done.stderr)
    expected = {line: [0] if line in ANSWERS.splitlines() else [1, 2] for line in lines}
    assert {line: end for line, end in ends.items() if end not in expected[line]} == {}


HEAVY = ("pydantic", "torch", "resvg_py", "sentencepiece", "sacrebleu", "fastapi", "transformers")


@pytest.mark.parametrize(
    "statement",
    [
        "import dragoman",
        "import dragoman.cli",
        "from dragoman.cli.app import main; main()",
    ],
)
def test_start_is_light(statement: str) -> None:
    """`dragoman --help` answers at once because nothing heavy is imported for it."""
    program = (
        "import sys\nsys.argv = ['dragoman', '--help']\n"
        f"try:\n    exec({statement!r})\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        f"print('heavy:', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_names_of_the_package_are_found_by_people_and_by_type_checkers() -> None:
    """``dir`` lists what is offered; no module ``__getattr__`` hides a misspelt name."""
    assert set(dir(dragoman)) == set(dragoman.__all__) >= {"Recipe", "load"}
    for name in dragoman.__all__:
        assert getattr(dragoman, name).__name__ == name
    with pytest.raises(AttributeError, match="laod"):
        dragoman.laod  # noqa: B018
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    # One at the top would tell a type checker that every name is there.
    assert not [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "__getattr__"]


def test_files_that_the_code_and_the_guide_name_are_there() -> None:
    """``name.py`` stands beside the file that names it, or at that path of the source or the
    checkout; NAME stands for any."""
    named = re.compile(r"`([\w./]+\.(?:py|toml|cpp|h))`")
    missing = []
    guide = ROOT / "CONTRIBUTING.md"
    for file in [*sorted(SOURCE.rglob("*.py")), guide]:
        tops = [SOURCE, ROOT, file.parent] if file != guide else [SOURCE, ROOT, ROOT / "tests"]
        for name in named.findall(file.read_text(encoding="utf-8")):
            if "NAME" in name or (file == guide and "/" not in name):
                continue
            if not any((top / name).is_file() for top in tops):
                missing.append(f"{file.relative_to(ROOT)}: {name}")
    assert not missing
