//! Drawings of curves over a level axis: rates, parts lost, distributions.

use crate::stats::ExponentialFit;
use core::fmt::Write;
use skyhaul_page::{Chart, HEIGHT, Scale, escape, stroke};

/// A drawing's heading, and the sentence that says what it shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caption<'a> {
    pub title: &'a str,
    pub says: &'a str,
}

/// An axis: its name with its unit, and how numbers become places on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis<'a> {
    pub name: &'a str,
    pub scale: Scale,
}

/// A curve.
#[derive(Debug, Clone, Default)]
pub(super) struct Curve {
    pub name: String,
    /// The line is broken at a point that is no number.
    pub points: Vec<(f64, f64)>,
    /// With a dot at each point that says its values.
    pub has_dots: bool,
    /// In the colour of the curve with this number, dashed.
    pub goes_with: Option<usize>,
}

impl Curve {
    /// By which the drawing knows its colour and dashes.
    fn style(&self, number: usize) -> usize {
        self.goes_with.map_or(number, |other| other % DASHED + DASHED)
    }
}

/// A drawing with its caption, as HTML.
pub(super) fn figure(caption: Caption<'_>, svg: &str) -> String {
    framed(caption, svg, &[])
}

fn framed(caption: Caption<'_>, svg: &str, curves: &[Curve]) -> String {
    let mut html = format!(
        "<figure><figcaption>{}</figcaption><p>{}</p>{svg}",
        escape(caption.title),
        escape(caption.says)
    );
    if curves.len() > 1 {
        html.push_str("<ul class=\"legend\">");
        for (number, curve) in curves.iter().enumerate() {
            let style = stroke(curve.style(number));
            let line =
                format!("<line class=\"course\" {style} x1=\"0\" y1=\"4\" x2=\"22\" y2=\"4\"/>");
            let _ = write!(
                html,
                "<li><svg viewBox=\"0 0 22 8\">{line}</svg>{}</li>",
                escape(&curve.name)
            );
        }
        html.push_str("</ul>");
    }
    html.push_str("</figure>\n");
    html
}

/// Curves over two axes of numbers.
pub(super) fn curves(
    caption: Caption<'_>,
    level: Axis<'_>,
    upright: Axis<'_>,
    curves: &[Curve],
) -> String {
    let mut chart = Chart::new(caption.title, HEIGHT);
    chart.upright(&upright.scale, upright.name);
    chart.level(&level.scale, level.name);
    chart.frame();
    for (number, curve) in curves.iter().take(CURVES_MAX).enumerate() {
        let at = |(x, y): &(f64, f64)| chart.at(level.scale.place(*x), upright.scale.place(*y));
        let places: Vec<(f64, f64)> = curve.points.iter().map(at).collect();
        let number = curve.style(number);
        places.split(|(_, y)| y.is_nan()).for_each(|run| chart.course(run, number));
        if curve.has_dots {
            for (place, (x, y)) in
                places.iter().zip(&curve.points).filter(|(_, (_, y))| !y.is_nan())
            {
                let words = format!(
                    "{}: {} at {} ({} over {})",
                    curve.name,
                    short(*y),
                    short(*x),
                    upright.name,
                    level.name
                );
                chart.dot(*place, number, &words);
            }
        }
    }
    framed(caption, &chart.finish(), &curves[..curves.len().min(CURVES_MAX)])
}

/// The part of the values that is at least as great as each: a distribution whose tail is seen on
/// logarithmic axes. Of values in any order.
pub(super) fn at_least(name: &str, values: &[f64]) -> Curve {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| *value > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut next = 0.0;
    for (index, value) in sorted.iter().enumerate() {
        let is_last = index + 1 == sorted.len();
        // A point for each hundredth of a decade is more than can be drawn; the first of equal
        // values stands for them.
        if *value >= next || (is_last && points.last().is_some_and(|(last, _)| last < value)) {
            points.push((*value, (count - index as f64) / count));
            next = value * STEP;
        }
    }
    Curve { name: name.to_owned(), points, has_dots: false, goes_with: None }
}

/// Intervals between losses on logarithmic axes, with the exponential distribution that fits them.
/// Of intervals and how many of each there were.
pub(super) fn intervals(
    title: &str,
    counts: &[(u64, u64)],
    fit: Option<&ExponentialFit>,
) -> String {
    let all: u64 = counts.iter().map(|(_, number)| number).sum();
    if all == 0 {
        return String::new();
    }
    let (mut left, mut seen) = (all, Vec::new());
    for (interval, number) in counts {
        seen.push((*interval as f64, left as f64 / all as f64));
        left -= number;
    }
    let longest = counts.last().map_or(1.0, |(interval, _)| *interval as f64);
    let mut lines = vec![Curve {
        name: "seen".to_owned(),
        points: seen,
        has_dots: all < DOTS_MAX,
        goes_with: None,
    }];
    let mut says =
        "The part of the intervals from one loss to the next that is at least so long.".to_owned();
    if let Some(fit) = fit {
        // Of a geometric distribution with this mean: what the exponential one is in whole
        // datagrams.
        let keep = (1.0 - 1.0 / fit.mean.max(1.0)).max(0.0);
        let steps =
            (0..=FIT_POINTS).map(|step| longest.powf(f64::from(step) / f64::from(FIT_POINTS)));
        let points = steps
            .map(|x| (x, keep.powf(x - 1.0)))
            .filter(|(_, y)| *y >= 0.5 / all as f64)
            .collect();
        lines.push(Curve {
            name: "exponential".to_owned(),
            points,
            has_dots: false,
            goes_with: None,
        });
        let verdict = if fit.fits { "may be" } else { "are not" };
        let _ = write!(
            says,
            " With the same mean, {:.1} datagrams, losses by chance have the exponential one; by \
            Kolmogorov's distance, {:.4} where \
             {:.4} is critical at 5 %, these {verdict} such.",
            fit.mean, fit.distance, fit.critical
        );
    }
    let level = Axis {
        name: "interval between losses, datagrams",
        scale: Scale::decades([1.0, longest].into_iter()),
    };
    let upright = Axis {
        name: "part at least so long",
        scale: Scale::decades([1.0 / all as f64, 1.0].into_iter()),
    };
    curves(Caption { title, says: &says }, level, upright, &lines)
}

/// A number to four figures.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1_000.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// More lines than a reader tells apart.
const CURVES_MAX: usize = 16;
/// Colours: the styles from here on are the same ones dashed.
const DASHED: usize = 8;
/// From one point of a distribution to the next.
const STEP: f64 = 1.01;
/// Points of a fitted curve.
const FIT_POINTS: u32 = 120;
/// More dots would cover the line.
const DOTS_MAX: u64 = 200;
