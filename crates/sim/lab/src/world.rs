//! Two sessions over several plain paths, under one virtual clock, each with the application that
//! uses it; and the same [over QUIC](QuicWorld).
//!
//! The world is served in ticks, as the program serves its paths: what happens within one is seen
//! at its end, and what leaves within the next is decided at its start. Between ticks with nothing
//! to do, time jumps.
//!
//! ```
//! use skyhaul_lab::PlainLine;
//! use skyhaul_lab::world::{Bulk, Sink, World, WorldConfig, WorldPath};
//! use skyhaul_units::{Duration, FlowId};
//!
//! let paths = [10, 300].map(|ms| {
//!     let one_way_delay = Duration::from_millis(ms);
//!     WorldPath::new(PlainLine { one_way_delay, ..PlainLine::default() })
//! });
//! let (near, far) = (Bulk::new(FlowId(1)), Sink::default());
//! let mut world = World::new(WorldConfig::default(), &paths, 7, near, far);
//! assert!(world.open());
//! world.run_for(Duration::from_secs(2), |_| false);
//! assert!(world.far.user.delivered().as_u64() > 0);
//! ```

mod bulk;
mod grid;
mod quic;
mod sessions;
mod star;
mod tap;

pub use bulk::{Bulk, Sink};
pub use grid::{PathSet, Yield, limit};
pub(crate) use quic::queue;
pub use quic::{QuicLine, QuicWorld};
pub use sessions::{Over, Sessions};
pub use star::{Reach, Star, StarConfig};
pub use tap::Tap;

use crate::plain::{PlainLine, PlainPath};
use skyhaul_transport::{
    Event, Opening, Path as _, PathId, PathOptions, Session, SessionConfig, give_out, take_in,
};
use skyhaul_units::{Duration, Instant};
use tap::Tapped;

/// What uses a session: it feeds it, and takes what it gives.
pub trait User {
    /// Something happened.
    fn event(&mut self, now: Instant, session: &mut Session, event: Event);

    /// Called after events and at every tick that serves its side. Returns when it wants to be
    /// called by itself.
    fn work(&mut self, now: Instant, session: &mut Session) -> Option<Instant>;
}

impl<U: User + ?Sized> User for Box<U> {
    fn event(&mut self, now: Instant, session: &mut Session, event: Event) {
        (**self).event(now, session, event);
    }
    fn work(&mut self, now: Instant, session: &mut Session) -> Option<Instant> {
        (**self).work(now, session)
    }
}

/// The users of the two sides.
#[derive(Debug, Clone, Copy)]
pub struct Users<N, F> {
    /// Of the side that connects.
    pub near: N,
    /// Of the other.
    pub far: F,
}

/// What both sides have alike.
#[derive(Debug, Clone)]
pub struct WorldConfig {
    /// Of each side.
    pub sessions: [SessionConfig; 2],
    /// How often a busy side is served.
    pub tick: Duration,
}

impl Default for WorldConfig {
    /// Sessions as they are by default, served each millisecond.
    fn default() -> Self {
        Self { sessions: [SessionConfig::default(), SessionConfig::default()], tick: TICK }
    }
}

impl WorldConfig {
    /// Both sides with the same session.
    pub fn alike(session: SessionConfig) -> Self {
        Self { sessions: [session.clone(), session], tick: TICK }
    }
}

/// One of the paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorldPath {
    /// From the near side to the far one, and back.
    pub lines: [PlainLine; 2],
    /// What both sides may do with it.
    pub options: PathOptions,
}

impl WorldPath {
    /// A path that is the same in both directions, for any use.
    pub fn new(line: PlainLine) -> Self {
        Self { lines: [line, line], options: PathOptions::default() }
    }
}

/// One end of a world.
#[derive(Debug)]
pub struct Side<U> {
    /// Its session.
    pub session: Session,
    /// What uses it.
    pub user: U,
    /// When session or user want to be served.
    due: Instant,
}

/// Why a run did not get to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RunFault(String);

impl RunFault {
    fn new(what: impl core::fmt::Display) -> Self {
        Self(what.to_string())
    }
}

/// Two sides and the paths between them.
#[derive(Debug)]
pub struct World<N, F> {
    /// The side that greets first.
    pub near: Side<N>,
    /// The other.
    pub far: Side<F>,
    /// The paths between them; the session's [`PathId`]s are their places.
    pub paths: Vec<PlainPath>,
    now: Instant,
    tick: Duration,
    tap: Option<Tap>,
}

