//! The receiving end: answers offers, writes contents, and reports the result of each file.

mod coming;
mod commit;
mod decide;
mod only;
mod part;

use crate::cancel::Cancel;
use crate::claims::{Claims, Holder};
use crate::end::TransferEnd;
use crate::event::{EntryOutcome, TransferReports};
use crate::place::{Directory, Folders, refusal};
use crate::talk::say;
use coming::Coming;
use commit::{Committer, Job};
use skyhaul::{Block, Session};
use skyhaul_files::wire::{
    CHAINS_MAX, CONTROL, Message, OFFERS_MAX, OfferAnswer, OfferId, Options,
};
use skyhaul_files::{
    Entry, FileContent, Hash, RefusalReason, Selection, TransferRefusal, TreeEntryKind,
};
use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

/// The state that all threads of a receiving end share.
pub(crate) struct Receiving<'a> {
    pub link: &'a Session,
    pub cancel: &'a Cancel,
    pub reports: &'a TransferReports,
    pub options: Options,
    /// What is not removed.
    pub selection: Selection,
    pub claims: Claims,
    /// The far end's key.
    pub peer: String,
}

/// The state of the receiving thread.
struct State<'a> {
    receiving: &'a Receiving<'a>,
    /// `None` where the folder would have to be made first: nothing is there.
    folders: Option<Folders>,
    /// Files that were requested: at most [`OFFERS_MAX`].
    coming: BTreeMap<OfferId, Coming>,
    jobs: SyncSender<Job>,
}

impl Receiving<'_> {
    /// Receives to the end into `place`, which is `None` where nothing is written and nothing is
    /// there.
    pub fn run(&self, place: Option<Directory>) -> Result<(), TransferEnd> {
        let (jobs, queue) = std::sync::mpsc::sync_channel(JOBS);
        std::thread::scope(|scope| {
            let committer = scope.spawn(|| Committer::new(self).run(queue));
            let state = State {
                receiving: self,
                folders: place.map(Folders::of),
                coming: BTreeMap::new(),
                jobs,
            };
            let heard = state.hear();
            let committed = committer.join().expect("no thread of a transfer panics");
            let blocks = heard.and_then(|()| committed.map(|()| self.link.stats()))?;
            let (received, repaired) = (
                blocks.received.blocks_delivered + blocks.received.blocks_repaired,
                blocks.received.blocks_repaired,
            );
            self.reports.repaired(received, repaired);
            let last = Block::reliable(CONTROL, Message::Finished(received, repaired).encode());
            let sent = self.cancel.or(self.link.send(last)).ok_or(TransferEnd::Cancelled)?;
            // This end may be closed next, and the far end waits for this message. Where the far
            // end has left already, it has everything.
            let _ = self.cancel.or(sent.map_err(|_| TransferEnd::lost(self.link))?);
            Ok(())
        })
    }

    fn say(&self, message: &Message) -> Result<(), TransferEnd> {
        say(self.link, self.cancel, message)
    }

    fn holder(&self) -> Holder {
        Holder { peer: self.peer.clone(), cancel: self.cancel.clone() }
    }
}

