//! The versions of files: one of another version is refused with what to do, and left as it is.

use std::io;

/// A file of a version that this program does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has format version {found}, this program reads version {known}: run the release that \
    wrote it, or a later one"
)]
pub struct OtherFormat {
    /// The version in the file.
    pub found: u32,
    /// The version that this program writes.
    pub known: u32,
}

impl From<OtherFormat> for io::Error {
    fn from(other: OtherFormat) -> Self {
        Self::new(io::ErrorKind::Unsupported, other)
    }
}

/// Whether a file is whole, and of another version.
pub(crate) fn is_other(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<OtherFormat>())
}

/// What to do about a file that cannot be read: `usual`, unless the error says it.
pub(crate) fn help(error: &io::Error, usual: &'static str) -> &'static str {
    if is_other(error) { "" } else { usual }
}

#[cfg(test)]
mod tests {
    use crate::disk::{Disk, read_small};
    use crate::log::crc;
    use crate::raw::{RawConfig, RawKind, RawRecorder, RawStamp};
    use crate::sim::SimDisk;
    use crate::{
        ArrivedRecord, ContactConfig, ContactStore, FlowId, RecordDirectory, Seq, Spool,
        SpoolConfig, SpoolDraw, SpoolId, SpoolIdentity, SpoolKnown, SpoolOpening, SpoolSender,
        StationName,
    };
    use skyhaul_units::{ByteCount, Utc};
    use std::sync::Arc;

    const NOW: Utc = Utc::from_micros(1_730_419_200_000_000);
    const ROOM: ByteCount = ByteCount::mib(64);

    fn spool(disk: &SimDisk) -> Result<Spool, String> {
        let (max_size, segment_size) = (ByteCount::mib(32), ByteCount::mib(8));
        let config = SpoolConfig { max_size, segment_size, ..SpoolConfig::default() };
        let spool = Spool::open(Arc::new(disk.clone()), config, NOW, SpoolDraw([7; 24]));
        spool.map_err(|error| error.to_string())
    }

    fn contacts(disk: &SimDisk) -> Result<ContactStore, String> {
        let config = ContactConfig { max_size: ROOM, ..ContactConfig::default() };
        ContactStore::open(Arc::new(disk.clone()), config).map_err(|error| error.to_string())
    }

    fn records(disk: &SimDisk) -> RecordDirectory {
        RecordDirectory::open(Arc::new(disk.clone()), "jobs").unwrap()
    }

    fn recording(disk: &SimDisk) -> Result<RawRecorder, String> {
        let recorder = RawRecorder::open(Arc::new(disk.clone()), "raw/x", RawConfig::default());
        recorder.map_err(|error| error.to_string())
    }

    /// Opens everything. Returns what is refused.
    fn refused(disk: &SimDisk) -> Vec<String> {
        let loaded = records(disk).load().map_err(|error| error.to_string());
        let outcomes =
            [spool(disk).err(), contacts(disk).err(), loaded.err(), recording(disk).err()];
        outcomes.into_iter().flatten().collect()
    }

    /// A disk with a file of every kind.
    fn used() -> SimDisk {
        let disk = SimDisk::new(ByteCount::mib(512));
        let mut spool = spool(&disk).unwrap();
        let flow = spool.open_flow(NOW).unwrap();
        spool.append(flow, b"frames", NOW).unwrap();
        spool.sync().unwrap();
        spool.free(NOW).unwrap();
        let mut store = contacts(&disk).unwrap();
        let station = StationName::new("kiruna").unwrap();
        let opening = SpoolOpening { count: 1, drawn: 2 };
        let identity = SpoolIdentity { id: SpoolId([1; 16]), opening };
        let space = store.admit(&station, identity.id).unwrap().space;
        let told = SpoolKnown::default().state;
        let sender = SpoolSender { station, space: space.clone(), spool: identity, told };
        for flow in [FlowId(1), FlowId(2)] {
            let (seq, received, payload) = (Seq(0), NOW, &b"frames"[..]);
            let record = ArrivedRecord { station: &space, flow, seq, received, payload };
            store.append_from(&sender, record).unwrap();
        }
        store.finish(&space, FlowId(1), NOW).unwrap();
        store.sync();
        records(&disk).put("job", b"planned").unwrap();
        let mut recorder = recording(&disk).unwrap();
        let stamp = RawStamp { received: NOW, input: 0, kind: RawKind::Stream };
        recorder.append(stamp, b"as received").unwrap();
        recorder.flush().unwrap();
        recorder.sync().unwrap();
        disk
    }

    fn bytes_of(disk: &SimDisk, path: &str) -> Vec<u8> {
        read_small(disk, path, ByteCount::mib(1)).unwrap()
    }

    /// The same file as a later version might begin it; none for a file without a version: pieces
    /// of a recording, whose index has it.
    fn later(path: &str, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
        // The log of a finished contact is opened when it is read.
        if path.ends_with(".raw") || (path.ends_with(".seg") && path.contains("/00000001/")) {
            return None;
        }
        if path.ends_with(".idx") {
            bytes[6] += 1;
        } else if path.ends_with(".seg") {
            bytes[2] += 1;
            let place = [1u64.to_be_bytes(), 0u64.to_be_bytes()].concat();
            let sum = crc(&[&place, &bytes[..4], &bytes[8..44]]);
            bytes[4..8].copy_from_slice(&sum.to_be_bytes());
        } else {
            bytes[3] += 1;
            bytes.push(0);
        }
        Some(bytes)
    }

    #[test]
    fn a_file_of_a_later_version_is_refused_with_what_to_do_and_stays_as_it_is() {
        let files = used().files();
        let endings = ["/flows", "/identity", "/finished", "/spool", "/job", ".seg", ".idx"];
        for ending in endings {
            assert!(files.iter().any(|(path, _)| path.ends_with(ending)), "{ending}: {files:?}");
        }
        for (path, _) in files {
            let disk = used();
            assert_eq!(refused(&disk), Vec::<String>::new());
            let Some(later) = later(&path, bytes_of(&disk, &path)) else { continue };
            disk.create(&path).unwrap().append(&later).unwrap();
            let said = refused(&disk);
            let [said] = &said[..] else { panic!("{path}: {said:?}") };
            let (found, known) = if path.ends_with(".idx") { (2, 1) } else { (3, 2) };
            assert!(said.contains(&path), "{path}: {said}");
            let versions = format!("format version {found}, this program reads version {known}");
            assert!(said.contains(&versions) && said.contains("release"), "{path}: {said}");
            assert_eq!(bytes_of(&disk, &path), later, "{path}");
        }
    }
}
