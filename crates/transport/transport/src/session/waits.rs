//! How long a session has waited, and for what, before it could send more.
//!
//! After each round of filling the paths, the session is in one state until the next round; the
//! time between counts for that state. The sum of all is the time since the session opened.

use super::multipath::Multipath;
use skyhaul_units::{Duration, Instant};

/// How long a session waited for each cause. The sum of all is the time from the opening to the
/// last round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// For the application: everything it handed over is sent, and it could hand over more.
    pub application: Duration,
    /// For the far end to take more: flow control.
    pub window: Duration,
    /// For reports to free the send buffer: it is full, and all of it is in flight.
    pub buffer: Duration,
    /// For the class tree: a path has room, but the rates given to classes let nothing go.
    pub classes: Duration,
    /// For a path to have room: its congestion controller's window or its pacing.
    pub path: Duration,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Application,
    Window,
    Buffer,
    Classes,
    Path,
}

/// Measures how long a session waits for what.
#[derive(Debug, Default)]
pub struct WaitMeter {
    state: Option<(Wait, Instant)>,
    waits: Waits,
}

impl Waits {
    /// The sum of all.
    pub fn total(&self) -> Duration {
        self.application + self.window + self.buffer + self.classes + self.path
    }

    /// The waits since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            application: self.application.saturating_sub(earlier.application),
            window: self.window.saturating_sub(earlier.window),
            buffer: self.buffer.saturating_sub(earlier.buffer),
            classes: self.classes.saturating_sub(earlier.classes),
            path: self.path.saturating_sub(earlier.path),
        }
    }
}

impl WaitMeter {
    fn becomes(&mut self, now: Instant, next: Wait) {
        let mut next = next;
        if let Some((state, since)) = self.state {
            let span = now.since(since);
            *match state {
                Wait::Application => &mut self.waits.application,
                Wait::Window => &mut self.waits.window,
                Wait::Buffer => &mut self.waits.buffer,
                Wait::Classes => &mut self.waits.classes,
                Wait::Path => &mut self.waits.path,
            } += span;
            // Of several paths filled in one round, one without room is what the session waits for.
            if span == Duration::ZERO && state == Wait::Path && next == Wait::Classes {
                next = Wait::Path;
            }
        }
        self.state = Some((next, now));
    }
}

/// Whether a path could have carried more when it was filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathRoom {
    Left,
    None,
}

impl WaitMeter {
    /// The waits up to the last time that the paths were filled.
    pub const fn so_far(&self) -> Waits {
        self.waits
    }

    /// The waits up to `now`: the time since then counts for the state that the last round left.
    pub fn until(&self, now: Instant) -> Waits {
        let mut watch = Self { state: self.state, waits: self.waits };
        if let Some((state, _)) = watch.state {
            watch.becomes(now, state);
        }
        watch.waits
    }

    /// A path of an open session was filled as far as it went.
    pub(super) fn filled(&mut self, now: Instant, room: PathRoom, multipath: &Multipath) {
        let Multipath { sender, clock, .. } = multipath;
        let backlog = &sender.outbox.backlog;
        let state = if sender.outbox.is_held_back() {
            Wait::Window
        } else if multipath.has_symbol() || sender.outbox.has_symbol() {
            match room {
                PathRoom::Left if sender.sharing.class_due(*clock, backlog).is_some() => {
                    Wait::Classes
                }
                PathRoom::Left | PathRoom::None => Wait::Path,
            }
        } else if sender.is_full() {
            Wait::Buffer
        } else {
            Wait::Application
        };
        self.becomes(now, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_to_the_state_in_which_it_passed_and_the_sum_is_all_of_it() {
        let mut watch = WaitMeter::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let course = [
            (10, Wait::Application),
            (15, Wait::Path),
            (18, Wait::Window),
            (40, Wait::Buffer),
            (41, Wait::Classes),
            (50, Wait::Application),
        ];
        for (millis, wait) in course {
            watch.becomes(at(millis), wait);
        }
        let millis = Duration::from_millis;
        let waits = watch.waits;
        assert_eq!(
            (waits.application, waits.path, waits.window),
            (millis(5), millis(3), millis(22))
        );
        assert_eq!(
            (waits.buffer, waits.classes, waits.total()),
            (millis(1), millis(9), millis(40))
        );
        assert_eq!(waits.since(&waits), Waits::default());
    }

    #[test]
    fn a_session_that_is_left_alone_waits_on() {
        let mut watch = WaitMeter::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(watch.until(at(9)), Waits::default());
        watch.becomes(at(10), Wait::Application);
        assert_eq!(watch.so_far(), Waits::default());
        assert_eq!(watch.until(at(35)).application, Duration::from_millis(25));
        assert_eq!(watch.so_far(), Waits::default(), "looking changes nothing");
    }

    #[test]
    fn of_several_paths_the_one_without_room_is_waited_for() {
        let mut watch = WaitMeter::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        watch.becomes(at(1), Wait::Path);
        watch.becomes(at(1), Wait::Classes);
        watch.becomes(at(3), Wait::Classes);
        assert_eq!(
            (watch.waits.path, watch.waits.classes),
            (Duration::from_millis(2), Duration::ZERO)
        );
    }
}
