//! Copying files between two processes: what arrives, what resumes after a kill, and what is
//! refused.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

mod changing;
mod classes;
mod huge;
mod many;
mod names;
mod receipts;
mod shown;

use crate::disk_full::small_disk;
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, run, skyhaul, text};
use crate::support::refusal::{assert_refused, assert_told};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A far node that serves the folder `far` in a folder of the test. The folder `near` is beside it.
struct Ends {
    folder: tempfile::TempDir,
    address: String,
    serving: Running,
}

impl Ends {
    fn new(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["far", "near"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let address = free_address().to_string();
        let serving = serve(folder.path(), &address, flags);
        Self { folder, address, serving }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Arguments of a copy between the folder `near`, where it runs, and the far node.
    fn arguments<'a>(node: &'a str, words: &[&'a str]) -> Vec<&'a str> {
        [&["cp"], words, &["--node", node, "--insecure-test", "--cc", "line", "--rate", "400mbit"]]
            .concat()
    }

    fn cp(&self, words: &[&str]) -> std::process::Output {
        let node = format!("far={}", self.address);
        run(&Self::arguments(&node, words), &self.path("near"))
    }

    /// Copies with `--json`, which must succeed. Returns the summary.
    #[track_caller]
    fn copied(&self, words: &[&str]) -> Value {
        let output = self.cp(&[words, &["--json"]].concat());
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        summary(&text(&output.stdout))
    }

    /// Starts a copy that goes slowly enough to be interrupted.
    fn start(&self, words: &[&str]) -> Running {
        let node = format!("far={}", self.address);
        let arguments = Self::arguments(&node, &[words, &["--json", "--limit", "80mbit"]].concat());
        Running::of(
            skyhaul(&arguments, &self.path("near")).stdout(Stdio::piped()).stderr(Stdio::null()),
        )
    }
}

fn serve(folder: &Path, address: &str, flags: &[&str]) -> Running {
    let arguments =
        [&["files", "serve", "--bind", address, "--insecure-test", "--root", "far"], flags]
            .concat();
    let mut serving = Running::start(&arguments, folder);
    assert_eq!(serving.address(), address);
    serving
}

fn summary(printed: &str) -> Value {
    let last = printed.lines().last().unwrap_or_default();
    let summary: Value =
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {printed}"));
    assert_eq!(summary["event"], "summary", "{printed}");
    summary
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Asserts that no unfinished file is left.
fn assert_no_parts(folder: &Path) {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let parts: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".skyhaul-")).collect();
    assert!(parts.is_empty(), "{parts:?}");
}

#[test]
fn a_tree_arrives_with_its_attributes_and_is_not_sent_twice() {
    let ends = Ends::new(&["--write"]);
    let near = ends.path("near/tree");
    fs::create_dir_all(near.join("in/deep")).unwrap();
    for number in 0..300 {
        fs::write(near.join(format!("in/{number:03}")), noise(number * 7, number as u64)).unwrap();
    }
    fs::write(near.join("large"), noise(3_000_001, 1)).unwrap();
    fs::write(near.join("empty"), "").unwrap();
    let odd = near.join(std::ffi::OsStr::from_bytes(b"caf\xe9 \n*"));
    fs::write(&odd, "odd").unwrap();
    fs::set_permissions(near.join("large"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("in/001", near.join("link")).unwrap();
    symlink("circle", near.join("circle")).unwrap();
    for name in ["large", "in/deep", "in"] {
        let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
        fs::File::open(near.join(name)).unwrap().set_modified(old).unwrap();
    }

    let account = ends.copied(&["tree", "far:to/here", "--receipts", "receipts"]);
    assert_eq!((&account["copied"], &account["failed"]), (&303.into(), &0.into()), "{account}");
    let far = ends.path("far/to/here/tree");
    for name in ["large", "empty", "in/000", "in/299"] {
        assert_eq!(fs::read(far.join(name)).unwrap(), fs::read(near.join(name)).unwrap(), "{name}");
    }
    assert_eq!(fs::read(far.join(odd.file_name().unwrap())).unwrap(), b"odd");
    assert_eq!(fs::read_link(far.join("link")).unwrap(), Path::new("in/001"));
    assert_eq!(fs::read_link(far.join("circle")).unwrap(), Path::new("circle"));
    for name in ["large", "in/deep", "in"] {
        let [here, there] = [&near, &far].map(|folder| fs::metadata(folder.join(name)).unwrap());
        assert_eq!(
            (here.mtime(), here.mtime_nsec()),
            (there.mtime(), there.mtime_nsec()),
            "{name}"
        );
        assert_eq!(here.mode(), there.mode(), "{name}");
    }
    assert_no_parts(&far);
    assert_no_parts(&far.join("in"));
    let receipts = fs::read_to_string(ends.path("near/receipts")).unwrap();
    assert_eq!(receipts.lines().count(), 303);
    let large = receipts.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let large = large.filter(|receipt| receipt["path"] == "tree/large").collect::<Vec<_>>();
    assert_eq!(large[0]["blake3"], blake3::hash(&noise(3_000_001, 1)).to_string());

    assert_eq!(account["receipts"], "receipts");
    let again = ends.copied(&["tree", "far:to/here"]);
    assert!(again["receipts"].is_null(), "{again}");
    let counts = (&again["copied"], &again["unchanged"], &again["carried_bytes"]);
    assert_eq!((counts.0, counts.2), (&0.into(), &0.into()), "{again}");
    fs::write(near.join("in/100"), "changed").unwrap();
    let changed = ends.copied(&["tree", "far:to/here"]);
    assert_eq!(changed["copied"], 1, "{changed}");
    assert_eq!(fs::read(far.join("in/100")).unwrap(), b"changed");
}

#[test]
fn a_copy_resumes_after_its_near_end_is_killed() {
    let ends = Ends::new(&["--write"]);
    let bytes = noise(48 << 20, 2);
    fs::write(ends.path("near/large"), &bytes).unwrap();
    let mut copying = ends.start(&["large", "far:"]);
    let map = ends.path("far/.large.skyhaul-map");
    let is_begun = || fs::metadata(&map).is_ok_and(|map| map.len() > 36 * 33).then_some(());
    until(is_begun, || "no chunk of the file is mapped".to_owned());
    copying.kill();
    assert!(!ends.path("far/large").exists(), "half a file has its name");

    // The earlier session is still open at the far end.
    let account = ends.copied(&["large", "far:"]);
    assert!(account["resumed_bytes"].as_u64().unwrap() >= 8 << 20, "{account}");
    assert_eq!(fs::read(ends.path("far/large")).unwrap(), bytes);
    assert_no_parts(&ends.path("far"));
}

#[test]
fn a_copy_resumes_by_itself_after_its_far_end_is_killed() {
    let mut ends = Ends::new(&["--write"]);
    let bytes = noise(48 << 20, 3);
    fs::write(ends.path("near/large"), &bytes).unwrap();
    fs::write(ends.path("near/first"), "first").unwrap();
    let copying = ends.start(&["first", "large", "far:"]);
    let map = ends.path("far/.large.skyhaul-map");
    let is_begun = || fs::metadata(&map).is_ok_and(|map| map.len() > 36 * 33).then_some(());
    until(is_begun, || "no chunk of the file is mapped".to_owned());
    ends.serving.kill();
    ends.serving = serve(ends.folder.path(), &ends.address, &["--write"]);
    let ended = copying.end();
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let account = summary(&ended.output);
    assert!(ended.output.contains("\"event\":\"lost\""), "{}", ended.output);
    assert_eq!((&account["copied"], &account["failed"]), (&2.into(), &0.into()), "{account}");
    assert_eq!(fs::read(ends.path("far/large")).unwrap(), bytes);
    assert_no_parts(&ends.path("far"));
}

#[test]
fn a_source_that_changed_since_an_interruption_is_sent_from_its_beginning() {
    let ends = Ends::new(&["--write"]);
    fs::write(ends.path("near/large"), noise(48 << 20, 4)).unwrap();
    let mut copying = ends.start(&["large", "far:"]);
    let map = ends.path("far/.large.skyhaul-map");
    let is_begun = || fs::metadata(&map).is_ok_and(|map| map.len() > 36).then_some(());
    until(is_begun, || "no chunk of the file is mapped".to_owned());
    copying.kill();
    fs::write(ends.path("near/large"), noise(48 << 20, 5)).unwrap();
    let account = ends.copied(&["large", "far:"]);
    assert_eq!(account["resumed_bytes"], 0, "{account}");
    assert_eq!(fs::read(ends.path("far/large")).unwrap(), noise(48 << 20, 5));
}

#[test]
fn files_are_fetched_by_pattern_and_into_a_folder_that_is_made() {
    let ends = Ends::new(&[]);
    fs::create_dir(ends.path("far/sub")).unwrap();
    for name in ["a.h5", "b.h5", "c.txt", ".hidden.h5", "sub/d.h5"] {
        fs::write(ends.path("far").join(name), noise(400_000, name.len() as u64)).unwrap();
    }
    let account = ends.copied(&["far:*.h5", "far:s*", "new/folder"]);
    assert_eq!(account["copied"], 3, "{account}");
    for name in ["a.h5", "b.h5", "sub/d.h5"] {
        let [here, there] =
            ["near/new/folder", "far"].map(|end| fs::read(ends.path(end).join(name)).unwrap());
        assert_eq!(here, there, "{name}");
    }
    assert!(!ends.path("near/new/folder/.hidden.h5").exists());
    let absent = ends.cp(&["far:absent", "far:c.txt", "."]);
    assert_told(&absent, 4, &["1 of 2 were not copied", "absent cannot be sent"]);
    assert!(ends.path("near/c.txt").exists(), "what is there is fetched all the same");
}

#[test]
fn a_dry_run_lists_what_the_rules_select_and_changes_nothing() {
    let ends = Ends::new(&["--write"]);
    fs::create_dir_all(ends.path("near/tree/raw")).unwrap();
    for name in ["a.h5", "b.tmp", "raw/c.h5", "raw/d.dat"] {
        fs::write(ends.path("near/tree").join(name), name).unwrap();
    }
    let rules = ["tree", "far:new", "--exclude", "*.tmp", "--exclude", "tree/raw/*.dat"];
    let dry = ends.cp(&[&rules[..], &["--dry-run"]].concat());
    assert!(dry.status.success(), "{}", text(&dry.stderr));
    let said = text(&dry.stdout);
    assert!(
        said.contains("would copy tree/a.h5") && said.contains("would copy tree/raw/c.h5"),
        "{said}"
    );
    assert!(!said.contains("b.tmp") && !said.contains("d.dat"), "{said}");
    assert_eq!(fs::read_dir(ends.path("far")).unwrap().count(), 0);
    assert_eq!(ends.copied(&rules)["copied"], 2);
    assert!(!ends.path("far/new/tree/b.tmp").exists());
    let only = ends.copied(&["tree", "far:only", "--include", "*.dat"]);
    assert_eq!(only["copied"], 1, "{only}");
}

#[test]
fn contents_decide_with_checksum_and_length_and_time_decide_without() {
    let ends = Ends::new(&["--write"]);
    for (end, bytes) in [("near", "one"), ("far", "two")] {
        fs::write(ends.path(end).join("file"), bytes).unwrap();
        let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        fs::File::open(ends.path(end).join("file")).unwrap().set_modified(old).unwrap();
    }
    assert_eq!(ends.copied(&["file", "far:"])["unchanged"], 1);
    assert_eq!(ends.copied(&["file", "far:", "--checksum"])["copied"], 1);
    assert_eq!(fs::read(ends.path("far/file")).unwrap(), b"one");
    fs::File::open(ends.path("near/file"))
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    let same = ends.copied(&["file", "far:", "--checksum"]);
    assert_eq!((&same["unchanged"], &same["carried_bytes"]), (&1.into(), &0.into()), "{same}");
    assert_eq!(
        fs::metadata(ends.path("far/file")).unwrap().mtime(),
        0,
        "its time is kept all the same"
    );
}

#[test]
fn standard_input_becomes_a_file() {
    let ends = Ends::new(&["--write"]);
    let bytes = noise(1_000_000, 6);
    let node = format!("far={}", ends.address);
    let mut command =
        skyhaul(&Ends::arguments(&node, &["-", "far:in/pipe.bin"]), &ends.path("near"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read(ends.path("far/in/pipe.bin")).unwrap(), bytes);
}

#[test]
fn nothing_outside_the_served_folder_is_read_or_written() {
    let ends = Ends::new(&["--write"]);
    fs::create_dir(ends.path("out")).unwrap();
    fs::write(ends.path("out/secret"), "secret").unwrap();
    fs::write(ends.path("near/file"), "file").unwrap();
    symlink("../out", ends.path("far/way")).unwrap();
    let out = ends.cp(&["file", "far:way"]);
    assert_refused(
        &out,
        4,
        &[
            "the far node `far` refuses",
            "way cannot be used as a folder",
            "points outside the folder",
        ],
    );
    assert!(!ends.path("out/file").exists());
    let read = ends.cp(&["far:way/secret", "."]);
    assert_told(&read, 4, &["way/secret cannot be sent", "points outside the folder"]);
    assert!(!ends.path("near/secret").exists());
    let up = ends.cp(&["file", "far:../out"]);
    assert_refused(&up, 2, &["cannot be a path of the far node", "without `..`"]);
    // A symbolic link with that name is replaced; nothing is written through it.
    symlink("../out/secret", ends.path("far/file")).unwrap();
    assert!(ends.cp(&["file", "far:"]).status.success());
    assert_eq!(fs::read(ends.path("out/secret")).unwrap(), b"secret");
    assert_eq!(fs::read(ends.path("far/file")).unwrap(), b"file");
}

#[test]
fn what_cannot_be_copied_is_reported_in_one_sentence() {
    let ends = Ends::new(&[]);
    fs::write(ends.path("near/file"), "file").unwrap();
    let file = ends.cp(&["file", "far:"]);
    assert_refused(&file, 4, &["the far node `far` refuses", "may not be written to", "--write"]);
    assert_refused(&ends.cp(&["file", "other:"]), 2, &["`other` is not known", "--node other="]);
    assert_refused(&ends.cp(&["absent", "far:"]), 3, &["absent cannot be copied", "No such file"]);
    symlink("circle", ends.path("near/circle")).unwrap();
    assert_refused(&ends.cp(&["circle", "far:"]), 3, &["circle cannot be copied", "form a loop"]);
    assert_refused(
        &ends.cp(&["file", "far:", "--exclude", "[a"]),
        2,
        &["`[a` is not a pattern", "write it like"],
    );
    assert_refused(&ends.cp(&["file", "near"]), 2, &["no far node is named", "skyhaul cp"]);
    let keys = ["cp", "file", "far:", "--node", &format!("far={}", ends.address)];
    assert_refused(&run(&keys, &ends.path("near")), 2, &["the keys are missing"]);
    let root = ["files", "serve", "--bind", "127.0.0.1:0", "--insecure-test", "--root", "absent"];
    assert_refused(
        &run(&root, ends.folder.path()),
        3,
        &["the folder cannot be served", "absent", "--root"],
    );
}

#[test]
fn a_far_node_with_another_key_is_reported_at_once() {
    let ends = Ends::new(&["--write"]);
    fs::write(ends.path("near/file"), "file").unwrap();
    let folder = ends.path("near");
    assert!(run(&["keygen", "near.key"], &folder).status.success());
    let other = text(&run(&["keygen", "other.key"], &folder).stdout);
    let node = format!("far={}", ends.address);
    let words =
        ["cp", "file", "far:", "--node", &node, "--key", "near.key", "--peer", other.trim()];
    assert_refused(
        &run(&words, &folder),
        4,
        &["the far node `far` does not answer or refuses", "--peer"],
    );
}

#[test]
fn files_that_fail_do_not_stop_the_others() {
    let ends = Ends::new(&["--write"]);
    fs::create_dir(ends.path("near/tree")).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(ends.path("near/tree").join(name), name).unwrap();
    }
    // A folder with that name is in the way, and a socket is not a file.
    fs::create_dir_all(ends.path("far/tree/b/x")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(ends.path("near/tree/socket")).unwrap();
    let output = ends.cp(&["tree", "far:"]);
    assert_told(
        &output,
        4,
        &["2 of 5 were not copied", "tree/b cannot be written", "of another kind"],
    );
    assert!(text(&output.stderr).contains("tree/socket is a pipe, socket or device"));
    assert_eq!(fs::read(ends.path("far/tree/a")).unwrap(), b"a");
    assert_eq!(fs::read(ends.path("far/tree/c")).unwrap(), b"c");
}

#[test]
fn names_reserved_for_unfinished_files_are_skipped_and_reported() {
    let ends = Ends::new(&["--write"]);
    let odd = [".x.skyhaul-part", ".x.skyhaul-map"];
    fs::create_dir_all(ends.path("near/tree/.folder.skyhaul-part")).unwrap();
    for name in ["a", odd[0], odd[1]] {
        fs::write(ends.path("near/tree").join(name), name).unwrap();
    }
    let output = ends.cp(&["tree", "far:"]);
    assert_told(&output, 3, &["3 of 5 were not copied"]);
    for name in [odd[0], odd[1], ".folder.skyhaul-part"] {
        let told = format!("tree/{name} has a name reserved for unfinished files and was skipped");
        assert!(text(&output.stderr).contains(&told), "{}", text(&output.stderr));
    }
    assert_eq!(fs::read_dir(ends.path("far/tree")).unwrap().count(), 1);
    let output = ends.cp(&["tree", "far:", "--exclude", ".*.skyhaul-*"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn an_interrupted_copy_ends_with_exit_code_130() {
    let ends = Ends::new(&["--write"]);
    fs::write(ends.path("near/large"), noise(48 << 20, 7)).unwrap();
    let copying = ends.start(&["large", "far:"]);
    let part = ends.path("far/.large.skyhaul-part");
    until(|| part.exists().then_some(()), || "it has not begun".to_owned());
    copying.signal(Signal::INT);
    assert_eq!(copying.end().code, Some(130));
}

#[test]
fn a_mirror_has_what_the_source_has_and_with_delete_nothing_else() {
    let ends = Ends::new(&["--write"]);
    for name in ["near/tree/in", "far/mirror/old/deep", "far/mirror/in"] {
        fs::create_dir_all(ends.path(name)).unwrap();
    }
    for name in [
        "near/tree/a",
        "near/tree/in/b",
        "far/mirror/old/deep/x",
        "far/mirror/in/y",
        "far/mirror/keep.log",
    ] {
        fs::write(ends.path(name), name).unwrap();
    }
    symlink("../../near", ends.path("far/mirror/link")).unwrap();
    let node = format!("far={}", ends.address);
    let sync = |flags: &[&str]| {
        let words = [
            &["sync", "tree", "far:mirror"],
            flags,
            &["--node", &node, "--insecure-test", "--json"],
        ]
        .concat();
        let output = run(&words, &ends.path("near"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        summary(&text(&output.stdout))
    };
    assert_eq!(sync(&[])["copied"], 2);
    assert!(ends.path("far/mirror/old/deep/x").exists(), "without --delete nothing goes");
    let dry = sync(&["--delete", "--exclude", "*.log", "--dry-run"]);
    assert_eq!(dry["removed"], 5, "{dry}");
    assert!(ends.path("far/mirror/old/deep/x").exists(), "a dry run removes nothing");
    let account = sync(&["--delete", "--exclude", "*.log"]);
    assert_eq!((&account["removed"], &account["copied"]), (&5.into(), &0.into()), "{account}");
    let mut names: Vec<_> = fs::read_dir(ends.path("far/mirror"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a", "in", "keep.log"]);
    assert_eq!(fs::read_dir(ends.path("far/mirror/in")).unwrap().count(), 1);
    assert!(ends.path("near/tree/a").exists(), "the link was removed, not what it leads to");
}

#[test]
fn a_watched_mirror_follows_what_changes_and_outlives_the_far_end() {
    let mut ends = Ends::new(&["--write"]);
    fs::create_dir_all(ends.path("near/tree/in")).unwrap();
    fs::write(ends.path("near/tree/first"), "1").unwrap();
    let node = format!("far={}", ends.address);
    let words =
        ["sync", "tree", "far:mirror", "--delete", "--watch", "--node", &node, "--insecure-test"];
    let syncing = Running::start(&words, &ends.path("near"));
    let has = |name: &str, bytes: &str| {
        let (path, bytes) = (ends.path("far/mirror").join(name), bytes.to_owned());
        until(
            || fs::read_to_string(&path).is_ok_and(|there| there == bytes).then_some(()),
            || format!("{name} is not as here"),
        );
    };
    has("first", "1");
    fs::write(ends.path("near/tree/in/second"), "2").unwrap();
    has("in/second", "2");
    fs::create_dir_all(ends.path("near/tree/new/deep")).unwrap();
    fs::write(ends.path("near/tree/new/deep/third"), "3").unwrap();
    has("new/deep/third", "3");
    fs::remove_file(ends.path("near/tree/in/second")).unwrap();
    let gone = ends.path("far/mirror/in/second");
    until(|| (!gone.exists()).then_some(()), || "it is still there".to_owned());
    ends.serving.kill();
    fs::write(ends.path("near/tree/first"), "changed").unwrap();
    ends.serving = serve(ends.folder.path(), &ends.address, &["--write"]);
    let path = ends.path("far/mirror/first");
    until(
        || fs::read_to_string(&path).is_ok_and(|there| there == "changed").then_some(()),
        || "not followed".to_owned(),
    );
    syncing.signal(Signal::INT);
    assert_eq!(syncing.end().code, Some(0));
}

#[test]
fn a_full_far_disk_is_reported_and_leaves_no_partial_file() {
    small_disk::on_a_small_disk("a_full_far_disk_is_reported_and_leaves_no_partial_file", |disk| {
        let mut ends = Ends::new(&["--write"]);
        ends.serving.kill();
        fs::remove_dir(ends.path("far")).unwrap();
        fs::create_dir(disk.folder("far")).unwrap();
        symlink(disk.folder("far"), ends.path("far")).unwrap();
        ends.serving = serve(ends.folder.path(), &ends.address, &["--write"]);
        fs::write(ends.path("near/large"), noise(20 << 20, 8)).unwrap();
        disk.fill(4 << 20);
        assert_told(
            &ends.cp(&["large", "far:"]),
            4,
            &["large does not fit (No space left on device", "free space"],
        );
        // The length of a pipe is not known before its end.
        let node = format!("far={}", ends.address);
        let mut piped = skyhaul(&Ends::arguments(&node, &["-", "far:pipe"]), &ends.path("near"));
        let output =
            piped.stdin(fs::File::open(ends.path("near/large")).unwrap()).output().unwrap();
        assert_told(&output, 4, &["pipe cannot be written (No space left on device", "free space"]);
        assert!(!ends.path("far/large").exists() && !ends.path("far/pipe").exists());
        assert_no_parts(&ends.path("far"));
    });
}
