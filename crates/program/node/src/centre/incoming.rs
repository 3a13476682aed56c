//! File transfers of stations to and from their folders here: each over an application channel of
//! the station's session, on a thread of its own.

use super::shared::CentreShared;
use skyhaul_channels_io::{AppChannel, ChannelService};
use skyhaul_files::RefusalReason;
use skyhaul_files_io::{Cancel, Counters, EntryOutcome, Event, Root, TransferEnd, TransferReports};
use skyhaul_quic::Fingerprint;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

/// Serves the stations' files.
#[derive(Debug)]
pub struct FileService {
    door: ChannelService,
    /// Name and folder of each station that has a folder, by its key.
    roots: BTreeMap<Fingerprint, (String, Root)>,
    shared: Arc<CentreShared>,
}

/// Transfers at a time; each has five threads.
const TRANSFERS_MAX: usize = 64;
/// Transfers at a time that are refused with a message, beyond [`TRANSFERS_MAX`].
const DECLINES_MAX: usize = 16;
/// Events that wait to be counted.
const EVENTS: usize = 1_024;

impl FileService {
    /// Serves these folders.
    pub const fn new(
        door: ChannelService,
        roots: BTreeMap<Fingerprint, (String, Root)>,
        shared: Arc<CentreShared>,
    ) -> Self {
        Self { door, roots, shared }
    }

    /// Runs until the centre ends, which closes the service.
    pub fn run(self) {
        let cancel = Cancel::default();
        let running = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while let Some(Some(link)) = cancel.or(self.door.accept()) {
                let (this, running) = (&self, &running);
                let place = running.fetch_add(1, Ordering::Relaxed);
                if place >= TRANSFERS_MAX + DECLINES_MAX {
                    // Closing the application channel makes the station try again.
                    running.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                scope.spawn(move || {
                    this.serve(&link, place);
                    running.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
    }

    fn serve(&self, link: &AppChannel, place: usize) {
        let cancel = Cancel::default();
        let root = link.peer().and_then(|key| self.roots.get(&key));
        let declined = match root {
            _ if place >= TRANSFERS_MAX => {
                let sentence = format!(
                    "the centre has {TRANSFERS_MAX} transfers in progress, its limit; retry later"
                );
                skyhaul_files_io::decline(link, RefusalReason::Busy, &sentence, &cancel)
            }
            None => {
                let sentence = "the centre does not accept files from this station; add \
                               [peer.files] to its [[peer]] there";
                skyhaul_files_io::decline(link, RefusalReason::NotAllowed, sentence, &cancel)
            }
            Some((station, root)) => return self.transfer(link, station, root, &cancel),
        };
        if let Err(end) = declined {
            tracing::debug!(?end, "transfer rejected; station disconnected");
        }
    }

    fn transfer(&self, link: &AppChannel, station: &str, root: &Root, cancel: &Cancel) {
        let (events, told) = sync_channel(EVENTS);
        let reports = TransferReports { events, counters: Arc::new(Counters::default()) };
        self.shared.board.files(station, |files| files.transfers += 1);
        let end = std::thread::scope(|scope| {
            let counting = scope.spawn(move || self.count(station, told));
            let end = skyhaul_files_io::serve(link, root, &reports, cancel);
            drop(reports);
            counting.join().expect("counting does not panic");
            end
        });
        self.shared.board.files(station, |files| files.transfers -= 1);
        match end {
            Ok(()) => {}
            Err(TransferEnd::Refused(refused) | TransferEnd::Here(refused)) => {
                tracing::warn!(station, "files refused: {refused}");
            }
            Err(TransferEnd::Malformed(what)) => {
                tracing::warn!(station, "files: protocol error from station: {what}");
            }
            Err(TransferEnd::Lost(_) | TransferEnd::Cancelled) => {
                tracing::info!(station, "files: transfer interrupted; it resumes later");
            }
        }
    }

    fn count(&self, station: &str, told: Receiver<Event>) {
        for Event { path, bytes, fate } in told {
            match fate {
                EntryOutcome::Copied(_) => self.shared.board.files(station, |files| {
                    files.copied += 1;
                    files.bytes += bytes;
                }),
                EntryOutcome::Removed => {
                    self.shared.board.files(station, |files| files.removed += 1);
                }
                EntryOutcome::Failed(refusal) | EntryOutcome::Refused(refusal) => {
                    self.shared.board.files(station, |files| files.failed += 1);
                    tracing::warn!(station, %path, "{refusal}");
                }
                EntryOutcome::Unchanged
                | EntryOutcome::Rights
                | EntryOutcome::Made
                | EntryOutcome::Wanted => {}
            }
        }
    }
}
