//! A node as a process of its own: its key, its table in the configuration, its log.

use super::patience::PATIENCE;
use super::process::{Running, skyhaul};
use serde_json::{Value, json};
use skyhaul_quic::{Fingerprint, Identity};
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
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

/// What the node of a configuration in `folder` answers on its socket, as its commands ask there: a
/// look costs no start of the program. `None` where it does not answer.
pub fn asked(config: &str, folder: &Path, question: &Value) -> Option<Value> {
    let file: toml::Table = fs::read_to_string(folder.join(config)).ok()?.parse().ok()?;
    let node = file.get("node")?;
    let socket = match node.get("status_socket") {
        Some(path) => folder.join(path.as_str()?),
        None => folder.join(node.get("state")?.as_str()?).join("status.sock"),
    };
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(format!("{question}\n").as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    serde_json::from_slice(&answer).ok()
}

/// The deliveries of a node that `filter` takes: an object of what they must have.
pub fn deliveries(config: &str, folder: &Path, filter: &Value) -> Option<Vec<Value>> {
    let mut question = filter.clone();
    question["ask"] = "deliveries".into();
    question["limit"] = 10_000.into();
    asked(config, folder, &question)?["deliveries"].as_array().cloned()
}

/// The events of a node, of which there are few.
pub fn events(config: &str, folder: &Path) -> Vec<Value> {
    let page = asked(config, folder, &json!({ "ask": "events", "since": 0, "limit": 10_000 }));
    let events = page.as_ref().and_then(|page| page["events"].as_array());
    events.expect("the node answers").clone()
}

/// The whole status of the node of a configuration in `folder`.
pub fn status(config: &str, folder: &Path) -> Option<Value> {
    asked(config, folder, &json!({ "ask": "status" }))
}

/// What a node with one part, `station` or `centre`, says of it in its status, whether it has a
/// page and neighbours or not.
pub fn part(config: &str, folder: &Path) -> Option<Value> {
    let Value::Object(mut parts) = status(config, folder)? else { return None };
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
