//! A line over UDP that lets through only so many of the datagrams that begin a call: a call of
//! which the first are lost stays without an answer.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The line to a node.
pub struct Hellos {
    pub address: SocketAddr,
    left: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// A caller sends its first datagram so often at once.
pub const OF_ONE_CALL: u32 = 3;
/// Between two looks at the stop flag.
const LOOK: Duration = Duration::from_millis(20);

impl Hellos {
    /// To this node, for one caller.
    pub fn to(node: SocketAddr) -> Self {
        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(LOOK)).unwrap();
            Arc::new(socket)
        };
        let (near, far) = (bind(), bind());
        let (left, stop) = (Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
        let caller = Arc::<Mutex<Option<SocketAddr>>>::default();
        let address = near.local_addr().unwrap();
        let there = {
            let (far, caller) = (far.clone(), caller.clone());
            let left = left.clone();
            move |datagram: &[u8], from| {
                *caller.lock().unwrap() = Some(from);
                if !begins_a_call(datagram)
                    || left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                        .is_ok()
                {
                    let _ = far.send_to(datagram, node);
                }
            }
        };
        let back = {
            let near = near.clone();
            move |datagram: &[u8], _from| {
                if let Some(caller) = *caller.lock().unwrap() {
                    let _ = near.send_to(datagram, caller);
                }
            }
        };
        let threads = vec![carry(near, stop.clone(), there), carry(far, stop.clone(), back)];
        Self { address, left, stop, threads }
    }

    /// Lets so many more datagrams through that begin a call.
    pub fn let_through(&self, datagrams: u32) {
        self.left.store(datagrams, Ordering::Relaxed);
    }
}

/// An Initial packet (RFC 9000 17.2.2) to an identifier that the caller has drawn: at least 8
/// bytes, longer than those that a node of ours gives itself.
fn begins_a_call(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0xf0 == 0xc0)
        && datagram.get(5).is_some_and(|length| *length >= 8)
}

fn carry(
    from: Arc<UdpSocket>,
    stop: Arc<AtomicBool>,
    pass_on: impl Fn(&[u8], SocketAddr) + Send + 'static,
) -> JoinHandle<()> {
    let run = move || {
        let mut buffer = vec![0; 1 << 16];
        while !stop.load(Ordering::Relaxed) {
            // An answer of the system that nobody listens is no datagram.
            if let Ok((length, sender)) = from.recv_from(&mut buffer) {
                pass_on(&buffer[..length], sender);
            }
        }
    };
    std::thread::Builder::new().name("line".to_owned()).spawn(run).unwrap()
}

impl Drop for Hellos {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
