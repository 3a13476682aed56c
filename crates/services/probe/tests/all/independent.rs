//! Statistics of losses against SciPy's, over sequences that NumPy simulated. Skipped where python3
//! has no scipy (Debian: python3-scipy).
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing; what is skipped is said"
)]

use serde::Deserialize;
use skyhaul_probe::stats::LossProcess;
use std::process::Command;

/// A sequence, and what SciPy says of it.
#[derive(Debug, Deserialize)]
struct Said {
    /// A digit a datagram: 1 where it is lost.
    lost: String,
    /// Of the intervals.
    mean: f64,
    /// Kolmogorov and Smirnov's, from the exponential distribution with that mean.
    distance: f64,
    /// Of such a distance or a greater one, by simulation.
    probability: f64,
    /// Interval of the loss, 95 %.
    wilson: [f64; 2],
    /// Over one, two and five datagrams.
    autocorrelation: [f64; 3],
    /// What the simulated channel was: to bad, to good, lost when good, lost when bad. `None`:
    /// losses by chance.
    model: Option<[f64; 4]>,
}

fn said() -> Option<Vec<Said>> {
    // The system's own has what its packages brought, where another one comes first.
    let has_scipy = |python: &&str| {
        let tried = Command::new(python).args(["-c", "import scipy"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has_scipy) else {
        eprintln!("SKIPPED: python3 has no scipy (Debian: python3-scipy)");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/independent/statistics.py");
    let output = Command::new(python).arg(script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[track_caller]
fn alike(ours: f64, theirs: f64, within: f64, what: &str) {
    assert!((ours - theirs).abs() <= within, "{what}: {ours} here, {theirs} there");
}

#[test]
fn losses_are_what_scipy_says_they_are() {
    let Some(all) = said() else { return };
    assert_eq!(all.len(), 15);
    for said in &all {
        let lost: Vec<bool> = said.lost.bytes().map(|byte| byte == b'1').collect();
        let process = LossProcess::of(&lost);
        let fit = process.intervals.unwrap();
        alike(fit.mean, said.mean, 1e-9 * said.mean, "mean interval");
        alike(fit.distance, said.distance, 1e-9, "Kolmogorov's distance");
        // The table's steps, and what 2,000 simulated samples are wrong by.
        let (low, high) = (said.probability - 0.02, said.probability + 0.02);
        assert!(if fit.fits { high >= 0.05 } else { low <= 0.05 }, "{fit:?}, {}", said.probability);
        assert!(fit.probability <= high, "{fit:?}, {}", said.probability);
        let [first, last] = process.loss_95;
        alike(first, said.wilson[0], 1e-6, "Wilson's interval");
        alike(last, said.wilson[1], 1e-6, "Wilson's interval");
        for (lag, theirs) in [1usize, 2, 5].into_iter().zip(said.autocorrelation) {
            alike(process.autocorrelation[lag - 1], theirs, 1e-9, "autocorrelation");
        }
        let Some([to_bad, to_good, loss_good, loss_bad]) = said.model else {
            assert!(!process.needs_two_states, "{process:?}");
            continue;
        };
        let fit = process.gilbert.unwrap();
        assert!(process.needs_two_states);
        for (ours, theirs, what) in [
            (fit.to_bad, to_bad, "becomes bad"),
            (fit.to_good, to_good, "becomes good"),
            (fit.loss_bad, loss_bad, "lost when bad"),
        ] {
            // Some 120 to 600 bad times in 60,000 datagrams: a tenth or two either way.
            alike(ours, theirs, 0.3 * theirs, what);
        }
        alike(fit.loss_good, loss_good, 0.003, "lost when good");
    }
}
