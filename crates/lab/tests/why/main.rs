//! Faults injected into lines and hosts of the model, each measured and judged as `skyhaul why` does, and how often the verdict
//! is right.
//!
//! What measures (the probe's both ends, a transfer of the production engine, its counters) does not know what was injected:
//! a case reaches it only as links, hosts and settings. Thresholds were set on seeds below [`HELD_OUT`]; what is asserted
//! is of seeds from there on. See the matrix with `cargo test -p skyhaul-lab --test why -- --nocapture`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(clippy::print_stdout, reason = "the matrix is for people to read")]

mod case;
mod draw;
mod line;
mod machine;
mod transfer;

use case::Case;
use skyhaul_probe::why::{Cause, Evidence, Verdict, judge};
use std::collections::BTreeMap;

fn verdict(fault: Cause, seed: u64) -> Verdict {
    let case = Case::draw(fault, seed);
    let evidence =
        Evidence { line: Some(line::measured(&case, seed)), transfer: Some(transfer::ran(&case, seed)) };
    let verdict = judge(&evidence);
    if verdict.cause != fault {
        println!(
            "{} taken for {} (seed {seed})\n  {case:?}\n  {evidence:?}",
            fault.name(),
            verdict.cause.name()
        );
        for other in &verdict.others {
            println!("  {:.2} {}", other.weight, other.sentence);
        }
        println!("  {:?}", verdict.evidence);
    }
    verdict
}

/// Faults down, verdicts across.
#[derive(Default)]
struct Matrix(BTreeMap<(Cause, Cause), u32>);

impl Matrix {
    fn of(seeds: core::ops::Range<u64>) -> Self {
        let jobs: Vec<(Cause, u64)> =
            Cause::ALL.into_iter().flat_map(|fault| seeds.clone().map(move |seed| (fault, seed))).collect();
        let mut matrix = Self::default();
        let judged: Vec<(Cause, Cause)> = std::thread::scope(|scope| {
            let halves = jobs.chunks(jobs.len().div_ceil(2)).map(|part| {
                scope.spawn(move || {
                    part.iter()
                        .map(|(fault, seed)| (*fault, verdict(*fault, *seed).cause))
                        .collect::<Vec<_>>()
                })
            });
            let running: Vec<_> = halves.collect();
            running.into_iter().flat_map(|half| half.join().unwrap()).collect()
        });
        for pair in judged {
            *matrix.0.entry(pair).or_default() += 1;
        }
        matrix
    }

    fn count(&self, fault: Cause, verdict: Cause) -> u32 {
        self.0.get(&(fault, verdict)).copied().unwrap_or(0)
    }

    fn right(&self) -> (u32, u32) {
        let right = Cause::ALL.into_iter().map(|cause| self.count(cause, cause)).sum();
        (right, self.0.values().sum())
    }

    fn print(&self, seeds: &core::ops::Range<u64>) {
        println!("seeds {seeds:?}; injected down, verdict across");
        let heads: Vec<String> = (1..=Cause::ALL.len()).map(|number| format!("{number:>3}")).collect();
        println!("{:>22} {}", "", heads.join(""));
        for (number, fault) in (1..).zip(Cause::ALL) {
            let counts = Cause::ALL.map(|verdict| match self.count(fault, verdict) {
                0 => "  .".to_owned(),
                count => format!("{count:>3}"),
            });
            println!("{number:>2} {:<19} {}", fault.name(), counts.concat());
        }
        let (right, all) = self.right();
        println!("{right} of {all} right: {:.1} %", f64::from(right) * 100.0 / f64::from(all.max(1)));
    }
}

#[test]
fn nine_in_ten_verdicts_are_right_on_seeds_that_no_threshold_was_set_on() {
    let seeds = HELD_OUT..HELD_OUT + 10;
    let matrix = Matrix::of(seeds.clone());
    matrix.print(&seeds);
    let (right, all) = matrix.right();
    assert!(right * 10 >= all * 9, "{right} of {all}");
    for fault in Cause::ALL {
        let found = matrix.count(fault, fault);
        assert!(found >= 6, "{} was found in {found} of 10 runs", fault.name());
    }
}

#[test]
fn the_same_seed_gives_the_same_verdict() {
    for fault in [Cause::RandomLoss, Cause::ReceiverProcessor] {
        assert_eq!(verdict(fault, 3), verdict(fault, 3));
    }
}

/// Seeds from here on were not looked at while thresholds were set.
const HELD_OUT: u64 = 1_000;
