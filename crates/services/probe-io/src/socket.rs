//! A UDP socket that measures: datagrams one by one, never fragmented, with the kernel's time of
//! arrival.

use noq_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use skyhaul_net::{Clock, at_once, drops, option};
use skyhaul_probe::Handed;
use skyhaul_probe::wire::DATAGRAM_MAX;
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// A measuring socket.
pub struct ProbeSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    memory: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
    /// Taken from the kernel and not yet asked for; at most one batch.
    arrived: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
    clock: Clock,
    inode: Option<u64>,
}

impl ProbeSocket {
    /// A socket at `address`.
    ///
    /// # Errors
    /// The address is in use, not this host's, or not permitted.
    pub fn bind(address: SocketAddr, clock: Clock) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // What the system does not grant shows in its own count of drops.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), BUFFER.as_usize());
        let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), BUFFER.as_usize());
        // Each datagram by itself, with its own time. Older systems that know neither are measured
        // by our clock.
        let _ = option::set(&socket, libc::SOL_UDP, libc::UDP_GRO, 0);
        let _ = option::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
        let inode = drops::inode(&socket).ok();
        let memory = vec![0; BATCH_SIZE * DATAGRAM_MAX];
        let metas = [RecvMeta::default(); BATCH_SIZE];
        Ok(Self { socket, state, memory, metas, arrived: VecDeque::new(), clock, inode })
    }

    /// A socket of any free port, or of `port`, that exchanges datagrams with `to` alone.
    ///
    /// # Errors
    /// As the system says: no route, no free port.
    pub fn connect(to: SocketAddr, port: u16, clock: Clock) -> io::Result<Self> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
        };
        let bound = Self::bind(any, clock)?;
        bound.socket.connect(to)?;
        Ok(bound)
    }

    /// Where it is bound to.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// By which the kernel's tables know it.
    pub const fn inode(&self) -> Option<u64> {
        self.inode
    }

    /// Hands a datagram to the system.
    ///
    /// # Errors
    /// As the system says; that nobody listens at the far end comes as
    /// [`io::ErrorKind::ConnectionRefused`].
    pub fn send(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<Handed> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: datagram,
            segment_size: None,
            src_ip: None,
        };
        match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
            Ok(()) => Ok(Handed::Taken),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Handed::Refused),
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOBUFS | libc::ENOMEM) => Ok(Handed::Refused),
                Some(libc::EMSGSIZE) => Ok(Handed::TooLong),
                _ => Err(error),
            },
        }
    }

    /// The next datagram, when it came and from where; waits until `until`, or as long as the
    /// socket has nothing. The wait ends on time to some microseconds: its last part is spent
    /// looking at the clock.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn receive(
        &mut self,
        until: Instant,
    ) -> io::Result<Option<(Instant, SocketAddr, Vec<u8>)>> {
        loop {
            if let Some(arrived) = self.arrived.pop_front() {
                return Ok(Some(arrived));
            }
            self.fill()?;
            if !self.arrived.is_empty() {
                continue;
            }
            let left = self.clock.until(until);
            if left == Duration::ZERO {
                return Ok(None);
            }
            if left > SPIN {
                self.wait((left - SPIN).min(WAIT_MAX))?;
                if left - SPIN > WAIT_MAX && self.clock.until(until) > SPIN {
                    self.fill()?;
                    if self.arrived.is_empty() {
                        return Ok(None);
                    }
                }
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Lets it hold no more than about this, which the kernel doubles.
    #[cfg(test)]
    pub fn shrink(&self, buffer: ByteCount) -> io::Result<()> {
        let size = i32::try_from(buffer.as_u64()).unwrap_or(i32::MAX);
        option::set(&self.socket, libc::SOL_SOCKET, libc::SO_RCVBUF, size)
    }

    fn wait(&self, span: Duration) -> io::Result<()> {
        let nanos = span.as_nanos();
        let timeout = Timespec {
            tv_sec: (nanos / 1_000_000_000).cast_signed(),
            tv_nsec: (nanos % 1_000_000_000).cast_signed(),
        };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a batch from the kernel, if there is one.
    fn fill(&mut self) -> io::Result<()> {
        let mut rest = self.memory.as_mut_slice();
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] = std::array::from_fn(|_| {
            let (buffer, later) = std::mem::take(&mut rest).split_at_mut(DATAGRAM_MAX);
            rest = later;
            IoSliceMut::new(buffer)
        });
        let count =
            match self.state.recv(UdpSockRef::from(&self.socket), &mut buffers, &mut self.metas) {
                Ok(count) => count,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) =>
                {
                    0
                }
                Err(error) => return Err(error),
            };
        if count == 0 {
            return Ok(());
        }
        let now = at_once(|| self.clock.now(), calendar_nanos);
        for (meta, buffer) in
            self.metas.iter().zip(self.memory.chunks_exact(DATAGRAM_MAX)).take(count)
        {
            let at = meta.timestamp.map_or(now.0, |stamp| arrival(now.0, now.1, stamp));
            let filled = &buffer[..meta.len.min(buffer.len())];
            for datagram in filled.chunks(meta.stride.max(1)) {
                self.arrived.push_back((at, meta.addr, datagram.to_vec()));
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for ProbeSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProbeSocket").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// The kernel's time of arrival on our clock: as long ago as the calendar says. A calendar that was
/// set meanwhile is not believed.
fn arrival(now: Instant, calendar: u64, stamp: std::time::Duration) -> Instant {
    let stamp = u64::try_from(stamp.as_nanos()).unwrap_or(u64::MAX);
    match calendar.checked_sub(stamp) {
        Some(ago) if ago < AGO_MAX.as_nanos() => now - Duration::from_nanos(ago),
        _ => now,
    }
}

fn calendar_nanos() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Asked for in each direction: 130 ms at 1 Gbit/s.
const BUFFER: ByteCount = ByteCount::mib(16);

/// The system wakes a thread that late; this much before the time it is awake and looks at the
/// clock.
const SPIN: Duration = Duration::from_micros(80);

/// A caller gets its turn at least this often: a stop flag is looked at then.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// No datagram lies in a socket's queue for longer while its owner runs.
const AGO_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_come_with_the_time_at_which_they_came() {
        let clock = Clock::start();
        let mut socket = ProbeSocket::bind("127.0.0.1:0".parse().unwrap(), clock).unwrap();
        let sender = ProbeSocket::connect(socket.local_addr().unwrap(), 0, clock).unwrap();
        let before = clock.now();
        assert_eq!(sender.send(socket.local_addr().unwrap(), b"one").unwrap(), Handed::Taken);
        // It is there, and is left there for a while.
        while socket.socket.peek(&mut [0; 8]).is_err() {}
        let there = clock.now();
        while clock.now() < there + Duration::from_millis(30) {}
        let (at, from, datagram) = socket.receive(clock.now()).unwrap().unwrap();
        assert_eq!(
            (from.port(), &datagram[..]),
            (sender.local_addr().unwrap().port(), &b"one"[..])
        );
        // The two clocks are read one after the other: some microseconds either way.
        assert!(
            at + Duration::from_millis(1) > before && at < there + Duration::from_millis(1),
            "{at}"
        );
        assert_eq!(socket.receive(clock.now()).unwrap(), None);
    }

    #[test]
    fn a_calendar_that_was_set_is_not_believed() {
        let (now, calendar) = (Instant::from_nanos(5_000_000_000), 1_000_000_000_000);
        let at = |stamp| arrival(now, calendar, std::time::Duration::from_nanos(stamp));
        assert_eq!(at(calendar - 700), now - Duration::from_nanos(700));
        assert_eq!(at(calendar + 1), now);
        assert_eq!(at(calendar - 3_600_000_000_000 / 1_000), now);
    }
}
