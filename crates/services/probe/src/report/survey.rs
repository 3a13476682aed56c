//! The page about a line as a survey found it.

use super::account::accounts;
use super::curves::{Axis, Caption, Curve, at_least, curves, intervals};
use super::{Subject, Tile, percent, plots, rate, table, time};
use crate::stats::interval_counts;
use crate::survey::{Survey, WayEstimate};
use skyhaul_page::Scale;

/// A page about a survey.
pub fn survey(subject: &Subject, found: &Survey) -> String {
    let (up, down) = (&found.up, &found.down);
    let available = |way: &WayEstimate| {
        let at_least = if way.available.is_at_least { "≥ " } else { "" };
        format!("{at_least}{}", rate(way.available.bits_per_second))
    };
    let lost = |way: &WayEstimate| percent(way.loss.loss);
    let tiles = [
        Tile::new("round trip, least", format!("{:.3} ms", found.round_trip_ms.min)),
        Tile::new("round trip, median", format!("{:.3} ms", found.round_trip_ms.p50)),
        Tile::new("available up", available(up)),
        Tile::new("available down", available(down)),
        Tile::new("lost up", lost(up)).bad_if_any(up.loss.lost),
        Tile::new("lost down", lost(down)).bad_if_any(down.loss.lost),
        Tile::new("path MTU up, down", format!("{}, {}", up.path_mtu, down.path_mtu)),
        Tile::new("bandwidth-delay", super::bytes(found.bandwidth_delay_bytes)),
        Tile::new("one-way delays to", format!("± {:.3} ms", found.clocks.uncertainty_ms)),
    ];
    let mut figures = vec![trains(up, down), delays(up, down, found)];
    for (way, name) in [(up, "up"), (down, "down")] {
        figures.push(time::delays(&format!("One-way delay {name}"), &way.trace, &way.one_way));
    }
    for (way, name) in [(up, "up"), (down, "down")] {
        let counts = interval_counts(&way.trace.missing());
        figures.push(intervals(
            &format!("Intervals between losses {name}"),
            &counts,
            way.loss.intervals.as_ref(),
        ));
    }
    let body = plots(&figures)
        + &ways(up, down, found)
        + &accounts(&[("up".to_owned(), &up.account), ("down".to_owned(), &down.account)])
        + &format!("<p class=\"note\">{}</p>\n", clocks(found));
    subject.page("The line to", &tiles, &found.notes, &body)
}

/// How the rate was found: what came through of each train.
fn trains(up: &WayEstimate, down: &WayEstimate) -> String {
    let mut lines = Vec::new();
    for (way, name) in [(up, "up"), (down, "down")] {
        let points = way
            .available
            .trains
            .iter()
            .map(|train| (mbps(train.sent_bps), mbps(train.received_bps)));
        lines.push(Curve {
            name: name.to_owned(),
            points: points.collect(),
            has_dots: true,
            goes_with: None,
        });
    }
    let all = || lines.iter().flat_map(|line| line.points.iter());
    let sent = || all().map(|(sent, _)| *sent).filter(|sent| *sent > 0.0);
    let scale = Scale::decades(
        sent().chain(all().map(|(_, received)| *received)).filter(|rate| *rate > 0.0),
    );
    let level = Axis { name: "sent, Mbit/s of UDP payload", scale };
    let upright = Axis { name: "received, Mbit/s", scale };
    let (least, most) = (sent().fold(f64::INFINITY, f64::min), sent().fold(0.0, f64::max));
    if least.is_finite() {
        let points = vec![(least, least), (most, most)];
        lines.push(Curve {
            name: "all that was sent".to_owned(),
            points,
            has_dots: false,
            goes_with: None,
        });
    }
    let says = "Trains of datagrams, each four times as fast as the one before. Where a line \
               leaves the straight one, more was sent than \
                the line carries.";
    curves(Caption { title: "Received against sent", says }, level, upright, &lines)
}

