//! Disturbance of a run by other programs. A disturbed run is repeated, and no page is written from
//! one that stayed disturbed: its figures would show the machine, and not the tools.

use crate::gone::Gone;
use crate::notes::note;
use crate::wait::pause;
use core::fmt::Write;
use serde_json::{Value, json};
use skyhaul_net::Clock;
use skyhaul_units::Duration;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Processor time since the machine began, in the ticks of `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Of all processors, idle or not.
    whole: u64,
    /// In programs and kernel threads. Interrupts do not count: they are mostly packets of the
    /// line.
    busy: u64,
    /// Taken by the hypervisor.
    stolen: u64,
    /// Of `busy`, in this process and in all that it started and waited for.
    own: u64,
}

/// What a run lost to others, as shares of the time of all processors.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Disturbance {
    /// To other programs.
    pub foreign: f64,
    /// To the hypervisor.
    pub stolen: f64,
}

/// What becomes of a disturbed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisturbedRuns {
    /// It is repeated, and no page is written if that does not help.
    Repeat,
    /// Its figure counts.
    Take,
}

/// Watches the runs of a comparison.
pub struct QuietWatch {
    pub policy: DisturbedRuns,
    clock: Clock,
    usage: Box<dyn Fn() -> Result<Usage, Gone>>,
    /// For repeating, in the whole comparison.
    left: Cell<Duration>,
}

/// The conditions of the runs of an experiment.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    met: Vec<Disturbance>,
    repeated: u32,
    /// Of one minute, before the first run and after the last one.
    load: Option<(f64, f64)>,
}

impl Usage {
    /// Up to now. Programs that were started and not waited for count as others.
    pub fn now() -> Result<Self, Gone> {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(&read("/proc/stat"), &read("/proc/self/stat")).ok_or_else(|| {
            Gone::Failed("/proc/stat does not say what the processors do".to_owned())
        })
    }

    /// From the first line of `/proc/stat` and from `/proc/self/stat` (proc(5)).
    fn parse(machine: &str, process: &str) -> Option<Self> {
        let line = machine.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let [user, nice, system, idle, waiting, hard, soft, stolen, ..] = ticks[..] else {
            return None;
        };
        // A program's name can contain blanks: the fields follow its closing bracket.
        let (_, fields) = process.rsplit_once(')')?;
        let times = fields.split_whitespace().skip(11).take(4);
        let times: Vec<u64> = times.map(str::parse).collect::<Result<_, _>>().ok()?;
        (times.len() == 4).then(|| Self {
            whole: user + nice + system + idle + waiting + hard + soft + stolen,
            busy: user + nice + system,
            stolen,
            own: times.iter().sum(),
        })
    }

    /// What others took from `earlier` to this.
    pub fn since(&self, earlier: &Self) -> Disturbance {
        let span = |of: fn(&Self) -> u64| of(self).saturating_sub(of(earlier));
        let whole = span(|usage| usage.whole).max(1) as f64;
        let foreign = span(|usage| usage.busy).saturating_sub(span(|usage| usage.own));
        Disturbance {
            foreign: foreign as f64 / whole,
            stolen: span(|usage| usage.stolen) as f64 / whole,
        }
    }
}

impl Disturbance {
    /// Whether a figure may be others' doing.
    pub fn is_too_much(&self) -> bool {
        self.foreign > FOREIGN_MOST || self.stolen > STOLEN_MOST
    }

    /// The one of two that took more.
    pub fn worse_of(self, other: Self) -> Self {
        if other.sum() > self.sum() { other } else { self }
    }

    fn sum(&self) -> f64 {
        self.foreign + self.stolen
    }
}

impl core::fmt::Display for Disturbance {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (foreign, stolen) = (percent(self.foreign), percent(self.stolen));
        write!(f, "other programs had {foreign} of the processors' time, the hypervisor {stolen}")
    }
}

impl QuietWatch {
    /// Of runs that take `planned` in all.
    pub fn new(policy: DisturbedRuns) -> Self {
        Self {
            policy,
            clock: Clock::start(),
            usage: Box::new(Usage::now),
            left: Cell::new(Duration::ZERO),
        }
    }

    /// Gives the time for repeating: a share of what all runs are to take.
    pub fn plan(&self, planned: Duration) {
        self.left.set(allowance(planned));
    }

    /// What others take while nothing of ours runs.
    pub fn look(&self) -> Result<Disturbance, Gone> {
        let before = (self.usage)()?;
        pause(LOOK);
        Ok((self.usage)()?.since(&before))
    }

    /// Runs `attempt`, and repeats it while other programs disturb it. Returns the result of the
    /// least disturbed run.
    pub fn run<T>(
        &self,
        stop: &AtomicBool,
        name: &str,
        conditions: &mut Conditions,
        mut attempt: impl FnMut() -> Result<T, Gone>,
    ) -> Result<T, Gone> {
        conditions.begin();
        let mut best: Option<(Disturbance, Result<T, Gone>)> = None;
        for repeats in 0..=REPEATS {
            let (before, begun) = ((self.usage)()?, self.clock.now());
            let outcome = attempt();
            if matches!(outcome, Err(Gone::Interrupted)) {
                return outcome;
            }
            let (met, took) = ((self.usage)()?.since(&before), self.clock.now().since(begun));
            if repeats > 0 {
                conditions.repeated += 1;
                self.left.set(self.left.get().saturating_sub(took));
            }
            if best.as_ref().is_none_or(|(least, _)| met.sum() < least.sum()) {
                best = Some((met, outcome));
            }
            let is_last =
                repeats == REPEATS || self.policy == DisturbedRuns::Take || !met.is_too_much();
            if is_last || self.left.get() < took {
                break;
            }
            note(&format!("{name}: {met}: it runs again"));
            self.await_quiet(stop, took)?;
        }
        let (met, outcome) = best.ok_or(Gone::Interrupted)?;
        conditions.end(met);
        outcome
    }

    /// Waits until others leave the machine alone, no longer than a run takes and than there is
    /// time for. A look must fit into that.
    fn await_quiet(&self, stop: &AtomicBool, most: Duration) -> Result<(), Gone> {
        let begun = self.clock.now();
        let limit = most.min(self.left.get().saturating_sub(most));
        while self.clock.now().since(begun) + LOOK <= limit {
            if stop.load(Ordering::Relaxed) {
                return Err(Gone::Interrupted);
            }
            if !self.look()?.is_too_much() {
                break;
            }
        }
        self.left.set(self.left.get().saturating_sub(self.clock.now().since(begun)));
        Ok(())
    }
}

impl Conditions {
    fn begin(&mut self) {
        let now = load();
        self.load.get_or_insert((now, now));
    }

    fn end(&mut self, met: Disturbance) {
        self.met.push(met);
        self.load = self.load.map(|(first, _)| (first, load()));
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.met.len()
    }

    /// How many of them were disturbed, however often they were repeated.
    pub fn disturbed(&self) -> usize {
        self.met.iter().filter(|met| met.is_too_much()).count()
    }

    /// The worst that a run met.
    pub fn worst(&self) -> Disturbance {
        self.met.iter().fold(Disturbance::default(), |worst, met| worst.worse_of(*met))
    }

    /// For people.
    pub fn words(&self) -> String {
        let mut words = format!("{} processors", processors());
        if let Some((first, last)) = self.load {
            let _ = write!(
                words,
                "; load {first:.2} before the first run, {last:.2} after the last, their own \
                included"
            );
        }
        let (foreign, stolen) = (self.spread(|met| met.foreign), self.spread(|met| met.stolen));
        if let Some(([low, middle, high], [_, _, most])) = foreign.zip(stolen) {
            let (low, middle, high, most) =
                (percent(low), percent(middle), percent(high), percent(most));
            let _ = write!(
                words,
                "; other programs had {middle} of the processors' time in the median run ({low} to \
                {high}), the hypervisor {most} at most"
            );
        }
        let _ = write!(words, "; {} of {} runs were repeated", self.repeated, self.runs());
        if self.disturbed() > 0 {
            let _ = write!(words, ", {} are disturbed all the same", self.disturbed());
        }
        words
    }

    /// One object: shares of the processors' time.
    pub fn json(&self) -> Value {
        let spread = |of: fn(&Disturbance) -> f64| {
            self.spread(of)
                .map(|[min, median, max]| json!({ "min": min, "median": median, "max": max }))
        };
        json!({
            "processors": processors(), "runs": self.runs(), "repeated": self.repeated,
            "disturbed": self.disturbed(), "foreign": spread(|met| met.foreign),
            "stolen": spread(|met| met.stolen), "load_first": self.load.map(|(first, _)| first),
            "load_last": self.load.map(|(_, last)| last),
        })
    }

    /// Least, median and most.
    fn spread(&self, of: fn(&Disturbance) -> f64) -> Option<[f64; 3]> {
        let mut values: Vec<f64> = self.met.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        Some([*values.first()?, values[values.len() / 2], *values.last()?])
    }
}

/// What repeating may take of a comparison of `planned`.
pub fn allowance(planned: Duration) -> Duration {
    planned.scaled(1, ALLOWANCE_PART).max(ALLOWANCE_LEAST)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// Of the last minute.
fn load() -> f64 {
    let said = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    said.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The share of all processors that other programs can have. An idle machine gives them less than
/// one percent, and the error of ticks in a run of ten seconds is about as large. A program that is
/// always busy takes half of two processors, and one of 32.
pub const FOREIGN_MOST: f64 = 0.05;

/// What the hypervisor may have: it takes a processor away in the middle of whatever runs there,
/// which a program beside does not.
pub const STOLEN_MOST: f64 = 0.02;

/// How often a run is repeated: a disturbance that lasts longer is permanent.
const REPEATS: u32 = 2;

/// Repeating may take a tenth of the time that all runs are to take, or the least that a short
/// comparison needs.
const ALLOWANCE_PART: u64 = 10;
const ALLOWANCE_LEAST: Duration = Duration::from_secs(60);

/// How long the machine is looked at while nothing of ours runs: 200 ticks of each processor.
const LOOK: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn usage(machine: &str, own: u64) -> Usage {
        let process =
            format!("7 (a (b) c) S 1 7 7 0 -1 4194304 9 0 0 0 {own} 0 0 0 20 0 1 0 97458 3133440");
        Usage::parse(machine, &process).unwrap()
    }

    #[test]
    fn what_others_and_the_hypervisor_took_is_told_from_ones_own_time() {
        // Two processors for ten seconds: 2,000 ticks.
        let before = usage("cpu  1000 0 200 5000 10 0 40 5 3 0\ncpu0 1 2 3", 700);
        let quiet = usage("cpu  1800 0 400 5990 10 0 40 15 3 0", 1_690);
        let met = quiet.since(&before);
        assert_eq!((met.foreign, met.stolen), (0.005, 0.005));
        assert!(!met.is_too_much());
        let beside = usage("cpu  2500 100 400 5190 10 0 40 5 3 0", 1_700).since(&before);
        assert!(
            (beside.foreign - 800.0 / 1_990.0).abs() < 1e-9 && beside.is_too_much(),
            "{beside}"
        );
        let stolen = usage("cpu  1600 0 400 5900 10 0 40 105 3 0", 1_500).since(&before);
        assert!(stolen.foreign < FOREIGN_MOST && stolen.is_too_much(), "{stolen}");
        // Time by ticks may be less than a process's own, which is exact.
        assert_eq!(usage("cpu  1500 0 200 6500 10 0 40 5 3 0", 1_300).since(&before).foreign, 0.0);
    }

    #[test]
    fn the_time_of_reaped_children_is_own_time_and_unreadable_counts_are_refused() {
        let machine = "cpu  10 0 0 0 0 0 0 0 0 0";
        let read = Usage::parse(machine, "7 (x) S 1 7 7 0 -1 0 0 0 0 0 1 2 3 4 20").unwrap();
        assert_eq!(read.own, 10);
        for (machine, process) in
            [("", "7 (x) S"), ("cpu  1 2 3", "7 (x) S"), (machine, "7 (x) S 1 2"), (machine, "")]
        {
            assert_eq!(Usage::parse(machine, process), None, "{machine} {process}");
        }
        assert!(Usage::now().is_ok());
    }

    #[test]
    fn conditions_give_the_least_the_median_and_the_most() {
        let mut conditions = Conditions { load: Some((0.25, 1.5)), ..Conditions::default() };
        for foreign in [0.01, 0.3, 0.02] {
            conditions.met.push(Disturbance { foreign, stolen: 0.001 });
        }
        conditions.repeated = 2;
        let words = conditions.words();
        assert!(
            words.contains("2.0 % of the processors' time in the median run (1.0 % to 30.0 %)"),
            "{words}"
        );
        assert!(
            words.contains("load 0.25 before")
                && words.contains("2 of 3 runs were repeated, 1 are"),
            "{words}"
        );
        assert_eq!((conditions.disturbed(), conditions.worst().foreign), (1, 0.3));
        let json = conditions.json();
        assert_eq!((&json["foreign"]["median"], &json["repeated"]), (&json!(0.02), &json!(2)));
    }

    /// Runs one attempt after the other, of which others have these shares of the processors.
    /// Returns the number of the attempt whose result counts.
    fn attempts<const N: usize>(
        policy: DisturbedRuns,
        foreign: [u64; N],
        planned: Duration,
    ) -> (u32, Conditions) {
        let shares = RefCell::new(foreign.into_iter());
        let machine = RefCell::new(usage("cpu  0 0 0 0 0 0 0 0 0 0", 0));
        let is_begin = Cell::new(false);
        let watch = QuietWatch {
            // Each attempt asks before it and behind it, and takes 1,000 ticks.
            usage: Box::new(move || {
                is_begin.set(!is_begin.get());
                let mut machine = machine.borrow_mut();
                if !is_begin.get() {
                    machine.whole += 1_000;
                    machine.busy += shares.borrow_mut().next().expect("no more attempts");
                }
                Ok(*machine)
            }),
            ..QuietWatch::new(policy)
        };
        watch.plan(planned);
        let (mut conditions, mut ran) = (Conditions::default(), 0);
        let counts = watch.run(&AtomicBool::new(false), "mine", &mut conditions, || {
            ran += 1;
            Ok(ran)
        });
        assert_eq!((conditions.runs(), conditions.repeated), (1, ran - 1));
        (counts.unwrap(), conditions)
    }

    #[test]
    fn a_disturbed_run_is_repeated_and_the_least_disturbed_counts() {
        let planned = Duration::from_secs(10);
        let (counts, conditions) = attempts(DisturbedRuns::Repeat, [400, 20], planned);
        assert_eq!((counts, conditions.repeated, conditions.disturbed()), (2, 1, 0));
        let (counts, conditions) = attempts(DisturbedRuns::Repeat, [400, 300, 350], planned);
        assert_eq!((counts, conditions.repeated, conditions.disturbed()), (2, 2, 1));
        let (counts, conditions) = attempts(DisturbedRuns::Repeat, [20], planned);
        assert_eq!((counts, conditions.repeated, conditions.disturbed()), (1, 0, 0));
    }

    #[test]
    fn a_disturbed_run_is_not_repeated_if_it_is_accepted() {
        let planned = Duration::from_secs(10);
        let (counts, conditions) = attempts(DisturbedRuns::Take, [400], planned);
        assert_eq!((counts, conditions.repeated, conditions.disturbed()), (1, 0, 1));
    }

    #[test]
    fn repeating_takes_a_tenth_of_a_long_comparison() {
        assert_eq!(allowance(Duration::from_secs(30 * 60)), Duration::from_secs(3 * 60));
        assert_eq!(allowance(Duration::from_secs(10)), ALLOWANCE_LEAST);
    }
}
