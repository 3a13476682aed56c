//! Datagrams in and out of a socket, many in one call.

use super::client_id::ClientId;
use noq_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use skyhaul_units::ByteCount;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// A datagram under way.
#[derive(Debug)]
pub(super) struct Item {
    pub client: ClientId,
    pub ecn: Option<EcnCodepoint>,
    pub payload: Box<[u8]>,
}

/// Where a datagram goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    pub to: SocketAddr,
    /// Which of this machine's addresses it comes from; `None` lets the system choose.
    pub from: Option<IpAddr>,
}

/// A datagram that came in.
#[derive(Debug)]
pub(super) struct Received<'a> {
    pub from: SocketAddr,
    /// Which of this machine's addresses it was sent to, where the system tells.
    pub reached_at: Option<IpAddr>,
    pub ecn: Option<EcnCodepoint>,
    pub payload: &'a [u8],
}

/// A non-blocking UDP socket that moves several datagrams in one call where the system can.
#[derive(Debug)]
pub(super) struct BatchSocket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl BatchSocket {
    /// A socket at `address`, with `buffer` asked for in each direction. The system may give less.
    pub fn bind(address: SocketAddr, buffer: ByteCount) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new((&socket).into())?;
        // A refusal leaves the system's default, which works with more kernel drops; those are
        // counted.
        let _ = state.set_recv_buffer_size((&socket).into(), buffer.as_usize());
        let _ = state.set_send_buffer_size((&socket).into(), buffer.as_usize());
        Ok(Self { socket, state })
    }

    /// A socket of its own port that exchanges datagrams with `to` only.
    pub fn connect(to: SocketAddr, buffer: ByteCount) -> io::Result<Self> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let bound = Self::bind(any, buffer)?;
        bound.socket.connect(to)?;
        Ok(bound)
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Datagrams of one size that one call can send to one place.
    pub fn segments_at_once(&self) -> usize {
        self.state.max_gso_segments().get()
    }

    /// Takes in one batch; the count is for [`Scratch::datagrams`].
    pub fn receive(&self, scratch: &mut Scratch) -> io::Result<usize> {
        let mut rest = scratch.memory.as_mut_slice();
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] = std::array::from_fn(|_| {
            let (buffer, later) = std::mem::take(&mut rest).split_at_mut(LARGEST_RECEIVE);
            rest = later;
            IoSliceMut::new(buffer)
        });
        self.state.recv((&self.socket).into(), &mut buffers, &mut scratch.meta)
    }

    /// Sends a run made by [`next_run`]; returns how many of it the system took. Where it refuses
    /// the run as one, each is tried alone.
    pub fn send_run(&self, run: &[Item], route: Route, scratch: &mut Scratch) -> usize {
        if let [one] = run {
            return usize::from(self.send(one.ecn, &one.payload, None, route).is_ok());
        }
        let Some(first) = run.first() else { return 0 };
        scratch.gather.clear();
        for item in run {
            scratch.gather.extend_from_slice(&item.payload);
        }
        if self.send(first.ecn, &scratch.gather, Some(first.payload.len()), route).is_ok() {
            return run.len();
        }
        run.iter().filter(|item| self.send(item.ecn, &item.payload, None, route).is_ok()).count()
    }

    fn send(
        &self,
        ecn: Option<EcnCodepoint>,
        contents: &[u8],
        segment_size: Option<usize>,
        route: Route,
    ) -> io::Result<()> {
        let Route { to: destination, from: src_ip } = route;
        let transmit = Transmit { destination, ecn, contents, segment_size, src_ip };
        self.state.try_send((&self.socket).into(), &transmit)
    }
}

impl AsFd for BatchSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Memory for one batch in and one run out, used again each time.
pub(super) struct Scratch {
    memory: Vec<u8>,
    meta: [RecvMeta; BATCH_SIZE],
    gather: Vec<u8>,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            memory: vec![0; BATCH_SIZE * LARGEST_RECEIVE],
            meta: [RecvMeta::default(); BATCH_SIZE],
            gather: Vec::with_capacity(LARGEST_RECEIVE),
        }
    }

    /// The datagrams of the latest batch, those merged by the system taken apart.
    pub fn datagrams(&self, count: usize) -> impl Iterator<Item = Received<'_>> {
        let buffers = self.memory.chunks_exact(LARGEST_RECEIVE);
        self.meta.iter().zip(buffers).take(count).flat_map(|(meta, buffer)| {
            let filled = &buffer[..meta.len.min(buffer.len())];
            // An empty datagram is a datagram.
            let empty = filled.is_empty().then_some(filled);
            let parts = filled.chunks(meta.stride.max(1)).chain(empty);
            let RecvMeta { addr: from, dst_ip: reached_at, ecn, .. } = *meta;
            parts.map(move |payload| Received { from, reached_at, ecn, payload })
        })
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// How many of `items`, from the first, one call can send: to the same client, with the same
/// codepoint, all of the first one's size but the last, which may be shorter. At least one where
/// there is any.
pub(super) fn next_run(items: &[Item], segments_at_once: usize) -> usize {
    let Some(first) = items.first() else { return 0 };
    let size = first.payload.len();
    let most = segments_at_once.min(LARGEST_SEND / size.max(1)).max(1);
    let mut run = 1;
    while run < most.min(items.len()) {
        let item = &items[run];
        let length = item.payload.len();
        if item.client != first.client || item.ecn != first.ecn || length == 0 || length > size {
            break;
        }
        run += 1;
        if length < size {
            break;
        }
    }
    run
}

/// The largest UDP payload, merged or not, that the system hands over at once.
const LARGEST_RECEIVE: usize = 65_536;

/// The largest run, all payloads together: an IP packet's 65,535 bytes less the headers of either
/// family.
const LARGEST_SEND: usize = 65_535 - 48;

#[cfg(test)]
mod tests {
    use super::*;

    fn items(sizes: &[(u32, usize)]) -> Vec<Item> {
        sizes
            .iter()
            .map(|(client, size)| Item {
                client: ClientId { slot: *client, generation: 0 },
                ecn: None,
                payload: vec![0; *size].into(),
            })
            .collect()
    }

    #[test]
    fn runs_are_of_one_client_and_size_with_a_shorter_end() {
        assert_eq!(next_run(&[], 64), 0);
        assert_eq!(next_run(&items(&[(0, 9), (0, 9), (0, 5), (0, 9)]), 64), 3);
        assert_eq!(next_run(&items(&[(0, 9), (1, 9)]), 64), 1);
        assert_eq!(next_run(&items(&[(0, 5), (0, 9)]), 64), 1);
        assert_eq!(next_run(&items(&[(0, 9), (0, 0)]), 64), 1);
        assert_eq!(next_run(&items(&[(0, 0), (0, 0)]), 64), 1);
        assert_eq!(next_run(&items(&[(0, 9); 5]), 3), 3);
        assert_eq!(next_run(&items(&[(0, 9); 5]), 1), 1);
        assert_eq!(next_run(&items(&[(0, 1472); 64]), 64), 44);
        let mut marked = items(&[(0, 9), (0, 9)]);
        marked[1].ecn = Some(EcnCodepoint::Ce);
        assert_eq!(next_run(&marked, 64), 1);
    }
}