/// How delays spread above the least.
fn delays(up: &WayEstimate, down: &WayEstimate, found: &Survey) -> String {
    let above = |way: &WayEstimate| {
        let least = way.one_way.iter().min().copied().unwrap_or(0);
        way.one_way
            .iter()
            .map(|delay| delay.saturating_sub(least) as f64 / 1e6)
            .collect::<Vec<f64>>()
    };
    let lines = [at_least("up", &above(up)), at_least("down", &above(down))];
    let all = || lines.iter().flat_map(|line| line.points.iter());
    let level = Axis {
        name: "one-way delay above the least, ms",
        scale: Scale::decades(all().map(|(x, _)| *x)),
    };
    let upright =
        Axis { name: "part at least so late", scale: Scale::decades(all().map(|(_, y)| *y)) };
    let says = format!(
        "The part of the datagrams that came at least so much later than the fastest, which took \
        {:.3} ms up and {:.3} ms down, \
         to ± {:.3} ms.",
        up.one_way_ms.min, down.one_way_ms.min, found.clocks.uncertainty_ms
    );
    curves(Caption { title: "How delays spread", says: &says }, level, upright, &lines)
}

fn ways(up: &WayEstimate, down: &WayEstimate, found: &Survey) -> String {
    let row =
        |what: &str, of: &dyn Fn(&WayEstimate) -> String| vec![what.to_owned(), of(up), of(down)];
    let rows = [
        row("available with IP headers", &|way| rate(way.available.ip_bits_per_second)),
        row("round trip when full, most", &|way| {
            format!("{:.3} ms", way.available.loaded_round_trip_ms.max)
        }),
        row("queue when full", &|way| {
            found.queue(way).map_or_else(|| "not filled".to_owned(), |queue| queue.words())
        }),
        row("longest UDP payload", &|way| format!("{} bytes", way.payload_max)),
        row("the stream's datagrams", &|way| {
            format!("{} of {} bytes", way.sum.packets, way.stream.payload)
        }),
        row("the stream's rate", &|way| {
            let share = super::percent_of(way.sum.bits_per_second, way.available.bits_per_second);
            format!("{}, {share} of available", rate(way.sum.bits_per_second as u64))
        }),
        row("one-way delay, median", &|way| format!("{:.3} ms", way.one_way_ms.p50)),
        row("one-way delay, 99 %", &|way| format!("{:.3} ms", way.one_way_ms.p99)),
        row("jitter (RFC 3550)", &|way| format!("{:.3} ms", way.sum.jitter_ms)),
        row("lost, with 95 %", &|way| {
            format!("{} to {}", percent(way.loss.loss_95[0]), percent(way.loss.loss_95[1]))
        }),
        row("losses are", &|way| way.loss.character.words().to_owned()),
        row("runs of losses, mean", &|way| format!("{:.2}", way.loss.run_mean)),
        row("out of order", &|way| percent(way.reordering.ppm as f64 / 1e6)),
        row("left late, 99 %", &|way| format!("{:.1} us", way.pacing_error_us.p99)),
    ];
    table("Each way", &["", "up", "down"], &rows, &[0])
}

fn clocks(found: &Survey) -> String {
    let clocks = found.clocks;
    let side = if clocks.ahead_ms < 0.0 { "behind" } else { "ahead of" };
    let skew = clocks.skew_ppm.map_or(String::new(), |skew| {
        format!(", and runs {:.1} ppm {}", skew.abs(), if skew < 0.0 { "slower" } else { "faster" })
    });
    format!(
        "The far end's clock is {:.3} ms {side} this one's{skew}; by the shortest round trip that \
        is wrong by {:.3} ms at most, and so \
         are the one-way delays.",
        clocks.ahead_ms.abs(),
        clocks.uncertainty_ms
    )
}

fn mbps(bps: u64) -> f64 {
    bps as f64 / 1e6
}
