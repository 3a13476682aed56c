//! Drawings over time: the delay of a stream's datagrams with those that are missing, and single
//! figures.

use super::curves::{Axis, Caption, Curve, curves, figure};
use crate::stream::Trace;
use skyhaul_page::{Chart, HEIGHT, Scale};

/// Datagrams that left at about the same time.
#[derive(Debug, Clone, Copy, Default)]
struct Moment {
    sent: u32,
    lost: u32,
    least: f64,
    middle: f64,
    most: f64,
}

/// Delay of a stream over the time at which its datagrams were to leave: least to most shaded, the
/// median as a line, and below it where datagrams are missing. `one_way` is that of each arrival in
/// nanoseconds.
pub(super) fn delays(title: &str, trace: &Trace, one_way: &[i64]) -> String {
    let moments = moments(trace, one_way);
    let arrived = || moments.iter().filter(|moment| moment.sent > moment.lost);
    if arrived().next().is_none() {
        return String::new();
    }
    let length = trace.spec.spacing.as_secs_f64() * f64::from(trace.offered);
    let values = arrived().flat_map(|moment| [moment.least, moment.most]);
    let (level, upright) = (Scale::up_to(length), Scale::around(values));
    let mut chart = Chart::new(title, HEIGHT);
    chart.upright(&upright, "one-way delay, ms");
    chart.level(&level, "time, s");
    let width = 1.0 / moments.len() as f64;
    let mut course = Vec::new();
    for (index, moment) in moments.iter().enumerate() {
        let left = index as f64 * width;
        let at = index as f64 * width * length;
        if moment.sent > moment.lost {
            let (low, high) = (upright.place(moment.least), upright.place(moment.most));
            let words = format!(
                "at {at:.2} s: {:.3} ms at least, {:.3} in the median, {:.3} at most",
                moment.least, moment.middle, moment.most
            );
            chart.block(
                [chart.at(left, high.max(low + LINE)), chart.at(left + width, low)],
                ("band", BAND),
                &words,
            );
            course.push(chart.at(left + width / 2.0, upright.place(moment.middle)));
        }
        if moment.lost > 0 {
            let part = f64::from(moment.lost) / f64::from(moment.sent.max(1));
            let words = format!("at {at:.2} s: {} of {} missing", moment.lost, moment.sent);
            let corners = [chart.at(left, STRIP), chart.at(left + width, 0.0)];
            chart.block(corners, ("lost", 0.35 + 0.65 * part), &words);
        }
    }
    chart.course(&course, 0);
    chart.frame();
    let lost: u32 = moments.iter().map(|moment| moment.lost).sum();
    let says = match lost {
        0 => {
            "Shaded from the least to the most of each moment, the line is the median. Nothing is \
             missing."
                .to_owned()
        }
        _ => format!(
            "Shaded from the least to the most of each moment, the line is the median; red below: \
            {lost} datagrams are missing."
        ),
    };
    figure(Caption { title, says: &says }, &chart.finish())
}

/// The stream in at most [`MOMENTS`] parts.
fn moments(trace: &Trace, one_way: &[i64]) -> Vec<Moment> {
    let offered = trace.offered as usize;
    let mut delays: Vec<Option<i64>> = vec![None; offered];
    for (arrival, delay) in trace.arrivals.iter().zip(one_way) {
        if let Some(place) = delays.get_mut(arrival.seq as usize) {
            *place = Some(*delay);
        }
    }
    let size = offered.div_ceil(MOMENTS).max(1);
    let moment = |part: &[Option<i64>]| {
        let mut came: Vec<i64> = part.iter().flatten().copied().collect();
        came.sort_unstable();
        let millis = |at: usize| came.get(at).map_or(0.0, |nanos| *nanos as f64 / 1e6);
        Moment {
            sent: u32::try_from(part.len()).unwrap_or(u32::MAX),
            lost: u32::try_from(part.len() - came.len()).unwrap_or(u32::MAX),
            least: millis(0),
            middle: millis(came.len() / 2),
            most: millis(came.len().saturating_sub(1)),
        }
    };
    delays.chunks(size).map(moment).collect()
}

/// Figures over time, a line each.
pub(super) fn lines(caption: Caption<'_>, unit: &str, level: &str, courses: &[Curve]) -> String {
    let xs = courses.iter().flat_map(|curve| curve.points.iter().map(|(x, _)| *x));
    let ys = courses.iter().flat_map(|curve| curve.points.iter().map(|(_, y)| *y));
    if xs.clone().next().is_none() {
        return String::new();
    }
    let level = Axis { name: level, scale: Scale::even(xs) };
    curves(caption, level, Axis { name: unit, scale: Scale::even(ys) }, courses)
}

/// Parts of a stream that are drawn: about two a pixel of a small screen.
const MOMENTS: usize = 280;
/// How strongly the range is shaded.
const BAND: f64 = 0.28;
/// The least height of a range.
const LINE: f64 = 0.004;
/// Height of the strip of what is missing.
const STRIP: f64 = 0.06;
