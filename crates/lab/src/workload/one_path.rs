//! Two sessions over one plain path under one virtual clock, with traffic at each end.

use super::Traffic;
use crate::world::User;
use crate::{PlainEnd, PlainLine, PlainPath};
use bytes::Bytes;
use skyhaul_transport::{
    DownReason, Estimate, Event, Opening, Path, PathEvent, PathId, Session, SessionConfig, Token, give_out,
    take_in,
};
use skyhaul_units::{Duration, Instant};

/// Sees each datagram that an end sends: when it will have left, which end, what.
pub type Tap = Box<dyn FnMut(Instant, usize, &Bytes)>;

/// Two sessions, one path.
pub struct OnePath {
    now: Instant,
    /// The ends; 0 is the one that sends in most scenarios.
    pub sessions: [Session; 2],
    /// What each end sends.
    pub traffic: [Traffic; 2],
    path: PlainPath,
    tap: Option<Tap>,
}

impl OnePath {
    /// Two ends that introduce themselves at once. `seed` decides the path's chances.
    pub fn new(line: PlainLine, configs: [SessionConfig; 2], traffic: [Traffic; 2], seed: u64) -> Self {
        let mut sessions = configs.map(Session::new);
        for session in &mut sessions {
            session.open(Opening::default());
        }
        let path = PlainPath::new(line, seed);
        Self { now: Instant::ZERO, sessions, traffic, path, tap: None }
    }

    /// Shows `tap` every datagram from now on.
    pub fn set_tap(&mut self, tap: impl FnMut(Instant, usize, &Bytes) + 'static) {
        self.tap = Some(Box::new(tap));
    }

    /// The virtual clock.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Lets nothing through before `until`.
    pub fn cut(&mut self, until: Instant) {
        self.path.cut(until);
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.now < end {
            for side in 0..2 {
                self.step(side);
            }
            self.now = self.next_instant().min(end);
        }
    }

    fn next_instant(&self) -> Instant {
        let mut next = Instant::FAR_FUTURE;
        for side in 0..2 {
            let (session, end) = (&self.sessions[side], &self.path.ends[side]);
            let due = session.next_timeout();
            let later = |at: &Instant| *at > self.now;
            let waits = session.has_symbol() || due.is_some_and(|due| due <= self.now);
            // What is due and was not done waits for the line; where it does not, it is asked again a little later.
            let free = if later(&end.free_at()) { end.free_at() } else { self.now + ASK_AGAIN };
            let candidates = [
                due.filter(later),
                end.next_event().filter(later),
                self.traffic[side].next_at().filter(later),
            ];
            let earliest = candidates.into_iter().flatten().chain(waits.then_some(free)).min();
            next = earliest.map_or(next, |at| next.min(at));
        }
        next.max(self.now + STEP)
    }

    fn step(&mut self, side: usize) {
        let now = self.now;
        let session = &mut self.sessions[side];
        let mut end = Tapped { end: &mut self.path.ends[side], tap: self.tap.as_mut(), side };
        take_in(session, PathId(0), &mut end, now);
        self.traffic[side].feed(now, session);
        session.handle_timeout(now);
        give_out(session, PathId(0), &mut end, now);
        while let Some(event) = session.poll() {
            if let Event::Block(received) = &event {
                session.release(received.bytes.len());
                self.traffic[1 - side].ledger.arrived(received.id, now);
            }
            self.traffic[side].event(now, session, event);
        }
        self.path.exchange();
    }
}

/// A path's end with someone who listens.
struct Tapped<'a> {
    end: &'a mut PlainEnd,
    tap: Option<&'a mut Tap>,
    side: usize,
}

impl Path for Tapped<'_> {
    fn room(&mut self, now: Instant) -> usize {
        self.end.room(now)
    }

    fn send(&mut self, now: Instant, token: Option<Token>, datagram: Bytes) {
        let seen = self.tap.is_some().then(|| datagram.clone());
        self.end.send(now, token, datagram);
        if let (Some(tap), Some(datagram)) = (&mut self.tap, seen) {
            tap(self.end.free_at(), self.side, &datagram);
        }
    }

    fn send_control(&mut self, now: Instant, bytes: &[u8]) -> usize {
        self.end.send_control(now, bytes)
    }

    fn poll(&mut self, now: Instant) -> Option<PathEvent> {
        self.end.poll(now)
    }

    fn estimate(&self) -> Estimate {
        self.end.estimate()
    }

    fn close(&mut self, now: Instant, reason: &str) {
        self.end.end(now, DownReason::ClosedHere);
        self.end.close(now, reason);
    }
}

/// Time goes on by this much at least.
const STEP: Duration = Duration::from_nanos(1);
/// What was due and had room, and was not done, is asked for again so much later.
const ASK_AGAIN: Duration = Duration::from_micros(200);
