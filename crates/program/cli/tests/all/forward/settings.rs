//! `--config`: forwards with settings of their own, and what is wrong with a file.

use super::ends::{Ends, pattern};
use crate::support::process::{Running, run};
use crate::support::refusal::assert_told;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

const CLASSES: &str = "[[class]]\nname = \"bulk\"\n[[class]]\nname = \"live\"\nguarantee = \"2 \
                      Mbit/s\"\npriority = 0\n";

#[test]
fn forwards_of_a_file_keep_to_their_classes_and_end_when_they_are_idle_for_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let near = format!(
        "{CLASSES}[[forward]]\nlocal = \"0=far:{target}\"\nclass = \"live\"\npriority = \
        0\ndeadline = \"300 ms\"\n\
         [[forward]]\nlocal = \"0=far:{target}\"\nidle = \"1 s\"\n[[forward]]\nsocks = \
         \"0\"\nclass = \"bulk\"\n"
    );
    std::fs::write(folder.join("near.toml"), near).unwrap();
    std::fs::write(folder.join("far.toml"), format!("allow = [\"{target}\"]\n{CLASSES}")).unwrap();
    let [near, far] = ["near.toml", "far.toml"].map(|name| folder.join(name).display().to_string());
    let ends = Ends::start(&["--config", &far], &["--config", &near, "--class", "bulk"], 3);
    let mut application = TcpStream::connect(&ends.local[0]).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let writer = std::thread::spawn(move || server.write_all(&pattern(2_000_000)));
    let mut got = Vec::new();
    application.read_to_end(&mut got).unwrap();
    writer.join().unwrap().unwrap();
    assert!(got == pattern(2_000_000));
    // Nothing is said on this one.
    let mut still = TcpStream::connect(&ends.local[1]).unwrap();
    still.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let error = still.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn an_invalid_file_is_reported_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let node = ["forward", "--node", "far=127.0.0.1:9", "--insecure-test", "--config", "near.toml"];
    for (text, parts) in [
        ("[[forward]]\nlocal = \"8080\"\n", &["near.toml:2", "the `=` is missing"][..]),
        ("[[forward]]\nport = 3\n", &["near.toml:2", "unknown field `port`"]),
        (
            "[[forward]]\nlocal = \"1=far:a:1\"\nsocks = \"2\"\n",
            &["near.toml:1", "`local`, `remote`, `socks`"],
        ),
        (
            "[[forward]]\nlocal = \"1=far:a:1\"\n[[forward]]\nclass = \"live\"\n",
            &["near.toml:3", "needs exactly one kind"],
        ),
        ("[[forward]]\nlocal = \"1=far:a:1\"\nclass = \"live\"\n", &["there is no class `live`"]),
        ("[[forward]]\nlocal = \"1=other:a:1\"\n", &["the far node `other` is not known"]),
        ("[[class]]\nname = \"a\"\n[[class]]\nname = \"a\"\n", &["class `a` is there twice"]),
        ("", &["no forward is given"]),
    ] {
        std::fs::write(folder.join("near.toml"), text).unwrap();
        assert_told(&run(&node, folder), 2, parts);
    }
    let serve =
        ["forward", "serve", "--bind", "127.0.0.1:0", "--insecure-test", "--config", "far.toml"];
    assert_told(&run(&serve, folder), 2, &["far.toml", "cannot be read"]);
    std::fs::write(folder.join("far.toml"), "allow = [\"10.0.0.0/8\"]\n").unwrap();
    assert_told(&run(&serve, folder), 2, &["far.toml:1", "the ports are missing"]);
    let several = ["--node", "one=127.0.0.1:9", "--node", "two=127.0.0.1:9"];
    let refused = run(&[&["forward", "-D", "0", "--insecure-test"], &several[..]].concat(), folder);
    assert_told(&refused, 2, &["there are several far nodes", "one, two"]);
    let often =
        ["forward", "-D", "0", "--insecure-test", "--node", "far=127.0.0.1:9", "--stats", "1ms"];
    assert_told(&run(&often, folder), 2, &["--stats 10s"]);
}

#[test]
fn statistics_are_printed_as_text_and_as_events() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let here = Path::new(".");
    let serve =
        ["forward", "serve", "--bind", "127.0.0.1:0", "--insecure-test", "--allow", &target];
    let mut far = Running::start_logged(&[&serve[..], &["--stats", "200ms"]].concat(), here);
    let node = format!("far={}", far.address());
    let call = ["forward", "--node", &node, "--insecure-test", "--json", "--stats", "200ms"];
    let mut near = Running::start(&[&call[..], &["-L", &format!("0=far:{target}")]].concat(), here);
    let listening: Value = serde_json::from_str(&near.line()).unwrap();
    assert_eq!((&listening["event"], &listening["node"]), (&"listening".into(), &"far".into()));
    let mut application = TcpStream::connect(listening["at"].as_str().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    application.write_all(&[1; 5_000]).unwrap();
    application.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.read_to_end(&mut Vec::new()).unwrap(), 5_000);
    let stats = loop {
        let line: Value = serde_json::from_str(&near.line()).unwrap();
        if line["event"] == "stats" && line["counters"]["bytes_sent"] == 5_000 {
            break line;
        }
    };
    assert_eq!(
        (&stats["counters"]["connections"], &stats["counters"]["accepted"]),
        (&1.into(), &1.into())
    );
    assert!(stats["counters"]["line"]["symbols_sent"].as_u64() > Some(0), "{stats}");
    for name in ["seconds", "sent_bps", "received_bps"] {
        assert!(stats[name].is_number(), "{stats}");
    }
    assert!(far.log_until("1 connections; ").contains("symbols sent again"));
}
