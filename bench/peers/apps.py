#!/usr/bin/env python3
"""Files over a long, lossy line: `skyhaul cp` beside scp, rsync, rclone, aria2c and lftp, on the same emulated link, in turn.

    sudo bench/peers/apps.py target/release/skyhaul

The line: 93 Mbit/s, 160 ms round trip, 1 % lost at random towards the receiver. One file of 500 MB, then 10,000 files of 10 kB. Each tool
fetches them and has BENCH_SECONDS (40) for it, its start included; of one that is stopped then, what came over the line counts. Ours goes
on to the end. The others run twice: with CUBIC, the kernel's usual congestion control, and with BBR, both with buffers of 16 MiB at
most. scp and rsync go over an sshd of our own, the others over HTTP from `rclone serve`, with sixteen connections. What is not installed is
named and left out. At the end ours over loopback, without a line, three times, of which the middle one counts, onto an ext4 made for it: one
on which as many files were deleted in the last minutes takes several times as long to make them anew, whoever makes them. What plain writes
of the same files take there stands beside it. Ends with 1 where a bar is missed: 0.95 of the limit for the file, 0.85 for the many; 2 Gbit/s
and 5,000 files/s over loopback.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LAB = "apps"
SECONDS = float(os.environ.get("BENCH_SECONDS", "40"))
LINE = 93e6
LIMIT = LINE * 0.99 * 1448 / 1500
SERVER, NODE, WEB, SSH = "198.18.0.1", 4740, 8080, 2222
ONE, MANY, EACH = 500_000_000, 10_000, 10_000
RUNS = 3
LINK = """
seed = 1
[[link]]
name = "ground"
up = { rate = "93 Mbit/s", one_way_delay = "80 ms", queue = "1860 kB", loss = { kind = "independent", probability = "1 %" } }
down = { rate = "93 Mbit/s", one_way_delay = "80 ms", queue = "1860 kB" }
"""


class Line:
    """The emulated line, with what serves at place `a`."""

    def __init__(self, program, folder):
        self.program, self.folder, self.servers = program, folder, []

    def __enter__(self):
        (self.folder / "line.toml").write_text(LINK)
        subprocess.run([self.program, "lab", "up", "--lab", LAB, self.folder / "line.toml"], check=True, stdout=subprocess.DEVNULL)
        for place in "ab":
            for key in ("rmem", "wmem"):
                self.run(place, "sysctl", "-qw", f"net.ipv4.tcp_{key}=4096 131072 16777216")
        root = self.folder / "source"
        self.serve(self.program, "files", "serve", "--bind", f"{SERVER}:{NODE}", "--insecure-test", "--insecure-beyond-loopback", "--root", root)
        if shutil.which("rclone"):
            self.serve("rclone", "serve", "http", root, "--addr", f"{SERVER}:{WEB}")
        if os.path.exists("/usr/sbin/sshd"):
            self.serve("/usr/sbin/sshd", "-D", "-f", self.sshd())
        time.sleep(2)
        return self

    def __exit__(self, *_):
        for server in self.servers:
            end(server)
        subprocess.run([self.program, "lab", "down", "--kill", "--lab", LAB], stdout=subprocess.DEVNULL)

    def inside(self, place, *command):
        return [self.program, "lab", "exec", "--lab", LAB, place, "--", *map(str, command)]

    def run(self, place, *command):
        subprocess.run(self.inside(place, *command), check=True, stdout=subprocess.DEVNULL)

    def serve(self, *command):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.servers.append(subprocess.Popen(self.inside("a", *command), start_new_session=True, **quiet))

    def sshd(self):
        """A configuration with keys of its own, for this run alone."""
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
        os.makedirs("/run/sshd", exist_ok=True)
        config = self.folder / "sshd.conf"
        config.write_text(
            f"ListenAddress {SERVER}:{SSH}\nHostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/user.pub\nStrictModes no\n"
            f"PermitRootLogin yes\nPidFile none\nSubsystem sftp internal-sftp\n"
        )
        return config

    def came(self):
        """Bytes of TCP's payload that came to `b` so far, as if all packets were full."""
        said = subprocess.run(self.inside("b", "ip", "-s", "-j", "link", "show", "ground"), check=True, capture_output=True).stdout
        return json.loads(said)[0]["stats64"]["rx"]["bytes"] * 1448 / 1500

    def congestion(self, name):
        """By the route: a namespace may not choose its default."""
        for place, address in (("a", SERVER), ("b", "198.18.0.2")):
            route = f"198.18.0.0/30 dev ground proto kernel scope link src {address} congctl {name}"
            self.run(place, "ip", "route", "change", *route.split())


