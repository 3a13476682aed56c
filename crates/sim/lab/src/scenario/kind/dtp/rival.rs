//! What the same applications get of multipath connections as they are common: one for each
//! application, an in-order stream over all paths, New Reno for each path by itself, the path with
//! the shortest round trip that has room first, and no deadlines: what was written is sent, however
//! late.
//!
//! A connection is as RFC 8684 has it, with the lowest round trip first and the repetition on other
//! subflows of the first implementation in Linux (Raiciu and others, NSDI 2012). The first subflow
//! takes one round trip to open, the others two after that, from time zero like the paths of the
//! session beside it. Each subflow is a TCP of its own (`subflow`, `timeout`), and
//! acknowledgements, cumulative for the subflow and for the stream, are lost as often as data. A
//! time-out of a subflow gives all that it had under way to the others too, each piece once.
//! Buffers are 4 MiB at both ends; applications write to a blocking socket, and what does not fit
//! waits in the application without limit.
//!
//! The connections share each path's line and its drop-tail queue, which is that of the lab's QUIC
//! paths. Where sources leave a choice it favours the connections: each segment is acknowledged at
//! once, acknowledgements take no room on the line, a piece counts for the stream even while its
//! subflow has a gap, windows count bytes and outlast idling. Left out is what a host of today has
//! beyond New Reno: selective acknowledgements and what rests on them (RFC 2018, RFC 8985), and the
//! undoing of reductions that were not called for (RFC 5682).

mod connection;
mod subflow;
#[cfg(test)]
mod tests;
mod timeout;

use super::Cell;
use crate::workload::BlockStream;
use crate::world::queue;
use connection::{Acknowledgement, Connection, Segment};
use skyhaul_units::{Duration, Instant, Rate};
use std::collections::BTreeMap;

/// Three connections over the paths of a cell.
pub(super) struct Rivals {
    lines: Vec<Line>,
    connections: Vec<Connection>,
    /// Bounded by what the paths hold, one handshake a subflow and one write of each application.
    events: BTreeMap<(Instant, u64), Event>,
    order: u64,
    /// Of segments and of acknowledgements, in parts per thousand million.
    losses: [u64; 2],
    random: u64,
}

struct Line {
    rtt: Duration,
    rate: Rate,
    /// How long a full queue takes to send.
    queue: Duration,
    free_at: Instant,
}

/// A subflow of one connection: the path that it takes.
#[derive(Debug, Clone, Copy)]
struct SubflowId {
    connection: usize,
    path: usize,
}

#[derive(Clone, Copy)]
enum Event {
    Write {
        connection: usize,
    },
    /// An exchange of the handshake begins, or begins once more; `left` are needed with it.
    Greet {
        connection: usize,
        path: usize,
        left: u32,
        repeated: u32,
    },
    Opened {
        connection: usize,
        path: usize,
    },
    Arrived {
        connection: usize,
        path: usize,
        segment: Segment,
    },
    Acknowledged {
        connection: usize,
        path: usize,
        acknowledgement: Acknowledgement,
    },
    Overdue {
        connection: usize,
        path: usize,
    },
}

impl Rivals {
    /// Connections for these applications, with the sizes and losses of `seed`.
    pub fn new(cell: &Cell, streams: Vec<BlockStream>, seed: u64) -> Self {
        let line = |rtt: &Duration| {
            let rate = cell.bandwidth;
            let queue = rate.time_for(queue(&cell.line(*rtt)));
            Line { rtt: *rtt, rate, queue, free_at: Instant::ZERO }
        };
        let paths = cell.rtts.len();
        let mut rivals = Self {
            lines: cell.rtts.iter().map(line).collect(),
            connections: streams.into_iter().map(|stream| Connection::new(stream, paths)).collect(),
            events: BTreeMap::new(),
            order: 0,
            losses: [u64::from(cell.loss.as_ppb()); 2],
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        };
        for connection in 0..rivals.connections.len() {
            rivals.write_next(connection);
            rivals.at(Instant::ZERO, Event::Greet { connection, path: 0, left: 1, repeated: 0 });
        }
        rivals
    }

    /// The worth of what is in time, once all is over at `end`.
    pub fn worth_in_time(mut self, end: Instant) -> f64 {
        while let Some((now, event)) = self.next(end) {
            self.handle(now, event);
        }
        self.connections.iter().map(Connection::worth).sum()
    }

