//! Connecting for a far node: whether it may be, the name looked up, one address after the other.

use super::connection::{Connection, Phase};
use super::forwards::Forwards;
use super::resolver::Resolver;
use super::{ForwardNotice, socket};
use rustix::io::Errno;
use skyhaul_forward::{ConnectRefusal, StreamId, Target};
use skyhaul_sessions::SessionId;
use skyhaul_units::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// How long the system may take to connect: three of its attempts over a line of 660 ms, and less
/// than applications wait.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(15);

impl Forwards {
    /// A far node asks to connect.
    pub(super) fn dial(
        &mut self,
        now: Instant,
        (session, stream): (SessionId, StreamId),
        target: Target,
    ) {
        let lane =
            self.peers.get(&session).and_then(|peer| peer.mux.lane(stream)).unwrap_or_default();
        let mut connection =
            Connection::new(now, (session, stream), target.clone(), Phase::Resolving);
        connection.lane = lane;
        let token = self.token();
        self.keep_as(token, connection);
        match &target {
            Target::Unix(path) => match self.permits(session, &target, None) {
                true => self.connect_file(now, token, path),
                false => self.refuse_not_allowed(token),
            },
            Target::Tcp(host, port) | Target::Udp(host, port) => match target.ip() {
                Some(ip) => self.try_addresses(now, token, &[SocketAddr::new(ip, *port)]),
                None if !self.may_look_up(session, &target) => self.refuse_not_allowed(token),
                None if self.look_up(token, host, *port) => {}
                None => {
                    self.refuse(token, ConnectRefusal::Busy, "too many name look-ups in progress");
                }
            },
        }
    }

    /// Whether `target` may be connected to at `address` for the far node of `session`: by a rule,
    /// or because it was asked to listen for it.
    pub(super) fn permits(
        &self,
        session: SessionId,
        target: &Target,
        address: Option<IpAddr>,
    ) -> bool {
        let rules = self.peers.get(&session).map(|peer| &peer.rules);
        rules.is_some_and(|rules| rules.allow.iter().any(|rule| rule.permits(target, address)))
            || self.has_wished_for(session, target)
    }

    /// No name is looked up where nothing could be allowed.
    pub(super) fn may_look_up(&self, session: SessionId, target: &Target) -> bool {
        let has_rules = self.peers.get(&session).is_some_and(|peer| !peer.rules.allow.is_empty());
        has_rules || self.has_wished_for(session, target)
    }

    /// Looks up a name; whether that could be begun.
    pub(super) fn look_up(&mut self, token: u64, host: &str, port: u16) -> bool {
        if self.resolver.is_none() {
            self.resolver = Resolver::start(self.waker.clone()).ok();
        }
        self.resolver.as_ref().is_some_and(|resolver| resolver.ask(token, host, port))
    }

    /// Names that were looked up.
    pub(super) fn take_resolved(&mut self, now: Instant) {
        while let Some(answer) = self.resolver.as_ref().and_then(Resolver::poll) {
            let (token, datagrams) = (answer.token, self.associations.contains_key(&answer.token));
            let addresses = match answer.addresses {
                Ok(addresses) if addresses.is_empty() => Err("the name has no address".to_owned()),
                addresses => addresses,
            };
            match (addresses, datagrams) {
                (Ok(addresses), true) => self.resolved_datagrams(now, token, &addresses),
                (Err(error), true) => {
                    self.refuse_datagrams(token, ConnectRefusal::NameUnknown, &error);
                }
                (Ok(addresses), false) => self.try_addresses(now, token, &addresses),
                (Err(error), false) => self.refuse(token, ConnectRefusal::NameUnknown, &error),
            }
        }
    }

