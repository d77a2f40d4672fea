"""The options of ``dragoman train``, some of which ``dragoman data show`` shares, and the languages
of a training run, which follow from ``--languages`` or from the names of the files.

A recipe follows from them (``tasks/from_files.py``). The docstring under a field is its help text.
No heavy module is imported here: the command line reads these classes as it starts.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.base.errors import RecipeError
from dragoman.forms.languages import CODES, COUNTRIES, code_meant, is_code, name_of
from dragoman.forms.tree import TREE_ENDINGS

if TYPE_CHECKING:
    from dragoman.runs.recipe.sections import LanguageSettings

_KANURI = " (kr is Kanuri; for Kanuri, use kau)"


def _option(metavar: str, **more: Any) -> Any:
    """A field with a placeholder of its own in ``--help``."""
    return field(default=None, metadata={"metavar": metavar, **more})


@dataclass(frozen=True, kw_only=True)
class FilesOptions:
    """The options that say how files of text are read."""

    task: str | None = None  # its help is that of ``TaskName`` in ``cli/train.py``
    texts: str | None = None
    """For language models and masked models, where one text ends and the next begins: text (each
    line is a text), documents (blank lines separate texts) or file (each file is one text).
    Default: detected."""
    languages: str | None = None
    """Source and target language, such as en-de; for tasks with one language, that language, such
    as en. Default: taken from the file names, or from what a TMX, XLIFF or PO says."""
    keys: tuple[str, str] | None = None
    """For a .jsonl file: the keys of source and target, such as translation.en translation.de. For
    a TMX of more than two languages: two of them, such as en de."""
    columns: str | None = None
    """For a tab-separated file: the columns of source and target, or of text and label, such as
    2,3. For labelled texts, label,text and text,label are accepted too. Default: detected."""
    groups: str | None = _option("PATTERN")
    """For recordings: a regular expression with one group, which matches the speaker in the file
    name, such as _([a-z]+)_ for 7_jackson_32.wav. If it contains a /, it is matched against the
    path inside the folder instead: ^([^/]+)/ takes the name of the first folder. All recordings of
    a speaker are put on the same side of the split."""
    label_ends: str | None = _option("CHARACTERS")
    """For trees: the characters at which a label is cut off. With -= (the default), NP-SBJ-1 is
    learned as NP; with -=., grup.nom.ms is learned as grup; with "", labels are kept whole. The
    fewer labels there are, the fewer trees you need."""
    codes: str | None = _option("RUN")
    """For a painter: the run that has learned the codes of pictures (--task codes)."""


@dataclass(frozen=True, kw_only=True)
class TrainOptions(FilesOptions):
    """The arguments and options of ``dragoman train``."""

    inputs: list[str] = field(
        metadata={"is_argument": True, "default": ..., "metavar": "SOURCE TARGET | RECIPE"}
    )
    """Training data, or a recipe: a .toml file, or the name of a recipe that comes with dragoman.
    For translation, give two files of parallel text or one file with both sides (.tsv, .csv,
    .jsonl, .tmx, .xlf, .po). For transcription, give a folder of recordings with a .txt file beside
    each; a .tsv, .csv or .jsonl file that lists the file name, text and speaker of each recording;
    or a Kaldi data folder. A language model or a masked model takes one file or a folder of text; a
    parser takes one file or a folder of bracketed trees (.mrg); a classifier takes a .tsv or .jsonl
    file of texts and labels, a folder of recordings or pictures with a subfolder for each label, a
    .zip file with such folders of pictures, a list (.csv, .tsv, .jsonl) of such files and their
    labels, or two IDX files with pictures and labels; a tagger takes one file of tagged words; a
    detector takes boxes in COCO's JSON, or the folder that the file is in; codes and a painter take
    a list (.tsv, .csv, .jsonl) of pictures and their captions, a folder with a subfolder of
    pictures for each caption, or two IDX files."""
    to: Path | None = None
    """The run folder to create. Default: runs/NAME, with NAME taken from the files or the recipe.
    If the folder already contains a run, training does not start."""
    minutes: float | None = field(default=None, metadata={"ge": 0.05})
    """Train for about this many minutes. The model size and the number of updates are chosen for
    this time and the speed of this machine; the number of updates is corrected once, after the
    first minute."""
    epochs: float | None = field(default=None, metadata={"ge": 0.01})
    """Train for this many epochs."""
    recipe: str | None = None
    """With training files: use the settings of this recipe (sizes, schedule, cleaning, Moses
    tokenisation), but not its data. The languages are taken from the recipe too if the file names
    do not contain them."""
    dev: tuple[str, str] | None = _option("SOURCE TARGET | FILE", may_be_one=True)
    """Validation data: two files or one file, in the same layout as the training files. If you give
    one file, put the option after the training files. If you give only one of --dev and --test, the
    other set is held out of the training data."""
    test: tuple[str, str] | None = _option("SOURCE TARGET | FILE", may_be_one=True)
    """Test data for the final evaluation: two files or one file, as for --dev."""
    model: str | None = _option("transformer|lstm|conv")
    """The architecture: transformer (the default), lstm, or conv (translation only). The size of
    the model depends on the amount of text and on --minutes."""
    from_: Path | None = None
    """Fine-tune this run: start with its best weights and its vocabulary."""
    keep: tuple[str, str] | None = _option("SOURCE TARGET | FILE", may_be_one=True)
    """Old text that the run of --from must not forget, such as the text that it was trained on: two
    files or one. A part of it is mixed into the new text, the best weights are chosen on both, and
    the scores on both are printed, before and after. If you give one file, put the option after the
    training files."""
    blend: bool = False
    """Blend the tuned weights with those of the run of --from: with the share of tuned weights that
    is best for the new text and raises the loss on the old dev set by at most 1.5 %. Without
    --keep, the old text is that of the run."""
    mono_target: str | None = _option("FILE|FOLDER")
    """Text of the target language alone, a sentence per line, which a translator learns too. First,
    a model that translates back into the source language is trained; it makes a source for each
    line (back-translation). docs/training.md explains the steps."""
    mono_source: str | None = _option("FILE|FOLDER")
    """Text of the source language alone, which improves the model that translates back. Use it with
    --mono-target."""
    mono_ratio: float | None = field(default=None, metadata={"ge": 0.01, "le": 1000})
    """The number of back-translated pairs in an epoch for each pair of the training files. Default:
    all of them, up to 4."""
    rounds: int | None = field(default=None, metadata={"ge": 1, "le": 4})
    """The number of models that translate monolingual text, one after another. The last translates
    back. Default: 2 with --mono-source, otherwise 1."""
    init_part: str | None = _option("encoder|decoder")
    """Use only the encoder or the decoder of the --from run, for another kind of task. Weights
    whose shape does not fit are initialised anew."""
    seed: int | None = None
    """The seed for all random numbers."""
    seeds: str | None = None
    """Train several runs that differ only in their seeds, such as 1,2,3. They are trained one after
    another, each in a subfolder of the run folder, with the same number of updates as the first."""
    set_: list[str] = field(default_factory=list, metadata={"default": None})
    """Change any setting, such as model.dropout=0.2. May be repeated."""

    @property
    def first(self) -> str:
        """The first input, as a path from the root."""
        return absolute(self.inputs[0])

    @property
    def are_files(self) -> bool:
        """True if the first input is a file or a folder, not a recipe."""
        return is_text(self.inputs[0])

    def refuse(self, unfit: Mapping[str, str]) -> None:
        """Errors: ``RecipeError`` for the first option in ``unfit`` that is given. The value in
        ``unfit`` is the reason, which follows the name of the option in the message."""
        for name, why in unfit.items():
            if getattr(self, name) not in (None, False):
                raise RecipeError(f"--{name.strip('_').replace('_', '-')}{why}")


@dataclass(frozen=True, kw_only=True)
class DistilOptions:
    """The arguments and options of ``dragoman distil``."""

    runs: list[Path] = field(metadata={"is_argument": True, "default": ..., "metavar": "RUN"})
    """The teachers: runs that translate between the same languages, with the same target
    vocabulary, such as those of train --seeds; the folder of --seeds stands for all of its runs."""
    to: Path | None = None
    """The run folder to create. Default: runs/NAME-distilled, with NAME taken from the first
    teacher."""
    n_best: int = field(default=4, metadata={"ge": 1, "le": 100})
    """The number of translations of each training source. Of these, the student learns the one that
    is most similar to the reference, by chrF."""
    teaching: float = field(default=0.5, metadata={"ge": 0, "le": 1})
    """The share of each target token that is the prediction of the teachers (training.teaching). 0:
    the student learns only their translations."""
    weight: float = field(default=1.0, metadata={"ge": 0.01, "le": 10_000})
    """The number of times that each translation of the teachers is used per epoch."""
    real_weight: float = field(default=1.0, metadata={"ge": 0.01, "le": 10_000})
    """The number of times that each pair is used per epoch, times the weight of its corpus."""
    minutes: float | None = field(default=None, metadata={"ge": 0.1})
    """The time for everything. Translating takes at most a third of it; if that is too short, only
    the first part of the text is translated. Default: the student trains for as many updates as
    the first teacher."""
    epochs: float | None = field(default=None, metadata={"ge": 0.01})
    """Train the student for this many epochs."""
    seed: int | None = None
    """The seed for all random numbers of the student. Default: that of the first teacher."""
    set_: list[str] = field(default_factory=list, metadata={"default": None})
    """Change any setting of the student, such as model.model_dim=128. The section text cannot be
    changed, because a student uses the vocabularies of its teacher. May be repeated."""


def is_text(path: str) -> bool:
    """Return whether a path is a file or a folder, and its name is not that of a recipe."""
    return Path(path).exists() and not path.endswith(".toml")


def is_treebank(path: str) -> bool:
    """Return whether a path has the name of a file of bracketed trees."""
    return path.removesuffix(".gz").endswith(TREE_ENDINGS)


def absolute(path: str) -> str:
    """The absolute path, as recipes store it."""
    return str(Path(path).absolute())


def languages_of(paths: Sequence[str]) -> tuple[str, str]:
    """Guess languages from names: my.en and my.de.gz are "en" and "de"; "und" if unsure.

    Errors: ``RecipeError`` for my.kr, whose name means a text in Kanuri.
    """
    codes = []
    for path in paths:
        suffix = Path(path.removesuffix(".gz")).suffix.removeprefix(".").lower()
        if suffix in CODES and suffix in COUNTRIES:
            code = COUNTRIES[suffix]
            parts = Path(path).name.split(".")
            named = ".".join(code if part == suffix else part for part in parts)
            renamed = Path(path).with_name(named)
            raise RecipeError(
                f"{path}: the code of {name_of(code)} is {code}, and {suffix} is another "
                f"language. Rename the file: mv {shlex.quote(path)} {shlex.quote(str(renamed))}. "
                f"Or set --languages{_KANURI}"
            )
        codes.append(suffix if suffix in CODES else "und")
    return (codes[0], codes[1]) if len(codes) == 2 else ("und", "und")


def given_languages(codes: str | None, paths: Sequence[str]) -> tuple[str, str]:
    """The languages of both sides, from ``--languages`` or else from the names of their files.

    Errors: ``RecipeError`` for anything but two codes.
    """
    if not codes:
        return languages_of(paths)
    source, dash, target = codes.partition("-")
    if not dash or not source or not target:
        raise RecipeError(f"--languages {codes}: use a form such as en-de")
    _check_codes(codes)
    return source, target


def given_language(code: str | None, path: str) -> str:
    """The language of texts without translations. Errors: ``RecipeError`` for two codes."""
    if code is not None and "-" in code:
        raise RecipeError(f"--languages {code}: texts have one language. Use a form such as en")
    _check_codes(code or "")
    return code or languages_of([path, path])[0]


def _check_codes(codes: str) -> None:
    """Errors: ``RecipeError`` for names of languages, codes of countries and what is no code."""
    source, dash, target = codes.partition("-")
    meant = f"{code_meant(source)}{dash}{code_meant(target)}"
    if meant != codes:
        kanuri = _KANURI if "kr" in (source, target) else ""
        raise RecipeError(f"--languages {codes}: use language codes: --languages {meant}{kanuri}")
    if any(code and not is_code(code) for code in (source, target)):
        raise RecipeError(f"--languages {codes}: use language codes, such as en-de")


def fill_unknown(languages: Mapping[str, str], otherwise: LanguageSettings) -> dict[str, str]:
    """The known languages; unknown ones are taken from ``otherwise``."""
    return {
        side: getattr(otherwise, side) if code == "und" else code
        for side, code in languages.items()
    }
