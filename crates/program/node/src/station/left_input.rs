//! A live input that no channel reads: a thread writes down what it brings, until somebody has
//! taken what came before.

use super::input::{InputRead, InputSource};
use crate::services;
use crate::upgrade::{BacklogKind, BacklogReader, BacklogWriter, MAX_ENTRY};
use skyhaul_net::Clock;
use skyhaul_units::Duration;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A live input that a thread reads until this is dropped.
#[derive(Debug)]
pub struct LeftInput {
    address: Option<SocketAddr>,
    /// What the thread writes down.
    reads: File,
    /// The byte of it that the first entry begins with that nobody took.
    from: u64,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<InputPump>>,
}

/// The most that is held of what was written down for an input and not taken: 8 s of 500 Mbit/s.
/// Then a TCP sender waits, and the system drops datagrams, which is counted.
const MOST: u64 = 512 << 20;
/// One wait for input: the stop flag is looked at this often.
const PATIENCE: Duration = Duration::from_millis(5);
/// What is held is asked after so many bytes: 17 ms of 500 Mbit/s.
const ROUND: u64 = 1 << 20;

impl LeftInput {
    /// Reads on in a thread.
    ///
    /// # Errors
    /// The system gives no memory or no thread; the input is closed then.
    pub fn read_on(source: InputSource, clock: Clock) -> io::Result<Self> {
        Self::holding(MOST, source, clock)
    }

    /// The same, which holds at most so many bytes.
    fn holding(most: u64, source: InputSource, clock: Clock) -> io::Result<Self> {
        let (writer, _) = BacklogWriter::new()?;
        let room = Room { most, asked_at: 0 };
        InputPump { source, writer, room, clock, is_over: false }.start()
    }

    /// A reader of what it brings, which gives back what it has read.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn reader(&self) -> io::Result<BacklogReader> {
        Ok(BacklogReader::freeing(self.reads.try_clone()?, self.from))
    }

    /// What it brings, for a reader elsewhere.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn reads(&self) -> io::Result<File> {
        self.reads.try_clone()
    }

    /// The byte of it that the first entry begins with that nobody took.
    pub const fn from(&self) -> u64 {
        self.from
    }

    /// The entries before byte `from` are taken.
    pub fn taken_before(mut self, from: u64) -> Self {
        self.from = from;
        self
    }

    /// Tells the thread to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }

    /// Lets the thread end, and waits for it; none where it panicked, which was logged.
    pub fn end(mut self) -> Option<InputPump> {
        self.stop();
        self.thread.take()?.join().ok()
    }

    /// The address that it listens on.
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for LeftInput {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A live input, and where a thread writes down what it brings.
#[derive(Debug)]
pub struct InputPump {
    source: InputSource,
    writer: BacklogWriter,
    room: Room,
    clock: Clock,
    is_over: bool,
}

/// Whether more may be held.
#[derive(Debug)]
struct Room {
    most: u64,
    /// The bytes written at which the system is asked again.
    asked_at: u64,
}

impl Room {
    fn is_left(&mut self, writer: &BacklogWriter) -> bool {
        if writer.written() < self.asked_at {
            return true;
        }
        let is_left = writer.held().is_ok_and(|held| held + ROUND <= self.most);
        if is_left {
            self.asked_at = writer.written() + ROUND;
        }
        is_left
    }
}

impl InputPump {
    /// Reads on in a thread, which writes behind what is written.
    ///
    /// # Errors
    /// The system gives no thread or no descriptor; the input is closed then.
    pub fn start(self) -> io::Result<LeftInput> {
        let (address, reads) = (self.source.address(), self.writer.shared()?);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = services::thread("input", move || self.run(&stopped));
        let thread = Some(thread.map_err(io::Error::other)?);
        Ok(LeftInput { address, reads, from: 0, stop, thread })
    }

    /// The bytes that are written down.
    pub const fn written(&self) -> u64 {
        self.writer.written()
    }

    /// The input.
    pub const fn source(&self) -> &InputSource {
        &self.source
    }

    /// The input, which is read by others from here on.
    pub fn into_source(self) -> InputSource {
        self.source
    }

    /// Writes down what the source brings, until it is to stop.
    fn run(mut self, stop: &AtomicBool) -> Self {
        let mut buffer = vec![0; MAX_ENTRY];
        while !stop.load(Ordering::Relaxed) {
            if self.is_over || !self.room.is_left(&self.writer) {
                // Until it is stopped, or some is taken: milliseconds, or a few seconds.
                std::thread::park_timeout(PATIENCE.to_std());
            } else if let Err(error) = self.step(&mut buffer) {
                tracing::error!("an input cannot be read while the node is upgraded ({error})");
                self.is_over = true;
            }
        }
        if let Err(error) = self.writer.flush() {
            tracing::error!("what an input brought cannot be kept ({error})");
        }
        self
    }

    fn step(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let (kind, length) = match self.source.read(buffer, PATIENCE)? {
            InputRead::Idle => return Ok(()),
            InputRead::Data(length) => (BacklogKind::Read, length),
            InputRead::Break => (BacklogKind::Break, 0),
            InputRead::End => {
                self.is_over = true;
                (BacklogKind::End, 0)
            }
        };
        self.writer.write(kind, self.clock.utc(), &buffer[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upgrade::{GivenSource, PassedKind, held};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    /// Holds two steps of what is given back, so that there is room again after one.
    const LITTLE: u64 = 40 << 20;

    /// Regression: the thread stopped for ever once it had written down as much as may be held,
    /// however much of that was taken.
    #[test]
    fn an_input_that_brings_more_than_may_be_held_is_read_while_it_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let given = GivenSource::Given(PassedKind::Tcp, vec![listener.accept().unwrap().0.into()]);
        let (clock, input) = (Clock::start(), "tcp:127.0.0.1:9".parse().unwrap());
        let source = InputSource::given(&input, given, clock).unwrap();
        let all = 2 * LITTLE as usize;
        let send = move || (0..all >> 20).for_each(|_| sender.write_all(&[7; 1 << 20]).unwrap());
        let sending = services::thread("sender", send).unwrap();
        let left = LeftInput::holding(LITTLE, source, clock).unwrap();
        while held(&left.reads).unwrap() + ROUND <= LITTLE {
            std::thread::park_timeout(PATIENCE.to_std());
        }
        let (mut reader, mut buffer, mut taken) = (left.reader().unwrap(), vec![0; MAX_ENTRY], 0);
        while taken < all {
            // The system may count in pages of 2 MiB.
            assert!(held(&left.reads).unwrap() <= LITTLE + 4 * ROUND);
            match reader.next(&mut buffer).unwrap() {
                Some(head) => taken += head.length,
                // The last bytes come when it ends.
                None if sending.is_finished() && taken + MAX_ENTRY * 4 > all => break,
                None => std::thread::park_timeout(PATIENCE.to_std()),
            }
        }
        sending.join().unwrap();
        let mut source = left.end().unwrap().into_source();
        while let Some(head) = reader.next(&mut buffer).unwrap() {
            taken += head.length;
        }
        while taken < all {
            match source.read(&mut buffer, PATIENCE).unwrap() {
                InputRead::Data(length) => taken += length,
                other => assert_eq!(other, InputRead::Idle),
            }
        }
        assert_eq!(taken, all);
    }
}
