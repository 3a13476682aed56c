//! The recording of an input as received, beside the capture: a thread of its own writes it, so
//! that a slow or full disk ends the recording and never delays the capture.

use super::board::InputIndex;
use super::shared::StationShared;
use crate::fault::Fault;
use crate::services;
use crate::status::RecordingStatus;
use skyhaul_events::AlarmKind;
use skyhaul_net::Clock;
use skyhaul_store::Disk;
use skyhaul_store::raw::{RawConfig, RawError, RawKind, RawRecorder, RawStamp};
use skyhaul_units::{ByteCount, Duration, Instant, Utc};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel,
};
use std::thread::JoinHandle;

/// Passes received bytes to the recording thread; ends it when dropped.
#[derive(Debug)]
pub struct Recording {
    queue: Option<SyncSender<Taken>>,
    backlog: Arc<Backlog>,
    /// Whether the input waits for the station: then the recording may block it.
    waits: bool,
    thread: Option<JoinHandle<()>>,
}

/// The target of a recording.
#[derive(Debug)]
pub struct RecordingPlace {
    /// The station's state folder.
    pub disk: Arc<dyn Disk>,
    /// The input whose status shows it.
    pub of: InputIndex,
    /// The channel's name, with the input's where it has several: the name of the folder.
    pub channel: String,
    /// Its limits.
    pub config: RawConfig,
    /// Whether the input waits for the station.
    pub waits: bool,
}

/// One read of an input.
#[derive(Debug)]
struct Taken {
    stamp: RawStamp,
    bytes: Vec<u8>,
}

/// Reads that wait for the disk.
#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicU64,
    /// Bytes that found no room in it since the start.
    dropped: AtomicU64,
}

/// The most bytes that wait for the disk: it may stall for 4 s at 130 Mbit/s.
const MOST_BYTES: u64 = 64 << 20;
/// The most reads that wait for the disk, where these are small datagrams: 4 MB of overhead.
const MOST_READS: usize = 64 << 10;
/// Buffered bytes are written after this time at the latest.
const FLUSH: Duration = Duration::from_millis(10);
/// Reads are gathered for so long: at tens of thousands of datagrams a second, to wake the thread
/// for each costs more than to write it.
const GATHER: Duration = Duration::from_millis(1);
/// Written bytes are durable after this time at the latest.
const SYNC: Duration = Duration::from_secs(1);
/// The pause after the disk refused: bytes received meanwhile are not recorded.
const RETRY: Duration = Duration::from_secs(2);
/// Without a drop for so long, the disk keeps up again.
const CALM: Duration = Duration::from_secs(10);

impl Recording {
    /// Continues the recording of a channel.
    ///
    /// # Errors
    /// The recording cannot be opened, or no thread be started.
    pub fn start(
        to: RecordingPlace,
        shared: Arc<StationShared>,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let dir = folder(&to.channel);
        let recorder = RawRecorder::open(to.disk, &dir, to.config).map_err(|error| {
            let help = "repair the disk, or write `record_raw = false` for the channel";
            Fault::environment(format!("the recording cannot be opened ({error})"), &dir, help)
        })?;
        let (queue, taken) = sync_channel(MOST_READS);
        let backlog = Arc::new(Backlog::default());
        let writer = Writer {
            recorder,
            taken,
            backlog: backlog.clone(),
            shared,
            clock,
            of: to.of,
            channel: to.channel,
            retry_at: Instant::ZERO,
            refused_at: ByteCount::ZERO,
            sync_at: Instant::ZERO,
            dropped: 0,
            calm_at: Instant::ZERO,
        };
        let thread = services::thread("recording", move || writer.run())?;
        Ok(Self { queue: Some(queue), backlog, waits: to.waits, thread: Some(thread) })
    }