impl State<'_> {
    /// Takes what the far end says until it has said everything; what is to be synced then, the
    /// committer still has.
    fn hear(mut self) -> Result<(), TransferEnd> {
        loop {
            let (cancel, link) = (self.receiving.cancel, self.receiving.link);
            let incoming = cancel.or(link.recv()).ok_or(TransferEnd::Cancelled)?;
            let Some(incoming) = incoming else { return Err(TransferEnd::lost(link)) };
            match Message::decode(&incoming.bytes)? {
                Message::Welcome(_) => {}
                Message::Refused(refusal) => return Err(TransferEnd::Refused(refusal)),
                Message::Offer(entries) => self.offered(entries)?,
                Message::Small(files) => {
                    for (id, hash, bytes) in files {
                        self.data(id, 0, &bytes)?;
                        self.whole(id, bytes.len() as u64, hash)?;
                    }
                }
                Message::Data(id, offset, bytes) => self.data(id, offset, &bytes)?,
                Message::End(id, size, hash) => self.whole(id, size, hash)?,
                Message::Same(id) => self.same(id)?,
                Message::Abandon(id, refusal) => {
                    if let Some(coming) = self.coming.remove(&id) {
                        let fate = EntryOutcome::Refused(refusal);
                        self.receiving.reports.tell(&coming.entry.path, coming.entry.size(), fate);
                        if let Some(folders) = &mut self.folders {
                            coming.forget(self.receiving, folders);
                        }
                    }
                }
                Message::Attributes(folders) => self.attributes(&folders),
                Message::Missing(path, refusal) => {
                    self.receiving.reports.tell(&path, 0, EntryOutcome::Refused(refusal));
                }
                Message::Only(folder, from, to, names) => {
                    self.only(only::Only { folder, from, to, names })?;
                }
                Message::Finish => return Ok(()),
                _ => {
                    return Err(TransferEnd::Malformed(
                        "a message that only a receiving end sends".to_owned(),
                    ));
                }
            }
        }
    }

    fn offered(&mut self, entries: Vec<(OfferId, Entry)>) -> Result<(), TransferEnd> {
        if self.coming.len() + entries.len() > OFFERS_MAX + skyhaul_files::wire::ITEMS_MAX {
            return Err(TransferEnd::Malformed("more offers than allowed".to_owned()));
        }
        let mut answers = Vec::new();
        for (id, entry) in entries {
            let reports = self.receiving.reports;
            if matches!(entry.kind, TreeEntryKind::File { .. } | TreeEntryKind::Pipe) {
                reports.found(entry.size());
            }
            let (path, size) = (entry.path.clone(), entry.size());
            let decided = self.decide(entry);
            let answer = match decided {
                Ok((answer, coming)) => {
                    if let Some(coming) = coming {
                        for chains in coming.held().chunks(CHAINS_MAX) {
                            self.receiving.say(&Message::Held(id, chains.to_vec()))?;
                        }
                        self.coming.insert(id, coming);
                    }
                    answer
                }
                Err(refused) => OfferAnswer::No(refused),
            };
            let fate = match &answer {
                OfferAnswer::Have => Some(EntryOutcome::Unchanged),
                OfferAnswer::Made => Some(EntryOutcome::Made),
                OfferAnswer::Rights => Some(EntryOutcome::Rights),
                OfferAnswer::No(refused) => Some(EntryOutcome::Failed(refused.clone())),
                OfferAnswer::Send if self.receiving.options.dry_run => Some(EntryOutcome::Wanted),
                OfferAnswer::Send | OfferAnswer::Compare(_) => None,
            };
            if let Some(fate) = fate {
                reports.spared(size);
                reports.tell(&path, size, fate);
            }
            answers.push((id, answer));
            if answers.len() >= ANSWERS {
                self.receiving.say(&Message::Answers(core::mem::take(&mut answers)))?;
            }
        }
        if answers.is_empty() { Ok(()) } else { self.receiving.say(&Message::Answers(answers)) }
    }

    /// Bytes of a file. Bytes of a file that is not wanted any more were in flight when this end
    /// refused it.
    fn data(&mut self, id: OfferId, offset: u64, bytes: &[u8]) -> Result<(), TransferEnd> {
        let Some(coming) = self.coming.get_mut(&id) else { return Ok(()) };
        let Some(folders) = &mut self.folders else { return Ok(()) };
        self.receiving.reports.moved(bytes.len() as u64);
        let written = coming.write(self.receiving, folders, offset, bytes);
        match written {
            Ok(None) => Ok(()),
            Ok(Some(sync)) => self.queue(Job::Sync(sync)),
            Err(refused) => self.fail(id, refused),
        }
    }

    fn whole(&mut self, id: OfferId, size: u64, hash: Hash) -> Result<(), TransferEnd> {
        let (Some(coming), Some(folders)) = (self.coming.remove(&id), &mut self.folders) else {
            return Ok(());
        };
        let entry = coming.entry.clone();
        match coming.finish(self.receiving, folders, id, FileContent { bytes: size, hash }) {
            Ok(ready) => self.queue(Job::Publish(Box::new(ready))),
            Err(refused) => self.told(id, &entry, refused),
        }
    }

    /// The contents are those that are here: only the attributes may differ.
    fn same(&mut self, id: OfferId) -> Result<(), TransferEnd> {
        let (Some(coming), Some(folders)) = (self.coming.remove(&id), &mut self.folders) else {
            return Ok(());
        };
        let entry = &coming.entry;
        let answer = match decide::set_attributes(folders, entry) {
            Ok(()) => OfferAnswer::Have,
            Err(error) => {
                OfferAnswer::No(refusal(&entry.path, "cannot have its attributes set", error))
            }
        };
        self.receiving.reports.spared(entry.size());
        self.receiving.reports.tell(&entry.path, entry.size(), EntryOutcome::Unchanged);
        self.receiving.say(&Message::Answers(vec![(id, answer)]))
    }

    fn fail(&mut self, id: OfferId, refused: TransferRefusal) -> Result<(), TransferEnd> {
        let Some(coming) = self.coming.remove(&id) else { return Ok(()) };
        let entry = coming.entry.clone();
        coming.leave();
        self.told(id, &entry, refused)
    }

    fn told(
        &self,
        id: OfferId,
        entry: &Entry,
        refused: TransferRefusal,
    ) -> Result<(), TransferEnd> {
        self.receiving.reports.tell(
            &entry.path,
            entry.size(),
            EntryOutcome::Failed(refused.clone()),
        );
        self.receiving.say(&Message::Done(vec![(id, Err(refused))]))
    }

    fn queue(&self, job: Job) -> Result<(), TransferEnd> {
        self.jobs.send(job).map_err(|_| TransferEnd::Cancelled)
    }

    fn attributes(&mut self, entries: &[Entry]) {
        let Some(folders) = self.folders.as_mut().filter(|_| !self.receiving.options.dry_run)
        else {
            return;
        };
        for entry in entries {
            // Made by who may not set them: the folder is somebody else's, and what is in it is as
            // asked.
            let _ = decide::set_attributes(folders, entry);
        }
    }
}

/// The hash of the received bytes differs from that of the source.
fn differs(entry: &Entry) -> TransferRefusal {
    let sentence = format!(
        "{} does not match the hash of the source and was discarded; copy it again",
        entry.path
    );
    TransferRefusal::new(RefusalReason::Differs, &sentence)
}

/// Jobs that wait for the disk, and as many that it is busy with: each has a file open.
const JOBS: usize = 256;
/// Answers in one message: refusals are long.
const ANSWERS: usize = 128;
