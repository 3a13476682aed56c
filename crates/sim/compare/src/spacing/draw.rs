//! The drawings of a sweep: rate and loss over spacing, and the distribution of the intervals
//! between losses.

use super::SpacingSweep;
use super::judge::{LossResult, SpacingResult, line_rate};
use crate::sheet::{Drawing, legend};
use crate::table::mbps;
use skyhaul_page::{Chart, HEIGHT, Scale};

/// All drawings for which something was measured.
pub fn drawings(sweep: &SpacingSweep<'_>) -> Vec<Drawing> {
    let mut drawings = Vec::new();
    let name = &sweep.experiment.name;
    if !sweep.points.is_empty() {
        drawings.push(Drawing {
            name: format!("{name}-rate"),
            caption: "received rate against spacing".to_owned(),
            svg: rates(sweep),
        });
        drawings.push(Drawing {
            name: format!("{name}-loss"),
            caption: "loss and reordering against spacing".to_owned(),
            svg: losses(sweep),
        });
    }
    for (at, process) in sweep.processes.iter().filter(|(_, process)| process.intervals.len() > 1) {
        let label = &sweep.experiment.spacing.processes[*at].label;
        drawings.push(Drawing {
            name: format!("{name}-intervals-{}", at + 1),
            caption: format!("intervals between losses: {label}"),
            svg: intervals(process, label),
        });
    }
    drawings
}

/// Sent and received; the line's rate is dashed.
fn rates(sweep: &SpacingSweep<'_>) -> String {
    let limit = line_rate(sweep);
    let most =
        sweep.points.iter().flat_map(|point| [point.sent_bps, point.received_bps]).chain([limit]);
    let upright = Scale::even(
        [0.0].into_iter().chain(most.map(|bps| bps / 1e6)).collect::<Vec<_>>().into_iter(),
    );
    let mut chart = Chart::new("received rate against spacing", HEIGHT);
    let level = axes(&mut chart, sweep, &upright, "Mbit/s of UDP payload");
    let dashed = upright.place(limit / 1e6);
    let ends = [chart.at(0.0, dashed), chart.at(1.0, dashed)];
    chart.line(ends[0], ends[1], "bar-line");
    chart.text((ends[1].0 - 6.0, ends[1].1 - 6.0), "end", "what the line carries");
    let of: [fn(&SpacingResult) -> f64; 2] = [|point| point.sent_bps, |point| point.received_bps];
    for (number, of) in of.into_iter().enumerate() {
        course(&mut chart, sweep, number, &|point| {
            let words = format!("{} Mbit/s at {:.0} us", mbps(of(point)), point.spacing_us);
            ((level.place(point.spacing_us), upright.place(of(point) / 1e6)), words)
        });
    }
    legend(&mut chart, &[("sent", 0), ("received", 1)]);
    chart.finish()
}

/// Both in percent.
fn losses(sweep: &SpacingSweep<'_>) -> String {
    let of: [fn(&SpacingResult) -> f64; 2] =
        [|point| point.loss() * 100.0, |point| point.reordering() * 100.0];
    // By powers of ten: random loss is a hundredth of the loss of an overloaded line.
    let upright = Scale::around([LEAST, 100.0].into_iter());
    let mut chart = Chart::new("loss and reordering against spacing", HEIGHT);
    let level = axes(&mut chart, sweep, &upright, "% of datagrams (0.01: that or less)");
    for (number, of) in of.into_iter().enumerate() {
        course(&mut chart, sweep, number, &|point| {
            let words = format!("{:.2} % at {:.0} us", of(point), point.spacing_us);
            ((level.place(point.spacing_us), upright.place(of(point))), words)
        });
    }
    legend(&mut chart, &[("lost", 0), ("reordered", 1)]);
    chart.finish()
}

/// The least part that is drawn, in percent: one of ten thousand datagrams.
const LEAST: f64 = 0.01;

/// Spacing along the level axis, the time that a datagram takes on the line marked.
fn axes(chart: &mut Chart, sweep: &SpacingSweep<'_>, upright: &Scale, name: &str) -> Scale {
    let spacings = sweep.points.iter().map(|point| point.spacing_us);
    // Beyond the last spacing, so that its tick has room.
    let longest = spacings.fold(0.0, f64::max);
    let level = Scale::up_to(longest * 1.03);
    chart.upright(upright, name);
    chart.level(&level, "spacing of datagrams, microseconds");
    chart.frame();
    let wire = level.place(sweep.experiment.wire_time().as_secs_f64() * 1e6);
    let (low, high) = (chart.at(wire, 0.0), chart.at(wire, 1.0));
    chart.line(low, high, "grid");
    level
}

/// A dot of a curve: its position within the frame, and its label.
type Dot = ((f64, f64), String);

/// A course with its dots.
fn course(
    chart: &mut Chart,
    sweep: &SpacingSweep<'_>,
    number: usize,
    of: &dyn Fn(&SpacingResult) -> Dot,
) {
    let points: Vec<Dot> = sweep.points.iter().map(of).collect();
    let places: Vec<(f64, f64)> = points.iter().map(|((x, y), _)| chart.at(*x, *y)).collect();
    chart.course(&places, number);
    for (place, (_, words)) in places.iter().zip(&points) {
        chart.dot(*place, number, words);
    }
}

/// The part of intervals that is longer than so many datagrams, on an axis of powers of ten, on
/// which an exponential distribution is straight; the fitted one beside it.
fn intervals(process: &LossResult, label: &str) -> String {
    let count: u64 = process.intervals.iter().map(|(_, number)| number).sum();
    let mut longer = count;
    let mut steps = Vec::new();
    for (interval, number) in &process.intervals {
        longer -= number;
        // No interval is longer than the last one: zero has no place on a logarithmic axis.
        if longer > 0 {
            steps.push((*interval as f64, longer as f64 / count as f64));
        }
    }
    let longest = steps.iter().map(|(interval, _)| *interval).fold(1.0, f64::max);
    let level = Scale::up_to(longest * 1.03);
    let upright = Scale::around([1.0, (1.0 / count.max(1) as f64).min(0.01)].into_iter());
    let mut chart = Chart::new(&format!("intervals between losses: {label}"), HEIGHT);
    chart.upright(&upright, "part of intervals that is longer");
    chart.level(&level, "datagrams from one loss to the next");
    chart.frame();
    let course: Vec<(f64, f64)> =
        steps.iter().map(|(x, y)| chart.at(level.place(*x), upright.place(*y))).collect();
    chart.course(&course, 0);
    let mut names = vec![("measured", 0)];
    if let Some(fit) = process.fit {
        let least = 1.0 / count.max(1) as f64;
        // Straight down to where less than one interval is left.
        let end = (-least.ln() * fit.mean).min(longest);
        let part = (-end / fit.mean).exp();
        let ends =
            [chart.at(0.0, upright.place(1.0)), chart.at(level.place(end), upright.place(part))];
        chart.course(&ends, 1);
        names.push(("exponential", 1));
    }
    legend(&mut chart, &names);
    chart.finish()
}
