//! The reader of delivery records that NASA's Cumulus has, installed below `target/tmp` on first
//! use.

use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder with the reader's packages; says so where they cannot be installed.
pub fn reader() -> Option<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_TARGET_TMPDIR"), "/cumulus"));
    match install(&folder) {
        Ok(()) => Some(folder),
        Err(reason) => {
            eprintln!("SKIPPED: the reader of delivery records cannot be installed: {reason}");
            None
        }
    }
}

/// What the reader finds in each text, by its own rules, knowing these hosts.
pub fn read(folder: &Path, hosts: &str, texts: &[String]) -> Vec<Value> {
    let mut node = Command::new("node")
        .args([Path::new(READER).join("read.js").as_os_str(), folder.as_os_str(), hosts.as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = node.stdin.take().unwrap();
    input.write_all(&serde_json::to_vec(texts).unwrap()).unwrap();
    drop(input);
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "read.js failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Several tests may ask at once: one installs, the others wait for it.
fn install(folder: &Path) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    fs::create_dir_all(folder).map_err(io)?;
    let lock = File::create(folder.join("lock")).map_err(io)?;
    lock.lock().map_err(io)?;
    let wanted = fs::read(Path::new(READER).join("package-lock.json")).map_err(io)?;
    let done = folder.join("installed.json");
    if fs::read(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    for name in ["package.json", "package-lock.json"] {
        fs::copy(Path::new(READER).join(name), folder.join(name)).map_err(io)?;
    }
    let options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    let npm = Command::new("npm").args(options).current_dir(folder).output();
    let npm = npm.map_err(|error| format!("npm: {error}"))?;
    if !npm.status.success() {
        let said = String::from_utf8_lossy(&npm.stderr);
        return Err(said.lines().next().unwrap_or("npm ci failed").to_owned());
    }
    fs::write(done, wanted).map_err(io)
}

const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cumulus");
