#!/usr/bin/env python3
"""What those who look at a node cost it: scrapes of its metrics and open pages.

Run with the built program's path. A station sends a recording of BENCH_FRAMES (600,000) frames to a
centre as fast as both can, BENCH_ROUNDS (8) times with 50 scrapes of /metrics a second and 20 open
streams of looks at the page of each of the two, and as many times with nobody looking. Those who
look take the processor from the nodes where all cores are busy, and belong on another machine: in
the rounds without them, a process computes as much as they did. Printed are the rate from the
station's start to its last receipt, the processor time of both nodes and of those who look, and,
where root has perf, how long the thread that writes the store waits for locks. Bars: 1 % less, and
the 99th percentile of these waits as without those who look.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import lock_waits
from nodes import status, until
from process_use import cpu

FRAMES = int(os.environ.get("BENCH_FRAMES", "600000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "8"))
SCRAPES, PAGES = 50, 20
PAGES_AT = ("127.0.0.1:18480", "127.0.0.1:18481")

skyhaul = str(pathlib.Path(sys.argv[1]).resolve())

# A process of its own for each kind: what it computes is not in the figures of this one.
SCRAPER = """
import http.client, sys, time
one = [http.client.HTTPConnection(at) for at in sys.argv[2:]]
begun, count = time.monotonic(), 0
while True:
    for each in one:
        each.request("GET", "/metrics")
        answer = each.getresponse()
        if answer.status != 200 or not answer.read():
            sys.exit("no metrics")
    count += len(one)
    time.sleep(max(0, begun + count / len(one) / float(sys.argv[1]) - time.monotonic()))
"""
READER = """
import selectors, socket, sys
chosen = selectors.DefaultSelector()
for at in sys.argv[2:]:
    host, port = at.split(":")
    for _ in range(int(sys.argv[1])):
        one = socket.create_connection((host, int(port)))
        one.sendall(f"GET /api/v1/stream HTTP/1.1\\r\\nhost: {at}\\r\\n\\r\\n".encode())
        chosen.register(one, selectors.EVENT_READ)
while True:
    for key, _ in chosen.select():
        if not key.fileobj.recv(1 << 20):
            sys.exit("a stream ended")
"""

# Computes this share of the time.
COMPUTER = """
import sys, time
begun = time.monotonic()
while True:
    while time.process_time() < float(sys.argv[1]) * (time.monotonic() - begun):
        sum(range(200))
    time.sleep(0.002)
"""


def node(folder, *arguments):
    log = open(folder / "nodes.log", "a")
    return subprocess.Popen([skyhaul, "run", *arguments], cwd=folder, stdout=log, stderr=log,
                            stdin=subprocess.DEVNULL)


def one_run(folder, keys, computed=None):
    """Gbit/s; processor time a second of the centre, of the station and of those who look, or of
    the process that computes a share in their place; waits of the store's thread for locks, in
    microseconds."""
    for name in ("store", "spool"):
        shutil.rmtree(folder / name, ignore_errors=True)
    table = '[node]\nname = "{0}"\nkey = "{0}.key"\nstate = "{1}"\n[web]\nbind = "{2}"\n'
    (folder / "centre.toml").write_text(
        table.format("c", "store", PAGES_AT[0]) + '[[listen]]\nbind = "127.0.0.1:0"\n'
        f'[[peer]]\nname = "s"\nfingerprints = ["{keys["s"]}"]\n')
    centre = node(folder, "centre.toml")
    looking = []
    try:
        address = until(
            lambda: status(skyhaul, folder, "centre.toml").get("centre", {}).get("address"))
        (folder / "station.toml").write_text(
            table.format("s", "spool", PAGES_AT[1]) + '[[destination]]\nto = "node:c"\n'
            f'[[peer]]\nname = "c"\naddresses = ["{address}"]\nfingerprints = ["{keys["c"]}"]\n'
            '[[channel]]\nname = "x"\ninput = "file:pass.dat"\n')
        recorded = None
        if lock_waits.is_possible():
            recorded = lock_waits.LockWaits(centre.pid, "store", folder / "locks.data")
        spent, began = cpu(centre.pid), time.monotonic()
        station = node(folder, "station.toml", "--until-sent")
        if computed is not None:
            looking.append(subprocess.Popen([sys.executable, "-c", COMPUTER, str(computed)]))
        else:
            until(lambda: status(skyhaul, folder, "station.toml"))
            for script, count in ((SCRAPER, SCRAPES), (READER, PAGES)):
                looking.append(subprocess.Popen([sys.executable, "-c", script, str(count),
                                                 *PAGES_AT], stderr=subprocess.DEVNULL))
        _, code, used = os.wait4(station.pid, 0)
        took = time.monotonic() - began
        if code != 0:
            raise SystemExit(f"the station failed: {(folder / 'nodes.log').read_text()[-2000:]}")
        shares = [cpu(centre.pid) - spent, used.ru_utime + used.ru_stime]
        shares.append(sum(cpu(one.pid) for one in looking))
        waits = recorded.end() if recorded else []
        size = (folder / "pass.dat").stat().st_size
        return size * 8 / took / 1e9, [share / took for share in shares], waits
    finally:
        for one in [*looking, centre]:
            one.terminate()
            one.wait()


def tell(number, kind, rate, shares):
    print(f"round {number + 1}, {kind}: {rate:.3f} Gbit/s; of a core: centre {shares[0]:.0%}, "
          f"station {shares[1]:.0%}, who looks {shares[2]:.1%}", flush=True)


def main():
    print(f"load of the machine {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(dir=".") as made:
        folder = pathlib.Path(made).resolve()
        keys = {}
        for name in "sc":
            made = subprocess.run([skyhaul, "keygen", f"{name}.key"], cwd=folder, check=True,
                                  capture_output=True, text=True)
            keys[name] = made.stdout.split()[-1]
        subprocess.run([skyhaul, "generate", "--mission", "noaa-21", "--frames", str(FRAMES),
                        "--output", "pass.dat"], cwd=folder, check=True, capture_output=True)
        looked, unseen, waits, waits_unseen = [], [], [], []
        for number in range(ROUNDS):
            rate, shares, waited = one_run(folder, keys)
            looked.append(rate)
            waits += waited
            tell(number, f"{SCRAPES} scrapes/s and {PAGES} pages of each", rate, shares)
            rate, shares, waited = one_run(folder, keys, computed=shares[2])
            unseen.append(rate)
            waits_unseen += waited
            tell(number, "nobody looks", rate, shares)
        alone, beside = statistics.median(unseen), statistics.median(looked)
        print(f"median {alone:.3f} Gbit/s, beside those who look {beside:.3f} "
              f"({(beside / alone - 1) * 100:+.1f} %; rounds without differ by "
              f"{(max(unseen) / min(unseen) - 1) * 100:.1f} %)")
        for kind, found in (("beside those who look", waits), ("nobody looks", waits_unseen)):
            if len(found) > 1:
                last = statistics.quantiles(found, n=100)[98]
                print(f"the store's thread, {kind}: {len(found)} waits for a lock, "
                      f"{sum(found) / 1e3:.0f} ms in all, 99th percentile {last / 1e3:.1f} ms")
    print(f"load of the machine {os.getloadavg()[0]:.2f}")


main()
