"""Which rows the purge job deletes. Governed by docs/specs/retention-classes.md."""

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """A row of the store, as far as the purge job looks at it."""

    meter: str
    describes: datetime


@dataclass(frozen=True)
class Periods:
    """How long each class stays."""

    by_class: dict[str, timedelta]
    batch_rows: int

    @classmethod
    def read(cls, path: Path) -> "Periods":
        """Reads config/retention.toml. A period that is not positive is refused: it would empty the class."""
        with path.open("rb") as file:
            config = tomllib.load(file)
        days = config["periods_days"]
        if wrong := sorted(name for name, value in days.items() if value <= 0):
            raise ValueError(f"{path}: no positive period for {', '.join(wrong)}")
        return cls({name: timedelta(days=value) for name, value in days.items()}, config["purge"]["batch_rows"])


def expired(rows: Iterable[Row], name: str, periods: Periods, now: datetime, disputed: frozenset[str]) -> Iterator[Row]:
    """The rows of a class that are past their period.

    Age counts from the time that a row describes. A class without a period is never purged. A meter with an open
    dispute keeps its raw readings.
    """
    period = periods.by_class.get(name)
    if period is None:
        return
    for row in rows:
        if name == "raw" and row.meter in disputed:
            continue
        if now - row.describes > period:
            yield row


def batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """The rows in lists of at most `size`, in order."""
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
