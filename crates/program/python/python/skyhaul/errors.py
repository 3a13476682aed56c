"""The exceptions of this package. A file that cannot be read raises an exception of Python, such
as ``FileNotFoundError``."""


class Error(Exception):
    """The base of all exceptions of this package."""


class IdentityError(Error, ValueError):
    """The text or file is not a key."""


class StartError(Error):
    """The node did not start."""


class SocketError(StartError, OSError):
    """The host refused a socket."""


class ConfigError(StartError, ValueError):
    """The options of the node are wrong."""


class SessionError(Error):
    """The session cannot be used."""


class ClosedError(SessionError, ConnectionError):
    """The session or node has ended, or did not begin."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class BlockError(SessionError, ValueError):
    """The block cannot be sent."""


class HintRefused(SessionError, ValueError):
    """The session, or the node of a local session, does not take the hint."""


class DataError(Error, ValueError):
    """The content of the file is wrong."""

    def __init__(self, place: str, what: str, help: str) -> None:
        super().__init__(f"{what}, {place}; help: {help}")
        self.place = place
        self.what = what
        self.help = help


class DamageWarning(UserWarning):
    """A part of a file could not be read. The other parts were read."""
