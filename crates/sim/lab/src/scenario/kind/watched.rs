//! What the kinds with one lossy path share: the path, and the part of a run that counts.

use super::ParametersRefused;
use crate::world::WorldPath;
use crate::{Acknowledging, PlainLine};
use skyhaul_units::{Duration, Probability, Rate};

/// A path over a line of this rate, round trip and loss, each packet lost alone in both directions,
/// whose far end acknowledges as QUIC does.
pub(super) fn path(rate: Rate, rtt: Duration, loss: Probability) -> WorldPath {
    let acknowledging = Acknowledging::Batches;
    WorldPath::new(PlainLine {
        rate,
        one_way_delay: rtt / 2,
        loss,
        acknowledging,
        ..PlainLine::default()
    })
}

/// # Errors
/// Nothing of the run is left to count after start-up.
pub(super) fn check(warm_up: Duration, duration: Duration) -> Result<(), ParametersRefused> {
    if warm_up < duration {
        return Ok(());
    }
    Err(ParametersRefused::new("the start-up takes the whole run; lengthen `duration`"))
}
