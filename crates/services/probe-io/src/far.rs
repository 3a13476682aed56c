//! The serving end on a socket.

use crate::{HostFiles, ProbeSocket};
use skyhaul_net::{Clock, random};
use skyhaul_probe::wire::RequestLimits;
use skyhaul_probe::{FarConfig, FarCounters, Handed, ProbeReceived, ProbeServer};
use skyhaul_units::Duration;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why an end does not serve.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServeError(#[from] io::Error);

/// A serving end.
#[derive(Debug)]
pub struct Server {
    socket: ProbeSocket,
    far: ProbeServer,
    files: HostFiles,
    clock: Clock,
}

impl Server {
    /// Binds to `address`.
    ///
    /// # Errors
    /// The address is in use, not this host's, or not permitted; the system has no randomness.
    pub fn bind(
        address: SocketAddr,
        limits: RequestLimits,
        files: HostFiles,
    ) -> Result<Self, ServeError> {
        let clock = Clock::start();
        let socket = ProbeSocket::bind(address, clock)?;
        let config = FarConfig { limits, utc_at_zero: clock.utc_at_start(), secret: random()? };
        Ok(Self { socket, far: ProbeServer::new(config), files, clock })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> Result<SocketAddr, ServeError> {
        Ok(self.socket.local_addr()?)
    }

    /// What it has done so far.
    pub const fn counters(&self) -> FarCounters {
        self.far.counters()
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// The socket failed.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), ServeError> {
        // Refused only where there are no such timers; pacing is then as it is, and measured.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(TIMER_SLACK.as_nanos()));
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            let due = self.far.next_timeout().unwrap_or(now + WAIT_MAX).min(now + WAIT_MAX);
            match self.socket.receive(due) {
                Ok(Some((at, from, datagram))) => {
                    let (files, inode) = (&self.files, self.socket.inode());
                    let mut host = || files.counters(inode);
                    let received = ProbeReceived { at, from, bytes: &datagram };
                    self.far.datagram(self.clock.now(), received, &mut host);
                }
                Ok(None) => {}
                // An answer to something sent to a near end that is gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
            for _ in 0..SENDS_AT_ONCE {
                let Some(out) = self.far.poll(self.clock.now()) else { break };
                let taken = matches!(self.socket.send(out.to, &out.datagram), Ok(Handed::Taken));
                if let (false, Some(session)) = (taken, out.stream) {
                    self.far.refused(session);
                }
            }
        }
        Ok(())
    }
}

/// How far the system may put off a wake-up.
const TIMER_SLACK: Duration = Duration::from_micros(1);

/// A stop flag is looked at this often.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Datagrams sent before the socket is read again.
const SENDS_AT_ONCE: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SocketLine;
    use skyhaul_probe::{ProbeClient, Spec, StreamAccount, StreamDirection};
    use skyhaul_units::{ByteCount, Rate};
    use std::sync::Arc;

    #[test]
    fn what_a_full_socket_drops_stands_in_the_account_as_the_sockets() {
        let limits = RequestLimits {
            rate: Rate::from_mbps(100_000),
            time: Duration::from_secs(600),
            datagrams: 1 << 20,
        };
        let address = (std::net::Ipv4Addr::LOCALHOST, 0).into();
        let mut server = Server::bind(address, limits, HostFiles::default()).unwrap();
        // A few datagrams, of which two thousand come without a pause.
        server.socket.shrink(ByteCount::kib(8)).unwrap();
        let to = server.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let serving = std::thread::Builder::new().spawn({
            let stop = Arc::clone(&stop);
            move || server.run(&stop)
        });
        let never = Arc::new(AtomicBool::new(false));
        let line = SocketLine::open(to, 0, Clock::start(), never, HostFiles::default()).unwrap();
        let mut near = ProbeClient::open(line, 7).unwrap();
        let spec = Spec {
            payload: ByteCount::new(1_400),
            spacing: Duration::from_nanos(200),
            count: 20_000,
        };
        let trace = near.stream(StreamDirection::Up, spec).unwrap();
        near.close();
        stop.store(true, Ordering::Relaxed);
        serving.unwrap().join().unwrap().unwrap();
        let account = StreamAccount::of(&trace);
        assert!(account.receiving_host.socket > 0, "{account:?}");
        // Less than nothing is unexplained where the socket dropped pings as well.
        assert!(account.lost_on_path == 0 && account.unexplained <= 0, "{account:?}");
        let ours = account.receiving_host.card + account.receiving_host.softnet;
        assert_eq!((ours, account.dropped_in_sending_queue), (0, 0), "{account:?}");
    }
}
