//! The stages after decoding, on separate threads: digests cost more than decoding.
//!
//! One thread digests and writes frames. The other extracts packets, digests and writes them.

use super::course::CaptureTimeline;
use super::notes::PacketClocks;
use super::outputs::{FrameFile, PacketFiles, Writers};
use skyhaul_ccsds::account::{FrameDigest, PacketAccount};
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::CapturedFrame;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Frames that were decoded together, in order.
type Batch = Arc<Vec<CapturedFrame>>;

/// The most batches that wait for a thread, 256 KiB each. Decoding waits when there are more.
const MOST_WAITING: usize = 8;

/// The threads for one capture.
pub struct Stages<'scope, 'o> {
    frames: SyncSender<Batch>,
    packets: SyncSender<Batch>,
    frame_digest: ScopedJoinHandle<'scope, (FrameDigest, &'o mut FrameFile)>,
    packet_account: ScopedJoinHandle<'scope, Accounted<'o>>,
}

/// What became of the packets, and what wrote them.
type Accounted<'o> = (PacketAccount, PacketClocks, Option<CaptureTimeline>, &'o mut PacketFiles);

/// What the frames of a capture amount to.
pub struct CaptureTotals {
    pub frames: FrameDigest,
    pub packets: PacketAccount,
    pub clocks: PacketClocks,
    /// The events by their position, for a page.
    pub course: Option<CaptureTimeline>,
}

impl<'scope, 'o: 'scope> Stages<'scope, 'o> {
    /// Starts the threads for a capture of `mission`, whose `course` is followed where one is
    /// given.
    pub fn start(
        scope: &'scope Scope<'scope, '_>,
        mission: Mission,
        known: &MissionSet,
        writers: Writers<'o>,
        mut course: Option<CaptureTimeline>,
    ) -> Self {
        let (frames, frame_batches) = sync_channel::<Batch>(MOST_WAITING);
        let (packets, packet_batches) = sync_channel::<Batch>(MOST_WAITING);
        let Writers { frames: frame_file, packets: packet_files } = writers;
        let mut account = PacketAccount::new(&mission, known);
        let mut clocks = PacketClocks::new(mission);
        let frame_digest = scope.spawn(move || {
            let mut digest = FrameDigest::default();
            for batch in frame_batches {
                for frame in batch.iter() {
                    digest.feed(frame);
                    frame_file.write(frame);
                }
            }
            (digest, frame_file)
        });
        let packet_account = scope.spawn(move || {
            for batch in packet_batches {
                for frame in batch.iter() {
                    if let Some(course) = &mut course {
                        course.frame(frame);
                    }
                    let counted = account.feed(frame, |packet| {
                        clocks.packet(packet);
                        packet_files.write(packet);
                        if let Some(course) = &mut course {
                            course.packet(packet);
                        }
                    });
                    if let (Some(course), Some((channel, count))) = (&mut course, counted) {
                        course.follow(frame, channel, count);
                    }
                }
            }
            (account, clocks, course, packet_files)
        });
        Self { frames, packets, frame_digest, packet_account }
    }

    /// Hands frames to both threads; waits where one of them is behind.
    pub fn take(&self, frames: Vec<CapturedFrame>) {
        if frames.is_empty() {
            return;
        }
        let batch = Arc::new(frames);
        // If the thread does not receive any more, it has panicked; `finish` reports it.
        self.frames.send(batch.clone()).ok();
        self.packets.send(batch).ok();
    }

    /// Waits until everything is dealt with; what wrote is free again.
    pub fn finish(self) -> (CaptureTotals, Writers<'o>) {
        let Self { frames, packets, frame_digest, packet_account } = self;
        drop((frames, packets));
        let (frames, frame_file) =
            frame_digest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (packets, clocks, course, packet_files) =
            packet_account.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let writers = Writers { frames: frame_file, packets: packet_files };
        (CaptureTotals { frames, packets, clocks, course }, writers)
    }
}
