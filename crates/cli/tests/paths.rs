//! A station's line under its operator's hands, real processes all: several ways, of which each may come and go; classes,
//! deadlines, hints.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that is ended when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn skyhaul(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    command.args(arguments).current_dir(folder).stderr(Stdio::null());
    command
}

fn printed(arguments: &[&str], folder: &Path) -> String {
    String::from_utf8(skyhaul(arguments, folder).output().unwrap().stdout).unwrap()
}

/// Asks a node until `probe` finds what it looks for; it has as long as asking so often takes.
fn ask_until<T>(node: &str, folder: &Path, probe: impl Fn(&Value) -> Option<T>) -> T {
    let arguments = ["status", "--config", node, "--json"];
    for _ in 0..5_000 {
        let answer = printed(&arguments, folder);
        if let Some(found) = serde_json::from_str(&answer).ok().and_then(|status| probe(&status)) {
            return found;
        }
    }
    panic!("{}", printed(&["status", "--config", node], folder))
}

fn relay(to: &str, delay: &str, folder: &Path) -> (Running, String) {
    relay_with(&["relay", "--listen", "127.0.0.1:0", "--to", to, "--delay", delay], folder)
}

fn relay_with(arguments: &[&str], folder: &Path) -> (Running, String) {
    let mut child = skyhaul(arguments, folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Running(child), line.split_whitespace().nth(1).unwrap().to_owned())
}

