"""The alarm rules. Governed by docs/specs/alarm-evaluation.md.

A rule takes the hourly volumes of one meter, oldest first, `None` for an hour without one. It reads no clock and no
store.
"""

from collections.abc import Sequence
from dataclasses import dataclass

Volumes = Sequence[int | None]


def leak(volumes: Volumes, threshold_l: int, hours: int) -> bool:
    """Whether water has run through each of the last hours. An hour without a volume breaks the run."""
    last = volumes[-hours:]
    return len(last) == hours and all(v is not None and v >= threshold_l for v in last)


def burst(volumes: Volumes, threshold_l: int, hours: int) -> bool:
    """Whether each of the last hours is above what a household can draw."""
    last = volumes[-hours:]
    return len(last) == hours and all(v is not None and v > threshold_l for v in last)


def backflow(volumes: Volumes, exchanged: bool) -> bool:
    """Whether the register went down within the last hour and the meter is the same."""
    return not exchanged and bool(volumes) and volumes[-1] is not None and volumes[-1] < 0


def silent(volumes: Volumes, hours: int) -> bool:
    """Whether the last hours have no volume at all."""
    last = volumes[-hours:]
    return len(last) == hours and all(v is None for v in last)


@dataclass
class Alarm:
    """One alarm, from the hour in which its rule starts to hold."""

    rule: str
    opened: int
    quiet: int = 0
    acknowledged: bool = False
    closed: int | None = None

    def hour(self, now: int, holds: bool, close_after: int) -> None:
        """Takes the outcome of one hour. Acknowledging an alarm does not close it."""
        if self.closed is not None:
            return
        self.quiet = 0 if holds else self.quiet + 1
        if self.quiet >= close_after:
            self.closed = now
