//! A session against a far end that is authenticated and means harm, and against paths that say
//! anything.

use bytes::Bytes;
use skyhaul_transport::{
    Block, BlockId, DownReason, Event, FlowId, Mode, Opening, PathEvent, PathId, PathOptions, Seq,
    Session, SessionConfig, Token,
};
use skyhaul_units::{ByteCount, Duration, Instant};

/// Two sessions that know each other; one is then given the input. Nothing panics, the books
/// balance, and what it holds stays bounded. The input is a series of records: kind, path or
/// number, length, and the content.
pub fn session(input: &[u8]) {
    let mut pair = Pair::opened();
    let mut rest = input;
    for _ in 0..RECORDS_MAX {
        let Some((&[kind, number, len], behind)) = rest.split_first_chunk::<3>() else { break };
        let (content, behind) = behind.split_at(usize::from(len).min(behind.len()));
        rest = behind;
        pair.record(kind, number, content);
        pair.check();
    }
    // Whatever was done, time-outs and datagrams go on and come to an end.
    for _ in 0..50 {
        pair.now += Duration::from_millis(250);
        pair.victim.handle_timeout(pair.now);
        pair.exchange();
        pair.check();
    }
}

struct Pair {
    now: Instant,
    victim: Session,
    peer: Session,
    /// The tokens given out so far, to be named by the input.
    tokens: u64,
    sent: Vec<BlockId>,
    ended: bool,
}

/// A round of input costs at most this many records.
const RECORDS_MAX: usize = 2_000;
/// Datagrams taken from a session at one instant.
const BURST: usize = 40;
const PATHS: u8 = 4;
/// The largest payload that the input names.
const PAYLOAD: usize = 1_500;

fn config() -> SessionConfig {
    let (receive_window, send_buffer) = (ByteCount::kib(64), ByteCount::kib(64));
    SessionConfig { receive_window, send_buffer, ..SessionConfig::default() }
}

impl Pair {
    fn opened() -> Self {
        let (victim, peer) = (Session::new(config()), Session::new(config()));
        let mut pair =
            Self { now: Instant::ZERO, victim, peer, tokens: 0, sent: Vec::new(), ended: false };
        for session in [&mut pair.victim, &mut pair.peer] {
            session.open(Opening { name: "a node".to_owned(), ..Opening::default() });
            for path in 0..2 {
                session.add_path(PathId(path), PathOptions::default());
                session.handle(Instant::ZERO, PathId(path), PathEvent::Up { payload: 1_438 });
            }
        }
        pair.exchange();
        assert!(pair.victim.is_open() && pair.peer.is_open());
        pair
    }

    fn record(&mut self, kind: u8, number: u8, content: &[u8]) {
        let (now, path) = (self.now, PathId(number % PATHS));
        let bytes = Bytes::copy_from_slice(content);
        match kind % 16 {
            0..4 => self.victim.handle(now, path, PathEvent::Datagram(bytes)),
            4 | 5 => self.victim.handle(now, path, PathEvent::Control(bytes)),
            6 => self.victim.handle(now, path, PathEvent::Acked(self.token(content))),
            7 => self.victim.handle(now, path, PathEvent::Lost(self.token(content))),
            8 => self.send(number, content),
            9 => {
                self.now += Duration::from_millis(u64::from(number) * 4);
                self.victim.handle_timeout(self.now);
                self.peer.handle_timeout(self.now);
            }
            10 => self.exchange(),
            11 => {
                let payload = usize::from(number) * 5 + content.len();
                self.victim.handle(now, path, PathEvent::Up { payload: payload.min(PAYLOAD) });
            }
            12 => self.victim.handle(now, path, PathEvent::Down(DownReason::TimedOut)),
            13 => {
                self.victim.remove_path(path);
                self.victim.add_path(
                    path,
                    PathOptions { metered: number & 64 != 0, standby: number & 128 != 0 },
                );
            }
            14 => {
                if let Some(id) = self.sent.get(usize::from(number)) {
                    self.victim.cancel(*id);
                }
                self.victim
                    .sender_mut()
                    .pin(FlowId(u32::from(number % 8)), (number & 64 != 0).then_some(path));
            }
            _ => self.burst(),
        }
    }

    fn token(&self, content: &[u8]) -> Token {
        let back = content.iter().fold(0u64, |token, byte| token << 8 | u64::from(*byte));
        Token(self.tokens.saturating_sub(back))
    }

    fn send(&mut self, number: u8, content: &[u8]) {
        let expendable = number & 1 != 0;
        let len = 1 + content.len() * usize::from(number);
        let depends_on = if number & 2 != 0 { self.sent.last().copied() } else { None };
        let block = Block {
            depends_on,
            mode: if expendable { Mode::Expendable } else { Mode::Reliable },
            deadline: expendable.then(|| Duration::from_millis(u64::from(number) * 10)),
            redundant: number & 4 != 0,
            ..Block::reliable(FlowId(u32::from(number % 8)), vec![number; len].into())
        };
        self.sent.extend(self.victim.send(self.now, block));
    }

    /// The victim sends, to nobody.
    fn burst(&mut self) {
        for path in 0..PATHS {
            for _ in 0..BURST {
                let Some((token, datagram)) = self.victim.poll_datagram(self.now, PathId(path))
                else {
                    break;
                };
                assert!(datagram.len() <= PAYLOAD.max(1_438));
                self.tokens = token.0;
            }
        }
    }

    /// What each has to say reaches the other, on the first two paths.
    fn exchange(&mut self) {
        for path in [PathId(0), PathId(1)] {
            let now = self.now;
            for from_victim in [true, false] {
                let (from, to) = if from_victim {
                    (&mut self.victim, &mut self.peer)
                } else {
                    (&mut self.peer, &mut self.victim)
                };
                let control = Bytes::copy_from_slice(from.control_mut().poll(path));
                from.control_mut().taken(control.len());
                to.handle(now, path, PathEvent::Control(control));
                for _ in 0..BURST {
                    let Some((token, datagram)) = from.poll_datagram(now, path) else { break };
                    to.handle(now, path, PathEvent::Datagram(datagram));
                    from.handle(now, path, PathEvent::Acked(token));
                }
            }
        }
        while let Some(event) = self.peer.poll() {
            if let Event::Block(received) = event {
                self.peer.release(received.bytes.len());
            }
        }
    }

    fn check(&mut self) {
        while let Some(event) = self.victim.poll() {
            match event {
                Event::Block(received) => {
                    self.victim.control_mut().receipt(received.id.flow, Seq(received.id.seq.0));
                    self.victim.release(received.bytes.len());
                }
                Event::Closed(_) => {
                    assert!(!core::mem::replace(&mut self.ended, true), "it ended twice")
                }
                _ => {}
            }
        }
        let stats = self.victim.stats();
        assert!(stats.balances(), "{stats:?}");
        let (held, most) =
            (self.victim.stats().memory, config().memory_max(usize::from(PATHS), PAYLOAD));
        assert!(held <= most.as_u64(), "{held} of {most}: {stats:?}");
        let _ = (
            self.victim.next_timeout(),
            self.victim.has_symbol(),
            self.victim.sender().forecasts(self.now, self.victim.paths(), &[]),
        );
    }
}
