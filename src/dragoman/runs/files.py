"""The JSON files of a run folder, read back: every type is checked before it is used.

``scores.json`` is written by ``tasks/shared/evaluation.py``, ``data.json`` by ``prepare.py``,
``metrics.jsonl`` by ``training/records.py``. Only what readers rely on stands here; more is passed
on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dragoman.base.errors import RunError
from dragoman.base.reading import MAX_JSON, open_regular, parse_json, read_json

Model = TypeVar("Model", bound=BaseModel)
Count = Annotated[int, Field(ge=0, le=10**15)]
Number = Annotated[float, Field(ge=-1e308, le=1e308)]
_Share = Annotated[float, Field(ge=0, le=1)]
_BeforeAndAfter = Annotated[list[Number], Field(min_length=2, max_length=2)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False, defer_build=True)


class _Score(_Record):
    value: Number
    signature: str


class _SampleNote(_Record):
    source: str
    reference: str
    translation: str


class _Label(_Record):
    label: str
    texts: Count
    precision: _Share
    recall: _Share
    f1: _Share


class _Mistake(_Record):
    line: Count
    text: str
    true: str
    chosen: str
    probability: _Share
    of_true: _Share


class _Spans(_Record):
    model_config = ConfigDict(strict=True, extra="forbid")
    right: Count
    found: Count
    there: Count


class ScoresFile(_Record):
    """The content of ``scores.json``, the last evaluation."""

    test: str = ""
    sentences: Count = 0
    scores: dict[str, _Score] = {}
    prepared_bleu: _Score = _Score(value=0.0, signature="")
    samples: list[_SampleNote] = []
    labels: list[_Label] = []
    confusion: list[list[Count]] = []
    worst: list[_Mistake] = []
    spans: dict[str, _Spans] = {}
    usual: dict[str, Number] = {}

    @model_validator(mode="after")
    def _square(self) -> ScoresFile:
        sizes = {len(self.confusion), *map(len, self.confusion)}
        if self.confusion and sizes != {len(self.labels)}:
            raise ValueError("the table of confusions does not match the labels")
        return self


class VerdictFile(_Record):
    """The content of ``verdict.json``, the last report's verdict."""

    said: list[str] = []


class _Domain(_Record):
    name: str
    test: str
    sentences: Count
    loss: _BeforeAndAfter
    bleu: _BeforeAndAfter
    p_value: _Share
    method: str
    signature: str


class TuningFile(_Record):
    """The content of ``tuning.json``, the scores before and after a tuning that keeps old text."""

    domains: list[_Domain] = []
    weights: str = ""


class _CorpusNote(_Record):
    name: str
    sha256: str
    weight: Number


class _Dropped(_Record):
    line: Count
    source: str


class _Filter(_Record):
    count: Count
    first: list[_Dropped]


class _Cleaning(_Record):
    read: Count
    kept: Count
    filters: dict[str, _Filter]


class _Lengths(_Record):
    ratio: Number
    least: Number
    greatest: Number


class _TextNote(_Record):
    tokens: Count = 0
    length: Number = 0.0
    by_frequency: Number | None = None


class _Base(_Record):
    name: str
    weights: str
    part: str | None = None
    unknown: str = ""


class Notes(_Record):
    """The content of ``data.json``, the notes about the training data."""

    pairs: dict[str, Count] = {}
    synthetic: Count = 0
    corpora: list[_CorpusNote] = []
    cleaning: _Cleaning = _Cleaning(read=0, kept=0, filters={})
    overlap: str = ""
    bases: list[_Base] = []
    lengths: _Lengths | None = None
    text: _TextNote = _TextNote()
    longest_words: Count | None = None


class _Update(_Record):
    kind: Literal["update"]
    update: Count
    nll: Number | None
    tokens: Count
    tokens_per_second: Number
    learning_rate: Number
    gradient_norm: Number | None
    elapsed: Number


class _Validation(_Record):
    kind: Literal["validation"]
    update: Count
    weights: str
    scores: dict[str, Number | None]
    best: bool
    elapsed: Number = 0.0
    samples: list[_SampleNote] = []


class _LineNote(_Record):
    record: Annotated[_Update | _Validation, Field(discriminator="kind")]


def read_file(path: Path, what: type[BaseModel]) -> dict[str, Any]:
    """The content of a JSON file of a run; empty if there is no such file.

    Errors: ``RunError`` if it is damaged.
    """
    if not path.is_file():
        return {}
    try:
        content: dict[str, Any] = read_json(path)
        validate(content, what, str(path))
        return content
    except RunError as error:
        raise RunError(
            f"{error}. Remove the file: the model works without it, and 'dragoman evaluate' and "
            "'dragoman train' create it again"
        ) from error


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of ``metrics.jsonl``, or none where there is no such file.

    Errors: ``RunError`` naming the line that is damaged.
    """
    if not path.is_file():
        return
    with open_regular(path) as file:
        for number in range(1, 1 << 40):
            line = file.readline(MAX_JSON + 1)
            where = f"{path}, line {number}"
            if len(line) > MAX_JSON:
                raise RunError(
                    f"{where} has more than the {MAX_JSON:,} bytes that are allowed. Remove the "
                    "file; the model works without it, and only its training curves are lost"
                )
            if not line.endswith(b"\n"):
                return  # all is read, or somebody is writing it
            record = parse_json(line, where)
            validate({"record": record}, _LineNote, where)
            yield record


def read_stored(path: Path, what: type[Model]) -> Model:
    """Read a JSON file as a ``what``. Errors: ``RunError`` if the file is damaged."""
    return validate(read_json(path), what, str(path))


def validate(content: Any, what: type[Model], where: str) -> Model:
    """Check the content of a JSON file, which messages call ``where``. Errors: ``RunError`` if it
    is damaged."""
    try:
        return what.model_validate(content)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, problem["loc"]))[:100]
        raise RunError(f"{where} is damaged ({place}: {problem['msg']})") from None
