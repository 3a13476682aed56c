//! File transfers of peers to and from their folders here: each over an application channel of the
//! peer's session, on a thread of its own.

use crate::fault::Fault;
use crate::services;
use crate::status::FilesStatus;
use skyhaul_channels_io::{AppChannel, ChannelService};
use skyhaul_config::PeerEntry;
use skyhaul_files::RefusalReason;
use skyhaul_files_io::{
    Cancel, Claims, Counters, Directory, EntryOutcome, Event, Root, TransferEnd, TransferReports,
};
use skyhaul_quic::Fingerprint;
use skyhaul_transport::ClassTree;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

/// Serves the peers' files.
#[derive(Debug)]
pub struct FileService {
    door: ChannelService,
    roots: PeerRoots,
    account: Arc<dyn FilesAccount>,
}

/// Name and folder of each peer that has a folder, by its key.
pub type PeerRoots = BTreeMap<Fingerprint, (String, Root)>;

/// Where the transfers of peers are counted.
pub trait FilesAccount: core::fmt::Debug + Send + Sync {
    /// Changes the counts of the peer of this name.
    fn count(&self, peer: &str, change: &mut dyn FnMut(&mut FilesStatus));
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
        roots: PeerRoots,
        account: Arc<dyn FilesAccount>,
    ) -> Self {
        Self { door, roots, account }
    }

    /// Runs until the node ends, which closes the service.
    pub fn run(self) {
        let cancel = Cancel::default();
        let running = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while let Some(Some(link)) = cancel.or(self.door.accept()) {
                let (this, running) = (&self, &running);
                let place = running.fetch_add(1, Ordering::Relaxed);
                if place >= TRANSFERS_MAX + DECLINES_MAX {
                    // Closing the application channel makes the peer try again.
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
                    "the node has {TRANSFERS_MAX} transfers in progress, its limit; retry later"
                );
                skyhaul_files_io::decline(link, RefusalReason::Busy, &sentence, &cancel)
            }
            None => {
                let sentence = "the node does not accept files from this one; add [peer.files] \
                                to its [[peer]] there";
                skyhaul_files_io::decline(link, RefusalReason::NotAllowed, sentence, &cancel)
            }
            Some((peer, root)) => return self.transfer(link, peer, root, &cancel),
        };
        if let Err(end) = declined {
            tracing::debug!(?end, "transfer rejected; peer disconnected");
        }
    }

    fn transfer(&self, link: &AppChannel, peer: &str, root: &Root, cancel: &Cancel) {
        let (events, told) = sync_channel(EVENTS);
        let reports = TransferReports { events, counters: Arc::new(Counters::default()) };
        self.account.count(peer, &mut |files| files.transfers += 1);
        let end = std::thread::scope(|scope| {
            let counting = scope.spawn(move || self.count(peer, told));
            let end = skyhaul_files_io::serve(link, root, &reports, cancel);
            drop(reports);
            counting.join().expect("counting does not panic");
            end
        });
        self.account.count(peer, &mut |files| files.transfers -= 1);
        match end {
            Ok(()) => {}
            Err(TransferEnd::Refused(refused) | TransferEnd::Here(refused)) => {
                tracing::warn!(peer, "files refused: {refused}");
            }
            Err(TransferEnd::Malformed(what)) => {
                tracing::warn!(peer, "files: protocol error from the peer: {what}");
            }
            Err(TransferEnd::Lost(_) | TransferEnd::Cancelled) => {
                tracing::info!(peer, "files: transfer interrupted; it resumes later");
            }
        }
    }

    fn count(&self, peer: &str, told: Receiver<Event>) {
        for Event { path, bytes, fate } in told {
            match fate {
                EntryOutcome::Copied(_) => self.account.count(peer, &mut |files| {
                    files.copied += 1;
                    files.bytes += bytes;
                }),
                EntryOutcome::Removed => {
                    self.account.count(peer, &mut |files| files.removed += 1);
                }
                EntryOutcome::Failed(refusal) | EntryOutcome::Refused(refusal) => {
                    self.account.count(peer, &mut |files| files.failed += 1);
                    tracing::warn!(peer, %path, "{refusal}");
                }
                EntryOutcome::Unchanged
                | EntryOutcome::Rights
                | EntryOutcome::Made
                | EntryOutcome::Wanted => {}
            }
        }
    }
}

/// The folders of the peers that have one.
///
/// # Errors
/// One of them cannot be made or opened.
pub fn roots<'a>(
    peers: impl Iterator<Item = &'a PeerEntry>,
    classes: &ClassTree,
) -> Result<PeerRoots, Fault> {
    let claims = Claims::default();
    let mut roots = BTreeMap::new();
    for peer in peers {
        let Some(files) = &peer.files else { continue };
        services::make_folder(&files.root)?;
        let place = Directory::open(&files.root).map_err(|error| {
            let help = "give this user read permission, or configure another folder";
            Fault::environment(
                format!("the folder cannot be used ({error})"),
                files.root.display(),
                help,
            )
        })?;
        let root = Root {
            place,
            read: files.read,
            write: files.write,
            claims: claims.clone(),
            classes: classes.clone(),
        };
        let name = peer.name.to_string();
        roots.extend(peer.fingerprints.iter().map(|key| (key, (name.clone(), root.clone()))));
    }
    Ok(roots)
}
