//! The page about a sweep over sizes and spacings.

use super::account::{accounts, total};
use super::curves::{Axis, Caption, Curve, at_least, curves, figure};
use super::{Subject, Tile, percent, plots, rate, table, time};
use crate::stream::StreamDirection;
use crate::sweep::{Sweep, SweepPoint};
use skyhaul_page::{Chart, HEIGHT, Scale};
use std::collections::BTreeSet;

/// A page about a sweep.
pub fn sweep(subject: &Subject, found: &Sweep) -> String {
    let points = &found.points;
    let fastest = points.iter().map(|point| point.received_bps).max().unwrap_or(0);
    let (sent, lost) = points.iter().fold((0, 0), |(sent, lost), point| {
        (sent + point.sum.packets, lost + point.sum.lost_packets)
    });
    let reordered: u64 = points.iter().map(|point| point.reordering.reordered).sum();
    let late = points.iter().map(|point| point.pacing_error_us.p99).fold(0.0, f64::max);
    let tiles = [
        Tile::new("streams", points.len().to_string()),
        Tile::new("most received", rate(fastest)),
        Tile::new("lost of all", percent(lost as f64 / f64::max(sent as f64, 1.0)))
            .bad_if_any(lost),
        Tile::new("out of order", reordered.to_string()),
        Tile::new("left late, 99 %", format!("{late:.1} us")),
        Tile::new("one-way delays to", format!("± {:.3} ms", found.clocks.uncertainty_ms)),
    ];
    let mut notes = Vec::new();
    if found.left_out > 0 {
        notes.push(format!("{} streams above the allowed rate were skipped", found.left_out));
    }
    let mut figures = vec![
        throughput(points),
        over_spacing(points, Caption { title: "Loss", says: BEGINS }, "lost, %", &|point| {
            point.sum.lost_percent
        }),
        over_spacing(
            points,
            Caption { title: "Reordering", says: OVERTAKEN },
            "out of order, ppm",
            &|point| point.reordering.ppm as f64,
        ),
        heat_map(
            points,
            Caption { title: "Received rate by size and spacing", says: RATES },
            &|point| (point.received_bps as f64, rate(point.received_bps)),
        ),
        heat_map(points, Caption { title: "Loss by size and spacing", says: LOSSES }, &|point| {
            (point.sum.lost_percent, percent(point.sum.lost_percent / 100.0))
        }),
        arrivals(points),
    ];
    for point in shown_over_time(points) {
        let title = format!("Delay of {} bytes each {} us", point.payload, point.spacing_us);
        figures.push(time::delays(&title, &point.trace, &point.one_way));
    }
    let all = total(points.iter().map(|point| &point.account));
    let body = plots(&figures) + &streams(points) + &accounts(&[("all streams".to_owned(), &all)]);
    let way = if found.direction == StreamDirection::Up {
        "Sizes and spacings up to"
    } else {
        "Sizes and spacings down from"
    };
    subject.page(way, &tiles, &notes, &body)
}

/// A curve for each size over the spacing.
fn by_size(points: &[SweepPoint], name: &str, of: &dyn Fn(&SweepPoint) -> f64) -> Vec<Curve> {
    let sizes: BTreeSet<u64> = points.iter().map(|point| point.payload).collect();
    let curve = |size: u64| {
        let mine = points.iter().filter(|point| point.payload == size);
        let mut places: Vec<(f64, f64)> = mine.map(|point| (point.spacing_us, of(point))).collect();
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        Curve {
            name: format!("{size} bytes{name}"),
            points: places,
            has_dots: true,
            goes_with: None,
        }
    };
    sizes.into_iter().map(curve).collect()
}

fn spacings(points: &[SweepPoint]) -> Axis<'static> {
    let scale = Scale::decades(points.iter().map(|point| point.spacing_us));
    Axis { name: "spacing, us", scale }
}

/// What was sent and what came of it.
fn throughput(points: &[SweepPoint]) -> String {
    let mut lines = by_size(points, " received", &|point| point.received_bps as f64 / 1e6);
    let sent = by_size(points, " sent", &|point| point.sent_bps as f64 / 1e6);
    lines.extend(
        sent.into_iter().zip(0..).map(|(curve, number)| Curve { goes_with: Some(number), ..curve }),
    );
    let rates = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|(_, y)| *y))
        .filter(|rate| *rate > 0.0);
    let upright = Axis { name: "Mbit/s of UDP payload", scale: Scale::decades(rates.clone()) };
    for line in &mut lines {
        line.points.retain(|(_, rate)| *rate > 0.0);
    }
    let says = "Below the time that a datagram takes on the line, the received rate stays that of \
               the line while more is sent; above, both are one datagram a spacing.";
    curves(Caption { title: "Throughput against spacing", says }, spacings(points), upright, &lines)
}

fn over_spacing(
    points: &[SweepPoint],
    Caption { title, says }: Caption<'_>,
    unit: &str,
    of: &dyn Fn(&SweepPoint) -> f64,
) -> String {
    let lines = by_size(points, "", of);
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y)).chain([0.0]);
    let upright = Axis { name: unit, scale: Scale::even(values.collect::<Vec<_>>().into_iter()) };
    let says = match lines.iter().all(|line| line.points.iter().all(|(_, y)| *y == 0.0)) {
        true => "None at any size and spacing.",
        false => says,
    };
    let title = format!("{title} against spacing");
    curves(Caption { title: &title, says }, spacings(points), upright, &lines)
}

