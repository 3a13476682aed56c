//! What a station's threads share: the spool, what status shows, alarms, the end of the station.

use super::board::StationBoard;
use super::order::Orders;
use super::refill::Questions;
use crate::alarms::Alarms;
use crate::shutdown::Shutdown;
use crate::status::{
    ChannelStatus, ProcessStatus, ShortageStatus, SpoolStatus, StationStatus, threads,
};
use skyhaul_net::{Clock, Waker};
use skyhaul_store::Spool;
use skyhaul_units::Instant;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state that the threads of one station share. Locks are held for the length of one call,
/// never while waiting for the disk or the line, except that an append writes to the page cache.
#[derive(Debug)]
pub struct StationShared {
    clock: Clock,
    spool: Mutex<Spool>,
    /// What status shows.
    pub board: StationBoard,
    /// What an operator must act on.
    pub alarms: Arc<Alarms>,
    /// Ends the station.
    pub shutdown: Shutdown,
    /// Orders to the line's thread.
    pub orders: Orders,
    /// Questions of the centre for missing frames.
    pub questions: Questions,
}

impl StationShared {
    /// The state of the station `name`, which has done nothing yet.
    pub fn new(
        name: String,
        channels: Vec<ChannelStatus>,
        spool: Spool,
        clock: Clock,
        waker: Waker,
    ) -> Self {
        let alarms = Arc::new(Alarms::default());
        Self {
            clock,
            spool: Mutex::new(spool),
            board: StationBoard::new(name, channels),
            shutdown: Shutdown::new(waker, alarms.clone()),
            alarms,
            orders: Orders::default(),
            questions: Questions::default(),
        }
    }

    /// The spool. A thread that panics while it holds the lock ends the station; what it wrote is
    /// checked at the next start.
    pub fn spool(&self) -> MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The status of the station now.
    pub fn status(&self) -> StationStatus {
        let (depth, disk) = {
            let spool = self.spool();
            (spool.queue().depth(self.clock.utc()), spool.queue().size())
        };
        let mut status = StationStatus {
            process: ProcessStatus::now(self.clock.now().since(Instant::ZERO)),
            spool: SpoolStatus {
                blocks: depth.blocks,
                bytes: depth.bytes.as_u64(),
                disk_bytes: disk.as_u64(),
                ..SpoolStatus::default()
            },
            threads: threads(),
            shortage: ShortageStatus::now(),
            alarms: self.alarms.sentences(),
            ..StationStatus::default()
        };
        self.board.copy_to(&mut status);
        status
    }
}
