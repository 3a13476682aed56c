//! What a run is made of: the ends, the lines, and the steps; made from a seed, and made smaller
//! where it fails.

use super::chance::Chance;
use super::line::{Faults, LineConfig};
use skyhaul_transport::PathOptions;
use skyhaul_units::{Duration, Rate};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Everything that decides a run.
#[derive(Debug, Clone)]
pub struct Case {
    pub seed: u64,
    pub setup: Setup,
    pub steps: Vec<Step>,
}

/// The ends and the lines between them.
#[derive(Debug, Clone)]
pub struct Setup {
    pub lines: Vec<(LineConfig, PathOptions)>,
    pub window: u64,
    pub send_buffer: u64,
    pub repair: bool,
    pub classes: bool,
    /// Which of the policies.
    pub policy: u64,
}

/// One step of a run.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Wait(Duration),
    /// All that was handed over is settled within this time.
    Await(Duration),
    /// An end hands a block over.
    Send(usize, Wanted),
    /// An end takes back one of the blocks it handed over lately.
    Cancel(usize, u64),
    /// A loose flow goes on one path only, or on all again.
    Pin(usize, u32, Option<u64>),
    AddPath(u64),
    /// One end stops using a path; the other learns of it.
    DropPath(u64, usize),
    /// Nothing arrives for a while, in the directions of these bits.
    Cut(u64, u64, Duration),
    Faults(u64, Faults),
    /// An application keeps what it receives, or gives it back.
    Hold(usize, bool),
    /// An application says what it has stored.
    Receipts(usize),
    /// An end dies and comes back with what it stored: the session begins anew at both.
    Restart,
}

/// A block to be.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Durable flows are kept by the application over restarts.
    pub durable: bool,
    pub flow: u32,
    pub len: usize,
    pub expendable: bool,
    pub deadline: Option<Duration>,
    pub priority: u8,
    pub class: u64,
    /// The block handed over so many before.
    pub depends: Option<u64>,
    pub alone: bool,
    pub redundant: bool,
}

impl Wanted {
    /// A block of a durable flow with nothing special.
    pub const fn durable(len: usize) -> Self {
        Self {
            durable: true,
            flow: 0,
            len,
            expendable: false,
            deadline: None,
            priority: 1,
            class: 0,
            depends: None,
            alone: false,
            redundant: false,
        }
    }
}

impl Case {
    /// A run over these lines, with everything else usual.
    pub fn over(lines: &[LineConfig], steps: Vec<Step>) -> Self {
        let lines = lines.iter().map(|line| (*line, PathOptions::default())).collect();
        let (window, send_buffer) = (64 << 20, 64 << 20);
        let setup = Setup { lines, window, send_buffer, repair: true, classes: false, policy: 3 };
        Self { seed: 1, setup, steps }
    }

