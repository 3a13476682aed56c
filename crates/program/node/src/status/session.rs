//! What a session, and its process, waited for: the data for `skyhaul why`.

use serde::{Deserialize, Serialize};
use skyhaul_net::{Shortage, ThreadTimes};
use skyhaul_transport::{Session, Waits};
use skyhaul_units::{Duration, Instant};

/// What a station's session with its centre waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Seconds since the session began, by what it waited for.
    pub waited_s: WaitedStatus,
    /// The centre's receive window: bytes that may be under way and not yet written there.
    pub window_bytes: u64,
    /// What it uses of the line; none where it has the line to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareStatus>,
}

/// What a session uses of a line that it shares with sessions to other destinations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareStatus {
    /// Its rate over the last second, in bit/s, counted in IP packets.
    pub rate_bps: u64,
    /// Bytes of all classes since the session began.
    pub sent_bytes: u64,
    /// Of them, what went beyond the guarantees of the classes.
    pub borrowed_bytes: u64,
}

/// Seconds of a session; their sum is its age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitedStatus {
    /// For blocks: all of the spool's were sent.
    pub application: f64,
    /// For the far end's receive window.
    pub window: f64,
    /// For reports that free its own send buffer.
    pub buffer: f64,
    /// For the ceilings of classes.
    pub classes: f64,
    /// For a path: its congestion window or its pacing.
    pub path: f64,
}

/// A thread of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadStatus {
    /// The system's number for it.
    pub id: u64,
    /// Its name: `line` for the line, `channel` for an input, `spool` or `store` for the disk.
    pub name: String,
    /// Processor time since it started, in seconds.
    pub cpu_s: f64,
    /// Seconds for which it was ready to run and did not.
    #[serde(default)]
    pub ready_s: f64,
}

/// Shortages of processor time since the machine and its control group started; all values only
/// grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ShortageStatus {
    /// Seconds for which its control group, or one above, was throttled because it had used up its
    /// quota.
    pub throttled_s: f64,
    /// Ticks that the host of this virtual machine gave to others, on all processors.
    pub stolen_ticks: u64,
    /// Ticks of all processors.
    pub ticks: u64,
}

impl ShortageStatus {
    /// Of this process, now.
    pub fn now() -> Self {
        let Shortage { throttled, stolen, ticks } = Shortage::now();
        Self { throttled_s: throttled.as_secs_f64(), stolen_ticks: stolen, ticks }
    }
}

impl SessionStatus {
    /// Of a session, now.
    pub fn of(session: &Session, now: Instant) -> Self {
        let Waits { application, window, buffer, classes, path } = session.waits().until(now);
        let [application, window, buffer, classes, path] =
            [application, window, buffer, classes, path].map(Duration::as_secs_f64);
        Self {
            waited_s: WaitedStatus { application, window, buffer, classes, path },
            window_bytes: session.sender().peer_window().as_u64(),
            share: session.sender().sharing().used(now).map(|used| ShareStatus {
                rate_bps: used.rate.as_bps(),
                sent_bytes: used.sent.as_u64(),
                borrowed_bytes: used.borrowed.as_u64(),
            }),
        }
    }
}

/// The threads of this process; none where the system does not show them.
pub fn threads() -> Vec<ThreadStatus> {
    let times = ThreadTimes::now();
    let shown = times.threads().map(|(id, thread)| ThreadStatus {
        id,
        name: thread.name.clone(),
        cpu_s: thread.ran.as_secs_f64(),
        ready_s: thread.waited.as_secs_f64(),
    });
    shown.collect()
}
