//! The page about a line that was watched for long.

use super::curves::{Caption, Curve};
use super::{Subject, Tile, percent, plots, table, time};
use skyhaul_units::Utc;

/// One interval of a line that is watched.
#[derive(Debug, Clone, PartialEq)]
pub struct Minute {
    /// When it began.
    pub began: Utc,
    /// Pings sent, and those without an answer.
    pub pings: [u64; 2],
    /// Round trip in milliseconds: least, median, and all but one in a hundred. `None` without an
    /// answer.
    pub round_trip_ms: Option<[f64; 3]>,
    /// One-way delay there and back in milliseconds, median.
    pub one_way_ms: Option<[f64; 2]>,
    /// What was alarming.
    pub alarms: Vec<String>,
}

/// A page about the intervals of a watch, the earliest first.
pub fn weeks(subject: &Subject, minutes: &[Minute]) -> String {
    let sum = |of: &dyn Fn(&Minute) -> u64| minutes.iter().map(of).sum::<u64>();
    let (sent, lost) = (sum(&|minute| minute.pings[0]), sum(&|minute| minute.pings[1]));
    let alarmed = minutes.iter().filter(|minute| !minute.alarms.is_empty()).count();
    let silent = minutes.iter().filter(|minute| minute.round_trip_ms.is_none()).count();
    let least = minutes
        .iter()
        .filter_map(|minute| minute.round_trip_ms)
        .map(|trip| trip[0])
        .fold(f64::INFINITY, f64::min);
    let least = if least.is_finite() { format!("{least:.3} ms") } else { "none".to_owned() };
    let tiles = [
        Tile::new("intervals", minutes.len().to_string()),
        Tile::new("without an answer", silent.to_string()).bad_if_any(silent as u64),
        Tile::new("with an alarm", alarmed.to_string()).bad_if_any(alarmed as u64),
        Tile::new("pings", sent.to_string()),
        Tile::new("pings lost", percent(lost as f64 / f64::max(sent as f64, 1.0))).bad_if_any(lost),
        Tile::new("shortest round trip", least),
    ];
    let figures = [
        over_time(
            minutes,
            Caption {
                title: "Round trip",
                says: "Least, median and 99 % of each moment, the greatest of its intervals. \
                    Broken where there was no answer.",
            },
            "ms",
            &[
                ("least", &|minute| minute.round_trip_ms.map(|trip| trip[0])),
                ("median", &|minute| minute.round_trip_ms.map(|trip| trip[1])),
                ("99 %", &|minute| minute.round_trip_ms.map(|trip| trip[2])),
            ],
        ),
        over_time(
            minutes,
            Caption {
                title: "Loss",
                says: "Over both ways; the greatest of the intervals of each moment. One without \
                    any answer is 100 %.",
            },
            "pings lost, %",
            &[("lost", &|minute| {
                let [sent, lost] = minute.pings;
                Some(if minute.round_trip_ms.is_none() {
                    100.0
                } else {
                    lost as f64 * 100.0 / f64::max(sent as f64, 1.0)
                })
            })],
        ),
        over_time(
            minutes,
            Caption {
                title: "One-way delay",
                says: "The median each way, to half of the shortest round trip: how that divides, \
                    no ping can tell. A step of both in opposite directions is a clock that was \
                    set, or a route that changed one way.",
            },
            "ms",
            &[
                ("up", &|minute| minute.one_way_ms.map(|delay| delay[0])),
                ("down", &|minute| minute.one_way_ms.map(|delay| delay[1])),
            ],
        ),
    ];
    subject.page("The line watched to", &tiles, &[], &(plots(&figures) + &alarms(minutes)))
}

/// What is drawn of an interval.
type Figure<'a> = (&'static str, &'a dyn Fn(&Minute) -> Option<f64>);

/// Curves of figures over time; of more intervals than can be drawn, the greatest of each few.
fn over_time(
    minutes: &[Minute],
    caption: Caption<'_>,
    unit: &str,
    figures: &[Figure<'_>],
) -> String {
    let Some(first) = minutes.first() else { return String::new() };
    let hours = |at: Utc| at.since(first.began).as_secs_f64() / 3_600.0;
    let span = minutes.last().map_or(0.0, |last| hours(last.began));
    let (name, unit_hours) = match span {
        span if span > 72.0 => ("days", 24.0),
        span if span > 2.0 => ("hours", 1.0),
        _ => ("minutes", 1.0 / 60.0),
    };
    let size = minutes.len().div_ceil(MOMENTS).max(1);
    let curve = |(name, of): &Figure<'_>| {
        let moment = |part: &[Minute]| {
            let most = part.iter().filter_map(of).fold(None, |most: Option<f64>, value| {
                Some(most.map_or(value, |most| most.max(value)))
            });
            // Where there was no answer, the curve is broken.
            part.first().map(|minute| (hours(minute.began) / unit_hours, most.unwrap_or(f64::NAN)))
        };
        let points = minutes.chunks(size).filter_map(moment).collect();
        Curve {
            name: (*name).to_owned(),
            points,
            has_dots: minutes.len() < DOTS_MAX,
            goes_with: None,
        }
    };
    let curves: Vec<Curve> = figures.iter().map(curve).collect();
    let level = format!("{name} since {}", to_the_second(first.began));
    time::lines(caption, unit, &level, &curves)
}

/// A time without its fractions, which say nothing of an interval of pings.
fn to_the_second(at: Utc) -> String {
    at.to_string().get(..19).unwrap_or_default().replace('T', " ")
}

fn alarms(minutes: &[Minute]) -> String {
    let alarmed = minutes.iter().rev().filter(|minute| !minute.alarms.is_empty());
    let rows: Vec<Vec<String>> = alarmed
        .take(ALARMS_SHOWN)
        .map(|minute| vec![to_the_second(minute.began), minute.alarms.join("; ")])
        .collect();
    if rows.is_empty() {
        return "<p class=\"note\">No alarm.</p>\n".to_owned();
    }
    table("The latest alarms", &["in the interval from", "alarm"], &rows, &[0, 1])
}

/// Points of a curve.
const MOMENTS: usize = 700;
/// More dots would cover the line.
const DOTS_MAX: usize = 120;
/// Alarms in the table; all are in the files.
const ALARMS_SHOWN: usize = 200;
