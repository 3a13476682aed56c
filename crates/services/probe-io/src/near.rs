//! The measuring end's line: a socket to one far end.

use crate::{HostFiles, ProbeSocket};
use skyhaul_net::Clock;
use skyhaul_probe::{Handed, HostCounters, LineError, ProbeIo};
use skyhaul_units::{Duration, Instant, Utc};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A line over a socket.
#[derive(Debug)]
pub struct SocketLine {
    socket: ProbeSocket,
    to: SocketAddr,
    clock: Clock,
    files: HostFiles,
    stop: Arc<AtomicBool>,
    /// Answers that nobody listens, since something came.
    unreachable: u32,
}

impl SocketLine {
    /// A line to `to`, from `port` or any free one; a `stop` that is set ends what is going on.
    ///
    /// # Errors
    /// As the system says: no route, no free port.
    pub fn open(
        to: SocketAddr,
        port: u16,
        clock: Clock,
        stop: Arc<AtomicBool>,
        files: HostFiles,
    ) -> io::Result<Self> {
        // Refused only where there are no such timers; pacing is then as it is, and measured.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(TIMER_SLACK.as_nanos()));
        let socket = ProbeSocket::connect(to, port, clock)?;
        Ok(Self { socket, to, clock, files, stop, unreachable: 0 })
    }

    /// Where it is bound to.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// A host on the way that answers once may be wrong, and the far end may be about to start.
    fn refused(&mut self, error: &io::Error) -> Result<(), LineError> {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                self.unreachable += 1;
                if self.unreachable >= UNREACHABLE_MAX {
                    Err(LineError::Unreachable)
                } else {
                    Ok(())
                }
            }
            // The line is down at this moment, as a line may be.
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Ok(()),
            _ => Err(LineError::Socket(error.to_string())),
        }
    }
}

impl ProbeIo for SocketLine {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn utc_at_zero(&self) -> Utc {
        self.clock.utc_at_start()
    }

    fn send(&mut self, datagram: &[u8]) -> Result<Handed, LineError> {
        match self.socket.send(self.to, datagram) {
            Ok(handed) => Ok(handed),
            Err(error) => {
                self.refused(&error)?;
                // The error was of a datagram before: the system reports it in place of sending
                // this one.
                Ok(self.socket.send(self.to, datagram).unwrap_or(Handed::Refused))
            }
        }
    }

    fn receive(&mut self, until: Instant) -> Result<Option<(Instant, Vec<u8>)>, LineError> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(LineError::Interrupted);
            }
            match self.socket.receive(until) {
                Ok(Some((at, _, datagram))) => {
                    self.unreachable = 0;
                    return Ok(Some((at, datagram)));
                }
                Ok(None) if self.clock.now() >= until => return Ok(None),
                Ok(None) => {}
                Err(error) => self.refused(&error)?,
            }
        }
    }

    fn host(&mut self) -> HostCounters {
        self.files.counters(self.socket.inode())
    }
}

/// How far the system may put off a wake-up.
const TIMER_SLACK: Duration = Duration::from_micros(1);

/// So many answers of the far host that nobody listens, with nothing else in between, are believed.
const UNREACHABLE_MAX: u32 = 2;
