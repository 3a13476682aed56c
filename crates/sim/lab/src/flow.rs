//! Flows of bare packets over one bottleneck in virtual time: how a controller behaves, without
//! session and QUIC.
//!
//! A [`Bottleneck`] is a data link and a return link, shared by any number of flows. Each flow is
//! the production
//! [`Sender`](skyhaul_congestion::Sender) with its controller and pacer, fed by an application that
//! always has something to send, or makes it at a rate. The receiver acknowledges in batches, with
//! the 64 newest spans, and its acknowledgements can be lost; packets are found lost as RFC 9002 6
//! says. A lost packet is not sent again: goodput is what arrives.
//!
//! The hosts of a flow may serve it late: see [`Host`].
//!
//! A flow begins with one packet alone, as a handshake does, and sends freely once that is
//! acknowledged.
//!
//! Minutes of line time take a second: an event for each packet and for each acknowledgement, and
//! no memory taken for either. The same configuration and seed give the same run.
//!
//! ```
//! use skyhaul_congestion::ControllerConfig;
//! use skyhaul_lab::flow::{Bottleneck, FlowConfig};
//! use skyhaul_link::LinkConfig;
//! use skyhaul_units::{Duration, Instant, Rate};
//!
//! let line = LinkConfig::line(Rate::from_mbps(93), Duration::from_millis(80));
//! let mut bottleneck = Bottleneck::new(line.clone(), line, 1);
//! let controller = ControllerConfig::declared(Rate::from_mbps(93)).build(None);
//! let flow = bottleneck.add(FlowConfig::default(), controller);
//! let second = Instant::ZERO + Duration::from_secs(2);
//! let third = Instant::ZERO + Duration::from_secs(3);
//! bottleneck.run_until(third);
//! assert!(bottleneck.flow(flow).goodput(second, third) > Rate::from_mbps(92));
//! assert!(bottleneck.queue_delays(second, third).p99 < Duration::from_millis(5));
//! ```

mod config;
mod host;
mod outstanding;
mod receiver;
mod record;
mod source;

pub use config::{Acknowledging, FlowConfig, GapHandling, LossDetection};
pub use host::{Host, Pauses};
pub use record::{FlowRecord, FlowSample, QueueDelaySamples};

use host::SOCKET;
use receiver::{Receiver, Span};
use skyhaul_congestion::Controller;
use skyhaul_link::{Link, LinkConfig, LinkCounters};
use skyhaul_units::{Duration, Instant};
use source::Source;
use std::collections::VecDeque;

/// A flow of a bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(usize);

/// A data link and a return link, and the flows over them, under a clock that starts at
/// [`Instant::ZERO`].
#[derive(Debug)]
pub struct Bottleneck {
    now: Instant,
    data: Link<Packet>,
    returns: Link<Acknowledgement>,
    flows: Vec<Flow>,
    /// Time that a packet would have waited, sampled. One entry for each interval run.
    queue: Vec<Duration>,
    interval: Duration,
    /// Spans of acknowledgements that arrived, to be filled again.
    spare: Vec<Vec<Span>>,
}

#[derive(Debug, Clone, Copy)]
struct Packet {
    flow: usize,
    number: u64,
}

#[derive(Debug)]
struct Acknowledgement {
    flow: usize,
    spans: Vec<Span>,
}

#[derive(Debug)]
struct Flow {
    source: Source,
    receiver: Receiver,
    record: FlowRecord,
    access_delay: Duration,
    near: Host,
    far: Host,
    /// Acknowledgements behind the return link, by arrival. Bounded by what the access delay and
    /// the host's pauses hold.
    arriving: VecDeque<(Instant, Vec<Span>)>,
    /// When the sender last took acknowledgements.
    taken: Instant,
    /// Packets in the receiver's socket, up to [`SOCKET`].
    waiting: Vec<u64>,
    /// When the receiver takes them, and when it last took some.
    served: (Option<Instant>, Instant),
    /// When there is something to do, as of the last time it was touched.
    due: Option<Instant>,
}

