//! Small files of the state folder that are read and replaced as a whole.

use skyhaul_store::Disk;
use skyhaul_units::ByteCount;
use std::io::{self, ErrorKind};

/// Reads a file, but no more than `most` bytes of it; none where it is not there.
///
/// # Errors
/// The disk refuses.
pub(crate) fn read(disk: &dyn Disk, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let size = file.size()?.as_u64().min(most);
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    let read = file.read_at(&mut bytes, ByteCount::ZERO)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// Makes these bytes durable, in place of those before, in one step.
///
/// # Errors
/// The disk refuses: those before are there still.
pub(crate) fn replace(disk: &dyn Disk, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = format!("{name}.new");
    let file = disk.create(&new)?;
    file.append(bytes)?;
    file.sync()?;
    disk.rename(&new, name)?;
    disk.sync_dir("")
}
