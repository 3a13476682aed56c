//! Large blocks in sealed memory (`memfd`), handed over as a descriptor.
//!
//! It is never mapped: who owns a file may shrink it, and a mapped page that is gone kills the
//! reader. It is read with `pread`, which ends at the end of the file, and only where seals say
//! that neither its size nor its bytes change.

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::{MemfdFlags, SealFlags};
use skyhaul_blocks::BlockRefusal;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

/// Seals without which memory is not taken.
const NEEDED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::WRITE);

/// Memory with these bytes, sealed against any change.
pub(crate) fn share(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("skyhaul-block", flags)?);
    file.write_all(bytes)?;
    rustix::fs::fcntl_add_seals(&file, NEEDED | SealFlags::SEAL)?;
    Ok(file.into())
}

/// Whether a descriptor is sealed memory of this length.
pub(crate) fn is_sealed(descriptor: impl AsFd, len: usize) -> bool {
    let seals = rustix::fs::fcntl_get_seals(&descriptor);
    let size = rustix::fs::fstat(&descriptor).map(|stat| stat.st_size);
    seals.is_ok_and(|seals| seals.contains(NEEDED))
        && size.is_ok_and(|size| usize::try_from(size) == Ok(len))
}

/// The bytes of sealed memory.
pub(crate) fn read(descriptor: OwnedFd, len: usize) -> Result<Bytes, BlockRefusal> {
    if !is_sealed(&descriptor, len) {
        return Err(BlockRefusal::Descriptor);
    }
    // Into memory that is not set to zero before: at gigabits a second that shows.
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let at = bytes.len() as u64;
        let read = || rustix::io::pread(&descriptor, spare_capacity(&mut bytes), at);
        if !rustix::io::retry_on_intr(read).is_ok_and(|count| count > 0) {
            return Err(BlockRefusal::Descriptor);
        }
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sealed_memory_of_the_right_length_is_read() {
        let whole = || share(&[7; 100_000]).unwrap();
        assert_eq!(read(whole(), 100_000).unwrap(), vec![7; 100_000]);
        for len in [0, 99_999, 100_001] {
            assert_eq!(read(whole(), len), Err(BlockRefusal::Descriptor));
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut open = File::from(rustix::fs::memfd_create("open", flags).unwrap());
        open.write_all(&[1; 10]).unwrap();
        assert_eq!(read(open.try_clone().unwrap().into(), 10), Err(BlockRefusal::Descriptor));
        rustix::fs::fcntl_add_seals(&open, SealFlags::SHRINK).unwrap();
        assert_eq!(read(open.into(), 10), Err(BlockRefusal::Descriptor));
        let file = tempfile::tempfile().unwrap();
        file.set_len(10).unwrap();
        assert_eq!(read(file.into(), 10), Err(BlockRefusal::Descriptor), "a file has no seals");
        let (socket, _) = crate::packet::pair().unwrap();
        assert_eq!(read(socket, 0), Err(BlockRefusal::Descriptor));
    }
}
