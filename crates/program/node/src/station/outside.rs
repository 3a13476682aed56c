//! What is known of the paths from outside: a thread for each path that has a feed or a plan.
//!
//! Each thread looks ten times a second, and leaves what it knows on a board, from which the thread
//! of the line takes it. No end of a feed can hold it up: sockets and pipes do not block.

pub mod board;
mod feed_reader;
mod plan_file;
mod watch;

use super::shared::StationShared;
use crate::fault::Fault;
use crate::services;
use skyhaul_config::LinePath;
use skyhaul_net::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use watch::PathWatch;

/// The threads that watch feeds and plans.
#[derive(Debug)]
pub struct OutsideWatches {
    shared: Arc<StationShared>,
    clock: Clock,
    running: Vec<RunningWatch>,
}

#[derive(Debug)]
struct RunningWatch {
    config: LinePath,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl OutsideWatches {
    /// Watches what these paths name.
    ///
    /// # Errors
    /// There is no room for a thread.
    pub fn start(
        paths: Vec<LinePath>,
        shared: &Arc<StationShared>,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let mut watches = Self { shared: shared.clone(), clock, running: Vec::new() };
        for path in paths.into_iter().filter(is_watched) {
            watches.begin(path)?;
        }
        Ok(watches)
    }

    fn begin(&mut self, config: LinePath) -> Result<(), Fault> {
        let stop = Arc::new(AtomicBool::new(false));
        let watch = PathWatch::new(&config, self.shared.clone(), stop.clone(), self.clock);
        let thread = services::thread("path", move || watch.run())?;
        self.running.push(RunningWatch { config, stop, thread });
        Ok(())
    }

    /// Watches what these paths name, and no longer what others did. Returns what changed, a
    /// sentence each.
    pub fn adopt(&mut self, paths: Vec<LinePath>) -> Vec<String> {
        let watched: Vec<LinePath> = paths.into_iter().filter(is_watched).collect();
        let is_as = |one: &RunningWatch| watched.iter().any(|path| is_same(path, &one.config));
        let (stay, gone): (Vec<RunningWatch>, Vec<RunningWatch>) =
            self.running.drain(..).partition(is_as);
        self.running = stay;
        let mut changes = Vec::new();
        for watch in gone {
            let title = watch.config.title().to_owned();
            if !watched.iter().any(|path| path.title() == title) {
                changes.push(format!("path {title}: its feed and plan are not used any more"));
            }
            watch.end();
        }
        for path in watched {
            if self.running.iter().any(|one| one.config.title() == path.title()) {
                continue;
            }
            let title = path.title().to_owned();
            changes.push(match self.begin(path) {
                Ok(()) => format!("path {title}: its feed and plan are read anew"),
                Err(fault) => format!("path {title}: its feed and plan are not read: {fault}"),
            });
        }
        changes
    }

    /// Ends all of them.
    pub fn end(self) {
        self.running.into_iter().for_each(RunningWatch::end);
    }
}

impl RunningWatch {
    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic was logged; what the thread knew is forgotten with it.
        let _ = self.thread.join();
    }
}

fn is_watched(path: &LinePath) -> bool {
    path.feed.is_some() || path.plan.is_some()
}

/// Whether the same is watched for the same path.
fn is_same(one: &LinePath, other: &LinePath) -> bool {
    let keys = |path: &LinePath| {
        let LinePath { feed, feed_stale, map, plan, .. } = path.clone();
        (path.title().to_owned(), feed, feed_stale, map, plan)
    };
    keys(one) == keys(other)
}
