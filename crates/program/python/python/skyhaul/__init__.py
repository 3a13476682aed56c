"""Blocks with deadlines, priorities and dependencies between two nodes; frames and packets of spacecraft as columns.

Every call that waits comes twice: by itself it blocks its thread (others go on, Ctrl-C ends it, ``timeout`` bounds it),
with ``_async`` it gives an awaitable of asyncio. The page docs/how-to/python.md is a tutorial.
"""

from ._skyhaul import BlockId, Identity, Node, Received, Sent, Session, __version__
from .blocks import Block, Class, Outcome, Path, PathStatus
from .errors import (
    BlockError,
    ClosedError,
    ConfigError,
    DamageWarning,
    DataError,
    Error,
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
    "Identity",
    "IdentityError",
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
