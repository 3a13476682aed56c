//! The congestion control of one path: a controller, its pacer and the packets in flight.
//!
//! The transport below (QUIC, a plain path of the lab) reports each packet by number, and asks for
//! room. A packet may carry a tag, which is returned with its fate.

use crate::delivery::{Delivery, Stamp};
use crate::{Ack, Controller, LossEvent, Memory, Meter, Pacer, Status};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;

/// Window, pacing and measurement of a path, and the fates of packets tagged with `T`.
#[derive(Debug)]
pub struct Sender<T> {
    controller: Box<dyn Controller>,
    pacer: Pacer,
    meter: Meter,
    delivery: Delivery,
    packets: VecDeque<Packet<T>>,
    in_flight: ByteCount,
    /// A full packet.
    full: ByteCount,
    newest_acked: Option<u64>,
    newest_lost: Option<u64>,
    /// Packets that make the far end acknowledge at once.
    prompt: u32,
    batch: Batch,
    /// The window was closed since the last packet: it, not the application, held back sending.
    held_by_window: bool,
}

#[derive(Debug)]
struct Packet<T> {
    number: u64,
    bytes: ByteCount,
    stamp: Stamp,
    tag: Option<T>,
    open: bool,
}

/// The acknowledgements of one frame.
#[derive(Debug, Default)]
struct Batch {
    packets: u32,
    bytes: ByteCount,
    newest: Option<(u64, Stamp)>,
    /// The last of them that were sent at one time, and how many: packets sent together mostly
    /// arrive together.
    together: Option<(Instant, u32)>,
    marked: u64,
}

impl<T> Sender<T> {
    /// A sender of IP packets of up to `full` bytes, whose far end acknowledges at once after
    /// `prompt` packets.
    pub fn new(
        now: Instant,
        controller: Box<dyn Controller>,
        full: ByteCount,
        prompt: u32,
    ) -> Self {
        Self {
            pacer: Pacer::new(controller.pacing_rate(), full, now),
            controller,
            meter: Meter::default(),
            delivery: Delivery::new(now),
            packets: VecDeque::new(),
            in_flight: ByteCount::ZERO,
            full,
            newest_acked: None,
            newest_lost: None,
            prompt,
            batch: Batch::default(),
            held_by_window: false,
        }
    }

    /// Full packets that may be sent now.
    pub fn room(&mut self, now: Instant) -> usize {
        let window =
            self.controller.window().saturating_sub(self.in_flight).as_u64() / self.full.as_u64();
        let paced = self.pacer.available(now).as_u64() / self.full.as_u64();
        if window < paced {
            self.pacer.is_held_back();
        }
        self.held_by_window |= window == 0;
        usize::try_from(paced.min(window)).unwrap_or(usize::MAX)
    }

    /// Packet `number`, higher than any before, of `bytes` as an IP packet was sent, and will be
    /// acknowledged.
    pub fn sent(&mut self, now: Instant, number: u64, bytes: ByteCount) {
        debug_assert!(self.packets.back().is_none_or(|packet| packet.number < number));
        if self.pacer.take_unused() && !self.held_by_window {
            self.delivery.app_limited(self.in_flight);
        }
        self.held_by_window = false;
        self.in_flight += bytes;
        let stamp = self.delivery.sent(now, bytes, self.in_flight);
        self.packets.push_back(Packet { number, bytes, stamp, tag: None, open: true });
        self.controller.on_sent(now, bytes, self.in_flight);
    }

    /// Packet `number` carries `tag`. Where too many are in flight, drops the oldest packet and
    /// returns its tag: its fate will not be known.
    pub fn tag(&mut self, number: u64, tag: T) -> Option<T> {
        match self.find(number) {
            Some(at) => self.packets[at].tag = Some(tag),
            None => return Some(tag),
        }
        if self.packets.len() <= MAX_PACKETS {
            return None;
        }
        let oldest = self.packets.pop_front()?;
        if oldest.open {
            self.leave_flight(oldest.bytes);
        }
        oldest.tag
    }

    /// A packet of `bytes` was sent, to be acknowledged or not: the pacer pays for it.
    pub fn spend(&mut self, now: Instant, bytes: ByteCount) {
        self.pacer.spend(now, bytes);
    }

