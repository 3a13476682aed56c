//! A far end with the right key that does not keep to the rules, and strangers that do not even
//! speak TLS.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::pair::{CLIENT, Options, SERVER, endpoint, identity};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use skyhaul_identity::{RefusedKey, client_config};
use skyhaul_sessions::ConnectionPurpose;
use skyhaul_tcp::TcpPath;
use skyhaul_tcp::wire::{FrameReader, TcpFrame};
use skyhaul_transport::{DownReason, Path, PathEvent};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::io::{Read as _, Write as _};
use std::sync::Arc;

const GREETING: TcpFrame = TcpFrame::Greeting { purpose: ConnectionPurpose::NewSession };

/// A caller that has the TLS library and the right key, and says what the test wants.
struct Caller {
    tls: ClientConnection,
    path: TcpPath,
    read: FrameReader,
    error: Option<rustls::Error>,
}

impl Caller {
    fn new(alpn: &[&[u8]]) -> Self {
        let refused = Arc::<RefusedKey>::default();
        let mut config =
            client_config(&identity(0).into(), identity(1).fingerprint(), &refused, &[]);
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from("skyhaul").unwrap();
        let tls = ClientConnection::new(Arc::new(config), name).unwrap();
        let path = endpoint(&Options::default(), SERVER).accept(Instant::ZERO).ok().unwrap();
        let mut caller = Self { tls, path, read: FrameReader::default(), error: None };
        caller.exchange();
        caller
    }

    /// Past the greetings.
    fn up() -> Self {
        let mut caller = Self::new(&[b"skyhaul/1"]);
        caller.say(&[GREETING]);
        assert_eq!(caller.path.poll(Instant::ZERO), Some(PathEvent::Up { payload: 1_438 }));
        caller
    }

    fn exchange(&mut self) {
        for _ in 0..4 {
            let mut bytes = Vec::new();
            while self.tls.wants_write() {
                self.tls.write_tls(&mut bytes).unwrap();
            }
            assert_eq!(self.path.receive(Instant::ZERO, &bytes), bytes.len());
            let mut bytes = self.path.poll_transmit(Instant::ZERO).to_vec();
            self.path.written(bytes.len());
            let mut rest = &bytes.split_off(0)[..];
            while !rest.is_empty() && self.error.is_none() {
                self.tls.read_tls(&mut rest).unwrap();
                self.error = self.tls.process_new_packets().err();
            }
            let mut clear = Vec::new();
            let _ = self.tls.reader().read_to_end(&mut clear);
            self.read.extend(&clear);
        }
    }

    fn say(&mut self, frames: &[TcpFrame]) {
        let mut clear = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut clear));
        self.say_bytes(&clear);
    }

    fn say_bytes(&mut self, clear: &[u8]) {
        self.tls.writer().write_all(clear).unwrap();
        self.exchange();
    }

    fn heard(&mut self) -> Vec<TcpFrame> {
        std::iter::from_fn(|| self.read.poll().unwrap()).collect()
    }

    /// The end, and what was said about it to the far end.
    fn end(&mut self) -> (DownReason, Option<String>) {
        let down =
            std::iter::from_fn(|| self.path.poll(Instant::ZERO)).find_map(|event| match event {
                PathEvent::Down(reason) => Some(reason),
                _ => None,
            });
        let said = self.heard().into_iter().find_map(|frame| match frame {
            TcpFrame::Close { reason, .. } => Some(reason),
            _ => None,
        });
        (down.expect("the path is down"), said)
    }
}

#[test]
fn frames_against_the_rules_end_the_path_and_both_ends_know_why() {
    let count = |count| TcpFrame::Acknowledgement { count, delay: Duration::ZERO };
    for (frame, what) in [(count(1), "acknowledges 1"), (GREETING, "second greeting")] {
        let mut caller = Caller::up();
        caller.say(&[frame]);
        let (down, said) = caller.end();
        assert!(matches!(&down, DownReason::Failed(reason) if reason.contains(what)), "{down:?}");
        assert!(said.is_some_and(|said| said.contains(what)));
    }
    for (bytes, what) in
        [(&[0x99, 0, 0][..], "unknown frame type 0x99"), (&[5, 0, 1, 0], "0x05 with 1 bytes")]
    {
        let mut caller = Caller::up();
        caller.say_bytes(bytes);
        let (down, said) = caller.end();
        assert!(matches!(&down, DownReason::Failed(reason) if reason.contains(what)), "{down:?}");
        assert!(said.is_some_and(|said| said.contains(what)));
    }
}

#[test]
fn nothing_is_taken_before_the_greeting() {
    for frame in
        [TcpFrame::Datagram(vec![1].into()), TcpFrame::Control(vec![1].into()), TcpFrame::Ping(1)]
    {
        let mut caller = Caller::new(&[b"skyhaul/1"]);
        caller.say(&[frame]);
        let (down, _) = caller.end();
        assert!(
            matches!(&down, DownReason::Failed(reason) if reason.contains("before the greeting")),
            "{down:?}"
        );
    }
}

