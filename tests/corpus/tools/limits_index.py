#!/usr/bin/env python3
"""Writes docs/specs/limits-index.md from the tables under "Limits" of each spec. With --check it only compares."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPECS = ROOT / "docs" / "specs"
TARGET = SPECS / "limits-index.md"
HEAD = """---
"headwater:generated": true
title: Table of limits
summary: Every limit that a spec states, in one table.
---

# Table of limits

Written by `tools/limits_index.py` from the specs. Change a limit in its spec.

| Spec | Limit | Value | Ruling |
| --- | --- | --- | --- |
"""


def rows(path):
    """The rows of the table under "Limits", without its two head lines."""
    text = path.read_text(encoding="utf-8")
    name = re.search(r"^id: (\S+)$", text, re.M).group(1)
    section = re.search(r"^## Limits$(.*?)(?=^## |\Z)", text, re.M | re.S)
    table = [line for line in section.group(1).splitlines() if line.startswith("|")] if section else []
    return [(name, f"| [{name}]({path.name}#limits) {line}\n") for line in table[2:]]


def main():
    specs = [path for path in sorted(SPECS.glob("*.md")) if path != TARGET]
    found = sorted((row for path in specs for row in rows(path)), key=lambda row: row[0])
    text = HEAD + "".join(line for _, line in found)
    if sys.argv[1:] == ["--check"]:
        return int(not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
