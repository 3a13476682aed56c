//! Applications that name their targets themselves, by SOCKS: from the first byte to the request.

use super::dial::CONNECT_MAX;
use super::forwards::Forwards;
use super::listeners::{Entry, Leads, Reach};
use super::socket::{self, Moved};
use skyhaul_forward::socks::{Handshake, Reply, Request, SocksStep, UNKNOWN, reply};
use skyhaul_forward::{Local, Target};
use skyhaul_units::Instant;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// An application that has not asked yet, or the connection that keeps its datagrams going.
#[derive(Debug)]
pub(super) struct Greeting {
    socket: OwnedFd,
    handshake: Handshake,
    entry: Entry,
    since: Instant,
    /// The socket for its datagrams, which goes when this connection does.
    datagrams: Option<u64>,
}

/// Applications that have not asked yet, and those with datagrams; one more is reset.
const GREETINGS_MAX: usize = 1_024;

impl Forwards {
    /// An application has come.
    pub(super) fn greet(&mut self, now: Instant, listener: u64, socket: OwnedFd) {
        let entry = self.listeners.get(&listener).map(|listener| listener.entry.clone());
        let Some(entry) = entry.filter(|_| self.greetings.len() < GREETINGS_MAX) else {
            return socket::abort(socket);
        };
        let token = self.token();
        if self.poller.watch(&socket, token).is_err() {
            return socket::abort(socket);
        }
        let handshake = Handshake::default();
        self.greetings
            .insert(token, Greeting { socket, handshake, entry, since: now, datagrams: None });
    }

    /// An application says something, or goes.
    pub(super) fn hear(&mut self, now: Instant, token: u64) {
        while let Some(greeting) = self.greetings.get_mut(&token) {
            let wants = greeting.handshake.wants();
            let step = match socket::read(&greeting.socket, &mut self.buffer[..wants]) {
                // With datagrams, all has been said.
                Moved::Some(_) if greeting.datagrams.is_some() => continue,
                Moved::Some(count) => greeting.handshake.take(&self.buffer[..count]),
                Moved::Blocked => return,
                Moved::End | Moved::Broken => return self.dismiss(token),
            };
            match step {
                SocksStep::Read => {}
                SocksStep::Say(answer) => {
                    if !socket::say(&greeting.socket, &answer) {
                        return self.dismiss(token);
                    }
                }
                SocksStep::Refuse(answer) => return self.refuse_greeting(token, &answer),
                SocksStep::Asked(Request::Connect(target)) => {
                    return self.asked(now, token, target);
                }
                SocksStep::Asked(Request::Associate) => self.associate(token),
            }
        }
    }

    fn asked(&mut self, now: Instant, token: u64, target: Target) {
        let Some(Greeting { socket, entry, .. }) = self.greetings.remove(&token) else { return };
        let refused = match self.reach(entry.whose) {
            Reach::Open(session) => self
                .begin(now, token, (session, target, &entry), socket)
                .map_err(|socket| (Reply::GeneralFailure, socket)),
            Reach::Called | Reach::Down => Err((Reply::NetworkUnreachable, socket)),
        };
        match refused {
            Ok(()) => {
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.expects_answer = true;
                    // What it has said already is told no more.
                    connection.readable = true;
                }
                self.queue(token);
            }
            Err((answer, socket)) => socket::farewell(socket, &reply(answer, UNKNOWN)),
        }
    }

    /// Opens a socket for datagrams of the application's host, at the address that it has connected
    /// to.
    fn associate(&mut self, token: u64) {
        let Some(greeting) = self.greetings.get(&token) else { return };
        let ends = (socket::address(&greeting.socket), socket::peer(&greeting.socket));
        let opened = match ends {
            (Some(own), Some(client)) => {
                let leads = Leads::Wrapped { client: client.ip().to_canonical() };
                let entry = Entry { leads, ..greeting.entry.clone() };
                self.listen(&Local::Udp(SocketAddr::new(own.ip(), 0)), entry).ok()
            }
            // A socket file has no address where datagrams could go.
            _ => None,
        };
        let bound = opened
            .and_then(|listener| Some((listener, self.listeners.get(&listener)?.local.address()?)));
        let said = match (bound, self.greetings.get_mut(&token)) {
            (Some((listener, bound)), Some(greeting)) => {
                greeting.datagrams = Some(listener);
                socket::say(&greeting.socket, &reply(Reply::Succeeded, bound))
            }
            _ => return self.refuse_greeting(token, &reply(Reply::GeneralFailure, UNKNOWN)),
        };
        if !said {
            self.dismiss(token);
        }
    }

    fn refuse_greeting(&mut self, token: u64, answer: &[u8]) {
        if let Some(greeting) = self.greetings.remove(&token) {
            self.counters.refused += 1;
            socket::farewell(greeting.socket, answer);
        }
    }

    fn dismiss(&mut self, token: u64) {
        if let Some(listener) =
            self.greetings.remove(&token).and_then(|greeting| greeting.datagrams)
        {
            self.close_listener(listener);
        }
    }

    /// Whoever says nothing for too long is reset.
    pub(super) fn sweep_greetings(&mut self, now: Instant) {
        let late =
            |held: &Greeting| held.datagrams.is_none() && now.since(held.since) >= CONNECT_MAX;
        let late: Vec<u64> =
            self.greetings.iter().filter(|(_, held)| late(held)).map(|(token, _)| *token).collect();
        for token in late {
            if let Some(greeting) = self.greetings.remove(&token) {
                socket::abort(greeting.socket);
            }
        }
    }
}
