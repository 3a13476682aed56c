//! A transfer over the production session manager: one side sends blocks as fast as it may, the
//! other checks and counts them.

use super::super::line::Line;
use super::Broken;
use crate::world::{QuicLine, QuicWorld, User, Users, WorldConfig};
use bytes::Bytes;
use skyhaul_congestion::ControllerConfig;
use skyhaul_transport::{Block, Event, FlowId, PathOptions, Seq, Session, cost};
use skyhaul_units::{ByteCount, Instant};

/// A transfer that runs.
pub(super) struct Transfer(QuicWorld<Source, Sink>);

impl Transfer {
    /// A sender that calls at once and has blocks without end.
    pub fn new(line: &Line, controller: ControllerConfig, seed: u64) -> Result<Self, Broken> {
        let impossible = |error: skyhaul_link::LossError| Broken(error.to_string());
        let links = [line.data().map_err(impossible)?, line.returns().map_err(impossible)?];
        let lines = [QuicLine { links, controller, options: PathOptions::default() }];
        let content = content();
        let source = Source { next: Seq(0), content: content.clone() };
        let sink = Sink { delivered: ByteCount::ZERO, next: Seq(0), content, fault: None };
        Ok(Self(QuicWorld::new(
            WorldConfig::default(),
            &lines,
            seed,
            Users { near: source, far: sink },
        )?))
    }

    /// Runs until an instant. Returns the bytes given out in order by then.
    pub fn run_until(&mut self, limit: Instant) -> Result<ByteCount, Broken> {
        self.0.run_until(limit, |_| false)?;
        let sink = self.sink()?;
        sink.fault.map_or(Ok(sink.delivered), |seq| {
            Err(Broken(format!("block {seq} is not what was sent")))
        })
    }

    /// Blocks given out in order so far.
    pub fn blocks(&self) -> Result<u64, Broken> {
        Ok(self.sink()?.next.0)
    }

    fn sink(&self) -> Result<&Sink, Broken> {
        self.0.far_user().ok_or_else(|| Broken("the sink is not there".to_owned()))
    }
}

struct Source {
    next: Seq,
    content: Bytes,
}

impl User for Source {
    fn event(&mut self, _: Instant, _: &mut Session, _: Event) {}

    fn work(&mut self, now: Instant, session: &mut Session) -> Option<Instant> {
        while session.room().as_u64() >= cost(BLOCK.as_usize()) {
            let bytes = bytes_of(&self.content, self.next);
            if session.send(now, Block::reliable(FlowId(0), bytes)).is_err() {
                break;
            }
            self.next = self.next.next();
        }
        None
    }
}

struct Sink {
    delivered: ByteCount,
    next: Seq,
    content: Bytes,
    /// The first block that was out of its order, or changed.
    fault: Option<Seq>,
}

impl User for Sink {
    fn event(&mut self, _: Instant, session: &mut Session, event: Event) {
        let Event::Block(received) = event else { return };
        let seq = received.id.seq;
        if seq != self.next || received.bytes != bytes_of(&self.content, seq) {
            self.fault.get_or_insert(seq);
            return;
        }
        self.next = self.next.next();
        self.delivered += ByteCount::of(received.bytes.len());
        session.release(received.bytes.len());
    }

    fn work(&mut self, _: Instant, _: &mut Session) -> Option<Instant> {
        None
    }
}

/// What blocks are cut from: no two of a thousand in a row are the same.
fn content() -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = (0..BLOCK.as_u64() / 8 + SHIFTS / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()
    });
    words.collect::<Vec<u8>>().into()
}

fn bytes_of(content: &Bytes, seq: Seq) -> Bytes {
    let start = (seq.0 % SHIFTS) as usize;
    content.slice(start..start + BLOCK.as_usize())
}

/// What a station gathers into one block at a downlink's pace.
const BLOCK: ByteCount = ByteCount::kib(256);

/// Blocks after which content repeats.
const SHIFTS: u64 = 1024;
