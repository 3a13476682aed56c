"""What this package raises. Errors of the operating system with files are Python's own: ``FileNotFoundError`` and so on."""


class Error(Exception):
    """Everything below."""


class IdentityError(Error, ValueError):
    """A text or file that holds no key."""


class StartError(Error):
    """A node that did not start."""


class SocketError(StartError, OSError):
    """The host refused a socket."""


class ConfigError(StartError, ValueError):
    """What the node was told cannot be."""


class SessionError(Error):
    """A session that cannot be used."""


class ClosedError(SessionError, ConnectionError):
    """The session or node has ended, or did not begin."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class BlockError(SessionError, ValueError):
    """A block that cannot be sent."""


class DataError(Error, ValueError):
    """A file that does not hold what it should."""

    def __init__(self, place: str, what: str, help: str) -> None:
        super().__init__(f"{what}, {place}; help: {help}")
        self.place = place
        self.what = what
        self.help = help


class DamageWarning(UserWarning):
    """A file of which a part could not be read; the rest is there."""
