//! How the commands that move or judge data write a rate.

/// A measured rate, to three digits or more.
pub fn rate_text(bps: u64) -> String {
    let bps = bps as f64;
    if bps >= 1e9 { format!("{:.3} Gbit/s", bps / 1e9) } else { format!("{:.3} Mbit/s", bps / 1e6) }
}
