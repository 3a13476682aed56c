"""Two nodes over loopback, with a session between them."""

import contextlib
from collections.abc import Iterator
from typing import Any

import skyhaul

WAIT = 120.0
"""Far more than anything takes, on a machine with much else to do."""
HERE = "127.0.0.1:0"

_KEYS: dict[int, skyhaul.Identity] = {}


def key(number: int) -> skyhaul.Identity:
    """A key that is the same whenever it is asked for."""
    return _KEYS.setdefault(number, skyhaul.Identity.generate())


@contextlib.contextmanager
def ends(**options: Any) -> Iterator[tuple[skyhaul.Session, skyhaul.Session]]:
    """A session's two ends; the options are for both nodes."""
    with (
        skyhaul.Node("far", key(2), bind=HERE, trust=[key(1).fingerprint], **options) as far,
        skyhaul.Node("near", key(1), bind=HERE, **options) as near,
        near.connect(far.addresses[0], key(2).fingerprint, WAIT) as calling,
    ):
        accepted = far.accept(WAIT)
        assert accepted is not None
        with accepted as called:
            yield calling, called