    /// What happens next, up to `end`.
    fn next(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let timers = self.connections.iter().enumerate().flat_map(|(connection, each)| {
            each.subflows.iter().enumerate().filter_map(move |(path, subflow)| {
                Some((subflow.due()?, Event::Overdue { connection, path }))
            })
        });
        let timer = timers.min_by_key(|(at, _)| *at);
        let first = self.events.first_key_value().map(|((at, _), _)| *at);
        let due = timer.filter(|(at, _)| first.is_none_or(|first| *at < first));
        due.or_else(|| self.events.pop_first().map(|((at, _), event)| (at, event)))
            .filter(|(at, _)| *at <= end)
    }

    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Write { connection } => {
                let due = self.connections[connection].stream.step();
                self.connections[connection].write(&due);
                self.write_next(connection);
                self.pump(now, connection);
            }
            Event::Greet { connection, path, left, repeated } => {
                self.greet(now, SubflowId { connection, path }, left, repeated);
            }
            Event::Opened { connection, path } => self.opened(now, connection, path),
            Event::Arrived { connection, path, segment } => {
                let acknowledgement = self.connections[connection].arrived(now, path, segment);
                if !self.is_lost(BACK) {
                    let back = now + self.lines[path].rtt / 2;
                    self.at(back, Event::Acknowledged { connection, path, acknowledgement });
                }
            }
            Event::Acknowledged { connection, path, acknowledgement } => {
                if let Some(number) =
                    self.connections[connection].acknowledge(now, path, acknowledgement)
                {
                    self.carry(now, SubflowId { connection, path }, number);
                }
                self.pump(now, connection);
            }
            Event::Overdue { connection, path } => {
                self.connections[connection].overdue(now, path);
                self.pump(now, connection);
            }
        }
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }

    fn write_next(&mut self, connection: usize) {
        if let Some(at) = self.connections[connection].stream.next_at() {
            self.at(at, Event::Write { connection });
        }
    }

    fn greet(&mut self, now: Instant, subflow: SubflowId, left: u32, repeated: u32) {
        let SubflowId { connection, path } = subflow;
        let rtt = self.lines[path].rtt;
        let is_lost = self.is_lost(THERE) || self.is_lost(BACK);
        if is_lost {
            let wait = timeout::INITIAL * (1 << repeated.min(6));
            self.at(now + wait, Event::Greet { connection, path, left, repeated: repeated + 1 });
        } else if left > 1 {
            self.at(now + rtt, Event::Greet { connection, path, left: left - 1, repeated });
        } else {
            self.at(now + rtt, Event::Opened { connection, path });
        }
    }

    fn opened(&mut self, now: Instant, connection: usize, path: usize) {
        self.connections[connection].subflows[path].open(self.lines[path].rtt);
        if path == 0 {
            // RFC 8684 3.2: nothing is sent on a further subflow before its fourth packet came.
            for path in 1..self.lines.len() {
                self.at(now, Event::Greet { connection, path, left: 2, repeated: 0 });
            }
        }
        self.pump(now, connection);
    }

    /// Sends what windows allow: what a subflow must repeat, then the connection's.
    fn pump(&mut self, now: Instant, connection: usize) {
        for path in 0..self.lines.len() {
            while let Some(number) = self.connections[connection].subflows[path].repeat(now) {
                self.carry(now, SubflowId { connection, path }, number);
            }
        }
        while let Some((path, number)) = self.connections[connection].send(now) {
            self.carry(now, SubflowId { connection, path }, number);
        }
    }

    /// Puts a segment on the line, unless the queue is full or the line loses it.
    fn carry(&mut self, now: Instant, subflow: SubflowId, number: u64) {
        let SubflowId { connection, path } = subflow;
        let Some((piece, size)) = self.connections[connection].subflows[path].carried(number)
        else {
            return;
        };
        let line = &mut self.lines[path];
        if line.free_at.since(now) > line.queue {
            return;
        }
        line.free_at = line.free_at.max(now) + line.rate.time_for(size);
        let at = line.free_at + line.rtt / 2;
        if !self.is_lost(THERE) {
            self.at(
                at,
                Event::Arrived { connection, path, segment: Segment { number, piece, sent: now } },
            );
        }
    }

    fn is_lost(&mut self, direction: usize) -> bool {
        // Xorshift64 (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1_000_000_000 < self.losses[direction]
    }
}

const THERE: usize = 0;
const BACK: usize = 1;
