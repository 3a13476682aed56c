"""The exceptions of this package. Errors of files are Python's own: ``FileNotFoundError`` and so on."""


class Error(Exception):
    """The base of all exceptions of this package."""


class IdentityError(Error, ValueError):
    """A text or file that is not a key."""


class StartError(Error):
    """A node that did not start."""


class SocketError(StartError, OSError):
    """The host refused a socket."""


class ConfigError(StartError, ValueError):
    """The options of the node are wrong."""


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
    """A file with wrong content."""

    def __init__(self, place: str, what: str, help: str) -> None:
        super().__init__(f"{what}, {place}; help: {help}")
        self.place = place
        self.what = what
        self.help = help


class DamageWarning(UserWarning):
    """A part of a file could not be read; the rest was."""
