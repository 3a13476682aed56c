//! What the production session manager gets out of long lossy lines, in virtual time: a table kept
//! as a snapshot.
//!
//! Each cell is the share of what the line can carry at best: bytes of blocks given out in order,
//! after start-up, over rate × (1 − loss) × (block bytes in a full symbol ÷ its IP packet).
//!
//! `make test` runs two cells of the first row and the cell with loss both ways, `make test-all`
//! the whole table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::pair::{self, Line, Transfer};
use crate::rung::is_all;
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};
use std::fmt::Write;

/// What every cell must reach.
const BAR: f64 = 0.97;
/// Loss of the columns, in parts per thousand.
const LOSSES: [u64; 7] = [0, 1, 5, 10, 50, 100, 140];
const FEW_LOSSES: [u64; 2] = [10, 140];

/// How often the position is looked at.
const SAMPLE: Duration = Duration::from_millis(50);

/// A row: the line, and how long it is watched after start-up.
const ROWS: [(Line, Duration); 3] = [
    (Line::of(Rate::from_mbps(93), Duration::from_millis(160)), Duration::from_secs(20)),
    (Line::of(Rate::from_mbps(300), Duration::from_millis(160)), Duration::from_secs(16)),
    (Line::of(Rate::from_mbps(50), Duration::from_millis(660)), Duration::from_secs(40)),
];

#[test]
fn a_long_lossy_line_is_used_to_the_full() {
    let (count, losses) = if is_all() { (ROWS.len(), &LOSSES[..]) } else { (1, &FEW_LOSSES[..]) };
    let row = |(line, watched): (Line, Duration)| {
        let cell = move |loss| goodput(Line { loss: Probability::of(loss, 1000), ..line }, watched);
        let cells = std::thread::scope(|scope| {
            let begun: Vec<_> =
                losses.iter().map(|loss| scope.spawn(move || cell(*loss))).collect();
            begun.into_iter().map(|handle| handle.join().unwrap()).collect()
        });
        (line.name(), cells)
    };
    let mut rows: Vec<(String, Vec<f64>)> = ROWS[..count].iter().copied().map(row).collect();
    let (line, watched) = ROWS[2];
    let tenth = Probability::of(10, 100);
    let both = goodput(Line { loss: tenth, loss_back: tenth, ..line }, watched);
    rows.push((format!("{}, 10 % both ways", line.name()), vec![both]));

    let mut table = format!("{:34}", "loss, %");
    losses.iter().for_each(|loss| write!(table, "{:>7.1}", *loss as f64 / 10.0).unwrap());
    for (name, cells) in &rows {
        write!(table, "\n{name:34}").unwrap();
        cells.iter().for_each(|cell| write!(table, "{cell:>7.3}").unwrap());
    }
    println!("{table}");
    for (name, cells) in &rows {
        assert!(cells.iter().all(|cell| (BAR..1.01).contains(cell)), "{name}: {cells:?}");
    }
    if is_all() {
        insta::assert_snapshot!(table);
    } else {
        insta::assert_snapshot!("the_first_lossy_line_is_used_to_the_full", table);
    }
}

#[test]
fn a_session_begins_and_carries_a_megabyte_over_a_satellite_line_at_ten_per_cent_loss_both_ways() {
    let tenth = Probability::of(10, 100);
    let line = Line::of(Rate::from_mbps(50), Duration::from_millis(660));
    let mut slowest = Duration::ZERO;
    let seeds = if is_all() { 50 } else { 10 };
    for seed in 0..seeds {
        let mut transfer =
            Transfer::new(Line { loss: tenth, loss_back: tenth, ..line }, seed, Some(4));
        let limit = Instant::ZERO + Duration::from_secs(15);
        let done = transfer.run_until(limit, |transfer| transfer.delivered() == ByteCount::mib(1));
        assert!(done, "seed {seed}: {} of 1 MiB", transfer.delivered());
        slowest = slowest.max(transfer.now().since(Instant::ZERO));
    }
    println!("slowest of {seeds}: {:.1} s", slowest.as_secs_f64());
}

/// The share of what the line can carry at best. The pace is taken between the mean positions in
/// the two halves of the watch: by how much the order happens to lag at one instant, several round
/// trips at 14 % loss, does not count.
fn goodput(line: Line, watched: Duration) -> f64 {
    let mut transfer = Transfer::new(line, 1, None);
    let from = Instant::ZERO + Duration::from_secs(3) + line.rtt * 6;
    let half = watched.as_millis() / 2 / SAMPLE.as_millis();
    let mut mean = |half_from: Instant| {
        let positions = (1..=half).map(|sample| {
            transfer.run_until(half_from + SAMPLE * sample, |_| false);
            transfer.delivered().as_u64() as f64
        });
        positions.sum::<f64>() / half as f64
    };
    let bytes = -mean(from) + mean(from + watched / 2);
    let best = (line.rate * (watched / 2)).as_u64() as f64 * line.loss.complement().as_f64();
    let symbol = pair::SYMBOL_PAYLOAD.as_u64() as f64 / pair::IP_PACKET.as_u64() as f64;
    bytes / (best * symbol)
}
