"""This module makes the arguments and options of a verb from the fields of a class.

A verb is a function of one class of ``arguments``. A field is an option of its name (``set_`` is
``--set``), its default is the option's, and the docstring under it is the help text. Verbs share a
help text by ``Annotated[type, text]``, and options by a base class, whose options help lists first,
or last if it is ``listed_last``. ``argument``, ``option`` and ``setting`` declare what type and
default do not; ``setting`` takes bounds, default and help from a field of ``Settings``.

Options are made when a verb is called, and help texts are read when help is printed: a program of
twenty verbs starts as quickly as one of a single verb.

An option of two values may have only one: ``--dev dev.en dev.de``, and ``--dev dev.tsv``.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from dragoman.console.output import log_to_stderr

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from dragoman.base.settings import Settings
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.search.settings import SamplingSettings, SearchSettings


T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def arguments(kind: type[T]) -> type[T]:
    """A frozen dataclass whose fields are given by name."""
    return dataclass(frozen=True, kw_only=True)(kind)


RunFolder = Annotated[Path, "A run folder."]
Tag: TypeAlias = Annotated[
    str | None,
    "For an imported model of several target languages: the tag of one, such as deu for >>deu<<, "
    "or the code of that language. Default: the tag of the run.",
]
Quiet = Annotated[bool, "Print only errors."]
Verbose = Annotated[bool, "Also print the precision and the kernels that are used, and why."]
AsJson = Annotated[bool, "Print JSON instead of a table."]


_PLACEHOLDERS = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}


def argument(metavar: str | None = None, default: Any = ...) -> Any:
    """Return a positional field, which is required unless it has a default."""
    return field(metadata={"is_argument": True, "default": default, "metavar": metavar})


def option(
    default: Any = None,
    *short: str,
    ge: float | None = None,
    le: float | None = None,
    metavar: str | None = None,
) -> Any:
    """Return a field with a short name, bounds or another placeholder."""
    about = {"ge": ge, "le": le, "metavar": metavar}
    return field(metadata={"default": default, "short": short, **about})


def setting(of: Callable[[], type[Settings]], *short: str, **changed: Any) -> Any:
    """Return a field for the setting of this name in ``of()``, except for what is ``changed``."""
    return field(metadata={"of": of, "short": short, **changed})


def values_of(args: Any, of: Callable[[], type[Settings]]) -> dict[str, Any]:
    """Return the given values of the settings ``of()``."""
    return {
        arg.name: getattr(args, arg.name) for arg in fields(args) if arg.metadata.get("of") is of
    }


def translator_settings() -> type[TranslatorSettings]:
    """Return the settings of a translator's input and of its use of this machine."""
    from dragoman.engine.settings import TranslatorSettings

    return TranslatorSettings


def search_settings() -> type[SearchSettings]:
    """Return the settings of the search."""
    from dragoman.search.settings import SearchSettings

    return SearchSettings


def sampling_settings() -> type[SamplingSettings]:
    """Import and return the settings for sampling."""
    from dragoman.search.settings import SamplingSettings

    return SamplingSettings


