"""The billing export and its corrections. Governed by docs/specs/billing-export-format.md."""

import csv
import hashlib
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

COLUMNS = ("meter", "start_l", "end_l", "volume_l", "quality")


@dataclass(frozen=True, order=True)
class Line:
    """One meter in one period. Everything that is measured is in whole litres."""

    meter: str
    start_l: int
    end_l: int
    volume_l: int
    quality: str


def text(lines: Iterable[Line]) -> str:
    """The file: one line for each meter, in order of the meter."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(line) for line in sorted(lines))
    return out.getvalue()


def close(directory: Path, name: str, lines: Iterable[Line], ledger: Path) -> str:
    """Writes a file that does not exist yet, makes it read-only and enters its digest into the ledger."""
    body = text(lines).encode()
    path = directory / name
    with path.open("xb") as file:
        file.write(body)
    path.chmod(0o444)
    digest = hashlib.sha256(body).hexdigest()
    with ledger.open("a", encoding="utf-8", newline="\n") as file:
        file.write(f"{directory.parent.name}/{directory.name}/{name} sha256:{digest}\n")
    return digest


def next_correction(directory: Path) -> str:
    """The name of the next correction of a period. Corrections are numbered from 1 without gaps."""
    taken = {path.name for path in directory.glob("correction-*.csv")}
    number = len(taken) + 1
    name = f"correction-{number}.csv"
    if name in taken:
        raise ValueError(f"{directory}: the corrections have a gap")
    return name


def holding(export: Iterable[Line], corrections: Iterable[Iterable[Line]]) -> list[Line]:
    """The state of a period: the newest line of each meter."""
    newest = {line.meter: line for line in export}
    for correction in corrections:
        newest.update((line.meter, line) for line in correction)
    return sorted(newest.values())