impl Bottleneck {
    /// A bottleneck without flows. Chance of both links comes from `seed`.
    pub fn new(data: LinkConfig, returns: LinkConfig, seed: u64) -> Self {
        Self::sampled(data, returns, seed, SAMPLING)
    }

    /// The same, with samples taken every `interval` instead of every 10 ms: for round trips below
    /// 10 ms.
    pub fn sampled(data: LinkConfig, returns: LinkConfig, seed: u64, interval: Duration) -> Self {
        Self {
            now: Instant::ZERO,
            data: Link::new(data, seed.wrapping_mul(2)),
            returns: Link::new(returns, seed.wrapping_mul(2).wrapping_add(1)),
            flows: Vec::new(),
            queue: Vec::new(),
            interval: interval.max(SHORTEST_INTERVAL),
            spare: Vec::new(),
        }
    }

    /// Adds a flow. Add all flows before the first run: samples are counted from the clock's start.
    pub fn add(&mut self, config: FlowConfig, controller: Box<dyn Controller>) -> FlowKey {
        let source = Source::new(config, controller);
        let mut record = FlowRecord::new(config.packet, self.interval);
        for _ in 0..self.queue.len() {
            record.push(sample(&source, 0));
        }
        self.flows.push(Flow {
            due: source.due(self.now),
            source,
            receiver: Receiver::new(config.acks),
            record,
            access_delay: config.access_delay,
            near: config.near,
            far: config.far,
            arriving: VecDeque::new(),
            taken: self.now,
            waiting: Vec::new(),
            served: (None, self.now),
        });
        FlowKey(self.flows.len() - 1)
    }

    /// Runs until the clock stands at `limit`, everything due before it included.
    pub fn run_until(&mut self, limit: Instant) {
        loop {
            let sampling = Instant::ZERO + self.interval * self.queue.len() as u64;
            let flows = self.flows.iter().filter_map(|flow| flow.due);
            let links = [self.data.next_event(), self.returns.next_event()];
            let next =
                flows.chain(links.into_iter().flatten()).min().unwrap_or(Instant::FAR_FUTURE);
            if sampling.min(next) >= limit {
                self.now = self.now.max(limit);
                return;
            }
            if sampling <= next {
                self.now = self.now.max(sampling);
                self.sample();
                continue;
            }
            self.now = self.now.max(next);
            self.take_packets();
            self.take_acknowledgements();
            for index in 0..self.flows.len() {
                if self.flows[index].due.is_some_and(|at| at <= self.now) {
                    self.touch(index);
                }
            }
        }
    }

    /// The virtual clock.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Makes the data link another one from now on; its configuration's times count from now.
    pub fn reconfigure(&mut self, data: LinkConfig) {
        self.data.reconfigure(self.now, data);
    }

    /// What became of a flow.
    pub fn flow(&self, flow: FlowKey) -> &FlowRecord {
        &self.flows[flow.0].record
    }

    /// The state of a flow's controller.
    pub fn status(&self, flow: FlowKey) -> skyhaul_congestion::Status {
        self.flows[flow.0].source.sender().status()
    }

    /// Counters of the data link.
    pub const fn data(&self) -> &LinkCounters {
        self.data.counters()
    }

    /// Counters of the return link.
    pub const fn returns(&self) -> &LinkCounters {
        self.returns.counters()
    }

    /// How long a packet would have waited between two instants.
    pub fn queue_delays(&self, from: Instant, to: Instant) -> QueueDelaySamples {
        let index = |at: Instant| {
            let index = at.as_nanos() / self.interval.as_nanos();
            usize::try_from(index).unwrap_or(usize::MAX).min(self.queue.len())
        };
        QueueDelaySamples::of(&self.queue[index(from).min(index(to))..index(to)])
    }

    fn sample(&mut self) {
        self.queue.push(self.data.wait(self.now));
        for flow in &mut self.flows {
            let sample = sample(&flow.source, flow.record.delivered);
            flow.record.push(sample);
        }
    }

    fn take_packets(&mut self) {
        while let Some(Packet { flow: index, number }) = self.data.poll(self.now) {
            let flow = &mut self.flows[index];
            if !flow.far.is_prompt() {
                flow.wait_in_socket(self.now, number);
                continue;
            }
            flow.record.delivered += 1;
            if flow.receiver.arrived(self.now, number) {
                self.acknowledge(index);
            } else if flow.receiver.timer().is_some_and(|at| flow.due.is_none_or(|due| at < due)) {
                flow.due = flow.receiver.timer();
            }
        }
    }

