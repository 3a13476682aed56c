//! Applications that name their targets themselves, by SOCKS: from the first byte to the request.

use crate::context::ForwardContext;
use crate::dial::CONNECT_MAX;
use crate::listeners::{Entry, Leads};
use crate::socket::{self, Moved};
use skyhaul_forward::socks::{Handshake, Reply, Request, SocksStep, UNKNOWN, reply};
use skyhaul_forward::{Local, Target};
use skyhaul_units::Instant;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// All applications in the SOCKS handshake, and those that have a socket for datagrams.
#[derive(Debug, Default)]
pub(super) struct SocksClients {
    all: BTreeMap<u64, SocksClient>,
}

#[derive(Debug)]
struct SocksClient {
    socket: OwnedFd,
    handshake: Handshake,
    entry: Arc<Entry>,
    since: Instant,
    /// The listener for its datagrams, which is closed when this connection ends.
    datagrams: Option<u64>,
}

/// What an application wants.
#[derive(Debug)]
pub(super) enum SocksRequest {
    Connect {
        target: Target,
        entry: Arc<Entry>,
        socket: OwnedFd,
    },
    /// A socket for datagrams at this address: answer with [`SocksClients::associated`].
    Associate {
        local: Local,
        entry: Entry,
    },
    /// It has gone: its socket for datagrams is to be closed.
    Close {
        listener: u64,
    },
}

/// A socket for datagrams.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatagramSocket {
    pub listener: u64,
    pub address: SocketAddr,
}

/// Applications in the handshake, and those with datagrams; one more is reset.
const CLIENTS_MAX: usize = 1_024;

impl SocksClients {
    /// An application has connected.
    pub fn begin(&mut self, context: &mut ForwardContext, entry: Arc<Entry>, socket: OwnedFd) {
        let token = context.poller.token();
        if self.all.len() >= CLIENTS_MAX || context.poller.watch(&socket, token).is_err() {
            return socket::abort(socket);
        }
        let (handshake, since) = (Handshake::default(), context.now);
        self.all.insert(token, SocksClient { socket, handshake, entry, since, datagrams: None });
    }

    pub fn contains(&self, token: u64) -> bool {
        self.all.contains_key(&token)
    }

    /// Reads what an application has sent, up to its next request.
    pub fn read(&mut self, context: &mut ForwardContext, token: u64) -> Option<SocksRequest> {
        loop {
            let client = self.all.get_mut(&token)?;
            let wants = client.handshake.wants();
            let step = match socket::read(&client.socket, &mut context.buffer[..wants]) {
                // After the request for datagrams the connection carries nothing.
                Moved::Some(_) if client.datagrams.is_some() => continue,
                Moved::Some(count) => client.handshake.take(&context.buffer[..count]),
                Moved::Blocked => return None,
                Moved::End | Moved::Broken => return self.close(token),
            };
            match step {
                SocksStep::Read => {}
                SocksStep::Say(answer) => {
                    if !socket::say(&client.socket, &answer) {
                        return self.close(token);
                    }
                }
                SocksStep::Refuse(answer) => self.refuse(context, token, &answer),
                SocksStep::Asked(Request::Connect(target)) => {
                    let SocksClient { socket, entry, .. } = self.all.remove(&token)?;
                    return Some(SocksRequest::Connect { target, entry, socket });
                }
                SocksStep::Asked(Request::Associate) => match client.associate() {
                    Some(request) => return Some(request),
                    None => self.refuse_association(context, token),
                },
            }
        }
    }

    /// The socket for datagrams that an application asked for; none where it could not be opened.
    pub fn associated(
        &mut self,
        context: &mut ForwardContext,
        token: u64,
        opened: Option<DatagramSocket>,
    ) -> Option<SocksRequest> {
        let client = self.all.get_mut(&token)?;
        let Some(DatagramSocket { listener, address }) = opened else {
            self.refuse_association(context, token);
            return None;
        };
        client.datagrams = Some(listener);
        if socket::say(&client.socket, &reply(Reply::Succeeded, address)) {
            None
        } else {
            self.close(token)
        }
    }

    fn refuse_association(&mut self, context: &mut ForwardContext, token: u64) {
        self.refuse(context, token, &reply(Reply::GeneralFailure, UNKNOWN));
    }

    fn refuse(&mut self, context: &mut ForwardContext, token: u64, answer: &[u8]) {
        if let Some(client) = self.all.remove(&token) {
            context.counters.refused += 1;
            socket::farewell(client.socket, answer);
        }
    }

    fn close(&mut self, token: u64) -> Option<SocksRequest> {
        let listener = self.all.remove(&token)?.datagrams?;
        Some(SocksRequest::Close { listener })
    }

    /// Resets applications that have not asked for too long.
    pub fn sweep(&mut self, now: Instant) {
        let is_late = |client: &SocksClient| {
            client.datagrams.is_none() && now.since(client.since) >= CONNECT_MAX
        };
        for (_, client) in self.all.extract_if(.., |_, client| is_late(client)) {
            socket::abort(client.socket);
        }
    }
}

impl SocksClient {
    /// Datagrams come in at the address that the application has connected to. A socket file has
    /// none.
    fn associate(&self) -> Option<SocksRequest> {
        let (own, client) = (socket::address(&self.socket)?, socket::peer(&self.socket)?);
        let leads = Leads::Wrapped { client: client.ip().to_canonical() };
        let entry = Entry { leads, ..Entry::clone(&self.entry) };
        Some(SocksRequest::Associate { local: Local::Udp(SocketAddr::new(own.ip(), 0)), entry })
    }
}
