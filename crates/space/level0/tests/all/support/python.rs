//! The Python with the independent readers, for the tests of every crate that has something to be
//! read.

use std::process::Command;

/// The Python with the readers, installed on first use; says so where that is impossible.
pub fn python() -> Option<String> {
    let script =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../space/level0/tests/readers/install.py");
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/readers");
    let Ok(installed) = Command::new("python3").arg(script).arg(folder).output() else {
        eprintln!("SKIPPED: there is no python3");
        return None;
    };
    if !installed.status.success() {
        let said = String::from_utf8_lossy(&installed.stderr);
        eprintln!("SKIPPED: {}", said.trim().lines().last().unwrap_or("no word from install.py"));
        return None;
    }
    Some(String::from_utf8(installed.stdout).unwrap().trim().to_owned())
}
