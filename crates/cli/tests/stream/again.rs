//! Streams whose session is lost.

use super::{Ends, PATIENT, arguments, summary};
use crate::support::node::free_address;
use crate::support::patience::until;
use crate::support::process::{Running, skyhaul};
use rustix::process::Signal;
use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Stdio;

/// Files of the far end whose names end like this.
fn files(ends: &Ends, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(ends.path("far")).unwrap().map(|entry| entry.unwrap().path());
    let fitting = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(end));
    entries.filter(|path| fitting(path) && path.metadata().is_ok_and(|data| data.len() > 0)).collect()
}

#[test]
fn a_live_source_goes_on_in_a_further_file_when_the_session_was_lost() {
    let mut ends = Ends::new(&[]);
    let source = free_address().to_string();
    let (from, node) = (format!("udp://{source}?plain"), format!("far={}", ends.address));
    let words = ["--from", &from, "--to", "far:{utc}.raw", "--format", "datagrams", "--json"];
    let mut sending = Running::of(
        skyhaul(&arguments(&node, &[&words[..], &PATIENT].concat()), ends.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |bytes: &[u8; 64]| drop(sender.send_to(bytes, &source));
    let arrived = |ends: &Ends, count: usize| {
        send(&[1; 64]);
        (files(ends, ".raw.skyhaul-part").len() == count).then_some(())
    };
    until(|| arrived(&ends, 1), || "nothing arrived".to_owned());
    ends.serving.kill();
    ends.serving = Ends::serve(&ends.folder, &ends.address, &[]);
    until(|| arrived(&ends, 2), || "nothing arrived over the next session".to_owned());
    assert!(sending.status().is_none());
    sending.signal(Signal::INT);
    let ended = sending.end();
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    assert_eq!(ended.output.matches("\"event\":\"lost\"").count(), 1, "{}", ended.output);
    summary(&ended.output);
    // What broke off keeps its part; the further one has its name.
    assert_eq!((files(&ends, ".raw").len(), files(&ends, ".raw.skyhaul-part").len()), (1, 1));
}

#[test]
fn a_stream_to_a_file_of_one_name_ends_with_its_session() {
    let mut ends = Ends::new(&[]);
    let source = free_address().to_string();
    let (from, node) = (format!("udp://{source}?plain"), format!("far={}", ends.address));
    let words = ["--from", &from, "--to", "far:one.raw", "--format", "datagrams", "--json"];
    let sending = Running::of(
        skyhaul(&arguments(&node, &[&words[..], &PATIENT].concat()), ends.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let arrived = || {
        drop(sender.send_to(&[1; 64], &source));
        (files(&ends, ".raw.skyhaul-part").len() == 1).then_some(())
    };
    until(arrived, || "nothing arrived".to_owned());
    ends.serving.kill();
    ends.serving = Ends::serve(&ends.folder, &ends.address, &[]);
    assert_eq!(sending.end().code, Some(4));
}
