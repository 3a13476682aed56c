//! What was measured: of the line by a probe, of a transfer by both its ends.

use serde::{Deserialize, Serialize};

/// All that a verdict rests on. Either may be missing.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Evidence {
    /// The line, measured by a probe.
    pub line: Option<LineFound>,
    /// The transfer, as its ends tell.
    pub transfer: Option<Transfer>,
}

/// What a probe found of the way that the data takes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct LineFound {
    /// UDP payload that came through, of streams faster than that.
    pub available_bps: u64,
    /// Nothing faster was tried, so that there may be more.
    pub is_at_least: bool,
    /// Shortest round trip, in milliseconds.
    pub idle_round_trip_ms: f64,
    /// Longest UDP payload that arrives.
    pub payload_max: u64,
    /// Shortest UDP payload that this host's own interface refuses; `None` where it took all that
    /// was tried.
    pub payload_refused: Option<u64>,
    /// A stream well below what is available.
    pub gentle: StreamResult,
    /// A stream above it; `None` where nothing faster could be sent.
    pub overload: Option<StreamResult>,
    /// The round trip of the line without load became longer (or shorter, below zero) by so much,
    /// and stayed so.
    pub route_step_ms: f64,
    /// When, in seconds from the beginning.
    pub route_step_at_s: f64,
    /// The difference of the two clocks jumped by so much while the round trip did not.
    pub clock_step_ms: f64,
    /// When, in seconds from the beginning.
    pub clock_step_at_s: f64,
    /// What the steps may be wrong by, in milliseconds.
    pub step_noise_ms: f64,
    /// The round trips while nothing of ours but these questions went.
    pub rest: Rest,
    /// The line's rate and what others take of it, by how what came through grew with what was
    /// offered; `None` where no two streams above the rate can be compared.
    pub shared: Option<OtherTraffic>,
    /// The longest time in which nothing at all came through, in milliseconds.
    pub outage_ms: f64,
}

/// What questions a twentieth of a second apart show of a line that nothing else of ours goes over.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Rest {
    /// From the tenth of the round trips that were shortest to the tenth that were longest, in
    /// milliseconds, a single step left out.
    pub spread_ms: f64,
    /// By how much the round trip exceeded the shortest of all, half a second at a time, half of
    /// the time: a queue that is not ours.
    pub queue_ms: f64,
    /// How far that wavers, in milliseconds, a single step left out.
    pub wavers_ms: f64,
}

/// A line that others use too.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct OtherTraffic {
    /// UDP payload that the line carries for all together.
    pub line_bps: u64,
    /// Of this, what others offer without giving way.
    pub others_bps: u64,
}

/// The result of a stream at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct StreamResult {
    /// UDP payload offered.
    pub offered_bps: u64,
    /// The part of it that really left, for a sender that could not keep up.
    pub left: f64,
    /// UDP payload that arrived.
    pub received_bps: u64,
    /// Datagrams offered.
    pub datagrams: u64,
    /// Where datagrams were dropped.
    #[serde(flatten)]
    pub drops: DropPlaces,
    /// How one-way delays varied.
    #[serde(flatten)]
    pub delay: DelayShape,
    /// Mean time from one datagram's arrival to that of the next, where both arrived, over the same
    /// at the sender. A queue that is busy stretches it to its own pace; a policer leaves it as it
    /// was.
    pub stretch: f64,
    /// How losses followed each other.
    #[serde(flatten)]
    pub losses: LossShape,
    /// The part of the datagrams that came after one that was sent later.
    pub reordered: f64,
    /// How many arrivals such a datagram lay behind the first that overtook it, at most.
    pub reordered_by: u64,
}

/// Where the datagrams of a stream were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct DropPlaces {
    /// Lost between the hosts.
    pub lost_on_path: u64,
    /// Dropped by the receiving host's card or processor backlog.
    pub dropped_by_host: u64,
    /// Dropped because the receiving socket's queue was full.
    pub dropped_by_socket: u64,
}

/// How the one-way delays of a stream varied.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct DelayShape {
    /// By how much the shortest one-way delay of each part of the stream exceeded the shortest of
    /// all, in nine in ten of these parts at most, in milliseconds. A queue delays each datagram of
    /// a part, jitter and reordering only some.
    pub queue_ms: f64,
    /// The same of the later half, in half of its parts: what a first burst filled is empty by
    /// then.
    pub late_queue_ms: f64,
    /// By how much one-way delays exceeded the shortest of their part, in nine in ten at most, in
    /// milliseconds.
    pub jitter_ms: f64,
    /// How far the shortest delays of the parts waver, in milliseconds, a single step left out:
    /// below the line's rate, a queue that others fill.
    pub wavers_ms: f64,
    /// How far a delay is like the one 60 ms before it, from 0 to 1: a queue changes slowly, jitter
    /// does not.
    pub follows: f64,
}

/// How the losses of a stream followed each other.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LossShape {
    /// Losses come in runs, not one by one.
    pub in_bursts: bool,
    /// Datagrams lost one after the other, on average.
    pub burst_mean: f64,
    /// And at most.
    pub burst_longest: u64,
    /// The part of the losses before which the delay stood near its longest: those are a queue's.
    pub lost_in_queue: f64,
}

