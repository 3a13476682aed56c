//! One stream of datagrams at a constant spacing, either way.

use super::error::NearError;
use super::io::{Handed, ProbeIo};
use super::link::ProbeLink;
use super::receiving::Receiving;
use crate::host::HostCounters;
use crate::stream::{CATCH_UP_MAX, ProbeArrival, Spec, StreamDirection, Trace};
use crate::wire::{ARRIVALS_AT_ONCE, Message, Tally};
use skyhaul_units::{Duration, Instant, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// A stream while it runs.
pub(super) struct StreamRun<'a, L> {
    link: &'a mut ProbeLink<L>,
    stream: u32,
    spec: Spec,
}

impl<'a, L: ProbeIo> StreamRun<'a, L> {
    /// The stream with this number.
    pub(super) const fn new(link: &'a mut ProbeLink<L>, stream: u32, spec: Spec) -> Self {
        Self { link, stream, spec }
    }

    /// Runs the stream, and waits for its stragglers.
    pub(super) fn run(mut self, direction: StreamDirection) -> Result<Trace, NearError> {
        let Self { stream, spec, .. } = self;
        let host = self.link.line_mut().host();
        let begin = Message::Begin { session: self.link.session(), stream, direction, spec };
        if direction == StreamDirection::Down {
            self.link.receiving = Some(Receiving::new(stream, spec.count));
        }
        self.link.ask(&begin, 0, |message| match message {
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
            StreamDirection::Up => self.up(&mut trace, host)?,
            StreamDirection::Down => self.down(&mut trace, host)?,
        }
        Ok(trace)
    }

    fn up(&mut self, trace: &mut Trace, host: HostCounters) -> Result<(), NearError> {
        let sent = self.send_all(trace)?;
        let tally = self.settled()?;
        trace.offered = self.spec.count;
        trace.sender = self.link.line_mut().host().since(&host);
        trace.receiver = tally.host;
        trace.duplicates = tally.duplicates;
        trace.arrivals = self
            .fetch(tally.received)?
            .into_iter()
            .filter_map(|(seq, arrived)| {
                Some(ProbeArrival { seq, sent: *sent.get(seq as usize)?, arrived })
            })
            .collect();
        Ok(())
    }

    /// Sends a stream's datagrams, and returns when each left.
    fn send_all(&mut self, trace: &mut Trace) -> Result<Vec<Utc>, NearError> {
        let Self { stream, spec, .. } = *self;
        let mut begin = self.link.now() + LEAD;
        let mut sent = Vec::with_capacity(spec.count as usize);
        let mut ping_at = begin;
        for seq in 0..spec.count {
            let due = begin + spec.spacing * u64::from(seq);
            self.link.listen(due)?;
            let now = self.link.now();
            if now.since(due) > CATCH_UP_MAX {
                begin += now.since(due);
            }
            if now >= ping_at {
                self.link.ping()?;
                self.link.still_there()?;
                ping_at = now + PING_SPACING;
            }
            let at = self.link.utc(self.link.now());
            let data = Message::Data { session: self.link.session(), stream, seq, sent: at };
            if self.link.send(&data, spec.payload.as_usize())? != Handed::Taken {
                trace.refused += 1;
            }
            sent.push(at);
        }
        Ok(sent)
    }

    fn down(&mut self, trace: &mut Trace, host: HostCounters) -> Result<(), NearError> {
        let spec = self.spec;
        let end = self.link.now() + spec.time() + LEAD * 2 + self.straggling();
        let mut ping_at = self.link.now();
        while self.link.now() < end && !self.is_complete() {
            if self.link.now() >= ping_at {
                self.link.ping()?;
                self.link.still_there()?;
                ping_at = self.link.now() + PING_SPACING;
            }
            self.link.listen_once(ping_at.min(end))?;
        }
        // A sender that did not get its processor time is still sending.
        let mut tally = self.tally()?;
        let last = self.link.now() + spec.time() + SETTLE_MAX;
        while tally.offered < spec.count && self.link.now() < last {
            self.link.ping()?;
            self.link.listen(self.link.now() + PING_SPACING)?;
            let before = tally.offered;
            tally = self.tally()?;
            if tally.offered == before {
                break;
            }
        }
        self.quiet()?;
        if let Some(receiving) = self.link.receiving.take() {
            (trace.arrivals, trace.duplicates) = (receiving.arrivals, receiving.duplicates);
        }
        (trace.offered, trace.refused, trace.sender) = (tally.offered, tally.refused, tally.host);
        trace.receiver = self.link.line_mut().host().since(&host);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.link.receiving.as_ref().is_none_or(Receiving::is_complete)
    }

    /// Waits until nothing of the stream comes any more. The far end has sent all of it: its tally,
    /// which it sent afterwards, is here.
    fn quiet(&mut self) -> Result<(), NearError> {
        let last = self.link.now() + SETTLE_MAX;
        while self.link.now() < last && !self.is_complete() {
            let before =
                self.link.receiving.as_ref().map_or(0, |receiving| receiving.arrivals.len());
            let until = self.link.now() + self.straggling();
            self.link.ping()?;
            self.link.listen(until)?;
            if self.link.receiving.as_ref().map_or(0, |receiving| receiving.arrivals.len())
                == before
            {
                break;
            }
        }
        Ok(())
    }

    /// Waits until all has come or the far end's count no longer grows. Each question for the count
    /// queues behind the stream, so that the wait is as long as the queue, and no longer.
    fn settled(&mut self) -> Result<Tally, NearError> {
        let last = self.link.now() + SETTLE_MAX;
        let mut tally = self.tally()?;
        while tally.received < self.spec.count && self.link.now() < last {
            let until = self.link.now() + self.straggling();
            self.link.ping()?;
            self.link.listen(until)?;
            let before = tally.received;
            tally = self.tally()?;
            if tally.received == before {
                break;
            }
        }
        Ok(tally)
    }

    /// How long a datagram may arrive after later ones: routes of different length, links that
    /// retransmit.
    fn straggling(&self) -> Duration {
        let shortest =
            self.link.comparison().best().map_or(Duration::ZERO, |best| best.round_trip());
        (shortest / 4).clamp(STRAGGLING_MIN, STRAGGLING_MAX)
    }

    fn tally(&mut self) -> Result<Tally, NearError> {
        let stream = self.stream;
        self.link.ask(&Message::Ask { session: self.link.session(), stream }, 0, |message| {
            match message {
                Message::Told { stream: of, tally, .. } if of == stream => Some(Ok(tally)),
                Message::Refused { reason, .. } => Some(Err(reason)),
                _ => None,
            }
        })
    }

    /// The far end's arrivals, fetched with several questions under way.
    fn fetch(&mut self, count: u32) -> Result<Vec<(u32, Utc)>, NearError> {
        let step = u32::try_from(ARRIVALS_AT_ONCE).unwrap_or(1);
        let mut missing: BTreeSet<u32> =
            (0..count.div_ceil(step)).map(|part| part * step).collect();
        let mut parts: BTreeMap<u32, Vec<(u32, Utc)>> = BTreeMap::new();
        let mut fruitless = 0;
        while !missing.is_empty() && fruitless < FETCH_TRIES {
            let before = missing.len();
            let asked: Vec<u32> = missing.iter().copied().take(FETCH_AT_ONCE).collect();
            for from in &asked {
                // Spaced, so that the answers are no burst that a narrow line drops.
                let (session, stream) = (self.link.session(), self.stream);
                self.link.send(&Message::Fetch { session, stream, from: *from }, 0)?;
                let pause = self.link.now() + FETCH_SPACING;
                self.take_arrivals(pause, &mut missing, &mut parts)?;
            }
            let until = self.link.now() + self.link.patience();
            while asked.iter().any(|from| missing.contains(from)) && self.link.now() < until {
                let pause = until.min(self.link.now() + FETCH_SPACING);
                self.take_arrivals(pause, &mut missing, &mut parts)?;
            }
            fruitless = if missing.len() == before { fruitless + 1 } else { 0 };
        }
        if !missing.is_empty() {
            return Err(NearError::Lost(self.link.now().since(self.link.heard_at())));
        }
        Ok(parts.into_values().flatten().collect())
    }

    fn take_arrivals(
        &mut self,
        until: Instant,
        missing: &mut BTreeSet<u32>,
        parts: &mut BTreeMap<u32, Vec<(u32, Utc)>>,
    ) -> Result<(), NearError> {
        let stream = self.stream;
        self.link.listen_for(until, |message| {
            if let Message::Arrivals { stream: of, from, arrivals, .. } = message
                && of == stream
                && missing.remove(&from)
            {
                parts.insert(from, arrivals);
            }
        })
    }
}

/// Beside a stream: the round trip under load, and the sign of life that keeps the far end sending.
const PING_SPACING: Duration = Duration::from_millis(100);

/// Before the first datagram of a stream.
const LEAD: Duration = Duration::from_millis(5);

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