    /// Records one read of the input, or the end of a transmission. Where the disk is behind, the
    /// read is dropped and counted.
    pub fn take(&self, received: Utc, input: u64, kind: RawKind, bytes: &[u8]) {
        let Some(queue) = &self.queue else { return };
        let length = bytes.len() as u64;
        let is_behind = self.backlog.bytes.load(Ordering::Relaxed) + length > MOST_BYTES;
        if is_behind && !self.waits {
            self.backlog.dropped.fetch_add(length, Ordering::Relaxed);
            return;
        }
        self.backlog.bytes.fetch_add(length, Ordering::Relaxed);
        let taken = Taken { stamp: RawStamp { received, input, kind }, bytes: bytes.to_vec() };
        let is_taken = if self.waits {
            queue.send(taken).is_ok()
        } else {
            match queue.try_send(taken) {
                Ok(()) => true,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
            }
        };
        if !is_taken {
            self.backlog.bytes.fetch_sub(length, Ordering::Relaxed);
            self.backlog.dropped.fetch_add(length, Ordering::Relaxed);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic was logged; what is on the disk is checked at the next start.
            let _ = thread.join();
        }
    }
}

/// The folder of a channel's recording in the state folder.
pub fn folder(channel: &str) -> String {
    format!("raw/{channel}")
}

/// The recording thread.
#[derive(Debug)]
struct Writer {
    recorder: RawRecorder,
    taken: Receiver<Taken>,
    backlog: Arc<Backlog>,
    shared: Arc<StationShared>,
    clock: Clock,
    of: InputIndex,
    channel: String,
    retry_at: Instant,
    /// The bytes recorded when the disk last refused.
    refused_at: ByteCount,
    sync_at: Instant,
    /// Bytes that found no room in the queue, as of the last report.
    dropped: u64,
    calm_at: Instant,
}