impl<N: User, F: User> World<N, F> {
    /// A world whose chances `seed` decides.
    pub fn new(config: WorldConfig, paths: &[WorldPath], seed: u64, near: N, far: F) -> Self {
        let [first, second] = config.sessions;
        let (mut near, mut far) = (Side::new(first, near), Side::new(second, far));
        let ahead = config.tick;
        let mut lines = Vec::with_capacity(paths.len());
        for (place, path) in (0u8..).zip(paths) {
            near.session.add_path(PathId(place), path.options);
            far.session.add_path(PathId(place), path.options);
            let ends = path.lines.map(|line| PlainLine { ahead, ..line });
            lines.push(PlainPath::between(ends, seed.wrapping_add(u64::from(place) << 32)));
        }
        Self { near, far, paths: lines, now: Instant::ZERO, tick: config.tick, tap: None }
    }

    /// Both sides introduce themselves; whether both sessions opened within 20 s.
    pub fn open(&mut self) -> bool {
        self.near.session.open(Opening { name: "near".to_owned(), ..Opening::default() });
        self.far.session.open(Opening { name: "far".to_owned(), ..Opening::default() });
        self.touch();
        self.run_for(OPENING, |world| world.near.session.is_open() && world.far.session.is_open())
    }

    /// Shows `tap` every datagram of the near side from now on.
    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    /// The virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// A side was changed from outside: both are served at once.
    pub fn touch(&mut self) {
        (self.near.due, self.far.due) = (self.now, self.now);
    }

    /// One more path from now on.
    pub fn add_path(&mut self, path: WorldPath, seed: u64) -> PathId {
        let id = PathId(u8::try_from(self.paths.len()).unwrap_or(u8::MAX));
        self.near.session.add_path(id, path.options);
        self.far.session.add_path(id, path.options);
        let ends = path.lines.map(|line| PlainLine { ahead: self.tick, ..line });
        self.paths.push(PlainPath::between(ends, seed));
        self.touch();
        id
    }

    /// Runs for `span`, or until `done`; whether it was `done`.
    pub fn run_for(&mut self, span: Duration, done: impl FnMut(&mut Self) -> bool) -> bool {
        self.run_until(self.now + span, done)
    }

    /// Runs until `limit`, or until `done`, which is asked after each tick; whether it was `done`.
    pub fn run_until(&mut self, limit: Instant, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        loop {
            if self.near.next_at(0, &self.paths) <= self.now {
                self.near.serve(self.now, 0, self.tap.as_mut(), &mut self.paths);
            }
            if self.far.next_at(1, &self.paths) <= self.now {
                self.far.serve(self.now, 1, None, &mut self.paths);
            }
            if done(self) {
                return true;
            }
            let next = self.near.next_at(0, &self.paths).min(self.far.next_at(1, &self.paths));
            let next = next.max(self.now + self.tick);
            if next > limit {
                self.now = limit.max(self.now);
                return false;
            }
            self.now = next;
        }
    }
}

impl<U: User> Side<U> {
    fn new(config: SessionConfig, user: U) -> Self {
        Self { session: Session::new(config), user, due: Instant::ZERO }
    }

    fn next_at(&self, side: usize, paths: &[PlainPath]) -> Instant {
        paths.iter().filter_map(|path| path.ends[side].next_event()).fold(self.due, Instant::min)
    }

    fn serve(
        &mut self,
        now: Instant,
        side: usize,
        mut tap: Option<&mut Tap>,
        paths: &mut [PlainPath],
    ) {
        for (place, path) in (0u8..).zip(paths.iter_mut()) {
            take_in(&mut self.session, PathId(place), &mut path.ends[side], now);
        }
        self.session.handle_timeout(now);
        self.tell(now);
        let wanted = self.user.work(now, &mut self.session);
        self.tell(now);
        for id in self.session.paths().fill_order() {
            let Some(path) = paths.get_mut(usize::from(id.0)) else { continue };
            let end = &mut path.ends[side];
            match &mut tap {
                Some(tap) => give_out(&mut self.session, id, &mut Tapped { end, tap }, now),
                None => give_out(&mut self.session, id, end, now),
            };
        }
        let wants_close = self.session.control_mut().wants_close();
        for path in paths.iter_mut() {
            if let Some(reason) = &wants_close {
                path.ends[side].close(now, reason);
            }
            path.exchange();
        }
        let waits = self.session.has_symbol();
        let free = paths.iter().filter(|_| waits).map(|path| path.ends[side].free_at());
        let due = [self.session.next_timeout(), wanted].into_iter().flatten().chain(free).min();
        self.due = due.unwrap_or(Instant::FAR_FUTURE);
    }

    fn tell(&mut self, now: Instant) {
        while let Some(event) = self.session.poll() {
            self.user.event(now, &mut self.session, event);
        }
    }
}

/// How long two sessions may take to open, at most.
const OPENING: Duration = Duration::from_secs(20);
/// The program's own tick at speed.
const TICK: Duration = Duration::from_millis(1);
