//! The long line between the nodes: a proxy on a separate thread.

use skyhaul_emulator::proxy::{LinkProxy, ProxyConfig, ProxyCounters, ProxyHandle};
use skyhaul_exit::{Exit, Failure};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_units::{Duration, Probability, Rate};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What the line is like; both directions are alike.
#[derive(Debug, Clone, Copy)]
pub struct LineFacts {
    /// Its rate, counted in IP packets.
    pub rate: Rate,
    /// Both ways together.
    pub rtt: Duration,
    /// Probability that a packet is lost, each alone.
    pub loss: Probability,
}

/// A line in use. It ends when this is dropped.
#[derive(Debug)]
pub struct DemoLine {
    address: SocketAddr,
    handle: ProxyHandle,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LineFacts {
    /// The highest rate of blocks on the line: the packets that are not lost, without headers. An
    /// IP packet of 1500 bytes has 1430 bytes of a block (docs/reference/wire.md, 2.1).
    pub const fn goodput_limit(self) -> Rate {
        let arriving = self.loss.complement();
        self.rate
            .scaled(arriving.as_ppb() as u64, Probability::ONE.as_ppb() as u64)
            .scaled(BLOCK_BYTES, IP_BYTES)
    }
}

impl DemoLine {
    /// Lays a line to `to`.
    ///
    /// # Errors
    /// The system gives no socket or thread.
    pub fn lay(to: SocketAddr, facts: LineFacts, seed: u64) -> Result<Self, Failure> {
        let mut link = LinkConfig::line(facts.rate, facts.rtt.scaled(1, 2));
        if facts.loss != Probability::ZERO {
            link.loss = Loss::Independent(facts.loss);
        }
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut config = ProxyConfig::new(listen, to, link);
        config.seed = seed;
        let refused = |error: &dyn std::fmt::Display| {
            Failure::from_sentence(Exit::Environment, &error.to_string())
        };
        let mut proxy = LinkProxy::bind(config).map_err(|error| refused(&error))?;
        let (address, handle) = (proxy.local_addr(), proxy.handle());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("line".to_owned())
            // A proxy that ends early cuts the line: the nodes report it.
            .spawn(move || drop(proxy.run(&stopped)))
            .map_err(|error| refused(&error))?;
        Ok(Self { address, handle, stop, thread: Some(thread) })
    }

    /// Its near end.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it carried and lost.
    pub fn counters(&self) -> ProxyCounters {
        self.handle.counters()
    }
}

impl Drop for DemoLine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

const BLOCK_BYTES: u64 = 1_430;
const IP_BYTES: u64 = 1_500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_loss_and_headers() {
        let facts = LineFacts {
            rate: Rate::from_mbps(150),
            rtt: Duration::ZERO,
            loss: Probability::from_ppb(100_000_000),
        };
        assert_eq!(facts.goodput_limit(), Rate::from_bps(128_700_000));
    }
}
