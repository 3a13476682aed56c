//! Bounds on what a loss may make of a rate.

use skyhaul_units::Rate;

/// Whatever is lost, at most three times the rate of arrival is sent: at two thirds lost, that is
/// what the line carries.
pub(super) const MOST_SENT: u64 = 3;

/// Where less than one packet in 16 arrives, a link or a host stood still for a moment, which is
/// not a rate: at that of a few packets in a moment the flow would need minutes to come back. Where
/// 16 times less really is the rate, it is reached in several such steps.
const LEAST_CARRIED: u64 = 16;

/// What the line carried of what was sent at `rate`, as far as one measurement can tell.
pub(super) fn least_carried(rate: Rate, arrived: Rate) -> Rate {
    arrived.max(rate.scaled(1, LEAST_CARRIED))
}
