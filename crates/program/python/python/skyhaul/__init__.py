"""Sends blocks with deadlines, priorities and dependencies between two nodes; reads frames and
packets as columns.

Every call that waits for another node exists twice. The plain call blocks its thread: other
threads go on, Ctrl-C interrupts the call, and ``timeout`` limits it. The call with ``_async``
returns an awaitable of asyncio.
docs/how-to/python.md is a tutorial.
"""

from ._skyhaul import BlockId, Identity, LocalNode, Node, Received, Sent, Session, __version__
from .blocks import Block, Class, Outcome, Path, PathStatus
from .errors import (
    BlockError,
    ClosedError,
    ConfigError,
    DamageWarning,
    DataError,
    Error,
    HintRefused,
    IdentityError,
    SessionError,
    SocketError,
    StartError,
)
from .tables import Decoded, decode, frames, gaps, lab_bars, lab_results, packets

__all__ = [
    "Block",
    "BlockError",
    "BlockId",
    "Class",
    "ClosedError",
    "ConfigError",
    "DamageWarning",
    "DataError",
    "Decoded",
    "Error",
    "HintRefused",
    "Identity",
    "IdentityError",
    "LocalNode",
    "Node",
    "Outcome",
    "Path",
    "PathStatus",
    "Received",
    "Sent",
    "Session",
    "SessionError",
    "SocketError",
    "StartError",
    "__version__",
    "decode",
    "frames",
    "gaps",
    "lab_bars",
    "lab_results",
    "packets",
]
