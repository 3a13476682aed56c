//! Servers that say back what they hear, and who asks them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A server that goes on until the test ends.
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

    /// Connections that came.
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

/// Whether so many bytes come back whole.
pub fn echoed(address: &str, len: usize) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    // Far longer than it takes: a connection over a session that is gone is reset before.
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

/// Bytes in which any that is lost or out of order shows.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place % 251) as u8 ^ (place >> 13) as u8).collect()
}

/// A port that nobody had a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
