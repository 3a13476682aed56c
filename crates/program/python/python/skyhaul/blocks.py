"""Plain data: what a program hands over, and what it gets back."""

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
    """The outcome of a block."""

    DELIVERED = "delivered"
    """The far end has all of it."""
    EXPIRED = "expired"
    """Its deadline passed before, or the deadline of a block that it depends on."""
    CANCELLED = "cancelled"
    """The session did not accept it, or a block that it depends on."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block to send. Its data is not copied: it must not change before the block has an outcome."""

    data: Buffer
    """Any object with a buffer without holes: bytes, memoryview, a NumPy array; 1 to 16,777,215 bytes."""
    flow: int = 0
    """The flow that it belongs to. It gets the next number there."""
    deadline: float | timedelta | None = None
    """Its deadline in seconds from now; None: none."""
    expendable: bool = False
    """Given up at its deadline, and delivered as soon as it is complete; otherwise delivered in the order of its flow."""
    priority: int = 1
    """0 is the most important."""
    depends_on: BlockId | None = None
    """A block handed over before it, without which it is useless."""
    useful_alone: bool = False
    """It is useful even if the block that it depends on is given up."""
    class_name: str | None = None
    """Its class; None: the first."""
    redundant: bool = False
    """It is sent on every path (duplicates)."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path to another node."""

    remote: str
    """The far end's address, such as ``192.0.2.1:4710``."""
    socket: int = 0
    """The index of its socket, in the order of ``bind``."""
    metered: bool = False
    """It carries only data that would be late on the free paths."""
    standby: bool = False
    """It is used only while no other path works."""


@dataclass(frozen=True, slots=True)
class Class:
    """A class that shares the line with others. Rates are bits per second, or texts such as ``2 Mbit/s``."""

    name: str
    """Its name, for blocks and other classes."""
    parent: str | None = None
    """Its parent class; None: none."""
    guarantee: str | int | None = None
    """Its guaranteed rate."""
    ceiling: str | int | None = None
    """Its highest rate; None: its parent's."""
    priority: int | None = None
    """0 (most important) to 7; None: its parent's."""


class PathStatus(NamedTuple):
    """The state of a path."""

    id: int
    state: str
    """probing, active, standby, stalled, silent, black-hole or absent"""
    rtt: float
    """Smoothed round-trip time in seconds."""
    min_rtt: float
    """The smallest recent one."""
    rate: int
    """The rate that the congestion controller allows now, in bits per second."""
    loss: float
    """Share of datagrams lost."""
    symbols_sent: int
    symbols_lost: int
    repair_sent: int
