"""The few kernels in C++, their C interface, and which of them this machine can run (DESIGN §6).

``native.available()`` says whether they do the work; without them the plain-torch twins do.
"""

from __future__ import annotations


def available() -> bool:
    """Whether native kernels were found, fit this processor and agree with their twins."""
    from dragoman.native import library

    return library.available()


def describe() -> str:
    """One line for ``doctor``: the instruction set in use, or why there is none."""
    from dragoman.native import library

    return library.status().reason
