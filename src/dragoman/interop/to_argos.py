"""A run as a package of argos, which LibreTranslate installs: a model of CTranslate2 in a ZIP file.

NAME/metadata.json          languages
NAME/model/                 the files of CTranslate2
NAME/sentencepiece.model    cuts the text of both sides
NAME/README.md
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from dragoman.base.atomic import write_text
from dragoman.forms.languages import name_of
from dragoman.interop import to_ctranslate2
from dragoman.interop.archives import Array
from dragoman.tasks.catalogue import Run

PROGRAM = "argos"
LIBRARY = "argostranslate"


def reasons(run: Run) -> Iterator[str]:
    """Yield the settings that argos cannot compute."""
    yield from to_ctranslate2.reasons(run)
    if not run.recipe.text.shared:
        yield "text.shared = false: it cuts the text of both sides by one vocabulary"
    if "und" in run.languages:
        yield "the languages of the run are not known, and a package has their codes"


def use(run: Run, folder: Path) -> str:
    """The lines of Python that translate with the exported model."""
    source, target = run.languages
    return f"""\
import argostranslate.package, argostranslate.translate

argostranslate.package.install_from_path("{folder.name}/{_name(run)}.argosmodel")
print(argostranslate.translate.translate("...", "{source}", "{target}"))"""


def write(run: Run, weights: Mapping[str, Array], folder: Path) -> Path:
    """Write the package of a run, beside the card in ``folder``. Return its path."""
    source, target = run.languages
    inside = folder / _name(run)
    model = inside / "model"
    model.mkdir(parents=True)
    to_ctranslate2.write(run, weights, model)
    (model / "source.spm").rename(inside / "sentencepiece.model")
    (model / "target.spm").unlink()
    shutil.copyfile(folder / "README.md", inside / "README.md")
    about = {
        "package_version": "1.0",
        "argos_version": "1.0",
        "from_code": source,
        "from_name": name_of(source),
        "to_code": target,
        "to_name": name_of(target),
    }
    write_text(inside / "metadata.json", json.dumps(about, ensure_ascii=False, indent=2) + "\n")
    package = folder / f"{inside.name}.argosmodel"
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(inside.rglob("*")):
            archive.write(path, path.relative_to(folder))
    shutil.rmtree(inside)
    return package


def _name(run: Run) -> str:
    source, target = run.languages
    return f"translate-{source}_{target}-1_0"
