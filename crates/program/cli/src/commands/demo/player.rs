//! A simulated receiver: sends a recording to a station's input at the downlink's rate, then
//! disconnects.

use super::source::PassSource;
use super::truth::ExpectedContact;
use super::wait::pause;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_units::{ByteCount, Duration, Rate};
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// A pass being played. It ends when this is dropped.
#[derive(Debug)]
pub struct Player {
    played: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<ExpectedContact, std::io::Error>>>,
}

impl Player {
    /// Begins to play `source` to `input` at `rate`.
    ///
    /// # Errors
    /// The input cannot be reached.
    pub fn start(source: PassSource, input: SocketAddr, rate: Rate) -> Result<Self, Failure> {
        let refused = |source| {
            let help = "read the station's log";
            Failure::io(
                "the station's input does not accept the \
                        connection",
                &input.to_string(),
                help,
                source,
            )
        };
        let stream = TcpStream::connect(input).map_err(refused)?;
        stream.set_write_timeout(Some(PATIENCE.to_std())).map_err(refused)?;
        let (played, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let playing = Playing {
            stream,
            rate,
            clock: Clock::start(),
            played: played.clone(),
            stop: stop.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("player".to_owned())
            .spawn(move || playing.run(source));
        Ok(Self { played, stop, thread: Some(thread.map_err(refused)?) })
    }

    /// Bytes that the station has taken.
    pub fn played(&self) -> ByteCount {
        ByteCount::new(self.played.load(Ordering::Relaxed))
    }

    /// Whether the last bit has been sent.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What was played, once it has ended.
    ///
    /// # Errors
    /// The station broke off.
    pub fn truth(mut self) -> Result<ExpectedContact, Failure> {
        let broke = |reason: String| {
            let what = format!("the station closed the connection during a pass ({reason})");
            Failure::new(Exit::Environment, &what, "read the station's log")
        };
        let played = self.thread.take().map(JoinHandle::join);
        match played {
            Some(Ok(Ok(truth))) => Ok(truth),
            Some(Ok(Err(error))) => Err(broke(error.to_string())),
            Some(Err(_)) | None => Err(broke("its player failed".to_owned())),
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Playing {
    stream: TcpStream,
    rate: Rate,
    clock: Clock,
    played: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Playing {
    fn run(mut self, mut source: PassSource) -> Result<ExpectedContact, std::io::Error> {
        let start = self.clock.now();
        let mut sent = ByteCount::ZERO;
        while let Some(piece) = source.next_piece() {
            let mut rest: &[u8] = &piece;
            while !rest.is_empty() {
                let due =
                    (self.rate * self.clock.now().since(start)).saturating_sub(sent).as_usize();
                if due == 0 {
                    pause(STEP);
                    continue;
                }
                let (now, later) = rest.split_at(due.min(rest.len()));
                self.send(now)?;
                sent += ByteCount::of(now.len());
                rest = later;
            }
        }
        Ok(source.truth())
    }

    /// Sends all of `bytes`; a station that takes none holds the pass back, as it holds back a
    /// receiver.
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), std::io::Error> {
        while !bytes.is_empty() {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ErrorKind::Interrupted.into());
            }
            match self.stream.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(taken) => {
                    bytes = &bytes[taken..];
                    self.played.fetch_add(taken as u64, Ordering::Relaxed);
                }
                Err(error) if is_pause(error.kind()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_pause(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The longest time until an interrupt is noticed.
const PATIENCE: Duration = Duration::from_millis(200);
/// Bits come in steps of this length, as a receiver gives them out.
const STEP: Duration = Duration::from_millis(5);
