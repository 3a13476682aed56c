//! The near end: a greedy or rate-limited application over a sender, with loss detection and probes
//! (RFC 9002 6).

use super::config::FlowConfig;
use super::outstanding::Outstanding;
use super::receiver::Span;
use skyhaul_congestion::{Controller, Sender};
use skyhaul_units::{Duration, Instant};

/// Sends numbered packets, all of one size.
#[derive(Debug)]
pub(super) struct Source {
    config: FlowConfig,
    sender: Sender<()>,
    outstanding: Outstanding,
    start: Instant,
    /// When the first packet was acknowledged; before that nothing else is sent.
    ready: Option<Instant>,
    newest_acked: Option<u64>,
    latest_rtt: Duration,
    /// When the oldest packet that is behind the newest acknowledged one counts as lost.
    loss_timer: Option<Instant>,
    newest_sent_at: Instant,
    /// Probe timeouts since something was acknowledged.
    probes: u32,
    lost: u64,
}

impl Source {
    pub(super) fn new(config: FlowConfig, controller: Box<dyn Controller>) -> Self {
        let start = Instant::ZERO + config.start;
        Self {
            sender: Sender::new(start, controller, config.packet, config.acks.every),
            config,
            outstanding: Outstanding::default(),
            start,
            ready: None,
            newest_acked: None,
            latest_rtt: Duration::ZERO,
            loss_timer: None,
            newest_sent_at: start,
            probes: 0,
            lost: 0,
        }
    }

    pub(super) const fn sender(&self) -> &Sender<()> {
        &self.sender
    }

    /// Packets that counted as lost.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Packets sent.
    pub(super) const fn sent(&self) -> u64 {
        self.outstanding.next()
    }

    /// When the first packet was acknowledged.
    pub(super) const fn ready(&self) -> Option<Instant> {
        self.ready
    }

    /// When there is something to do.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        if now < self.start || self.outstanding.next() == 0 {
            return Some(self.start);
        }
        let repair = self.loss_timer.or_else(|| self.probe_timer());
        // A controller's time-out that is not moved must not hold the clock.
        let wake = self.sender.wake().map(|at| at.max(now + GRANULARITY));
        [wake, self.application_wake(now), repair].into_iter().flatten().min()
    }

    /// Numbers of the packets to send now are given to `send`.
    pub(super) fn advance(&mut self, now: Instant, mut send: impl FnMut(u64)) {
        if now < self.start {
            return;
        }
        if self.loss_timer.is_some_and(|at| at <= now) {
            self.find_losses(now);
        } else if self.probe_timer().is_some_and(|at| at <= now) {
            self.probes += 1;
            let _ = self.sender.expire(now);
            (0..PROBES).for_each(|_| self.send_one(now, &mut send));
        }
        if self.sender.wake().is_some_and(|at| at <= now) {
            self.sender.woken(now);
        }
        loop {
            let waiting = self.waiting(now);
            let count = if waiting == 0 { 0 } else { waiting.min(self.sender.room(now) as u64) };
            if count == 0 {
                return;
            }
            (0..count).for_each(|_| self.send_one(now, &mut send));
        }
    }

    /// An acknowledgement arrives; follow up with [`Source::advance`].
    pub(super) fn acknowledged(&mut self, now: Instant, spans: &[Span]) {
        let Some(newest) = spans.first().map(|span| span.last) else { return };
        let rtt = self.outstanding.sent_at(newest).map(|sent| now.since(sent));
        let mut any = false;
        let base = self.outstanding.base();
        for span in spans.iter().take_while(|span| span.last >= base) {
            self.outstanding.take(*span, |number| {
                any = true;
                let _ = self.sender.acked(now, number);
            });
        }
        if !any {
            return;
        }
        if self.newest_acked.is_none_or(|before| before < newest) {
            self.newest_acked = Some(newest);
            self.latest_rtt = rtt.unwrap_or(self.latest_rtt);
        }
        self.ready = self.ready.or(Some(now));
        self.probes = 0;
        self.sender.end_of_acks(now);
        self.find_losses(now);
    }

    fn send_one(&mut self, now: Instant, send: &mut impl FnMut(u64)) {
        let number = self.outstanding.open(now);
        self.sender.sent(now, number, self.config.packet);
        self.sender.spend(now, self.config.packet);
        self.newest_sent_at = now;
        send(number);
    }

    /// Packets that the application has ready.
    fn waiting(&self, now: Instant) -> u64 {
        let Some(ready) = self.ready else { return u64::from(self.outstanding.next() == 0) };
        if self.has_stopped(now) {
            return 0;
        }
        let Some(rate) = self.config.offered else { return u64::MAX };
        let made = (rate * now.since(ready)).as_u64() / self.config.packet.as_u64();
        (made + 1).saturating_sub(self.outstanding.next())
    }

    fn application_wake(&self, now: Instant) -> Option<Instant> {
        let (ready, rate) = (self.ready?, self.config.offered?);
        if self.waiting(now) > 0 || self.has_stopped(now) {
            return None;
        }
        let all =
            skyhaul_units::ByteCount::new(self.config.packet.as_u64() * self.outstanding.next());
        Some((ready + rate.time_for(all)).max(now) + GRANULARITY)
    }

    fn has_stopped(&self, now: Instant) -> bool {
        self.config.stop.is_some_and(|stop| now >= Instant::ZERO + stop)
    }

    /// RFC 9002 6.1: by time, and by newer packets where asked for.
    fn find_losses(&mut self, now: Instant) {
        self.loss_timer = None;
        let Some(newest) = self.newest_acked else { return };
        let rtt = self.sender.meter().smoothed().max(self.latest_rtt);
        let patience = rtt.scaled(self.config.detection.time_threshold, 100).max(GRANULARITY);
        while let Some((number, sent)) =
            self.outstanding.oldest().filter(|(number, _)| *number < newest)
        {
            let is_passed = self
                .config
                .detection
                .packet_threshold
                .is_some_and(|newer| number + newer <= newest);
            if !is_passed && now < sent + patience {
                self.loss_timer = Some(sent + patience);
                return;
            }
            self.outstanding.take(Span { first: number, last: number }, |_| {});
            self.lost += 1;
            let _ = self.sender.lost(now, number);
        }
    }

    /// RFC 9002 6.2.1: a round trip with its variation and the far end's delay, doubled each time;
    /// the doubling ends where the wait would pass [`LONGEST_WAIT`] (RFC 9002 6.2.1 asks for the
    /// doubling, and sets no largest time-out).
    fn probe_timer(&self) -> Option<Instant> {
        if self.loss_timer.is_some() || self.outstanding.oldest().is_none() {
            return None;
        }
        let answer = match self.ready {
            Some(_) => self.sender.answer_within() + self.config.acks.delay,
            None => self.sender.meter().smoothed() * 3,
        };
        let wait = answer * (1 << self.probes.min(MAX_DOUBLINGS));
        Some(self.newest_sent_at + wait.min(LONGEST_WAIT.max(answer)))
    }
}

/// Timer granularity. It is far below any pacing tick, and makes the clock go on whatever a
/// controller asks for.
const GRANULARITY: Duration = Duration::from_micros(1);

/// Packets sent at a probe time-out (RFC 9002 6.2.4 allows two).
const PROBES: u32 = 2;

/// 64 times: more than [`LONGEST_WAIT`] on any path of more than 16 ms.
const MAX_DOUBLINGS: u32 = 6;

/// A flow that hears nothing tries again each second, or each answer's time where that is longer:
/// after an outage the line is found again within that. Two packets a second are 24 kbit/s.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
