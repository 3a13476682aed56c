//! The output of a copy: about a call that nobody answers, a pipe, permissions.

use super::*;
use std::net::UdpSocket;

#[test]
fn a_copy_shows_whom_it_calls_and_for_how_long_while_nobody_answers() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (folder, at) = (tempfile::tempdir().unwrap(), silent.local_addr().unwrap().to_string());
    fs::write(folder.path().join("file"), "file").unwrap();
    let node = format!("far={at}");
    let words = ["cp", "file", "far:", "--node", &node, "--insecure-test"];
    let mut told = Running::start(&[&words[..], &["--json"]].concat(), folder.path());
    let calling: Value = serde_json::from_str(&told.line()).unwrap();
    assert_eq!(calling["event"], "calling");
    assert_eq!(calling["call"], format!("far ({at})"));
    let mut shown = Running::start_logged(&words, folder.path());
    shown.log_until(&format!("connecting to far ({at}): no answer for "));
    for copying in [told, shown] {
        copying.signal(Signal::INT);
        assert_eq!(copying.end().code, Some(130));
    }
}

#[test]
fn the_length_of_a_piped_file_is_in_the_summary_and_in_both_receipts() {
    let ends = Ends::new(&["--write", "--receipts", "there"]);
    let node = format!("far={}", ends.address);
    let words = Ends::arguments(&node, &["-", "far:pipe", "--receipts", "here", "--json"]);
    let mut command = skyhaul(&words, &ends.path("near"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&noise(1_000_000, 6)).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(summary(&text(&output.stdout))["copied_bytes"], 1_000_000);
    for receipts in ["near/here", "there"] {
        let receipt = until(
            || fs::read_to_string(ends.path(receipts)).ok().filter(|text| text.ends_with('\n')),
            || format!("{receipts} has no receipt"),
        );
        assert!(receipt.contains("\"bytes\":1000000"), "{receipt}");
    }
}

#[test]
fn changed_permissions_are_copied_without_the_contents() {
    let ends = Ends::new(&["--write"]);
    fs::create_dir_all(ends.path("near/tree/in")).unwrap();
    for name in ["near/tree/a", "near/tree/in/b"] {
        fs::write(ends.path(name), name).unwrap();
    }
    let node = format!("far={}", ends.address);
    let sync = |flags: &[&str]| {
        let words =
            [&["sync", "tree", "far:mirror", "--node", &node, "--insecure-test"], flags].concat();
        let output = run(&words, &ends.path("near"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let mode = |name: &str| fs::metadata(ends.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(summary(&sync(&["--json"]))["copied"], 2);
    for (name, rights) in [("near/tree/a", 0o600), ("near/tree/in", 0o750)] {
        fs::set_permissions(ends.path(name), fs::Permissions::from_mode(rights)).unwrap();
    }
    let dry = sync(&["--dry-run"]);
    assert!(dry.contains("would change the permissions of a"), "{dry}");
    assert_ne!(mode("far/mirror/a"), 0o600, "a dry run changes nothing");
    let account = summary(&sync(&["--json"]));
    let counts =
        ["rights", "unchanged", "copied", "carried_bytes"].map(|count| account[count].clone());
    assert_eq!(counts, [1, 1, 0, 0].map(Value::from), "{account}");
    assert_eq!((mode("far/mirror/a"), mode("far/mirror/in")), (0o600, 0o750));
    assert!(sync(&[]).contains(" 2 already there, "), "and then there is nothing to do");
}