#[test]
fn pings_are_answered_newest_only() {
    let mut caller = Caller::up();
    caller.heard();
    caller.say(&(0..1_000).map(TcpFrame::Ping).collect::<Vec<_>>());
    let heard = caller.heard();
    assert!(
        heard.iter().all(|frame| *frame == TcpFrame::Pong(999)) && !heard.is_empty(),
        "{heard:?}"
    );
}

#[test]
fn answers_do_not_pile_up_for_a_far_end_that_does_not_read() {
    let mut caller = Caller::up();
    let mut clear = Vec::new();
    (0..100).for_each(|_| TcpFrame::Datagram(vec![0; 10].into()).encode(&mut clear));
    TcpFrame::Ping(1).encode(&mut clear);
    let mut unwritten = 0;
    for step in 0..20_000_u64 {
        let now = Instant::ZERO + Duration::from_millis(step);
        caller.tls.writer().write_all(&clear).unwrap();
        let mut bytes = Vec::new();
        caller.tls.write_tls(&mut bytes).unwrap();
        caller.path.receive(now, &bytes);
        while caller.path.poll(now).is_some() {}
        unwritten = caller.path.poll_transmit(now).len();
    }
    assert!(unwritten <= 300 * 1024, "{unwritten} bytes");
    let due = caller.path.next_timeout().unwrap();
    assert!(
        due > Instant::ZERO + Duration::from_secs(60),
        "no spinning on what cannot be sent: {due}"
    );
}

/// Found by damaged bytes: the handshake was complete and the greeting there when a record behind
/// them was broken.
#[test]
fn a_broken_record_right_behind_the_handshake_ends_the_path() {
    let options = Options::default();
    let key = identity(1).fingerprint();
    let mut calling = endpoint(&options, CLIENT).connect(Instant::ZERO, key).unwrap();
    let mut called = endpoint(&options, SERVER).accept(Instant::ZERO).ok().unwrap();
    let hello = calling.poll_transmit(Instant::ZERO).to_vec();
    calling.written(called.receive(Instant::ZERO, &hello));
    let answer = called.poll_transmit(Instant::ZERO).to_vec();
    called.written(calling.receive(Instant::ZERO, &answer));
    let mut rest = calling.poll_transmit(Instant::ZERO).to_vec();
    rest.extend_from_slice(&[23, 3, 3, 0, 20]);
    rest.extend_from_slice(&[0; 20]);
    called.receive(Instant::ZERO, &rest);
    while let Some(event) = called.poll(Instant::ZERO) {
        assert!(!matches!(event, PathEvent::Datagram(_) | PathEvent::Control(_)));
        if let PathEvent::Down(reason) = event {
            assert!(matches!(reason, DownReason::Failed(_)), "{reason:?}");
        }
    }
    assert!(
        called.is_written_out() || !called.poll_transmit(Instant::ZERO).is_empty(),
        "it is over"
    );
    assert_eq!(called.room(Instant::ZERO), 0);
}

#[test]
fn other_protocols_are_refused() {
    let mut caller = Caller::new(&[b"h2", b"http/1.1"]);
    assert!(matches!(caller.end().0, DownReason::Failed(_)));
    let alert = rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol);
    assert_eq!(caller.error, Some(alert));
    let mut caller = Caller::new(&[]);
    let (down, said) = caller.end();
    assert!(
        matches!(&down, DownReason::Failed(reason) if reason.contains("application protocol")),
        "{down:?}"
    );
    assert!(said.is_some());
}

#[test]
fn what_is_no_tls_is_refused_at_once() {
    let hello = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
    let mut called = endpoint(&Options::default(), SERVER).accept(Instant::ZERO).ok().unwrap();
    assert_eq!(called.receive(Instant::ZERO, hello), hello.len());
    assert!(matches!(called.poll(Instant::ZERO), Some(PathEvent::Down(DownReason::Failed(_)))));
    let key = identity(1).fingerprint();
    let mut calling = endpoint(&Options::default(), CLIENT).connect(Instant::ZERO, key).unwrap();
    calling.receive(Instant::ZERO, b"SSH-2.0-OpenSSH_9.6\r\n");
    assert!(matches!(calling.poll(Instant::ZERO), Some(PathEvent::Down(DownReason::Failed(_)))));
}

#[test]
fn a_hello_that_never_ends_is_bounded() {
    // A handshake record that announces a hello of 16 MB, and then its bytes for ever.
    let mut called = endpoint(&Options::default(), SERVER).accept(Instant::ZERO).ok().unwrap();
    let mut record = vec![22, 3, 1, 0x40, 0x00, 1, 0xff, 0xff, 0xff];
    record.resize(5 + 0x4000, 0);
    for _ in 0..1_000 {
        called.receive(Instant::ZERO, &record);
        record[5..9].fill(0);
    }
    assert!(matches!(called.poll(Instant::ZERO), Some(PathEvent::Down(DownReason::Failed(_)))));
    assert!(called.counters().received <= ByteCount::kib(64));
}
