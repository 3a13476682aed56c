//! The connections of one transfer: when the session is lost, it connects again and resumes.

use super::screen::{Screen, TransferRole, TransferVerdict};
use skyhaul_channels_io::{AppChannel, AppClient, ClientSetup, PathChoice};
use skyhaul_exit::{Exit, Failure};
use skyhaul_files::RefusalReason;
use skyhaul_files_io::{Cancel, Counters, Event, TransferEnd, TransferReports, TransferTask};
use skyhaul_net::Clock;
use skyhaul_quic::Fingerprint;
use skyhaul_transport::Stats;
use skyhaul_units::{Duration, Instant};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// How to connect to the far node.
pub struct FarNode {
    pub setup: ClientSetup,
    pub ways: Vec<PathChoice>,
    pub peer: Fingerprint,
    pub node: String,
}

/// A transfer.
pub struct FileTransfer {
    pub call: FarNode,
    /// Whether its source can be read again.
    pub again: bool,
    /// Whether it connects again if the far node does not answer the first time.
    pub patient: bool,
    /// Which end this is.
    pub role: TransferRole,
}

/// How a connection ended that the far node had answered.
enum Ended {
    Whole,
    Lost(String),
    /// Before any data moved: the far node has as many transfers as it accepts.
    Busy(String),
}

/// What the transfer's thread and the screen share.
struct Shared<'a> {
    /// The user interrupts it.
    stop: &'a AtomicBool,
    cancel: Cancel,
    counters: Arc<Counters>,
    stage: Mutex<Stage>,
    /// Since the connection attempt.
    clock: Clock,
}

/// The stage of a connection.
enum Stage {
    Calling,
    Open(Arc<AppChannel>),
    Over,
}

impl FileTransfer {
    /// Runs to the end of `task`, which is made anew for each connection; `stop` interrupts it.
    ///
    /// # Errors
    /// The far node does not answer, or refuses; it was interrupted.
    pub fn run(
        &self,
        stop: &AtomicBool,
        task: &(dyn Fn(usize) -> Result<TransferTask, Failure> + Sync),
        mut screen: Screen,
        out: &mut dyn Write,
    ) -> Result<TransferVerdict, Failure> {
        crate::commands::forward::raise_descriptors();
        let (mut pause, mut was_busy) = (FIRST_PAUSE, false);
        for attempt in 1.. {
            let cancel = Cancel::default();
            let stage = Mutex::new(Stage::Calling);
            let clock = Clock::start();
            let shared = Shared { stop, cancel, counters: Arc::default(), stage, clock };
            let (events, told) = sync_channel(super::EVENTS);
            let ended = std::thread::scope(|scope| {
                let reports = TransferReports { events, counters: Arc::clone(&shared.counters) };
                let worker = scope.spawn(|| self.attempt(attempt, task, reports, &shared));
                let shown = self.follow(&told, &shared, &mut screen, out);
                if shown.is_err() {
                    shared.cancel.set();
                    // The remaining events are drained: the transfer's thread waits for room in the
                    // queue before it sees that it is cancelled.
                    told.iter().for_each(drop);
                }
                shown.and(worker.join().expect("no thread of a transfer panics"))
            });
            if stop.load(Ordering::Relaxed) {
                let help = "run the same command again: it resumes";
                return Err(Failure::new(Exit::Interrupted, "the copy was interrupted", help));
            }
            match ended? {
                Ended::Whole => return screen.finish(&shared.counters, out),
                Ended::Busy(reason) => {
                    if !was_busy {
                        screen.busy(&self.call.node, &reason, out)?;
                    }
                    was_busy = true;
                    wait(pause, stop);
                    pause = (pause + pause).min(LONGEST_PAUSE);
                }
                Ended::Lost(reason) if self.again => {
                    screen.lost(&self.call.node, &reason, out)?;
                    wait(pause, stop);
                    pause = (pause + pause).min(LONGEST_PAUSE);
                }
                Ended::Lost(reason) => {
                    let what = format!("the session with `{}` was lost ({reason})", self.call.node);
                    let help = "standard input cannot be read again: restart the whole pipe";
                    return Err(Failure::new(Exit::Peer, &what, help));
                }
            }
        }
        unreachable!("attempts are not numbered to their end")
    }

