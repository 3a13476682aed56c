//! Throughput over time: for each tree one drawing of Skyhaul and one of the kernel, with the same
//! scale.

use super::course::{RateSeries, STEP};
use super::{Sharer, Sharers};
use crate::sheet::{Drawing, legend};
use skyhaul_page::{Chart, HEIGHT, Scale};

/// All that were measured, ours first.
pub fn drawings(sharers: &Sharers<'_>) -> Vec<Drawing> {
    let experiment = sharers.experiment;
    let drawings = sharers.courses.iter().map(|((at, sharer), course)| {
        let tree = &experiment.sharing.trees[*at];
        let caption = match sharer {
            Sharer::Ours => format!("{}: one session of ours", tree.label),
            Sharer::Kernel => format!("{}: two TCP connections under htb", tree.label),
        };
        Drawing {
            name: format!("{}-{}-{}", experiment.name, at + 1, sharer.name()),
            svg: shape(sharers, *at, &caption, course),
            caption,
        }
    });
    drawings.collect()
}

/// Both missions over time; what each should have while both send is dashed.
fn shape(sharers: &Sharers<'_>, at: usize, title: &str, course: &RateSeries) -> String {
    let experiment = sharers.experiment;
    let line = experiment.rate().as_bps() as f64 / 1e6;
    let phase = experiment.sharing.phase.as_secs_f64();
    let upright = Scale::even([0.0, line * 1.1].into_iter());
    let level = Scale::up_to(phase * 3.0 * 1.02);
    let mut chart = Chart::new(title, HEIGHT);
    chart.upright(&upright, "Mbit/s at the receiver");
    chart.level(&level, "seconds");
    chart.frame();
    let part = experiment.sharing.trees[at].second_part(experiment.rate());
    for own in [part, 1.0 - part] {
        let height = upright.place(line * own);
        let ends = [phase, phase * 2.0].map(|time| chart.at(level.place(time), height));
        chart.line(ends[0], ends[1], "bar-line");
    }
    for (number, rates) in [&course.first, &course.second].into_iter().enumerate() {
        let place = |(step, rate): (usize, &f64)| {
            let time = (step as f64 + 0.5) * STEP.as_secs_f64();
            chart.at(level.place(time), upright.place(rate / 1e6))
        };
        let points: Vec<(f64, f64)> = rates.iter().enumerate().map(place).collect();
        chart.course(&points, number);
    }
    legend(&mut chart, &[("first mission", 0), ("second mission", 1)]);
    chart.finish()
}
