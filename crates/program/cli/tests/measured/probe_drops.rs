//! Drops of datagrams, provoked at each place: the sending socket, the backlog of the receiving
//! processor, the receiving socket. The sending queue and the path are provoked in `probe_line`;
//! the ring of a network card needs a card. Needs root and network namespaces; skipped without.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing; what is skipped is said"
)]

use crate::support::patience::until;
use crate::support::places::{Cable, Lab, can, printed_by};
use crate::support::process::{Running, text};
use crate::support::schema::found;
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_skyhaul");

/// The account of a stream in the direction up. Its counts must add up.
#[track_caller]
fn account(output: &Output) -> Account {
    let found = found(output, "probe-loss.json");
    let account = Account(found["account"].clone());
    let host: i64 = ["card", "softnet", "socket"]
        .iter()
        .map(|place| account.count(&format!("receiving_host/{place}")))
        .sum();
    let sender = account.count("dropped_by_sender") + account.count("dropped_in_sending_queue");
    let rest =
        account.count("lost_on_path") + account.count("received") + account.count("unexplained");
    assert_eq!(account.count("offered"), sender + host + rest, "{}", account.0);
    account
}

struct Account(Value);

impl Account {
    fn count(&self, place: &str) -> i64 {
        self.0.pointer(&format!("/{place}")).and_then(Value::as_i64).unwrap()
    }

    /// The number of datagrams that did not arrive.
    fn missing(&self) -> i64 {
        self.count("offered") - self.count("received")
    }
}

/// A far end at the second end of a cable, and its address.
fn far_of(cable: &Cable) -> (Running, String) {
    let mut serving = cable.at(1, &[PROGRAM, "probe", "serve", "--bind", "198.18.9.2:0"]);
    let mut far = Running::of(serving.stdout(Stdio::piped()).stderr(Stdio::null()));
    let address = far.address();
    (far, address)
}

#[test]
fn a_probe_counts_what_the_sending_socket_refuses() {
    if !can("network namespaces", "/proc/self/ns/net") {
        return;
    }
    let cable = Cable::new("t-drops-sender", 9_000);
    // All that the socket can hold waits before the cable, and the cable drops nothing.
    printed_by(
        &mut cable
            .line_at(0, "tc qdisc add dev cable root tbf rate 40mbit burst 20000 limit 100000000"),
    );
    let (_far, address) = far_of(&cable);
    let words = ["probe", "loss", &address, "--rate", "400 Mbit/s", "--payload", "8000"];
    let words = [&[PROGRAM], &words[..], &["--seconds", "2", "--json"]].concat();
    let account = account(&cable.at(0, &words).output().unwrap());
    let refused = account.count("dropped_by_sender");
    // The socket may have refused a few pings as well; only the system counts these.
    assert!(refused > 100 && refused > account.missing() * 9 / 10, "{}", account.0);
}

