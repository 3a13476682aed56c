//! The page about a line's loss process.

use super::account::accounts;
use super::curves::{Axis, Caption, Curve, curves, intervals};
use super::{Subject, Tile, percent, plots, table, time};
use crate::losses::LossPattern;
use crate::stream::StreamDirection;
use skyhaul_page::Scale;

/// A page about a loss process.
pub fn losses(subject: &Subject, found: &LossPattern) -> String {
    let process = &found.process;
    let [low, high] = process.loss_95;
    let vlbi = &found.vlbi;
    let tiles = [
        Tile::new("lost", percent(process.loss)).bad_if_any(process.lost),
        Tile::new("with 95 %", format!("{} to {}", percent(low), percent(high))),
        Tile::new("losses are", process.character.words().to_owned()),
        Tile::new("runs, mean", format!("{:.2}", process.run_mean)),
        Tile::new("signal-to-noise", format!("× {:.4}", vlbi.snr)),
        Tile::new(
            "one-way delay, median",
            format!("{:.3} ± {:.3} ms", found.one_way_ms.p50, found.clocks.uncertainty_ms),
        ),
    ];
    let figures = [
        intervals("Intervals between losses", &found.interval_counts, process.intervals.as_ref()),
        runs(found),
        autocorrelation(found),
        time::delays("One-way delay", &found.trace, &found.one_way),
    ];
    let (title, name) = match found.direction {
        StreamDirection::Up => ("The losses up to", "up"),
        StreamDirection::Down => ("The losses down from", "down"),
    };
    let body =
        plots(&figures) + &figures_of(found) + &accounts(&[(name.to_owned(), &found.account)]);
    subject.page(title, &tiles, &[], &body)
}

/// Lengths of runs, with those that chance makes of as many losses.
fn runs(found: &LossPattern) -> String {
    let process = &found.process;
    if process.runs.is_empty() {
        return String::new();
    }
    let points = |of: &dyn Fn(u64, u64) -> f64| {
        process
            .runs
            .iter()
            .map(|(length, number)| (*length as f64, of(*length, *number)))
            .collect::<Vec<_>>()
    };
    let seen = Curve {
        name: "seen".to_owned(),
        points: points(&|_, number| number as f64),
        has_dots: true,
        goes_with: None,
    };
    // Of n datagrams lost with probability p each: n p^k (1 - p)^2 runs of length k.
    let by_chance = |length: u64, _| {
        process.sent as f64 * process.loss.powf(length as f64) * (1.0 - process.loss).powi(2)
    };
    let mut chance = points(&by_chance);
    chance.retain(|(_, number)| *number >= 0.1);
    let lines = [
        seen,
        Curve { name: "by chance".to_owned(), points: chance, has_dots: false, goes_with: None },
    ];
    let all = || lines.iter().flat_map(|line| line.points.iter());
    let level = Axis { name: "losses in a row", scale: Scale::decades(all().map(|(x, _)| *x)) };
    let upright = Axis { name: "how many", scale: Scale::decades(all().map(|(_, y)| *y)) };
    let says = format!(
        "How many runs of each length there were, and how many chance makes of a loss of {}. {} on \
        average.",
        percent(process.loss),
        format_args!("{:.2}", process.run_mean)
    );
    curves(Caption { title: "Runs of losses", says: &says }, level, upright, &lines)
}

fn autocorrelation(found: &LossPattern) -> String {
    let process = &found.process;
    let lags = process.autocorrelation.len() as f64;
    if process.autocorrelation.is_empty() {
        return String::new();
    }
    let bound = process.autocorrelation_95;
    let points = (1..).map(f64::from).zip(process.autocorrelation.iter().copied()).collect();
    let flat = |name: &str, at: f64| Curve {
        name: name.to_owned(),
        points: vec![(1.0, at), (lags, at)],
        has_dots: false,
        goes_with: None,
    };
    let lines = [
        Curve { name: "seen".to_owned(), points, has_dots: true, goes_with: None },
        flat("chance, 95 %", bound),
        flat("the same below", -bound),
    ];
    let level = Axis { name: "datagrams apart", scale: Scale::even([0.0, lags].into_iter()) };
    let values = process.autocorrelation.iter().copied().chain([-bound, bound, 0.0]);
    let upright = Axis {
        name: "correlation of losses",
        scale: Scale::even(values.collect::<Vec<_>>().into_iter()),
    };
    let says = "How far a loss goes with that of a datagram so much later. Between the two lines \
               is chance, but for one in twenty.";
    curves(Caption { title: "Autocorrelation", says }, level, upright, &lines)
}

fn figures_of(found: &LossPattern) -> String {
    let (process, vlbi) = (&found.process, &found.vlbi);
    let mut rows = vec![
        (
            "datagrams",
            format!(
                "{} of {} bytes each {:.1} us",
                found.sum.packets, found.stream.payload, found.stream.spacing_us
            ),
        ),
        ("missing", process.lost.to_string()),
        ("a loss follows a loss", percent(process.again)),
        ("out of order", super::reordering(&found.reordering)),
        ("came twice", found.sum.duplicates.to_string()),
    ];
    if let Some(fit) = process.gilbert.filter(|_| process.needs_two_states) {
        rows.push((
            "Gilbert-Elliott: becomes bad",
            format!("{} per datagram", percent(fit.to_bad)),
        ));
        rows.push(("becomes good again", format!("{} per datagram", percent(fit.to_good))));
        rows.push((
            "loses when good, when bad",
            format!("{}, {}", percent(fit.loss_good), percent(fit.loss_bad)),
        ));
    }
    rows.extend([
        ("correlator: frames lost", percent(vlbi.frames_lost)),
        (
            "signal-to-noise, masked, not masked",
            format!("× {:.4}, × {:.4}", vlbi.snr, vlbi.snr_unmasked),
        ),
        (
            "damaged frames in a row that lose the synchronisation",
            vlbi.rule.frames_in_a_row.to_string(),
        ),
        ("such losses seen", vlbi.seen.to_string()),
        ("probability of one in an hour", percent(vlbi.sync_loss_an_hour)),
    ]);
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|(what, value)| vec![what.to_owned(), value]).collect();
    table("Figures", &["", ""], &rows, &[0])
}
