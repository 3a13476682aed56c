#!/usr/bin/env python3
"""What deliveries cost a node at 1 TB a day, and what bad customers cost the others.

Run with the built program's path. A node makes products of a simulated downlink and delivers them
to four customers: a folder, an SFTP server (OpenSSH), a WebDAV server over HTTPS (rclone) and
another node; those whose server is not installed are left out, and said so.

1. For BENCH_SECONDS (60) all of them together get BENCH_RATE (11.6) MB/s: printed are the bytes
   that went, the processor time of the node, and its memory. Bar: 25 % of one core.
2. BENCH_PRODUCTS (80) small products are ordered one after the other, each BENCH_APART (0.3) s, in
   BENCH_ROUNDS (3) rounds without bad customers and as many with three: one accepts and never
   reads, one is a folder whose files block whoever opens them, one is a store that answers 503.
   They have all products in their backlogs. Servers keep up with that on two cores: faster orders
   would measure them. Printed are the median and 95th percentile of the time
   from the order to the acceptance, of each round, and by how much the bad ones lengthen the 95th
   percentile. Bar: 10 %.
3. The same, where the node also serves its products (`[serve]`): rounds without readers, and rounds
   beside BENCH_SLOW (2000) of them that have asked for the longest file and read 1 kB a second
   each. Bar: 10 %.

The load of the machine is printed before and after: what else runs here is in all figures. Ends
with 1 where a product is not delivered, or is another one than was published.
"""

import datetime
import functools
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import nodes
from process_use import cpu, memory
from slow_readers import SlowReaders, raise_limit

SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
RATE = float(os.environ.get("BENCH_RATE", "11.6"))
PRODUCTS = int(os.environ.get("BENCH_PRODUCTS", "80"))
APART = float(os.environ.get("BENCH_APART", "0.3"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SLOW = int(os.environ.get("BENCH_SLOW", "2000"))

# Some steps send gigabytes.
until = functools.partial(nodes.until, patience=600)
skyhaul = str(pathlib.Path(sys.argv[1]).resolve())
root = None
running = []
raise_limit()


def run(*arguments):
    done = subprocess.run([skyhaul, *arguments], cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{arguments}: {done.stderr}")
    return done.stdout


def ask(*arguments):
    command = [skyhaul, *arguments, "--config", "centre.toml", "--json"]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return json.loads(answer.stdout) if answer.returncode == 0 else {}


def start(*command, folder=None):
    log = open(root / "servers.log", "a")
    process = subprocess.Popen(command, cwd=folder or root, stdout=log, stderr=log,
                               stdin=subprocess.DEVNULL)
    running.append(process)
    return process


def stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    running.remove(process)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def load():
    return f"load of the machine {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores"


def secret(name, text):
    path = root / name
    path.write_text(text)
    path.chmod(0o600)
    return path


class Folder:
    def place(self):
        return 'to = "folder:out"\n'

    def folder(self):
        return root / "out"


class Sftp:
    def __init__(self):
        self.port = free_port()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", root / name],
                           check=True)
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)
        (root / "sftp").mkdir()
        config = secret("sshd.config", f"""ListenAddress 127.0.0.1
Port {self.port}
HostKey {root}/host
PidFile none
UsePAM no
StrictModes no
AuthorizedKeysFile {root}/user.pub
PermitRootLogin yes
Subsystem sftp internal-sftp
LogLevel QUIET
""")
        start("/usr/sbin/sshd", "-D", "-f", str(config))
        until(lambda: listens(self.port))
        said = subprocess.run(["ssh-keygen", "-l", "-f", root / "host.pub"], capture_output=True,
                              text=True, check=True)
        self.key = said.stdout.split()[1]

    def place(self):
        user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
        return (f'to = "sftp://{user}@127.0.0.1:{self.port}{root}/sftp"\nkey = "user"\n'
                f'host_keys = ["{self.key}"]\n')

    def folder(self):
        return root / "sftp"


class WebDav:
    def __init__(self):
        self.port = free_port()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-days", "9", "-subj", "/CN=127.0.0.1", "-addext",
             "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
             "-keyout", "tls.key", "-out", "tls.pem"],
            cwd=root, check=True, stderr=subprocess.DEVNULL)
        secret("password", "secret\n")
        (root / "webdav").mkdir()
        start("rclone", "serve", "webdav", "webdav", "--addr", f"127.0.0.1:{self.port}", "--cert",
              "tls.pem", "--key", "tls.key", "--user", "sky", "--pass", "secret", "--config",
              "/dev/null", "--dir-cache-time", "0s")
        until(lambda: listens(self.port))

    def place(self):
        return (f'to = "https://sky@127.0.0.1:{self.port}/"\npassword = "password"\n'
                'ca = "tls.pem"\n')

    def folder(self):
        return root / "webdav"


