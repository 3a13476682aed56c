//! What can hold a transfer back, and what to do about each.

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
            Self::Application => {
                "make the source faster: see whether it reads from a slow disk, waits for answers, \
                or is meant to be this slow"
            }
            Self::SenderProcessor => {
                "spread the sending over several cores (`--lanes`), let segmentation offload work, \
                or use a faster processor"
            }
            Self::ReceiverProcessor => {
                "spread the receiving over several cores (`--lanes` at both ends), let receive \
                offload work, or use a faster \
                 processor there"
            }
            Self::ReceiverDisk => {
                "give the receiver a faster disk, or let it write less often (`group_commit`); see \
                with iostat what else uses it"
            }
            Self::FlowWindow => {
                "raise the receiver's window: to rate times round trip at least, twice that for \
                the kernel's TCP (`skyhaul tune`)"
            }
            Self::SocketBuffer => {
                "raise net.core.rmem_max and wmem_max (for TCP tcp_rmem and tcp_wmem) at the end \
                that is named; `skyhaul tune` \
                 writes the settings"
            }
            Self::Controller => {
                "use another congestion controller: `adaptive`, or `line` with the line's rate \
                where the line is your own"
            }
            Self::DeclaredRate => "declare the rate that the line has, or leave it to `adaptive`",
            Self::RandomLoss => {
                "have the line mended; until then use a controller that does not take loss for \
                congestion (`adaptive`, `line`, \
                 or the kernel's bbr)"
            }
            Self::Policer => {
                "ask the provider for the rate that was agreed on; until then declare a rate just \
                below the policer's"
            }
            Self::Queueing => {
                "stop filling the queue: use `adaptive`, declare a rate just below the line's, or \
                shape before the modem \
                 (fq_codel, cake)"
            }
            Self::MtuBlackHole => {
                "send shorter packets (`--mtu`, udp_payload; for TCP lower the route's mtu or set \
                tcp_mtu_probing = 1), and \
                 have ICMP \"fragmentation needed\" let through"
            }
            Self::HostDrops => {
                "enlarge the card's ring (ethtool -G) and net.core.netdev_max_backlog, and spread \
                interrupts over cores; \
                 `skyhaul tune` says what is there"
            }
            Self::RouteChange => {
                "ask the network's operator why the route changed; where it flaps, pin it, or use \
                several paths"
            }
            Self::ClockStep => {
                "let NTP or PTP slew the clocks and not step them; one-way figures from before and \
                after do not compare"
            }
            Self::LineFull => "nothing: only a faster line, a second path or less data would help",
            Self::OtherTraffic => {
                "see what else goes over the line (the router's counters, a flow collector), and \
                share it by rule: classes at the \
                 router, fq_codel or cake before the modem; or use a line of your own"
            }
            Self::Reordering => {
                "have flows kept to one way (hash by addresses and ports, not by packet), and link \
                layers deliver in order"
            }
            Self::Jitter => {
                "find the hop whose delay varies (`skyhaul probe` along the way); on radio links, \
                scheduling and repetition of the \
                 link layer make it"
            }
            Self::Outage => {
                "see what cut the line then: the modem's log, weather, a handover; a second path \
                carries on meanwhile"
            }
            Self::OtherEnd => {
                "ask at the sending end, which knows what it waits for (`skyhaul why` there), and \
                have the line probed"
            }
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
