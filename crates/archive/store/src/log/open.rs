//! Opens a log, and recovers it after a power cut, a kill or a full disk.

use super::damages::{DamagedRange, Damages};
use super::scan::{Scan, Trust, read_seal, scan};
use super::segments::{Active, Segments};
use super::summary::parse_file_name;
use super::{Log, LogConfig, LogError, LogStats, Position, SegmentNo, SegmentSummary};
use crate::disk::{Disk, DiskFile, EntryKind, sim::SimDisk};
use skyhaul_units::ByteCount;
use std::sync::Arc;

impl Log {
    /// Opens the log in `dir`, and creates it if absent. All valid data is durable when this
    /// returns.
    ///
    /// A torn end is cut off and counted in [`LogStats::torn`]; damage before it is skipped,
    /// counted and listed.
    ///
    /// # Errors
    /// [`LogError::OtherVersion`], or [`LogError::Io`] if a disk operation fails.
    pub fn open(disk: Arc<dyn Disk>, dir: &str, config: LogConfig) -> Result<Self, LogError> {
        let refused = |action| move |error| LogError::io(action, dir, error);
        disk.make_dir(dir).map_err(refused("make the directory"))?;
        let entries = disk.list(dir).map_err(refused("list the directory"))?;
        // The last session may have ended between creating a file and syncing its name.
        disk.sync_dir(dir).map_err(refused("sync the directory"))?;
        let mut log = Self {
            config,
            segments: Segments::none(disk, dir),
            durable: Position { segment: SegmentNo(0), offset: ByteCount::ZERO },
            failed: None,
            stats: LogStats::default(),
            damages: Damages::default(),
        };
        let mut numbers: Vec<SegmentNo> = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::File)
            .filter_map(|entry| parse_file_name(&entry.name))
            .collect();
        let last = numbers.pop();
        for number in numbers {
            log.open_sealed(number)?;
        }
        if let Some(number) = last {
            log.open_last(number)?;
        }
        Ok(log)
    }

    fn open_sealed(&mut self, number: SegmentNo) -> Result<(), LogError> {
        let path = self.segments.path(number);
        let refused = |error| LogError::io("read the file", &path, error);
        let file = self.segments.disk.open(&path).map_err(refused)?;
        let size = file.size().map_err(refused)?;
        // A seal that cannot be read is damage of durable data: the records show the contents of
        // the segment.
        let summary = match read_seal(&*file, number).ok().flatten() {
            Some(summary) => summary,
            None => self.scan(number, &*file, Trust::Durable)?.summary,
        };
        self.segments.add_sealed(number, summary, size);
        Ok(())
    }

    fn open_last(&mut self, number: SegmentNo) -> Result<(), LogError> {
        let path = self.segments.path(number);
        let refused = |action| {
            let path = path.clone();
            move |error| LogError::io(action, &path, error)
        };
        let file = self.segments.disk.open(&path).map_err(refused("open the file"))?;
        let found = self.scan(number, &*file, Trust::TailMayBeTorn)?;
        let cut = found.end < found.file;
        if cut {
            file.truncate(found.end).map_err(refused("cut the torn end of the file"))?;
            self.stats.torn += found.file - found.end;
        }
        // After a kill the records are complete in the page cache, but may not be on the disk.
        file.sync().map_err(refused("sync the file"))?;
        self.segments.next = SegmentNo(number.0 + 1);
        self.durable = Position { segment: number, offset: found.summary.size };
        if found.sealed {
            self.segments.add_sealed(number, found.summary, found.end);
            return Ok(());
        }
        let mut active = Active::new(number, file);
        active.summary = found.summary;
        active.last_block_end = found.last_block_end;
        self.segments.active = Some(active);
        if cut && !found.damaged.is_empty() {
            self.prove_again(&path)?;
        }
        Ok(())
    }

    /// The records that were cut off may have been the only ones to show that data after a damage
    /// was durable: a mark records it for the next time the log is opened. On a full device the
    /// mark cannot be written; the next record shows the same.
    fn prove_again(&mut self, path: &str) -> Result<(), LogError> {
        self.mark();
        let active = self.segments.active.as_ref().expect("the caller made it");
        active
            .tail
            .sync()
            .map_err(|reason| LogError::SyncFailed { path: path.to_owned(), reason })?;
        self.durable.offset = active.summary.size;
        Ok(())
    }

    fn scan(
        &mut self,
        number: SegmentNo,
        file: &dyn DiskFile,
        trust: Trust,
    ) -> Result<Scan, LogError> {
        let path = self.segments.path(number);
        let found = scan(file, number, trust)
            .map_err(|error| LogError::io("read the file", &path, error))?;
        if let Some(version) = found.other_version {
            return Err(LogError::OtherVersion { path, version });
        }
        for (fate, offset, length) in found.damaged.iter().copied() {
            let damage = DamagedRange { fate, file: path.clone(), offset, length };
            self.damages.note(damage, &mut self.stats);
        }
        Ok(found)
    }
}

/// Opens any bytes as the last segment file of a log, numbered 1: what is found in it, and what the
/// file holds afterwards. For fuzzing.
///
/// # Errors
/// [`LogError::OtherVersion`].
pub fn open_bytes(bytes: &[u8]) -> Result<(SegmentSummary, Vec<u8>), LogError> {
    let disk = SimDisk::new(ByteCount::of(bytes.len()) + ByteCount::kib(1));
    disk.make_dir("log").expect("an empty disk takes a folder");
    let file = disk.create("log/0000000000000001.seg").expect("an empty disk takes a file");
    file.append(bytes).expect("the disk is larger than the file");
    let log = Log::open(Arc::new(disk), "log", LogConfig::default())?;
    let summary =
        log.segments().iter().next().map(|(_, summary)| summary.clone()).unwrap_or_default();
    let mut kept = vec![0; file.size().expect("memory can be read").as_usize()];
    let read = file.read_at(&mut kept, ByteCount::ZERO).expect("memory can be read");
    kept.truncate(read);
    Ok((summary, kept))
}