class Node:
    def __init__(self):
        self.port = free_port()
        self.fingerprint = run("keygen", "far.key").strip()

    def start(self, centre):
        text = f'[node]\nname = "far"\nkey = "far.key"\nstate = "far-state"\n[[listen]]\n'
        text += f'bind = "127.0.0.1:{self.port}"\n[[peer]]\nname = "c"\nfingerprints = '
        text += f'["{centre}"]\n[peer.files]\nroot = "got"\n'
        (root / "far.toml").write_text(text)
        start(skyhaul, "run", "far.toml")

    def peer(self):
        return (f'[[peer]]\nname = "far"\nfingerprints = ["{self.fingerprint}"]\n'
                f'addresses = ["127.0.0.1:{self.port}"]\n')

    def place(self):
        return 'to = "node:far/in"\n'

    def folder(self):
        return root / "got/in"


def good_customers():
    found = {"folder": Folder()}
    for name, kind, program in [("sftp", Sftp, "/usr/sbin/sshd"), ("https", WebDav, "rclone")]:
        if shutil.which(program):
            found[name] = kind()
        else:
            print(f"left out: {name}, because {program} is not installed")
    found["node"] = Node()
    return found


def bad_customers(names):
    """The tables of three that take nothing, and what they need."""
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    silent.listen(64)
    store = socket.socket()
    store.bind(("127.0.0.1", 0))
    store.listen(64)

    def refuse():
        while True:
            try:
                one, _ = store.accept()
            except OSError:
                return
            with one:
                one.recv(65536)
                one.sendall(b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\n"
                            b"connection: close\r\n\r\n")

    threading.Thread(target=refuse, daemon=True).start()
    stuck = root / "stuck"
    if not stuck.exists():
        stuck.mkdir()
        for name in names:
            os.mkfifo(stuck / name)
    secret("bad-password", "secret\n")
    secret("keys", "[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    port = silent.getsockname()[1]
    return {
        "silent": f'to = "sftp://a@127.0.0.1:{port}/in"\npassword = "bad-password"\n'
                  f'host_keys = ["SHA256:{"a" * 43}"]\n',
        "stuck": 'to = "folder:stuck"\n',
        "busy": f'to = "s3://bucket/in"\nendpoint = "http://127.0.0.1:{store.getsockname()[1]}"\n'
                'profile_file = "keys"\n',
    }


def start_centre(base, tables):
    (root / "centre.toml").write_text(base + tables)
    process = start(skyhaul, "run", "centre.toml")

    def answers():
        if process.poll() is not None:
            raise SystemExit(f"the node ended: {(root / 'servers.log').read_text()[-2000:]}")
        return ask("status")

    until(answers, 0.05)
    return process


def destination(name, place, keys=""):
    return f'[[destination]]\nname = "{name}"\n{place}{keys}'


def subscription(name, to, into):
    return (f'[[subscription]]\nof = "products"\nname = "{name}"\nto = {json.dumps(to)}\n'
            f'into = "{into}"\n[subscription.retry]\nfirst = "1 s"\nmost = "2 s"\n')


def make_products(base, station_key, centre_key, lengths, wanted):
    """Plays downlinks of these numbers of frames, and more of the last, until there are so many
    products. Each is of an hour of its own: of downlinks that overlap, the node would make further
    versions while it delivers."""
    centre = start_centre(base, "")
    address = ask("status")["centre"]["address"]
    played = 0
    while True:
        frames = lengths[min(played, len(lengths) - 1)]
        start = datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=played)
        (root / "downlink.toml").write_text(f"start = {start.isoformat()}Z\n")
        output = "x.dat"
        run("generate", "downlink.toml", "--mission", "noaa-21", "--frames", str(frames),
            "--output", output)
        (root / "station.toml").write_text(
            '[node]\nname = "s"\nkey = "s.key"\nstate = "spool"\n[[destination]]\nto = "node:c"\n'
            f'[[peer]]\nname = "c"\naddresses = ["{address}"]\nfingerprints = ["{centre_key}"]\n'
            f'[[channel]]\nname = "x"\ninput = "file:{output}"\n')
        shutil.rmtree(root / "spool", ignore_errors=True)
        run("run", "station.toml", "--until-sent")
        played += 1
        until(lambda: sum(one["state"] == "done"
                          for one in ask("status")["centre"]["contacts"]) >= played)
        found = catalogue()
        if len(found) >= wanted:
            stop(centre)
            (root / output).unlink()
            return found


