//! Four applications of two nodes in one session: the program's own scenario, in short, and on a
//! thinner line.

use crate::thin::thin;
use skyhaul_lab::scenario::{BarResult, CellSelection, Silent, run};
use std::num::NonZeroUsize;

/// A quarter of the scenario's rates.
const RATES: [(&str, &str); 7] = [
    ("93 Mbit/s", "23.25 Mbit/s"),
    ("36 Mbit/s", "9 Mbit/s"),
    ("31 Mbit/s", "7.75 Mbit/s"),
    ("20 Mbit/s", "5 Mbit/s"),
    ("16 Mbit/s", "4 Mbit/s"),
    ("15 Mbit/s", "3.75 Mbit/s"),
    ("\"8 Mbit/s", "\"2 Mbit/s"),
];

#[test]
fn four_applications_in_one_session_have_what_each_was_promised() {
    let lossy: CellSelection = "loss=1 %".parse().unwrap();
    let scenarios = [thin("site.toml", &RATES)];
    let outcomes = run(&scenarios, &lossy, NonZeroUsize::MIN, &Silent);
    let outcome = &outcomes[0];
    for (bar, verdict) in outcome.scenario.bars.iter().zip(&outcome.verdicts) {
        assert_eq!(verdict.outcome, BarResult::Pass, "{}: {:?}", bar.text, verdict.reached);
    }
    let together = "who=all four".parse().unwrap();
    let Some(all) = outcome.selected(&together).next() else { panic!("it was not run") };
    let series = &all.result.as_ref().unwrap().series;
    let names: Vec<&str> = series.iter().map(|series| series.part.as_str()).collect();
    assert_eq!(names, ["live pass", "VDIF stream", "forward", "sync"]);
    // Before the pass begins, nothing of it arrives, and others have its part.
    let at = |part: usize, second: usize| series[part].points[second].1;
    assert_eq!(at(0, 10), 0.0);
    assert!(at(2, 10) > at(2, 30) * 1.5, "{} and {}", at(2, 10), at(2, 30));
}