impl Writer {
    fn run(mut self) {
        loop {
            match self.next() {
                Ok(taken) => {
                    self.backlog.bytes.fetch_sub(taken.bytes.len() as u64, Ordering::Relaxed);
                    if self.clock.now() < self.retry_at {
                        self.recorder.count_dropped(ByteCount::of(taken.bytes.len()));
                    } else {
                        let appended = self.recorder.append(taken.stamp, &taken.bytes);
                        self.report(appended);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let flushed = self.recorder.flush();
                    self.report(flushed);
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.clock.now() >= self.sync_at {
                self.sync_at = self.clock.now() + SYNC;
                self.keep_time();
            }
        }
        let ended = self.recorder.flush().and_then(|()| self.recorder.sync());
        self.report(ended);
        self.show();
    }

    /// The next read. Where none waits, it gathers some.
    fn next(&self) -> Result<Taken, RecvTimeoutError> {
        match self.taken.try_recv() {
            Ok(taken) => Ok(taken),
            Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => {
                self.shared.shutdown.pause(GATHER);
                self.taken.recv_timeout((FLUSH - GATHER).to_std())
            }
        }
    }

    fn keep_time(&mut self) {
        let now = self.clock.now();
        if now >= self.retry_at {
            let kept = self.recorder.flush().and_then(|()| self.recorder.sync());
            self.report(kept);
            let trimmed = self.recorder.trim(self.clock.utc());
            self.report(trimmed);
            // An empty flush succeeds on a full disk too: the alarm is cleared once more was
            // recorded.
            if self.recorder.stats().recorded > self.refused_at {
                self.shared.alarms.clear(AlarmKind::NotRecorded, self.alarm());
            }
        }
        let dropped = self.backlog.dropped.load(Ordering::Relaxed);
        let behind = format!("part of channel {}", self.channel);
        if dropped > self.dropped {
            let bytes = ByteCount::new(dropped - self.dropped);
            self.recorder.count_dropped(bytes);
            self.dropped = dropped;
            self.calm_at = now + CALM;
            self.shared.alarms.raise(
                AlarmKind::NotRecorded,
                &behind,
                "the disk is too slow; the capture continues",
            );
        } else if now >= self.calm_at {
            self.shared.alarms.clear(AlarmKind::NotRecorded, &behind);
        }
        self.show();
    }

    /// A refusal stops the recording for a while.
    fn report(&mut self, outcome: Result<(), RawError>) {
        let Err(error) = outcome else { return };
        self.retry_at = self.clock.now() + RETRY;
        self.refused_at = self.recorder.stats().recorded;
        let reason = if error.is_full() {
            "no disk space left for it; free space on the file system of the state folder, or \
            lower raw_size. The capture continues"
                .to_owned()
        } else {
            format!("{error}. The capture continues")
        };
        self.shared.alarms.raise(AlarmKind::NotRecorded, self.alarm(), &reason);
    }

    fn alarm(&self) -> String {
        format!("channel {}", self.channel)
    }

    fn show(&self) {
        let stats = self.recorder.stats();
        let recording = RecordingStatus {
            bytes: stats.recorded.as_u64(),
            dropped_bytes: stats.dropped.as_u64(),
            disk_bytes: stats.disk.as_u64(),
        };
        self.shared.board.recording(self.of, recording);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::station::board::StationBoard;
    use crate::status::ChannelStatus;
    use skyhaul_net::Waker;
    use skyhaul_store::raw::{RawReader, RawSpan};
    use skyhaul_store::sim::SimDisk;
    use skyhaul_store::{Spool, SpoolConfig, SpoolDraw};

    fn shared(clock: Clock) -> Arc<StationShared> {
        let disk = Arc::new(SimDisk::new(ByteCount::mib(512)));
        let (config, draw) = (SpoolConfig::default(), SpoolDraw([7; 24]));
        let mut spool = Spool::open(disk, config, clock.utc(), draw).unwrap();
        let waker = Waker::new().unwrap();
        let routing = crate::station::routing::to_one_centre(&mut spool);
        let channels = vec![ChannelStatus::default()];
        let board = StationBoard::new("s".to_owned(), channels, Vec::new());
        Arc::new(StationShared::new(
            board,
            routing,
            spool,
            crate::alarms::Alarms::quiet(clock),
            waker,
        ))
    }

    fn shown(shared: &StationShared) -> (Option<RecordingStatus>, Vec<String>) {
        let status = shared.status();
        (status.channels[0].recording, shared.alarms.conditions())
    }

    #[test]
    fn a_full_disk_ends_the_recording_with_an_alarm_and_returned_space_takes_it_up_again() {
        let (clock, sim) = (Clock::start(), SimDisk::new(ByteCount::mib(1)));
        let shared = shared(clock);
        let disk: Arc<dyn Disk> = Arc::new(sim.clone());
        let to = RecordingPlace {
            disk: disk.clone(),
            of: InputIndex { channel: 0, input: 0 },
            channel: "x".to_owned(),
            config: RawConfig::default(),
            waits: false,
        };
        let recording = Recording::start(to, shared.clone(), clock).unwrap();
        let mut input = 0;
        let mut take_until = |is_so: &dyn Fn() -> bool| {
            for _ in 0..3_000 {
                recording.take(clock.utc(), input, RawKind::Stream, &[7; 100]);
                input += 100;
                if is_so() {
                    return true;
                }
                shared.shutdown.pause(Duration::from_millis(5));
            }
            false
        };
        let is_alarmed =
            || shown(&shared).1.iter().any(|alarm| alarm.contains("channel x is not recorded"));
        assert!(take_until(&is_alarmed), "told");
        sim.set_capacity(ByteCount::mib(512));
        assert!(take_until(&|| !is_alarmed()), "over");
        drop(recording);
        let status = shown(&shared).0.unwrap();
        assert!(
            status.bytes > 0
                && status.dropped_bytes > 0
                && status.bytes + status.dropped_bytes == input
        );
        let extent = RawReader::open(disk, "raw/x").extent(&RawSpan::default()).unwrap().unwrap();
        assert_eq!(extent.bytes.as_u64(), status.bytes);
    }
}
