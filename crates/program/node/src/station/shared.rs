//! What a station's threads share: the spool, what status shows, alarms, the end of the station.

use super::board::StationBoard;
use super::early::EarlyFinishes;
use super::handing_over::HandingOver;
use super::order::StationOrder;
use super::outside::board::OutsideBoard;
use super::refill::Questions;
use super::routing::Routing;
use crate::alarms::Alarms;
use crate::incoming::FilesAccount;
use crate::orders::Orders;
use crate::reports::ReportDesk;
use crate::shutdown::Shutdown;
use crate::status::{
    BacklogStatus, FilesStatus, ProcessStatus, ShortageStatus, SpoolStatus, StationStatus,
    StoreState, threads,
};
use skyhaul_events::{AlarmSubject, EventKind};
use skyhaul_net::{Clock, Waker};
use skyhaul_store::{FlowRoute, Spool, SpoolError};
use skyhaul_units::{FlowId, Instant, Utc};
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
    pub orders: Orders<StationOrder>,
    /// Questions of the destinations for missing frames.
    pub questions: Questions,
    /// Where contacts go.
    pub routing: Routing,
    /// Contacts that a destination finished before they ended.
    pub early: EarlyFinishes,
    /// What feeds and plans say of the paths.
    pub outside: OutsideBoard,
    /// Live inputs for the process that the node goes on in.
    pub handing_over: HandingOver,
    /// Reports of nodes.
    pub reports: Arc<ReportDesk>,
}

impl FilesAccount for StationShared {
    fn count(&self, peer: &str, change: &mut dyn FnMut(&mut FilesStatus)) {
        self.board.files(peer, change);
    }
}

impl StationShared {
    /// The state of a station that has done nothing yet.
    pub fn new(
        board: StationBoard,
        routing: Routing,
        spool: Spool,
        alarms: Arc<Alarms>,
        waker: Waker,
    ) -> Self {
        Self {
            clock: alarms.clock(),
            spool: Mutex::new(spool),
            board,
            shutdown: Shutdown::new(waker, alarms.clone()),
            alarms,
            orders: Orders::default(),
            questions: Questions::default(),
            routing,
            early: EarlyFinishes::default(),
            outside: OutsideBoard::default(),
            handing_over: HandingOver::default(),
            reports: Arc::default(),
        }
    }

    /// The spool. A thread that panics while it holds the lock ends the station; what it wrote is
    /// checked at the next start.
    pub fn spool(&self) -> MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows whether the spool takes data.
    pub fn show_spool(&self, state: StoreState) {
        let before = self.board.spool(state);
        match (before, state) {
            (StoreState::Ok, StoreState::Full | StoreState::Failed) => {
                let sentence = "the spool takes no data: the inputs wait; see the alarms";
                self.alarms.events().tell(EventKind::SpoolFull, "the spool", sentence);
            }
            (StoreState::Full | StoreState::Failed, StoreState::Ok) => {
                let sentence = "the spool takes data again";
                self.alarms.events().tell(EventKind::SpoolOk, "the spool", sentence);
            }
            _ => {}
        }
    }

    /// The subject of an alarm about what goes to the destination `to`, or to the only one: while
    /// that is silent, it is the cause.
    pub fn behind(&self, to: Option<&str>, subject: String) -> AlarmSubject {
        let subject = AlarmSubject::from(subject);
        match (to, &self.routing.destinations()[..]) {
            (Some(to), _) => subject.behind(to),
            (None, [only]) => subject.behind(&only.name),
            (None, _) => subject,
        }
    }

    /// The status of the station now.
    pub fn status(&self) -> StationStatus {
        let (depth, disk, backlogs) = {
            let (spool, now) = (self.spool(), self.clock.utc());
            (spool.queue().depth(now), spool.queue().size(), spool.queue().backlogs(now))
        };
        let mut status = StationStatus {
            process: ProcessStatus::now(self.clock.now().since(Instant::ZERO)),
            spool: SpoolStatus {
                blocks: depth.blocks,
                bytes: depth.bytes.as_u64(),
                disk_bytes: disk.as_u64(),
                oldest_s: depth.oldest.as_secs_f64(),
                ..SpoolStatus::default()
            },
            threads: threads(),
            shortage: ShortageStatus::now(),
            alarms: self.alarms.status(),
            ..StationStatus::default()
        };
        self.board.copy_to(&mut status);
        for shown in &mut status.destinations {
            if let Some(backlog) = backlogs.iter().find(|backlog| backlog.name == shown.name) {
                shown.backlog = BacklogStatus {
                    blocks: backlog.waits.blocks,
                    bytes: backlog.waits.bytes.as_u64(),
                    gave_way_blocks: backlog.gave_way.blocks,
                };
            }
        }
        status
    }

    /// Opens a flow of the spool on this route.
    ///
    /// # Errors
    /// As [`Spool::open_flow`].
    pub fn open_flow(&self, now: Utc, route: &FlowRoute) -> Result<FlowId, SpoolError> {
        let mut spool = self.spool();
        let flow = spool.open_flow(now)?;
        spool.destinations_mut().route(flow, route);
        Ok(flow)
    }
}
