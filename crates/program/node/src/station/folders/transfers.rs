//! Files of a drop folder as files of the destination: some at a time over an application channel
//! of the session.

use crate::station::shared::StationShared;
use skyhaul_channels_io::ChannelService;
use skyhaul_config::FolderEntry;
use skyhaul_files::drop_folder::HandedFile;
use skyhaul_files::wire::TransferHello;
use skyhaul_files::{Hash, RefusalReason, RelPath};
use skyhaul_files_io::{
    Cancel, Counters, EntryOutcome, Event, FileSource, FileSourceError, TransferEnd,
    TransferReports, TransferTask,
};
use skyhaul_transport::ClassId;
use skyhaul_units::Duration;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

/// Sends files to the destination.
#[derive(Debug)]
pub struct TransferOutlet {
    /// The index of the destination.
    place: usize,
    door: ChannelService,
    shared: Arc<StationShared>,
}

/// The end of a transfer of some files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferOutcome {
    /// What became of each file that was looked at, and why the others were not.
    Over(BTreeMap<RelPath, FileOutcome>, Option<String>),
    /// The session has ended, or the station ends; so did these files before.
    Lost(BTreeMap<RelPath, FileOutcome>),
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOutcome {
    /// It is on the destination's disk.
    There,
    /// It changed before it was sent.
    Changed,
    /// It can be sent under no circumstances, for this reason.
    Unsendable(String),
    /// It could not be sent now, for this reason.
    Refused(String),
}

/// Files in one transfer, at most: a ledger is synced once for all of them.
pub const FILES_MAX: usize = 256;
/// Bytes of a transfer, beyond which no other file is added.
pub const BYTES_MAX: u64 = 64 << 20;
/// Between two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(200);
/// Events that wait to be counted.
const EVENTS: usize = 1_024;

impl TransferOutlet {
    /// Over the session with destination number `place`, whose channels `door` opens.
    pub const fn new(place: usize, door: ChannelService, shared: Arc<StationShared>) -> Self {
        Self { place, door, shared }
    }

    /// Sends `files` of the folder at `path`.
    pub fn send(&self, config: &FolderEntry, path: &Path, files: &[HandedFile]) -> TransferOutcome {
        let cancel = Cancel::default();
        let (events, told) = sync_channel(EVENTS);
        let reports = TransferReports { events, counters: Arc::new(Counters::default()) };
        let (ended, outcomes) = std::thread::scope(|scope| {
            let cancelled = &cancel;
            let worker = scope.spawn(move || {
                let sources = files.iter().map(|of| FileSource::within(path, &of.file.name));
                self.carry(config.hello(), sources, &reports, cancelled)
            });
            let outcomes = self.collect(&told, files, &cancel);
            (worker.join().expect("no thread of a transfer panics"), outcomes)
        });
        match ended {
            Ok(()) => TransferOutcome::Over(outcomes, None),
            Err(TransferEnd::Lost(_) | TransferEnd::Cancelled) => TransferOutcome::Lost(outcomes),
            Err(TransferEnd::Refused(refused)) => {
                let sentence = format!("the destination refuses: {refused}");
                TransferOutcome::Over(outcomes, Some(sentence))
            }
            Err(TransferEnd::Here(refused)) => {
                TransferOutcome::Over(outcomes, Some(refused.to_string()))
            }
            Err(TransferEnd::Malformed(what)) => {
                let sentence = format!("protocol error from the destination ({what})");
                TransferOutcome::Over(outcomes, Some(sentence))
            }
        }
    }

    fn carry(
        &self,
        hello: TransferHello,
        sources: impl Iterator<Item = Result<FileSource, FileSourceError>>,
        reports: &TransferReports,
        cancel: &Cancel,
    ) -> Result<(), TransferEnd> {
        let link = cancel.or(self.door.connect(self.place, &hello.class));
        let Some(Ok(link)) = link else { return Err(TransferEnd::Cancelled) };
        // A folder that is gone is reported by the next listing.
        let Ok(sources) = sources.collect::<Result<_, _>>() else {
            return Err(TransferEnd::Cancelled);
        };
        // The application channel names the class: a reload may give it another number.
        let task = TransferTask { hello, class: ClassId::default(), sources, into: None };
        skyhaul_files_io::call(&link, task, reports, cancel)
    }

    /// Takes down what becomes of each file until the transfer has ended; cancels it where the
    /// station ends.
    fn collect(
        &self,
        told: &Receiver<Event>,
        files: &[HandedFile],
        cancel: &Cancel,
    ) -> BTreeMap<RelPath, FileOutcome> {
        let hash = |path: &RelPath| {
            files.iter().find(|handed| handed.file.name == *path).map(|handed| handed.hash)
        };
        let mut outcomes = BTreeMap::new();
        loop {
            match told.recv_timeout(LOOK.to_std()) {
                Ok(Event { path, fate, .. }) => {
                    let Some(outcome) = outcome(fate, hash(&path)) else { continue };
                    outcomes.insert(path, outcome);
                }
                Err(RecvTimeoutError::Timeout) if self.shared.shutdown.is_requested() => {
                    cancel.set();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return outcomes,
            }
        }
    }
}

/// What became of a file that was handed over with this hash; nothing where it says nothing of it.
fn outcome(fate: EntryOutcome, hash: Option<Hash>) -> Option<FileOutcome> {
    Some(match fate {
        EntryOutcome::Copied(copied) if hash != Some(copied) => FileOutcome::Changed,
        EntryOutcome::Copied(_) | EntryOutcome::Unchanged | EntryOutcome::Rights => {
            FileOutcome::There
        }
        // It left the folder while it waited for its destination.
        EntryOutcome::Failed(refusal) if refusal.reason == RefusalReason::Absent => {
            FileOutcome::Changed
        }
        EntryOutcome::Failed(refusal) | EntryOutcome::Refused(refusal) => {
            let sentence = refusal.to_string();
            match refusal.reason {
                RefusalReason::Name | RefusalReason::InTheWay | RefusalReason::Special => {
                    FileOutcome::Unsendable(sentence)
                }
                RefusalReason::Changed | RefusalReason::Vanished => FileOutcome::Changed,
                _ => FileOutcome::Refused(sentence),
            }
        }
        EntryOutcome::Made | EntryOutcome::Wanted | EntryOutcome::Removed => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_files::TransferRefusal;

    #[test]
    fn a_file_that_left_while_it_waited_is_no_failure_but_an_absent_folder_of_the_far_end_is() {
        let absent = TransferRefusal::new(RefusalReason::Absent, "a cannot be read; check it");
        let here = outcome(EntryOutcome::Failed(absent.clone()), None);
        assert_eq!(here, Some(FileOutcome::Changed));
        let there = outcome(EntryOutcome::Refused(absent.clone()), None);
        assert_eq!(there, Some(FileOutcome::Refused(absent.to_string())));
    }
}
