"""What a program hands over, and gets told: plain data."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from ._skyhaul import BlockId

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Block", "Class", "Outcome", "Path", "PathStatus"]


class Outcome(enum.Enum):
    """What became of a block."""

    DELIVERED = "delivered"
    """The far end has it whole."""
    EXPIRED = "expired"
    """Its deadline passed first, or that of a block which it depends on."""
    CANCELLED = "cancelled"
    """It was not taken, or a block which it depends on was not."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block that is to be sent. Its data must not change before it has settled: it is sent from where it is."""

    data: Buffer
    """Any object with a buffer without holes: bytes, memoryview, a NumPy array; 1 to 16,777,215 bytes."""
    flow: int = 0
    """The series it belongs to. Its place there is the next one."""
    deadline: float | timedelta | None = None
    """How long from now it is worth anything at the far end, in seconds; None: for ever."""
    expendable: bool = False
    """Given up at its deadline, and given out as soon as it is whole; otherwise it arrives in the order of its flow."""
    priority: int = 1
    """0 goes first."""
    depends_on: BlockId | None = None
    """A block handed over before it, without which it is worth nothing."""
    useful_alone: bool = False
    """It is worth something even where the block that it depends on is given up."""
    class_name: str | None = None
    """The class that pays for it; None: the first."""
    redundant: bool = False
    """A copy goes on each path."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path to another node."""

    remote: str
    """The far end's address, such as ``192.0.2.1:4710``."""
    socket: int = 0
    """The place of the socket that it leaves from, in the order of ``bind``."""
    metered: bool = False
    """It carries only what would be late on the free paths."""
    standby: bool = False
    """It is used only while no other works."""


@dataclass(frozen=True, slots=True)
class Class:
    """A class that shares the line with others. Rates are bits a second, or texts such as ``2 Mbit/s``."""

    name: str
    """How blocks and other classes name it."""
    parent: str | None = None
    """The class that it is a part of; None: it stands at the top."""
    guarantee: str | int | None = None
    """What it gets whenever it has data."""
    ceiling: str | int | None = None
    """What it never exceeds; None: its parent's."""
    priority: int | None = None
    """Whose turn comes first: 0 (first) to 7; None: its parent's."""


class PathStatus(NamedTuple):
    """How a path does."""

    id: int
    state: str
    """probing, active, standby, stalled, silent, black-hole or absent"""
    rtt: float
    """Smoothed round-trip time in seconds."""
    min_rtt: float
    """The smallest seen lately."""
    rate: int
    """What the congestion controller allows now, in bits a second."""
    loss: float
    """Share of datagrams lost."""
    symbols_sent: int
    symbols_lost: int
    repair_sent: int
