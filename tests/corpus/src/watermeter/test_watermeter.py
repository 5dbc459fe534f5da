"""Tests of what the documents state in numbers."""

import tempfile
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path

from watermeter import alarms, export, retention

CONFIG = Path(__file__).parents[2] / "config" / "retention.toml"
NOW = datetime(2026, 9, 1, tzinfo=timezone.utc)


class Retention(unittest.TestCase):
    def test_a_row_goes_when_its_period_has_passed_and_no_dispute_is_open(self):
        periods = retention.Periods.read(CONFIG)
        old = retention.Row("M00000001", NOW - periods.by_class["raw"] - timedelta(seconds=1))
        kept = retention.Row("M00000002", NOW - periods.by_class["raw"])
        rows = [old, kept]
        self.assertEqual(list(retention.expired(rows, "raw", periods, NOW, frozenset())), [old])
        self.assertEqual(list(retention.expired(rows, "raw", periods, NOW, frozenset({"M00000001"}))), [])
        self.assertEqual(list(retention.expired(rows, "unnamed", periods, NOW, frozenset())), [])
        self.assertEqual([len(b) for b in retention.batches(rows * 2, 3)], [3, 1])


class Alarms(unittest.TestCase):
    def test_a_leak_is_broken_by_one_dry_or_missing_hour(self):
        self.assertTrue(alarms.leak([8] * 24, 8, 24))
        for hour in (7, None):
            self.assertFalse(alarms.leak([8] * 23 + [hour], 8, 24))

    def test_an_alarm_ends_with_the_flow_and_not_with_the_acknowledgement(self):
        alarm = alarms.Alarm("leak", opened=0, acknowledged=True)
        for hour, holds in enumerate([False, False, True, False, False, False]):
            alarm.hour(hour, holds, close_after=3)
        self.assertEqual(alarm.closed, 5)


class Export(unittest.TestCase):
    def test_a_closed_file_is_not_written_again(self):
        with tempfile.TemporaryDirectory() as root:
            period = Path(root) / "north" / "2026-08"
            period.mkdir(parents=True)
            ledger = Path(root) / "ledger.txt"
            line = export.Line("M20417733", 418220, 427901, 9681, "measured")
            export.close(period, "export.csv", [line], ledger)
            with self.assertRaises(FileExistsError):
                export.close(period, "export.csv", [line], ledger)
            self.assertEqual(export.next_correction(period), "correction-1.csv")
            self.assertTrue(ledger.read_text().startswith("north/2026-08/export.csv sha256:"))
