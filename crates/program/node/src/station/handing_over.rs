//! The live inputs of a station that goes on in another process: what this one read and did not
//! decode, and a thread for each that writes down what it brings until the other one reads it.

use super::input::{InputRead, InputSource};
use super::recent_bytes::RecentBytes;
use crate::services;
use crate::upgrade::{
    BacklogReader, BacklogWriter, EntryHead, EntryKind, GivenSource, HandedInput, HandedInputs,
    MAX_ENTRY, PassedInput, PassedSource, SourceSlot,
};
use skyhaul_config::Input;
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Utc};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

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
    reads: File,
    pump: Pump,
}

/// The thread that reads on.
#[derive(Debug)]
pub struct Pump {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<PumpEnd>,
}

/// What a thread that read on leaves.
#[derive(Debug)]
pub struct PumpEnd {
    source: InputSource,
    written: u64,
}

/// Inputs that nobody reads any more: their descriptors, in their order.
#[derive(Debug)]
pub struct StoppedInputs {
    sources: Vec<PassedSource>,
    descriptors: Vec<Vec<OwnedFd>>,
}

/// The most that is written down for an input: 8 s of 500 Mbit/s. Then a TCP sender waits, and the
/// system drops datagrams, which is counted.
const MOST: u64 = 512 << 20;
/// One wait for input: the stop flag is looked at this often.
const PATIENCE: Duration = Duration::from_millis(5);

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

impl Pump {
    /// Reads on. Also returns what is written down.
    ///
    /// # Errors
    /// The system gives no memory or no thread; the input is closed then.
    pub fn start(source: InputSource, clock: Clock) -> io::Result<(Self, File)> {
        let (writer, reads) = BacklogWriter::new()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let run = move || read_on(source, writer, &stopped, clock);
        let thread = services::thread("input", run).map_err(io::Error::other)?;
        Ok((Self { stop, thread }, reads))
    }
}

/// Writes down what a source brings, until it is to stop.
fn read_on(
    mut source: InputSource,
    mut writer: BacklogWriter,
    stop: &AtomicBool,
    clock: Clock,
) -> PumpEnd {
    let mut buffer = vec![0; MAX_ENTRY];
    let mut write_down = |kind, bytes: &[u8]| writer.write(kind, clock.utc(), bytes);
    let mut is_over = false;
    let mut most = MOST;
    while !stop.load(Ordering::Relaxed) {
        if is_over || most == 0 {
            // Until it is stopped, in milliseconds or a few seconds.
            std::thread::park_timeout(PATIENCE.to_std());
            continue;
        }
        let outcome = match source.read(&mut buffer, PATIENCE) {
            Ok(InputRead::Data(length)) => {
                most = most.saturating_sub(length as u64);
                write_down(EntryKind::Read, &buffer[..length])
            }
            Ok(InputRead::Break) => write_down(EntryKind::Break, &[]),
            Ok(InputRead::End) => {
                is_over = true;
                write_down(EntryKind::End, &[])
            }
            Ok(InputRead::Idle) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            tracing::error!("an input cannot be read while the node is upgraded ({error})");
            is_over = true;
        }
    }
    let written = writer.flush().unwrap_or_else(|_| writer.written());
    PumpEnd { source, written }
}

impl KeptInput {
    /// What a channel leaves: the input, what was not decoded of it, and the thread that reads on.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new(
        passed: PassedInput,
        (description, recent): (&[u8], &mut RecentBytes),
        (pump, reads): (Pump, File),
    ) -> io::Result<Self> {
        let (mut writer, undecoded) = BacklogWriter::new()?;
        if !description.is_empty() {
            writer.write(EntryKind::Description, Utc::from_nanos(0), description)?;
        }
        for (received, bytes) in recent.reads() {
            writer.write(EntryKind::Prepared, received, bytes)?;
        }
        writer.flush()?;
        Ok(Self { passed, undecoded, reads, pump })
    }
}

