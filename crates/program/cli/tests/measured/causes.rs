//! What `skyhaul why` finds in emulated lines, each with a fault. Needs root and TUN devices. It is
//! the longest test of this binary, and begins first because its name is the first one.
#![allow(clippy::unwrap_used, reason = "what tests share; what is skipped is said")]

use crate::support::late::Late;
use crate::support::process::{Running, printed, run, skyhaul, text};
use crate::support::rung::is_all;
use crate::support::schema::assert_valid;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// A fault in an emulated line or at its end, and how the transfer over this line is made.
pub struct Fault {
    cause: &'static str,
    /// Settings of the direction up, beside the rate.
    link: &'static str,
    /// How the receiving end of the transfer is started.
    serve: &'static [&'static str],
    /// Without a transfer, only the line is judged.
    transfer: &'static [&'static str],
    /// The receiver has a small socket buffer and reads it late.
    is_late: bool,
}

impl Fault {
    /// On a line with a round trip of 50 ms, without further settings.
    pub const fn of(cause: &'static str, link: &'static str) -> Self {
        Self { cause, link, serve: &[], transfer: &[], is_late: false }
    }

    const fn sent(self, transfer: &'static [&'static str]) -> Self {
        Self { transfer, ..self }
    }
}

const FAULTS: [Fault; 11] = [
    Fault::of(
        "reordering",
        "one_way_delay = \"25 ms\", queue = \"60 kB\", reordering = { \
                            probability = \"8 %\", extra_delay = \"45 ms\" }",
    )
    .sent(&["--cc", "cubic"]),
    Fault::of("jitter", "one_way_delay = \"60 ms\", queue = \"60 kB\", jitter = \"40 ms\""),
    // Two seconds of each six, so that there is one in each observation.
    Fault::of("outage", OUTAGES).sent(&["--cc", "adaptive"]),
    Fault::of(
        "random-loss",
        "one_way_delay = \"25 ms\", loss = { kind = \"independent\", probability = \"3 %\" }",
    )
    .sent(&["--cc", "cubic"]),
    Fault::of(
        "policer",
        "one_way_delay = \"25 ms\", policer = { rate = \"2 Mbit/s\", burst = \"16 \
                         KiB\" }",
    )
    .sent(&["--cc", "adaptive"]),
    Fault::of("queueing", "one_way_delay = \"25 ms\", queue = \"500 kB\"").sent(&["--cc", "cubic"]),
    Fault::of("declared-rate", PLAIN).sent(&["--cc", "line", "--rate", "2 Mbit/s"]),
    Fault::of("application", PLAIN).sent(&["--offer", "1 Mbit/s"]),
    // Nothing of a transfer would arrive: its datagrams are as long as the devices allow.
    Fault::of(
        "mtu-black-hole",
        "one_way_delay = \"25 ms\", queue = \"60 kB\", largest = \"1400 \
                                B\"",
    ),
    Fault { is_late: true, ..Fault::of("socket-buffer", PLAIN).sent(&["--cc", "adaptive"]) },
    // 64 KiB at a round trip of 325 ms are 1.6 Mbit/s.
    Fault {
        serve: &["--window", "64 KiB"],
        ..Fault::of("flow-window", "one_way_delay = \"300 ms\", queue = \"60 kB\"")
            .sent(&["--block", "8 KiB"])
    },
];

const OUTAGES: &str = "one_way_delay = \"25 ms\", queue = \"60 kB\", outages = [
    { start = \"6 s\", length = \"2 s\" }, { start = \"12 s\", length = \"2 s\" }, { start = \"18 \
    s\", length = \"2 s\" },
    { start = \"24 s\", length = \"2 s\" }, { start = \"30 s\", length = \"2 s\" }, { start = \"36 \
    s\", length = \"2 s\" },
    { start = \"42 s\", length = \"2 s\" }, { start = \"48 s\", length = \"2 s\" }, { start = \"54 \
    s\", length = \"2 s\" }]";

pub const PLAIN: &str = "one_way_delay = \"25 ms\", queue = \"60 kB\"";

/// A lab that is taken down however the test ends.
pub struct Lab<'a>(String, &'a Path);

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        let _ = run(&["lab", "down", "--kill", "--lab", &self.0], self.1);
    }
}

impl Lab<'_> {
    pub fn inside(&self, end: &str, arguments: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_skyhaul");
        skyhaul(
            &[&["lab", "exec", "--lab", &self.0, end, "--", program], arguments].concat(),
            self.1,
        )
    }
}

