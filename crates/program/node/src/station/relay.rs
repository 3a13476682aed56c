//! The thread that passes on what other nodes captured: from the store into the spool, while it
//! still comes in.

use super::channel_context::ChannelContext;
use super::shared::StationShared;
use super::spooler::{SpoolBlock, ToSpool};
use crate::centre::CentreShared;
use crate::custody::{Relay, RelayError, RelayTask, StoredContact};
use crate::fault::Fault;
use skyhaul_config::ContactLabel;
use skyhaul_events::AlarmKind;
use skyhaul_net::Clock;
use skyhaul_units::{Duration, FlowId, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// The relay of a node that receives and sends.
#[derive(Debug)]
pub struct RelayRunner {
    relay: Relay,
    upstream: Arc<CentreShared>,
    shared: Arc<StationShared>,
    blocks: SyncSender<ToSpool>,
    clock: Clock,
    /// When contacts are tried again that could not be passed on: at most those that are open.
    again_at: BTreeMap<StoredContact, Instant>,
}

/// What a turn of a contact brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    More,
    Idle,
    /// The station ends.
    Ends,
}

/// The stop flag is checked this often.
const IDLE: Duration = Duration::from_millis(250);
/// Between two attempts where the disk refuses.
const RETRY: Duration = Duration::from_millis(500);
/// Blocks of one contact before the next has its turn.
const TURN: usize = 32;
const STUCK: &str = "contacts";

impl RelayRunner {
    /// Goes on where the node ended.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn open(upstream: Arc<CentreShared>, context: &ChannelContext) -> Result<Self, Fault> {
        let ChannelContext { shared, disk, blocks, clock, .. } = context.clone();
        let fault = |error: RelayError| {
            let help = "repair the disk and restart the node: it continues from the data on disk";
            Fault::environment("what is passed on cannot be read back", error, help)
        };
        let mut relay =
            Relay::open(disk, upstream.onward.own()).map_err(|error| fault(error.into()))?;
        for damage in relay.damaged() {
            shared.alarms.raise(
                AlarmKind::RelayRecordDamaged,
                "a record of a contact passed on",
                damage,
            );
        }
        let resumed = relay.resume(&upstream.store(), &shared.spool());
        resumed.map_err(|error| fault(error.into()))?;
        Ok(Self { relay, upstream, shared, blocks, clock, again_at: BTreeMap::new() })
    }

    /// The flows of the contacts that are being passed on.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> {
        self.relay.flows()
    }

    /// Runs until the station ends.
    pub fn run(mut self) {
        while !self.shared.shutdown.is_requested() {
            match self.turn() {
                Turn::More => {}
                Turn::Idle => self.upstream.onward.wait(IDLE),
                Turn::Ends => return,
            }
        }
    }

    /// Gives every contact a turn.
    fn turn(&mut self) -> Turn {
        let open = StoredContact::open_in(&self.upstream.store());
        self.again_at.retain(|contact, _| open.contains(contact));
        if let Err(error) = self.relay.keep_only(&open) {
            self.shared.alarms.raise(AlarmKind::RelayStuck, STUCK, &error.to_string());
        }
        let (mut all, now) = (Turn::Idle, self.clock.now());
        for contact in &open {
            if self.again_at.get(contact).is_some_and(|at| now < *at) {
                continue;
            }
            match self.contact(contact) {
                Ok(Turn::Idle) => {}
                Ok(Turn::More) => all = Turn::More,
                Ok(Turn::Ends) => return Turn::Ends,
                Err(error) => {
                    self.shared.alarms.raise(AlarmKind::RelayStuck, STUCK, &error);
                    self.again_at.insert(contact.clone(), now + RETRY);
                    continue;
                }
            }
            if self.again_at.remove(contact).is_some() && self.again_at.is_empty() {
                self.shared.alarms.clear(AlarmKind::RelayStuck, STUCK);
            }
        }
        all
    }

    fn contact(&mut self, contact: &StoredContact) -> Result<Turn, String> {
        for _ in 0..TURN {
            let task = self.relay.next(&mut self.upstream.store(), contact);
            match task.map_err(|error| error.to_string())? {
                RelayTask::Wait => return Ok(Turn::Idle),
                RelayTask::Settled => {
                    self.settle(contact);
                    return Ok(Turn::Idle);
                }
                RelayTask::Route(label) => self.route(contact, &label)?,
                RelayTask::Refuse(reason) => {
                    let named = format!("flow {} of {}", contact.flow, contact.space);
                    self.shared.alarms.raise(AlarmKind::ContactHeld, named, &reason.to_string());
                }
                RelayTask::Append { flow, payload } => {
                    let block = SpoolBlock { flow, payload };
                    if self.blocks.send(ToSpool::Block(block)).is_err() {
                        return Ok(Turn::Ends);
                    }
                }
                RelayTask::Close(flow) => {
                    let (closed, is_closed) = sync_channel(1);
                    let asked = self.blocks.send(ToSpool::CloseFlow(flow, closed));
                    if asked.is_err() || is_closed.recv().is_err() {
                        return Ok(Turn::Ends);
                    }
                    self.relay.closed(contact);
                    tracing::info!(
                        from = contact.space.as_str(),
                        contact = contact.flow.0,
                        flow = flow.0,
                        "contact passed on"
                    );
                }
            }
        }
        Ok(Turn::More)
    }

    /// Decides whether a contact is passed on, and opens a flow for it.
    fn route(&mut self, contact: &StoredContact, label: &ContactLabel) -> Result<(), String> {
        let route = self.shared.routing.route(label);
        if route.to.is_empty() {
            self.relay.leave(contact);
            return Ok(());
        }
        let flow = self.shared.open_flow(self.clock.utc(), &route).map_err(|error| {
            self.relay.again(contact);
            error.to_string()
        })?;
        if let Err(error) = self.relay.begin(contact, flow) {
            // Nothing is in it: whether it can be closed now or at the next start is no matter.
            let _ = self.shared.spool().close_flow(flow);
            return Err(error.to_string());
        }
        let to = self.shared.routing.names(&route);
        tracing::info!(
            station = label.station,
            from = contact.space.as_str(),
            contact = contact.flow.0,
            flow = flow.0,
            "contact begins to be passed on to {}",
            to.join(", ")
        );
        self.upstream.onward.begin(contact, to);
        Ok(())
    }

    /// The contact may be finished in the store.
    fn settle(&self, contact: &StoredContact) {
        if !self.upstream.onward.is_settled(contact) {
            self.upstream.onward.settle(contact);
            self.upstream.news.notify();
        }
    }
}
