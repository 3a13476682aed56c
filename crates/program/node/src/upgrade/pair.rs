//! The pair of sockets between two processes: whole messages, with descriptors.

use super::messages::MAX_MESSAGE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use skyhaul_units::Duration;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The most descriptors of one message; the kernel takes 253.
pub const MAX_DESCRIPTORS: usize = 240;

/// One end.
#[derive(Debug)]
pub struct PairEnd(OwnedFd);

/// A message that came.
#[derive(Debug)]
pub struct PairMessage {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its descriptors.
    pub descriptors: Vec<OwnedFd>,
}

/// Opens a pair. The second end is for the other process.
///
/// # Errors
/// The system has no more descriptors.
pub fn pair() -> io::Result<(PairEnd, OwnedFd)> {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((PairEnd(ours), theirs))
}

impl PairEnd {
    /// The end that a descriptor is.
    pub const fn of(end: OwnedFd) -> Self {
        Self(end)
    }

    /// Sends a message with at most [`MAX_DESCRIPTORS`] descriptors.
    ///
    /// # Errors
    /// The other process is gone, or the message is too long.
    pub fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > MAX_MESSAGE || descriptors.len() > MAX_DESCRIPTORS {
            return Err(io::Error::other("there are too many inputs to pass on"));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::other("there are too many descriptors to pass on"));
        }
        sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next message, within `patience`; none where nothing came.
    ///
    /// # Errors
    /// `UnexpectedEof`: the other process is gone.
    pub fn receive(&self, patience: Duration) -> io::Result<Option<PairMessage>> {
        let nanos = patience.as_nanos();
        let timeout = Timespec {
            tv_sec: (nanos / 1_000_000_000).cast_signed(),
            tv_nsec: (nanos % 1_000_000_000).cast_signed(),
        };
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = vec![0; MAX_MESSAGE + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &self.0,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(received.bytes);
        let descriptors = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => Some(rights),
            _ => None,
        });
        Ok(Some(PairMessage { bytes, descriptors: descriptors.flatten().collect() }))
    }
}

impl AsFd for PairEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upgrade::messages::FromNew;
    use std::io::{Read, Seek, Write};

    #[test]
    fn messages_come_whole_with_their_descriptors_and_the_end_is_seen() {
        let (ours, theirs) = pair().unwrap();
        let theirs = PairEnd::of(theirs);
        assert!(ours.receive(Duration::from_millis(1)).unwrap().is_none());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"shared").unwrap();
        file.rewind().unwrap();
        theirs.send(&FromNew::Running, &[file.as_fd()]).unwrap();
        let received = ours.receive(Duration::from_secs(1)).unwrap().unwrap();
        assert_eq!(FromNew::parse(&received.bytes), Ok(FromNew::Running));
        let mut text = String::new();
        let [descriptor] = <[OwnedFd; 1]>::try_from(received.descriptors).unwrap();
        std::fs::File::from(descriptor).read_to_string(&mut text).unwrap();
        assert_eq!(text, "shared");
        let long = FromNew::Refused { why: "x".repeat(MAX_MESSAGE) };
        assert!(theirs.send(&long, &[]).unwrap_err().to_string().contains("too many inputs"));
        drop(theirs);
        let ended = ours.receive(Duration::from_secs(1)).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }
}
