"""What stands at an address such as ``dragoman.models.recurrent.Recurrent``, imported when it is
asked for: tables that are read without torch name by it what needs torch."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def found_at(address: str) -> Any:
    """The attribute of the module that the address names."""
    module, name = address.rsplit(".", 1)
    return getattr(import_module(module), name)
