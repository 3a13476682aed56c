//! Deadlines beside multipath connections with New Reno, in short: a table kept as a snapshot.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use skyhaul_lab::scenario::{
    BUILTIN, CellOutcome, CellSelection, OutcomeText, Scenario, ScenarioResult, Silent, run,
};
use std::fmt::Write;
use std::num::NonZeroUsize;

/// A built-in scenario, each of `cuts` in place of what stands there.
fn short(file: &str, cuts: &[(&str, &str)]) -> Scenario {
    let (name, text) = BUILTIN.iter().find(|(name, _)| *name == file).unwrap();
    let text = cuts.iter().fold((*text).to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    Scenario::parse(&text, name).unwrap()
}

fn row(outcome: &ScenarioResult<'_>, run: &CellOutcome) -> String {
    let figure = |key| run.figure(key).unwrap();
    let (score, rival, ratio) = (figure("score"), figure("rival_score"), figure("of_rival"));
    format!("{:28}{score:>7.3}{rival:>8.3}{ratio:>8.2}", outcome.describe(run))
}

#[test]
fn deadlines_are_never_worse_than_new_reno_and_far_better_where_that_falls_away() {
    let minute = ("duration = \"300 s\"", "duration = \"60 s\"");
    let one_seed = ("seeds = [1, 2]", "seeds = [1]");
    let fewer_losses =
        (r#""0.01 %", "0.1 %", "1 %", "2 %", "5 %", "10 %", "20 %""#, r#""1 %", "20 %""#);
    let fewer_rates = [
        (r#""200 kbit/s", "250 kbit/s", "300 kbit/s", "400 kbit/s""#, r#""200 kbit/s""#),
        (r#""700 kbit/s", "850 kbit/s","#, ""),
        (r#""1 Mbit/s", "1.2 Mbit/s", "1.5 Mbit/s", "2 Mbit/s", "4 Mbit/s","#, ""),
        (r#"["200 kbit/s", "250 kbit/s", "300 kbit/s"]"#, r#""200 kbit/s""#),
    ];
    let scenarios = [
        short("dtp-loss.toml", &[minute, one_seed, fewer_losses]),
        short("dtp-bandwidth.toml", &[[minute, one_seed].as_slice(), &fewer_rates].concat()),
    ];
    let outcomes =
        run(&scenarios, &CellSelection::default(), NonZeroUsize::new(2).unwrap(), &Silent);
    let mut table = format!("{:28}{:>7}{:>8}{:>8}", "", "score", "rival", "÷ rival");
    for outcome in &outcomes {
        for run in &outcome.runs {
            write!(table, "\n{}", row(outcome, run)).unwrap();
        }
        let (reached, of) = outcome.score();
        assert_eq!(reached, of, "{}", OutcomeText(outcome));
    }
    insta::assert_snapshot!(table);
}
