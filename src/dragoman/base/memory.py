"""How much memory this process has taken."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def peak_bytes() -> int:
    """The most that was resident at once since the program began.

    Linux' ``getrusage`` would not do: what it tells begins with the peak of the program that
    started this one.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return 0 if found is None else int(found[1]) * 1024
