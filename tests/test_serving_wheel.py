"""A wheel brings the page and the server needs nothing else of the source tree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_wheel_serves_the_page(tiny_run: Path, tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "page was not built" not in built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    # In place of installing: the wheel's own files come first, its dependencies are there.
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "serve", str(tiny_run), "--port", "0"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said = ""
        address = None
        while address is None:
            line = process.stderr.readline()
            assert line, said
            said += line
            address = re.search(r"http://[\d.]+:\d+", line)
        assert "not built" not in said
        page = httpx.get(f"{address[0]}/")
        assert page.status_code == 200 and "<title>dragoman</title>" in page.text
        files = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', page.text)
        assert len(files) >= 3
        for name in files:
            found = httpx.get(f"{address[0]}/{name}")
            assert found.status_code == 200 and "immutable" in found.headers["cache-control"]
        assert httpx.get(f"{address[0]}/assets/..%2f..%2fapp.py").status_code == 404
    finally:
        process.terminate()
        process.wait(40)
        process.stderr.close()