def catalogue():
    """Name, time of publication, and files with their digests, by publication."""
    text = run("catalogue", "export", "--config", "centre.toml")
    items = [json.loads(line) for line in text.splitlines()]
    found = []
    for item in items:
        files = {name: (asset["file:size"], asset["file:checksum"][4:])
                 for name, asset in item["assets"].items()}
        found.append((item["properties"]["created"], item["id"], files))
    return sorted(found)


def all_there(customers, into, products):
    for name, customer in customers.items():
        for _, _, files in products:
            for file, (_, digest) in files.items():
                path = customer.folder() / into / file
                if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                    raise SystemExit(f"{path} at {name} is another file than was published")


def accepted(name):
    page = ask("deliveries", "list", "--destination", name, "--state", "accepted", "--limit",
               "10000")
    return page.get("deliveries", [])


def at_rate(base, customers, products):
    size = sum(size for _, _, files in products for size, _ in files.values())
    rate = RATE * 8 / len(customers)
    tables = "".join(destination(f"{name}-rate", one.place(), f'rate = "{rate:.3f} Mbit/s"\n')
                     for name, one in customers.items())
    names = [f"{name}-rate" for name in customers]
    centre = start_centre(base, tables + subscription("rate", names, "rate"))
    time.sleep(2)
    idle = cpu(centre.pid)
    time.sleep(2)
    idle = (cpu(centre.pid) - idle) / 2
    before, began = cpu(centre.pid), time.monotonic()
    run("subscription", "backfill", "rate", "--from", "1970-01-01T00:00:00Z", "--config",
        "centre.toml")
    while time.monotonic() < began + SECONDS:
        if all(len(accepted(name)) == len(products) for name in names):
            break
        time.sleep(5)
    took, spent = time.monotonic() - began, cpu(centre.pid) - before
    sent = sum(path.stat().st_size for one in customers.values()
               for path in (one.folder() / "rate").rglob("*") if path.is_file())
    print(f"at {RATE} MB/s to {len(customers)} customers ({', '.join(customers)}): "
          f"{sent / 1e6:.0f} MB in {took:.1f} s, {sent / took / 1e6:.2f} MB/s; node "
          f"{spent / took * 100:.1f} % of a core (bar 25 %), {idle * 100:.1f} % before; "
          f"{memory(centre.pid):.0f} MB")
    until(lambda: all(len(accepted(name)) == len(products) for name in names))
    all_there(customers, "rate", products)
    print(f"  {len(products)} products of {size / 1e6:.0f} MB are at each of them, whole")
    stop(centre)


