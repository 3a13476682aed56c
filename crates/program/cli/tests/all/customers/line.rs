//! A line to a server, which counts what goes there.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The line.
pub struct CountedLine {
    pub port: u16,
    sent: Arc<AtomicU64>,
}

impl CountedLine {
    /// To a port of this host, until the test ends.
    #[allow(clippy::disallowed_methods, reason = "a test's own line needs threads")]
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let sent = Arc::new(AtomicU64::new(0));
        let all = Arc::clone(&sent);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let (Ok(from), Ok(back)) = (far.try_clone(), near.try_clone()) else { continue };
                let (counted, uncounted) = (Arc::clone(&all), Arc::new(AtomicU64::new(0)));
                std::thread::spawn(move || carry(from, back, &uncounted));
                std::thread::spawn(move || carry(near, far, &counted));
            }
        });
        Self { port: own, sent }
    }

    /// The bytes that went to the server.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, count: &AtomicU64) {
    let mut buffer = vec![0; 256 << 10];
    while let Ok(length) = from.read(&mut buffer) {
        if length == 0 || to.write_all(&buffer[..length]).is_err() {
            break;
        }
        count.fetch_add(length as u64, Ordering::Relaxed);
    }
    for end in [from, to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}
