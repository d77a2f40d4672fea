"""Somebody who follows a training and remembers what was said. Not a test."""

from __future__ import annotations

from dragoman.training.records import Listener, UpdateRecord, ValidationRecord


class Follower(Listener):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begin(self, update: int) -> None:
        self.told.append(f"begin {update}")

    def on_update(self, record: UpdateRecord) -> None:
        self.told.append(f"update {record.update}")

    def on_validation(self, record: ValidationRecord) -> None:
        self.told.append(f"validation {record.update}")

    def on_plan(self, updates: int) -> None:
        self.told.append(f"plan {updates}")

    def on_message(self, text: str) -> None:
        self.told.append(text)

    def end(self) -> None:
        self.told.append("end")
