//! What a path receives: what waits to be polled, and what is to be acknowledged.

use crate::window::ACK_WAIT;
use crate::wire::TcpFrame;
use bytes::Bytes;
use skyhaul_transport::PathEvent;
use skyhaul_units::{ByteCount, Instant};
use std::collections::VecDeque;

/// Received and not yet polled, and the count for the far end.
#[derive(Debug)]
pub(crate) struct Receiver {
    held: VecDeque<PathEvent>,
    held_bytes: ByteCount,
    bound: ByteCount,
    count: u64,
    acknowledged: u64,
    newest: Instant,
    due: Option<Instant>,
}

impl Receiver {
    pub(crate) fn new(now: Instant, bound: ByteCount) -> Self {
        Self {
            held: VecDeque::new(),
            held_bytes: ByteCount::ZERO,
            bound,
            count: 0,
            acknowledged: 0,
            newest: now,
            due: None,
        }
    }

    pub(crate) fn datagram(&mut self, now: Instant, datagram: Bytes) {
        self.count += 1;
        self.newest = now;
        let at_once = self.count - self.acknowledged >= ACK_EVERY;
        self.due = Some(if at_once { now } else { self.due.unwrap_or(now + ACK_WAIT) });
        self.hold(PathEvent::Datagram(datagram));
    }

    pub(crate) fn control(&mut self, bytes: Bytes) {
        self.hold(PathEvent::Control(bytes));
    }

    fn hold(&mut self, event: PathEvent) {
        self.held_bytes += cost(&event);
        self.held.push_back(event);
    }

    /// Whether no more should be taken from the stream.
    pub(crate) fn is_full(&self) -> bool {
        self.held_bytes >= self.bound
    }

    pub(crate) fn poll(&mut self) -> Option<PathEvent> {
        let event = self.held.pop_front()?;
        self.held_bytes = self.held_bytes - cost(&event);
        Some(event)
    }

    /// When an acknowledgement is due.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The acknowledgement that is due.
    pub(crate) fn acknowledge(&mut self, now: Instant) -> Option<TcpFrame> {
        self.due.filter(|due| *due <= now)?;
        self.due = None;
        self.acknowledged = self.count;
        Some(TcpFrame::Acknowledgement { count: self.count, delay: now.since(self.newest) })
    }
}

/// What an event takes of the buffer: its bytes, and its place in the queue with what the allocator
/// adds.
fn cost(event: &PathEvent) -> ByteCount {
    match event {
        PathEvent::Datagram(bytes) | PathEvent::Control(bytes) => ByteCount::of(bytes.len() + 128),
        _ => ByteCount::ZERO,
    }
}

/// Datagrams that are acknowledged at once: about every 92 kB, so that acknowledgements take a
/// thousandth of what they answer.
const ACK_EVERY: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Duration;

    #[test]
    fn acknowledgements_come_by_count_or_by_time() {
        let mut receiver = Receiver::new(Instant::ZERO, ByteCount::mib(1));
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        receiver.datagram(at(0), Bytes::new());
        receiver.datagram(at(5), Bytes::new());
        assert_eq!((receiver.due(), receiver.acknowledge(at(19))), (Some(at(20)), None));
        let delay = Duration::from_millis(15);
        assert_eq!(
            receiver.acknowledge(at(20)),
            Some(TcpFrame::Acknowledgement { count: 2, delay })
        );
        assert_eq!(receiver.due(), None);
        (0..ACK_EVERY).for_each(|_| receiver.datagram(at(30), Bytes::new()));
        let delay = Duration::ZERO;
        assert_eq!(
            receiver.acknowledge(at(30)),
            Some(TcpFrame::Acknowledgement { count: 66, delay })
        );
    }

    #[test]
    fn many_empty_datagrams_fill_the_buffer_too() {
        let mut receiver = Receiver::new(Instant::ZERO, ByteCount::kib(64));
        let mut count = 0;
        while !receiver.is_full() {
            receiver.datagram(Instant::ZERO, Bytes::new());
            count += 1;
        }
        assert!(count <= 512, "{count}");
        while receiver.poll().is_some() {}
        assert!(!receiver.is_full() && receiver.held_bytes == ByteCount::ZERO);
    }
}