class VerbCommand(TyperCommand):
    """A verb as a command: its name is that of its function, its help the docstring."""

    def __init__(self, verb: Callable[[Any], None]) -> None:
        name = verb.__name__.strip("_")
        super().__init__(name, help=inspect.getdoc(verb), rich_markup_mode=None)
        self.verb = verb

    def get_params(self, ctx: Any) -> Any:
        if not self.params:
            app = typer.Typer(add_completion=False, rich_markup_mode=None)
            app.command()(self._for_typer())
            made = get_command(app)
            self.params, self.callback = made.params, made.callback
        return super().get_params(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = fields(self._arguments)
        # The second of two values may be missing.
        may_be_one = [_long(arg) for arg in known if arg.metadata.get("may_be_one")]
        return super().parse_args(ctx, pad_options(args, may_be_one))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        texts = self.help_of_fields()
        for param in self.get_params(ctx):
            if param.name in texts:
                param.help = texts[param.name]
        super().format_help(ctx, formatter)

    @property
    def _arguments(self) -> Any:
        """The class of the verb's arguments."""
        return next(iter(get_type_hints(self.verb).values()))

    def _for_typer(self) -> Callable[..., None]:
        """Return the verb in typer's form, with a parameter for each field."""
        kind = self._arguments
        hints = get_type_hints(kind)
        lists = {name for name, hint in hints.items() if get_origin(hint) is list}

        def call(**given: Any) -> None:
            args = kind(**{k: [] if v is None and k in lists else v for k, v in given.items()})
            log_to_stderr(getattr(args, "quiet", False), getattr(args, "verbose", False))
            self.verb(args)

        bases = [base for base in kind.__mro__[1:] if vars(base).get("listed_last")]
        shared = {arg.name for base in bases for arg in fields(base)}
        known = sorted(fields(kind), key=lambda arg: arg.name in shared)
        signature = inspect.Signature([_parameter(arg, hints[arg.name]) for arg in known])
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    def help_of_fields(self) -> dict[str, str]:
        """Return the help text of every field."""
        kind = self._arguments
        texts = {
            name: text
            for name, hint in get_type_hints(kind, include_extras=True).items()
            for text in getattr(hint, "__metadata__", ())
        }
        for arg in fields(kind):
            if "of" in arg.metadata:
                texts[arg.name] = help_texts(arg.metadata["of"]())[arg.name]
        texts |= help_texts(kind)
        return {name: " ".join(text.replace("``", "").split()) for name, text in texts.items()}


@cache
def command_of(verb: Callable[[Any], None] | TyperGroup) -> Any:
    """Return the command of a verb; a group is one already."""
    return verb if isinstance(verb, TyperGroup) else VerbCommand(verb)


def _long(arg: Field[Any]) -> str:
    return "--" + arg.name.strip("_").replace("_", "-")


def _parameter(arg: Field[Any], hint: Any) -> inspect.Parameter:
    """Return a field in the form of typer's parameter."""
    values = {"default": arg.default, **arg.metadata}
    if "of" in values:
        values = {**_of_setting(values["of"]().model_fields[arg.name]), **arg.metadata}
    default, metavar = values["default"], values.get("metavar") or _placeholder(hint)
    about: Any = typer.Argument(metavar=metavar)
    if "is_argument" not in values:
        name = _long(arg)
        names = (f"{name}/--no-{name[2:]}" if default is True else name, *values.get("short", ()))
        about = typer.Option(*names, min=values.get("ge"), max=values.get("le"), metavar=metavar)
    return inspect.Parameter(
        arg.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[hint, about],
    )


def _placeholder(hint: Any) -> str | None:
    """Return what stands for a value of this type in the help, or None for a choice or a switch."""
    (kind, *_) = get_args(hint) or (hint,)
    kinds = get_args(kind) if get_origin(kind) is tuple else (kind,)
    return " ".join(_PLACEHOLDERS.get(part, "") for part in kinds) or None


def _of_setting(setting: FieldInfo) -> dict[str, Any]:
    """Return the default and bounds of a setting's option, with its choices as the placeholder."""
    values: dict[str, Any] = {"default": setting.default}
    for bound in setting.metadata:
        values |= {key: getattr(bound, key) for key in ("ge", "le") if hasattr(bound, key)}
    if get_origin(setting.annotation) is Literal:
        values["metavar"] = "|".join(get_args(setting.annotation))
    return values


def pad_options(args: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return ``args`` with an empty second value after each option that has only one: if the
    next word is an option or missing, or if the first value names a file with both sides."""
    words: list[str] = []
    waiting = [word for arg in args for word in _split_option(arg, names)]
    while waiting:
        word = waiting.pop(0)
        words.append(word)
        if word == "--":
            return words + waiting
        if word not in names or not waiting or _is_option(waiting[0]):
            continue
        first = waiting.pop(0)
        words.append(first)
        if not waiting or _is_option(waiting[0]) or _holds_all(first):
            words.append("")
    return words


def _split_option(arg: str, names: Sequence[str]) -> list[str]:
    """Split an option such as ``--dev=FILE`` into two words."""
    name, equals, value = arg.partition("=")
    return [name, value] if equals and name in names else [arg]


def _is_option(word: str) -> bool:
    return word.startswith("-") and len(word) > 1


def _holds_all(path: str) -> bool:
    from dragoman.data.files.corpus_settings import format_by_name
    from dragoman.sizing.options import is_treebank

    return format_by_name(path) is not None or is_treebank(path)


def help_texts(kind: type) -> dict[str, str]:
    """Field -> the docstring under it, read from the source of a class and of those above it.

    Needs nothing but the source, so that ``dragoman VERB --help`` answers at once.
    """
    texts = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] in ("builtins", "pydantic"):
            continue
        (made,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(made, ast.ClassDef)
        for attribute, text in pairwise(made.body):
            match attribute, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    texts[name] = inspect.cleandoc(words)
    return texts
