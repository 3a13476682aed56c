//! Shares in parts per million: state stays in integers.

use skyhaul_units::{Duration, Rate};

/// One, in parts per million.
pub(super) const PPM: u64 = 1_000_000;

/// `part` ÷ `whole`.
pub(super) fn ppm(part: Duration, whole: Duration) -> u64 {
    of(part.as_nanos(), whole.as_nanos())
}

/// `part` ÷ `whole`.
pub(super) fn ppm_of(part: Rate, whole: Rate) -> u64 {
    of(part.as_bps(), whole.as_bps())
}

fn of(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * u128::from(PPM) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}
