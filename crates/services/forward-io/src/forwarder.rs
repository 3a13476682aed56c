//! Forwards on sessions of their own: connects to far nodes, and accepts others.

use crate::context::Notify;
use crate::forwards::Forwards;
use crate::nodes::{FarNodes, NodeDown};
use crate::peer::ForwardSession;
use crate::{Counters, FarRules, ForwardNotice, Forwarding, ListenAddress, Setup, StartError};
use skyhaul_channels::{FlowRange, SessionEnd};
use skyhaul_forward::Local;
use skyhaul_net::{Refusals, Service, SessionManager, Waker};
use skyhaul_sessions::{SessionId, SessionManagerEvent};
use skyhaul_transport::{ClassTree, Event, Opening, PolicyConfig};
use skyhaul_units::{Duration, Instant};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Forwards applications' connections over sessions that carry nothing else; see [`super`].
pub struct Forwarder {
    name: String,
    forwards: Forwards,
    nodes: FarNodes,
    rules: Arc<FarRules>,
    classes: ClassTree,
    stats: Option<Duration>,
    /// When statistics are reported next, and those of the last report.
    next_stats: Option<Instant>,
    last_stats: Counters,
    refusals: Refusals,
}

impl Forwarder {
    /// Listens where `setup` says. `notify` receives what an operator wants to know; `waker` is the
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
            forwards: Forwards::new(forwarding, waker, notify)?,
            nodes: FarNodes::new(nodes),
            rules: Arc::new(FarRules { allow, allow_listen }),
            classes,
            stats,
            next_stats: None,
            last_stats: Counters::default(),
            refusals: Refusals::default(),
        })
    }

    /// Its listeners' addresses, in the order of [`Setup::listens`], with the port that the system
    /// chose for port 0; for each, its setup and the far node's name.
    pub fn locals(&self) -> impl Iterator<Item = (&Local, &ListenAddress, &str)> {
        self.forwards.locals()
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        self.forwards.counters()
    }

    fn connected(&mut self, manager: &mut SessionManager, id: SessionId, end: SessionEnd) {
        let Some(session) = manager.session(id) else { return };
        session.open(Opening { name: self.name.clone(), ..Opening::default() });
        session.sender_mut().share(self.classes.clone(), PolicyConfig::default());
        let (node, rules) = (self.nodes.node_of(id), Arc::clone(&self.rules));
        let member = ForwardSession { end, node, rules, range: FlowRange::Own, share: None };
        self.forwards.begun(id, session, member);
    }

    /// The handshake of a session is complete. The far node gives itself the name `own`.
    fn greeted(&mut self, now: Instant, manager: &mut SessionManager, id: SessionId, own: String) {
        let notice = match self.nodes.up(now, manager, id) {
            Some(node) => ForwardNotice::NodeUp { node },
            None => ForwardNotice::Called { node: own },
        };
        self.forwards.notice(&notice);
        self.forwards.opened(id);
    }

    /// A session has ended, or did not begin.
    fn disconnected(&mut self, now: Instant, id: SessionId, reason: String) {
        let was_open = self.forwards.left(id);
        if let Some(index) = self.nodes.node_of(id) {
            let down = self.nodes.down(now, index, reason);
            self.node_down(down);
        } else if was_open {
            self.forwards.notice(&ForwardNotice::Left { reason });
        }
    }

    fn node_down(&mut self, NodeDown { index, name, was_up, reason }: NodeDown) {
        self.forwards.unreached(index);
        self.forwards.notice(&ForwardNotice::NodeDown { node: name, was_up, reason });
    }

    /// Reports what was carried since the last report.
    fn report_stats(&mut self, now: Instant) {
        let Some(interval) = self.stats else { return };
        let due = *self.next_stats.get_or_insert(now + interval);
        if now < due {
            return;
        }
        self.next_stats = Some(now + interval);
        let counters = self.counters();
        let before = core::mem::replace(&mut self.last_stats, counters);
        let interval = interval + now.since(due);
        let (counters, before) = (Box::new(counters), Box::new(before));
        self.forwards.notice(&ForwardNotice::Stats { interval, counters, before });
    }
}

impl Service for Forwarder {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, incoming, .. } => {
                let end = if incoming { SessionEnd::Called } else { SessionEnd::Calling };
                self.connected(manager, id, end);
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
        for down in self.nodes.connect(now, manager) {
            self.node_down(down);
        }
        let due = self.forwards.work(now, manager);
        self.report_stats(now);
        for refused in self.refusals.due(now) {
            self.forwards.notice(&ForwardNotice::TurnedAway(refused));
        }
        [Some(due), self.next_stats, self.nodes.next_attempt(), self.refusals.next()]
            .into_iter()
            .flatten()
            .min()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.forwards.fd())
    }
}
