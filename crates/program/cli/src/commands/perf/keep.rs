//! Writes received data to a file and syncs it, as a centre does, to include the disk of the
//! receiving host in a measurement.

use bytes::Bytes;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::{BusyClock, Clock, Waker};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

/// The keys of keeping.
#[derive(clap::Args)]
pub struct KeepFlags {
    /// Writes the received data to a file in this folder and syncs it, to include the disk in the
    /// measurement. The file is deleted at the end.
    #[arg(long, value_name = "DIR", conflicts_with = "one_way")]
    keep: Option<PathBuf>,
    /// The size of that file, after which it is overwritten from its beginning.
    #[arg(long, value_name = "SIZE", default_value = "1 GiB", requires = "keep")]
    keep_size: ByteCount,
}

/// The file of received data, and the thread that writes it. Each block belongs to a sender with an
/// id of type `I`.
pub struct Keeping<I> {
    blocks: Sender<(I, Bytes)>,
    written: Receiver<Written<I>>,
    stop: Arc<AtomicBool>,
    disk: Arc<BusyClock>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

/// The thread's answer: the sender and the length of a block that is written, or an error.
type Written<I> = Result<(I, usize), io::Error>;

/// The thread's end of it.
struct Writer {
    file: File,
    clock: Clock,
    at: ByteCount,
    size: ByteCount,
    disk: Arc<BusyClock>,
    unsynced_since: Option<Instant>,
    /// What waits then is left: it would be removed.
    stopped: Arc<AtomicBool>,
}

impl KeepFlags {
    /// Begins to keep, where that is asked for.
    ///
    /// # Errors
    /// The size is none, or the folder cannot be written.
    pub fn start<I: Send + 'static>(
        &self,
        clock: Clock,
        waker: &Waker,
    ) -> Result<Option<Keeping<I>>, Failure> {
        let Some(folder) = &self.keep else { return Ok(None) };
        if self.keep_size < SIZE_MIN {
            let what = format!("--keep-size {} is less than a block", self.keep_size);
            return Err(Failure::new(Exit::Usage, &what, &format!("give {SIZE_MIN} or more")));
        }
        Keeping::start(folder, self.keep_size, clock, waker).map(Some)
    }
}

