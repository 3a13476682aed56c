//! A node as a process of its own: its key, its table in the configuration, its log.

use super::process::{Running, skyhaul};
use serde_json::Value;
use skyhaul_quic::{Fingerprint, Identity};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;

/// The two nodes.
pub const NODES: [&str; 2] = ["station", "centre"];
/// Lines of a log that a failure shows.
const LOG_LINES: usize = 40;

/// The head of a node's configuration.
pub fn table(name: &str, state: &Path) -> String {
    format!("[node]\nname = \"{name}\"\nkey = \"{name}.key\"\nstate = \"{}\"\n", state.display())
}

/// Makes the keys of both nodes in `folder`.
pub fn make_keys(folder: &Path) -> [Fingerprint; 2] {
    NODES.map(|name| make_key(name, folder))
}

/// Makes the key of a node in `folder`.
pub fn make_key(name: &str, folder: &Path) -> Fingerprint {
    let identity = Identity::generate().unwrap();
    let path = folder.join(format!("{name}.key"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    file.write_all(identity.to_pem().as_bytes()).unwrap();
    identity.fingerprint()
}

/// Starts a node with its configuration in `folder`, where its log is written too.
pub fn start(name: &str, folder: &Path, flags: &[&str]) -> Running {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(format!("{name}.log")))
        .unwrap();
    let config = format!("{name}.toml");
    let arguments = [&["run", "--end-with-parent", &config], flags].concat();
    Running::of(skyhaul(&arguments, folder).stdout(Stdio::null()).stderr(log))
}

/// What a node with one part, `station` or `centre`, says of it in the answer of `status --json`,
/// whether it has a page and neighbours or not; `None` where it did not answer.
pub fn part(answer: &[u8]) -> Option<Value> {
    let Value::Object(mut parts) = serde_json::from_slice(answer).ok()? else { return None };
    ["web", "nodes"].iter().for_each(|other| drop(parts.remove(*other)));
    assert_eq!(parts.len(), 1, "a node with one part: {parts:?}");
    parts.into_iter().next().map(|(_, part)| part)
}

/// The ends of both nodes' logs.
pub fn logs(folder: &Path) -> String {
    let tail = |name: &str| {
        let text = fs::read_to_string(folder.join(format!("{name}.log"))).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("{name}.log:\n{}", lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"))
    };
    NODES.map(tail).join("\n")
}