    fn take_acknowledgements(&mut self) {
        while let Some(Acknowledgement { flow: index, spans }) = self.returns.poll(self.now) {
            let flow = &mut self.flows[index];
            if flow.access_delay > Duration::ZERO || !flow.near.is_prompt() {
                let at = self.now + flow.access_delay;
                flow.arriving.push_back((at, spans));
                let at = flow.near.takes(at, flow.taken);
                flow.due = Some(flow.due.map_or(at, |due| due.min(at)));
                continue;
            }
            flow.source.acknowledged(self.now, &spans);
            self.spare.push(spans);
            self.touch(index);
        }
    }

    fn acknowledge(&mut self, index: usize) {
        let mut spans = self.spare.pop().unwrap_or_default();
        let size = self.flows[index].receiver.acknowledge(&mut spans);
        self.returns.send(self.now, size, Acknowledgement { flow: index, spans });
    }

    /// Does what is due for a flow, and finds when that is next.
    fn touch(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let is_full = flow.served.0.is_some_and(|at| at <= now) && flow.take_packets(now);
        if is_full || flow.receiver.timer().is_some_and(|at| flow.far.awake(at) <= now) {
            self.acknowledge(index);
        }
        let flow = &mut self.flows[index];
        if flow.near.awake(now) <= now {
            while flow.arriving.front().is_some_and(|(at, _)| *at <= now) {
                let Some((_, spans)) = flow.arriving.pop_front() else { break };
                flow.source.acknowledged(now, &spans);
                flow.taken = now;
                self.spare.push(spans);
            }
            let (data, record) = (&mut self.data, &mut flow.record);
            flow.source.advance(now, |number| {
                let LinkCounters { queue_dropped, policed, .. } = *data.counters();
                data.send(now, record.packet(), Packet { flow: index, number });
                record.queue_dropped += data.counters().queue_dropped - queue_dropped;
                record.policed += data.counters().policed - policed;
            });
            record.sent = flow.source.sent();
            record.declared_lost = flow.source.lost();
            record.ready = flow.source.ready();
        }
        flow.due = flow.next_due(now);
    }
}

impl Flow {
    /// A packet has arrived that the receiver's host does not take at once.
    fn wait_in_socket(&mut self, now: Instant, number: u64) {
        if self.waiting.len() as u64 * self.record.packet().as_u64() >= SOCKET.as_u64() {
            self.record.socket_dropped += 1;
            return;
        }
        self.record.delivered += 1;
        self.waiting.push(number);
        let (due, last) = self.served;
        let due = due.unwrap_or_else(|| self.far.takes(now, last));
        self.served.0 = Some(due);
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    /// The receiver takes all that waits for it. True where it is acknowledged at once.
    fn take_packets(&mut self, now: Instant) -> bool {
        self.served = (None, now);
        let mut is_full = false;
        for number in self.waiting.drain(..) {
            is_full |= self.receiver.arrived(now, number);
        }
        is_full
    }

    fn next_due(&self, now: Instant) -> Option<Instant> {
        let arriving =
            self.arriving.front().map(|(at, _)| self.near.takes((*at).max(now), self.taken));
        let near = self.source.due(now).map(|at| self.near.awake(at.max(now)));
        let timer = self.receiver.timer().map(|at| self.far.awake(at.max(now)));
        [near, arriving, timer, self.served.0].into_iter().flatten().min()
    }
}

fn sample(source: &Source, delivered: u64) -> FlowSample {
    let status = source.sender().status();
    let in_flight = source.sender().in_flight();
    FlowSample { delivered, in_flight, window: status.window, rate: status.rate }
}

/// 10 ms: 16 samples in a round trip of 160 ms, 6,000 in a minute.
const SAMPLING: Duration = Duration::from_millis(10);

/// 1 µs: a run's samples stay fewer than its packets.
const SHORTEST_INTERVAL: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests;
