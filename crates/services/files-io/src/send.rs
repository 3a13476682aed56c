//! The sending end: offers entries, and sends those that the receiving end wants.

mod feed;
mod source;
mod walk;

pub use source::{FileSource, FileSourceError, Inside};
pub(crate) use walk::is_partial;

use crate::cancel::Cancel;
use crate::end::TransferEnd;
use crate::event::{EntryOutcome, TransferReports};
use skyhaul::{Block, ClassId, Session};
use skyhaul_files::wire::{CONTROL, DATA, Message, OfferAnswer, OfferId, Options};
use skyhaul_files::{Chain, Chunk, Entry, Hash, Selection, TransferRefusal, TreeEntryKind};
use skyhaul_net::Clock;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};

/// The state that all threads of a sending end share.
pub(crate) struct Sending<'a> {
    pub link: &'a Session,
    pub cancel: &'a Cancel,
    pub reports: &'a TransferReports,
    pub options: Options,
    pub class: ClassId,
    pub selection: Selection,
    pub clock: Clock,
    /// Whether missing entries are reported to the far end: it was the one that requested them.
    pub tells: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Offers without result: at most [`skyhaul_files::wire::OFFERS_MAX`].
    offers: BTreeMap<OfferId, Offer>,
    /// Entries that the far end wants, in the order of its answers.
    wanted: VecDeque<OfferId>,
    /// Folders, whose attributes are set when all is in them: at most [`FOLDERS_MAX`].
    folders: Vec<Entry>,
    walked: bool,
    next: OfferId,
}

/// An entry that was offered.
#[derive(Clone)]
struct Offer {
    entry: Entry,
    /// Which source it is of.
    source: usize,
    /// Chunks that the far end has.
    held: Vec<Chain>,
    /// The state of this entry at the far end.
    compare: Option<Hash>,
    /// How long it is; of a pipe, from when its end was read.
    bytes: u64,
}

/// Folders of one transfer: their attributes are kept to its end.
pub(crate) const FOLDERS_MAX: usize = 1 << 20;

impl<'a> Sending<'a> {
    pub fn new(
        link: &'a Session,
        cancel: &'a Cancel,
        reports: &'a TransferReports,
        clock: Clock,
    ) -> Self {
        let (options, class, selection) =
            (Options::default(), ClassId::default(), Selection::default());
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self {
            link,
            cancel,
            reports,
            options,
            class,
            selection,
            clock,
            tells: false,
            state,
            changed,
        }
    }

    /// Sends what `sources` name, to the end.
    pub fn run(&self, sources: &mut [FileSource]) -> Result<(), TransferEnd> {
        std::thread::scope(|scope| {
            let places: Vec<_> = sources.iter_mut().map(FileSource::reader).collect();
            let walker = scope.spawn(move || self.until_cancelled(|| walk::walk(self, sources)));
            let feeder = scope.spawn(|| self.until_cancelled(|| feed::feed(self, places)));
            let heard = self.hear();
            if heard.is_err() {
                self.cancel.set();
            }
            self.changed.notify_all();
            let ends = [walker.join(), feeder.join()]
                .map(|end| end.expect("no thread of a transfer panics"));
            // The first error of any thread is the reason why the session ended.
            heard.map_err(|end| {
                ends.into_iter()
                    .filter_map(Result::err)
                    .find(|other| *other != TransferEnd::Cancelled && end == TransferEnd::Cancelled)
                    .unwrap_or(end)
            })
        })
    }

    /// A thread has failed: the others must not wait for it.
    fn until_cancelled(
        &self,
        work: impl FnOnce() -> Result<(), TransferEnd>,
    ) -> Result<(), TransferEnd> {
        let done = work();
        if done.is_err() {
            self.cancel.set();
            self.changed.notify_all();
        }
        done
    }

    /// Handles messages of the far end until it has everything.
    fn hear(&self) -> Result<(), TransferEnd> {
        loop {
            let incoming = self.cancel.or(self.link.recv()).ok_or(TransferEnd::Cancelled)?;
            let Some(incoming) = incoming else { return Err(TransferEnd::lost(self.link)) };
            match Message::decode(&incoming.bytes)? {
                Message::Welcome(_) => {}
                Message::Refused(refusal) => return Err(TransferEnd::Refused(refusal)),
                Message::Held(id, chains) => self.held(id, chains)?,
                Message::Answers(answers) => {
                    for (id, answer) in answers {
                        self.answered(id, answer)?;
                    }
                }
                Message::Done(results) => {
                    for (id, result) in results {
                        let Offer { entry, bytes, .. } = self.settle(id)?;
                        let fate = result.map_or_else(EntryOutcome::Refused, EntryOutcome::Copied);
                        self.reports.tell(&entry.path, bytes, fate);
                    }
                }
                Message::Removed(paths) => {
                    paths.iter().for_each(|path| self.reports.tell(path, 0, EntryOutcome::Removed));
                }
                Message::Finished(blocks, repaired) => {
                    self.reports.repaired(blocks, repaired);
                    return Ok(());
                }
                _ => {
                    return Err(TransferEnd::Malformed(
                        "a message that only a sending end sends".to_owned(),
                    ));
                }
            }
        }
    }

