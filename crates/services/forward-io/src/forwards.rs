//! Forwards over sessions: hands what happens on sessions and sockets to the part that it is for.

use crate::associations::Associations;
use crate::connection::Answer;
use crate::connections::{Connections, ForwardRequest};
use crate::context::{ForwardContext, Notify};
use crate::dial::Dials;
use crate::listeners::{Accepted, Entry, Leads, Listeners};
use crate::peer::{BLOCK_MOST, ForwardSession, Peer};
use crate::poller::{Poller, READY_MAX, Ready};
use crate::proxy::{DatagramSocket, SocksClients, SocksRequest};
use crate::refusal::RequestRefusal;
use crate::remote::RemoteListeners;
use crate::resolver::NameLookups;
use crate::sessions::{ListenerOwner, Reach, Sessions};
use crate::streams::StreamKey;
use crate::{Counters, FarTarget, ForwardNotice, Forwarding, ListenAddress, StartError, socket};
use skyhaul_forward::socks::{Reply, UNKNOWN, reply};
use skyhaul_forward::{Event, Local, Target};
use skyhaul_net::{SessionManager, Waker};
use skyhaul_sessions::SessionId;
use skyhaul_transport::{BlockId, ClassTree, Received, RefusalCause, Session};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Forwards applications' connections over sessions that the caller begins and ends: it reports
/// what happens on them, and calls [`Forwards::work`] then and whenever [`Forwards::fd`] is
/// readable.
///
/// Bounded: [`skyhaul_forward::STREAMS_MAX`] connections that each end of a session opened, and the
/// bytes of [`Forwarding::budget`].
pub struct Forwards {
    context: ForwardContext,
    listeners: Listeners,
    socks: SocksClients,
    dials: Dials,
    connections: Connections,
    associations: Associations,
    remotes: RemoteListeners,
    own: Vec<OwnListener>,
    nodes: Vec<String>,
    budget: ByteCount,
    next_sweep: Instant,
}

/// A listener of the setup.
struct OwnListener {
    token: u64,
    listen: ListenAddress,
}

/// How often time-outs of connections are checked.
const SWEEP: Duration = Duration::from_secs(1);
/// Calls of the poller before the line has its turn.
const ROUNDS: usize = 4;

impl Forwards {
    /// Listens where `setup` says. `notify` receives what an operator wants to know; `waker` wakes
    /// the thread that calls [`Forwards::work`].
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn new(setup: Forwarding, waker: Waker, notify: Notify) -> Result<Self, StartError> {
        let Forwarding { nodes, listens, remotes, budget } = setup;
        let mut this = Self {
            context: ForwardContext {
                now: Instant::ZERO,
                sessions: Sessions::new(nodes.len()),
                poller: Poller::new().map_err(StartError::System)?,
                names: NameLookups::new(waker),
                counters: Counters::default(),
                notify,
                buffer: vec![0; BLOCK_MOST as usize],
            },
            listeners: Listeners::default(),
            socks: SocksClients::default(),
            dials: Dials::default(),
            connections: Connections::default(),
            associations: Associations::default(),
            remotes: RemoteListeners::new(remotes, nodes.clone()),
            own: Vec::new(),
            nodes,
            budget,
            next_sweep: Instant::ZERO,
        };
        for listen in listens {
            let ListenAddress { local, node, arrival, carriage, idle } = listen.clone();
            let (owner, leads) = (ListenerOwner::Node(node), Leads::Arrival(arrival));
            let entry = Entry { owner, leads, carriage, idle };
            let token = this
                .listeners
                .listen(&mut this.context, &local, entry)
                .map_err(|source| StartError::Listen { local, source })?;
            this.own.push(OwnListener { token, listen });
        }
        Ok(this)
    }

