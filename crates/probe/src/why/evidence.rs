//! What was measured: of the line by a probe, of a transfer by both its ends.

use serde::Serialize;

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
    /// Shortest UDP payload that this host's own interface refuses; `None` where it took all that was tried.
    pub payload_refused: Option<u64>,
    /// A stream well below what is available.
    pub gentle: Load,
    /// A stream above it; `None` where nothing faster could be sent.
    pub overload: Option<Load>,
    /// The round trip of the line without load became longer (or shorter, below zero) by so much, and stayed so.
    pub route_step_ms: f64,
    /// When, in seconds from the beginning.
    pub route_step_at_s: f64,
    /// The difference of the two clocks jumped by so much while the round trip did not.
    pub clock_step_ms: f64,
    /// When, in seconds from the beginning.
    pub clock_step_at_s: f64,
    /// What the steps may be wrong by, in milliseconds.
    pub step_noise_ms: f64,
}

/// What came of a stream at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Load {
    /// UDP payload offered.
    pub offered_bps: u64,
    /// The part of it that really left, for a sender that could not keep up.
    pub left: f64,
    /// UDP payload that arrived.
    pub received_bps: u64,
    /// Datagrams offered.
    pub datagrams: u64,
    /// Of these, lost between the hosts.
    pub lost_on_path: u64,
    /// Dropped by the receiving host's card or processor backlog.
    pub dropped_by_host: u64,
    /// Dropped because the receiving socket's queue was full.
    pub dropped_by_socket: u64,
    /// By how much nine in ten one-way delays at most exceeded the shortest, in milliseconds.
    pub queue_ms: f64,
    /// Mean time from one datagram's arrival to that of the next, where both arrived, over the same at the sender. A queue
    /// that is busy stretches it to its own pace; a policer leaves it as it was.
    pub stretch: f64,
    /// Losses come in runs, not one by one.
    pub in_bursts: bool,
}

impl Load {
    /// The part of the datagrams that the path lost.
    pub fn loss(&self) -> f64 {
        part(self.lost_on_path, self.datagrams)
    }

    /// The part dropped by the receiving host before its socket.
    pub fn host_drops(&self) -> f64 {
        part(self.dropped_by_host, self.datagrams)
    }

    /// The part dropped at the receiving socket.
    pub fn socket_drops(&self) -> f64 {
        part(self.dropped_by_socket, self.datagrams)
    }
}

/// The end of a transfer that it was looked at from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The one that sends: it knows what it waits for.
    #[default]
    Sender,
    /// The one that receives: it knows no more than whether it keeps up.
    Receiver,
}

/// What a transfer told of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Transfer {
    /// Who told.
    pub seen_from: End,
    /// Of the application's bytes, once it had started.
    pub goodput_bps: u64,
    /// What the sender waited for; seen from the receiver, how long its window was shut.
    pub waited: Waited,
    /// Who decides how fast it sends.
    pub controller: String,
    /// The rate that was declared for the line, counted in IP packets.
    pub declared_bps: Option<u64>,
    /// Round trip under the transfer's own load, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// The shortest.
    pub shortest_round_trip_ms: Option<f64>,
    /// The part of its datagrams or segments that were lost or sent again.
    pub loss: f64,
    /// UDP payload of a full datagram; `None` for TCP.
    pub payload: Option<u64>,
    /// The part of the time in which the sender's busiest thread ran.
    pub sender_share: Option<f64>,
    /// The same of the receiver.
    pub receiver_share: Option<f64>,
    /// The part of the time that the receiver waited for its disk.
    pub disk_share: Option<f64>,
    /// Datagrams dropped because the receiving socket's queue was full.
    pub socket_drops: Option<u64>,
    /// Datagrams that arrived or should have.
    pub datagrams: u64,
    /// Bytes that the receiver lets be under way, where it says so.
    pub window_bytes: Option<u64>,
    /// What the source brings, as it comes in.
    pub source_bps: Option<u64>,
    /// Bytes that were brought and are not at the receiver yet.
    pub waiting_bytes: Option<u64>,
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