fn states(status: &Value) -> Vec<String> {
    let paths = status["line"]["paths"].as_array().cloned().unwrap_or_default();
    paths.iter().map(|path| path["state"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A centre that runs, and what a station of it needs.
struct Site {
    folder: tempfile::TempDir,
    key: String,
    address: String,
    _centre: Running,
}

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cadu/npp_rs_errors.dat");
/// Of the recording's good frames, as expected.json has it.
const DIGEST: &str = "2aef857adfb30acaf1861bbe90379f4ab7dc09117918952fff5a6b1683017f8b";

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let [key, station_key] =
            ["c.key", "s.key"].map(|key| printed(&["keygen", key], at).trim().to_owned());
        let centre = format!(
            "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"state\"\n[listen]\nbind = \"127.0.0.1:0\"\n\
             [products]\ndir = \"products\"\n[[peer]]\nname = \"s\"\nfingerprint = \"{station_key}\"\n"
        );
        std::fs::write(at.join("centre.toml"), centre).unwrap();
        let running = Running(skyhaul(&["centre", "--config", "centre.toml"], at).spawn().unwrap());
        let address = ask_until("centre.toml", at, |status| {
            Some(status["address"].as_str()?.to_owned()).filter(|address| !address.is_empty())
        });
        Self { key, address, _centre: running, folder }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the station's configuration with these tables.
    fn write(&self, tables: &str) {
        let text = format!(
            "[node]\nname = \"s\"\nkey = \"s.key\"\nstate = \"spool\"\n\
             [centre]\nname = \"c\"\naddress = \"{}\"\nfingerprint = \"{}\"\n{tables}",
            self.address, self.key
        );
        std::fs::write(self.folder().join("station.toml"), text).unwrap();
    }

    fn start(&self) -> Running {
        let arguments = ["station", "--config", "station.toml", "--until-sent"];
        Running(skyhaul(&arguments, self.folder()).spawn().unwrap())
    }

    fn until<T>(&self, probe: impl Fn(&Value) -> Option<T>) -> T {
        ask_until("station.toml", self.folder(), probe)
    }

    /// An order that is carried out.
    fn order(&self, arguments: &[&str]) -> String {
        let output = skyhaul(&[&["path"], arguments].concat(), self.folder()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The recording is at the centre as it was.
    fn assert_whole(&self) {
        let contact = ask_until("centre.toml", self.folder(), |status| {
            Some(status["contacts"][0].clone()).filter(|contact| contact["state"] == "done")
        });
        assert_eq!((&contact["frames"], &contact["set_aside"]), (&921.into(), &102.into()));
        assert_eq!(contact["frames_sha256"], DIGEST, "as expected.json has it");
    }
}

/// What a path's status says under a key, by the path's name.
fn of_path(status: &Value, name: &str, key: &str) -> Option<Value> {
    let paths = status["line"]["paths"].as_array()?;
    paths.iter().find(|path| path["name"] == name).map(|path| path[key].clone())
}

fn names(status: &Value) -> Vec<String> {
    let paths = status["line"]["paths"].as_array().cloned().unwrap_or_default();
    paths.iter().map(|path| path["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn sent(status: &Value, name: &str) -> u64 {
    of_path(status, name, "bytes_sent").and_then(|sent| sent.as_u64()).unwrap_or(0)
}

#[test]
fn a_station_uses_both_its_paths_and_loses_nothing_when_one_goes() {
    let site = Site::new();
    let ((first, by_first), (second, by_second)) =
        (relay(&site.address, "5ms", site.folder()), relay(&site.address, "15ms", site.folder()));
    site.write(&format!(
        "[line]\nrate = \"20 Mbit/s\"\n\
         [[path]]\nlocal = \"127.0.0.1\"\nremote = \"{by_first}\"\n\
         [[path]]\nlocal = \"127.0.0.2\"\nremote = \"{by_second}\"\n\
         [[channel]]\nname = \"x\"\ninput = \"file:{RECORDING}\"\nrate = \"2 Mbit/s\"\n",
    ));
    let mut station = site.start();
    let busier = site.until(|status| {
        let sent = ["path-1", "path-2"].map(|path| sent(status, path));
        let both = states(status) == ["active", "active"] && sent[0] + sent[1] > 200_000;
        both.then_some(usize::from(sent[1] > sent[0]))
    });
    let shown = printed(&["status", "--config", "station.toml"], site.folder());
    assert_eq!(shown.lines().filter(|line| line.starts_with("  path-")).count(), 2, "{shown}");
    let wide = shown.lines().filter(|line| line.starts_with("  path") && line.chars().count() > 80);
    assert_eq!(wide.count(), 0, "{shown}");
    // The relay of the busier path ends without a word to either side: the path just stops answering.
    let _other = if busier == 0 {
        drop(first);
        second
    } else {
        drop(second);
        first
    };
    assert_eq!(station.0.wait().unwrap().code(), Some(0));
    site.assert_whole();
}

#[test]
fn a_hang_up_adds_a_path_and_removes_one_while_data_flows() {
    let site = Site::new();
    let ((_first, by_first), (_second, by_second)) =
        (relay(&site.address, "5ms", site.folder()), relay(&site.address, "15ms", site.folder()));
    let channel = format!("[[channel]]\nname = \"x\"\ninput = \"file:{RECORDING}\"\nrate = \"2 Mbit/s\"\n");
    let first = format!("[[path]]\nname = \"a\"\nremote = \"{by_first}\"\n");
    let second = format!("[[path]]\nname = \"b\"\ninterface = \"lo\"\nremote = \"{by_second}\"\n");
    site.write(&format!("{first}{channel}"));
    let mut station = site.start();
    let hang_up = || {
        let pid = station.0.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    };
    site.until(|status| (sent(status, "a") > 100_000).then_some(()));
    site.write(&format!("{first}{second}{channel}"));
    hang_up();
    site.until(|status| {
        (names(status) == ["a", "b"] && states(status) == ["active", "active"]).then_some(())
    });
    site.write(&format!("[line]\nmtu = \"1400 B\"\n{second}{channel}"));
    hang_up();
    site.until(|status| (names(status) == ["b"] && sent(status, "b") > 100_000).then_some(()));
    assert_eq!(station.0.wait().unwrap().code(), Some(0));
    site.assert_whole();
}

#[test]
fn paths_are_added_hinted_and_removed_by_command_while_data_flows() {
    let site = Site::new();
    let ((_first, by_first), (_second, by_second)) =
        (relay(&site.address, "5ms", site.folder()), relay(&site.address, "15ms", site.folder()));
    site.write(&format!(
        "[[path]]\nname = \"a\"\nremote = \"{by_first}\"\n\
         [[channel]]\nname = \"x\"\ninput = \"file:{RECORDING}\"\nrate = \"2 Mbit/s\"\n"
    ));
    let mut station = site.start();
    site.until(|status| (sent(status, "a") > 50_000).then_some(()));
    let node = ["--node", "spool/status.sock"];
    let with = |arguments: &[&str]| site.order(&[arguments, &node].concat());
    with(&["add", "b", "--interface", "lo", "--remote", &by_second]);
    site.until(|status| (states(status) == ["active", "active"]).then_some(()));
    with(&["hint", "a", "--from", "2026-01-01T00:00:00Z", "--until", "2100-01-01T00:00:00Z"]);
    let before = site.until(|status| {
        let absent = of_path(status, "a", "state")? == "absent";
        absent.then(|| (sent(status, "a"), sent(status, "b")))
    });
    assert!(with(&["list"]).contains("absent: foretold to be out until 2100-01-01T00:00:00Z"));
    let stalls = site.until(|status| {
        let goes_on = sent(status, "b") > before.1 + 100_000;
        goes_on.then(|| (sent(status, "a"), of_path(status, "a", "stalls")))
    });
    assert_eq!(stalls, (before.0, Some(0.into())), "nothing goes there, and it is no alarm");
    with(&["remove", "a"]);
    site.until(|status| (names(status) == ["b"]).then_some(()));
    assert_eq!(station.0.wait().unwrap().code(), Some(0));
    site.assert_whole();
}

#[test]
fn classes_get_what_they_are_guaranteed_of_a_thin_line() {
    let site = Site::new();
    let arguments = ["relay", "--listen", "127.0.0.1:0", "--to", &site.address, "--delay", "5ms"];
    let (_relay, by_relay) = relay_with(&[&arguments[..], &["--rate", "4 Mbit/s"]].concat(), site.folder());
    let channel = |name: &str| {
        format!(
            "[[channel]]\nname = \"{name}\"\nclass = \"{name}\"\ninput = \"file:{RECORDING}\"\nrate = \"16 Mbit/s\"\n"
        )
    };
    site.write(&format!(
        "[line]\nrate = \"4 Mbit/s\"\n[spool]\nsync_interval = \"20 ms\"\n[[path]]\nremote = \"{by_relay}\"\n\
         [[class]]\nname = \"large\"\nguarantee = \"2700 kbit/s\"\n\
         [[class]]\nname = \"small\"\nguarantee = \"900 kbit/s\"\n{}{}",
        channel("small"),
        channel("large"),
    ));
    let mut station = site.start();
    let frames = |status: &Value, channel: &str| {
        let contacts = status["contacts"].as_array()?;
        contacts.iter().find(|contact| contact["channel"] == channel)?["frames"].as_f64()
    };
    let share = ask_until("centre.toml", site.folder(), |status| {
        let (large, small) = (frames(status, "large")?, frames(status, "small")?);
        (large > 600.0).then_some(small / large)
    });
    assert!((0.2..0.55).contains(&share), "9 parts of 27, and half of what is left: {share}");
    assert_eq!(station.0.wait().unwrap().code(), Some(0));
}

#[test]
fn what_will_be_late_is_said_before_it_is() {
    let site = Site::new();
    site.write(&format!(
        "[line]\nrate = \"1 Mbit/s\"\n[spool]\nsync_interval = \"20 ms\"\n\
         [[channel]]\nname = \"x\"\ndeadline = \"4 s\"\ninput = \"file:{RECORDING}\"\nrate = \"16 Mbit/s\"\n"
    ));
    let _station = site.start();
    let spare = site.until(|status| {
        let alarms = status["alarms"].as_array()?;
        let told = alarms
            .iter()
            .any(|alarm| alarm.as_str().unwrap_or_default().contains("will miss its deadline by"));
        status["forecasts"][0]["spare_s"].as_f64().filter(|spare| told && *spare < 0.0)
    });
    assert!(spare < 0.0 && spare > -8.0, "7.5 s for all of it, due within 4: {spare}");
    let shown = printed(&["status", "--config", "station.toml"], site.folder());
    assert!(shown.contains("LATE by") && shown.contains("ALARM"), "{shown}");
}
