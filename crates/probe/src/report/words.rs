//! How measured figures are written for people, on pages and on the terminal.

use crate::stats::{LossProcess, Reordering, Spread};

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
        _ => format!("{percent:.1e} %"),
    }
}

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
pub fn reordering(found: &Reordering) -> String {
    if found.reordered == 0 {
        return "none".to_owned();
    }
    format!("{} datagrams ({} ppm), {} places late at most", found.reordered, found.ppm, found.extent_max)
}
