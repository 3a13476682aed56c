//! What a forward refuses: the exit code and the sentence.

use super::ends::Ends;
use crate::support::process::{Running, printed, run};
use crate::support::refusal::{assert_misused, assert_told};
use rustix::process::Signal;
use std::net::TcpListener;
use std::path::Path;

fn forward(words: &[&str]) -> std::process::Output {
    run(&[&["forward"], words].concat(), Path::new("."))
}

#[test]
fn an_invalid_command_line_is_reported() {
    let node = ["--node", "far=127.0.0.1:9", "--insecure-test"];
    for (words, part) in [
        (&["-L", "8080"][..], "the `=` is missing"),
        (&["-L", "8080=far"], "the far node is missing"),
        (&["-L", "8080=far:10.0.0.5"], "the port is missing"),
        (&["-L", "8080=far:unix:run"], "a socket's path must begin with /"),
        (&["-L", "70000=far:10.0.0.5:80"], "not a port, or address and port"),
    ] {
        assert_misused(&forward(&[words, &node].concat()), &[part]);
    }
    assert_misused(&forward(&["--node", "far"]), &["write it like centre=198.51.100.1:4730"]);
    let rule = ["serve", "--bind", "127.0.0.1:0", "--insecure-test", "--allow", "10.0.0.0/8"];
    assert_misused(&forward(&rule), &["the ports are missing"]);
    let other = forward(&[&["-L", "0=near:a:1"][..], &node].concat());
    assert_told(&other, 2, &["the far node `near` is not known", "--node near="]);
    assert_told(
        &forward(&["-L", "0=far:a:1", "--node", "far=127.0.0.1:9"]),
        2,
        &["the keys are missing"],
    );
}

#[test]
fn a_port_or_socket_file_in_use_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let file = folder.path().join("taken.sock");
    let _file = std::os::unix::net::UnixListener::bind(&file).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for local in [port, format!("unix:{}", file.display())] {
        let spec = format!("{local}=far:a:1");
        let output = forward(&["-L", &spec, "--node", "far=127.0.0.1:9", "--insecure-test"]);
        assert_told(&output, 3, &["cannot listen on", "in use", "give another one"]);
    }
}

#[test]
fn a_far_node_with_another_key_and_one_that_does_not_know_ours_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [near, far, other] = ["near", "far", "other"]
        .map(|name| printed(&["keygen", &format!("{name}.key")], folder).trim().to_owned());
    for (known, expected, part) in
        [(&near, &other, "key is not the expected"), (&other, &far, "does not trust our key")]
    {
        let serve =
            ["forward", "serve", "--bind", "127.0.0.1:0", "--key", "far.key", "--peer", known];
        let mut serving = Running::start_logged(&serve, folder);
        let node = format!("far={}", serving.address());
        let call = [
            "forward",
            "-L",
            "0=far:a:1",
            "--node",
            &node,
            "--key",
            "near.key",
            "--peer",
            expected,
        ];
        assert_told(
            &run(&call, folder),
            4,
            &["the far node `far` does not answer or refuses", part],
        );
        serving.log_until("refused 127.0.0.1:");
    }
}

#[test]
fn both_ends_end_with_an_account_when_they_are_interrupted() {
    let Ends { near, far, .. } = Ends::start(&[], &["-L", "0=far:127.0.0.1:9"], 1);
    for (mut end, part) in [(near, "far is connected"), (far, "connected")] {
        end.log_until(part);
        end.signal(Signal::INT);
        let ended = end.end();
        assert_eq!(ended.code, Some(0), "{}", ended.log);
        assert!(ended.log.contains("0 accepted, 0 connected"), "{}", ended.log);
    }
}
