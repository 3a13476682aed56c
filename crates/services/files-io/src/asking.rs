//! The calling end of requests about single files of the far end.

use crate::cancel::Cancel;
use crate::end::TransferEnd;
use crate::talk::{hear, say};
use skyhaul::Session;
use skyhaul_files::wire::{LISTED_MAX, Message, OfferAnswer, TransferHello};
use skyhaul_files::{RefusalReason, RelPath};

/// An application channel over which single files of the far end are asked about. The far end
/// serves it until it is dropped.
#[derive(Debug)]
pub struct FileRequests {
    link: Session,
}

impl FileRequests {
    /// Over this application channel.
    ///
    /// # Errors
    /// See [`TransferEnd`].
    pub fn begin(link: Session, cancel: &Cancel) -> Result<Self, TransferEnd> {
        let hello = TransferHello::asking();
        say(&link, cancel, &Message::Hello(hello))?;
        Ok(Self { link })
    }

    /// Lengths and names of the files of a folder without those whose name begins with a dot, at
    /// most [`LISTED_MAX`]; a folder that does not exist has none.
    ///
    /// # Errors
    /// See [`TransferEnd`].
    pub fn list(
        &self,
        folder: &RelPath,
        cancel: &Cancel,
    ) -> Result<Vec<(u64, Vec<u8>)>, TransferEnd> {
        say(&self.link, cancel, &Message::List(folder.clone()))?;
        let mut files = Vec::new();
        loop {
            match self.answer(cancel)? {
                Message::Names(names) if names.is_empty() => return Ok(files),
                Message::Names(names) if files.len() + names.len() <= LISTED_MAX => {
                    files.extend(names);
                }
                _ => return Err(unexpected()),
            }
        }
    }

    /// The contents of a file that has at most `most` bytes; none where there is no such file.
    ///
    /// # Errors
    /// See [`TransferEnd`]; it has more bytes.
    pub fn read(
        &self,
        path: &RelPath,
        most: u64,
        cancel: &Cancel,
    ) -> Result<Option<Vec<u8>>, TransferEnd> {
        say(&self.link, cancel, &Message::Read(path.clone(), most))?;
        let mut bytes = Vec::new();
        loop {
            match self.answer(cancel) {
                Ok(Message::Data(0, offset, piece))
                    if offset == bytes.len() as u64 && offset + piece.len() as u64 <= most =>
                {
                    bytes.extend_from_slice(&piece);
                }
                Ok(Message::End(0, size, hash))
                    if size == bytes.len() as u64 && hash == blake3::hash(&bytes) =>
                {
                    return Ok(Some(bytes));
                }
                Ok(_) => return Err(unexpected()),
                Err(TransferEnd::Refused(refused)) if refused.reason == RefusalReason::Absent => {
                    return Ok(None);
                }
                Err(end) => return Err(end),
            }
        }
    }

    /// Gives a file another name. It takes the place of a file that has it, and folders are made.
    ///
    /// # Errors
    /// See [`TransferEnd`].
    pub fn rename(&self, from: &RelPath, to: &RelPath, cancel: &Cancel) -> Result<(), TransferEnd> {
        say(&self.link, cancel, &Message::Move(from.clone(), to.clone()))?;
        match self.answer(cancel)? {
            Message::Answers(answers) if answers == [(0, OfferAnswer::Made)] => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// The next message; a refusal is an error.
    fn answer(&self, cancel: &Cancel) -> Result<Message, TransferEnd> {
        let message = hear(&self.link, cancel)?.ok_or_else(|| TransferEnd::lost(&self.link))?;
        match message {
            Message::Refused(refused) => Err(TransferEnd::Refused(refused)),
            Message::Answers(mut answers) => match answers.pop() {
                Some((0, OfferAnswer::No(refused))) => Err(TransferEnd::Refused(refused)),
                last => Ok(Message::Answers(answers.into_iter().chain(last).collect())),
            },
            message => Ok(message),
        }
    }
}

fn unexpected() -> TransferEnd {
    TransferEnd::Malformed("an answer to another request".to_owned())
}
