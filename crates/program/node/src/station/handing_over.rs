//! The live inputs of a station that goes on in another process: what this one read and did not
//! decode, and a thread for each that writes down what it brings until the other one reads it.

use super::input::{InputRead, InputSource};
use super::recent_bytes::RecentBytes;
use crate::services;
use crate::upgrade::{
    BacklogHead, BacklogKind, BacklogReader, BacklogWriter, GivenSource, HandedInput, MAX_ENTRY,
    PassedInput, PassedSource, SourceSlot,
};
use skyhaul_config::Input;
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Utc};
use std::fs::File;
use std::io;
use std::net::SocketAddr;
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
    left: LeftInput,
}

/// A live input that a thread reads.
#[derive(Debug)]
pub struct LeftInput {
    address: Option<SocketAddr>,
    /// What the thread writes down.
    reads: File,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<PumpEnd>,
}

/// What was read of an input and not decoded.
#[derive(Debug)]
pub struct Undecoded<'a> {
    /// The last packet that says how those after it are to be read.
    pub description: &'a [u8],
    /// The bytes.
    pub recent: &'a mut RecentBytes,
}

/// How much of an input that was read elsewhere is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandedState {
    /// All of it, or it was not read elsewhere.
    Taken,
    /// There is more, and nobody else reads it.
    Given,
    /// Somebody else still reads it.
    Elsewhere,
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

impl LeftInput {
    /// Reads on in a thread.
    ///
    /// # Errors
    /// The system gives no memory or no thread; the input is closed then.
    pub fn read_on(source: InputSource, clock: Clock) -> io::Result<Self> {
        let (writer, reads) = BacklogWriter::new()?;
        let (address, stop) = (source.address(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let run = move || read_on(source, writer, &stopped, clock);
        let thread = services::thread("input", run).map_err(io::Error::other)?;
        Ok(Self { address, reads, stop, thread })
    }

    /// Lets the thread end, and waits for it; none where it panicked, which was logged.
    fn end(self) -> Option<PumpEnd> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().ok()
    }

    /// The address that it listens on.
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
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
                write_down(BacklogKind::Read, &buffer[..length])
            }
            Ok(InputRead::Break) => write_down(BacklogKind::Break, &[]),
            Ok(InputRead::End) => {
                is_over = true;
                write_down(BacklogKind::End, &[])
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
    (inputs, kept.iter().flat_map(|one| [one.undecoded.as_fd(), one.left.reads.as_fd()]).collect())
}

/// The same inputs for a node that starts in this process; also where their sources come to.
///
/// # Errors
/// The system has no more descriptors.
pub fn handed(kept: &[KeptInput]) -> io::Result<(Vec<HandedInput>, Vec<Arc<SourceSlot>>)> {
    let slots: Vec<Arc<SourceSlot>> = kept.iter().map(|_| Arc::default()).collect();
    let one = |(one, slot): (&KeptInput, &Arc<SourceSlot>)| {
        let (undecoded, reads) = (one.undecoded.try_clone()?, one.left.reads.try_clone()?);
        Ok(HandedInput { passed: one.passed.clone(), undecoded, reads, slot: slot.clone() })
    };
    let inputs = kept.iter().zip(&slots).map(one).collect::<io::Result<_>>()?;
    Ok((inputs, slots))
}

/// Stops reading these inputs.
pub fn stop_reading(kept: Vec<KeptInput>) -> StoppedInputs {
    kept.iter().for_each(|one| one.left.stop.store(true, Ordering::Relaxed));
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

/// What a channel reads first of an input that it was handed. While it catches up, a thread reads
/// on, so that the system drops nothing meanwhile.
#[derive(Debug)]
pub struct HandedReads {
    input: Input,
    clock: Clock,
    undecoded: BacklogReader,
    reads: BacklogReader,
    /// Bytes of what was not decoded that the capture does not need.
    skip: u64,
    slot: Arc<SourceSlot>,
    rest: Rest,
}

/// What comes after what was read elsewhere.
#[derive(Debug)]
enum Rest {
    /// It is read elsewhere.
    Elsewhere,
    /// A thread writes it down.
    Read { left: LeftInput, more: BacklogReader },
    /// The last of what a thread wrote down, and then the source.
    Stopped { more: BacklogReader, source: InputSource },
}

/// One read of it.
#[derive(Debug)]
pub enum HandedRead {
    /// Somebody else still reads.
    NotYet,
    /// An entry, whose bytes are at the beginning of the buffer, and count from this byte on.
    Entry(BacklogHead, usize),
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
            rest: Rest::Elsewhere,
        }
    }

    /// Whether somebody else still reads.
    pub const fn state(&self) -> HandedState {
        match self.rest {
            Rest::Elsewhere => HandedState::Elsewhere,
            Rest::Read { .. } | Rest::Stopped { .. } => HandedState::Given,
        }
    }

    /// The next read, waiting up to `patience` for the source.
    ///
    /// # Errors
    /// What was handed is damaged, or the input cannot be opened again.
    pub fn next(&mut self, buffer: &mut [u8], patience: Duration) -> io::Result<HandedRead> {
        if matches!(self.rest, Rest::Elsewhere) {
            let Some(given) = self.slot.take(patience) else { return Ok(HandedRead::NotYet) };
            let source = InputSource::given(&self.input, given, self.clock)?;
            let left = LeftInput::read_on(source, self.clock)?;
            let more = BacklogReader::new(left.reads.try_clone()?);
            self.rest = Rest::Read { left, more };
        }
        if let Some(head) = self.undecoded.next(buffer)? {
            let is_capture = head.kind == BacklogKind::Prepared;
            let skipped = if is_capture { self.skip.min(head.length as u64) } else { 0 };
            self.skip -= skipped;
            let from = usize::try_from(skipped).unwrap_or(head.length);
            return Ok(HandedRead::Entry(head, from));
        }
        if let Some(head) = self.reads.next(buffer)? {
            return Ok(HandedRead::Entry(head, 0));
        }
        match std::mem::replace(&mut self.rest, Rest::Elsewhere) {
            Rest::Read { left, mut more } => match more.next(buffer)? {
                Some(head) => {
                    self.rest = Rest::Read { left, more };
                    Ok(HandedRead::Entry(head, 0))
                }
                None => {
                    let gone = || io::Error::other("the thread that read the input is gone");
                    let source = left.end().ok_or_else(gone)?.source;
                    Self::last(&mut self.rest, more, source, buffer)
                }
            },
            Rest::Stopped { more, source } => Self::last(&mut self.rest, more, source, buffer),
            Rest::Elsewhere => Ok(HandedRead::NotYet),
        }
    }

    /// The last of what a thread wrote down, and then the source.
    fn last(
        rest: &mut Rest,
        mut more: BacklogReader,
        source: InputSource,
        buffer: &mut [u8],
    ) -> io::Result<HandedRead> {
        Ok(match more.next(buffer)? {
            Some(head) => {
                *rest = Rest::Stopped { more, source };
                HandedRead::Entry(head, 0)
            }
            None => HandedRead::Over(source),
        })
    }
}
