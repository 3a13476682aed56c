//! How measured figures are written for people, on pages and on the terminal.

use crate::stats::{LossProcess, ReorderingStats, Spread};

/// A rate to three figures or more.
pub fn rate(bits_per_second: u64) -> String {
    let bps = bits_per_second as f64;
    match bps {
        _ if bps >= 1e9 => format!("{:.2} Gbit/s", bps / 1e9),
        _ if bps >= 1e6 => format!("{:.2} Mbit/s", bps / 1e6),
        _ => format!("{:.1} kbit/s", bps / 1e3),
    }
}

/// An amount of bytes.
pub fn bytes(bytes: u64) -> String {
    let amount = bytes as f64;
    match amount {
        _ if amount >= 1e6 => format!("{:.2} MB", amount / 1e6),
        _ if amount >= 1e3 => format!("{:.1} kB", amount / 1e3),
        _ => format!("{bytes} B"),
    }
}

/// A part of a whole; small ones with the figures that matter.
pub fn percent(part: f64) -> String {
    let percent = part * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        _ if percent >= 10.0 => format!("{percent:.1} %"),
        _ if percent >= 0.01 => format!("{percent:.3} %"),
        // Smaller: two digits of it, as far as anybody can measure.
        _ if percent >= LEAST_PERCENT => {
            let decimals = 1 - percent.log10().floor() as i32;
            format!("{percent:.*} %", usize::try_from(decimals).unwrap_or(0))
        }
        // The lower end of an interval that holds nothing, too.
        _ => "0 %".to_owned(),
    }
}

/// One in a billion: less than any measurement tells from nothing.
const LEAST_PERCENT: f64 = 1e-7;

/// How much of a rate another one is, to a hundredth.
pub fn percent_of(part: f64, whole: u64) -> String {
    format!("{:.0} %", part * 100.0 / f64::max(whole as f64, 1.0))
}

/// How delays spread.
pub fn spread(spread: &Spread, unit: &str) -> String {
    let Spread { min, p50, p99, max, .. } = spread;
    format!("{min:.3} at least, {p50:.3} median, {p99:.3} for 99 %, {max:.3} {unit} at most")
}

/// What kind of loss it is, in a few words.
pub fn loss(loss: &LossProcess) -> String {
    if loss.lost == 0 {
        return format!("none of {}; below {} with 95 %", loss.sent, percent(loss.loss_95[1]));
    }
    let [low, high] = loss.loss_95;
    format!(
        "{} ({} of {}; {} to {} with 95 %), {}; runs of {:.2} on average",
        percent(loss.loss),
        loss.lost,
        loss.sent,
        percent(low),
        percent(high),
        loss.character.words(),
        loss.run_mean
    )
}

/// What came out of order.
pub fn reordering(found: &ReorderingStats) -> String {
    if found.reordered == 0 {
        return "none".to_owned();
    }
    format!(
        "{} datagrams ({}), {} places late at most",
        found.reordered,
        percent(found.ppm as f64 / 1e6),
        found.extent_max
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_are_written_without_exponents() {
        for (part, said) in [
            (0.0, "0 %"),
            (0.5, "50.0 %"),
            (0.0123, "1.230 %"),
            (0.000_054, "0.0054 %"),
            (0.000_001_234, "0.00012 %"),
            (5.4e-20, "0 %"),
        ] {
            assert_eq!(percent(part), said);
        }
    }
}
