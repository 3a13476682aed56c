//! The messages between the two ends, one in each block.
//!
//! The end that called says what it wants ([`TransferHello`]) and becomes the sending or the
//! receiving end. Then:
//!
//! ```text
//!   sending end                                  receiving end
//!   Offer (entries, many in a block)  ────►
//!                                     ◄────      Held (chunks that are there), Answers
//!   Small (several whole files), Data, End ────►
//!                                     ◄────      Done (whole, verified, on disk under its name;
//!                                                or why not)
//!   Attributes (of folders), Finish   ────►
//!                                     ◄────      Finished
//!
//!   kind (1 byte)  the rest, as the kind has it         numbers are big-endian
//! ```
//!
//! Or the end that called asks about single files of the other end, one request at a time, such as
//! notices that a consumer wrote there:
//!
//! ```text
//!   List (a folder)                   ────►
//!                                     ◄────      Names (many in a block), Names (none)
//!   Read (a file)                     ────►
//!                                     ◄────      Data, End
//!   Move (a file)                     ────►
//!                                     ◄────      Answers (made)
//!                                     ◄────      Answers (no; to any request)
//! ```
//!
//! Offers and answers go over the flow [`CONTROL`], contents and what depends on them over
//! [`DATA`]; either end takes every message from either flow. An offer has a number, which is free
//! again when it was settled by an answer or by `Done`.

mod hello;
mod pack;
mod read;

pub use hello::{Naming, Options, TransferDirection, TransferHello};
pub use pack::Pack;
pub use read::WireError;

use crate::entry::Entry;
use crate::fields::put_short;
use crate::hash::{Chain, Hash};
use crate::path::RelPath;
use crate::reason::TransferRefusal;
use bytes::Bytes;
use skyhaul_units::FlowId;

/// The version of these messages. An end that speaks another one is refused.
pub const VERSION: u16 = 1;
/// Offers, answers: what is short, and waited for.
pub const CONTROL: FlowId = FlowId(0x0001_0000);
/// Contents.
pub const DATA: FlowId = FlowId(0x0001_0001);
/// The longest block, in bytes.
pub const BLOCK_MAX: usize = 256 << 10;
/// Bytes of a file in one block, at most: so many that chunks begin where blocks do.
pub const PIECE_MAX: usize = 128 << 10;
/// Offers that are not settled, at most.
pub const OFFERS_MAX: usize = 1 << 16;
/// Items of one message, at most.
pub const ITEMS_MAX: usize = 1 << 12;
/// Files of one list, at most; of more, those whose names come first.
pub const LISTED_MAX: usize = 10_000;
/// Chaining values in one message, at most.
pub const CHAINS_MAX: usize = 4096;

/// The number of an offer.
pub type OfferId = u32;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// What the calling end wants.
    Hello(TransferHello),
    /// The called end does it; and whether the one source takes the target's name.
    Welcome(Naming),
    /// The transfer does not begin, or is over.
    Refused(TransferRefusal),
    /// Entries that may be wanted.
    Offer(Vec<(OfferId, Entry)>),
    /// What is wanted of them.
    Answers(Vec<(OfferId, OfferAnswer)>),
    /// The next chaining values of chunks that the receiving end has; their [`OfferAnswer::Send`]
    /// comes behind them.
    Held(OfferId, Vec<Chain>),
    /// Whole files.
    Small(Vec<(OfferId, Hash, Bytes)>),
    /// A piece of a file.
    Data(OfferId, u64, Bytes),
    /// The file has this many bytes and this hash.
    End(OfferId, u64, Hash),
    /// It has the hash of which [`OfferAnswer::Compare`] told: the contents need not come.
    Same(OfferId),
    /// It cannot be sent.
    Abandon(OfferId, TransferRefusal),
    /// What became of files.
    Done(Vec<(OfferId, Result<Hash, TransferRefusal>)>),
    /// Attributes of folders, from the innermost: they change while something is put into them.
    Attributes(Vec<Entry>),
    /// What was asked for and is not there or cannot be read.
    Missing(RelPath, TransferRefusal),
    /// Of this folder, nothing is to stay between the two names but these; an empty second name is
    /// the end.
    Only(RelPath, Vec<u8>, Vec<u8>, Vec<Vec<u8>>),
    /// What was removed for it.
    Removed(Vec<RelPath>),
    /// Everything was offered, and all of it is settled.
    Finish,
    /// All is done; with blocks received and those of them that were repaired.
    Finished(u64, u64),
    /// Which files are in a folder, without those whose names begin with a dot?
    List(RelPath),
    /// Lengths and names of some of them; none are the end of the list.
    Names(Vec<(u64, Vec<u8>)>),
    /// The contents of a file are wanted, if it has at most so many bytes.
    Read(RelPath, u64),
    /// The first file gets the second name, and takes the place of a file that has it.
    Move(RelPath, RelPath),
}

/// What is wanted of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferAnswer {
    /// It is there already.
    Have,
    /// It has been made: a folder or a link.
    Made,
    /// Its contents, behind the chunks that were told to be held.
    Send,
    /// Its contents, if it does not have this hash.
    Compare(Hash),
    /// Nothing: it cannot be had.
    No(TransferRefusal),
    /// Its contents are there already, and it has got its rights.
    Rights,
}

