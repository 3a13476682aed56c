//! What a channel reads first of a live input that was read elsewhere: what came before, while a
//! thread reads on, so that the system drops nothing meanwhile.

use super::input::InputSource;
use super::left_input::LeftInput;
use crate::upgrade::{BacklogHead, BacklogKind, BacklogReader, HandedInput, SourceSlot};
use skyhaul_config::Input;
use skyhaul_net::Clock;
use skyhaul_units::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// How much of an input that was read elsewhere is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandedState {
    /// All of it and of what came since, or it was not read elsewhere.
    Taken,
    /// All of it. There may be more that a thread here has written down since, which need not have
    /// an end.
    Behind,
    /// There is more, which has an end.
    Given,
    /// Somebody else still reads it.
    Elsewhere,
}

/// What was read of an input before, and where it comes to.
#[derive(Debug)]
pub struct HandedReads {
    input: Input,
    clock: Clock,
    /// What was read elsewhere and not taken, oldest first.
    before: VecDeque<BacklogReader>,
    /// Bytes of what was not decoded that the capture does not need.
    skip: u64,
    /// Held until all is taken: an order to upgrade the node again waits for that.
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
        let undecoded = BacklogReader::freeing(undecoded, 0);
        Self {
            input,
            clock,
            before: VecDeque::from([undecoded, BacklogReader::freeing(reads, passed.reads_from)]),
            skip: from.saturating_sub(passed.undecoded_from),
            slot,
            rest: Rest::Elsewhere,
        }
    }

    /// How much of it is taken.
    pub fn state(&self) -> HandedState {
        match self.rest {
            Rest::Elsewhere => HandedState::Elsewhere,
            Rest::Read { .. } if self.before.is_empty() => HandedState::Behind,
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
            let more = left.reader()?;
            self.rest = Rest::Read { left, more };
        }
        while let Some(reader) = self.before.front_mut() {
            if let Some(head) = reader.next(buffer)? {
                return Ok(HandedRead::Entry(head, self.skipped(head)));
            }
            self.before.pop_front();
        }
        if let Rest::Read { more, .. } = &mut self.rest {
            if let Some(head) = more.next(buffer)? {
                return Ok(HandedRead::Entry(head, 0));
            }
            self.stop()?;
        }
        if let Rest::Stopped { more, .. } = &mut self.rest
            && let Some(head) = more.next(buffer)?
        {
            return Ok(HandedRead::Entry(head, 0));
        }
        match std::mem::replace(&mut self.rest, Rest::Elsewhere) {
            Rest::Stopped { source, .. } => Ok(HandedRead::Over(source)),
            Rest::Read { .. } | Rest::Elsewhere => Ok(HandedRead::NotYet),
        }
    }

    /// The bytes at the beginning of an entry that the capture does not need.
    fn skipped(&mut self, head: BacklogHead) -> usize {
        let is_capture = head.kind == BacklogKind::Prepared;
        let skipped = if is_capture { self.skip.min(head.length as u64) } else { 0 };
        self.skip -= skipped;
        usize::try_from(skipped).unwrap_or(head.length)
    }

    /// Ends the thread that reads on, so that what is left has an end.
    ///
    /// # Errors
    /// The thread has panicked: the input is gone.
    pub fn stop(&mut self) -> io::Result<()> {
        self.rest = match std::mem::replace(&mut self.rest, Rest::Elsewhere) {
            Rest::Read { left, more } => {
                let gone = || io::Error::other("the thread that read the input is gone");
                Rest::Stopped { more, source: left.end().ok_or_else(gone)?.into_source() }
            }
            other => other,
        };
        Ok(())
    }

    /// Leaves the input, of which all is taken that was read elsewhere. A thread goes on with it,
    /// or begins to.
    ///
    /// # Errors
    /// Somebody else reads it; the system gives no memory or no thread.
    pub fn let_go(self) -> io::Result<LeftInput> {
        match self.rest {
            Rest::Read { left, more } => Ok(left.taken_before(more.at())),
            Rest::Stopped { source, .. } => LeftInput::read_on(source, self.clock),
            Rest::Elsewhere => Err(io::Error::other("another process still reads it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services;
    use crate::upgrade::{BacklogWriter, GivenSource, MAX_ENTRY, PassedInput, PassedKind};
    use skyhaul_units::Utc;
    use std::fs::File;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    const NOW: Duration = Duration::ZERO;

    /// An input that was read elsewhere: its numbers from 0 up to `count`.
    fn read_elsewhere(count: u64) -> File {
        let (mut writer, file) = BacklogWriter::new().unwrap();
        for number in 0..count {
            let bytes = number.to_be_bytes();
            writer.write(BacklogKind::Read, Utc::from_nanos(0), &bytes).unwrap();
        }
        writer.flush().unwrap();
        file
    }

    fn handed(reads: File, reads_from: u64, slot: &Arc<SourceSlot>) -> HandedReads {
        let (input, undecoded) = ("tcp:127.0.0.1:9".to_owned(), tempfile::tempfile().unwrap());
        let passed = PassedInput {
            channel: "x".to_owned(),
            address: None,
            flow: None,
            undecoded_from: 0,
            offset: 0,
            reads_from,
            input,
        };
        let input = passed.input.parse().unwrap();
        let handed = HandedInput { passed, undecoded, reads, slot: slot.clone() };
        HandedReads::new(handed, input, 0, Clock::start())
    }

    /// Takes reads of 8-byte numbers.
    #[derive(Default)]
    struct Taken {
        next: u64,
        part: Vec<u8>,
    }

    /// Waits until the thread that reads on has brought more than an entry.
    fn wait_for_more(reads: &HandedReads) {
        let Rest::Read { left, .. } = &reads.rest else { panic!("no thread reads on") };
        let file = left.reads().unwrap();
        while file.metadata().unwrap().len() < 4 * MAX_ENTRY as u64 {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
    }

    impl Taken {
        /// Takes the next read; `false` where there is none.
        fn read(&mut self, reads: &mut HandedReads, buffer: &mut [u8]) -> bool {
            match reads.next(buffer, NOW).unwrap() {
                HandedRead::Entry(head, from) => self.take(&buffer[from..head.length]),
                HandedRead::Over(_) => return false,
                HandedRead::NotYet => panic!("it was given"),
            }
            true
        }

        fn take(&mut self, bytes: &[u8]) {
            self.part.extend(bytes);
            let whole = self.part.len() - self.part.len() % 8;
            for number in self.part[..whole].chunks(8) {
                assert_eq!(u64::from_be_bytes(number.try_into().unwrap()), self.next);
                self.next += 1;
            }
            self.part.drain(..whole);
        }
    }

    /// Regression: a node that was upgraded in that state waited for the end of what its input
    /// brought, which need not come.
    #[test]
    fn an_input_that_brings_more_than_is_taken_can_be_left() {
        const BEFORE: u64 = 1_000;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = listener.accept().unwrap().0;
        // Until the other end is closed.
        let send = move || {
            for first in (BEFORE..).step_by(8_192) {
                let piece = (first..first + 8_192).flat_map(u64::to_be_bytes);
                if sender.write_all(&piece.collect::<Vec<_>>()).is_err() {
                    break;
                }
            }
        };
        let sending = services::thread("sender", send).unwrap();
        let slot = Arc::default();
        let (mut reads, mut taken) = (handed(read_elsewhere(BEFORE), 0, &slot), Taken::default());
        let mut buffer = vec![0; MAX_ENTRY];
        assert!(matches!(reads.next(&mut buffer, NOW), Ok(HandedRead::NotYet)));
        assert_eq!(reads.state(), HandedState::Elsewhere);
        slot.give(GivenSource::Given(PassedKind::Tcp, vec![accepted.into()]));
        for round in 0..3 {
            assert!(taken.read(&mut reads, &mut buffer), "round {round}");
            wait_for_more(&reads);
            // What was read elsewhere has an end; what comes now has not.
            while reads.state() != HandedState::Behind {
                assert!(taken.read(&mut reads, &mut buffer), "round {round}");
            }
            let left = reads.let_go().unwrap();
            let (file, from) = (left.reads().unwrap(), left.from());
            let end = left.end().unwrap();
            assert!(end.written() > from, "round {round}: something is left");
            let given = end.into_source().into_given().unwrap();
            reads = handed(file, from, &slot);
            slot.give(given);
        }
        // A station that ends takes all that came until then.
        assert!(taken.read(&mut reads, &mut buffer));
        wait_for_more(&reads);
        reads.stop().unwrap();
        assert_eq!(reads.state(), HandedState::Given);
        while taken.read(&mut reads, &mut buffer) {}
        drop(reads);
        sending.join().unwrap();
        assert!(taken.next > BEFORE);
    }
}
