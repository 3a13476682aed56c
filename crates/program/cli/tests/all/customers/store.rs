//! Stores of S3: moto, which keeps its objects in memory and checks no signatures, and versitygw,
//! which keeps them as files.

use super::secret;
use crate::support::patience::until;
use crate::support::ports::free_port;
use crate::support::process::Running;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The store, with an empty bucket. It ends with the test.
pub struct Store {
    dir: tempfile::TempDir,
    _process: Running,
    pub port: u16,
}

/// A store that keeps its objects as files. It ends with the test.
pub struct Gateway {
    dir: tempfile::TempDir,
    _process: Running,
    pub port: u16,
}

impl Gateway {
    /// Where versitygw is not installed, the test does without.
    pub fn start() -> Option<Self> {
        if !is_installed("versitygw") {
            eprintln!("SKIPPED: versitygw is not installed");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("store/bucket")).unwrap();
        let port = free_port();
        let mut command = Command::new("versitygw");
        command.args(["--access", "SKY", "--secret", "secretsecret"]);
        command.args(["--port", &format!("127.0.0.1:{port}"), "posix"]);
        let process = listening(command.arg(dir.path().join("store")), port);
        let keys = "[default]\naws_access_key_id = SKY\naws_secret_access_key = secretsecret\n";
        secret(&dir.path().join("keys"), keys);
        Some(Self { dir, _process: process, port })
    }

    /// A destination there, by a line.
    pub fn destination(&self, name: &str, line: u16) -> String {
        table(self.dir.path(), name, line)
    }

    /// Where an object is.
    pub fn path(&self, folder: &str, name: &str) -> PathBuf {
        self.dir.path().join("store/bucket").join(folder).join(name)
    }
}

fn is_installed(program: &str) -> bool {
    let look = format!("command -v {program}");
    Command::new("sh").args(["-c", &look]).output().is_ok_and(|found| found.status.success())
}

/// A server, once it listens.
fn listening(command: &mut Command, port: u16) -> Running {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Running::of(quiet);
    let listens = || TcpStream::connect(("127.0.0.1", port)).ok().map(drop);
    until(listens, || format!("{command:?} does not listen"));
    process
}

/// A destination whose keys are in this folder.
fn table(folder: &Path, name: &str, port: u16) -> String {
    format!(
        "[[destination]]\nname = \"{name}\"\nto = \"s3://bucket\"\nendpoint = \
         \"http://127.0.0.1:{port}\"\nprofile_file = \"{}/keys\"\n",
        folder.display()
    )
}

impl Store {
    /// Where moto is not installed, the test is skipped.
    pub fn start() -> Option<Self> {
        if !is_installed("moto_server") {
            eprintln!("SKIPPED: moto_server is not installed");
            return None;
        }
        let port = free_port();
        let mut command = Command::new("moto_server");
        let process = listening(command.args(["-H", "127.0.0.1", "-p", &port.to_string()]), port);
        let dir = tempfile::tempdir().unwrap();
        let keys = "[default]\naws_access_key_id = a\naws_secret_access_key = b\n";
        secret(&dir.path().join("keys"), keys);
        let store = Self { dir, _process: process, port };
        store.ask("PUT", "/bucket");
        Some(store)
    }

    /// A destination there.
    pub fn destination(&self, name: &str, keys: &str) -> String {
        self.destination_by(name, self.port) + keys
    }

    /// The same by a line.
    pub fn destination_by(&self, name: &str, line: u16) -> String {
        table(self.dir.path(), name, line)
    }

    /// The objects below a prefix, without it, with their lengths.
    pub fn objects(&self, prefix: &str) -> BTreeMap<String, u64> {
        let (mut objects, mut from) = (BTreeMap::new(), String::new());
        loop {
            let target = format!("/bucket?list-type=2&prefix={prefix}&start-after={from}");
            let answer = String::from_utf8(self.ask("GET", &target)).unwrap();
            let part = |text: &str, tag: &str| {
                let begun = text.split_once(&format!("<{tag}>"))?.1;
                Some(begun.split_once(&format!("</{tag}>"))?.0.to_owned())
            };
            for entry in answer.split("<Contents>").skip(1) {
                let key = part(entry, "Key").unwrap();
                let size = part(entry, "Size").unwrap().parse().unwrap();
                objects.insert(key.strip_prefix(prefix).unwrap().to_owned(), size);
                from = key;
            }
            if !answer.contains("<IsTruncated>true") {
                return objects;
            }
        }
    }

    /// An object.
    pub fn object(&self, key: &str) -> Vec<u8> {
        self.ask("GET", &format!("/bucket/{key}"))
    }

    /// The body of an answer.
    fn ask(&self, method: &str, target: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-length: 0\r\n\
             authorization: {UNCHECKED}\r\nconnection: close\r\n\r\n",
            self.port
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let status = String::from_utf8_lossy(&answer[..end]).into_owned();
        assert!(status.contains(" 200 "), "{method} {target}: {status}");
        answer.split_off(end)
    }
}

/// moto wants a signature, and does not check it.
const UNCHECKED: &str = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, \
                         SignedHeaders=host, Signature=0";
