//! Traffic of others over a link of a case: what keeps its rate, and what goes as fast as it is
//! let.

use super::draw::Draws;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::VecDeque;

/// What others send. None of it is ours, and nothing that measures knows of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Others {
    /// Packets at a rate, their spacing by chance.
    Steady { rate: Rate, packet: ByteCount },
    /// At a rate for a time, and silent for as long, again and again.
    OnOff { rate: Rate, packet: ByteCount, time: Duration },
    /// Several transfers that halve their windows when they lose something, and open them by a
    /// packet a round trip.
    Windows { flows: usize, packet: ByteCount },
}

/// Their program, both ends of it.
#[derive(Debug)]
pub struct Cross {
    others: Others,
    /// The way there and back without a queue.
    round_trip: Duration,
    chance: Draws,
    next: Instant,
    flows: Vec<Flow>,
    /// Answers on their way back: when, whose, of which packet.
    answers: VecDeque<(Instant, usize, u64)>,
}

#[derive(Debug, Clone)]
struct Flow {
    window: f64,
    sent: u64,
    answered: u64,
    /// Losses of packets up to this one were answered to.
    recovered: u64,
    heard: Instant,
}

impl Cross {
    pub fn new(others: Others, one_way: Duration, seed: u64) -> Self {
        let flow = Flow { window: 4.0, sent: 0, answered: 0, recovered: 0, heard: Instant::ZERO };
        let count = if let Others::Windows { flows, .. } = others { flows } else { 0 };
        Self {
            others,
            round_trip: one_way * 2,
            chance: Draws::new(seed),
            next: Instant::ZERO,
            flows: vec![flow; count],
            answers: VecDeque::new(),
        }
    }

    pub const fn packet(&self) -> ByteCount {
        match self.others {
            Others::Steady { packet, .. }
            | Others::OnOff { packet, .. }
            | Others::Windows { packet, .. } => packet,
        }
    }

    /// When there is something to do; in the past while there is something to send.
    pub fn due(&self) -> Instant {
        match self.others {
            Others::Steady { .. } | Others::OnOff { .. } => self.next,
            Others::Windows { .. } => {
                let timeout = self.flows.iter().map(|flow| flow.heard + TIMEOUT).min();
                let answer = self.answers.front().map(|(at, ..)| *at);
                let sends = self.flows.iter().any(Flow::may_send).then_some(Instant::ZERO);
                [timeout, answer, sends].into_iter().flatten().min().unwrap_or(Instant::FAR_FUTURE)
            }
        }
    }

    /// The next packet that leaves now: its flow and number.
    pub fn poll(&mut self, now: Instant) -> Option<(usize, u64)> {
        match self.others {
            Others::Steady { rate, packet } => self.paced(now, rate, packet),
            Others::OnOff { rate, packet, time } => {
                let packet = self.paced(now, rate, packet)?;
                let turn = now.as_nanos() / time.as_nanos();
                turn.is_multiple_of(2).then_some(packet)
            }
            Others::Windows { .. } => {
                self.take_answers(now);
                let flow = self.flows.iter().position(Flow::may_send)?;
                self.flows[flow].sent += 1;
                Some((flow, self.flows[flow].sent))
            }
        }
    }

    fn paced(&mut self, now: Instant, rate: Rate, packet: ByteCount) -> Option<(usize, u64)> {
        if now < self.next {
            return None;
        }
        // Of independent senders: intervals are exponential.
        let mean = rate.time_for(packet).as_nanos() as f64;
        let interval = -(1.0 - self.chance.part()).ln() * mean;
        self.next = now + Duration::from_nanos((interval as u64).max(1));
        Some((0, 0))
    }

    /// A packet came to its far end.
    pub fn arrived(&mut self, now: Instant, (flow, number): (usize, u64)) {
        if matches!(self.others, Others::Windows { .. }) {
            self.answers.push_back((now + self.round_trip / 2, flow, number));
        }
    }

    fn take_answers(&mut self, now: Instant) {
        while self.answers.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((at, flow, number)) = self.answers.pop_front() else { return };
            self.flows[flow].answer(at, number);
        }
        for flow in &mut self.flows {
            if now >= flow.heard + TIMEOUT {
                (flow.window, flow.answered, flow.recovered, flow.heard) =
                    (2.0, flow.sent, flow.sent, now);
            }
        }
    }
}

impl Flow {
    fn may_send(&self) -> bool {
        (self.sent - self.answered) as f64 + 1.0 <= self.window
    }

    fn answer(&mut self, at: Instant, number: u64) {
        if number <= self.answered {
            return;
        }
        if number > self.answered + 1 && self.answered >= self.recovered {
            self.window = (self.window / 2.0).max(2.0);
            self.recovered = self.sent;
        } else {
            // Begins fast until the first loss.
            self.window += if self.recovered == 0 { 1.0 } else { 1.0 / self.window };
        }
        (self.answered, self.heard) = (number, at);
    }
}

/// Without any answer.
const TIMEOUT: Duration = Duration::from_millis(1_000);