def end(process):
    """Ends what was started, with all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def there(folder):
    """Files that are whole, and their bytes."""
    whole = [path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.stat().st_size in (ONE, EACH)]
    return len(whole), sum(whole)


def timed(command, folder, patience):
    """Seconds taken, and whether it came to an end by itself."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with open(folder.parent / "said.txt", "w") as said:
        began = time.monotonic()
        process = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            code = process.wait(patience)
        except subprocess.TimeoutExpired:
            end(process)
            return time.monotonic() - began, False
    if code != 0:
        print(f"  {command[-3:]} ended with {code}: {(folder.parent / 'said.txt').read_text()[-300:]}", file=sys.stderr)
    return time.monotonic() - began, code == 0


def ours(program, folder, what, address):
    return [program, "cp", f"far:{what}", folder, "--node", f"far={address}", "--insecure-test", "--insecure-beyond-loopback", "--receipts", "/dev/null"]


def tools(line, to):
    """Each tool that is here: its name, and how it fetches the file and the folder."""
    key = f"-i {line.folder}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    source, web = f"root@{SERVER}:{line.folder}/source", f"http://{SERVER}:{WEB}"
    urls = line.folder / "urls.txt"
    urls.write_text("".join(f"{web}/many/{number}\n" for number in range(MANY)))
    rclone = ["rclone", "copy", "--http-url", web, "--transfers", "16", "--multi-thread-streams", "16", "--multi-thread-cutoff", "10M"]
    aria2c = ["aria2c", "-q", "-x16", "-s16", "-j16", "--file-allocation=none", "-d", to]
    scp = ["scp", "-q", "-r", "-P", SSH, *key.split()]
    rsync = ["rsync", "-a", "-e", f"ssh -p {SSH} {key}"]
    every = {
        "scp": ([*scp, f"{source}/one.bin", to], [*scp, f"{source}/many", to]),
        "rsync": ([*rsync, f"{source}/one.bin", to], [*rsync, f"{source}/many", to]),
        "rclone": ([*rclone, ":http:/one.bin", to], [*rclone, ":http:/many", to]),
        "aria2c -x16": ([*aria2c, f"{web}/one.bin"], [*aria2c, "-i", urls]),
        "lftp": (
            ["lftp", "-e", f"set xfer:log 0; pget -n 16 -O {to} {web}/one.bin; quit"],
            ["lftp", "-e", f"set xfer:log 0; mirror -P 16 {web}/many {to}/many; quit"],
        ),
    }
    for name, commands in every.items():
        if not shutil.which(name.split()[0]) or (name in ("scp", "rsync") and not os.path.exists("/usr/sbin/sshd")):
            print(f"skipped: {name} (or the sshd that it needs) is not here")
            continue
        yield name, commands


def row(line, name, command, folder, patience):
    before = line.came()
    took, is_done = timed(line.inside("b", *command), folder, patience)
    came = line.came() - before
    count, size = there(folder)
    rate = (size if is_done else came) * 8 / took
    how = f"all in {took:.1f} s" if is_done else f"stopped after {took:.0f} s" + (f", {count} whole" if count > 1 else "")
    print(f"| {name} | {rate / 1e6:.2f} | {rate / LIMIT:.3f} | {how} |", flush=True)
    return rate / LIMIT