/// The lab of a fault: a line of 6 Mbit/s, and what answers at its far end.
pub struct Site<'a> {
    pub lab: Lab<'a>,
    fault: &'a Fault,
    folder: &'a Path,
}

pub const FAR: &str = "198.18.0.2";

impl<'a> Site<'a> {
    pub fn new(fault: &'a Fault, folder: &'a Path) -> Self {
        let name = format!("t-why-{}", fault.cause);
        let line = format!(
            "[[link]]\nname = \"line\"\nup = {{ rate = \"6 Mbit/s\", {} }}
down = {{ rate = \"6 Mbit/s\", one_way_delay = \"25 ms\" }}\n",
            fault.link
        );
        let file = format!("{}.toml", fault.cause);
        std::fs::write(folder.join(&file), line).unwrap();
        printed(&["lab", "up", &file, "--lab", &name], folder);
        Self { lab: Lab(name, folder), fault, folder }
    }

    pub fn serving(&self, arguments: &[&str]) -> Running {
        let mut running = Running::of(self.lab.inside("b", arguments).stdout(Stdio::piped()));
        running.address();
        running
    }

    /// Makes the transfer. Returns the file with its output.
    fn sent(&self) -> String {
        let at = format!("{FAR}:4710");
        let insecure = ["--insecure-test", "--insecure-beyond-loopback"];
        let serve = ["perf", "serve", "--bind", &at, insecure[0], insecure[1]];
        let perf = self.serving(&[&serve, self.fault.serve].concat());
        let _late = self.fault.is_late.then(|| Late::start(perf.id()));
        let send =
            ["perf", "send", "--to", &at, insecure[0], insecure[1], "--duration", "6 s", "--json"];
        let sent = self.lab.inside("a", &[&send, self.fault.transfer].concat()).output().unwrap();
        assert!(sent.status.success(), "{}: {}", self.fault.cause, text(&sent.stderr));
        let report = format!("{}.json", self.fault.cause);
        std::fs::write(self.folder.join(&report), &sent.stdout).unwrap();
        report
    }
}

/// The cause that is found for a fault.
fn found(fault: &Fault, folder: &Path) -> String {
    let site = Site::new(fault, folder);
    let _probe = site.serving(&["probe", "serve", "--bind", &format!("{FAR}:4720")]);
    let report = (!fault.transfer.is_empty()).then(|| site.sent());
    let of: Vec<&str> = [Some(FAR), report.as_deref()].into_iter().flatten().collect();
    let ask = ["--seconds", "6", "--max-rate", "30 Mbit/s", "--json"];
    let output = site.lab.inside("a", &[&["why"], &of[..], &ask].concat()).output().unwrap();
    assert!(output.status.success(), "{}: {}", fault.cause, text(&output.stderr));
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid(&verdict, "why.json");
    let cause = verdict["cause"].as_str().unwrap_or_default().to_owned();
    eprintln!("{}: {cause}: {}", fault.cause, verdict["sentence"]);
    if cause != fault.cause {
        eprintln!("{verdict:#}");
    }
    cause
}

#[test]
fn why_finds_the_faults_of_emulated_lines_with_real_packets() {
    if !has_lab() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // The lab finds every fault in virtual time; every second one is enough for real packets.
    let step = if is_all() { 1 } else { 2 };
    let faults: Vec<&Fault> = FAULTS.iter().step_by(step).collect();
    let causes: Vec<String> = std::thread::scope(|scope| {
        // No more at a time than two processors can run.
        let batches = faults.chunks(6).map(|batch| {
            let running: Vec<_> =
                batch.iter().map(|fault| scope.spawn(move || found(fault, folder))).collect();
            running.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        batches.flatten().collect()
    });
    // A busy machine is a fault of its own. A verdict may name it, and is then right.
    let right = |(fault, cause): &(&&Fault, &String)| {
        **cause == fault.cause
            || ["sender-processor", "receiver-processor", "host-drops"].contains(&cause.as_str())
    };
    let right = faults.iter().zip(&causes).filter(right).count();
    assert!(right + 1 >= faults.len(), "{right} of {}: {causes:?}", faults.len());
}

/// Whether emulated lines can be made. Says so if not.
pub fn has_lab() -> bool {
    let has = rustix::process::geteuid().is_root() && Path::new("/dev/net/tun").exists();
    if !has {
        eprintln!("SKIPPED: emulated links need root and /dev/net/tun");
    }
    has
}
