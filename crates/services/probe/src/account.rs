//! Where the datagrams of a stream went: the sum closes, and what it does not explain is said.

use crate::stream::Trace;
use serde::Serialize;

/// What became of a stream's datagrams: `offered` is the sum of all other counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StreamAccount {
    /// Handed to the sending system, or refused by it.
    pub offered: u64,
    /// Refused by the sending system: the socket's buffer was full.
    pub dropped_by_sender: u64,
    /// Dropped by the sending host behind its socket, in the queue before its network card: what
    /// the host counted for all its UDP, as far as datagrams are missing.
    pub dropped_in_sending_queue: u64,
    /// Lost between the two hosts: left the one, and was not counted by the other in any way.
    pub lost_on_path: u64,
    /// Dropped by the receiving host.
    pub receiving_host: ReceivingHost,
    /// Received; those that came again count once.
    pub received: u64,
    /// What the rest does not explain: datagrams that are missing while the receiving host does not
    /// tell what it dropped; below zero, drops at the receiving socket that were of other datagrams
    /// than the stream's.
    pub unexplained: i64,
    /// What is to be known about these counts.
    pub notes: Vec<String>,
}

/// Drops of a receiving host by where they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ReceivingHost {
    /// In the network card's ring: what the host counted for all its traffic, as far as datagrams
    /// are missing.
    pub card: u64,
    /// In a processor's backlog; the same holds.
    pub softnet: u64,
    /// In the socket's queue: exactly ours.
    pub socket: u64,
}

impl StreamAccount {
    /// Of a stream.
    pub fn of(trace: &Trace) -> Self {
        let (offered, refused) = (u64::from(trace.offered), u64::from(trace.refused));
        let received = trace.arrivals.len() as u64;
        let missing = offered.saturating_sub(refused).saturating_sub(received);
        let counts = trace.receiver;
        let socket = counts.socket.unwrap_or(0);
        let mut notes = Vec::new();
        let mut left = missing.saturating_sub(socket);
        let mut host_wide = |count: Option<u64>, what: &str| {
            let count = count.unwrap_or(0);
            let ours = count.min(left);
            left -= ours;
            if ours > 0 {
                notes.push(format!(
                    "the {what} dropped {count} packets of all its traffic in this time; {ours} of \
                    them are taken for this \
                     stream's"
                ));
            }
            ours
        };
        // The system counts what the socket refused as well.
        let behind_socket = trace.sender.udp_send.map(|count| count.saturating_sub(refused));
        let queue = host_wide(behind_socket, "sending host, in the queue before its network card,");
        let softnet = host_wide(counts.softnet, "processor backlog of the receiving host");
        let card = host_wide(counts.card, "network card of the receiving host");
        let is_told = counts.socket.is_some() && counts.softnet.is_some() && counts.card.is_some();
        if !is_told && left > 0 {
            notes.push(
                "the receiving system does not tell all of what it drops, so that the path cannot \
                be blamed"
                    .to_owned(),
            );
        }
        let lost_on_path = if is_told { left } else { 0 };
        let mut account = Self {
            offered,
            dropped_by_sender: refused,
            dropped_in_sending_queue: queue,
            lost_on_path,
            receiving_host: ReceivingHost { card, softnet, socket },
            received,
            unexplained: 0,
            notes,
        };
        account.unexplained = signed(offered).saturating_sub(signed(account.explained()));
        if account.unexplained < 0 {
            account.notes.push(
                "the receiving socket dropped more than is missing: pings and what came twice"
                    .to_owned(),
            );
        }
        account
    }

    fn explained(&self) -> u64 {
        let ReceivingHost { card, softnet, socket } = self.receiving_host;
        let sender = self.dropped_by_sender + self.dropped_in_sending_queue;
        sender + self.lost_on_path + card + softnet + socket + self.received
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostCounters;
    use crate::stream::{ProbeArrival, Spec, StreamDirection};
    use proptest::prelude::*;
    use skyhaul_units::{ByteCount, Duration, Utc};

    fn trace(offered: u32, refused: u32, received: u32, receiver: HostCounters) -> Trace {
        let at = Utc::from_nanos(0);
        Trace {
            direction: StreamDirection::Up,
            spec: Spec {
                payload: ByteCount::new(100),
                spacing: Duration::from_millis(1),
                count: offered,
            },
            offered,
            refused,
            arrivals: (0..received)
                .map(|seq| ProbeArrival { seq, sent: at, arrived: at })
                .collect(),
            duplicates: 0,
            sender: HostCounters::default(),
            receiver,
        }
    }

    fn told(socket: u64, softnet: u64, card: u64) -> HostCounters {
        HostCounters {
            socket: Some(socket),
            softnet: Some(softnet),
            card: Some(card),
            ..HostCounters::default()
        }
    }

    #[test]
    fn what_the_host_did_not_drop_the_path_lost() {
        let account = StreamAccount::of(&trace(1_000, 10, 900, told(30, 5, 0)));
        assert_eq!(
            (account.dropped_by_sender, account.lost_on_path, account.unexplained),
            (10, 55, 0)
        );
        assert_eq!(account.receiving_host, ReceivingHost { card: 0, softnet: 5, socket: 30 });
    }

    #[test]
    fn what_the_senders_queue_dropped_the_path_did_not() {
        let sender = HostCounters { udp_send: Some(42), ..HostCounters::default() };
        // Ten of the forty-two the socket refused.
        let account = StreamAccount::of(&Trace { sender, ..trace(1_000, 10, 900, told(30, 5, 0)) });
        assert_eq!((account.dropped_by_sender, account.dropped_in_sending_queue), (10, 32));
        assert_eq!((account.lost_on_path, account.unexplained, account.notes.len()), (23, 0, 2));
    }

    #[test]
    fn what_a_host_does_not_tell_is_not_blamed_on_the_path() {
        let account = StreamAccount::of(&trace(100, 0, 90, HostCounters::default()));
        assert_eq!((account.lost_on_path, account.unexplained, account.notes.len()), (0, 10, 1));
    }

    #[test]
    fn other_traffics_drops_are_not_counted_twice() {
        let account = StreamAccount::of(&trace(100, 0, 90, told(0, 700, 40)));
        assert_eq!(account.receiving_host, ReceivingHost { card: 0, softnet: 10, socket: 0 });
        assert_eq!((account.lost_on_path, account.unexplained), (0, 0));
        assert_eq!(StreamAccount::of(&trace(100, 0, 99, told(3, 0, 0))).unexplained, -2);
    }

    proptest! {
        #[test]
        fn the_sum_closes(offered in 0..5_000u32, refused in 0..60u32, lost in 0..60u32,
                          counts in proptest::array::uniform3(proptest::option::of(0..80u64))) {
            let refused = refused.min(offered);
            let received = (offered - refused).saturating_sub(lost);
            let [socket, softnet, card] = counts;
            let receiver = HostCounters { socket, softnet, card, ..HostCounters::default() };
            let account = StreamAccount::of(&trace(offered, refused, received, receiver));
            prop_assert_eq!(
                i64::from(offered),
                i64::try_from(account.explained()).unwrap() + account.unexplained
            );
        }
    }
}
