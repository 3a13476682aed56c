//! The proxy's clients, and the socket that stands for each towards the destination.

use super::batch::{BatchSocket, Route};
use super::client_id::ClientId;
use super::config::ProxyConfig;
use super::poller::Token;
use super::shared::{ClientCounters, Shared};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

#[derive(Debug)]
struct Client {
    /// How to answer it.
    route: Route,
    upstream: BatchSocket,
    generation: u64,
    last_heard: Instant,
}

/// The clients of a proxy. When all slots are taken, newcomers are refused until one falls idle.
#[derive(Debug)]
pub(super) struct Clients {
    /// As long as the limit.
    slots: Vec<Option<Client>>,
    by_address: BTreeMap<SocketAddr, u32>,
    to: SocketAddr,
    idle: Duration,
    socket_buffer: ByteCount,
    next_expiry: Instant,
    counters: ClientCounters,
    shared: Arc<Shared>,
}

impl Clients {
    pub fn new(config: &ProxyConfig, shared: Arc<Shared>) -> Self {
        Self {
            slots: (0..config.max_clients.get()).map(|_| None).collect(),
            by_address: BTreeMap::new(),
            to: config.to,
            idle: config.idle,
            socket_buffer: config.socket_buffer,
            next_expiry: Instant::ZERO,
            counters: ClientCounters::default(),
            shared,
        }
    }

    /// The client at `address`, which has just been heard from. A new one gets a socket of its own;
    /// `None`, and counted, where no slot or no socket is free. `reached_at` is the local address
    /// it sent to.
    pub fn find_or_admit(
        &mut self,
        address: SocketAddr,
        reached_at: Option<IpAddr>,
        now: Instant,
    ) -> Option<ClientId> {
        let known = self.by_address.get(&address).copied();
        let Some(slot) = known.or_else(|| self.admit(address)) else {
            self.counters.refused_datagrams += 1;
            return None;
        };
        if let Some(client) = &mut self.slots[slot as usize] {
            client.route.from = reached_at;
        }
        self.heard_from(slot, now).map(|(client, _)| client)
    }

    /// The client in a slot, which has just been heard from or answered, and its socket.
    pub fn heard_from(&mut self, slot: u32, now: Instant) -> Option<(ClientId, &BatchSocket)> {
        let client = self.slots.get_mut(slot as usize)?.as_mut()?;
        client.last_heard = now;
        Some((ClientId { slot, generation: client.generation }, &client.upstream))
    }

    /// Way back and socket of a client that is still there.
    pub fn lookup(&self, id: ClientId) -> Option<(Route, &BatchSocket)> {
        let client = self.slots.get(id.slot as usize)?.as_ref()?;
        (client.generation == id.generation).then_some((client.route, &client.upstream))
    }

    /// Closes the sockets of clients that were idle for the configured time.
    pub fn expire_idle(&mut self, now: Instant) {
        if now < self.next_expiry {
            return;
        }
        self.next_expiry = now + (self.idle / 8).max(SHORTEST_EXPIRY_INTERVAL);
        for slot in &mut self.slots {
            let Some(client) = slot.take_if(|client| now.since(client.last_heard) >= self.idle)
            else {
                continue;
            };
            self.shared.poller.unwatch(&client.upstream);
            self.by_address.remove(&client.route.to);
            self.counters.expired += 1;
            self.counters.present -= 1;
        }
    }

    pub const fn counters(&self) -> ClientCounters {
        self.counters
    }

    fn admit(&mut self, address: SocketAddr) -> Option<u32> {
        let index = self.slots.iter().position(Option::is_none)?;
        let slot = u32::try_from(index).ok()?;
        let upstream = BatchSocket::connect(self.to, self.socket_buffer).ok()?;
        self.shared.poller.watch(&upstream, Token::Client(slot)).ok()?;
        let generation = self.counters.admitted;
        let route = Route { to: address, from: None };
        self.slots[index] = Some(Client { route, upstream, generation, last_heard: Instant::ZERO });
        self.by_address.insert(address, slot);
        self.counters.admitted += 1;
        self.counters.present += 1;
        Some(slot)
    }
}

/// Looking through the slots more often than this gains nothing.
const SHORTEST_EXPIRY_INTERVAL: Duration = Duration::from_millis(10);