    /// Its listeners' addresses, in the order of [`Forwarding::listens`], with the port that the
    /// system chose for port 0; for each, its setup and the far node's name.
    pub fn locals(&self) -> impl Iterator<Item = (&Local, &ListenAddress, &str)> {
        self.own.iter().filter_map(|own| {
            let node = self.nodes.get(own.listen.node).map_or("", String::as_str);
            Some((self.listeners.local(own.token)?, &own.listen, node))
        })
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let open = self.connections.len() + self.dials.len() + self.associations.len();
        let waiting = self.connections.unwritten() + self.dials.unwritten();
        let mut counters = Counters {
            connections: open as u64,
            bytes_waiting: waiting as u64,
            ..self.context.counters
        };
        self.context.sessions.all().for_each(|peer| peer.count(&mut counters));
        counters
    }

    pub(super) fn notice(&mut self, notice: &ForwardNotice) {
        self.context.notice(notice);
    }

    /// A session has begun. It carries forwards from [`Forwards::opened`] on.
    pub fn begun(&mut self, id: SessionId, session: &Session, member: ForwardSession) {
        let asked_for = self.remotes.targets_at(member.node);
        let peer = Peer::new(member, session, self.budget, asked_for);
        self.context.sessions.insert(id, peer);
    }

    /// The handshake of a session is complete.
    pub fn opened(&mut self, id: SessionId) {
        if let Some(node) = self.context.sessions.set_open(id) {
            self.remotes.ask_all(&mut self.context, id, node);
        }
    }

    /// A node does not answer, or its session has ended: connections to it are reset until it is
    /// connected.
    pub fn unreached(&mut self, node: usize) {
        self.context.sessions.set_down(node);
    }

    /// The class tree of a session has changed.
    pub fn shared(&mut self, id: SessionId, classes: &ClassTree) {
        if let Some(peer) = self.context.sessions.get_mut(id) {
            peer.mux.share(classes);
            self.connections.change_lanes(&mut self.context, id);
            self.associations.change_lanes(&self.context, id);
        }
    }

    /// The outcome of a block of these flows is known.
    pub fn settled(&mut self, id: SessionId, block: BlockId) {
        if let Some(peer) = self.context.sessions.get_mut(id) {
            peer.settled(block);
        }
    }

    /// A session has ended, and with it all its connections. Returns whether it was open.
    pub fn left(&mut self, id: SessionId) -> bool {
        self.connections.end_session(&mut self.context, id);
        self.dials.end_session(&mut self.context, id);
        self.associations.end_session(&mut self.context, id);
        for listener in self.listeners.close_of(id) {
            self.associations.end_clients_of(&mut self.context, listener);
        }
        let Some(peer) = self.context.sessions.remove(id) else { return false };
        peer.count_ended(&mut self.context.counters);
        peer.open
    }