    fn held(&self, id: OfferId, chains: Vec<Chain>) -> Result<(), TransferEnd> {
        let mut state = self.state();
        let offer = state.offers.get_mut(&id).ok_or_else(unknown)?;
        offer.held.extend(chains);
        if offer.held.len() as u64 > Chunk::COUNT_MAX {
            return Err(TransferEnd::Malformed("more chunks than the file has".to_owned()));
        }
        Ok(())
    }

    fn answered(&self, id: OfferId, answer: OfferAnswer) -> Result<(), TransferEnd> {
        let fate = match answer {
            OfferAnswer::Have => EntryOutcome::Unchanged,
            OfferAnswer::Made => EntryOutcome::Made,
            OfferAnswer::Rights => EntryOutcome::Rights,
            OfferAnswer::No(refusal) => EntryOutcome::Refused(refusal),
            OfferAnswer::Send if self.options.dry_run => EntryOutcome::Wanted,
            OfferAnswer::Send => return self.want(id, None),
            OfferAnswer::Compare(hash) => return self.want(id, Some(hash)),
        };
        let entry = self.settle(id)?.entry;
        self.reports.spared(entry.size());
        self.reports.tell(&entry.path, entry.size(), fate);
        Ok(())
    }

    fn want(&self, id: OfferId, compare: Option<Hash>) -> Result<(), TransferEnd> {
        let mut state = self.state();
        let offer = state.offers.get_mut(&id).ok_or_else(unknown)?;
        offer.compare = compare;
        state.wanted.push_back(id);
        if state.wanted.len() > skyhaul_files::wire::OFFERS_MAX {
            return Err(TransferEnd::Malformed("more answers than offers".to_owned()));
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// An offer has its result.
    fn settle(&self, id: OfferId) -> Result<Offer, TransferEnd> {
        let settled = self.state().offers.remove(&id).ok_or_else(unknown);
        self.changed.notify_all();
        settled
    }

    /// Reports an entry that cannot be sent, here and to the far end if it requested it.
    fn missing(
        &self,
        path: &skyhaul_files::RelPath,
        refusal: TransferRefusal,
    ) -> Result<(), TransferEnd> {
        if self.tells {
            self.control(&Message::Missing(path.clone(), refusal.clone()))?;
        }
        self.reports.tell(path, 0, EntryOutcome::Failed(refusal));
        Ok(())
    }

    fn control(&self, message: &Message) -> Result<(), TransferEnd> {
        let block =
            Block { priority: 0, class: self.class, ..Block::reliable(CONTROL, message.encode()) };
        self.send(block)
    }

    /// Contents, and what must come behind them.
    fn data(&self, bytes: bytes::Bytes) -> Result<(), TransferEnd> {
        let Options { priority, deadline, .. } = self.options;
        self.send(Block { priority, deadline, class: self.class, ..Block::reliable(DATA, bytes) })
    }

    fn send(&self, block: Block) -> Result<(), TransferEnd> {
        let sent = self.cancel.or(self.link.send(block)).ok_or(TransferEnd::Cancelled)?;
        sent.map(drop).map_err(|_| TransferEnd::lost(self.link))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Waits until the state changes, and checks now and then whether the transfer is cancelled.
    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> Result<MutexGuard<'s, State>, TransferEnd> {
        let state =
            self.changed.wait_timeout(state, LOOK).expect("no holder of this lock panics").0;
        if self.cancel.is_set() { Err(TransferEnd::Cancelled) } else { Ok(state) }
    }
}

impl Offer {
    fn is_pipe(&self) -> bool {
        self.entry.kind == TreeEntryKind::Pipe
    }
}

fn unknown() -> TransferEnd {
    TransferEnd::Malformed("an answer to a file that was not offered".to_owned())
}

/// Interval of checks whether the transfer is cancelled.
const LOOK: std::time::Duration = std::time::Duration::from_millis(200);
