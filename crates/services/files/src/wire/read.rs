//! Decodes messages.

use super::pack::KIND_SMALL;
use super::{
    BLOCK_MAX, CHAINS_MAX, DATA_HEAD, ITEMS_MAX, KIND_DATA, Message, Naming, OfferAnswer, OfferId,
    TransferHello, VERSION,
};
use crate::entry::Entry;
use crate::hash::Hash;
use crate::path::RelPath;
use crate::reason::{RefusalReason, SENTENCE_MAX, TransferRefusal};
use bytes::Bytes;
use skyhaul_units::printable;
use skyhaul_units::wire::ByteReader;

/// Why a block is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It was damaged, or is of something else.
    #[error("a block of {0} bytes is not a file transfer message")]
    Malformed(usize),
    /// The two ends do not understand each other.
    #[error(
        "the far end uses version {0} of the file transfer, this node {VERSION}; install the same \
        version at both ends"
    )]
    Version(u16),
}

impl Message {
    /// Reads a block.
    ///
    /// # Errors
    /// See [`WireError`].
    pub fn decode(block: &Bytes) -> Result<Self, WireError> {
        let malformed = WireError::Malformed(block.len());
        let (kind, rest) =
            block.split_first().filter(|_| block.len() <= BLOCK_MAX).ok_or(malformed)?;
        let mut fields = ByteReader::new(rest);
        if *kind < 2 {
            let version = fields.u16().ok_or(malformed)?;
            if version != VERSION {
                return Err(WireError::Version(version));
            }
        }
        read(*kind, fields, block).ok_or(malformed)
    }
}

fn read(kind: u8, mut fields: ByteReader<'_>, block: &Bytes) -> Option<Message> {
    Some(match kind {
        0 => Message::Hello(TransferHello::take(fields)?),
        1 => {
            let naming = Naming::from_number(fields.u8()?)?;
            ended(fields, Message::Welcome(naming))?
        }
        2 => {
            let refusal = refusal(&mut fields)?;
            ended(fields, Message::Refused(refusal))?
        }
        3 => Message::Offer(bounded(fields, |fields| Some((fields.u32()?, Entry::take(fields)?)))?),
        4 => Message::Answers(bounded(fields, |fields| Some((fields.u32()?, answer(fields)?)))?),
        5 => {
            let id = fields.u32()?;
            let chains = fields.all(ByteReader::array)?;
            (chains.len() <= CHAINS_MAX).then_some(Message::Held(id, chains))?
        }
        KIND_SMALL => Message::Small(bounded(fields, |fields| small(fields, block))?),
        KIND_DATA => {
            let (id, offset) = (fields.u32()?, fields.u64()?);
            let bytes = block.slice(DATA_HEAD..);
            // No file has more bytes than fit here, so that offsets can be added without a check.
            (!bytes.is_empty() && offset < 1 << 62).then_some(Message::Data(id, offset, bytes))?
        }
        8 => {
            let (id, size, hash) = (fields.u32()?, fields.u64()?, hash(&mut fields)?);
            ended(fields, Message::End(id, size, hash))?
        }
        9 => {
            let id = fields.u32()?;
            ended(fields, Message::Same(id))?
        }
        10 => {
            let (id, refusal) = (fields.u32()?, refusal(&mut fields)?);
            ended(fields, Message::Abandon(id, refusal))?
        }
        11 => Message::Done(bounded(fields, |fields| Some((fields.u32()?, result(fields)?)))?),
        12 => Message::Attributes(bounded(fields, Entry::take)?),
        13 => {
            let (path, refusal) = (path(&mut fields)?, refusal(&mut fields)?);
            ended(fields, Message::Missing(path, refusal))?
        }
        14 => {
            let (folder, from, to) = (path(&mut fields)?, edge(&mut fields)?, edge(&mut fields)?);
            Message::Only(folder, from, to, bounded(fields, name)?)
        }
        15 => Message::Removed(bounded(fields, path)?),
        16 => ended(fields, Message::Finish)?,
        17 => {
            let (blocks, repaired) = (fields.u64()?, fields.u64()?);
            ended(fields, Message::Finished(blocks, repaired))?
        }
        18 => {
            let folder = path(&mut fields)?;
            ended(fields, Message::List(folder))?
        }
        19 => Message::Names(bounded(fields, |fields| Some((fields.u64()?, name(fields)?)))?),
        20 => {
            let (path, most) = (path(&mut fields)?, fields.u64()?);
            ended(fields, Message::Read(path, most))?
        }
        21 => {
            let (from, to) = (path(&mut fields)?, path(&mut fields)?);
            ended(fields, Message::Move(from, to))?
        }
        _ => return None,
    })
}

fn ended(fields: ByteReader<'_>, message: Message) -> Option<Message> {
    fields.is_empty().then_some(message)
}

fn bounded<T>(
    fields: ByteReader<'_>,
    item: impl Fn(&mut ByteReader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    fields.all(item).filter(|items| items.len() <= ITEMS_MAX)
}

fn path(fields: &mut ByteReader<'_>) -> Option<RelPath> {
    RelPath::new(fields.bytes16()?).ok()
}

/// A name within a folder.
fn name(fields: &mut ByteReader<'_>) -> Option<Vec<u8>> {
    edge(fields).filter(|name| !name.is_empty())
}

/// The same, or nothing, which stands for an end of the folder.
fn edge(fields: &mut ByteReader<'_>) -> Option<Vec<u8>> {
    let bytes = fields.bytes16()?;
    RelPath::new(bytes).ok().filter(|path| path.parts().count() <= 1)?;
    Some(bytes.to_owned())
}

fn hash(fields: &mut ByteReader<'_>) -> Option<Hash> {
    fields.array().map(Hash::from_bytes)
}

fn refusal(fields: &mut ByteReader<'_>) -> Option<TransferRefusal> {
    Some(TransferRefusal {
        reason: RefusalReason::from_number(fields.u8()?)?,
        sentence: printable(&fields.text16(SENTENCE_MAX)?, SENTENCE_MAX),
    })
}

fn answer(fields: &mut ByteReader<'_>) -> Option<OfferAnswer> {
    Some(match fields.u8()? {
        0 => OfferAnswer::Have,
        1 => OfferAnswer::Made,
        2 => OfferAnswer::Send,
        3 => OfferAnswer::Compare(hash(fields)?),
        4 => OfferAnswer::No(refusal(fields)?),
        5 => OfferAnswer::Rights,
        _ => return None,
    })
}

fn result(fields: &mut ByteReader<'_>) -> Option<Result<Hash, TransferRefusal>> {
    Some(match fields.u8()? {
        0 => Ok(hash(fields)?),
        1 => Err(refusal(fields)?),
        _ => return None,
    })
}

fn small(fields: &mut ByteReader<'_>, block: &Bytes) -> Option<(OfferId, Hash, Bytes)> {
    let (id, hash, len) = (fields.u32()?, hash(fields)?, fields.u32()?);
    let bytes = fields.take(usize::try_from(len).ok()?)?;
    Some((id, hash, if bytes.is_empty() { Bytes::new() } else { block.slice_ref(bytes) }))
}
