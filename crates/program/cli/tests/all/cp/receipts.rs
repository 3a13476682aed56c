//! Receipts of copies without the flag for them.

use super::{Ends, noise};
use crate::support::process::{skyhaul, text};
use crate::support::refusal::assert_refused;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

impl Ends {
    /// Copies a file, with `home` as the home folder of the user.
    fn copy(&self, home: &Path, file: &str, flags: &[&str]) -> std::process::Output {
        let node = format!("far={}", self.address);
        let words = [&[file, "far:"], flags].concat();
        let mut command = skyhaul(&Self::arguments(&node, &words), &self.path("near"));
        command.env("HOME", home).output().unwrap()
    }
}

#[test]
fn receipts_are_private_and_one_old_file_of_them_is_kept() {
    let ends = Ends::new(&["--write"]);
    let home = tempfile::tempdir().unwrap();
    let kept = home.path().join(".local/state/skyhaul/receipts.jsonl");
    for name in ["one", "two", "three"] {
        fs::write(ends.path("near").join(name), noise(10_000, 1)).unwrap();
    }
    for (name, flags) in
        [("one", &[][..]), ("two", &["--dry-run"]), ("three", &["--receipts", "/dev/null"])]
    {
        let output = ends.copy(home.path(), name, flags);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let told = text(&output.stdout).contains(&format!("receipts: {}\n", kept.display()));
        assert_eq!(told, name == "one", "{}", text(&output.stdout));
    }
    let receipts = fs::read_to_string(&kept).unwrap();
    let receipts: Vec<Value> =
        receipts.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((receipts.len(), &receipts[0]["path"]), (1, &"one".into()));
    assert_eq!(receipts[0]["blake3"], blake3::hash(&noise(10_000, 1)).to_string());

    fs::File::options().write(true).open(&kept).unwrap().set_len((64 << 20) + 1).unwrap();
    assert!(ends.copy(home.path(), "two", &[]).status.success());
    assert_eq!(fs::read_to_string(&kept).unwrap().lines().count(), 1);
    assert_eq!(fs::metadata(kept.with_extension("old.jsonl")).unwrap().len(), (64 << 20) + 1);
}

#[test]
fn a_copy_goes_on_without_receipts_unless_they_were_requested() {
    let ends = Ends::new(&["--write"]);
    let home = tempfile::tempdir().unwrap();
    fs::write(ends.path("near/file"), "a").unwrap();
    // No folder can be made below a file.
    symlink("/dev/null", home.path().join(".local")).unwrap();
    let output = ends.copy(home.path(), "file", &[]);
    assert!(output.status.success() && ends.path("far/file").exists());
    assert!(
        text(&output.stderr).contains("note: receipts are not written: "),
        "{}",
        text(&output.stderr)
    );
    let refused = ends.copy(home.path(), "file", &["--receipts", "nowhere/receipts"]);
    assert_refused(&refused, 3, &["the receipts cannot be written", "nowhere/receipts"]);
}
