//! Why a measurement ended without a result, and what to do about it.

use super::io::LineError;
use crate::wire::RequestRefusal;
use skyhaul_units::Duration;

/// Why a measurement ended without a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NearError {
    /// The line cannot be used.
    #[error(transparent)]
    Line(#[from] LineError),
    /// Nothing came back at all.
    #[error(
        "no answer in {}; see whether `skyhaul probe serve` runs there, and whether a firewall \
        lets UDP through both ways",
        seconds(*.0)
    )]
    Silent(Duration),
    /// Something came back, but not from a probe.
    #[error("what answers there is no probe; give the address of a `skyhaul probe serve`")]
    Foreign,
    /// The far end is a probe of another version.
    #[error(
        "the far end speaks version {0} of the probe's protocol, this one {own}; install the same \
        release at both ends",
        own = crate::wire::VERSION
    )]
    Version(u8),
    /// The far end refused.
    #[error("{}", refusal(*.0))]
    Refused(RequestRefusal),
    /// The far end stopped answering.
    #[error("the far end stopped answering for {}; see whether the line or the far end is \
            down", seconds(*.0))]
    Lost(Duration),
}

/// A wait as it is shown: whole seconds, rounded up.
fn seconds(span: Duration) -> Duration {
    Duration::from_secs(span.as_millis().div_ceil(1_000))
}

const fn refusal(reason: RequestRefusal) -> &'static str {
    match reason {
        RequestRefusal::Version => {
            "the far end speaks another version; install the same release at both ends"
        }
        RequestRefusal::Cookie => {
            "the far end does not take our address for ours; see whether something on the way \
            changes addresses or ports"
        }
        RequestRefusal::Busy => {
            "the far end is busy with other measurements; try again in a minute"
        }
        RequestRefusal::Limit => {
            "the far end does not allow so much; ask for less, or raise --max-rate and --max-time \
            of `skyhaul probe serve`"
        }
        RequestRefusal::Session => {
            "the far end has ended the measurement; raise --max-time of `skyhaul probe serve`"
        }
    }
}