    /// Connects to the first of the addresses that are allowed.
    fn try_addresses(&mut self, now: Instant, token: u64, addresses: &[SocketAddr]) {
        let Some(connection) = self.connections.get(&token) else { return };
        let (session, target) = (connection.session, connection.target.clone());
        let allowed =
            addresses.iter().filter(|address| self.permits(session, &target, Some(address.ip())));
        let allowed: Vec<SocketAddr> = allowed.copied().collect();
        if allowed.is_empty() {
            return self.refuse_not_allowed(token);
        }
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.candidates.extend(allowed);
        }
        self.try_next(now, token, Errno::ADDRNOTAVAIL);
    }

    /// Connects to the next address; where there is none, what happened at the last one is the
    /// answer.
    fn try_next(&mut self, now: Instant, token: u64, mut last: Errno) {
        while let Some(address) = self
            .connections
            .get_mut(&token)
            .and_then(|connection| connection.candidates.pop_front())
        {
            let watched =
                socket::connect_tcp(&address).and_then(|socket| self.watched(socket, token));
            match watched {
                Ok(socket) => {
                    let Some(connection) = self.connections.get_mut(&token) else { return };
                    connection.phase = Phase::Connecting;
                    connection.active = now;
                    connection.socket = Some(socket);
                    return;
                }
                Err(errno) => last = errno,
            }
        }
        self.refuse(token, reason_of(last), &sentence_of(last));
    }

    pub(super) fn watched(&self, socket: OwnedFd, token: u64) -> Result<OwnedFd, Errno> {
        let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM);
        self.poller.watch(&socket, token).map_err(failed).map(|()| socket)
    }

    /// The system has connected, or has not.
    pub(super) fn dialled(&mut self, now: Instant, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        match connection.socket.as_ref().and_then(socket::error) {
            Some(errno) => {
                connection.socket = None;
                self.try_next(now, token, errno);
            }
            None => self.connected(now, token),
        }
    }

    fn connect_file(&mut self, now: Instant, token: u64, path: &str) {
        let watched = socket::connect_unix(path).and_then(|socket| self.watched(socket, token));
        match (watched, self.connections.get_mut(&token)) {
            (Ok(socket), Some(connection)) => {
                connection.socket = Some(socket);
                self.connected(now, token);
            }
            (Ok(_), None) => {}
            (Err(errno), _) => self.refuse(token, reason_of(errno), &sentence_of(errno)),
        }
    }

    fn connected(&mut self, now: Instant, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.phase = Phase::Open;
        connection.active = now;
        connection.set_writable();
        connection.readable = true;
        if let Some(peer) = self.peers.get_mut(&connection.session) {
            peer.mux.accept(now, connection.stream);
        }
        self.counters.connected += 1;
        self.queue(token);
        self.write(now, token);
    }

    fn refuse_not_allowed(&mut self, token: u64) {
        self.refuse(token, ConnectRefusal::NotAllowed, NOT_ALLOWED);
    }

    /// Tells the far node that it is not connected, and why.
    pub(super) fn refuse(&mut self, token: u64, reason: ConnectRefusal, sentence: &str) {
        let Some(connection) = self.remove(token) else { return };
        if let Some(peer) = self.peers.get_mut(&connection.session) {
            peer.mux.refuse(connection.stream, reason, sentence);
        }
        self.counters.refused += 1;
        let target = connection.target;
        self.notice(&ForwardNotice::Refused { target, reason, sentence: sentence.to_owned() });
    }
}

/// What the far node is told where no rule names the target.
pub(super) const NOT_ALLOWED: &str =
    "the connecting node's rules do not allow it; allow the target with --allow there";

pub(super) const fn reason_of(errno: Errno) -> ConnectRefusal {
    match errno {
        Errno::CONNREFUSED | Errno::NOENT => ConnectRefusal::ConnectionRefused,
        Errno::HOSTUNREACH | Errno::HOSTDOWN => ConnectRefusal::HostUnreachable,
        Errno::NETUNREACH | Errno::NETDOWN => ConnectRefusal::NetworkUnreachable,
        Errno::TIMEDOUT => ConnectRefusal::TimedOut,
        Errno::AGAIN | Errno::MFILE | Errno::NFILE => ConnectRefusal::Busy,
        _ => ConnectRefusal::Failed,
    }
}

pub(super) fn sentence_of(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}
