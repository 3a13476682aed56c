//! What a session, and the process that has it, tell of what they wait for: what `skyhaul why`
//! judges.

use serde::{Deserialize, Serialize};
use skyhaul_net::{Shortage, ThreadTimes};
use skyhaul_transport::{Session, Waits};
use skyhaul_units::{Duration, Instant};

/// What a station's session with its centre waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Seconds from when the session began, by what it waited for.
    pub waited_s: WaitedStatus,
    /// Bytes that the centre lets be under way and not yet written there.
    pub window_bytes: u64,
}

/// Seconds of a session; the sum is all since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitedStatus {
    /// For blocks: all that the spool had were sent.
    pub application: f64,
    /// For the far end to take more.
    pub window: f64,
    /// For reports that free its own buffer.
    pub buffer: f64,
    /// For rates given to classes.
    pub classes: f64,
    /// For a path: its window or its pacing.
    pub path: f64,
}

/// A thread of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadStatus {
    /// The system's number for it.
    pub id: u64,
    /// What it is for: the line has `line`, an input `channel`, the disk `spool` or `store`.
    pub name: String,
    /// Processor time since it started, in seconds.
    pub cpu_s: f64,
    /// For how long it was ready to run and did not, in seconds.
    #[serde(default)]
    pub ready_s: f64,
}

/// What has kept a node's process from running since the machine and its control group started; all
/// only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ShortageStatus {
    /// Seconds for which its control group, or one above that, was stopped because it had used up
    /// its quota.
    pub throttled_s: f64,
    /// Ticks that the host of this virtual machine gave to others, of all processors.
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
        let Waits { application, window, buffer, classes, path } = session.waits_until(now);
        let [application, window, buffer, classes, path] =
            [application, window, buffer, classes, path].map(Duration::as_secs_f64);
        Self {
            waited_s: WaitedStatus { application, window, buffer, classes, path },
            window_bytes: session.peer_window().as_u64(),
        }
    }
}

/// The threads of this process; none where the system does not tell.
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
