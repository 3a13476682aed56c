//! One message to the far end, and one from it.

use crate::cancel::Cancel;
use crate::end::TransferEnd;
use skyhaul::{Block, Session};
use skyhaul_files::wire::{CONTROL, Message};

/// Hands over a message; it need not have arrived.
pub(crate) fn say(link: &Session, cancel: &Cancel, message: &Message) -> Result<(), TransferEnd> {
    let block = Block { priority: 0, ..Block::reliable(CONTROL, message.encode()) };
    let sent = cancel.or(link.send(block)).ok_or(TransferEnd::Cancelled)?;
    sent.map(drop).map_err(|_| TransferEnd::lost(link))
}

/// Waits for the next message; none where the session has ended.
pub(crate) fn hear(link: &Session, cancel: &Cancel) -> Result<Option<Message>, TransferEnd> {
    let incoming = cancel.or(link.recv()).ok_or(TransferEnd::Cancelled)?;
    Ok(incoming.map(|incoming| Message::decode(&incoming.bytes)).transpose()?)
}