#[test]
fn a_probe_counts_what_the_receiving_socket_drops_while_its_program_is_stopped() {
    if !can("network namespaces", "/proc/self/ns/net") {
        return;
    }
    let cable = Cable::new("t-drops-socket", 9_000);
    let (far, address) = far_of(&cable);
    let words = ["probe", "loss", &address, "--rate", "200 Mbit/s", "--payload", "8000"];
    let words = [&[PROGRAM], &words[..], &["--seconds", "3", "--json"]].concat();
    let near = cable.at(0, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let inside =
        |file: &str| std::fs::read_to_string(format!("/proc/{}/net/{file}", far.id())).unwrap();
    let arrived = || {
        let devices = inside("dev");
        let cable = devices.lines().find_map(|line| line.trim().strip_prefix("cable:")).unwrap();
        cable.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    until(|| (arrived() > 300).then_some(()), || "no stream".to_owned());
    far.signal(Signal::STOP);
    let drops = || {
        let sockets = inside("udp");
        let drops =
            |line: &str| line.split_whitespace().last().and_then(|count| count.parse::<u64>().ok());
        sockets.lines().filter_map(drops).sum::<u64>()
    };
    until(|| (drops() > 0).then_some(()), || inside("udp"));
    far.signal(Signal::CONT);
    let account = account(&near.wait_with_output().unwrap());
    let dropped = account.count("receiving_host/socket");
    // Equal to the kernel's own count for this socket: nothing else sends to it.
    assert_eq!(dropped.unsigned_abs(), drops(), "{}", account.0);
    // The unexplained rest is negative if pings were dropped as well.
    assert!(dropped > 0 && account.count("unexplained") <= 0, "{}", account.0);
    assert_eq!(
        (account.count("lost_on_path"), account.count("receiving_host/card")),
        (0, 0),
        "{}",
        account.0
    );
}

/// A line without limits: packets arrive as fast as they are sent.
const LINE: &str = "[[link]]\nname = \"line\"\nboth = {}\n";

#[test]
fn a_probe_counts_the_drops_of_a_processor_backlog_apart_from_those_of_the_card() {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let longest: usize = std::fs::read_to_string("/proc/sys/net/core/netdev_max_backlog")
        .unwrap_or_default()
        .trim()
        .parse()
        .unwrap_or(0);
    if !can("emulated links", "/dev/net/tun") {
        return;
    }
    if processors < 2
        || !(1..=2_000).contains(&longest)
        || Command::new("taskset").arg("-V").output().is_err()
    {
        eprintln!(
            "SKIPPED: it needs two processors, a backlog of 1,000 packets or so, and taskset"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("line.toml"), LINE).unwrap();
    let lab = Lab::up_on("0", "t-drops-backlog", "line.toml", folder);
    // All packets wait for the second processor, which takes long for each.
    std::fs::write(folder.join("slow"), slow_program()).unwrap();
    let filters =
        format!("filter add dev line ingress bpf bytecode-file {}/slow\n", folder.display())
            .repeat(FILTERS);
    std::fs::write(folder.join("filters"), format!("qdisc add dev line ingress\n{filters}"))
        .unwrap();
    let slowed = lab.at("b", &["tc", "-batch", "filters"]).output().unwrap();
    if !slowed.status.success() {
        eprintln!("SKIPPED: this kernel takes no packet filters: {}", text(&slowed.stderr));
        return;
    }
    printed_by(
        &mut lab.at("b", &["sh", "-c", "echo 2 > /sys/class/net/line/queues/rx-0/rps_cpus"]),
    );
    let dropped_by_device = || {
        let told =
            printed_by(&mut lab.at("b", &["cat", "/sys/class/net/line/statistics/rx_dropped"]));
        told.trim().parse::<i64>().unwrap()
    };
    let before = dropped_by_device();
    let mut serving = lab.probe("b", &["serve", "--bind", "198.18.0.2:0"]);
    let mut far = Running::of(serving.stdout(Stdio::piped()).stderr(Stdio::null()));
    let address = far.address();
    let words =
        ["loss", &address, "--rate", "16 Mbit/s", "--payload", "200", "--seconds", "1", "--json"];
    let account = account(&lab.probe("a", &words).output().unwrap());
    let dropped = account.count("receiving_host/softnet");
    assert!(dropped > 100 && dropped > account.missing() * 9 / 10, "{}", account.0);
    assert!(account.0["notes"][0].as_str().unwrap().contains("processor backlog"), "{}", account.0);
    // The device counts the same packets as its own: they would be counted twice.
    assert!(dropped_by_device() - before >= dropped, "{}", account.0);
    assert_eq!(account.count("receiving_host/card"), 0, "{}", account.0);
}

/// The number of copies of the filter [`slow_program`], one after the other: a millisecond or two
/// for each packet.
const FILTERS: usize = 100;

/// A filter that divides 1,900 times and accepts everything, as tc(8) reads it. It is as long as
/// one message to the kernel may be.
fn slow_program() -> String {
    let divide = "60 0 0 0,".repeat(1_900);
    format!("1903,1 0 0 3,0 0 0 4294967295,{divide}6 0 0 0\n")
}
