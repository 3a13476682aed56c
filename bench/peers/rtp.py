#!/usr/bin/env python3
"""Video over a long, lossy line: pictures that are shown unharmed and in time, by plain RTP, by SRT
and by this program.

    sudo bench/peers/rtp.py target/release/skyhaul

One clip of H.264, encoded once: BENCH_SECONDS (20) of noise and a test card, 30 pictures a
second, 4 Mbit/s, a key frame each second, no B pictures. ffmpeg sends it in real time without
encoding again; ffmpeg at the far end decodes it and prints the MD5 of each picture. The line: 20
Mbit/s, 40 ms one way, random loss of 1 % and 5 % towards the player. Plain RTP has no latency to
spend; SRT and this program have 60, 120 and 300 ms beyond the delay of the line. A picture counts
if it equals that of the clip and comes at most 100 ms later than the middle one of the run: what
is played out at a constant latency comes like that. The first two seconds are left out, in which
the player finds out what comes, and the last one, in which senders close. Prints the median and
the spread of BENCH_RUNS (5) runs, the rate that the line carried with all headers, and the load
of the machine. Needs ffmpeg with libx264 and libsrt.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

LAB = "rtp"
SECONDS = int(os.environ.get("BENCH_SECONDS", "20"))
RUNS = int(os.environ.get("BENCH_RUNS", "5"))
PICTURES_PER_SECOND = 30
# Seconds.
LEFT_OUT, SLACK = 2, 0.1
NEAR, FAR = "198.18.0.1", "198.18.0.2"
LOSSES = os.environ.get("BENCH_LOSSES", "1 5").split()
LATENCIES = [int(latency) for latency in os.environ.get("BENCH_LATENCIES", "60 120 300").split()]
LINK = """
seed = {seed}
[[link]]
name = "line"
up = {{ rate = "20 Mbit/s", one_way_delay = "40 ms", queue = "500 kB", loss = {{ kind = "independent", probability = "{loss} %" }} }}
down = {{ rate = "20 Mbit/s", one_way_delay = "40 ms", queue = "500 kB" }}
"""
SDP = (
    f"v=0\no=- 0 0 IN IP4 {FAR}\ns=-\nc=IN IP4 {FAR}\nt=0 0\n"
    "m=video 6004 RTP/AVP 96\na=rtpmap:96 H264/90000\n"
)
FFMPEG = ["ffmpeg", "-nostdin", "-loglevel", "error"]
# A player that waits for nothing: what is missing is missing at once.
PLAYER = [
    *FFMPEG,
    "-flags",
    "low_delay",
    "-threads",
    "1",
    "-max_delay",
    "0",
    "-analyzeduration",
    "500000",
    "-fflags",
    "nobuffer",
]
DIGESTS = ["-an", "-fps_mode", "passthrough", "-flush_packets", "1", "-f", "framemd5", "-"]


def encode(folder):
    """The clip, and the digest of each of its pictures in their order."""
    clip = folder / "clip.ts"
    source = f"testsrc2=size=640x360:rate={PICTURES_PER_SECOND},noise=alls=24:allf=t"
    how = [
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-tune",
        "zerolatency",
        "-g",
        str(PICTURES_PER_SECOND),
        "-bf",
        "0",
        "-sc_threshold",
        "0",
    ]
    rate = ["-b:v", "4M", "-maxrate", "4M", "-bufsize", "500k"]
    made = [
        *FFMPEG,
        "-f",
        "lavfi",
        "-i",
        source,
        "-t",
        str(SECONDS),
        *how,
        *rate,
        "-pix_fmt",
        "yuv420p",
        clip,
    ]
    subprocess.run([str(word) for word in made], check=True)
    printed = subprocess.run(
        [*FFMPEG, "-i", str(clip), *DIGESTS], check=True, capture_output=True, text=True
    ).stdout
    pictures = [
        line.rsplit(",", 1)[1].strip() for line in printed.splitlines() if not line.startswith("#")
    ]
    if len(set(pictures)) != SECONDS * PICTURES_PER_SECOND:
        sys.exit(f"the clip has {len(set(pictures))} different pictures")
    return clip, pictures


def start(command, **pipes):
    return subprocess.Popen(
        [str(word) for word in command], start_new_session=True, stdin=subprocess.DEVNULL, **pipes
    )


def stop(process, which=signal.SIGKILL):
    """Ends what was started, with all that it started."""
    try:
        os.killpg(process.pid, which)
    except ProcessLookupError:
        pass
    process.wait()


class Player:
    """Pictures with the times at which they were decoded."""

    def __init__(self, command):
        self.process = start(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.shown = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            if not line.startswith(b"#"):
                self.shown.append((time.monotonic(), line.rsplit(b",", 1)[1].strip().decode()))

    def end(self):
        stop(self.process, signal.SIGINT)
        self.thread.join()
        return self.shown


def in_time(shown, pictures):
    """The shares of the pictures that were shown unharmed and in time, and unharmed at any time."""
    places = {picture: place for place, picture in enumerate(pictures)}
    came = {}
    for at, picture in shown:
        if picture in places:
            came.setdefault(places[picture], at - places[picture] / PICTURES_PER_SECOND)
    first, end = LEFT_OUT * PICTURES_PER_SECOND, len(pictures) - PICTURES_PER_SECOND
    counted = [late for place, late in came.items() if first <= place < end]
    if not counted:
        return 0, 0
    usual = statistics.median(counted)
    return sum(late <= usual + SLACK for late in counted) / (end - first), len(counted) / (
        end - first
    )


def sent_bytes(inside):
    table = subprocess.run(
        [*inside, "cat", "/proc/net/dev"], check=True, capture_output=True, text=True
    ).stdout
    rows = (line.split(":") for line in table.splitlines() if ":" in line)
    return sum(int(figures.split()[8]) for name, figures in rows if name.strip() != "lo")


class Run:
    """One way to send the clip, over one line."""

    def __init__(self, program, folder, inside):
        self.program, self.folder, self.inside, self.ends, self.account = (
            program,
            folder,
            inside,
            [],
            None,
        )

    def rtp(self, _):
        player = Player(
            [
                *self.inside["b"],
                *PLAYER,
                "-reorder_queue_size",
                "0",
                "-protocol_whitelist",
                "file,udp,rtp",
                "-i",
                self.folder / "far.sdp",
                *DIGESTS,
            ]
        )
        return player, ["-f", "rtp", f"rtp://{FAR}:6004?pkt_size=1316"]

    def srt(self, latency):
        options = f"latency={latency * 1000}&pkt_size=1316"
        player = Player(
            [
                *self.inside["b"],
                *PLAYER,
                "-i",
                f"srt://{FAR}:7000?mode=listener&{options}",
                *DIGESTS,
            ]
        )
        return player, ["-f", "mpegts", f"srt://{FAR}:7000?mode=caller&{options}"]

    def skyhaul(self, latency):
        player, _ = self.rtp(latency)
        node, keys = f"{FAR}:4750", ["--insecure-test", "--insecure-beyond-loopback"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        serve = ["stream", "serve", "--bind", node, "--allow", f"rtp://{FAR}:6004", *keys]
        self.ends.append(start([*self.inside["b"], self.program, *serve], **quiet))
        time.sleep(0.5)
        source = [
            "stream",
            "--from",
            f"rtp://{NEAR}:5004?codec=h264",
            "--to",
            f"far:rtp://{FAR}:6004",
            "--node",
            f"far={node}",
            "--lateness",
            f"{latency}ms",
        ]
        line = ["--cc", "line", "--rate", "20mbit", "--json", *keys]
        self.account = start(
            [*self.inside["a"], self.program, *source, *line],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.ends.append(self.account)
        return player, ["-f", "rtp", f"rtp://{NEAR}:5004?pkt_size=1316"]

    def measure(self, how, latency, clip, pictures):
        player, target = getattr(self, how)(latency)
        try:
            time.sleep(1.5)
            before, began = sent_bytes(self.inside["a"]), time.monotonic()
            subprocess.run(
                [*self.inside["a"], *FFMPEG, "-re", "-i", str(clip), "-c", "copy", *target],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            time.sleep(1)
            rate = (sent_bytes(self.inside["a"]) - before) * 8 / (time.monotonic() - began)
        finally:
            shown = player.end()
            if self.account:
                os.killpg(self.account.pid, signal.SIGINT)
                last = [json.loads(line) for line in self.account.stdout][-1]
                if os.environ.get("BENCH_ACCOUNTS"):
                    print(f"    {last['counters']}")
            for end in self.ends:
                stop(end)
        return in_time(shown, pictures), rate


def once(program, folder, loss, seed, way, clip):
    config = folder / "line.toml"
    config.write_text(LINK.format(seed=seed, loss=loss))
    subprocess.run(
        [program, "lab", "up", "--lab", LAB, config], check=True, stdout=subprocess.DEVNULL
    )
    try:
        inside = {place: [program, "lab", "exec", "--lab", LAB, place, "--"] for place in "ab"}
        return Run(program, folder, inside).measure(*way, *clip)
    finally:
        subprocess.run([program, "lab", "down", "--kill", "--lab", LAB], stdout=subprocess.DEVNULL)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    ways = [("rtp", 0)] + [(how, latency) for latency in LATENCIES for how in ("srt", "skyhaul")]
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "far.sdp").write_text(SDP)
        clip = encode(folder)
        for seed in range(1, RUNS + 1):
            for loss in LOSSES:
                for way in ways:
                    (share, unharmed), rate = once(program, folder, loss, seed, way, clip)
                    found.setdefault((loss, way), []).append((share, rate))
                    print(
                        f"run {seed}, loss {loss} %, {way[0]} {way[1]} ms: {share:.1%} of the "
                        f"pictures in time, {unharmed:.1%} unharmed, "
                        f"{rate / 1e6:.2f} Mbit/s, load {os.getloadavg()[0]:.1f}",
                        flush=True,
                    )
    print(
        "| loss | by | latency | pictures in time, median | least to most | Mbit/s on the line |\n"
        "|---|---|---|---|---|---|"
    )
    for (loss, (how, latency)), runs in found.items():
        shares, rates = [share for share, _ in runs], [rate for _, rate in runs]
        spread = f"{min(shares):.1%} to {max(shares):.1%}"
        print(
            f"| {loss} % | {how} | {latency} ms | {statistics.median(shares):.1%} | {spread} "
            f"| {statistics.median(rates) / 1e6:.2f} |"
        )


if __name__ == "__main__":
    main()
