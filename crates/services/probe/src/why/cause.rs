//! What can hold a transfer back, and what to do about each.

use super::advice;
use serde::Serialize;

/// What holds a transfer back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The application hands over less than the line takes.
    Application,
    /// A processor of the sending host.
    SenderProcessor,
    /// A processor of the receiving host.
    ReceiverProcessor,
    /// The disk of the receiving host.
    ReceiverDisk,
    /// Flow control: the receiver allows too little under way.
    FlowWindow,
    /// The buffer of a socket.
    SocketBuffer,
    /// The congestion controller does not use what the line has.
    Controller,
    /// The rate that was declared.
    DeclaredRate,
    /// Loss on the line that is there at any rate.
    RandomLoss,
    /// Something drops what exceeds a rate.
    Policer,
    /// A long queue fills.
    Queueing,
    /// Long datagrams vanish.
    MtuBlackHole,
    /// A host drops datagrams before the socket.
    HostDrops,
    /// The route became another one.
    RouteChange,
    /// A clock was set.
    ClockStep,
    /// Nothing does: the line is full.
    LineFull,
    /// Others use the line too.
    OtherTraffic,
    /// Datagrams overtake each other.
    Reordering,
    /// The delay varies from one datagram to the next.
    Jitter,
    /// Nothing gets through, for a time or at all.
    Outage,
    /// Looked at from its receiving end alone, which keeps up: what holds it back is elsewhere.
    OtherEnd,
}

impl Cause {
    /// Those that a transfer or a line can have; what is left is [`OtherEnd`](Self::OtherEnd).
    pub const ALL: [Self; 20] = [
        Self::Application,
        Self::SenderProcessor,
        Self::ReceiverProcessor,
        Self::ReceiverDisk,
        Self::FlowWindow,
        Self::SocketBuffer,
        Self::Controller,
        Self::DeclaredRate,
        Self::RandomLoss,
        Self::Policer,
        Self::Queueing,
        Self::MtuBlackHole,
        Self::HostDrops,
        Self::RouteChange,
        Self::ClockStep,
        Self::LineFull,
        Self::OtherTraffic,
        Self::Reordering,
        Self::Jitter,
        Self::Outage,
    ];

    /// Its name in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::SenderProcessor => "sender-processor",
            Self::ReceiverProcessor => "receiver-processor",
            Self::ReceiverDisk => "receiver-disk",
            Self::FlowWindow => "flow-window",
            Self::SocketBuffer => "socket-buffer",
            Self::Controller => "controller",
            Self::DeclaredRate => "declared-rate",
            Self::RandomLoss => "random-loss",
            Self::Policer => "policer",
            Self::Queueing => "queueing",
            Self::MtuBlackHole => "mtu-black-hole",
            Self::HostDrops => "host-drops",
            Self::RouteChange => "route-change",
            Self::ClockStep => "clock-step",
            Self::LineFull => "line-full",
            Self::OtherTraffic => "other-traffic",
            Self::Reordering => "reordering",
            Self::Jitter => "jitter",
            Self::Outage => "outage",
            Self::OtherEnd => "other-end",
        }
    }

    /// What an operator does about it.
    pub const fn what_to_do(self) -> &'static str {
        match self {
            Self::Application => advice::APPLICATION,
            Self::SenderProcessor => advice::SENDER_PROCESSOR,
            Self::ReceiverProcessor => advice::RECEIVER_PROCESSOR,
            Self::ReceiverDisk => advice::RECEIVER_DISK,
            Self::FlowWindow => advice::FLOW_WINDOW,
            Self::SocketBuffer => advice::SOCKET_BUFFER,
            Self::Controller => advice::CONTROLLER,
            Self::DeclaredRate => advice::DECLARED_RATE,
            Self::RandomLoss => advice::RANDOM_LOSS,
            Self::Policer => advice::POLICER,
            Self::Queueing => advice::QUEUEING,
            Self::MtuBlackHole => advice::MTU_BLACK_HOLE,
            Self::HostDrops => advice::HOST_DROPS,
            Self::RouteChange => advice::ROUTE_CHANGE,
            Self::ClockStep => advice::CLOCK_STEP,
            Self::LineFull => advice::LINE_FULL,
            Self::OtherTraffic => advice::OTHER_TRAFFIC,
            Self::Reordering => advice::REORDERING,
            Self::Jitter => advice::JITTER,
            Self::Outage => advice::OUTAGE,
            Self::OtherEnd => advice::OTHER_END,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_json_and_each_cause_is_there_once() {
        for cause in Cause::ALL.into_iter().chain([Cause::OtherEnd]) {
            assert_eq!(serde_json_name(cause), cause.name());
        }
        let set: std::collections::BTreeSet<Cause> = Cause::ALL.into_iter().collect();
        assert_eq!(set.len(), 20);
    }

    /// As serde's `kebab-case` makes it of the variant's name.
    fn serde_json_name(cause: Cause) -> String {
        let mut name = String::new();
        for (place, letter) in format!("{cause:?}").chars().enumerate() {
            if letter.is_uppercase() && place > 0 {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}