    pub fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let paths = chance.between(1, 4);
        let clean = chance.happens(200);
        let options = |chance: &mut Chance| PathOptions {
            metered: chance.happens(150),
            standby: chance.happens(150),
        };
        let setup = Setup {
            lines: (0..paths).map(|_| (line(&mut chance, clean), options(&mut chance))).collect(),
            window: chance.one_of(&[20_000, 60_000, 250_000, 1_000_000]),
            send_buffer: chance.one_of(&[60_000, 250_000, 1_000_000]),
            repair: chance.happens(700),
            classes: chance.happens(300),
            policy: chance.below(5),
        };
        let count = chance.between(5, 60);
        let busy = chance.one_of(&[5, 30, 200]);
        let steps = (0..count).map(|_| step(&mut chance, &setup, busy)).collect();
        Self { seed, setup, steps }
    }

    /// The smallest case found that fails too, and how it does.
    pub fn shrunk(self, run: impl Fn(&Self)) -> (Self, String) {
        let fails = |case: &Self| catch_unwind(AssertUnwindSafe(|| run(case))).err();
        let Some(first) = fails(&self) else { return (self, "it does not fail again".to_owned()) };
        let (mut best, mut failure) = (self, said(first.as_ref()));
        let mut size = best.steps.len().div_ceil(2).max(1);
        let mut attempts = 0;
        loop {
            let mut at = 0;
            let mut smaller = false;
            while at < best.steps.len() && attempts < SHRINK_MAX {
                let mut candidate = best.clone();
                candidate.steps.drain(at..(at + size).min(best.steps.len()));
                attempts += 1;
                match fails(&candidate) {
                    Some(said_so) => {
                        (best, failure, smaller) = (candidate, said(said_so.as_ref()), true);
                    }
                    None => at += size,
                }
            }
            if size == 1 && !smaller || attempts >= SHRINK_MAX {
                break;
            }
            size = (size / 2).max(1);
        }
        for candidate in best.simpler() {
            if let Some(said_so) = fails(&candidate) {
                (best, failure) = (candidate, said(said_so.as_ref()));
            }
        }
        (best, failure)
    }

    /// The same with one thing less each.
    fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut case = self.clone();
            change(&mut case);
            found.push(case);
        };
        for line in 0..self.setup.lines.len() {
            with(&|case| case.setup.lines[line].0.faults = Faults::default());
            with(&|case| case.setup.lines[line].1 = PathOptions::default());
        }
        with(&|case| case.setup.repair = false);
        with(&|case| case.setup.classes = false);
        if self.setup.lines.len() > 1 {
            with(&|case| case.setup.lines.truncate(self.setup.lines.len() - 1));
        }
        found
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Runs spent on a smaller case.
const SHRINK_MAX: u32 = 300;

fn line(chance: &mut Chance, clean: bool) -> LineConfig {
    let delay = Duration::from_millis(chance.one_of(&[2, 15, 60, 80, 300]));
    let back = if chance.happens(200) { delay * 2 } else { delay };
    LineConfig {
        rate: Rate::from_mbps(chance.one_of(&[1, 4, 10, 40])),
        delay: [delay, back],
        payload: chance.one_of(&[600, 1200, 1438]),
        measured: chance.happens(700),
        faults: if clean { Faults::default() } else { faults(chance) },
    }
}

fn faults(chance: &mut Chance) -> Faults {
    let mut some =
        |often: u64, most: u64| if chance.happens(often) { chance.below(most) } else { 0 };
    Faults {
        loss: some(700, 250),
        duplicate: some(300, 100),
        reorder: some(300, 300),
        spoil: some(300, 60),
        lies: some(300, 60),
        silence: some(300, 60),
    }
}

fn step(chance: &mut Chance, setup: &Setup, busy: u64) -> Step {
    let side = chance.below(2) as usize;
    let path = chance.below(8);
    match chance.below(100) {
        0..15 => Step::Wait(Duration::from_millis(chance.below(busy * 8) + 1)),
        15..72 => Step::Send(side, wanted(chance, setup)),
        72..77 => Step::Cancel(side, chance.below(12)),
        77..80 => Step::Pin(side, chance.below(3) as u32, chance.happens(600).then_some(path)),
        80..83 => Step::AddPath(path),
        83..86 => Step::DropPath(path, side),
        86..90 => Step::Cut(path, chance.between(1, 3), Duration::from_millis(chance.below(3000))),
        90..92 => Step::Faults(path, faults(chance)),
        92..95 => Step::Hold(side, chance.happens(500)),
        95..98 => Step::Receipts(side),
        _ => Step::Restart,
    }
}

fn wanted(chance: &mut Chance, setup: &Setup) -> Wanted {
    let durable = chance.happens(350);
    let expendable = !durable && chance.happens(600);
    let most = (setup.window - 300).min(70_000);
    let len = match chance.below(4) {
        0 => chance.between(1, 200),
        1 | 2 => chance.between(200, 6_000),
        _ => chance.between(6_000, most),
    };
    let span = Duration::from_millis(chance.one_of(&[1, 40, 150, 400, 1_000, 5_000]));
    Wanted {
        durable,
        flow: chance.below(3) as u32,
        len: len as usize,
        expendable,
        deadline: (expendable || chance.happens(200)).then_some(span),
        priority: chance.below(3) as u8,
        class: chance.below(3),
        depends: (!durable && chance.happens(250)).then(|| chance.below(4)),
        alone: chance.happens(200),
        redundant: chance.happens(100),
    }
}
