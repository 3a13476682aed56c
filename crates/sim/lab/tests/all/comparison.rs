//! Every comparison controller on the lines on which kernels were measured: the tables of
//! docs/explanation/congestion.md, as a snapshot.
//!
//! A [`Cell`] is all that a scenario needs: the line both ways, the flow, the controller, the seed.

use skyhaul_congestion::{ControllerConfig, ScalableCappedConfig};
use skyhaul_lab::flow::{Bottleneck, FlowConfig};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};

/// One run: a greedy flow, alone on a line for a minute, start-up included.
#[derive(Debug, Clone)]
struct Cell {
    controller: ControllerConfig,
    data: LinkConfig,
    returns: LinkConfig,
    flow: FlowConfig,
    seed: u64,
}

/// A line that kernels were measured on: a drop-tail queue of one bandwidth-delay product, loss in
/// the direction of the data.
#[derive(Debug, Clone, Copy)]
struct Line {
    rate: Rate,
    rtt: Duration,
    /// Loss, in parts per billion.
    losses: [u32; 4],
}

const DEEP_SPACE: Line = Line {
    rate: Rate::from_mbps(93),
    rtt: Duration::from_millis(160),
    losses: [0, 1_000_000, 5_000_000, 10_000_000],
};

const ANTARCTICA: Line = Line {
    rate: Rate::from_mbps(50),
    rtt: Duration::from_millis(660),
    losses: [0, 100_000, 1_000_000, 10_000_000],
};

impl Line {
    fn cell(&self, name: &str, ppb: u32) -> Cell {
        let product = self.rate * self.rtt;
        let controller = match name {
            "scalable-capped" => {
                let bound = ByteCount::new(product.as_u64() * 3 / 2);
                ControllerConfig::ScalableCapped(ScalableCappedConfig {
                    bound,
                    ..Default::default()
                })
            }
            _ => name.parse().expect("a name of the list"),
        };
        let returns = LinkConfig {
            rate: Some(self.rate),
            queue: product,
            one_way_delay: self.rtt / 2,
            ..LinkConfig::default()
        };
        let loss = Loss::Independent(Probability::from_ppb(ppb));
        let data = LinkConfig { loss, ..returns.clone() };
        Cell { controller, data, returns, flow: FlowConfig::kernel(), seed: 1 }
    }

    /// Goodput in Mbit/s at each loss, a row for each controller.
    fn rows(&self, names: &[&'static str]) -> Vec<Row> {
        names
            .iter()
            .map(|name| Row { name, goodputs: self.losses.map(|ppb| run(&self.cell(name, ppb))) })
            .collect()
    }
}

/// What a controller reached.
struct Row {
    name: &'static str,
    goodputs: [f64; 4],
}

fn table(rows: &[Row]) -> String {
    let line = |row: &Row| {
        format!("{:<16}{}\n", row.name, row.goodputs.map(|mbps| format!("{mbps:6.1}")).join(""))
    };
    rows.iter().map(line).collect()
}

/// Kernels were measured on the same line to reach `measured`: docs/explanation/congestion.md has
/// the source.
fn agrees(row: &Row, measured: [f64; 4], tolerance: f64) {
    for (ours, measured) in row.goodputs.into_iter().zip(measured) {
        let off = (ours - measured).abs() / measured;
        assert!(off <= tolerance, "{}: {ours:.1} where {measured} was measured", row.name);
    }
}

/// Goodput in Mbit/s of TCP data, as a receiver's program counts it.
fn run(cell: &Cell) -> f64 {
    let mut bottleneck = Bottleneck::new(cell.data.clone(), cell.returns.clone(), cell.seed);
    let flow = bottleneck.add(cell.flow, cell.controller.build(None));
    bottleneck.run_until(Instant::ZERO + SPAN);
    let delivered = bottleneck.flow(flow).delivered * PAYLOAD;
    (delivered * 8) as f64 / 1e6 / SPAN.as_secs_f64()
}

const SPAN: Duration = Duration::from_secs(60);

/// TCP's data in an IP packet of 1500 bytes, with timestamps.
const PAYLOAD: u64 = 1_448;

/// Single runs on a shared machine, start-up included, scatter by as much.
const SCATTER: f64 = 0.3;

#[test]
fn controllers_that_take_loss_for_congestion_fall_away() {
    let rows = DEEP_SPACE.rows(&["reno", "cubic", "scalable", "highspeed"]);
    insta::assert_snapshot!(table(&rows));
    agrees(&rows[0], [87.3, 3.5, 1.3, 0.8], SCATTER);
    agrees(&rows[1], [88.1, 5.4, 1.5, 1.0], SCATTER);
}

#[test]
fn controllers_that_compensate_for_distance_or_read_delay_fall_away_later() {
    insta::assert_snapshot!(table(&DEEP_SPACE.rows(&["hybla", "illinois", "westwood"])));
}

#[test]
fn controllers_by_model_or_fixed_window_hold_the_line() {
    let rows = DEEP_SPACE.rows(&["bbr", "bbr3", "scalable-capped"]);
    insta::assert_snapshot!(table(&rows));
    agrees(&rows[0], [85.5, 83.9, 82.2, 81.5], 0.05);
}

#[test]
fn heavy_loss_brings_them_down_too() {
    let heavy = Line { losses: [20_000_000, 50_000_000, 100_000_000, 140_000_000], ..DEEP_SPACE };
    insta::assert_snapshot!(table(&heavy.rows(&["bbr", "bbr3"])));
}

#[test]
fn a_line_of_660_ms_is_worse_for_all() {
    let rows = ANTARCTICA.rows(&["cubic", "bbr"]);
    insta::assert_snapshot!(table(&rows));
    agrees(&rows[0], [44.0, 24.6, 5.5, 0.5], 0.45);
    agrees(&rows[1], [39.3, 39.3, 37.1, 35.0], 0.05);
}
