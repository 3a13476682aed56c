//! Looks at the node: one thread copies what all others show, once a second, and everybody who
//! asks reads its newest copy. However many ask, the data threads are asked as often.

mod rates;
mod taker;

pub(crate) use rates::NodeRates;
pub(crate) use taker::{LookTaker, NodeLook};

use crate::fault::Fault;
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The thread that looks.
#[derive(Debug)]
pub(crate) struct Looks {
    desk: Arc<LookDesk>,
    thread: Option<JoinHandle<()>>,
}

/// When the node's main thread turned last.
#[derive(Debug)]
pub(crate) struct HeartBeat {
    clock: Clock,
    at: AtomicU64,
}

/// What the thread shares with those who ask.
#[derive(Debug)]
struct LookDesk {
    clock: Clock,
    beat: Arc<HeartBeat>,
    newest: Mutex<NewestLook>,
    changed: Condvar,
}

#[derive(Debug)]
struct NewestLook {
    look: Arc<NodeLook>,
    /// When it was begun.
    begun: Instant,
    /// Looks that were begun before do not show an order that was given.
    expired: Instant,
    is_wanted: bool,
    is_ending: bool,
}

/// Between two looks that nobody asked for.
const EVERY: Duration = Duration::from_secs(1);
/// A look of the command line is no older. Looks that it asks for are as far apart.
const FRESH: Duration = Duration::from_millis(100);
/// Whoever asks gets an older look rather than wait longer: a data thread holds its lock.
const PATIENCE: Duration = Duration::from_secs(1);
/// The main thread turns twenty times a second; reading a large configuration again takes seconds.
const TURNS_WITHIN: Duration = Duration::from_secs(30);

impl HeartBeat {
    /// It turns now.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, at: AtomicU64::new(clock.now().as_nanos()) }
    }

    fn turned(&self) {
        self.at.store(self.clock.now().as_nanos(), Ordering::Relaxed);
    }

    /// Its clock.
    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }

    /// Whether it turned lately.
    pub(crate) fn is_alive(&self) -> bool {
        let at = Instant::from_nanos(self.at.load(Ordering::Relaxed));
        self.clock.now().since(at) < TURNS_WITHIN
    }
}

impl Looks {
    /// Begins to look, `first` having been taken. `show` is told each regular look.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start(
        taker: LookTaker,
        first: Arc<NodeLook>,
        beat: Arc<HeartBeat>,
        show: impl Fn(&Arc<NodeLook>) + Send + 'static,
    ) -> Result<Self, Fault> {
        let clock = taker.clock();
        let begun = clock.now();
        let newest =
            NewestLook { look: first, begun, expired: begun, is_wanted: false, is_ending: false };
        let newest = Mutex::new(newest);
        let desk = Arc::new(LookDesk { clock, beat, newest, changed: Condvar::new() });
        let of = desk.clone();
        let thread = std::thread::Builder::new()
            .name("looks".to_owned())
            .spawn(move || of.run(taker, show))
            .map_err(|error| {
                let help = "raise this user's process limit (ulimit -u)";
                Fault::environment(format!("cannot start a thread ({error})"), "the status", help)
            })?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// A look that was begun less than 100 ms ago, and after every order that was given.
    pub(crate) fn fresh(&self) -> Arc<NodeLook> {
        let clock = self.desk.clock;
        let asked = clock.now();
        let mut newest = self.desk.newest();
        loop {
            let is_fresh = newest.begun + FRESH >= asked && newest.begun >= newest.expired;
            let left = (asked + PATIENCE).since(clock.now());
            if is_fresh || left == Duration::ZERO || newest.is_ending {
                return newest.look.clone();
            }
            newest.is_wanted = true;
            self.desk.changed.notify_all();
            newest = self.desk.wait(newest, left);
        }
    }

    /// An order was carried out: looks from before do not show it.
    pub(crate) fn expire(&self) {
        self.desk.newest().expired = self.desk.clock.now();
    }

    /// The node's main thread turns.
    pub(crate) fn turned(&self) {
        self.desk.beat.turned();
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        self.desk.newest().is_ending = true;
        self.desk.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was logged.
            let _ = thread.join();
        }
    }
}

