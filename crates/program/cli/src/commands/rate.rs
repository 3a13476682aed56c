//! Formats of a rate and a share.

use skyhaul_probe::report::percent;
use skyhaul_units::Probability;

/// A measured rate, to three digits or more.
pub fn rate_text(bps: u64) -> String {
    let bps = bps as f64;
    if bps >= 1e9 { format!("{:.3} Gbit/s", bps / 1e9) } else { format!("{:.3} Mbit/s", bps / 1e6) }
}

/// A share in percent: as it was written where that is short, and rounded where it was measured.
pub fn share_text(share: Probability) -> String {
    let exact = share.to_string();
    if exact.ends_with('%') { exact } else { percent(share.as_f64()) }
}
