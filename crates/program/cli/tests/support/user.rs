//! A user of the program, with an address book and a key of its own.

use super::process::{skyhaul, text};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A user with a folder of configuration and a folder to work in.
pub struct User {
    folder: tempfile::TempDir,
}

impl User {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = skyhaul(words, self.folder.path());
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        command
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    #[track_caller]
    pub fn done(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn book(&self) -> String {
        fs::read_to_string(self.path("config/skyhaul/nodes.toml")).unwrap()
    }

    /// This user's fingerprint; the key is made at the first use.
    pub fn fingerprint(&self) -> String {
        let key = self.path("config/skyhaul/node.key");
        if !key.exists() {
            fs::create_dir_all(key.parent().unwrap()).unwrap();
            self.done(&["keygen", key.to_str().unwrap()]);
        }
        self.done(&["keygen", key.to_str().unwrap(), "--show"]).trim().to_owned()
    }
}
