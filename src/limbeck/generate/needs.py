"""What a run of G-PATE takes, before it starts: memory, time, and what would fit instead."""

import os
from typing import NamedTuple

import jax

from limbeck.errors import UserError
from limbeck.measure.teachers import CHUNK_BYTES, Schooling
from limbeck.models import discriminators
from limbeck.models.discriminators import Discriminator

# Multiplications a second and core that small networks side by side were seen to reach.
SPEED = 1.5e10
# A weight and the two moments of Adam, in float32.
BYTES_A_WEIGHT = 12


class Needs(NamedTuple):
    """Of a run: bytes for the teachers and for what is at work, and seconds; all about.

    The records come on top. Their number may be private, so it is not told.
    """

    teachers: int
    stored: int
    working: int
    seconds: float
    available: int

    @classmethod
    def of(
        cls, discriminator: Discriminator, schooling: Schooling, batch: int, steps: int
    ) -> "Needs":
        """By the number of weights, and of multiplications."""
        each = BYTES_A_WEIGHT * discriminators.size(discriminator)
        stored = schooling.teachers * each if schooling.memory else 0
        activations = 8 * batch * discriminator.activations_per_record
        # Forwards and backwards: two batches an update, and one for the votes.
        passes = batch * (6 * schooling.updates + 3) * steps * schooling.teachers
        seconds = passes * discriminator.macs / (SPEED * (os.cpu_count() or 1))
        working = max(CHUNK_BYTES, activations) + 4 * each
        return cls(schooling.teachers, stored, working, seconds, _available())

    @property
    def bytes(self) -> int:
        """Altogether."""
        return self.stored + self.working

    def __str__(self) -> str:
        return (
            f"{self.teachers} teachers need about {_size(self.bytes)} of memory ("
            f"{_size(self.available)} are free) and {_time(self.seconds)}"
        )

    def check(self) -> None:
        """Refuse what does not fit, and say what does."""
        if self.bytes <= self.available:
            return
        each = max(1, self.stored // self.teachers)
        fewer = (self.available - self.working) // each
        instead = f"--teachers {fewer} would fit, or " if fewer > 0 else ""
        raise UserError(
            f"{self}; {instead}--discriminator small, or --memory 0, which stores no teachers; or "
            "run it where there are more devices, over which teachers are shared out"
        )


def _available() -> int:
    """Of the devices, or of the machine."""
    devices = jax.devices()
    limits = [(device.memory_stats() or {}).get("bytes_limit") for device in devices]
    if devices[0].platform != "cpu" and all(limits):
        return sum(limit for limit in limits if limit)
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # not every system tells
        return 2**63


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6))} MB"


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{max(1, round(seconds))} seconds"
