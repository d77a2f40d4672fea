"""What a user may ask of the fast paths; needs no torch."""

from __future__ import annotations

from typing import Literal

Precision = Literal["auto", "int8", "bf16", "fp32"]
