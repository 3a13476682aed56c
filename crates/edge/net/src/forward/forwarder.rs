//! Forwards on sessions of their own: calls far nodes, takes calls, greets.

use super::common::Notify;
use super::forwards::Forwards;
use super::nodes::Calls;
use super::peer::ForwardSession;
use super::{
    Counters, FarRules, ForwardNode, ForwardNotice, Forwarding, ListenAddress, Setup, StartError,
};
use crate::guests::FlowRange;
use crate::{Refusals, Service, SessionManager, Waker};
use skyhaul_forward::{Local, Role};
use skyhaul_sessions::{SessionId, SessionManagerEvent};
use skyhaul_transport::{ClassTree, Event, Opening, PolicyConfig};
use skyhaul_units::{Duration, Instant};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Forwards applications' connections over sessions that carry nothing else; see [`super`].
pub struct Forwarder {
    pub(super) name: String,
    pub(super) nodes: Vec<ForwardNode>,
    pub(super) forwards: Forwards,
    pub(super) calls: Calls,
    rules: Arc<FarRules>,
    classes: ClassTree,
    stats: Option<Duration>,
    /// When statistics are told next, and what they were the last time.
    next_stats: Option<Instant>,
    told_stats: Counters,
    refusals: Refusals,
}

impl Forwarder {
    /// Listens where `setup` says. `notify` is told what an operator wants to know; `waker` is the
    /// driver's.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn new(setup: Setup, waker: Waker, notify: Notify) -> Result<Self, StartError> {
        let Setup { name, nodes, listens, remotes, allow, allow_listen, classes, stats, budget } =
            setup;
        let names = nodes.iter().map(|node| node.name.clone()).collect();
        let forwarding = Forwarding { nodes: names, listens, remotes, budget };
        Ok(Self {
            name,
            calls: Calls::new(nodes.len()),
            nodes,
            forwards: Forwards::new(forwarding, waker, notify)?,
            rules: Arc::new(FarRules { allow, allow_listen }),
            classes,
            stats,
            next_stats: None,
            told_stats: Counters::default(),
            refusals: Refusals::default(),
        })
    }

    /// Where it listens, in the order of [`Setup::listens`]: of port 0, with the one that was
    /// given. With what the setup says of it, and the node's name.
    pub fn locals(&self) -> impl Iterator<Item = (&Local, &ListenAddress, &str)> {
        self.forwards.locals()
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        self.forwards.counters()
    }

    fn connected(&mut self, manager: &mut SessionManager, id: SessionId, incoming: bool) {
        let Some(session) = manager.session(id) else { return };
        session.open(Opening { name: self.name.clone(), ..Opening::default() });
        session.share(self.classes.clone(), PolicyConfig::default());
        let role = if incoming { Role::Called } else { Role::Calling };
        let (node, rules) = (self.calls.node_of(id), Arc::clone(&self.rules));
        let member = ForwardSession { role, node, rules, range: FlowRange::Own, share: None };
        self.forwards.begun(id, session, member);
    }

    /// Tells what was carried since the time before.
    fn tell_stats(&mut self, now: Instant) {
        let Some(interval) = self.stats else { return };
        let due = *self.next_stats.get_or_insert(now + interval);
        if now < due {
            return;
        }
        self.next_stats = Some(now + interval);
        let counters = self.counters();
        let before = core::mem::replace(&mut self.told_stats, counters);
        let interval = interval + now.since(due);
        let (counters, before) = (Box::new(counters), Box::new(before));
        self.forwards.notice(&ForwardNotice::Stats { interval, counters, before });
    }
}

impl Service for Forwarder {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, incoming, .. } => {
                self.connected(manager, id, incoming);
            }
            SessionManagerEvent::Session { id, event: Event::Greeted { name, .. } } => {
                self.greeted(now, manager, id, name);
            }
            SessionManagerEvent::Session { id, event: Event::Block(received) } => {
                self.forwards.block(now, manager, id, &received);
            }
            SessionManagerEvent::Session { id, event: Event::Settled { id: block, .. } } => {
                self.forwards.settled(id, block);
            }
            SessionManagerEvent::Session { .. } | SessionManagerEvent::PathRefused { .. } => {}
            SessionManagerEvent::Disconnected { id, reason } => {
                self.disconnected(now, id, reason.to_string());
            }
            SessionManagerEvent::Refused { id: Some(id), reason, .. } => {
                self.disconnected(now, id, reason.to_string());
            }
            SessionManagerEvent::Refused { id: None, remote, reason, .. } => {
                if let Some(refused) = self.refusals.add(now, remote, &reason) {
                    self.forwards.notice(&ForwardNotice::TurnedAway(refused));
                }
            }
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        self.call(now, manager);
        let due = self.forwards.work(now, manager);
        self.tell_stats(now);
        for refused in self.refusals.due(now) {
            self.forwards.notice(&ForwardNotice::TurnedAway(refused));
        }
        [Some(due), self.next_stats, self.calls.next_call(), self.refusals.next()]
            .into_iter()
            .flatten()
            .min()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.forwards.fd())
    }
}
