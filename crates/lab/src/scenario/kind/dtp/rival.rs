//! What the same applications get of multipath connections as they are common: one for each application, an in-order stream
//! over all paths, New Reno for each path by itself, the path with the shortest round trip that has room first, and no
//! deadlines: what was written is sent, however late.
//!
//! The connections share each path's line and its drop-tail queue of one bandwidth-delay product. Acknowledgements are
//! never lost; a packet is lost when three later ones of its subflow arrived, or at a time-out of two round trips and
//! 200 ms. What is left out favours them: handshakes, headers of the stream, reordering limits of the receiver.

use super::{Cell, on_line, worth};
use crate::workload::{Due, Stream};
use skyhaul_congestion::{Ack, Controller, ControllerConfig, Loss, RenoConfig};
use skyhaul_units::{Bytes, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Three connections over the paths of a cell.
pub(super) struct Rivals {
    lines: Vec<Line>,
    connections: Vec<Connection>,
    /// Bounded by what the paths hold and one write of each application.
    events: BTreeMap<(Instant, u64), Event>,
    order: u64,
    loss: u64,
    random: u64,
}

struct Line {
    one_way_delay: Duration,
    rate: skyhaul_units::Rate,
    queue: Duration,
    free_at: Instant,
}

struct Connection {
    stream: Stream,
    priority: u8,
    blocks: Vec<Written>,
    intra: usize,
    written: u64,
    sent: u64,
    again: BTreeSet<(u64, u64)>,
    subflows: Vec<Subflow>,
    /// What arrived beyond the first gap: end by start.
    beyond: BTreeMap<u64, u64>,
    in_order: u64,
    /// Blocks given out.
    given: usize,
}

struct Written {
    end: u64,
    by: Instant,
    needs: Option<usize>,
    in_time: bool,
}

struct Subflow {
    controller: Box<dyn Controller>,
    next: u64,
    open: BTreeMap<u64, Flying>,
    in_flight: Bytes,
    smoothed: Duration,
    highest: u64,
}

#[derive(Clone, Copy)]
struct Flying {
    start: u64,
    end: u64,
    sent: Instant,
    in_flight: Bytes,
}

#[derive(Clone, Copy)]
enum Event {
    Write(usize),
    Arrive { connection: usize, path: usize, number: u64, start: u64, end: u64 },
    Acknowledged { connection: usize, path: usize, number: u64 },
    Overdue { connection: usize, path: usize, number: u64 },
}

impl Rivals {
    /// Connections for these applications, with the sizes and losses of `seed`.
    pub fn new(cell: &Cell, streams: Vec<Stream>, seed: u64) -> Self {
        let line = |rtt: &Duration| Line {
            one_way_delay: *rtt / 2,
            rate: cell.bandwidth,
            queue: *rtt,
            free_at: Instant::ZERO,
        };
        let reno = ControllerConfig::Reno(RenoConfig::default());
        let connection = |stream: Stream| Connection {
            priority: stream.config().priority,
            stream,
            blocks: Vec::new(),
            intra: 0,
            written: 0,
            sent: 0,
            again: BTreeSet::new(),
            subflows: cell.rtts.iter().map(|rtt| Subflow::new(reno.build(None), *rtt)).collect(),
            beyond: BTreeMap::new(),
            in_order: 0,
            given: 0,
        };
        let mut rivals = Self {
            lines: cell.rtts.iter().map(line).collect(),
            connections: streams.into_iter().map(connection).collect(),
            events: BTreeMap::new(),
            order: 0,
            loss: u64::from(cell.loss.as_ppb()),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        };
        for index in 0..rivals.connections.len() {
            rivals.write_next(index);
        }
        rivals
    }

    /// The worth of what is in time, once all is over at `end`.
    pub fn worth_in_time(mut self, end: Instant) -> f64 {
        while let Some(((now, _), event)) = self.events.pop_first()
            && now <= end
        {
            match event {
                Event::Write(index) => self.write(now, index),
                Event::Arrive { connection, path, number, start, end } => {
                    self.connections[connection].arrived(now, start, end);
                    let back = now + self.lines[path].one_way_delay;
                    self.at(back, Event::Acknowledged { connection, path, number });
                }
                Event::Acknowledged { connection, path, number } => {
                    self.connections[connection].acknowledged(now, path, number);
                    self.pump(now, connection);
                }
                Event::Overdue { connection, path, number } => {
                    if self.connections[connection].overdue(now, path, number) {
                        self.pump(now, connection);
                    }
                }
            }
        }
        self.connections.iter().map(Connection::worth).sum()
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }

    fn write_next(&mut self, index: usize) {
        if let Some(at) = self.connections[index].stream.next_at() {
            self.at(at, Event::Write(index));
        }
    }

    fn write(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        let due = connection.stream.step();
        connection.write(&due);
        self.write_next(index);
        self.pump(now, index);
    }

    /// Sends what windows allow, over the shortest path first.
    fn pump(&mut self, now: Instant, index: usize) {
        while let Some((start, end)) = self.connections[index].next_piece() {
            let packet = Bytes::new(on_line(Bytes::new(end - start)) as u64);
            let connection = &mut self.connections[index];
            let fits = |subflow: &Subflow| subflow.in_flight + packet <= subflow.controller.window();
            let mut open = (0..connection.subflows.len()).filter(|path| fits(&connection.subflows[*path]));
            let Some(path) = open.by_ref().min_by_key(|path| self.lines[*path].one_way_delay) else { return };
            connection.take_piece(start, end);
            let subflow = &mut connection.subflows[path];
            let number = subflow.next;
            subflow.next += 1;
            subflow.in_flight += packet;
            let in_flight = subflow.in_flight;
            subflow.open.insert(number, Flying { start, end, sent: now, in_flight });
            subflow.controller.on_sent(now, packet, in_flight);
            let overdue = now + subflow.smoothed * 2 + TIMEOUT;
            self.at(overdue, Event::Overdue { connection: index, path, number });
            if let Some(at) = self.carry(now, path, packet) {
                self.at(at, Event::Arrive { connection: index, path, number, start, end });
            }
        }
    }

    /// When a packet arrives; `None` where the queue is full or the line loses it.
    fn carry(&mut self, now: Instant, path: usize, packet: Bytes) -> Option<Instant> {
        let line = &mut self.lines[path];
        if line.free_at.since(now) > line.queue {
            return None;
        }
        line.free_at = line.free_at.max(now) + line.rate.time_for(packet);
        // Xorshift64 (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % 1_000_000_000 >= self.loss).then(|| line.free_at + line.one_way_delay)
    }
}

impl Connection {
    fn write(&mut self, due: &Due) {
        self.written += due.size.as_u64();
        let place = self.blocks.len();
        let needs = due.depends.then_some(self.intra);
        if !due.depends {
            self.intra = place;
        }
        let by = due.deadline.map_or(Instant::FAR_FUTURE, |span| due.at + span);
        self.blocks.push(Written { end: self.written, by, needs, in_time: false });
    }

    /// What was lost first, then what was never sent.
    fn next_piece(&self) -> Option<(u64, u64)> {
        let fresh = (self.sent < self.written)
            .then(|| (self.sent, self.written.min(self.sent.saturating_add(super::PAYLOAD))));
        self.again.first().copied().or(fresh)
    }

    fn take_piece(&mut self, start: u64, end: u64) {
        if !self.again.remove(&(start, end)) {
            self.sent = end;
        }
    }

    fn arrived(&mut self, now: Instant, start: u64, end: u64) {
        if end > self.in_order {
            self.beyond.insert(start, end);
        }
        while let Some((start, end)) = self.beyond.first_key_value().map(|(start, end)| (*start, *end))
            && start <= self.in_order
        {
            self.in_order = self.in_order.max(end);
            self.beyond.remove(&start);
        }
        while let Some(block) = self.blocks.get_mut(self.given).filter(|block| block.end <= self.in_order) {
            block.in_time = now <= block.by;
            self.given += 1;
        }
    }

    fn acknowledged(&mut self, now: Instant, path: usize, number: u64) {
        let subflow = &mut self.subflows[path];
        let Some(flying) = subflow.open.remove(&number) else { return };
        let rtt = now.since(flying.sent);
        let bytes = subflow.landed(&flying);
        subflow.smoothed = subflow.smoothed.scaled(7, 8) + rtt / 8;
        let newest = number >= subflow.highest;
        subflow.highest = subflow.highest.max(number);
        let ack = Ack {
            bytes,
            packets: 1,
            sent: flying.sent,
            rtt: newest.then_some(rtt),
            smoothed: subflow.smoothed,
            prompt: true,
            in_flight: subflow.in_flight,
            ..Ack::default()
        };
        subflow.controller.on_ack(now, &ack);
        while let Some((number, _)) = subflow.open.first_key_value()
            && number + OVERTAKEN <= subflow.highest
        {
            let number = *number;
            let lost = subflow.lose(now, number);
            self.again.extend(lost);
        }
    }

    fn overdue(&mut self, now: Instant, path: usize, number: u64) -> bool {
        let lost = self.subflows[path].lose(now, number);
        self.again.extend(lost);
        lost.is_some()
    }

    fn worth(&self) -> f64 {
        let useful =
            |block: &&Written| block.in_time && block.needs.is_none_or(|needed| self.blocks[needed].in_time);
        self.blocks.iter().filter(useful).count() as f64 * worth(self.priority)
    }
}

impl Subflow {
    fn new(controller: Box<dyn Controller>, rtt: Duration) -> Self {
        let (open, in_flight) = (BTreeMap::new(), Bytes::ZERO);
        Self { controller, next: 0, open, in_flight, smoothed: rtt, highest: 0 }
    }

    fn landed(&mut self, flying: &Flying) -> Bytes {
        let bytes = Bytes::new(on_line(Bytes::new(flying.end - flying.start)) as u64);
        self.in_flight = self.in_flight - bytes;
        bytes
    }

    /// A packet is lost: what it carried.
    fn lose(&mut self, now: Instant, number: u64) -> Option<(u64, u64)> {
        let flying = self.open.remove(&number)?;
        let bytes = self.landed(&flying);
        let loss = Loss {
            bytes,
            sent: flying.sent,
            in_flight_when_sent: flying.in_flight,
            lost_since_sent: bytes,
            in_flight: self.in_flight,
            ..Loss::default()
        };
        self.controller.on_loss(now, &loss);
        Some((flying.start, flying.end))
    }
}

/// Later packets that arrived (RFC 9002 6.1.1).
const OVERTAKEN: u64 = 3;
/// Beyond two round trips.
const TIMEOUT: Duration = Duration::from_millis(200);