/// What the new process is told of these inputs, and its two descriptors for each.
pub fn passed(kept: &[KeptInput]) -> (Vec<PassedInput>, Vec<BorrowedFd<'_>>) {
    let inputs = kept.iter().map(|one| one.passed.clone()).collect();
    (inputs, kept.iter().flat_map(|one| [one.undecoded.as_fd(), one.reads.as_fd()]).collect())
}

/// The same inputs for a node that starts in this process; also where their sources come to.
///
/// # Errors
/// The system has no more descriptors.
pub fn handed(kept: &[KeptInput]) -> io::Result<(HandedInputs, Vec<Arc<SourceSlot>>)> {
    let slots: Vec<Arc<SourceSlot>> = kept.iter().map(|_| Arc::default()).collect();
    let one = |(one, slot): (&KeptInput, &Arc<SourceSlot>)| {
        let (undecoded, reads) = (one.undecoded.try_clone()?, one.reads.try_clone()?);
        Ok(HandedInput { passed: one.passed.clone(), undecoded, reads, slot: slot.clone() })
    };
    let inputs = kept.iter().zip(&slots).map(one).collect::<io::Result<_>>()?;
    Ok((HandedInputs::new(inputs), slots))
}

/// Stops reading these inputs.
pub fn stop_reading(kept: Vec<KeptInput>) -> StoppedInputs {
    kept.iter().for_each(|one| {
        one.pump.stop.store(true, Ordering::Relaxed);
        one.pump.thread.thread().unpark();
    });
    let (mut sources, mut all) = (Vec::new(), Vec::new());
    for one in kept {
        let Ok(PumpEnd { source, written }) = one.pump.thread.join() else {
            // A panic was logged; the input is opened again.
            continue;
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

/// What a channel reads first of an input that it was handed.
#[derive(Debug)]
pub struct HandedReads {
    input: Input,
    clock: Clock,
    undecoded: BacklogReader,
    reads: BacklogReader,
    /// Bytes of what was not decoded that the capture does not need.
    skip: u64,
    slot: Arc<SourceSlot>,
    /// The source, once it is there: nobody else reads it then.
    source: Option<InputSource>,
}

/// One read of it.
#[derive(Debug)]
pub enum HandedRead {
    /// The other process still reads.
    NotYet,
    /// An entry, whose bytes are at the beginning of the buffer from this byte on.
    Entry(EntryHead, usize),
    /// All is read: the source goes on.
    Over(InputSource),
}

impl HandedReads {
    /// Of an input of this kind. The capture begins with byte `from`.
    pub fn new(handed: HandedInput, input: Input, from: u64, clock: Clock) -> Self {
        let HandedInput { passed, undecoded, reads, slot } = handed;
        Self {
            input,
            clock,
            undecoded: BacklogReader::new(undecoded),
            reads: BacklogReader::new(reads),
            skip: from.saturating_sub(passed.undecoded_from),
            slot,
            source: None,
        }
    }

    /// Whether another process still reads.
    pub const fn is_waiting(&self) -> bool {
        self.source.is_none()
    }

    /// Takes the source, where it is there: somebody else reads it from here on.
    pub fn take_source(&mut self) -> Option<InputSource> {
        self.source.replace(InputSource::away(self.clock))
    }

    /// The next read, waiting up to `patience` for the source.
    ///
    /// # Errors
    /// What was handed is damaged, or the input cannot be opened again.
    pub fn next(&mut self, buffer: &mut [u8], patience: Duration) -> io::Result<HandedRead> {
        if self.source.is_none() {
            let Some(given) = self.slot.take(patience) else { return Ok(HandedRead::NotYet) };
            self.source = Some(InputSource::given(&self.input, given, self.clock)?);
        }
        if let Some(head) = self.undecoded.next(buffer)? {
            let is_capture = head.kind == EntryKind::Prepared;
            let skipped = if is_capture { self.skip.min(head.length as u64) } else { 0 };
            self.skip -= skipped;
            return Ok(HandedRead::Entry(head, usize::try_from(skipped).unwrap_or(head.length)));
        }
        if let Some(head) = self.reads.next(buffer)? {
            return Ok(HandedRead::Entry(head, 0));
        }
        Ok(self.source.take().map_or(HandedRead::NotYet, HandedRead::Over))
    }
}
