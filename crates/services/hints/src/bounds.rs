//! The range of what a hint may say. What is beyond it is a typing error, or a modem's fault.

use skyhaul_units::{Probability, Rate};

/// FEC repair for more would cost ten times the data: such a path is out.
pub const LOSS_MAX: Probability = Probability::from_ppb(900_000_000);
/// A full datagram of 1500 bytes takes 12 s: below, no session lives.
pub const RATE_MIN: Rate = Rate::from_bps(1_000);
/// Beyond any line.
pub const RATE_MAX: Rate = Rate::from_mbps(1_000_000);

/// Whether a loss may be hinted.
///
/// # Errors
/// A sentence: it is out of range.
pub fn check_loss(loss: Probability) -> Result<(), String> {
    if loss <= LOSS_MAX {
        return Ok(());
    }
    Err(format!("a loss of {loss} is out of range; give at most {LOSS_MAX}, or an outage"))
}

/// Whether a rate may be hinted.
///
/// # Errors
/// A sentence: it is out of range.
pub fn check_rate(rate: Rate) -> Result<(), String> {
    if (RATE_MIN..=RATE_MAX).contains(&rate) {
        return Ok(());
    }
    Err(format!("a rate of {rate} is out of range; give {RATE_MIN} to {RATE_MAX}, or an outage"))
}
