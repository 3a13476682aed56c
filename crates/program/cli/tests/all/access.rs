//! Who may what at a real node: attackers of the page, logins and orders, users of the host at the
//! status socket, and the record of orders.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on, or skips, says so"
)]

mod admin;
mod attackers;
mod audit;
mod page;
mod socket;

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{Running, printed, run, text};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A node that calls another one, which never answers, and shows itself.
pub struct Shown {
    folder: tempfile::TempDir,
    pub node: Running,
    /// `127.0.0.1:PORT`.
    pub address: String,
}

/// The hash of `password` with costs that a test can bear.
const HASH: &str =
    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

/// Ada, an admin, Kim, an operator, and Vera, a viewer, whose password is `password`; the token
/// `good` of a viewer, `late`, which has expired, and `metrics`.
fn users() -> String {
    let mut text = String::new();
    for (name, role) in [("ada", "admin"), ("kim", "operator"), ("vera", "viewer")] {
        text += &format!(
            "[[user]]\nname = \"{name}\"\nrole = \"{role}\"\npassword = \"{HASH}\"\ncreated = \
             \"2026-01-01T00:00:00Z\"\n"
        );
    }
    for (name, role, expires) in [
        ("good", "viewer", ""),
        ("late", "viewer", "expires = \"2026-01-02T00:00:00Z\"\n"),
        ("metrics", "metrics", ""),
    ] {
        let digest: String =
            Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!(
            "[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{digest}\"\ncreated = \
             \"2026-01-01T00:00:00Z\"\n{expires}"
        );
    }
    text
}

/// The file of a node, with these further keys of `[node]` and these tables.
fn config(folder: &Path, node: &str, tables: &str) {
    printed(&["keygen", "n.key"], folder);
    let text = format!(
        "[node]\nname = \"n\"\nkey = \"n.key\"\nstate = \"state\"\n{node}[[listen]]\nbind = \
         \"127.0.0.1:0\"\n[[destination]]\nto = \"node:s\"\n[[peer]]\nname = \"s\"\naddresses = \
         [\"127.0.0.1:9\"]\nfingerprints = [\"SHA256:{}\"]\nsilent_after = \
         \"2 s\"\n{tables}",
        "0f".repeat(32)
    );
    fs::write(folder.join("n.toml"), text).unwrap();
    fs::write(folder.join("users.toml"), users()).unwrap();
    fs::set_permissions(folder.join("users.toml"), fs::Permissions::from_mode(0o600)).unwrap();
}

impl Shown {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        config(folder.path(), "", "[web]\nbind = \"127.0.0.1:0\"\nusers = \"users.toml\"\n");
        Self::of(folder)
    }

    /// A node whose file is in the folder.
    pub fn of(folder: tempfile::TempDir) -> Self {
        let node = Running::start(&["run", "n.toml"], folder.path());
        let look = || {
            let status = node::status("n.toml", folder.path())?;
            let address = status["web"]["address"].as_str()?.trim_end_matches('/');
            Some(address.split_once("://")?.1.to_owned())
        };
        let check = ["config", "check", "n.toml"];
        let address = until(look, || text(&run(&check, folder.path()).stderr));
        Self { folder, node, address }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the node answers to these bytes.
    pub fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // The node may refuse before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub fn get(&self, path: &str, headers: &str) -> String {
        let host = &self.address;
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n");
        self.exchange(head.as_bytes())
    }

    pub fn post(&self, path: &str, headers: &str, body: &str) -> String {
        let (host, length) = (&self.address, body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: \
             application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        self.exchange(head.as_bytes())
    }

    /// The headers of a browser in which this user has logged in.
    pub fn logged_in(&self, user: &str) -> String {
        let origin = format!("origin: http://{}\r\n", self.address);
        let body = format!("{{\"name\":\"{user}\",\"password\":\"password\"}}");
        let answer = self.post("/api/v1/session", &origin, &body);
        assert!(is(&answer, 200), "{answer}");
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        format!("{origin}cookie: {}\r\n", cookie.split(';').next().unwrap())
    }

    /// The path of the order that acknowledges the alarm about the other node, as soon as it
    /// stands.
    pub fn ack_path(&self) -> String {
        let look = || {
            let answer = self.get("/api/v1/alarms", "authorization: Bearer good\r\n");
            let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1)?).ok()?;
            let mut rows = body["rows"].as_array()?.iter();
            let id = rows.find(|row| row["kind"] == "peer-silent")?["id"].as_str()?.to_owned();
            Some(format!("/api/v1/alarms/{}/ack", id.replace(' ', "%20")))
        };
        until(look, || "no alarm".to_owned())
    }
}

/// Whether an answer has this status.
pub fn is(answer: &str, status: u16) -> bool {
    answer.starts_with(&format!("HTTP/1.1 {status} "))
}
