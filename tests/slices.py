"""Print what each task is made of: files, code lines, files elsewhere, and foreign files; then
each place outside ``sources/`` that asks which kind of source or form it has.

    python tests/slices.py

``only for it`` names the modules outside the task's folder that nothing else imports: the folder
does, or one of these modules. A foreign file is a module outside the folder that imports something
of it; ``FOREIGN`` of ``test_imports.py`` has their number. The number of the places is
``QUESTIONS`` there.
"""

from __future__ import annotations

from test_imports import MODULES, SOURCE, foreign_files, questions, within
from test_size import code_lines


def importers() -> dict[str, set[str]]:
    """By module: those that import it."""
    found: dict[str, set[str]] = {}
    for one in within():
        found.setdefault(one.imported, set()).add(one.importer)
    return found


def only_for(task: str) -> list[str]:
    """The modules outside a task's folder that only the task imports."""
    by = importers()
    folder = {module for module in MODULES if f"{module}.".startswith(f"dragoman.tasks.{task}.")}
    own = set(folder)
    while more := {one for one in MODULES.keys() - own if by.get(one) and by[one] <= own}:
        own |= more
    return sorted(own - folder)


def main() -> None:
    for task, foreign in foreign_files().items():
        files = sorted((SOURCE / "tasks" / task).rglob("*.py"))
        lines = sum(code_lines(path.read_text(encoding="utf-8")) for path in files)
        print(f"{task}: {len(files)} files, {lines:,} code lines, {len(foreign)} foreign files")
        for module in foreign:
            print(f"    foreign      {module}")
        for module in only_for(task):
            print(f"    only for it  {module}")
    asked = sorted(questions())
    print("\n".join(asked))
    print(f"{len(asked)} places outside sources/ ask for the kind of a source or a form")


if __name__ == "__main__":
    main()
