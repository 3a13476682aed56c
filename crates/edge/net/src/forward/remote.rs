//! Listening for each other: what this node asks its far nodes to listen at, and what they ask of
//! it.

use super::forwards::Forwards;
use super::listeners::{Entry, Leads, ListenerOwner, Reach};
use super::{FarTarget, ForwardNotice};
use rustix::io::Errno;
use skyhaul_forward::{ConnectRefusal, Listen, Local, Target};
use skyhaul_sessions::SessionId;
use skyhaul_units::{Duration, Instant};

/// How it stands with each place that a far node is asked to listen at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wish {
    /// The far node has listened there at some time.
    was_heard: bool,
    /// When to ask again: the far end may not have noticed yet that the session before is over, and
    /// listens for that.
    again: Option<Instant>,
}

/// Between two wishes that are not granted.
const AGAIN: Duration = Duration::from_secs(5);
/// Places that a far node may have this one listen at.
const LISTENS_MAX: usize = 256;

impl Forwards {
    /// A far node is there: asks it for all that it is to listen at.
    pub(super) fn wish_all(&mut self, session: SessionId, node: usize) {
        for number in 0..self.setup.remotes.len() {
            if self.setup.remotes[number].node == node {
                self.wish(session, number);
            }
        }
    }

    fn wish(&mut self, session: SessionId, number: usize) {
        self.wishes[number].again = None;
        let (Some(peer), Ok(id)) = (self.peers.get_mut(&session), u32::try_from(number)) else {
            return;
        };
        peer.mux.listen(id, self.setup.remotes[number].wish.clone());
    }

    /// Asks again what was not granted.
    pub(super) fn wish_again(&mut self, now: Instant) {
        for number in 0..self.wishes.len() {
            if self.wishes[number].again.is_none_or(|again| now < again) {
                continue;
            }
            self.wishes[number].again = None;
            if let Reach::Open(session) =
                self.reach(ListenerOwner::Node(self.setup.remotes[number].node))
            {
                self.wish(session, number);
            }
        }
    }

    /// A far node listens.
    pub(super) fn heard(&mut self, session: SessionId, number: u32, at: Local) {
        let Some((number, node, target)) = self.wished(session, number) else { return };
        self.wishes[number].was_heard = true;
        self.notice(&ForwardNotice::FarListens { node, at, target });
    }

    /// A far node does not listen.
    pub(super) fn not_heard(
        &mut self,
        now: Instant,
        (session, number): (SessionId, u32),
        (reason, sentence): (ConnectRefusal, String),
    ) {
        let Some((number, node, _)) = self.wished(session, number) else { return };
        let wish = &mut self.wishes[number];
        wish.again = Some(now + AGAIN);
        let was_heard = wish.was_heard;
        let at = self.setup.remotes[number].wish.at.clone();
        self.notice(&ForwardNotice::FarRefuses { node, at, was_heard, reason, sentence });
    }

    /// Which wish a far node answers: its place, the node's name, and its target.
    fn wished(&self, session: SessionId, number: u32) -> Option<(usize, String, Target)> {
        let node = self.peers.get(&session)?.node?;
        let number = usize::try_from(number).ok()?;
        let remote = self.setup.remotes.get(number).filter(|remote| remote.node == node)?;
        Some((number, self.setup.nodes.get(node)?.clone(), remote.wish.target.clone()))
    }

    /// Whether this node asked the far one of `session` to listen for `target`, and so connects to
    /// it.
    pub(super) fn has_wished_for(&self, session: SessionId, target: &Target) -> bool {
        let node = self.peers.get(&session).and_then(|peer| peer.node);
        node.is_some_and(|node| {
            self.setup
                .remotes
                .iter()
                .any(|remote| remote.node == node && remote.wish.target == *target)
        })
    }

    /// A far node wishes that this one listens.
    pub(super) fn listen_asked(&mut self, session: SessionId, number: u32, wish: Listen) {
        let (at, target) = (wish.at.clone(), wish.target.clone());
        let outcome = self.listen_for(session, wish);
        let Some(peer) = self.peers.get_mut(&session) else { return };
        match outcome {
            Ok(local) => {
                peer.mux.listening(number, local.clone());
                self.notice(&ForwardNotice::Listens { at: local, target });
            }
            Err((reason, sentence)) => {
                peer.mux.not_listening(number, reason, &sentence);
                self.notice(&ForwardNotice::ListensNot { at, reason, sentence });
            }
        }
    }

    fn listen_for(
        &mut self,
        session: SessionId,
        wish: Listen,
    ) -> Result<Local, (ConnectRefusal, String)> {
        let Listen { at, target, carriage, idle } = wish;
        let rules = self.peers.get(&session).map(|peer| &peer.rules);
        let may = rules
            .is_some_and(|rules| rules.allow_listen.iter().any(|rule| rule.permits_listening(&at)));
        if !may {
            let sentence = "the listening node's rules do not allow it; allow the port with \
                            --allow-listen there";
            return Err((ConnectRefusal::NotAllowed, sentence.to_owned()));
        }
        if matches!(at, Local::Udp(_)) != target.is_for_datagrams() {
            return Err((
                ConnectRefusal::Failed,
                "datagrams and connections cannot share one forward".to_owned(),
            ));
        }
        let whose = ListenerOwner::Session(session);
        if self.listeners.values().filter(|listener| listener.entry.whose == whose).count()
            >= LISTENS_MAX
        {
            return Err((
                ConnectRefusal::Busy,
                format!("a node opens at most {LISTENS_MAX} ports for one other node"),
            ));
        }
        let entry = Entry { whose, leads: Leads::Arrival(FarTarget::For(target)), carriage, idle };
        let listened = self.listen(&at, entry).map_err(|error| {
            let taken = Errno::from_io_error(&error) == Some(Errno::ADDRINUSE);
            (if taken { ConnectRefusal::InUse } else { ConnectRefusal::Failed }, error.to_string())
        })?;
        Ok(self.listeners.get(&listened).map_or(at, |listener| listener.local.clone()))
    }

    /// A session is gone, and what was listened at for it with it.
    pub(super) fn close_listeners_of(&mut self, session: SessionId) {
        let of_it = self
            .listeners
            .iter()
            .filter(|(_, held)| held.entry.whose == ListenerOwner::Session(session));
        let tokens: Vec<u64> = of_it.map(|(token, _)| *token).collect();
        tokens.into_iter().for_each(|token| self.close_listener(token));
    }
}
