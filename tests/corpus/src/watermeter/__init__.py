"""Retention, alarm rules and billing export of the metering backend."""
