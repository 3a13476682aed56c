//! A running centre, and a station of it that the test configures and queries, all through the
//! program.

use super::node;
use super::patience::until;
use super::process::{Running, printed, run, skyhaul, text};
use super::recordings::{DAMAGED, expected, recording};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// The centre runs from the start, the station when the test starts it.
pub struct Site {
    folder: tempfile::TempDir,
    key: String,
    /// The address of the centre.
    pub address: String,
    pub centre: Running,
}

impl Site {
    pub fn new() -> Self {
        Self::with("")
    }

    /// A centre with these further tables and keys, the first of which belong to `[products]`.
    pub fn with(products: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let [key, station_key] =
            ["c.key", "s.key"].map(|key| printed(&["keygen", key], at).trim().to_owned());
        let centre = format!(
            "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"state\"\n[[listen]]\nbind = \
            \"127.0.0.1:0\"\n\
             [[peer]]\nname = \"s\"\nfingerprints = [\"{station_key}\"]\n[products]\ndir = \
             \"products\"\n{products}"
        );
        std::fs::write(at.join("centre.toml"), centre).unwrap();
        let centre = Running::start(&["run", "centre.toml"], at);
        let address = ask_until("centre.toml", at, |status| {
            Some(status["address"].as_str()?.to_owned()).filter(|address| !address.is_empty())
        });
        Self { folder, key, address, centre }
    }

    /// Kills the centre, and waits for its end.
    pub fn kill_centre(&mut self) {
        self.centre.kill();
    }

    /// Starts the centre again after a kill, with another address.
    pub fn start_centre(&mut self) {
        self.centre = Running::start(&["run", "centre.toml"], self.folder());
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The fingerprint of the centre.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Writes the station's configuration with these tables.
    pub fn write(&self, tables: &str) {
        self.write_by(&self.address, tables);
    }

    /// Writes the configuration of a station that reaches the centre at the address `way`.
    pub fn write_by(&self, way: &str, tables: &str) {
        let text = format!(
            "[node]\nname = \"s\"\nkey = \"s.key\"\nstate = \"spool\"\n\
             [[destination]]\nto = \"node:c\"\n[[peer]]\nname = \"c\"\naddresses = [\"{way}\"]\n\
             fingerprints = [\"{}\"]\n{tables}",
            self.key
        );
        std::fs::write(self.folder().join("station.toml"), text).unwrap();
    }

    /// A station that ends when the centre has all that its channels brought.
    pub fn start(&self) -> Running {
        Running::start(&["run", "station.toml", "--until-sent"], self.folder())
    }

    /// A station whose channel reads what is written to the other end of `input`. It ends when that
    /// end is closed and the centre has everything.
    pub fn start_from(&self, input: std::io::PipeReader) -> Running {
        let arguments = ["run", "station.toml", "--until-sent"];
        let mut station = skyhaul(&arguments, self.folder());
        Running::of(station.stdin(input).stdout(Stdio::piped()).stderr(Stdio::null()))
    }

    /// A station that keeps running.
    pub fn start_to_stay(&self) -> Running {
        Running::start(&["run", "station.toml"], self.folder())
    }

    /// Asks for the station's status until `probe` returns a value.
    #[track_caller]
    pub fn until<T>(&self, probe: impl Fn(&Value) -> Option<T>) -> T {
        ask_until("station.toml", self.folder(), probe)
    }

    /// Asks for the centre's status until `probe` returns a value.
    #[track_caller]
    pub fn centre_until<T>(&self, probe: impl Fn(&Value) -> Option<T>) -> T {
        ask_until("centre.toml", self.folder(), probe)
    }

    /// What `skyhaul status` shows of a node.
    pub fn shown(&self, node: &str) -> String {
        printed(&["status", "--config", node], self.folder())
    }

    /// The only contact, which must have arrived with exactly the frames of the damaged recording.
    #[track_caller]
    pub fn assert_whole(&self) -> Value {
        let contacts = self.centre_until(|status| {
            let contacts = status["contacts"].as_array()?;
            contacts.iter().any(|contact| contact["state"] == "done").then(|| contacts.clone())
        });
        let [contact] = &contacts[..] else { panic!("{contacts:?}") };
        let known = expected(DAMAGED);
        for (ours, theirs) in [
            ("frames", "good_frames"),
            ("set_aside", "rs_uncorrectable_frames"),
            ("corrected_symbols", "rs_corrected_symbols_in_good_frames"),
            ("frames_sha256", "good_frames_sha256"),
        ] {
            assert!(!known[theirs].is_null(), "nobody found {theirs}");
            assert_eq!(contact[ours], known[theirs], "{ours}");
        }
        contact.clone()
    }
}

/// The channel `x`, which plays the damaged recording, with these further keys.
pub fn channel(keys: &str) -> String {
    channel_of("x", keys)
}

/// A channel of this name, which plays the damaged recording.
pub fn channel_of(name: &str, keys: &str) -> String {
    let path = recording(DAMAGED);
    format!("[[channel]]\nname = \"{name}\"\ninput = \"file:{}\"\n{keys}", path.display())
}

/// Asks for the status of a node until `probe` returns a value.
#[track_caller]
fn ask_until<T>(config: &str, folder: &Path, probe: impl Fn(&Value) -> Option<T>) -> T {
    let look = || node::part(config, folder).and_then(|status| probe(&status));
    until(look, || {
        let shown = run(&["status", "--config", config], folder);
        format!("{}{}", text(&shown.stdout), text(&shown.stderr))
    })
}
