//! A receiver that sends a downlink to a station, as its bits come in.

use crate::support::recordings::{DAMAGED, recording};
use std::fmt;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How the receiver sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Udp,
    Tcp,
}

impl fmt::Display for Way {
    fn fmt(&self, form: &mut fmt::Formatter<'_>) -> fmt::Result {
        form.write_str(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp-listen",
        })
    }
}

/// The thread that sends the damaged recording: its first part as a downlink comes, so that the
/// pass lasts as long as the test needs it, and the rest once the test has finished.
pub struct Feed {
    hurry: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Bytes sent at once: no multiple of a frame's.
const PIECE: usize = 1_000;
/// Between two of the first half of them, of the rest, and once the test has finished.
const PAUSE: Duration = Duration::from_millis(40);
const LONG: Duration = Duration::from_millis(250);
const SHORT: Duration = Duration::from_millis(1);

impl Feed {
    pub fn start(way: Way, to: SocketAddr) -> Self {
        let (hurry, is_over) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (hurries, over) = (hurry.clone(), is_over.clone());
        let thread = std::thread::Builder::new().name("feed".to_owned()).spawn(move || {
            let bytes = std::fs::read(recording(DAMAGED)).unwrap();
            let mut tcp = (way == Way::Tcp).then(|| TcpStream::connect(to).unwrap());
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            let half = bytes.len() / PIECE / 2;
            for (at, piece) in bytes.chunks(PIECE).enumerate() {
                match &mut tcp {
                    Some(stream) => stream.write_all(piece).unwrap(),
                    None => assert_eq!(udp.send_to(piece, to).unwrap(), piece.len()),
                }
                let pause = if at < half { PAUSE } else { LONG };
                let pause = if hurries.load(Ordering::Relaxed) { SHORT } else { pause };
                std::thread::park_timeout(pause);
            }
            over.store(true, Ordering::Relaxed);
        });
        Self { hurry, is_over, thread: thread.unwrap() }
    }

    /// Whether everything is sent.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Sends the rest, and waits until it is sent.
    pub fn finish(self) {
        self.hurry.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}
