//! The source: files, read ahead on a separate thread, so that a slow disk or pipe does not stall
//! the line.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use skyhaul_oneway::file::{FileIndex, Manifest, Part, Whole};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// One file or stream.
#[derive(Debug, Clone)]
pub struct OneWayInput {
    /// Its name at the far end.
    pub name: String,
    /// Where it is; none for standard input.
    pub path: Option<PathBuf>,
}

/// What the reader gives out, in order.
#[derive(Debug)]
pub enum SourceItem {
    /// A part of a file.
    Part(Part),
    /// A round is over, and another follows.
    Pause,
    /// A file could not be read: its name, and why.
    Failed(String, io::Error),
}

/// The files to read, and how.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The files, in their order.
    pub sources: Vec<OneWayInput>,
    /// How often all of them are sent.
    pub rounds: u32,
    /// Bytes of data in a block.
    pub block: usize,
}

/// Parts read ahead.
const AHEAD: usize = 16;

impl Reading {
    /// Begins to read. The channel is closed when all is read.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn start(self) -> io::Result<Receiver<SourceItem>> {
        let (sender, receiver) = sync_channel(AHEAD);
        std::thread::Builder::new().name("reader".to_owned()).spawn(move || {
            // An error means that the receiver has ended.
            let _ = self.read(&sender);
        })?;
        Ok(receiver)
    }

    fn read(
        &self,
        sender: &SyncSender<SourceItem>,
    ) -> Result<(), std::sync::mpsc::SendError<SourceItem>> {
        for round in 0..self.rounds {
            if round > 0 {
                sender.send(SourceItem::Pause)?;
            }
            for (number, source) in self.sources.iter().enumerate() {
                let mut give = |part| sender.send(SourceItem::Part(part));
                match source.parts(FileIndex(number as u16), self.block, &mut give) {
                    Ok(sent) => sent?,
                    Err(error) => sender.send(SourceItem::Failed(source.name.clone(), error))?,
                }
            }
        }
        Ok(())
    }
}

impl OneWayInput {
    /// Gives out the file's manifest, its data, and its manifest again with length and digest.
    fn parts<E>(
        &self,
        file: FileIndex,
        block: usize,
        give: &mut impl FnMut(Part) -> Result<(), E>,
    ) -> io::Result<Result<(), E>> {
        let mut input: Box<dyn Read> = match &self.path {
            Some(path) => Box::new(File::open(path)?),
            None => Box::new(io::stdin()),
        };
        let manifest = |whole| Part::Manifest(file, Manifest { name: self.name.clone(), whole });
        if let Err(error) = give(manifest(None)) {
            return Ok(Err(error));
        }
        let (mut offset, mut hash) = (0u64, Sha256::new());
        loop {
            let mut bytes = Vec::with_capacity(block);
            input.by_ref().take(block as u64).read_to_end(&mut bytes)?;
            if bytes.is_empty() {
                break;
            }
            hash.update(&bytes);
            let len = bytes.len() as u64;
            if let Err(error) = give(Part::Data { file, offset, bytes: Bytes::from(bytes) }) {
                return Ok(Err(error));
            }
            offset += len;
        }
        Ok(give(manifest(Some(Whole { len: offset, digest: hash.finalize().into() }))))
    }
}
