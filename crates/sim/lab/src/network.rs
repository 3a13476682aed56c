//! Endpoints joined by links, under one virtual clock.

use crate::{NetworkDatagram, NetworkNode};
use core::net::SocketAddr;
use skyhaul_link::{Link, LinkConfig, ip_packet_size};
use skyhaul_units::{ByteCount, Instant};
use std::collections::BTreeMap;

/// A node of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

/// One direction of a link in a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(usize);

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The condition came true.
    Done,
    /// The clock reached the limit.
    TimeUp,
    /// Nothing is under way and no timeout is set: nothing would ever happen again.
    Idle,
}

/// The network does not get past an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "virtual time stands at {at} while {node:?} goes on working: \
     look for a timeout that stays in the past, or endless sending without pacing"
)]
pub struct Stuck {
    /// The instant.
    pub at: Instant,
    /// The node that was worked on last.
    pub node: NodeId,
}

/// Datagrams that did not get to a link or from it to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetworkCounters {
    /// No link is set for the pair of addresses.
    pub unroutable: u64,
    /// No node has the address.
    pub unknown_destination: u64,
}

/// One entry of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A node sent a datagram into a link, which may drop or lose it.
    Sent(LinkId, &'a NetworkDatagram),
    /// A datagram came out of a link.
    Arrived(LinkId, &'a NetworkDatagram),
    /// No link is set for the pair of addresses.
    Unroutable(&'a NetworkDatagram),
    /// A node's timeout came.
    Timeout(NodeId),
}

/// Endpoints joined by links, under one virtual clock that starts at [`Instant::ZERO`].
///
/// At each instant at which anything is due: first arrivals, in order of links as added; then
/// timeouts, in order of nodes as added. A node's transmits are taken right after each call to it.
/// Nothing depends on chance but the links, by their seeds.
pub struct Network<E> {
    now: Instant,
    nodes: Vec<Node<E>>,
    /// Bounded by the scenario, as `links` and `routes` are.
    addresses: BTreeMap<SocketAddr, NodeId>,
    links: Vec<Link<NetworkDatagram>>,
    routes: BTreeMap<(SocketAddr, SocketAddr), LinkId>,
    counters: NetworkCounters,
    trace: Option<Trace>,
    last_worked: NodeId,
}

type Trace = Box<dyn FnMut(Instant, Event<'_>)>;

struct Node<E> {
    endpoint: E,
    /// Its next timeout, as of the last time it was settled.
    timeout: Option<Instant>,
    /// It may have been changed since it was settled.
    touched: bool,
}

impl<E: NetworkNode> Default for Network<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: NetworkNode> Network<E> {
    /// A network of nothing.
    pub fn new() -> Self {
        Self {
            now: Instant::ZERO,
            nodes: Vec::new(),
            addresses: BTreeMap::new(),
            links: Vec::new(),
            routes: BTreeMap::new(),
            counters: NetworkCounters::default(),
            trace: None,
            last_worked: NodeId(0),
        }
    }

    /// Adds an endpoint that is reached at `addresses`. An address that another node had goes over
    /// to it.
    pub fn add_node(&mut self, endpoint: E, addresses: &[SocketAddr]) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node { endpoint, timeout: None, touched: true });
        self.addresses.extend(addresses.iter().map(|address| (*address, id)));
        id
    }

    /// Adds one direction of a link. It carries nothing before a [`route`](Self::route) leads over
    /// it; its configuration's times count from the clock's start.
    pub fn add_link(&mut self, config: LinkConfig, seed: u64) -> LinkId {
        self.links.push(Link::new(config, seed));
        LinkId(self.links.len() - 1)
    }

    /// Leads what goes from one address to another over `link` from now on. Several pairs may share
    /// a link.
    pub fn route(&mut self, from: SocketAddr, to: SocketAddr, link: LinkId) {
        self.routes.insert((from, to), link);
    }

    /// Joins two addresses both ways by links of the same kind and seeds of their own: first to
    /// second, and back.
    pub fn join(
        &mut self,
        first: SocketAddr,
        second: SocketAddr,
        config: &LinkConfig,
        seed: u64,
    ) -> [LinkId; 2] {
        let there = self.add_link(config.clone(), seed.wrapping_mul(2));
        let back = self.add_link(config.clone(), seed.wrapping_mul(2).wrapping_add(1));
        self.route(first, second, there);
        self.route(second, first, back);
        [there, back]
    }

    /// Makes a link another one from now on; its configuration's times count from now.
    pub fn reconfigure(&mut self, link: LinkId, config: LinkConfig) {
        self.links[link.0].reconfigure(self.now, config);
    }

    /// Tells `trace` of every event from now on.
    pub fn set_trace(&mut self, trace: impl FnMut(Instant, Event<'_>) + 'static) {
        self.trace = Some(Box::new(trace));
    }

    /// The virtual clock.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// An endpoint.
    pub fn node(&self, node: NodeId) -> &E {
        &self.nodes[node.0].endpoint
    }

    /// An endpoint, to act on it at the present instant. What it then wants to send goes out when
    /// the network runs next.
    pub fn node_mut(&mut self, node: NodeId) -> &mut E {
        let node = &mut self.nodes[node.0];
        node.touched = true;
        &mut node.endpoint
    }

    /// The endpoints, in the order in which they were added.
    pub fn into_nodes(self) -> impl Iterator<Item = E> {
        self.nodes.into_iter().map(|node| node.endpoint)
    }

    /// A link, for its counters.
    pub fn link(&self, link: LinkId) -> &Link<NetworkDatagram> {
        &self.links[link.0]
    }

    /// What found no way.
    pub const fn counters(&self) -> NetworkCounters {
        self.counters
    }

    /// Runs until the clock stands at `limit`, everything due then included.
    ///
    /// # Errors
    /// [`Stuck`] where an endpoint keeps the clock from going on.
    pub fn run_until(&mut self, limit: Instant) -> Result<(), Stuck> {
        self.run(limit, |_| false)?;
        self.now = self.now.max(limit);
        Ok(())
    }

    /// Runs until `done`, asked after every instant at which anything happened, or until `limit`.
    /// [`Stop::Idle`] leaves the clock at the last event.
    ///
    /// # Errors
    /// [`Stuck`] where an endpoint keeps the clock from going on.
    pub fn run(
        &mut self,
        limit: Instant,
        mut done: impl FnMut(&Self) -> bool,
    ) -> Result<Stop, Stuck> {
        let mut steps_here = 0;
        loop {
            self.settle_touched()?;
            if done(self) {
                return Ok(Stop::Done);
            }
            let Some(at) = self.next_event() else { return Ok(Stop::Idle) };
            if at > limit {
                self.now = self.now.max(limit);
                return Ok(Stop::TimeUp);
            }
            steps_here = if at > self.now { 0 } else { steps_here + 1 };
            if steps_here > MAX_STEPS_AT_AN_INSTANT {
                return Err(self.stuck());
            }
            self.now = self.now.max(at);
            self.deliver_arrivals()?;
            self.fire_timeouts()?;
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let links = self.links.iter().filter_map(Link::next_event);
        let nodes = self.nodes.iter().filter_map(|node| node.timeout);
        links.chain(nodes).min()
    }

    fn deliver_arrivals(&mut self) -> Result<(), Stuck> {
        for index in 0..self.links.len() {
            // What enters the link meanwhile has its turn in the next step, at the same instant.
            for _ in 0..self.links[index].in_flight() {
                let Some(datagram) = self.links[index].poll(self.now) else { break };
                self.tell(Event::Arrived(LinkId(index), &datagram));
                let Some(node) = self.addresses.get(&datagram.to).copied() else {
                    self.counters.unknown_destination += 1;
                    continue;
                };
                self.nodes[node.0].endpoint.handle_datagram(self.now, datagram);
                self.settle(node)?;
            }
        }
        Ok(())
    }

    fn fire_timeouts(&mut self) -> Result<(), Stuck> {
        for index in 0..self.nodes.len() {
            if self.nodes[index].timeout.is_some_and(|at| at <= self.now) {
                self.tell(Event::Timeout(NodeId(index)));
                self.nodes[index].endpoint.handle_timeout(self.now);
                self.settle(NodeId(index))?;
            }
        }
        Ok(())
    }

    fn settle_touched(&mut self) -> Result<(), Stuck> {
        for index in 0..self.nodes.len() {
            if self.nodes[index].touched {
                self.settle(NodeId(index))?;
            }
        }
        Ok(())
    }

    /// Takes all that a node wants to send, then its next timeout.
    fn settle(&mut self, id: NodeId) -> Result<(), Stuck> {
        self.last_worked = id;
        for _ in 0..MAX_TRANSMITS_AT_ONCE {
            let Some(datagram) = self.nodes[id.0].endpoint.poll_transmit(self.now) else {
                let node = &mut self.nodes[id.0];
                node.timeout = node.endpoint.next_timeout();
                node.touched = false;
                return Ok(());
            };
            self.transmit(datagram);
        }
        Err(self.stuck())
    }

    fn transmit(&mut self, datagram: NetworkDatagram) {
        let Some(link) = self.routes.get(&(datagram.from, datagram.to)).copied() else {
            self.tell(Event::Unroutable(&datagram));
            self.counters.unroutable += 1;
            return;
        };
        self.tell(Event::Sent(link, &datagram));
        let size: ByteCount = ip_packet_size(datagram.to.ip(), datagram.payload.len());
        self.links[link.0].send(self.now, size, datagram);
    }

    fn tell(&mut self, event: Event<'_>) {
        if let Some(trace) = &mut self.trace {
            trace(self.now, event);
        }
    }

    const fn stuck(&self) -> Stuck {
        Stuck { at: self.now, node: self.last_worked }
    }
}

/// Rounds of work at one instant, of which an endless exchange without delay takes one each.
/// Production engines need two or three.
const MAX_STEPS_AT_AN_INSTANT: u32 = 10_000;

/// Datagrams taken from one node in one go: 1.5 GB, more than any queue on the way would hold.
const MAX_TRANSMITS_AT_ONCE: u32 = 1 << 20;

#[cfg(test)]
mod tests;
