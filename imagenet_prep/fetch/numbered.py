"""Numbered: a Progress that says which of several files its bars are about."""

from __future__ import annotations

from dataclasses import dataclass

from imagenet_prep.model import Progress


@dataclass(frozen=True, slots=True)
class Numbered:
    """A Progress whose bars say which of several files they are about."""

    progress: Progress
    number: int
    count: int

    def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
        """Start a bar: 3 of 308, and its own label."""
        which = f"{self.number:,} of {self.count:,}: " if self.count > 1 else ""
        self.progress.begin(f"{which}{label}", total, unit, done)

    def advance(self, amount: int = 1) -> None:
        """Pass it on."""
        self.progress.advance(amount)

    def end(self) -> None:
        """Pass it on."""
        self.progress.end()

    def note(self, text: str) -> None:
        """Pass it on."""
        self.progress.note(text)