impl<I: Send + 'static> Keeping<I> {
    fn start(folder: &Path, size: ByteCount, clock: Clock, waker: &Waker) -> Result<Self, Failure> {
        let path = folder.join(format!("skyhaul-perf-{}.keep", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|source| {
            let help = "give --keep an existing folder that this user can write to";
            Failure::io("received data cannot be kept", &path.display().to_string(), help, source)
        })?;
        let (disk, waker) = (Arc::new(BusyClock::new(clock)), waker.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let unsynced_since = None;
        let (at, stopped, busy) = (ByteCount::ZERO, stop.clone(), disk.clone());
        let mut writer = Writer { file, clock, at, size, disk: busy, unsynced_since, stopped };
        // Bounded by the senders' windows: a block returns to flow control when it is written.
        let (blocks, queue) = channel();
        let (tell, written) = channel();
        let named = std::thread::Builder::new().name("keep".to_owned());
        let thread = named.spawn(move || {
            let mut tell = |outcome| {
                // The server may have ended.
                let _ = tell.send(outcome);
                waker.wake();
            };
            if let Err(error) = writer.run(&queue, &mut tell) {
                tell(Err(error));
            }
        });
        // Made before the thread is checked: dropping it removes the file in any case.
        let mut keeping = Self { blocks, written, stop, disk, thread: None, path };
        keeping.thread = Some(thread.map_err(|source| {
            Failure::io(
                "cannot start a thread",
                "keep",
                "raise this user's process limit (ulimit -u)",
                source,
            )
        })?);
        Ok(keeping)
    }

    /// Takes a block of a sender. Its memory returns to flow control when
    /// [`written`](Self::written) returns it.
    pub fn take(&self, id: I, block: Bytes) {
        // If the thread has ended, its error is in the queue.
        let _ = self.blocks.send((id, block));
    }

    /// The next block that was written; none while there is none.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn written(&self) -> Result<Option<(I, usize)>, Failure> {
        match self.written.try_recv() {
            Ok(Ok(written)) => Ok(Some(written)),
            Ok(Err(source)) => {
                let help =
                    "free space on that disk, give a smaller --keep-size, or --keep another folder";
                Err(Failure::io(
                    "received data cannot be kept",
                    &self.path.display().to_string(),
                    help,
                    source,
                ))
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(None),
        }
    }

    /// How long the thread has been in calls to the disk.
    pub fn disk(&self) -> Duration {
        self.disk.so_far()
    }
}

impl<I> Drop for Keeping<I> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // The file may have been removed by someone else.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Writer {
    /// Writes until it is stopped.
    fn run<I>(
        &mut self,
        queue: &Receiver<(I, Bytes)>,
        tell: &mut impl FnMut(Written<I>),
    ) -> io::Result<()> {
        while !self.stopped.load(Ordering::Relaxed) {
            let due = self.unsynced_since.map(|since| since + SYNC_INTERVAL);
            let patience = due.map_or(IDLE, |due| due.since(self.clock.now()));
            match queue.recv_timeout(patience.to_std()) {
                Ok((id, block)) => {
                    self.write(&block)?;
                    tell(Ok((id, block.len())));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if due.is_some_and(|due| due <= self.clock.now()) {
                self.unsynced_since = None;
                self.disk.during(|| self.file.sync_data())?;
            }
        }
        Ok(())
    }

    fn write(&mut self, block: &[u8]) -> io::Result<()> {
        if self.at + ByteCount::of(block.len()) > self.size {
            self.disk.during(|| self.file.seek(SeekFrom::Start(0)))?;
            self.at = ByteCount::ZERO;
        }
        self.disk.during(|| self.file.write_all(block))?;
        self.at += ByteCount::of(block.len());
        self.unsynced_since.get_or_insert(self.clock.now());
        Ok(())
    }
}

/// As a centre's `sync_interval`: the longest time that received data waits for a sync.
const SYNC_INTERVAL: Duration = Duration::from_millis(10);
/// The thread ends this soon, at the latest, after it is stopped.
const IDLE: Duration = Duration::from_millis(100);
/// The largest block.
const SIZE_MIN: ByteCount = ByteCount::mib(16);

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(
        folder: &Path,
        size: ByteCount,
        blocks: &[&[u8]],
    ) -> (Keeping<usize>, Vec<(usize, usize)>) {
        let keeping = Keeping::start(folder, size, Clock::start(), &Waker::new().unwrap()).unwrap();
        for (place, block) in blocks.iter().enumerate() {
            keeping.take(place, Bytes::copy_from_slice(block));
        }
        let mut written = Vec::new();
        while written.len() < blocks.len() {
            match keeping.written().unwrap() {
                Some(one) => written.push(one),
                None => std::thread::yield_now(),
            }
        }
        (keeping, written)
    }

    fn files(folder: &Path) -> Vec<Vec<u8>> {
        std::fs::read_dir(folder)
            .unwrap()
            .map(|file| std::fs::read(file.unwrap().path()).unwrap())
            .collect()
    }

    #[test]
    fn received_blocks_are_written_in_order_within_the_size_and_the_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (keeping, written) =
            keep(folder.path(), ByteCount::new(10), &[b"first", b"next", b"last"]);
        assert_eq!(written, [(0, 5), (1, 4), (2, 4)]);
        // The third did not fit: it was written at the beginning.
        assert_eq!(files(folder.path()), [b"lasttnext".to_vec()]);
        assert!(keeping.disk() > Duration::ZERO);
        drop(keeping);
        assert!(files(folder.path()).is_empty());
    }

    #[test]
    fn a_missing_folder_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent");
        let failure = Keeping::<usize>::start(
            &absent,
            ByteCount::mib(16),
            Clock::start(),
            &Waker::new().unwrap(),
        );
        let said = failure.err().unwrap().to_string();
        assert!(
            said.contains("received data cannot be kept") && said.contains("existing folder"),
            "{said}"
        );
    }
}