impl StreamResult {
    /// The part of the datagrams that the path lost.
    pub fn loss(&self) -> f64 {
        part(self.drops.lost_on_path, self.datagrams)
    }

    /// The part dropped by the receiving host before its socket.
    pub fn host_drops(&self) -> f64 {
        part(self.drops.dropped_by_host, self.datagrams)
    }

    /// The part dropped at the receiving socket.
    pub fn socket_drops(&self) -> f64 {
        part(self.drops.dropped_by_socket, self.datagrams)
    }
}

/// What a host's processors kept from a thread that was ready to run; all are parts of the time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Lack {
    /// The thread that needed a processor most was ready to run and did not.
    pub ready: f64,
    /// The control group of the process had used up its quota.
    pub throttled: f64,
    /// The hypervisor gave the physical machine's processors to others.
    pub stolen: f64,
}

/// What was received and is not written yet.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct DiskBacklog {
    /// At the end of the look.
    pub bytes: u64,
    /// What the disk took, over the time that it was busy.
    pub disk_bps: u64,
}

/// The longest time in which nothing at all was heard of the far end, while something was to be
/// sent or under way.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Silence {
    /// How long, in seconds.
    pub seconds: f64,
    /// When it began, in seconds from when the look did.
    pub at_s: f64,
    /// How long was looked, in seconds.
    pub of_s: f64,
}

/// What feeds a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A program, of which nothing more is known.
    #[default]
    Program,
    /// A receiver or recorder, whose rate is the spacecraft's.
    Live,
    /// Files.
    File,
    /// A measurement that offers blocks at a rate that was given to it.
    Offered,
}

/// The end of a transfer that it was looked at from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObservedEnd {
    /// The one that sends: it knows what it waits for.
    #[default]
    Sender,
    /// The one that receives: it knows no more than whether it keeps up.
    Receiver,
}

/// What one end of a transfer reports.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Transfer {
    /// The end that reports.
    pub seen_from: ObservedEnd,
    /// Of the application's bytes, over all the time.
    pub goodput_bps: u64,
    /// The same without its start, where that is known.
    pub steady_bps: Option<u64>,
    /// What the sender waited for; seen from the receiver, how long its window was shut.
    pub waited: Waited,
    /// The congestion controller.
    pub controller: String,
    /// The rate that was declared for the line, counted in IP packets.
    pub declared_bps: Option<u64>,
    /// The line under its load.
    #[serde(flatten)]
    pub line: LoadedLine,
    /// The busiest threads of both ends.
    #[serde(flatten)]
    pub threads: BusyThreads,
    /// What the receiver does with what arrives.
    #[serde(flatten)]
    pub receiver: ReceiverLoad,
    /// What feeds it.
    #[serde(flatten)]
    pub feed: TransferFeed,
    /// How long nothing was heard of the far end.
    pub silence: Option<Silence>,
}

/// The line under the load of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LoadedLine {
    /// Round trip under the transfer's own load, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// The shortest.
    pub shortest_round_trip_ms: Option<f64>,
    /// The part of its datagrams or segments that were lost or sent again.
    pub loss: f64,
    /// UDP payload of a full datagram, as it was set up; `None` for TCP.
    pub payload: Option<u64>,
    /// The same at the end, where longer ones vanished meanwhile and shorter ones are sent.
    pub payload_shrunk: Option<u64>,
}

/// How much the busiest threads of the two ends ran, and what kept them from running.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct BusyThreads {
    /// The part of the time in which the sender's busiest thread ran.
    pub sender_share: Option<f64>,
    /// The same of the receiver.
    pub receiver_share: Option<f64>,
    /// What kept the sender's busiest thread from running.
    pub sender_lack: Option<Lack>,
    /// The same of the receiver.
    pub receiver_lack: Option<Lack>,
}

/// What the receiver of a transfer does with what arrives.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ReceiverLoad {
    /// The part of the time that the receiver waited for its disk.
    pub disk_share: Option<f64>,
    /// What the receiver has not written yet.
    pub backlog: Option<DiskBacklog>,
    /// Datagrams dropped because the receiving socket's queue was full.
    pub socket_drops: Option<u64>,
    /// Datagrams that arrived or should have.
    pub datagrams: u64,
    /// Bytes that the receiver lets be under way, where it says so.
    pub window_bytes: Option<u64>,
}

/// What feeds a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct TransferFeed {
    /// Its kind.
    pub source: SourceKind,
    /// What the source brings, as it comes in.
    pub source_bps: Option<u64>,
    /// Bytes that were brought and are not at the receiver yet.
    pub waiting_bytes: Option<u64>,
}

impl Transfer {
    /// What it reached once it had started.
    pub fn reached_bps(&self) -> u64 {
        self.steady_bps.unwrap_or(0).max(self.goodput_bps)
    }
}

/// The parts of the time that a sender waited; what is left over it had other reasons not to send.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Waited {
    /// For the application.
    pub application: f64,
    /// For flow control.
    pub window: f64,
    /// For its own send buffer.
    pub buffer: f64,
    /// For rates given to classes.
    pub classes: f64,
    /// For the congestion controller's window or pacing.
    pub path: f64,
}

fn part(of: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { of as f64 / all as f64 }
}
