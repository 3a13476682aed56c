//! Servers that send back what they receive, and their clients.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A server that runs until the test ends.
pub struct Echo {
    pub address: String,
    accepted: Arc<AtomicUsize>,
}

impl Echo {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                counter.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || back(stream));
            }
        });
        Self { address, accepted }
    }

    /// The number of accepted connections.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

fn back(mut stream: TcpStream) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Whether this many bytes come back complete.
pub fn echoed(address: &str, len: usize) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    // Far longer than it takes: a connection of a lost session is reset before.
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let Ok(mut writing) = stream.try_clone() else { return false };
    let sent = pattern(len);
    let sending = sent.clone();
    let writer = std::thread::spawn(move || {
        writing.write_all(&sending).and_then(|()| writing.shutdown(Shutdown::Write)).is_ok()
    });
    let mut got = Vec::new();
    let read = stream.read_to_end(&mut got).is_ok();
    writer.join().unwrap() && read && got == sent
}

/// Bytes that show a loss or a change of order.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place % 251) as u8 ^ (place >> 13) as u8).collect()
}
