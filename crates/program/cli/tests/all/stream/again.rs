//! Streams that lose their session.

use super::{Ends, PATIENT, arguments, summary};
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, skyhaul};
use rustix::process::Signal;
use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Stdio;

/// The files of the far end whose names end in this.
fn files(ends: &Ends, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(ends.path("far")).unwrap().map(|entry| entry.unwrap().path());
    let fitting = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(end));
    entries
        .filter(|path| fitting(path) && path.metadata().is_ok_and(|data| data.len() > 0))
        .collect()
}

/// A source of datagrams and the stream of it to a sink.
struct Live {
    sending: Running,
    sender: UdpSocket,
    source: String,
}

impl Live {
    fn to(sink: &str, ends: &Ends) -> Self {
        let source = free_address().to_string();
        let (from, node) = (format!("udp://{source}?plain"), format!("far={}", ends.address));
        let words = ["--from", &from, "--to", sink, "--format", "datagrams", "--json"];
        let words = [&words[..], &PATIENT].concat();
        let mut command = skyhaul(&arguments(&node, &words), ends.folder.path());
        let sending = Running::of(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        Self { sending, sender: UdpSocket::bind("127.0.0.1:0").unwrap(), source }
    }

    /// Sends until this many files have received something.
    fn until_in(&self, count: usize, ends: &Ends) {
        let arrived = || {
            // A datagram is refused while nobody listens.
            let _ = self.sender.send_to(&[1; 64], &self.source);
            (files(ends, ".raw.skyhaul-part").len() == count).then_some(())
        };
        until(arrived, || format!("nothing arrived in file {count}"));
    }
}

#[test]
fn a_live_source_continues_in_another_file_after_a_lost_session() {
    let mut ends = Ends::new(&[]);
    let mut live = Live::to("far:{utc}.raw", &ends);
    live.until_in(1, &ends);
    ends.serving.kill();
    ends.serving = Ends::serve(&ends.folder, &ends.address, &[]);
    live.until_in(2, &ends);
    assert!(live.sending.status().is_none());
    live.sending.signal(Signal::INT);
    let ended = live.sending.end();
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    assert_eq!(ended.output.matches("\"event\":\"lost\"").count(), 1, "{}", ended.output);
    summary(&ended.output);
    // The interrupted file keeps its part; the next file has a name of its own.
    assert_eq!((files(&ends, ".raw").len(), files(&ends, ".raw.skyhaul-part").len()), (1, 1));
}

#[test]
fn a_stream_to_a_single_file_ends_with_its_session() {
    let mut ends = Ends::new(&[]);
    let live = Live::to("far:one.raw", &ends);
    live.until_in(1, &ends);
    ends.serving.kill();
    ends.serving = Ends::serve(&ends.folder, &ends.address, &[]);
    assert_eq!(live.sending.end().code, Some(4));
}
