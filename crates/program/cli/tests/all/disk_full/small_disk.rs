//! A small file system that can be filled to the last byte: a `tmpfs` in a mount namespace, in
//! which the test runs itself again.

use rustix::fs::statvfs;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The space that nodes leave free on a file system.
pub const RESERVE: u64 = 64 << 20;

/// A small file system, and the file that takes its space.
pub struct SmallDisk {
    root: PathBuf,
}

/// Where the small file system is, for a test that runs in its namespace.
const PLACE: &str = "SKYHAUL_SMALL_DISK";
/// Room for what the nodes leave free, and 64 MiB more.
const SIZE: &str = "size=128m";
const MOUNT: &str = "mount -t tmpfs -o \"$1\" tmpfs \"$2\" && shift 2 && exec \"$@\"";
/// Two ways to make the namespace: without root, and as root.
const WAYS: [&[&str]; 2] = [&["--user", "--map-root-user", "--mount"], &["--mount"]];

/// Runs `body`, part of the test function `name`, with a small file system. No name of another test
/// contains `name`: it selects the test in the second process.
pub fn on_a_small_disk(name: &str, body: impl FnOnce(&SmallDisk)) {
    if let Some(root) = place() {
        return body(&SmallDisk { root });
    }
    let folder = tempfile::tempdir().unwrap();
    let refused = |way: &[&str]| {
        let tried = inside(way, folder.path(), &["true".as_ref()])
            .ok()
            .filter(|tried| tried.status.success());
        tried.is_none()
    };
    let Some(way) = WAYS.into_iter().find(|way| !refused(way)) else {
        eprintln!("SKIPPED: this user may not mount a small file system in a namespace");
        return;
    };
    let program = std::env::current_exe().unwrap();
    let test = [program.as_os_str(), name.as_ref(), "--nocapture".as_ref()];
    let output = inside(way, folder.path(), &test).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let has_run = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(output.status.success() && has_run, "{said}");
    eprintln!("{said}");
}

fn inside(way: &[&str], root: &Path, command: &[&std::ffi::OsStr]) -> std::io::Result<Output> {
    Command::new("unshare")
        .args(way)
        .args(["--", "sh", "-c", MOUNT, "sh", SIZE])
        .arg(root)
        .args(command)
        .env(PLACE, root)
        .output()
}

#[allow(clippy::disallowed_methods, reason = "the test tells itself where it runs")]
fn place() -> Option<PathBuf> {
    std::env::var(PLACE).ok().map(PathBuf::from)
}

impl SmallDisk {
    /// A folder on it.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Takes all space but `left` bytes.
    pub fn fill(&self, left: u64) {
        let mut ballast = File::options().create(true).append(true).open(self.ballast()).unwrap();
        let page = vec![0; 4096];
        while self.free() > left {
            match ballast.write_all(&page) {
                Err(error) if error.kind() == ErrorKind::StorageFull => return,
                other => other.unwrap(),
            }
        }
    }

    /// Gives back what `fill` took.
    pub fn clear(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn free(&self) -> u64 {
        let figures = statvfs(&self.root).unwrap();
        figures.f_bavail * figures.f_frsize
    }

    fn ballast(&self) -> PathBuf {
        self.root.join("ballast")
    }
}
