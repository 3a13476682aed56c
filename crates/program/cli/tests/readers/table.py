"""Reads a table of packets with pyarrow: table.py FILE

Prints a line of JSON for each row, as `skyhaul packets --json` prints packets.
"""

import json
import sys

import pyarrow as pa
import pyarrow.parquet

TYPES = {
    "file": pa.string(),
    "offset": pa.uint64(),
    "length": pa.uint32(),
    "apid": pa.uint16(),
    "count": pa.uint16(),
    "grouping": pa.string(),
    "telecommand": pa.bool_(),
    "secondary_header": pa.bool_(),
    "time": pa.timestamp("ns", tz="UTC"),
    "packet": pa.binary(),
}
SPACE_ONLY = ("apid", "count", "grouping", "telecommand", "secondary_header", "time")


def main(path):
    table = pyarrow.parquet.read_table(path)
    for field in table.schema:
        assert field.type == TYPES[field.name], field
    names = [name for name in TYPES if name != "packet" or "packet" in table.column_names]
    assert table.column_names == names, table.column_names
    # Times as counts: Python's own have no nanoseconds.
    times = table.column("time").cast(pa.int64()).to_pylist()
    columns = {name: table.column(name).to_pylist() for name in names if name != "time"}
    for at, nanos in enumerate(times):
        row = {name: values[at] for name, values in columns.items()}
        packet = row.pop("packet", None)
        if packet is not None:
            row["bytes"] = packet.hex()
        row["time"] = None if nanos is None else said(nanos)
        if row["apid"] is None:
            for name in SPACE_ONLY:
                assert row.pop(name) is None
        print(json.dumps(row))


def said(nanos):
    seconds, rest = divmod(nanos, 1_000_000_000)
    moment = pa.scalar(seconds, pa.timestamp("s")).as_py()
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest // 1000:06}Z"


main(sys.argv[1])
