//! The live inputs of a station that goes on in another process: what this one read and did not
//! decode, and a thread for each that writes down what it brings until the other one reads it.

use super::left_input::{LeftInput, PumpEnd};
use super::recent_bytes::RecentBytes;
use crate::upgrade::{
    BacklogKind, BacklogWriter, GivenSource, HandedInput, PassedInput, PassedSource, SourceSlot,
};
use skyhaul_units::Utc;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether a station goes on in another process, and what its channels leave for that.
#[derive(Debug, Default)]
pub struct HandingOver {
    is_ordered: AtomicBool,
    kept: Mutex<Vec<KeptInput>>,
}

/// A live input that no channel reads any more.
#[derive(Debug)]
pub struct KeptInput {
    passed: PassedInput,
    undecoded: File,
    left: LeftInput,
}

/// What was read of an input and not decoded.
#[derive(Debug)]
pub struct Undecoded<'a> {
    /// The last packet that says how those after it are to be read.
    pub description: &'a [u8],
    /// The bytes.
    pub recent: &'a mut RecentBytes,
}

/// Inputs that nobody reads any more: their descriptors, in their order.
#[derive(Debug)]
pub struct StoppedInputs {
    sources: Vec<PassedSource>,
    descriptors: Vec<Vec<OwnedFd>>,
}

impl HandingOver {
    /// The channels are to leave their live inputs.
    pub fn order(&self) {
        self.is_ordered.store(true, Ordering::Relaxed);
    }

    /// Whether they are.
    pub fn is_ordered(&self) -> bool {
        self.is_ordered.load(Ordering::Relaxed)
    }

    /// A channel leaves one.
    pub fn leave(&self, input: KeptInput) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(input);
    }

    /// What was left, once all channels have ended.
    pub fn take(&self) -> Vec<KeptInput> {
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeptInput {
    /// What a channel leaves: the input, what was not decoded of it, and the thread that reads on.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new(
        passed: PassedInput,
        Undecoded { description, recent }: Undecoded<'_>,
        left: LeftInput,
    ) -> io::Result<Self> {
        let (mut writer, undecoded) = BacklogWriter::new()?;
        if !description.is_empty() {
            writer.write(BacklogKind::Description, Utc::from_nanos(0), description)?;
        }
        for (received, bytes) in recent.reads() {
            writer.write(BacklogKind::Prepared, received, bytes)?;
        }
        writer.flush()?;
        Ok(Self { passed, undecoded, left })
    }
}

/// What the new process is told of these inputs, and its two descriptors for each.
pub fn passed(kept: &[KeptInput]) -> (Vec<PassedInput>, Vec<BorrowedFd<'_>>) {
    let inputs = kept.iter().map(|one| one.passed.clone()).collect();
    (inputs, kept.iter().flat_map(|one| [one.undecoded.as_fd(), one.left.as_fd()]).collect())
}

/// The same inputs for a node that starts in this process; also where their sources come to.
///
/// # Errors
/// The system has no more descriptors.
pub fn handed(kept: &[KeptInput]) -> io::Result<(Vec<HandedInput>, Vec<Arc<SourceSlot>>)> {
    let slots: Vec<Arc<SourceSlot>> = kept.iter().map(|_| Arc::default()).collect();
    let one = |(one, slot): (&KeptInput, &Arc<SourceSlot>)| {
        let (undecoded, reads) = (one.undecoded.try_clone()?, one.left.reads()?);
        Ok(HandedInput { passed: one.passed.clone(), undecoded, reads, slot: slot.clone() })
    };
    let inputs = kept.iter().zip(&slots).map(one).collect::<io::Result<_>>()?;
    Ok((inputs, slots))
}

/// Stops reading these inputs.
pub fn stop_reading(kept: Vec<KeptInput>) -> StoppedInputs {
    kept.iter().for_each(|one| one.left.stop());
    let (mut sources, mut all) = (Vec::new(), Vec::new());
    for one in kept {
        let Some(PumpEnd { source, written }) = one.left.end() else {
            // Of those behind it, none would get its own source: all are opened again.
            break;
        };
        let (kind, descriptors) = source.into_parts();
        let count = descriptors.len() as u8;
        sources.push(PassedSource { kind, descriptors: count, reads: written });
        all.push(descriptors);
    }
    StoppedInputs { sources, descriptors: all }
}

impl StoppedInputs {
    /// What the new process is told of the sources, and their descriptors.
    pub fn passed(&self) -> (Vec<PassedSource>, Vec<BorrowedFd<'_>>) {
        let descriptors = self.descriptors.iter().flatten().map(AsFd::as_fd).collect();
        (self.sources.clone(), descriptors)
    }

    /// Gives them to the channels of this process that wait for them.
    pub fn give(self, slots: &[Arc<SourceSlot>]) {
        let given = self.sources.into_iter().zip(self.descriptors);
        for ((source, descriptors), slot) in given.zip(slots) {
            slot.give(GivenSource::Given(source.kind, descriptors));
        }
    }
}
