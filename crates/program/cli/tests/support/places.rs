//! Places for tests as root: emulated links, and namespaces joined by a virtual cable. Both are
//! removed however the test ends.

use super::process::{printed, run, text};
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether this is available here. Says so if not.
#[allow(clippy::print_stderr, reason = "what is skipped is said")]
pub fn can(what: &str, file: &str) -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new(file).exists();
    if !can {
        eprintln!("SKIPPED: {what} need root and {file}");
    }
    can
}

/// A lab that is up.
pub struct Lab<'a> {
    name: &'a str,
    folder: &'a Path,
}

impl<'a> Lab<'a> {
    /// Makes a lab with the links of a file.
    #[track_caller]
    pub fn up(name: &'a str, file: &str, folder: &'a Path) -> Self {
        let lab = Self { name, folder };
        // Removes what a killed run left behind, if there is anything.
        lab.down();
        printed(&["lab", "up", file, "--lab", name], folder);
        lab
    }

    /// The same, with its process on this processor only.
    #[track_caller]
    pub fn up_on(processor: &str, name: &'a str, file: &str, folder: &'a Path) -> Self {
        let lab = Self { name, folder };
        lab.down();
        let up = ["lab", "up", file, "--lab", name];
        let mut command = Command::new("taskset");
        command.args(["-c", processor, env!("CARGO_BIN_EXE_skyhaul")]).args(up).current_dir(folder);
        printed_by(&mut command);
        lab
    }

    /// `skyhaul probe` with these words at one of its places.
    pub fn probe(&self, place: &str, words: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_skyhaul");
        self.at(place, &[&[program, "probe"], words].concat())
    }

    /// A command at one of its places.
    pub fn at(&self, place: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
        command.args(["lab", "exec", "--lab", self.name, place, "--"]).args(words);
        command.current_dir(self.folder).stdin(Stdio::null());
        command
    }

    fn down(&self) {
        let _ = run(&["lab", "down", "--kill", "--lab", self.name], self.folder);
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        self.down();
    }
}

/// Two network namespaces joined by a virtual cable: 198.18.9.1 and 198.18.9.2.
pub struct Cable([String; 2]);

impl Cable {
    /// Between namespaces of this name, for packets up to `mtu`.
    #[track_caller]
    pub fn new(name: &str, mtu: u16) -> Self {
        let ends = ["a", "b"].map(|end| format!("skyhaul-{name}-{end}"));
        let cable = Self(ends);
        let [a, b] = &cable.0;
        let ip = |words: &str| printed_by(Command::new("ip").args(words.split(' ')));
        for end in &cable.0 {
            // Removes what a killed run left behind, if there is anything.
            let _ = Command::new("ip").args(["netns", "del", end]).stderr(Stdio::null()).status();
            ip(&format!("netns add {end}"));
            ip(&format!("-n {end} link set lo up"));
        }
        ip(&format!("link add name cable netns {a} type veth peer name cable netns {b}"));
        for (end, address) in [(a, "198.18.9.1/30"), (b, "198.18.9.2/30")] {
            ip(&format!("-n {end} address add {address} dev cable"));
            ip(&format!("-n {end} link set cable mtu {mtu} up"));
        }
        cable
    }

    /// A command at one of its ends.
    pub fn at(&self, end: usize, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[end]]).args(words).stdin(Stdio::null());
        command
    }

    /// The same, given as one line.
    pub fn line_at(&self, end: usize, line: &str) -> Command {
        self.at(end, &line.split(' ').collect::<Vec<_>>())
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for end in &self.0 {
            let _ = Command::new("ip").args(["netns", "del", end]).status();
        }
    }
}

/// What a command prints; it must succeed.
#[track_caller]
pub fn printed_by(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    text(&output.stdout)
}
