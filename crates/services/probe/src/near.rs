//! The measuring end: opens a session, compares clocks, and runs streams either way, over a
//! [`ProbeIo`].

mod error;
mod io;
mod link;
mod receiving;
mod sizes;
mod streams;

pub use error::NearError;
pub use io::{Handed, LineError, ProbeIo};
pub use sizes::Payloads;

use crate::clock::PingComparison;
use crate::stream::{Spec, StreamDirection, Trace};
use crate::wire::{Message, RequestLimits};
use link::ProbeLink;
use skyhaul_units::{ByteCount, Duration, Instant};
use streams::StreamRun;

/// The measuring end of a session.
#[derive(Debug)]
pub struct ProbeClient<L> {
    link: ProbeLink<L>,
    limits: RequestLimits,
    next_stream: u32,
}

impl<L: ProbeIo> ProbeClient<L> {
    /// Opens a session over `line`; `nonce` is a random number.
    ///
    /// # Errors
    /// There is no far end, or it refuses.
    pub fn open(line: L, nonce: u64) -> Result<Self, NearError> {
        let (link, limits) = ProbeLink::open(line, nonce)?;
        Ok(Self { link, limits, next_stream: 1 })
    }

    /// How much the far end allows.
    pub const fn limits(&self) -> RequestLimits {
        self.limits
    }

    /// What it measures over.
    pub const fn line(&self) -> &L {
        self.link.line()
    }

    /// Round trips and clocks so far.
    pub const fn comparison(&self) -> &PingComparison {
        self.link.comparison()
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.link.now()
    }

    /// Pings at `spacing` for `time`, and waits for the last answers.
    ///
    /// # Errors
    /// The line cannot be used, or the far end stopped answering.
    pub fn ping_for(&mut self, time: Duration, spacing: Duration) -> Result<(), NearError> {
        self.link.ping_for(time, spacing)
    }

    /// Sends one ping; its answer is taken in by the next call that listens.
    ///
    /// # Errors
    /// The line cannot be used.
    pub fn ping(&mut self) -> Result<(), NearError> {
        self.link.ping()
    }

    /// Takes in what comes until `until`.
    ///
    /// # Errors
    /// The line cannot be used.
    pub fn listen(&mut self, until: Instant) -> Result<(), NearError> {
        self.link.listen(until)
    }

    /// The longest UDP payloads that arrive, up and down, not fragmented, of those that this host's
    /// interface takes.
    ///
    /// # Errors
    /// The line cannot be used, or the far end stopped answering.
    pub fn payloads(&mut self, most: ByteCount) -> Result<Payloads, NearError> {
        sizes::find_payloads(&mut self.link, most)
    }

    /// Runs a stream one way, with pings beside it, and waits for its stragglers.
    ///
    /// # Errors
    /// The line cannot be used, the far end does not allow it or stopped answering.
    pub fn stream(&mut self, direction: StreamDirection, spec: Spec) -> Result<Trace, NearError> {
        let stream = self.next_stream;
        self.next_stream = stream.wrapping_add(1);
        StreamRun::new(&mut self.link, stream, spec).run(direction)
    }

    /// Ends the session.
    pub fn close(mut self) -> L {
        // A far end that does not receive this forgets the session when it expires.
        let _ = self.link.send(&Message::Close { session: self.link.session() }, 0);
        self.link.into_line()
    }
}