impl Message {
    /// The block's bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = vec![self.kind()];
        match self {
            Self::Hello(hello) => hello.put(&mut out),
            Self::Welcome(naming) => {
                out.extend(VERSION.to_be_bytes());
                out.push(naming.number());
            }
            Self::Refused(refusal) => put_refusal(&mut out, refusal),
            Self::Offer(entries) => put_each(&mut out, entries, Entry::put),
            Self::Answers(answers) => put_each(&mut out, answers, put_answer),
            Self::Held(id, chains) => {
                out.extend(id.to_be_bytes());
                chains.iter().for_each(|chain| out.extend(chain));
            }
            Self::Small(files) => {
                for (id, hash, bytes) in files {
                    pack::put(&mut out, *id, hash, bytes);
                }
            }
            Self::Data(id, offset, bytes) => {
                out = data_head(*id, *offset);
                out.extend(bytes);
            }
            Self::End(id, size, hash) => {
                out.extend(id.to_be_bytes());
                out.extend(size.to_be_bytes());
                out.extend(hash.as_bytes());
            }
            Self::Same(id) => out.extend(id.to_be_bytes()),
            Self::Abandon(id, refusal) => {
                out.extend(id.to_be_bytes());
                put_refusal(&mut out, refusal);
            }
            Self::Done(results) => put_each(&mut out, results, put_result),
            Self::Attributes(entries) => entries.iter().for_each(|entry| entry.put(&mut out)),
            Self::Missing(path, refusal) => {
                put_short(&mut out, path.as_bytes());
                put_refusal(&mut out, refusal);
            }
            Self::Only(folder, from, to, names) => {
                [folder.as_bytes(), from, to].iter().for_each(|part| put_short(&mut out, part));
                names.iter().for_each(|name| put_short(&mut out, name));
            }
            Self::Removed(paths) => {
                paths.iter().for_each(|path| put_short(&mut out, path.as_bytes()));
            }
            Self::Finish => {}
            Self::Finished(blocks, repaired) => {
                out.extend(blocks.to_be_bytes());
                out.extend(repaired.to_be_bytes());
            }
            Self::List(folder) => put_short(&mut out, folder.as_bytes()),
            Self::Names(files) => {
                for (size, name) in files {
                    out.extend(size.to_be_bytes());
                    put_short(&mut out, name);
                }
            }
            Self::Read(path, most) => {
                put_short(&mut out, path.as_bytes());
                out.extend(most.to_be_bytes());
            }
            Self::Move(from, to) => {
                [from, to].iter().for_each(|path| put_short(&mut out, path.as_bytes()));
            }
        }
        out.into()
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => 0,
            Self::Welcome(_) => 1,
            Self::Refused(_) => 2,
            Self::Offer(_) => 3,
            Self::Answers(_) => 4,
            Self::Held(..) => 5,
            Self::Small(_) => pack::KIND_SMALL,
            Self::Data(..) => KIND_DATA,
            Self::End(..) => 8,
            Self::Same(_) => 9,
            Self::Abandon(..) => 10,
            Self::Done(_) => 11,
            Self::Attributes(_) => 12,
            Self::Missing(..) => 13,
            Self::Only(..) => 14,
            Self::Removed(_) => 15,
            Self::Finish => 16,
            Self::Finished(..) => 17,
            Self::List(_) => 18,
            Self::Names(_) => 19,
            Self::Read(..) => 20,
            Self::Move(..) => 21,
        }
    }
}

/// What stands before the bytes of a [`Message::Data`].
pub fn data_head(id: OfferId, offset: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(DATA_HEAD + PIECE_MAX);
    head.push(KIND_DATA);
    head.extend(id.to_be_bytes());
    head.extend(offset.to_be_bytes());
    head
}

/// The bytes of an entry with its number, for who fills a block.
pub fn offer_len(entry: &Entry) -> usize {
    let target =
        if let crate::TreeEntryKind::Link { target } = &entry.kind { target.len() } else { 0 };
    4 + 39 + entry.path.as_bytes().len() + target
}

fn put_each<T>(out: &mut Vec<u8>, items: &[(OfferId, T)], put: impl Fn(&T, &mut Vec<u8>)) {
    for (id, item) in items {
        out.extend(id.to_be_bytes());
        put(item, out);
    }
}

fn put_refusal(out: &mut Vec<u8>, refusal: &TransferRefusal) {
    let refusal = TransferRefusal::new(refusal.reason, &refusal.sentence);
    out.push(refusal.reason.number());
    put_short(out, refusal.sentence.as_bytes());
}

fn put_answer(answer: &OfferAnswer, out: &mut Vec<u8>) {
    match answer {
        OfferAnswer::Have => out.push(0),
        OfferAnswer::Made => out.push(1),
        OfferAnswer::Send => out.push(2),
        OfferAnswer::Compare(hash) => {
            out.push(3);
            out.extend(hash.as_bytes());
        }
        OfferAnswer::No(refusal) => {
            out.push(4);
            put_refusal(out, refusal);
        }
        OfferAnswer::Rights => out.push(5),
    }
}

fn put_result(result: &Result<Hash, TransferRefusal>, out: &mut Vec<u8>) {
    match result {
        Ok(hash) => {
            out.push(0);
            out.extend(hash.as_bytes());
        }
        Err(refusal) => {
            out.push(1);
            put_refusal(out, refusal);
        }
    }
}

const KIND_DATA: u8 = 7;
const DATA_HEAD: usize = 1 + 4 + 8;

#[cfg(test)]
mod tests;
