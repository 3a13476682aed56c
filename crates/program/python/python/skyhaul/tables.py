"""Reads files as tables. A table is a dictionary of NumPy arrays, one for each column.

``pandas.DataFrame(table)`` accepts it.
Arrays of numbers share the memory of the decoder, and are read-only. Only these functions need
NumPy.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _skyhaul
from .errors import DamageWarning, DataError

if TYPE_CHECKING:
    import numpy

    Table = dict[str, numpy.ndarray[Any, Any]]

__all__ = ["Decoded", "decode", "frames", "gaps", "lab_bars", "lab_results", "packets"]


class Decoded(NamedTuple):
    """The content of a capture file."""

    frames: Table
    packets: Table
    account: list[dict[str, Any]]
    """The account of each downlink in the file, as ``skyhaul decode --json`` prints it."""


def decode(
    path: str | os.PathLike[str], mission: str | None = None, format: str = "auto", *, data: bool = False
) -> Decoded:
    """Decodes a capture file to frames and packets.

    The content is detected; ``mission`` (a name, or a file ending in .toml) and ``format`` (auto, bits, cadus, frames,
    symbols, soft) are for files where detection fails. With ``data``, both tables have a column
    with a copy of the bytes.
    """
    frames, packets, account = _skyhaul.decode(path, mission, format, data)
    return Decoded(_arrays(frames), _arrays(packets), json.loads(account))


def frames(
    path: str | os.PathLike[str], mission: str | None = None, format: str = "auto", *, data: bool = False
) -> Table:
    """Returns the frames of a capture file. Frames that were set aside are included; their scid,
    vcid and count are -1."""
    return decode(path, mission, format, data=data).frames


def packets(path: str | os.PathLike[str], mission: str | None = None, *, data: bool = False) -> Table:
    """Returns the packets of a packet file that ``skyhaul decode --packets-out`` or Level-0 wrote.

    The mission defines how times are read; without ``mission``, the name of the file gives it. An
    encapsulation packet has
    -1 for apid and count. If a part of the file is damaged, the other parts are read, and a
    DamageWarning names the place.
    """
    columns, told, damages = _skyhaul.packets(path, mission, data)
    if damages:
        more = f"; and {damages - len(told)} more" if damages > len(told) else ""
        warnings.warn(DamageWarning(f"{os.fspath(path)}: {'; '.join(told)}{more}"), stacklevel=2)
    return _arrays(columns)


def gaps(path: str | os.PathLike[str]) -> Table:
    """Returns the gaps of a centre, from its state folder or from a file with the output of
    ``skyhaul gaps --json``.

    A gap of frames has -1 for apid. A gap of packets has -1 for scid and missing. From a state
    folder, a gap that was requested from a station is shown as open.
    """
    if os.path.isdir(path):
        kept, damaged = _skyhaul.ledger(path)
        text = kept.encode()
        if damaged:
            warnings.warn(DamageWarning(f"{os.fspath(path)}: {'; '.join(damaged)}"), stacklevel=2)
    else:
        with open(path, "rb") as file:
            text = file.read()
    try:
        rows = json.loads(text)["gaps"]
        columns = {name: [row.get(name) for row in rows] for name in _GAP_NUMBERS + _GAP_WORDS + _GAP_TIMES}
        vcids = [" ".join(map(str, row["vcids"])) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not(path, "no ledger of gaps", "give what `skyhaul gaps --json` printed") from error
    numpy = _numpy()
    table: Table = {name: _text(columns[name]) for name in _GAP_WORDS}
    table["vcids"] = _text(vcids)
    for name in _GAP_NUMBERS:
        table[name] = numpy.array([-1 if value is None else value for value in columns[name]], dtype=numpy.int64)
    for name in _GAP_TIMES:
        # NumPy's times are UTC and have no zone.
        times = [str(value).removesuffix("Z") for value in columns[name]]
        table[name] = numpy.array(times, dtype="datetime64[ns]")
    return table


def lab_results(path: str | os.PathLike[str]) -> Table:
    """Returns the runs of experiments, from a file with the output of ``skyhaul lab run --json``.
    A row is a run of a cell.

    Each axis and each figure has a column. The name of a figure that is a part of another figure
    has a point, such as
    ``latency_s.p50``. A value that a run does not have is nan, or an empty text.
    """
    return _rows((_cell(outcome, cell) for outcome in _outcomes(path) for cell in outcome["cells"]), path)


def lab_bars(path: str | os.PathLike[str]) -> Table:
    """Returns the verdicts on the bars of experiments, from the same files. A row is a bar."""
    return _rows((_named(outcome, bar) for outcome in _outcomes(path) for bar in outcome["bars"]), path)


_GAP_WORDS = ("station", "channel", "mission", "state", "why")
_GAP_NUMBERS = ("flow", "scid", "apid", "first", "missed", "missing", "asked")
_GAP_TIMES = ("from", "to")


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        message = "tables are made of NumPy arrays: install numpy, or skyhaul[tables]"
        raise ImportError(message, name="numpy") from error
    return numpy


def _arrays(columns: Mapping[str, Any]) -> Table:
    numpy = _numpy()

    def array(column: Any) -> Any:
        if isinstance(column, tuple):
            places, words = column
            # The empty one is there for a table without rows.
            return numpy.array([*words, ""])[numpy.frombuffer(places, dtype=places.dtype)]
        if isinstance(column, list):
            rows = numpy.empty(len(column), dtype=object)
            rows[:] = column
            return rows
        return numpy.frombuffer(column, dtype=column.dtype)

    return {name: array(column) for name, column in columns.items()}


def _text(values: Sequence[Any]) -> Any:
    return _numpy().array(["" if value is None else str(value) for value in values], dtype=str)


def _not(path: str | os.PathLike[str], what: str, help: str) -> DataError:
    return DataError(os.fspath(path), f"the file holds {what}", help)


def _outcomes(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    help = "give what `skyhaul lab run --json` printed"
    try:
        with open(path, encoding="utf-8") as file:
            outcomes = [json.loads(line) for line in file if line.strip()]
        if not outcomes or not all("name" in one and "cells" in one and "bars" in one for one in outcomes):
            raise _not(path, "no outcome of an experiment", help)
    except (ValueError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise _not(path, "no outcome of an experiment", help) from error
    return outcomes


def _named(outcome: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    return {"scenario": outcome["name"], **row}


def _cell(outcome: Mapping[str, Any], cell: Mapping[str, Any]) -> dict[str, Any]:
    row = _named(outcome, {})
    for name, value in cell.items():
        if isinstance(value, Mapping):
            row.update({f"{name}.{part}": figure for part, figure in value.items()})
        else:
            row[name] = value
    return row


def _rows(rows: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> Table:
    numpy = _numpy()
    try:
        rows = list(rows)
        # A dictionary keeps the order in which names were first seen.
        names = list(dict.fromkeys(name for row in rows for name in row))
    except (TypeError, AttributeError) as error:
        raise _not(path, "an outcome that is not as the program prints it", "print it again") from error
    table: Table = {}
    for name in names:
        values = [row.get(name) for row in rows]
        is_number = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values if value is not None)
        if not is_number or all(value is None for value in values):
            table[name] = _text(values)
        elif all(isinstance(value, int) for value in values):
            table[name] = numpy.array(values, dtype=numpy.int64)
        else:
            table[name] = numpy.array([numpy.nan if value is None else value for value in values], dtype=numpy.float64)
    return table
