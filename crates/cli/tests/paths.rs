//! A station with two ways to its centre, real processes all: both are used, and one may go.
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
    let mut child = skyhaul(&["relay", "--listen", "127.0.0.1:0", "--to", to, "--delay", delay], folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Running(child), line.split_whitespace().nth(1).unwrap().to_owned())
}

fn states(status: &Value) -> Vec<String> {
    let paths = status["line"]["paths"].as_array().cloned().unwrap_or_default();
    paths.iter().map(|path| path["state"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_station_uses_both_its_paths_and_loses_nothing_when_one_goes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [centre_key, station_key] = ["c.key", "s.key"].map(|key| printed(&["keygen", key], folder));
    let centre = format!(
        "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"state\"\n[listen]\nbind = \"127.0.0.1:0\"\n\
         [products]\ndir = \"products\"\n[[peer]]\nname = \"s\"\nfingerprint = \"{}\"\n",
        station_key.trim()
    );
    std::fs::write(folder.join("centre.toml"), centre).unwrap();
    let _centre = Running(skyhaul(&["centre", "--config", "centre.toml"], folder).spawn().unwrap());
    let address = ask_until("centre.toml", folder, |status| {
        Some(status["address"].as_str()?.to_owned()).filter(|address| !address.is_empty())
    });
    let ((first, by_first), (second, by_second)) =
        (relay(&address, "5ms", folder), relay(&address, "15ms", folder));
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cadu/npp_rs_errors.dat");
    let station = format!(
        "[node]\nname = \"s\"\nkey = \"s.key\"\nstate = \"spool\"\n\
         [centre]\nname = \"c\"\naddress = \"{address}\"\nfingerprint = \"{}\"\n[line]\nrate = \"20 Mbit/s\"\n\
         [[path]]\nlocal = \"127.0.0.1\"\nremote = \"{by_first}\"\n\
         [[path]]\nlocal = \"127.0.0.2\"\nremote = \"{by_second}\"\n\
         [[channel]]\nname = \"x\"\ninput = \"file:{recording}\"\nrate = \"2 Mbit/s\"\n",
        centre_key.trim()
    );
    std::fs::write(folder.join("station.toml"), station).unwrap();
    let mut station =
        Running(skyhaul(&["station", "--config", "station.toml", "--until-sent"], folder).spawn().unwrap());
    let busier = ask_until("station.toml", folder, |status| {
        let sent = [0, 1].map(|path| status["line"]["paths"][path]["bytes_sent"].as_u64().unwrap_or(0));
        let both = states(status) == ["active", "active"] && sent[0] + sent[1] > 200_000;
        both.then_some(usize::from(sent[1] > sent[0]))
    });
    let shown = printed(&["status", "--config", "station.toml"], folder);
    assert_eq!(shown.lines().filter(|line| line.starts_with("  path ")).count(), 2, "{shown}");
    // The relay of the busier path ends without a word to either side: the path just stops answering.
    let _other = if busier == 0 {
        drop(first);
        second
    } else {
        drop(second);
        first
    };
    assert_eq!(station.0.wait().unwrap().code(), Some(0));

    let contact = ask_until("centre.toml", folder, |status| {
        Some(status["contacts"][0].clone()).filter(|contact| contact["state"] == "done")
    });
    assert_eq!((&contact["frames"], &contact["set_aside"]), (&921.into(), &102.into()));
    let digest = "2aef857adfb30acaf1861bbe90379f4ab7dc09117918952fff5a6b1683017f8b";
    assert_eq!(contact["frames_sha256"], digest, "as expected.json has it");
}
