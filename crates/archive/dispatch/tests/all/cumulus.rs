//! The reader of delivery records that NASA's Cumulus has, installed below `target/tmp` on first
//! use.

use serde_json::Value;
use std::ffi::OsStr;
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
    let wanted = fs::read(Path::new(READER).join("package-lock.json"));
    let wanted = wanted.map_err(|error| error.to_string())?;
    once(folder, &wanted, || {
        for name in ["package.json", "package-lock.json"] {
            let copied = fs::copy(Path::new(READER).join(name), folder.join(name));
            copied.map_err(|error| error.to_string())?;
        }
        let options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        run(Command::new("npm").args(options).current_dir(folder))
    })
}

/// The folder with the delivery records that Cumulus ships for its own tests; says so where they
/// cannot be had.
pub fn records() -> Option<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_TARGET_TMPDIR"), "/cumulus-records"));
    let unpacked = once(&folder, RECORDS.as_bytes(), || {
        let pack = ["pack", "--silent", "--pack-destination", ".", RECORDS];
        run(Command::new("npm").args(pack).current_dir(&folder))?;
        let entries = fs::read_dir(&folder).map_err(|error| error.to_string())?;
        let mut names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        let is_archive = |name: &std::ffi::OsString| name.as_encoded_bytes().ends_with(b".tgz");
        let archive = names.find(is_archive).ok_or("npm packed nothing")?;
        let unpack = [OsStr::new("xzf"), &archive, OsStr::new("package/pdrs")];
        run(Command::new("tar").args(unpack).current_dir(&folder))
    });
    match unpacked {
        Ok(()) => Some(folder.join("package/pdrs")),
        Err(reason) => {
            eprintln!("SKIPPED: public delivery records cannot be had: {reason}");
            None
        }
    }
}

/// Carries out `make` once for what is `wanted` in a folder.
fn once(
    folder: &Path,
    wanted: &[u8],
    make: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    fs::create_dir_all(folder).map_err(io)?;
    let lock = File::create(folder.join("lock")).map_err(io)?;
    lock.lock().map_err(io)?;
    let done = folder.join("installed");
    if fs::read(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    make()?;
    fs::write(done, wanted).map_err(io)
}

/// Runs a program to its end.
fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}", said.lines().next().unwrap_or("it failed")))
}

/// The package with records of MODIS, ASTER and other producers, and with broken ones.
const RECORDS: &str = "@cumulus/test-data@20.2.0";
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cumulus");
