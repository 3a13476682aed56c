//! Sessions to several nodes that share one line: the program's own scenario, on a thinner line.

use crate::rung::is_all;
use crate::thin::thin;
use skyhaul_lab::scenario::{BarResult, CellSelection, OutcomeText, Silent, run};
use std::num::NonZeroUsize;

/// A tenth of the scenario's rates.
const RATES: [(&str, &str); 5] = [
    ("93 Mbit/s", "9.3 Mbit/s"),
    ("56 Mbit/s", "5.6 Mbit/s"),
    ("24 Mbit/s", "2.4 Mbit/s"),
    ("48 Mbit/s", "4.8 Mbit/s"),
    ("32 Mbit/s", "3.2 Mbit/s"),
];

#[test]
fn sessions_to_several_centres_share_a_line_as_one_session_would() {
    // Two of three are run otherwise: shares of one class, and of two with a session each.
    let cells = if is_all() { "loss=1 %" } else { "loss=1 %,shares=equal,shares=70 : 30" };
    let lossy: CellSelection = cells.parse().unwrap();
    let scenarios = [thin("destinations.toml", &RATES)];
    let outcomes = run(&scenarios, &lossy, NonZeroUsize::MIN, &Silent);
    let outcome = &outcomes[0];
    assert!(outcome.broken().next().is_none(), "{}", OutcomeText(outcome));
    for (bar, verdict) in outcome.scenario.bars.iter().zip(&outcome.verdicts) {
        assert_eq!(verdict.outcome, BarResult::Pass, "{}: {}", bar.text, OutcomeText(outcome));
    }
}
