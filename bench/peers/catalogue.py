#!/usr/bin/env python3
"""Makes a small catalogue large: catalogue.py FILE ITEMS.

The benchmark of the catalogue (`BENCH_KEPT=FILE`) publishes each item as a centre does, which takes
hours for ten million. This writes the rows that it would have written behind those that are there:
the same names, times, files, deliveries and failures, by SQL. Nobody else may have the file open.
Run the benchmark again afterwards, with the same file and this number in `BENCH_ITEMS`: when it
opens the file it sums up the items, as a node does with the file of an earlier release.
"""

import sqlite3
import sys
import time

MISSIONS = ["aqua", "aura", "terra", "noaa-20", "noaa-21"]
PRODUCTS = ["modis", "ceres-1", "ceres-2", "airs", "imager", "sounder", "ozone", "telemetry"]
BEGAN, APART, DESTINATIONS, AT_ONCE = 1_780_000_000_000_000, 260_000, 24, 250_000


def item(number):
    mission, product = MISSIONS[number % 5], PRODUCTS[number // 5 % 8]
    name, at = f"{mission}-{product}-polar-{number}", BEGAN + APART * number
    return (number + 1, name, 1, "session", mission, product, f"{mission}-{product}", ",polar,",
            ",64,127,", at, at, at, 1_000, number % 3, 200_000_000 + 2 * number, "present", None)


def files(number, name):
    digest = number.to_bytes(8, "big") + bytes([7]) * 24
    for place, suffix in enumerate(("CR", "PDS")):
        yield (number + 1, place, f"{name}.{suffix}", 100_000_000 + number, digest, bytes([1]) * 16,
               1, 1 - place)


def insert(table, columns):
    return f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})"


def main(path, items):
    base = sqlite3.connect(path, isolation_level=None)
    ids = dict(base.execute("SELECT name, id FROM destination"))
    places = [ids[f"customer-{nth}"] for nth in range(DESTINATIONS)]
    have, = base.execute("SELECT max(id) FROM item").fetchone()
    delivery, = base.execute("SELECT max(id) FROM delivery").fetchone()
    rows = base.execute("SELECT count(*), max(id) FROM item").fetchone()
    if rows[0] != rows[1] or have < 200:
        raise SystemExit(f"{path}: let the benchmark make 1,000 items first")
    # A delivery that waits, and one that has failed, as the benchmark leaves them.
    plain = base.execute("SELECT * FROM delivery WHERE item = 2").fetchone()
    failed = base.execute("SELECT * FROM delivery WHERE item = 101").fetchone()
    indexes = base.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql NOT "
                           "NULL").fetchall()
    began = time.monotonic()
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000"):
        base.execute(f"PRAGMA {pragma}")
    base.execute("BEGIN")
    for name, _ in indexes:
        base.execute(f"DROP INDEX {name}")
    for name, in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        base.execute(f"DROP TRIGGER {name}")
    for name in ("summary", "edge", "tally"):
        base.execute(f"DELETE FROM {name}")
    version, = base.execute("PRAGMA user_version").fetchone()
    base.execute(f"PRAGMA user_version = {version - 1}")
    sequence = dict(base.execute("SELECT id, sequence FROM destination"))
    for first in range(have, items, AT_ONCE):
        made = [item(number) for number in range(first, min(first + AT_ONCE, items))]
        base.executemany(insert("item", 17), made)
        base.executemany(insert("file", 8), (row for one in made for row in files(one[0] - 1,
                                                                                  one[1])))
        base.executemany("INSERT INTO event (at, item, what, text) VALUES (?, ?, 'published', ?)",
                         ((one[11], one[0], f"{one[1]} version 1") for one in made))
        rows = []
        for one in made:
            number = one[0] - 1
            like = plain if number % 100 else failed
            for nth in range(1 + (number % 5 < 2)):
                to = places[(number + 7 * nth) % DESTINATIONS]
                delivery, sequence[to] = delivery + 1, sequence[to] + 1
                rows.append((delivery, one[0], like[2], to, sequence[to], like[5], one[11],
                             *like[7:]))
        base.executemany(insert("delivery", len(plain)), rows)
        print(f"{first + len(made)} items, {time.monotonic() - began:.0f} s", flush=True)
    base.executemany("UPDATE destination SET sequence = ? WHERE id = ?",
                     [(last, to) for to, last in sequence.items()])
    for name, sql in indexes:
        base.execute(sql)
        print(f"index {name}, {time.monotonic() - began:.0f} s", flush=True)
    base.execute("COMMIT")
    base.execute("PRAGMA journal_mode = WAL")
    base.close()


main(sys.argv[1], int(sys.argv[2]))