    /// Packet `number` was acknowledged; follow up with [`Sender::end_of_acks`]. Returns its tag.
    pub fn acked(&mut self, now: Instant, number: u64) -> Option<T> {
        let at = self.find(number)?;
        let packet = &mut self.packets[at];
        let (bytes, stamp, tag) = (packet.bytes, packet.stamp, packet.tag.take());
        let was_open = core::mem::replace(&mut packet.open, false);
        self.tidy();
        if was_open {
            self.leave_flight(bytes);
        }
        self.meter.arrived();
        self.delivery.arrived(now, bytes);
        self.batch.packets += 1;
        self.batch.bytes += bytes;
        self.report_arrived(stamp.sent);
        if self.batch.newest.is_none_or(|(newest, _)| newest < number) {
            self.batch.newest = Some((number, stamp));
        }
        tag
    }

    /// When packet `number` was sent, while its fate is not known.
    pub fn sent_at(&self, number: u64) -> Option<Instant> {
        self.find(number).map(|at| self.packets[at].stamp.sent)
    }

    /// The far end has newly seen this many packets marked "congestion experienced".
    pub fn marked(&mut self, packets: u64) {
        self.batch.marked += packets;
    }

    /// The acknowledgements that came together are complete.
    pub fn end_of_acks(&mut self, now: Instant) {
        let batch = core::mem::take(&mut self.batch);
        let Some((number, stamp)) = batch.newest else { return };
        if let Some((sent, packets)) = batch.together {
            self.controller.on_arrived(sent, packets);
        }
        let is_newest = self.newest_acked.is_none_or(|newest| newest < number);
        let rtt = is_newest.then(|| now.since(stamp.sent));
        if let Some(rtt) = rtt {
            self.newest_acked = Some(number);
            self.meter.sample(now, rtt);
        }
        let ack = Ack {
            bytes: batch.bytes,
            packets: batch.packets,
            sent: stamp.sent,
            rtt,
            smoothed: self.meter.smoothed(),
            prompt: batch.packets >= self.prompt,
            in_flight: self.in_flight,
            sample: self.delivery.sample(&stamp),
            marked: batch.marked,
        };
        self.controller.on_ack(now, &ack);
        self.pacer.set_rate(now, self.controller.pacing_rate());
    }

    /// Packet `number` is considered lost. Returns its tag.
    pub fn lost(&mut self, now: Instant, number: u64) -> Option<T> {
        let at = self.find(number)?;
        let packet = &mut self.packets[at];
        let (bytes, stamp, tag) = (packet.bytes, packet.stamp, packet.tag.take());
        let was_open = core::mem::replace(&mut packet.open, false);
        self.tidy();
        if !was_open {
            return tag;
        }
        self.leave_flight(bytes);
        self.meter.lost();
        self.delivery.lost(bytes);
        let continues = self.newest_lost.replace(number).is_some_and(|before| before + 1 == number);
        let loss = LossEvent {
            bytes,
            continues,
            sent: stamp.sent,
            in_flight_when_sent: stamp.in_flight,
            lost_since_sent: self.delivery.lost_since(&stamp),
            delivered_when_sent: stamp.delivered,
            in_flight: self.in_flight,
        };
        self.controller.on_loss(now, &loss);
        self.pacer.set_rate(now, self.controller.pacing_rate());
        tag
    }

    /// Drops the oldest packet, if it has been in flight for longer than 30 s, and returns its tag.
    pub fn expire(&mut self, now: Instant) -> Option<T> {
        while self.packets.front().is_some_and(|packet| now.since(packet.stamp.sent) > PATIENCE) {
            let packet = self.packets.pop_front()?;
            if packet.open {
                self.leave_flight(packet.bytes);
            }
            if packet.tag.is_some() {
                return packet.tag;
            }
        }
        None
    }

