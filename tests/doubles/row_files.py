"""Recordings and pictures that tests make themselves. Not a test."""

from __future__ import annotations

import gzip
import struct
import wave
from pathlib import Path

import numpy as np
import numpy.typing as npt

RATE = 8_000


def tone(
    hertz: float, seconds: float, seed: int = 0, until: float | None = None
) -> npt.NDArray[np.float32]:
    """A tone of that pitch, which changes to ``until``, with some noise."""
    draw = np.random.default_rng(seed)
    at = np.arange(round(RATE * seconds)) / RATE
    pitch = np.linspace(hertz, until or hertz, len(at))
    clean = 0.3 * np.sin(2 * np.pi * np.cumsum(pitch) / RATE + draw.uniform(0, 6))
    return (clean + 0.01 * draw.standard_normal(len(at))).astype(np.float32)


def write_wav(path: Path, samples: npt.ArrayLike, rate: int = RATE, channels: int = 1) -> Path:
    """16 bits a sample; samples from -1 to 1."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.asarray(samples) * 32767).astype("<i2").tobytes())
    return path


def write_tones(folder: Path, each: int = 12, first: int = 0) -> Path:
    """A folder of short recordings for each of two labels, falling and rising, by four speakers."""
    for label, begin, end in (("falling", 1800.0, 300.0), ("rising", 300.0, 1800.0)):
        for number in range(first, first + each):
            speaker = ("ada", "ben", "eva", "tom")[number % 4]
            seconds = 0.15 + 0.02 * (number % 5)
            higher = 1 + 0.02 * (number % 3)
            samples = tone(begin * higher, seconds, number, end * higher)
            write_wav(folder / label / f"{label}_{speaker}_{number}.wav", samples)
    return folder


def write_idx(path: Path, numbers: npt.ArrayLike) -> Path:
    """An array of bytes as an IDX file; gzip by the ending of its name."""
    array = np.asarray(numbers, np.uint8)
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    content = head + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_bars(folder: Path, count: int = 80, seed: int = 0) -> tuple[Path, Path]:
    """IDX files of 8 x 8 pictures with one bright bar, and of their labels: 0 lying, 1 standing."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, count)
    pictures = draw.integers(0, 40, (count, 8, 8))
    for picture, label, place in zip(pictures, labels, draw.integers(0, 8, count), strict=True):
        (picture[:, place] if label else picture[place])[:] = 250
    folder.mkdir(parents=True, exist_ok=True)
    return (
        write_idx(folder / "bars-images-idx3-ubyte.gz", pictures),
        write_idx(folder / "bars-labels-idx1-ubyte.gz", labels),
    )


def write_pictures(folder: Path, each: int = 12, first: int = 0) -> Path:
    """A folder of PNG and JPEG files for each of two labels, lying and standing: one bright bar."""
    from PIL import Image

    for label in ("lying", "standing"):
        (folder / label).mkdir(parents=True, exist_ok=True)
        for number in range(first, first + each):
            draw = np.random.default_rng(number)
            pixels = draw.integers(0, 40, (16, 16), dtype=np.uint8)
            place = 2 * (number % 7) + 1
            bar = pixels[:, place : place + 2] if label == "standing" else pixels[place : place + 2]
            bar[:] = 250
            ending = ("png", "jpg")[number % 2]
            Image.fromarray(pixels).save(folder / label / f"{number}.{ending}")
    return folder
