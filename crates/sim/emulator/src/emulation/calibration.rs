//! What this machine can carry, found by carrying it.

use super::{Emulation, Hop};
use crate::EmulatorError;
use crate::description::{LinkDescription, MAX_LINKS};
use crate::place::{LinkEnd, Namespace};
use skyhaul_link::LinkConfig;
use skyhaul_units::{Duration, Rate};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};

impl Emulation {
    /// Finds how fast this machine now carries IP packets of 1500 bytes from `a` to `b`, the cost
    /// of sender and receiver included: over a link of its own without a limit, for a fifth of a
    /// second. That link is gone afterwards.
    ///
    /// # Errors
    /// The system refuses the link or its sockets.
    pub fn calibrate(&mut self) -> Result<Rate, EmulatorError> {
        let perfect = LinkConfig::default();
        let link = LinkDescription {
            name: "skyhaul-measure".to_owned(),
            mtu: 1500,
            up: perfect.clone(),
            down: perfect,
        };
        self.hops.push(Hop::new(&self.namespaces, MAX_LINKS, &link, 0)?);
        let carried = self.flood();
        self.hops.pop();
        carried
    }

    fn flood(&mut self) -> Result<Rate, EmulatorError> {
        let [a, b] = &self.namespaces;
        let (from, to) = (socket(a, LinkEnd::A)?, socket(b, LinkEnd::B)?);
        let refused =
            |source| EmulatorError::system("use a socket to measure this machine", source);
        from.connect(to.local_addr().map_err(refused)?).map_err(refused)?;
        to.set_nonblocking(true).map_err(refused)?;
        let (clock, stop) = (self.clock, AtomicBool::new(false));
        let start = clock.now();
        let send = || {
            let mut room = [0; PAYLOAD];
            while clock.now().since(start) < SPAN {
                for _ in 0..BURST {
                    // A full device queue is what is being looked for.
                    let _ = from.send(&[0; PAYLOAD]);
                }
                while to.recv(&mut room).is_ok() {}
            }
            stop.store(true, Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            scope.spawn(send);
            self.run(&stop)
        })?;
        let carried =
            self.hops.last().map(|hop| hop.up.link.counters().forwarded_bytes).unwrap_or_default();
        Ok(Rate::over(carried, clock.now().since(start)))
    }
}

fn socket(namespace: &Namespace, place: LinkEnd) -> Result<UdpSocket, EmulatorError> {
    let refused = |source| EmulatorError::system("open a socket to measure this machine", source);
    namespace.enter(|| UdpSocket::bind((place.ipv4(MAX_LINKS), 0)).map_err(refused))
}

/// Of a datagram in an IP packet of 1500 bytes.
const PAYLOAD: usize = 1472;

/// Datagrams before the receiver has its turn: fewer than a socket holds.
const BURST: usize = 32;

/// Long enough for a figure to a tenth, short enough not to be noticed.
const SPAN: Duration = Duration::from_millis(200);