    /// The tags of all packets in flight, oldest first: the path has ended.
    pub fn take_all(&mut self) -> impl Iterator<Item = T> + '_ {
        self.in_flight = ByteCount::ZERO;
        self.packets.drain(..).filter_map(|packet| packet.tag)
    }

    /// When a waiting sender should look for room again, or the controller has something to do.
    pub fn wake(&self) -> Option<Instant> {
        [self.pacer.wake(), self.controller.next_timeout()].into_iter().flatten().min()
    }

    /// The wait is over: room is offered once, so that a sender with nothing to send is not woken
    /// again.
    pub fn woken(&mut self, now: Instant) {
        if self.controller.next_timeout().is_some_and(|at| at <= now) {
            self.controller.on_timeout(now);
            self.pacer.set_rate(now, self.controller.pacing_rate());
        }
        let _ = self.pacer.available(now);
    }

    /// What is in flight.
    pub const fn in_flight(&self) -> ByteCount {
        self.in_flight
    }

    /// The measurements.
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Shortest time within which an acknowledgement is due.
    pub fn answer_within(&self) -> Duration {
        self.meter.smoothed() + self.meter.variation() * 4
    }

    /// The controller's state.
    pub fn status(&self) -> Status {
        self.controller.status()
    }

    /// What should be remembered of the path.
    pub fn memory(&self) -> Option<Memory> {
        self.controller.memory()
    }

    fn find(&self, number: u64) -> Option<usize> {
        // Numbers are mostly consecutive, so that the first guess is mostly right.
        let first = self.packets.front()?.number;
        let guess = usize::try_from(number.checked_sub(first)?).ok()?;
        if self.packets.get(guess).is_some_and(|packet| packet.number == number) {
            return Some(guess)
                .filter(|at| self.packets[*at].open || self.packets[*at].tag.is_some());
        }
        self.packets.binary_search_by_key(&number, |packet| packet.number).ok()
    }

    /// One more packet arrived; those sent at one time are reported together.
    fn report_arrived(&mut self, sent: Instant) {
        match &mut self.batch.together {
            Some((at, packets)) if *at == sent => *packets += 1,
            together => {
                if let Some((at, packets)) = together.replace((sent, 1)) {
                    self.controller.on_arrived(at, packets);
                }
            }
        }
    }

    /// Bytes are no longer in flight.
    fn leave_flight(&mut self, bytes: ByteCount) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// Keeps an open packet in front.
    fn tidy(&mut self) {
        while self.packets.front().is_some_and(|packet| !packet.open && packet.tag.is_none()) {
            self.packets.pop_front();
        }
    }
}

/// 262,144 packets: three times 1 Gbit/s × 660 ms. Beyond, the oldest is dropped.
const MAX_PACKETS: usize = 1 << 18;

/// A packet without a fate after this time is dropped: the line is out.
pub const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ControllerConfig, Phase};
    use skyhaul_units::Rate;
    use std::sync::{Arc, Mutex};

    /// Writes down what it is told of arrivals.
    #[derive(Debug)]
    struct Listener(Arc<Mutex<Vec<(Instant, u32)>>>);

    impl Controller for Listener {
        fn on_arrived(&mut self, sent: Instant, packets: u32) {
            self.0.lock().unwrap().push((sent, packets));
        }
        fn on_ack(&mut self, _: Instant, ack: &Ack) {
            let told: u32 = self.0.lock().unwrap().iter().map(|(_, packets)| packets).sum();
            assert_eq!(told, ack.packets, "all arrivals are told before the acknowledgement");
        }
        fn on_loss(&mut self, _: Instant, _: &LossEvent) {}
        fn pacing_rate(&self) -> Rate {
            Rate::from_mbps(100)
        }
        fn window(&self) -> ByteCount {
            ByteCount::mib(1)
        }
        fn status(&self) -> Status {
            let line = ControllerConfig::declared(self.pacing_rate()).build(None);
            Status { phase: Phase::Steady, ..line.status() }
        }
    }

    #[test]
    fn arrivals_are_told_by_the_time_of_sending_however_many_one_acknowledgement_covers() {
        let told = Arc::default();
        let packet = ByteCount::new(1_500);
        let mut sender: Sender<()> =
            Sender::new(Instant::ZERO, Box::new(Listener(Arc::clone(&told))), packet, 10);
        let at = |turn: u64| Instant::ZERO + Duration::from_millis(2) * turn;
        (0..40).for_each(|number| sender.sent(at(number / 16), number, packet));
        // Newest range first, and one packet is missing.
        for number in (30..40).chain(0..29) {
            let _ = sender.acked(at(5), number);
        }
        sender.end_of_acks(at(5));
        assert_eq!(*told.lock().unwrap(), [(at(1), 2), (at(2), 8), (at(0), 16), (at(1), 13)]);
    }
}
