"""Bars: a Progress that remembers."""

from __future__ import annotations

from imagenet_prep.model import Silent


class Bars(Silent):
    """The names of all bars, how far all came, and what the last one lacks of what it announced."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []
        self.advanced = self.left = 0

    def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
        """Remember a bar."""
        self.labels.append(label)
        self.left = (total or 0) - done

    def advance(self, amount: int = 1) -> None:
        """Count."""
        self.advanced += amount
        self.left -= amount
