//! Messages over a SEQPACKET socket, each whole or not at all, with a descriptor beside some.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use skyhaul_blocks::message::MESSAGE_MAX;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// A message, with the descriptor that goes beside it.
#[derive(Debug)]
pub(crate) struct Packet {
    pub bytes: Vec<u8>,
    pub descriptor: Option<OwnedFd>,
}

/// What came of a socket.
#[derive(Debug)]
pub(crate) enum Came<'a> {
    /// A message, and the descriptor beside it.
    Message(&'a [u8], Option<OwnedFd>),
    /// A message that is longer than any, or with too many descriptors.
    TooLong,
    /// Nothing yet.
    Nothing,
    /// The other end is gone.
    End,
}

/// Room for a message.
#[derive(Debug)]
pub(crate) struct Room(Vec<u8>);

impl Default for Room {
    fn default() -> Self {
        Self(vec![0; MESSAGE_MAX])
    }
}

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
/// Programs that wait to be accepted.
const BACKLOG: i32 = 64;

/// Listens at a socket file. One that nobody listens at any more is replaced.
pub(crate) fn listen(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = new()?;
    match rustix::net::bind(&socket, &address) {
        Err(Errno::ADDRINUSE) if is_abandoned(path) => {
            std::fs::remove_file(path)?;
            rustix::net::bind(&socket, &address)?;
        }
        bound => bound?,
    }
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Whether a socket file is there at which nobody listens.
fn is_abandoned(path: &Path) -> bool {
    connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// A socket that is connected to the one at a file.
pub(crate) fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = new()?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// The next program that connects.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    match rustix::net::accept_with(listener, FLAGS) {
        Ok(socket) => Ok(Some(socket)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Two sockets that are connected to each other.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?)
}

fn new() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?)
}

/// Sends a message. Returns whether there was room for it.
pub(crate) fn send(socket: impl AsFd, packet: &Packet) -> io::Result<bool> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let descriptors: [BorrowedFd<'_>; 1];
    if let Some(descriptor) = &packet.descriptor {
        descriptors = [descriptor.as_fd()];
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let bytes = [IoSlice::new(&packet.bytes)];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match rustix::net::sendmsg(socket, &bytes, &mut beside, flags) {
        Ok(_) => Ok(true),
        // TOOMANYREFS: the user has as many descriptors on their way as it may.
        Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::TOOMANYREFS) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Takes the next message.
pub(crate) fn receive(socket: impl AsFd, room: &mut Room) -> io::Result<Came<'_>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [IoSliceMut::new(&mut room.0)];
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut came = rustix::net::recvmsg(&socket, &mut bytes, &mut beside, flags);
    if matches!(came, Err(Errno::CONNRESET)) {
        // The other end closed before it had read everything. What it had said is behind this.
        came = rustix::net::recvmsg(&socket, &mut bytes, &mut beside, flags);
    }
    let came = match came {
        Ok(came) => came,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Came::Nothing),
        Err(Errno::CONNRESET) => return Ok(Came::End),
        Err(errno) => return Err(errno.into()),
    };
    let descriptor = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    if came.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Ok(Came::TooLong);
    }
    match came.bytes {
        0 => Ok(Came::End),
        len => Ok(Came::Message(&room.0[..len], descriptor)),
    }
}