impl LookDesk {
    fn newest(&self) -> MutexGuard<'_, NewestLook> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        newest: MutexGuard<'a, NewestLook>,
        span: Duration,
    ) -> MutexGuard<'a, NewestLook> {
        let waited = self.changed.wait_timeout(newest, span.to_std());
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn run(&self, mut taker: LookTaker, show: impl Fn(&Arc<NodeLook>)) {
        let mut due = self.clock.now() + EVERY;
        while self.pause(due) {
            let begun = self.clock.now();
            let is_regular = begun >= due;
            let look = match is_regular {
                true => taker.take_regular(),
                false => taker.take(),
            };
            let look = Arc::new(look);
            {
                let mut newest = self.newest();
                newest.look = look.clone();
                newest.begun = begun;
                newest.is_wanted = false;
            }
            self.changed.notify_all();
            if is_regular {
                show(&look);
                // A machine that was asleep does not look for all the time.
                due = (due + EVERY).max(begun + FRESH);
            }
        }
    }

    /// Waits until a look is due or wanted. Returns whether the node goes on.
    fn pause(&self, due: Instant) -> bool {
        let mut newest = self.newest();
        loop {
            if newest.is_ending {
                return false;
            }
            let soonest = newest.begun + FRESH;
            let until = if newest.is_wanted { soonest.min(due) } else { due };
            let left = until.since(self.clock.now());
            if left == Duration::ZERO {
                return true;
            }
            newest = self.wait(newest, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{NodeStatus, StationStatus};
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    fn looks(taken: &Arc<AtomicUsize>, show: impl Fn(&Arc<NodeLook>) + Send + 'static) -> Looks {
        let clock = Clock::start();
        let counted = taken.clone();
        let status = move || {
            let nth = counted.fetch_add(1, Ordering::Relaxed);
            let station = StationStatus { name: nth.to_string(), ..StationStatus::default() };
            NodeStatus { station: Some(station), ..NodeStatus::default() }
        };
        let mut taker = LookTaker::new(clock, Box::new(status), None);
        let first = Arc::new(taker.take_regular());
        Looks::start(taker, first, Arc::new(HeartBeat::new(clock)), show).unwrap()
    }

    #[test]
    fn many_who_ask_do_not_make_the_node_look_more_often() {
        let taken = Arc::new(AtomicUsize::new(0));
        let looks = looks(&taken, |_| {});
        let began = looks.desk.clock.now();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1_000).for_each(|_| drop(looks.fresh())));
            }
        });
        let most = looks.desk.clock.now().since(began).as_millis() / 100 + 3;
        let taken = taken.load(Ordering::Relaxed) as u64;
        assert!(taken <= most, "{taken} looks, {most} at most");
    }

    #[test]
    fn a_look_after_an_order_was_begun_after_it() {
        let taken = Arc::new(AtomicUsize::new(0));
        let looks = looks(&taken, |_| {});
        for _ in 0..3 {
            let before = taken.load(Ordering::Relaxed);
            looks.expire();
            let look = looks.fresh();
            let name: usize = look.status.station.as_ref().unwrap().name.parse().unwrap();
            assert!(name >= before, "{name} was taken before {before}");
        }
    }

    #[test]
    fn regular_looks_are_shown_in_order_and_end_with_the_node() {
        let taken = Arc::new(AtomicUsize::new(0));
        let (sender, shown) = mpsc::channel();
        let looks = looks(&taken, move |look| {
            let _ = sender.send(look.number);
        });
        let numbers: Vec<u64> = shown.iter().take(2).collect();
        assert!(numbers[0] < numbers[1], "{numbers:?}");
        drop(looks);
        assert!(shown.iter().count() < 3);
    }
}
