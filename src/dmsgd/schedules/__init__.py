"""Schedules: batches drawn ahead of time, on disk or in memory, and used again and again."""

from dmsgd.schedules.presampling import Schedule, presample

__all__ = ["Schedule", "presample"]
