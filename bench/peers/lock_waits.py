"""How long a thread waits for locks, seen by the kernel. Needs root and perf."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

CALL = re.compile(r"^\s*(\d+)\s+([\d.]+):\s+syscalls:sys_(enter|exit)_futex:(.*)$")
FIELD = re.compile(r"\b(op|val): (0x[0-9a-f]+)")
# FUTEX_WAIT and FUTEX_WAIT_BITSET, without the flags for private words and clocks.
WAITS = (0, 9)
# What a mutex of Rust's standard library holds while a thread waits for it. Condition variables
# and parked threads wait for other values.
CONTENDED = 2


def is_possible():
    """Whether such waits can be seen here."""
    return (os.geteuid() == 0 and shutil.which("perf") is not None
            and pathlib.Path("/sys/kernel/tracing/events/syscalls").exists())


class LockWaits:
    """Records from now on what the threads of a process with this name wait for."""

    def __init__(self, pid, name, file):
        tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
        threads = [task.name for task in tasks if (task / "comm").read_text().strip() == name]
        if not threads:
            raise SystemExit(f"process {pid} has no thread {name}")
        self.file = file
        self.perf = subprocess.Popen(
            ["perf", "record", "--quiet", "--output", file, "--tid", ",".join(threads),
             "--event", "syscalls:sys_enter_futex,syscalls:sys_exit_futex"],
            stderr=subprocess.DEVNULL)

    def end(self):
        """The waits until now, in microseconds."""
        self.perf.send_signal(signal.SIGINT)
        self.perf.wait()
        told = subprocess.run(["perf", "script", "--input", self.file, "--fields",
                               "tid,time,event,trace"], capture_output=True, text=True, check=True)
        begun, waits = {}, []
        calls = filter(None, map(CALL.match, told.stdout.splitlines()))
        for thread, time, side, words in (call.groups() for call in calls):
            if side == "enter":
                fields = {name: int(value, 16) for name, value in FIELD.findall(words)}
                is_lock = fields["op"] & 0x7F in WAITS and fields["val"] == CONTENDED
                begun[thread] = float(time) if is_lock else None
            elif begun.get(thread) is not None:
                waits.append((float(time) - begun.pop(thread)) * 1e6)
        return waits
