"""A wheel, as ``make wheel`` builds it for this machine and installed into an empty environment,
serves the page and translates by its kernels: it needs nothing of the source tree, no compiler, and
nothing that another test brought along."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from dragoman.native import compile as building
from dragoman.native import library

ROOT = Path(__file__).parents[2]


def run(*command: object, **variables: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment_serves_the_page(tiny_run: Path, tmp_path: Path) -> None:
    ours = building.own_platform() if library.available() else ""
    said = run(
        *[sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT],
        DRAGOMAN_WHEEL_FOR=ours if ours in building.PLATFORMS else "",
    )
    assert "page was not built" not in said
    (wheel,) = tmp_path.glob("*.whl")
    if library.available() and platform.libc_ver()[0] == "glibc":
        major, minor = re.search(r"-manylinux_(\d+)_(\d+)_", wheel.name).groups()  # type: ignore[union-attr]
        assert (int(major), int(minor)) <= tuple(map(int, platform.libc_ver()[1].split(".")))
    run(sys.executable, "-m", "venv", tmp_path / "empty")
    python = tmp_path / "empty" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt"]
    if index := os.environ.get("TORCH_INDEX"):  # as `make` takes it
        run(*pip, "--no-deps", "--index-url", index, "torch")
    run(*pip, f"{wheel}[serve]")

    # Without a path there is no compiler, and none was needed.
    told = subprocess.run(
        [python.with_name("dragoman"), "doctor"],
        cwd=tmp_path, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert re.search(r"^compiler +none$", told, re.MULTILINE)
    if library.available():
        level = library.status().level
        assert re.search(rf"^native kernels +{level}, on torch's threads$", told, re.MULTILINE)

    # Nothing of this environment, not even a home; bound to all addresses, as a container does it.
    process = subprocess.Popen(
        [python.with_name("dragoman"), "serve", str(tiny_run), "--host", "0.0.0.0", "--port", "0"],
        cwd=tmp_path,
        env={},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said, port = "", None
        while port is None:
            line = process.stderr.readline()
            assert line, said
            said += line
            port = re.search(r"http://0\.0\.0\.0:(\d+)", line)
        assert "not built" not in said
        address = f"http://127.0.0.1:{port[1]}"

        def got(path: str) -> tuple[str, str | None]:
            with urllib.request.urlopen(f"{address}/{path}", timeout=60) as answer:
                return answer.read().decode(), answer.headers["cache-control"]

        (served,) = json.loads(got("v1/info")[0])["runs"]
        assert ("native kernels" in served["precision"]) is library.available()
        page, _ = got("")
        assert "<title>dragoman</title>" in page
        files = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', page)
        assert len(files) >= 3
        for name in files:
            assert "immutable" in str(got(name)[1])
        assert "/v1/translate" in got("docs")[0]
        assert '"ready":true' in got("ready")[0]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            got("assets/..%2f..%2fapp.py")
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()
    assert process.returncode == 0
