//! What became of a flow, counted and over time.

use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// Counts of one flow, and its course in samples. At any time
/// `sent = delivered + queue_dropped + policed + socket_dropped + lost on the line + in flight`.
#[derive(Debug, Clone)]
pub struct FlowRecord {
    /// Packets sent.
    pub sent: u64,
    /// Packets that reached the receiver.
    pub delivered: u64,
    /// Packets refused by the bottleneck's queue.
    pub queue_dropped: u64,
    /// Packets dropped by the bottleneck's policer.
    pub policed: u64,
    /// Packets for which the receiver's socket had no room, because nobody read it.
    pub socket_dropped: u64,
    /// Packets that the sender counted as lost, those included that arrived later.
    pub declared_lost: u64,
    /// When the flow's first packet was acknowledged: the flow sends freely from then on, as after
    /// a handshake.
    pub ready: Option<Instant>,
    packet: ByteCount,
    interval: Duration,
    samples: Vec<FlowSample>,
}

/// A flow at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSample {
    /// Packets that reached the receiver so far.
    pub delivered: u64,
    /// What the sender has under way.
    pub in_flight: ByteCount,
    /// What it may have under way.
    pub window: ByteCount,
    /// The rate it is paced at.
    pub rate: Rate,
}

impl FlowRecord {
    pub(super) const fn new(packet: ByteCount, interval: Duration) -> Self {
        Self {
            sent: 0,
            delivered: 0,
            queue_dropped: 0,
            policed: 0,
            socket_dropped: 0,
            declared_lost: 0,
            ready: None,
            packet,
            interval,
            samples: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, sample: FlowSample) {
        self.samples.push(sample);
    }

    /// Size of the flow's packets.
    pub const fn packet(&self) -> ByteCount {
        self.packet
    }

    /// The samples, from the clock's start on, one every interval of the bottleneck.
    pub fn samples(&self) -> &[FlowSample] {
        &self.samples
    }

    /// Samples of a stretch of time, `to` not included.
    pub fn samples_of(&self, from: Instant, to: Instant) -> &[FlowSample] {
        let (from, to) = (self.index(from), self.index(to));
        &self.samples[from.min(to)..to]
    }

    /// Rate of arrival at the receiver between two instants, counted in IP packets. Both are
    /// rounded down to the samples.
    pub fn goodput(&self, from: Instant, to: Instant) -> Rate {
        let at = |index: usize| {
            self.samples.get(index).map_or(self.delivered, |sample| sample.delivered)
        };
        let (from, to) = (self.index(from), self.index(to));
        let packets = at(to).saturating_sub(at(from.min(to)));
        let span = self.interval * (to.saturating_sub(from) as u64);
        Rate::over(ByteCount::new(packets * self.packet.as_u64()), span)
    }

    /// From the first packet's acknowledgement until the rate of arrival over a window of `over`
    /// first reached `rate`. `None` where it never did. It holds the way of half a round trip to
    /// the receiver.
    pub fn startup(&self, rate: Rate, over: Duration) -> Option<Duration> {
        let ready = self.ready?;
        let steps = usize::try_from(over.as_nanos() / self.interval.as_nanos().max(1)).ok()?.max(1);
        let enough = rate * (self.interval * steps as u64);
        let found = self.samples.windows(steps + 1).position(|stretch| {
            let packets = stretch[steps].delivered - stretch[0].delivered;
            ByteCount::new(packets * self.packet.as_u64()) >= enough
        })?;
        Some((Instant::ZERO + self.interval * (found + steps) as u64).since(ready))
    }

    fn index(&self, at: Instant) -> usize {
        let index = at.as_nanos() / self.interval.as_nanos().max(1);
        usize::try_from(index).unwrap_or(usize::MAX).min(self.samples.len())
    }
}

/// Time that a packet would have waited at the bottleneck, over samples of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDelaySamples {
    /// Half of the samples are at most this.
    pub p50: Duration,
    /// 90 % of them.
    pub p90: Duration,
    /// 99 % of them.
    pub p99: Duration,
    /// All of them.
    pub max: Duration,
}

impl QueueDelaySamples {
    pub(super) fn of(samples: &[Duration]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
            sorted.get(index).copied().unwrap_or_default()
        };
        Self { p50: at(50), p90: at(90), p99: at(99), max: at(100) }
    }
}
