"""Plain data: the arguments that a program passes, and the results that it gets."""

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
    """Its deadline passed before it was complete, or a block that it depends on expired."""
    CANCELLED = "cancelled"
    """The session did not accept the block, or did not accept a block that it depends on."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block to send. Its data is not copied, and must not change before the block has an
    outcome."""

    data: Buffer
    """Any object with a contiguous buffer: bytes, memoryview, a NumPy array; 1 to 16,777,215
    bytes."""
    flow: int = 0
    """The flow that it belongs to. The block gets the next number of this flow."""
    deadline: float | timedelta | None = None
    """The deadline in seconds from now. None: no deadline."""
    expendable: bool = False
    """True: given up at its deadline, and delivered as soon as it is complete. False: delivered
    in the order of its flow."""
    priority: int = 1
    """0 is the most important."""
    depends_on: BlockId | None = None
    """An earlier block, without which this block is useless."""
    useful_alone: bool = False
    """True: the block is useful even if the block that it depends on is given up."""
    class_name: str | None = None
    """The name of its class. None: the first class."""
    redundant: bool = False
    """True: the block is sent on every path (duplicates)."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path to another node."""

    remote: str
    """The address of the far end, such as ``192.0.2.1:4710``."""
    socket: int = 0
    """The index of the local socket, in the order of ``bind``."""
    metered: bool = False
    """True: the path carries only data that would be late on the free paths."""
    standby: bool = False
    """True: the path is used only while no other path works."""


@dataclass(frozen=True, slots=True)
class Class:
    """A class that shares the line with others. Rates are bits per second, or texts such as ``2 Mbit/s``."""

    name: str
    """The name by which blocks and other classes refer to it."""
    parent: str | None = None
    """The name of its parent class. None: no parent."""
    guarantee: str | int | None = None
    """Its guaranteed rate."""
    ceiling: str | int | None = None
    """Its highest rate. None: the ceiling of its parent."""
    priority: int | None = None
    """0 (most important) to 7. None: the priority of its parent."""


class PathStatus(NamedTuple):
    """The state of a path."""

    id: int
    state: str
    """probing, active, standby, stalled, silent, black-hole or absent"""
    rtt: float
    """Smoothed round-trip time in seconds."""
    min_rtt: float
    """The smallest recent round-trip time in seconds."""
    rate: int
    """The rate that the congestion controller allows now, in bits per second."""
    loss: float
    """The share of datagrams that were lost."""
    symbols_sent: int
    symbols_lost: int
    repair_sent: int
