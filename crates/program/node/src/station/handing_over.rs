//! The live inputs of a station that goes on in another process: what this one read and did not
//! decode, and a thread for each that writes down what it brings until the other one reads it.

use super::left_input::{InputPump, LeftInput};
use super::recent_bytes::RecentBytes;
use crate::upgrade::{
    BacklogKind, BacklogWriter, GivenSource, HandedInput, PassedInput, PassedSource, SourceSlot,
};
use skyhaul_units::Utc;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
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
    reads: File,
    source: KeptSource,
}

/// Who reads it.
#[derive(Debug)]
enum KeptSource {
    /// A thread.
    Read(LeftInput),
    /// Nobody.
    Stopped(InputPump),
    /// It is closed.
    Lost,
}

/// What was read of an input and not decoded.
#[derive(Debug)]
pub struct Undecoded<'a> {
    /// The last packet that says how those after it are to be read.
    pub description: &'a [u8],
    /// The bytes.
    pub recent: &'a mut RecentBytes,
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
        Ok(Self { passed, undecoded, reads: left.reads()?, source: KeptSource::Read(left) })
    }

    fn take_source(&mut self) -> KeptSource {
        std::mem::replace(&mut self.source, KeptSource::Lost)
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
pub fn handed(kept: &[KeptInput]) -> io::Result<(Vec<HandedInput>, Vec<Arc<SourceSlot>>)> {
    let slots: Vec<Arc<SourceSlot>> = kept.iter().map(|_| Arc::default()).collect();
    let one = |(one, slot): (&KeptInput, &Arc<SourceSlot>)| {
        let (undecoded, reads) = (one.undecoded.try_clone()?, one.reads.try_clone()?);
        Ok(HandedInput { passed: one.passed.clone(), undecoded, reads, slot: slot.clone() })
    };
    let inputs = kept.iter().zip(&slots).map(one).collect::<io::Result<_>>()?;
    Ok((inputs, slots))
}

/// Stops reading these inputs.
pub fn stop_reading(kept: &mut [KeptInput]) {
    for one in &*kept {
        if let KeptSource::Read(left) = &one.source {
            left.stop();
        }
    }
    for one in kept {
        one.source = match one.take_source() {
            KeptSource::Read(left) => left.end().map_or(KeptSource::Lost, KeptSource::Stopped),
            other => other,
        };
    }
}

/// Reads these inputs again: nobody else does.
pub fn read_on(kept: &mut [KeptInput]) {
    for one in kept {
        one.source = match one.take_source() {
            KeptSource::Stopped(pump) => match pump.start() {
                Ok(left) => KeptSource::Read(left),
                Err(error) => {
                    tracing::error!(input = one.passed.input, "it cannot be read ({error})");
                    KeptSource::Lost
                }
            },
            other => other,
        };
    }
}

/// What the new process is told of the sources that nobody reads, and their descriptors. Of those
/// behind one that is lost, none would get its own: all are opened again there.
pub fn sources(kept: &[KeptInput]) -> (Vec<PassedSource>, Vec<BorrowedFd<'_>>) {
    let stopped = kept.iter().map_while(|one| match &one.source {
        KeptSource::Stopped(pump) => Some(pump),
        KeptSource::Read(_) | KeptSource::Lost => None,
    });
    let (mut sources, mut all) = (Vec::new(), Vec::new());
    for pump in stopped {
        let (kind, descriptors) = pump.source().parts();
        let (count, reads) = (descriptors.len() as u8, pump.written());
        sources.push(PassedSource { kind, descriptors: count, reads });
        all.extend(descriptors);
    }
    (sources, all)
}

/// Gives these inputs to the channels of this process that wait for them. One that is lost is
/// opened again.
pub fn give(mut kept: Vec<KeptInput>, slots: &[Arc<SourceSlot>]) {
    stop_reading(&mut kept);
    for (mut one, slot) in kept.into_iter().zip(slots) {
        slot.give(match one.take_source() {
            KeptSource::Stopped(pump) => {
                pump.into_source().into_given().unwrap_or(GivenSource::Lost)
            }
            KeptSource::Read(_) | KeptSource::Lost => GivenSource::Lost,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services;
    use crate::station::handed_reads::{HandedRead, HandedReads};
    use crate::station::input::InputSource;
    use crate::upgrade::{MAX_ENTRY, PassedKind};
    use skyhaul_net::Clock;
    use skyhaul_units::Duration;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    /// The byte of a stream at this place.
    const fn byte(at: usize) -> u8 {
        (at % 251) as u8
    }

    /// Waits until the thread has written down so much.
    fn wait_for(kept: &[KeptInput], length: u64) {
        while kept[0].reads.metadata().unwrap().len() < length {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
    }

    /// Regression: nobody read the inputs from the failure of a new process at its last step until
    /// the node had started again.
    #[test]
    fn inputs_that_a_new_process_did_not_take_are_read_on_until_this_one_takes_them() {
        const ALL: usize = 8 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let given = GivenSource::Given(PassedKind::Tcp, vec![listener.accept().unwrap().0.into()]);
        let send = move || sender.write_all(&(0..ALL).map(byte).collect::<Vec<_>>()).unwrap();
        let sending = services::thread("sender", send).unwrap();
        let (clock, input) = (Clock::start(), "tcp:127.0.0.1:9");
        let source = InputSource::given(&input.parse().unwrap(), given, clock).unwrap();
        let left = LeftInput::read_on(source, clock).unwrap();
        let passed = PassedInput {
            channel: "x".to_owned(),
            input: input.to_owned(),
            address: None,
            flow: None,
            undecoded_from: 0,
            offset: 0,
            reads_from: 0,
        };
        let nothing = Undecoded { description: &[], recent: &mut RecentBytes::new(0) };
        let mut kept = vec![KeptInput::new(passed, nothing, left).unwrap()];
        let (mut handed, slots) = handed(&kept).unwrap();
        wait_for(&kept, 1 << 20);
        stop_reading(&mut kept);
        let (told, descriptors) = sources(&kept);
        assert_eq!((told[0].kind, descriptors.len()), (PassedKind::Tcp, 1));
        let before = told[0].reads;
        read_on(&mut kept);
        if before < ALL as u64 / 2 {
            wait_for(&kept, before + (1 << 20));
        }
        give(kept, &slots);
        let handed = handed.remove(0);
        let mut reads = HandedReads::new(handed, input.parse().unwrap(), 0, clock);
        let (mut at, mut buffer) = (0, vec![0; MAX_ENTRY]);
        let mut take = |bytes: &[u8]| {
            assert!(bytes.iter().enumerate().all(|(more, one)| *one == byte(at + more)), "{at}");
            at += bytes.len();
            at
        };
        while let HandedRead::Entry(head, from) = reads.next(&mut buffer, Duration::ZERO).unwrap() {
            if take(&buffer[from..head.length]) == ALL {
                break;
            }
        }
        drop(reads);
        sending.join().unwrap();
    }
}