/// Sizes upwards, spacings to the right; a field's shade and words.
fn heat_map(
    points: &[SweepPoint],
    Caption { title, says }: Caption<'_>,
    of: &dyn Fn(&SweepPoint) -> (f64, String),
) -> String {
    let sizes: BTreeSet<u64> = points.iter().map(|point| point.payload).collect();
    let mut columns: Vec<f64> = points.iter().map(|point| point.spacing_us).collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    if sizes.is_empty() {
        return String::new();
    }
    let labels: Vec<String> = columns.iter().map(|spacing| format!("{spacing}")).collect();
    let rows: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let most = points.iter().map(|point| of(point).0).fold(0.0, f64::max);
    let height = ROW.mul_add(sizes.len() as f64, HEIGHT / 4.0);
    let mut chart = Chart::new(title, height).with_words_left(&rows).with_words_below(&labels);
    chart.words(&labels, "spacing, us");
    chart.text((8.0, 15.0), "start", "UDP payload, bytes");
    let (width, tall) = (1.0 / columns.len() as f64, 1.0 / sizes.len() as f64);
    for (row, size) in sizes.iter().rev().enumerate() {
        let top = 1.0 - row as f64 * tall;
        let (left, at) = chart.at(0.0, top - tall / 2.0);
        chart.text((left - 8.0, at + 5.0), "end", &size.to_string());
        for point in points.iter().filter(|point| point.payload == *size) {
            let column =
                columns.iter().position(|spacing| *spacing == point.spacing_us).unwrap_or(0);
            let from = column as f64 * width;
            let corners = [chart.at(from, top), chart.at(from + width, top - tall)];
            let (value, words) = of(point);
            let shade = if most > 0.0 { value / most } else { 0.0 };
            // A rate's unit stands once below where the fields are narrow.
            let brief =
                words.replace(" Mbit/s", "M").replace(" Gbit/s", "G").replace(" kbit/s", "k");
            let words = format!("{size} bytes each {} us: {words}", point.spacing_us);
            chart.field(corners, shade, &brief, &words);
        }
    }
    chart.frame();
    figure(Caption { title, says }, &chart.finish())
}

/// How the times between arrivals spread, of the longest datagrams.
fn arrivals(points: &[SweepPoint]) -> String {
    let longest = points.iter().map(|point| point.payload).max().unwrap_or(0);
    let gaps = |point: &SweepPoint| {
        let between = point.trace.arrivals.windows(2);
        between
            .map(|pair| {
                pair[1].arrived.as_nanos().saturating_sub(pair[0].arrived.as_nanos()) as f64 / 1e3
            })
            .collect::<Vec<f64>>()
    };
    let lines: Vec<Curve> = points
        .iter()
        .filter(|point| point.payload == longest)
        .map(|point| at_least(&format!("each {} us", point.spacing_us), &gaps(point)))
        .collect();
    let all = || lines.iter().flat_map(|line| line.points.iter());
    let level = Axis {
        name: "from one arrival to the next, us",
        scale: Scale::decades(all().map(|(x, _)| *x)),
    };
    let upright =
        Axis { name: "part at least so long", scale: Scale::decades(all().map(|(_, y)| *y)) };
    let says = format!(
        "Of {longest} bytes. What was sent evenly and came evenly falls at its spacing; a tail to \
        the right are pauses, one to the left bursts."
    );
    curves(Caption { title: "Time between arrivals", says: &says }, level, upright, &lines)
}

/// Of the longest datagrams, those that were closest together, and those furthest apart.
fn shown_over_time(points: &[SweepPoint]) -> Vec<&SweepPoint> {
    let longest = points.iter().map(|point| point.payload).max().unwrap_or(0);
    let mut mine: Vec<&SweepPoint> =
        points.iter().filter(|point| point.payload == longest).collect();
    mine.sort_by(|one, other| one.spacing_us.total_cmp(&other.spacing_us));
    match mine[..] {
        [first, .., last] => vec![first, last],
        _ => mine,
    }
}

fn streams(points: &[SweepPoint]) -> String {
    let columns = [
        "bytes each",
        "us",
        "sent",
        "received",
        "on an Ethernet",
        "lost",
        "reordered",
        "one way, ms",
        "jitter, ms",
        "late 99 %, us",
    ];
    let row = |point: &SweepPoint| {
        vec![
            point.payload.to_string(),
            format!("{:.1}", point.spacing_us),
            rate(point.sent_bps),
            rate(point.received_bps),
            rate(point.wire_bps),
            percent(point.sum.lost_percent / 100.0),
            point.reordering.reordered.to_string(),
            format!("{:.3}", point.one_way_ms.p50),
            format!("{:.3}", point.sum.jitter_ms),
            format!("{:.1}", point.pacing_error_us.p99),
        ]
    };
    table("The streams", &columns, &points.iter().map(row).collect::<Vec<_>>(), &[0])
}

/// What the maps show.
const RATES: &str =
    "The darker, the more; M is Mbit/s, G is Gbit/s. Empty fields were not measured.";
const LOSSES: &str = "The darker, the more. Empty fields were not measured.";

/// What the drawings against spacing show.
const BEGINS: &str = "The spacing at which it begins shows the narrowest place on the line.";
const OVERTAKEN: &str = "Datagrams that came after one that was sent later (RFC 4737).";

/// Height of a row of a heat map.
const ROW: f64 = 34.0;
