#!/usr/bin/env python3
"""How steady the default rate control is over loopback: runs of `adaptive`, of `line` and over TCP in turn.

Run by `make bench-steady` with the built program's path. BENCH_SECONDS sets each run's length (3), BENCH_RUNS how many are made
of each (10), BENCH_MTU the IP packet (1500). Where the machine has other work the ratio tells more than the speeds do: each run of
`adaptive` is compared with the run of `line` after it. Ends with 1 where one is below half of the other.
"""

import os
import statistics
import sys

from compare import LINE, OVER_TCP, skyhaul

SECONDS = float(os.environ.get("BENCH_SECONDS", "3"))
RUNS = max(int(os.environ.get("BENCH_RUNS", "10")), 1)
MTU = int(os.environ.get("BENCH_MTU", "1500"))
KINDS = {"adaptive": (), "line": LINE, "over TCP": OVER_TCP}


def main():
    program = sys.argv[1]
    rounds = []
    for _ in range(RUNS):
        rounds.append({name: skyhaul(program, MTU, name, flags, SECONDS) for name, flags in KINDS.items()})
        print("  ".join(f"{name} {row.gbps:.2f}" for name, row in rounds[-1].items()), flush=True)
    print(f"\n{RUNS} runs of each in turn, {SECONDS:g} s, IP packets of {MTU} bytes, over loopback; {os.cpu_count()} processors")
    print("| rate control | slowest | median | fastest, Gbit/s | s/GB sending | s/GB receiving |")
    print("|---|---|---|---|---|---|")
    for name in KINDS:
        of = [each[name] for each in rounds]
        speeds = [row.gbps for row in of]
        spent = [statistics.median(getattr(row, end) for row in of) for end in ("send", "receive")]
        print(
            f"| {name} | {min(speeds):.2f} | {statistics.median(speeds):.2f} | {max(speeds):.2f}"
            f" | {spent[0]:.2f} | {spent[1]:.2f} |"
        )
    ratios = [each["adaptive"].gbps / each["line"].gbps for each in rounds]
    print(f"adaptive ÷ line: {min(ratios):.2f} at least, {statistics.median(ratios):.2f} in the median")
    return 0 if min(ratios) >= 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