    /// Takes what sockets have, and hands over what the line has room for. Returns when it wants
    /// to be called again.
    pub fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Instant {
        self.context.now = now;
        let has_more = self.take_ready();
        self.take_located();
        self.remotes.ask_again(&mut self.context);
        while let Some(accepted) = self.listeners.accept(&self.context.sessions) {
            self.accepted(accepted);
        }
        let has_datagrams = self.associations.take(&mut self.context, manager, &mut self.listeners);
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            self.sweep();
        }
        let again = self.connections.pump(&mut self.context, manager);
        let at_once = (has_more || has_datagrams).then_some(now);
        [again, at_once].into_iter().flatten().fold(self.next_sweep, Instant::min)
    }

    /// Readable when sockets have something.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.context.poller.fd()
    }

    /// Whether there is no socket that could have something.
    pub fn is_still(&self) -> bool {
        let open = self.connections.len() + self.dials.len() + self.associations.len();
        self.listeners.is_empty() && open == 0
    }

    /// Hands the sockets that are ready to their parts. Returns whether there may be more.
    fn take_ready(&mut self) -> bool {
        if self.is_still() {
            return false;
        }
        for _ in 0..ROUNDS {
            // Where the poller fails, the poll for the line's sockets fails too and is reported.
            let ready = self.context.poller.take().unwrap_or_default();
            let is_all = ready.len() < READY_MAX;
            ready.into_iter().for_each(|ready| self.ready(ready));
            if is_all {
                return false;
            }
        }
        true
    }

    fn ready(&mut self, ready: Ready) {
        if self.listeners.ready(ready.token) {
            return;
        }
        if self.socks.contains(ready.token) {
            self.read_socks(ready.token);
        } else if self.associations.contains(ready.token) {
            self.associations.ready(ready.token);
        } else if !self.dials.contains(ready.token) {
            self.connections.ready(&mut self.context, ready);
        } else if ready.writable
            && let Some(dialled) = self.dials.connected(&mut self.context, ready.token)
        {
            self.connections.adopt(&mut self.context, dialled);
        }
    }

    /// Takes the results of name look-ups.
    fn take_located(&mut self) {
        while let Some(answer) = self.context.names.poll() {
            if self.associations.contains(answer.token) {
                self.associations.located(&mut self.context, answer.token, answer.addresses);
            } else {
                self.dials.located(&mut self.context, answer.token, answer.addresses);
            }
        }
    }

    /// An application has connected. Where the far node is not connected the application is reset,
    /// as by a host that is not there; a SOCKS client is told so in its handshake.
    fn accepted(&mut self, Accepted { listener, entry, socket }: Accepted) {
        let target = match &entry.leads {
            Leads::Arrival(FarTarget::For(target)) => Some(target.clone()),
            Leads::Arrival(FarTarget::Diverted) => self.listeners.diverted_from(listener, &socket),
            Leads::Arrival(FarTarget::Proxy) => {
                return self.socks.begin(&mut self.context, entry, socket);
            }
            Leads::Wrapped { .. } => None,
        };
        let reach = self.context.sessions.reach(entry.owner);
        let (Some(target), Reach::Open(session)) = (target, reach) else {
            return socket::abort(socket);
        };
        let token = self.context.poller.token();
        if self.context.poller.watch(&socket, token).is_err() {
            return socket::abort(socket);
        }
        let (carriage, idle) = (entry.carriage.clone(), entry.idle);
        let answer = Answer::Nothing;
        let request = ForwardRequest { token, session, target, carriage, idle, answer };
        if let Err(socket) = self.connections.open(&mut self.context, request, socket) {
            socket::abort(socket);
        }
    }

    fn read_socks(&mut self, token: u64) {
        while let Some(request) = self.socks.read(&mut self.context, token) {
            match request {
                SocksRequest::Connect { target, entry, socket } => {
                    self.connect_for_socks(token, target, &entry, socket);
                }
                SocksRequest::Associate { local, entry } => {
                    self.associate_for_socks(token, &local, entry);
                }
                SocksRequest::Close { listener } => self.close_listener(listener),
            }
        }
    }

    fn connect_for_socks(&mut self, token: u64, target: Target, entry: &Entry, socket: OwnedFd) {
        let refused = match self.context.sessions.reach(entry.owner) {
            Reach::Open(session) => {
                let (carriage, idle) = (entry.carriage.clone(), entry.idle);
                let answer = Answer::Socks;
                let request = ForwardRequest { token, session, target, carriage, idle, answer };
                self.connections
                    .open(&mut self.context, request, socket)
                    .map_err(|socket| (Reply::GeneralFailure, socket))
            }
            Reach::Connecting | Reach::Down => Err((Reply::NetworkUnreachable, socket)),
        };
        if let Err((answer, socket)) = refused {
            socket::farewell(socket, &reply(answer, UNKNOWN));
        }
    }

    fn associate_for_socks(&mut self, token: u64, local: &Local, entry: Entry) {
        let listener = self.listeners.listen(&mut self.context, local, entry).ok();
        let opened = listener.and_then(|listener| {
            Some(DatagramSocket { listener, address: self.listeners.local(listener)?.address()? })
        });
        if let Some(SocksRequest::Close { listener }) =
            self.socks.associated(&mut self.context, token, opened)
        {
            self.close_listener(listener);
        }
    }

    fn close_listener(&mut self, listener: u64) {
        self.listeners.close(listener);
        self.associations.end_clients_of(&mut self.context, listener);
    }

    /// Ends what has taken too long.
    fn sweep(&mut self) {
        self.listeners.sweep();
        self.socks.sweep(self.context.now);
        self.dials.sweep(&mut self.context);
        self.connections.sweep(&mut self.context);
        self.associations.sweep(&mut self.context);
    }

    /// A block of these flows came.
    pub fn block(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
        received: &Received,
    ) {
        self.context.now = now;
        let Some(session) = manager.session(id) else { return };
        // The streams' windows bound what is kept from here on; the session's window is for blocks
        // in transit.
        session.release(received.bytes.len());
        let Some(peer) = self.context.sessions.get_mut(id) else { return };
        let Some(flow) = peer.range.inner(received.id.flow) else {
            return session.refuse(RefusalCause::Told, "a block of a flow that carries no forward");
        };
        if let Err(error) = peer.mux.receive(now, flow, &received.bytes) {
            return session.refuse(RefusalCause::Told, &error.to_string());
        }
        while let Some(event) =
            self.context.sessions.get_mut(id).and_then(|peer| peer.mux.poll_event())
        {
            self.event(id, event);
        }
    }

    fn event(&mut self, session: SessionId, event: Event) {
        let key = |stream| StreamKey { session, stream };
        let context = &mut self.context;
        match event {
            Event::Opened { id, target } if target.is_for_datagrams() => {
                self.associations.dial(context, key(id), target);
            }
            Event::Opened { id, target } => {
                if let Some(dialled) = self.dials.start(context, key(id), target) {
                    self.connections.adopt(context, dialled);
                }
            }
            Event::Accepted(id) => {
                if let Some(token) = self.connections.token(key(id)) {
                    self.connections.accepted(context, token);
                }
            }
            Event::Refused { id, reason, sentence } => {
                let refusal = RequestRefusal { reason, sentence };
                if let Some(token) = self.connections.token(key(id)) {
                    self.connections.refused(context, token, refusal);
                } else if let Some(token) = self.associations.token(key(id)) {
                    self.associations.refused(context, token, refusal);
                }
            }
            Event::Datagram(id, bytes) => match self.associations.token(key(id)) {
                Some(token) => self.associations.received(context, token, bytes),
                None => context.counters.datagrams.dropped += 1,
            },
            Event::ListenAsked { number, listen } => {
                self.listeners.listen_for(context, session, number, listen);
            }
            Event::Listening { number, at } => {
                self.remotes.granted(context, session, number, at);
            }
            Event::NotListening { number, reason, sentence } => {
                let refusal = RequestRefusal { reason, sentence };
                self.remotes.refused(context, session, number, refusal);
            }
            Event::Data(id, bytes) => match self.connections.token(key(id)) {
                Some(token) => self.connections.data(context, token, bytes),
                None => self.dials.data(key(id), bytes),
            },
            Event::Finished(id) => match self.connections.token(key(id)) {
                Some(token) => self.connections.finish(context, token),
                None => self.dials.finish(key(id)),
            },
            Event::Reset(id) => self.reset_by_peer(key(id)),
            Event::Credit(id) => {
                if let Some(token) = self.connections.token(key(id)) {
                    self.connections.queue(context, token);
                }
            }
        }
    }

    /// The far end has reset a stream.
    fn reset_by_peer(&mut self, stream: StreamKey) {
        let context = &mut self.context;
        if let Some(token) = self.connections.token(stream) {
            self.connections.reset_by_peer(context, token);
        } else if let Some(token) = self.associations.token(stream) {
            self.associations.ended_by_peer(context, token);
        } else {
            self.dials.reset_by_peer(context, stream);
        }
    }
}
