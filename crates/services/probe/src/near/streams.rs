//! Streams of datagrams at a constant spacing, either way.

use super::{Handed, NearError, ProbeClient, ProbeIo};
use crate::host::HostCounters;
use crate::stream::{ProbeArrival, Spec, StreamDirection, Trace};
use crate::wire::{ARRIVALS_AT_ONCE, Message, Tally};
use skyhaul_units::{Duration, Instant, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// A stream of the far end that is being received.
#[derive(Debug)]
pub(super) struct Receiving {
    stream: u32,
    count: u32,
    seen: Vec<bool>,
    arrivals: Vec<ProbeArrival>,
    duplicates: u32,
}

impl Receiving {
    fn new(stream: u32, count: u32) -> Self {
        Self {
            stream,
            count,
            seen: vec![false; count as usize],
            arrivals: Vec::new(),
            duplicates: 0,
        }
    }

    /// A datagram of some stream came.
    pub fn take(&mut self, stream: u32, arrival: ProbeArrival) {
        if stream != self.stream {
            return;
        }
        match self.seen.get_mut(arrival.seq as usize) {
            Some(seen) if !*seen => {
                *seen = true;
                self.arrivals.push(arrival);
            }
            Some(_) => self.duplicates = self.duplicates.saturating_add(1),
            None => {}
        }
    }
}

impl<L: ProbeIo> ProbeClient<L> {
    /// Runs a stream one way, with pings beside it, and waits until what is late has come.
    ///
    /// # Errors
    /// The line cannot be used, the far end does not allow it or stopped answering.
    pub fn stream(&mut self, direction: StreamDirection, spec: Spec) -> Result<Trace, NearError> {
        let stream = self.next_stream;
        self.next_stream = stream.wrapping_add(1);
        let host = self.line.host();
        let begin = Message::Begin { session: self.session, stream, direction, spec };
        if direction == StreamDirection::Down {
            self.receiving = Some(Receiving::new(stream, spec.count));
        }
        self.ask(&begin, 0, |message| match message {
            Message::Begun { stream: of, .. } if of == stream => Some(Ok(())),
            Message::Refused { about, reason } if about == u64::from(stream) => Some(Err(reason)),
            _ => None,
        })?;
        let mut trace = Trace {
            direction,
            spec,
            offered: 0,
            refused: 0,
            arrivals: Vec::new(),
            duplicates: 0,
            sender: HostCounters::default(),
            receiver: HostCounters::default(),
        };
        match direction {
            StreamDirection::Up => self.up(stream, &mut trace, host)?,
            StreamDirection::Down => self.down(stream, &mut trace, host)?,
        }
        Ok(trace)
    }

    fn up(&mut self, stream: u32, trace: &mut Trace, host: HostCounters) -> Result<(), NearError> {
        let spec = trace.spec;
        let sent = self.send_all(stream, trace)?;
        let tally = self.settled(stream, spec.count)?;
        trace.offered = spec.count;
        trace.sender = self.line.host().since(&host);
        trace.receiver = tally.host;
        trace.duplicates = tally.duplicates;
        trace.arrivals = self
            .fetch(stream, tally.received)?
            .into_iter()
            .filter_map(|(seq, arrived)| {
                Some(ProbeArrival { seq, sent: *sent.get(seq as usize)?, arrived })
            })
            .collect();
        Ok(())
    }

    /// Sends a stream's datagrams, and returns when each left.
    fn send_all(&mut self, stream: u32, trace: &mut Trace) -> Result<Vec<Utc>, NearError> {
        let spec = trace.spec;
        let mut begin = self.line.now() + LEAD;
        let mut sent = Vec::with_capacity(spec.count as usize);
        let mut ping_at = begin;
        for seq in 0..spec.count {
            let due = begin + spec.spacing * u64::from(seq);
            self.listen(due)?;
            let now = self.line.now();
            if now.since(due) > CATCH_UP_MAX {
                begin += now.since(due);
            }
            if now >= ping_at {
                self.ping()?;
                self.still_there()?;
                ping_at = now + PING_SPACING;
            }
            let at = self.utc(self.line.now());
            let data = Message::Data { session: self.session, stream, seq, sent: at };
            if self.line.send(&data.encode(spec.payload.as_usize()))? != Handed::Taken {
                trace.refused += 1;
            }
            sent.push(at);
        }
        Ok(sent)
    }

    fn down(
        &mut self,
        stream: u32,
        trace: &mut Trace,
        host: HostCounters,
    ) -> Result<(), NearError> {
        let spec = trace.spec;
        let end = self.line.now() + spec.time() + LEAD * 2 + self.straggling();
        let mut ping_at = self.line.now();
        while self.line.now() < end && !self.is_complete() {
            if self.line.now() >= ping_at {
                self.ping()?;
                self.still_there()?;
                ping_at = self.line.now() + PING_SPACING;
            }
            self.listen_once(ping_at.min(end))?;
        }
        // A sender that was held up is still at it.
        let mut tally = self.tally(stream)?;
        let last = self.line.now() + spec.time() + SETTLE_MAX;
        while tally.offered < spec.count && self.line.now() < last {
            self.ping()?;
            self.listen(self.line.now() + PING_SPACING)?;
            let before = tally.offered;
            tally = self.tally(stream)?;
            if tally.offered == before {
                break;
            }
        }
        self.quiet()?;
        if let Some(receiving) = self.receiving.take() {
            (trace.arrivals, trace.duplicates) = (receiving.arrivals, receiving.duplicates);
        }
        (trace.offered, trace.refused, trace.sender) = (tally.offered, tally.refused, tally.host);
        trace.receiver = self.line.host().since(&host);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        let of = |receiving: &Receiving| receiving.arrivals.len() == receiving.count as usize;
        self.receiving.as_ref().is_none_or(of)
    }

    /// Waits until nothing of the stream comes any more. Its end is behind us: an answer that the
    /// far end gave after it was here.
    fn quiet(&mut self) -> Result<(), NearError> {
        let last = self.line.now() + SETTLE_MAX;
        while self.line.now() < last && !self.is_complete() {
            let before = self.receiving.as_ref().map_or(0, |receiving| receiving.arrivals.len());
            let until = self.line.now() + self.straggling();
            self.ping()?;
            self.listen(until)?;
            if self.receiving.as_ref().map_or(0, |receiving| receiving.arrivals.len()) == before {
                break;
            }
        }
        Ok(())
    }

    /// Waits until all has come or the far end's count stays. The question after it queues behind
    /// the stream, so that a queue is waited for as long as it is, and no longer.
    fn settled(&mut self, stream: u32, all: u32) -> Result<Tally, NearError> {
        let last = self.line.now() + SETTLE_MAX;
        let mut tally = self.tally(stream)?;
        while tally.received < all && self.line.now() < last {
            let until = self.line.now() + self.straggling();
            self.ping()?;
            self.listen(until)?;
            let before = tally.received;
            tally = self.tally(stream)?;
            if tally.received == before {
                break;
            }
        }
        Ok(tally)
    }

    /// How much later than what was sent after it a datagram may come: routes of different length,
    /// links that repeat.
    fn straggling(&self) -> Duration {
        let shortest = self.comparison.best().map_or(Duration::ZERO, |best| best.round_trip());
        (shortest / 4).clamp(STRAGGLING_MIN, STRAGGLING_MAX)
    }

    fn tally(&mut self, stream: u32) -> Result<Tally, NearError> {
        self.ask(&Message::Ask { session: self.session, stream }, 0, |message| match message {
            Message::Told { stream: of, tally, .. } if of == stream => Some(Ok(tally)),
            Message::Refused { reason, .. } => Some(Err(reason)),
            _ => None,
        })
    }

    /// The far end's arrivals, fetched with several questions under way.
    fn fetch(&mut self, stream: u32, count: u32) -> Result<Vec<(u32, Utc)>, NearError> {
        let step = u32::try_from(ARRIVALS_AT_ONCE).unwrap_or(1);
        let mut missing: BTreeSet<u32> =
            (0..count.div_ceil(step)).map(|part| part * step).collect();
        let mut parts: BTreeMap<u32, Vec<(u32, Utc)>> = BTreeMap::new();
        let mut fruitless = 0;
        while !missing.is_empty() && fruitless < FETCH_TRIES {
            let before = missing.len();
            let asked: Vec<u32> = missing.iter().copied().take(FETCH_AT_ONCE).collect();
            for from in &asked {
                // Evenly, so that the answers are no burst that a narrow line drops.
                self.line.send(
                    &Message::Fetch { session: self.session, stream, from: *from }.encode(0),
                )?;
                let pause = self.line.now() + FETCH_SPACING;
                self.take_arrivals(stream, pause, &mut missing, &mut parts)?;
            }
            let until = self.line.now() + self.patience();
            while asked.iter().any(|from| missing.contains(from)) && self.line.now() < until {
                self.take_arrivals(
                    stream,
                    until.min(self.line.now() + FETCH_SPACING),
                    &mut missing,
                    &mut parts,
                )?;
            }
            fruitless = if missing.len() == before { fruitless + 1 } else { 0 };
        }
        if !missing.is_empty() {
            return Err(NearError::Lost(self.line.now().since(self.heard)));
        }
        Ok(parts.into_values().flatten().collect())
    }

    fn take_arrivals(
        &mut self,
        stream: u32,
        until: Instant,
        missing: &mut BTreeSet<u32>,
        parts: &mut BTreeMap<u32, Vec<(u32, Utc)>>,
    ) -> Result<(), NearError> {
        while let Some((at, datagram)) = self.line.receive(until)? {
            let message =
                Message::decode(&datagram).ok().and_then(|message| self.heard(at, message));
            if let Some(Message::Arrivals { stream: of, from, arrivals, .. }) = message
                && of == stream
                && missing.remove(&from)
            {
                parts.insert(from, arrivals);
            }
        }
        Ok(())
    }
}

/// Beside a stream: the round trip under load, and the sign of life that keeps the far end sending.
const PING_SPACING: Duration = Duration::from_millis(100);

/// Before the first datagram of a stream.
const LEAD: Duration = Duration::from_millis(5);

/// A sender that is later than this goes on at its spacing; up to this it catches up, as the
/// system's scheduling makes it late all the time.
pub const CATCH_UP_MAX: Duration = Duration::from_millis(2);

/// Two routes of which one is 10,000 km longer.
const STRAGGLING_MIN: Duration = Duration::from_millis(50);
/// A quarter of a round trip over two geostationary hops.
const STRAGGLING_MAX: Duration = Duration::from_millis(300);

/// Nothing that a queue held longer than this is waited for.
const SETTLE_MAX: Duration = Duration::from_secs(10);

/// Questions for arrivals under way: their answers are 75 KB.
const FETCH_AT_ONCE: usize = 64;
/// Between two questions: their answers make 19 Mbit/s, which a line that carried the stream mostly
/// has, and the rest is asked for again.
const FETCH_SPACING: Duration = Duration::from_micros(500);
/// Rounds of questions without any answer.
const FETCH_TRIES: u32 = 8;