    /// Connects, and carries out the task.
    fn attempt(
        &self,
        attempt: usize,
        task: &(dyn Fn(usize) -> Result<TransferTask, Failure> + Sync),
        reports: TransferReports,
        shared: &Shared<'_>,
    ) -> Result<Ended, Failure> {
        let task = task(attempt)?;
        let exchange = AppClient::start(self.call.setup.clone())
            .map_err(|error| Failure::from_sentence(Exit::Environment, &error.to_string()))?;
        let called = shared.cancel.or(exchange.connect_over(&self.call.ways, self.call.peer));
        let link = match called {
            None => return Ok(Ended::Lost("interrupted".to_owned())),
            Some(Ok(link)) => Arc::new(link),
            Some(Err(error)) if attempt > 1 || self.patient => {
                return Ok(Ended::Lost(error.to_string()));
            }
            Some(Err(error)) => return Err(self.unanswered(&error.to_string())),
        };
        shared.enter(Stage::Open(Arc::clone(&link)));
        let end = skyhaul_files_io::call(&link, task, &reports, &shared.cancel);
        shared.enter(Stage::Over);
        let node = &self.call.node;
        match end {
            Ok(()) => Ok(Ended::Whole),
            Err(TransferEnd::Lost(reason)) => Ok(Ended::Lost(reason)),
            Err(TransferEnd::Cancelled) => Ok(Ended::Lost("interrupted".to_owned())),
            Err(TransferEnd::Refused(refused)) if refused.reason == RefusalReason::Busy => {
                Ok(Ended::Busy(refused.sentence))
            }
            Err(TransferEnd::Refused(refused)) => Err(Failure::from_sentence(
                Exit::Peer,
                &format!("the far node `{node}` refuses: {refused}"),
            )),
            Err(TransferEnd::Here(refused)) => {
                Err(Failure::from_sentence(Exit::Environment, &refused.to_string()))
            }
            Err(TransferEnd::Malformed(what)) => {
                let what = format!("protocol error from the far node `{node}` ({what})");
                Err(Failure::new(Exit::Peer, &what, "install the same version at both ends"))
            }
        }
    }

    /// Shows events until the transfer's thread has ended.
    fn follow(
        &self,
        told: &Receiver<Event>,
        shared: &Shared<'_>,
        screen: &mut Screen,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let call = self.call.title();
        loop {
            match told.recv_timeout(LOOK) {
                Ok(event) => screen.take(event, self.role, out)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if shared.stop.load(Ordering::Relaxed) {
                shared.cancel.set();
            }
            if shared.is_calling() {
                screen.calling(&call, shared.clock.now().since(Instant::ZERO), out)?;
            } else {
                screen.look(&shared.counters, || shared.stats(), out)?;
            }
        }
    }

    fn unanswered(&self, reason: &str) -> Failure {
        let what =
            format!("the far node `{}` does not answer or refuses ({reason})", self.call.node);
        let help = "check that it runs `skyhaul files serve`, that --node is its address and \
                   --peer its key, and that it \
                    knows this node's key";
        Failure::new(Exit::Peer, &what, help)
    }
}

impl FarNode {
    /// The far node and its addresses.
    fn title(&self) -> String {
        let ways: Vec<String> = self.ways.iter().map(|way| way.remote.to_string()).collect();
        format!("{} ({})", self.node, ways.join(", "))
    }
}

impl Shared<'_> {
    fn enter(&self, stage: Stage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }

    fn is_calling(&self) -> bool {
        matches!(*self.stage.lock().unwrap_or_else(PoisonError::into_inner), Stage::Calling)
    }

    /// The session's counters.
    fn stats(&self) -> Option<Stats> {
        match &*self.stage.lock().unwrap_or_else(PoisonError::into_inner) {
            Stage::Open(link) => Some(link.stats()),
            Stage::Calling | Stage::Over => None,
        }
    }
}

/// Waits before the next connection attempt, or until it is interrupted.
fn wait(pause: Duration, stop: &AtomicBool) {
    let looks = pause.as_millis() / LOOK.as_millis() as u64;
    for _ in 0..looks {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::park_timeout(LOOK);
    }
}

/// Between two looks at the counters.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