def moment(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def longest_url(address):
    """The address of the longest file that the node serves."""
    found = subprocess.run(["curl", "-s", f"http://{address}/stac/search?limit=1000"], check=True,
                           capture_output=True).stdout
    files = [(asset["file:size"], item["id"], name) for item in json.loads(found)["features"]
             for name, asset in item["assets"].items()]
    _, item, name = max(files)
    return f"http://{address}/products/{item}/{name}"


def one_round(base, customers, products, label, bad, slow=None):
    """Seconds from the order to the acceptance, of each product at each customer; beside so many
    slow readers of the node's server of products, if it is one."""
    tables = "" if slow is None else (
        f'[serve]\nbind = "127.0.0.1:0"\nconnections = {SLOW + 100}\n'
        f'connections_per_address = {SLOW + 100}\n')
    tables += "".join(destination(f"{name}-{label}", one.place())
                     for name, one in customers.items())
    names = [f"{name}-{label}" for name in customers]
    tables += subscription(f"good-{label}", names, label)
    bad_names = [f"{name}-{label}" for name in bad]
    tables += "".join(destination(f"{name}-{label}", place) for name, place in bad.items())
    if bad:
        tables += f'[[subscription]]\nof = "products"\nname = "bad-{label}"\n'
        tables += f'to = {json.dumps(bad_names)}\n'
        tables += '[subscription.retry]\nfirst = "1 s"\nmost = "2 s"\n'
    centre = start_centre(base, tables)
    if bad:
        run("subscription", "backfill", f"bad-{label}", "--from", "1970-01-01T00:00:00Z",
            "--config", "centre.toml")
    # The first one finds out what the servers can; it is not measured.
    run("subscription", "backfill", f"good-{label}", "--from", products[0][0], "--to",
        products[1][0], "--config", "centre.toml")
    until(lambda: all(len(accepted(name)) == 1 for name in names))
    readers = None
    if slow:
        readers = SlowReaders(longest_url(ask("status")["serve"]["address"]), slow)
        until(lambda: ask("status")["serve"]["connections"] >= slow)
    ordered = {}
    for nth, (published, name, _) in list(enumerate(products))[1:]:
        began = time.monotonic()
        to = products[nth + 1][0] if nth + 1 < len(products) else "2200-01-01T00:00:00Z"
        ordered[name] = time.time()
        run("subscription", "backfill", f"good-{label}", "--from", published, "--to", to,
            "--config", "centre.toml")
        time.sleep(max(0, began + APART - time.monotonic()))
    until(lambda: all(len(accepted(name)) == len(products) for name in names))
    # A delivery has the name of its product's record without suffix.
    of = {file.split(".")[0]: name for _, name, files in products for file in files}
    spans = {name: [moment(one["since"]) - ordered[of[one["name"]]]
                    for one in accepted(f"{name}-{label}") if of[one["name"]] in ordered]
             for name in customers}
    taken = sum(len(accepted(name)) for name in bad_names)
    if taken >= len(products) * max(len(bad_names), 1):
        raise SystemExit("the bad customers took everything")
    if readers:
        # They were there to the end.
        there = ask("status")["serve"]["connections"]
        if there < slow:
            raise SystemExit(f"{slow - there} slow readers were cut off")
        readers.stop()
    all_there(customers, label, products)
    stop(centre)
    return spans


def compared(base, customers, products, what, rounds):
    """Rounds of both kinds in turns: `rounds` has for each kind its label and what is different."""
    found = {kind: [] for kind in rounds}
    for nth in range(ROUNDS):
        for kind, different in rounds.items():
            by_name = one_round(base, customers, products, f"{kind}-{nth}", **different)
            spans = [span for each in by_name.values() for span in each]
            p50 = statistics.median(spans)
            p95 = statistics.quantiles(spans, n=20)[-1]
            found[kind].append(p95)
            each = ", ".join(f"{name} {statistics.quantiles(own, n=20)[-1] * 1e3:.0f}"
                             for name, own in by_name.items())
            print(f"  round {nth + 1} {kind} {what}: median {p50 * 1e3:.0f} ms, 95 % "
                  f"{p95 * 1e3:.0f} ms ({each}), worst {max(spans) * 1e3:.0f} ms; {load()}")
    without, beside = (statistics.median(own) for own in found.values())
    first = next(iter(found.values()))
    spread = (max(first) - min(first)) / without * 100
    print(f"95th percentile of {len(products)} products at {len(customers)} customers: "
          f"{without * 1e3:.0f} ms; beside {what} {beside * 1e3:.0f} ms, "
          f"{(beside / without - 1) * 100:+.1f} % (bar 10 %); rounds without differ by "
          f"{spread:.0f} %")


def beside_bad(base, customers, products):
    first = {name for _, _, files in products for name in files}
    compared(base, customers, products, "three bad customers",
             {"without": {"bad": {}}, "with": {"bad": bad_customers(first)}})


def beside_slow(base, customers, products):
    compared(base, customers, products, f"{SLOW} slow readers",
             {"unread": {"bad": {}, "slow": 0}, "read": {"bad": {}, "slow": SLOW}})


# So that what it started ends with it.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    try:
        print(load())
        centre_key, station_key = (run("keygen", name).strip() for name in ("c.key", "s.key"))
        customers = good_customers()
        customers["node"].start(centre_key)
        base = '[node]\nname = "c"\nkey = "c.key"\nstate = "STATE"\n[[listen]]\n'
        base += 'bind = "127.0.0.1:0"\n[[peer]]\nname = "s"\nfingerprints = '
        base += f'["{station_key}"]\n{customers["node"].peer()}'
        # A customer's share of a minute: a frame has about a kilobyte.
        frames = int(SECONDS * RATE * 1e3 / len(customers))
        large = base.replace("STATE", "large") + '[products]\ndir = "large-products"\n'
        products = make_products(large, station_key, centre_key, [frames], 1)
        at_rate(large, customers, products)
        small = base.replace("STATE", "small") + '[products]\ndir = "small-products"\n'
        # The first products are long, for slow readers: no socket holds one.
        products = make_products(small, station_key, centre_key, [20_000, 600], PRODUCTS)
        beside_bad(small, customers, products)
        if shutil.which("curl"):
            beside_slow(small, customers, products)
        else:
            print("left out: slow readers, because curl is not installed")
        print(load())
    finally:
        for process in list(running):
            stop(process)