def over_line(program, folder):
    to, shares = folder / "fetched", []
    with Line(program, folder) as line:
        for at, title in enumerate(("one file of 500 MB", "10,000 files of 10 kB")):
            print(f"\n### {title}\n\n| tool | Mbit/s | of the limit | fetched |\n|---|---|---|---|", flush=True)
            command = ours(program, to, ("one.bin", "many")[at], f"{SERVER}:{NODE}")
            shares.append(row(line, "skyhaul cp", command, to, 600))
            for control in ("cubic", "bbr"):
                line.congestion(control)
                for name, commands in tools(line, to):
                    row(line, f"{name}, {control}", commands[at], to, SECONDS)
    return shares


class Fresh:
    """A file system of its own in a file, as long as the system mounts such."""

    def __init__(self, folder):
        self.at, self.image, self.mounted = folder / "fresh", folder / "fresh.img", False

    def __enter__(self):
        self.at.mkdir()
        with open(self.image, "wb") as image:
            image.truncate(4 << 30)
        make = ["mkfs.ext4", "-q", self.image], ["mount", "-o", "loop", self.image, self.at]
        self.mounted = all(subprocess.run(command, stdin=subprocess.DEVNULL).returncode == 0 for command in make)
        if not self.mounted:
            print("a file system of its own cannot be mounted here: the folder is on that of the sources")
        return self.at

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", self.at], check=True)


def plainly(source, to):
    """Seconds to read what is in `source` and write it to `to`, all of it on disk at the end."""
    to.mkdir()
    os.sync()
    began = time.monotonic()
    for path in source.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    os.sync()
    return time.monotonic() - began


def over_loopback(program, folder):
    with Fresh(folder) as at:
        return over_loopback_to(program, folder / "source", at)


def once(program, what, where):
    """Bits of one file, or files of many, in a second."""
    address, to = where
    os.sync()
    took, _ = timed(ours(program, to, what, address), to, 600)
    count, size = there(to)
    print(f"over loopback, {what}: {size * 8 / took / 1e9:.2f} Gbit/s, {count / took:.0f} files/s, {took:.2f} s")
    return size * 8 / took if what == "one.bin" else count / took


def over_loopback_to(program, root, at):
    figures = []
    address = f"127.0.0.1:{NODE}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    serve = [program, "files", "serve", "--bind", address, "--insecure-test", "--insecure-beyond-loopback", "--root", root]
    server = subprocess.Popen(serve, start_new_session=True, **quiet)
    try:
        time.sleep(1)
        for what in ("one.bin", "many"):
            runs = sorted(once(program, what, (address, at / f"{what} {run}")) for run in range(RUNS))
            figures.append(runs[RUNS // 2])
        print(f"plain writes of the many: {MANY / plainly(root / 'many', at / 'plain'):.0f} files/s")
    finally:
        end(server)
    return figures


def main():
    program = os.path.abspath(sys.argv[1])
    if os.geteuid() != 0:
        print("emulated lines need root: run it with sudo", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="skyhaul-apps-") as name:
        folder = pathlib.Path(name)
        (folder / "source" / "many").mkdir(parents=True)
        with open(folder / "source" / "one.bin", "wb") as file:
            for _ in range(ONE // 1_000_000):
                file.write(os.urandom(1_000_000))
        for number in range(MANY):
            (folder / "source" / "many" / str(number)).write_bytes(os.urandom(EACH))
        print(f"93 Mbit/s, 160 ms, 1 % lost; the limit is {LIMIT / 1e6:.1f} Mbit/s of contents")
        shares = over_line(program, folder)
        figures = over_loopback(program, folder)
    bars = zip((*shares, *figures), (0.95, 0.85, 2e9, 5e3), ("one file", "many files", "loopback, bit/s", "loopback, files/s"))
    missed = 0
    for found, least, words in bars:
        missed += found < least
        print(f"{'pass' if found >= least else 'FAIL'}  {words}: {found:.4g}, at least {least:g}")
    print(f"machine: {os.cpu_count()} processors, load over the last five minutes {os.getloadavg()[1]:.2f}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
