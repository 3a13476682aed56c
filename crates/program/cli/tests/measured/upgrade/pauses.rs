//! How long sessions pause while one of their ends goes on in another process, over a line of
//! 100 ms, by the stamps of the events. `make test-all` judges the released program.

use super::{Station, Trial};
use crate::support::node;
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, text};
use rustix::process::Pid;
use serde_json::Value;
use skyhaul_emulator::proxy::{LinkProxy, ProxyConfig};
use skyhaul_link::LinkConfig;
use skyhaul_units::Rate;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROUND_TRIP: Duration = Duration::from_millis(100);
/// The longest pause that is accepted: what the handshake takes, and the start of the process.
const BAR: Duration = Duration::from_millis(3 * 100 + 200);
/// Upgrades of each end.
const ROUNDS: usize = 5;

/// A station and a centre, and the line between them.
struct Pair<'a> {
    trial: &'a Trial,
    at: &'a Path,
}

impl Pair<'_> {
    fn start(&self, name: &str) -> Running {
        let log = File::create(self.at.join(format!("{name}.log"))).unwrap();
        let mut command = self.trial.command(&["run", &format!("{name}.toml")], self.at);
        Running::of(command.stdout(Stdio::null()).stderr(log))
    }

    /// The events of a node about its peer.
    fn events(&self, name: &str) -> Vec<Value> {
        let config = format!("{name}.toml");
        let arguments = ["events", "--config", &config, "--json", "--events", "peer.*"];
        let shown = self.trial.command(&arguments, self.at).output().unwrap();
        text(&shown.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until a node has been connected so often.
    fn connected(&self, name: &str, count: usize) {
        let is_there = || {
            let events = self.events(name);
            let all = events.iter().filter(|event| event["kind"] == "peer.connected");
            (all.count() >= count).then_some(())
        };
        until(is_there, || node::logs(self.at));
    }

    /// The node goes on in another process.
    fn upgrade(&self, name: &str) -> Station {
        let config = format!("{name}.toml");
        let done = self.trial.command(&["upgrade", "--config", &config, "--json"], self.at);
        let done = { done }.output().unwrap();
        assert!(done.status.success(), "{}{}", text(&done.stderr), node::logs(self.at));
        let said: Value = serde_json::from_slice(&done.stdout).unwrap();
        Station(Pid::from_raw(said["now"]["pid"].as_i64().unwrap() as i32).unwrap())
    }

    /// From each end of a session to the beginning of the next one, as a node saw it.
    fn pauses(&self, name: &str) -> Vec<Duration> {
        let events = self.events(name);
        let pairs = events.windows(2).filter(|two| {
            two[0]["kind"] == "peer.disconnected" && two[1]["kind"] == "peer.connected"
        });
        pairs.map(|two| in_day(&two[1]).saturating_sub(in_day(&two[0]))).collect()
    }
}

/// When an event happened, since midnight.
fn in_day(event: &Value) -> Duration {
    let time = event["time"].as_str().unwrap();
    let (_, clock) = time.trim_end_matches('Z').split_once('T').unwrap();
    let seconds = clock.split(':').fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().unwrap());
    Duration::from_secs_f64(seconds)
}

fn configure(at: &Path) -> LinkProxy {
    let [station, centre] = node::make_keys(at);
    let address = free_address();
    let line = LinkConfig::line(Rate::from_mbps(100), skyhaul_units::Duration::from_millis(50));
    let config = ProxyConfig::new("127.0.0.1:0".parse().unwrap(), address, line);
    let proxy = LinkProxy::bind(config).unwrap();
    let text = format!(
        "{}[[listen]]\nbind = \"{address}\"\n[[peer]]\nname = \"station\"\nfingerprints = \
         [\"{station}\"]\n[products]\ndir = \"products\"\n",
        node::table("centre", Path::new("centre-state")),
    );
    fs::write(at.join("centre.toml"), text).unwrap();
    let text = format!(
        "{}[[destination]]\nto = \"node:centre\"\n[[peer]]\nname = \"centre\"\naddresses = \
         [\"{}\"]\nfingerprints = [\"{centre}\"]\n[[channel]]\nname = \"x\"\ninput = \
         \"udp:127.0.0.1:0\"\n",
        node::table("station", Path::new("station-state")),
        proxy.local_addr(),
    );
    fs::write(at.join("station.toml"), text).unwrap();
    proxy
}

fn measure(trial: &Trial) {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair { trial, at: folder.path() };
    let (mut proxy, stop) = (configure(pair.at), AtomicBool::new(false));
    let rounds = if trial.bar.is_some() { ROUNDS } else { 1 };
    std::thread::scope(|scope| {
        scope.spawn(|| proxy.run(&stop).unwrap());
        let _running = [pair.start("centre"), pair.start("station")];
        pair.connected("station", 1);
        let mut successors = Vec::new();
        for round in 0..rounds {
            successors.push(pair.upgrade("centre"));
            pair.connected("station", round + 2);
        }
        // The centre hears of the last session half a round trip after the station.
        pair.connected("centre", rounds + 1);
        for round in 0..rounds {
            successors.push(pair.upgrade("station"));
            pair.connected("centre", rounds + round + 2);
        }
        // The station hears of the end, and the centre of the beginning, half a round trip later.
        let of_centre: Vec<_> =
            pair.pauses("station").into_iter().map(|pause| pause + ROUND_TRIP).collect();
        let of_station = pair.pauses("centre");
        stop.store(true, Ordering::Relaxed);
        for (end, pauses) in [("centre", of_centre), ("station", of_station)] {
            eprintln!("upgrades of the {end}: the session pauses for {pauses:?}");
            assert_eq!(pauses.len(), rounds, "{}", node::logs(pair.at));
            if trial.bar.is_some() {
                assert!(pauses.iter().all(|pause| *pause <= BAR), "{end}: {pauses:?}");
            }
        }
    });
}

#[test]
fn a_session_pauses_for_three_round_trips_while_one_of_its_ends_is_upgraded() {
    Trial::of_this_run().iter().for_each(measure);
}
