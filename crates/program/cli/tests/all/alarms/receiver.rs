//! An HTTP server that takes events as a test says: it refuses, hangs, closes, dies, and is back.

use crate::support::patience::until;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What becomes of one request.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// This status.
    Status(u16),
    /// No answer, until the other side gives up.
    Hang,
    /// The connection is closed in the middle of the request.
    Close,
}

/// A request that was accepted.
struct Accepted {
    event: Value,
    body: Vec<u8>,
    timestamp: String,
    signature: String,
}

#[derive(Default)]
struct Shared {
    /// For the first requests; later ones are accepted.
    answers: Mutex<VecDeque<Answer>>,
    accepted: Mutex<Vec<Accepted>>,
    is_ending: AtomicBool,
    /// The connection that is served.
    present: Mutex<Option<TcpStream>>,
}

pub struct Receiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    pub fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { answers: Mutex::new(answers.into()), ..Shared::default() });
        let mut own = Self { address, shared, thread: None };
        own.serve(listener);
        own
    }

    #[allow(clippy::disallowed_methods, reason = "the server waits on sockets")]
    fn serve(&mut self, listener: TcpListener) {
        self.shared.is_ending.store(false, Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        self.thread = Some(std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.is_ending.load(Ordering::Relaxed) {
                    return;
                }
                let stream = stream.unwrap();
                *shared.present.lock().unwrap() = stream.try_clone().ok();
                if !shared.is_ending.load(Ordering::Relaxed) {
                    let _ = shared.connection(stream);
                }
            }
        }));
    }

    /// It is away: connections are refused.
    pub fn stop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        if let Some(present) = self.shared.present.lock().unwrap().take() {
            let _ = present.shutdown(Shutdown::Both);
        }
        let _ = TcpStream::connect(self.address);
        self.thread.take().unwrap().join().unwrap();
    }

    /// It is back at its address.
    pub fn start_again(&mut self) {
        let listener = until(|| TcpListener::bind(self.address).ok(), || "bind".to_owned());
        self.serve(listener);
    }

    pub fn received(&self) -> Vec<Value> {
        let accepted = self.shared.accepted.lock().unwrap();
        accepted.iter().map(|one| one.event.clone()).collect()
    }

    #[track_caller]
    pub fn until(&self, is_enough: impl Fn(&[Value]) -> bool) {
        until(|| is_enough(&self.received()).then_some(()), || format!("{:#?}", self.received()));
    }

    /// Asserts that another program finds the signature right.
    pub fn assert_signed(&self, secret: &str) {
        for one in &*self.shared.accepted.lock().unwrap() {
            let text = [format!("{}.", one.timestamp).into_bytes(), one.body.clone()].concat();
            let Some(digest) = openssl(secret, &text) else {
                eprintln!("SKIPPED: openssl is not installed, no signature was checked");
                return;
            };
            assert_eq!(one.signature, format!("sha256={digest}"));
        }
    }
}

/// The HMAC-SHA256 by OpenSSL; none where that is not installed.
fn openssl(secret: &str, text: &[u8]) -> Option<String> {
    use std::process::{Command, Stdio};
    let mut command = Command::new("openssl");
    command.args(["dgst", "-sha256", "-hmac", secret]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdin.take()?.write_all(text).ok()?;
    let output = child.wait_with_output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    Some(said.trim().rsplit(' ').next()?.to_owned())
}

impl Shared {
    /// Answers the requests of one connection.
    fn connection(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut stream = stream;
        loop {
            let (mut length, mut timestamp, mut signature) = (0, String::new(), String::new());
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            assert_eq!(line, "POST /hook?token=t HTTP/1.1\r\n");
            loop {
                line.clear();
                reader.read_line(&mut line)?;
                let Some((name, value)) = line.trim_end().split_once(": ") else { break };
                match &name.to_ascii_lowercase()[..] {
                    "content-length" => length = value.parse().unwrap(),
                    "skyhaul-timestamp" => value.clone_into(&mut timestamp),
                    "skyhaul-signature" => value.clone_into(&mut signature),
                    _ => {}
                }
            }
            let answer = self.answers.lock().unwrap().pop_front().unwrap_or(Answer::Status(204));
            if let Answer::Close = answer {
                return Ok(());
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            match answer {
                Answer::Hang => {
                    // The other side leaves.
                    let _ = reader.read(&mut [0]);
                    return Ok(());
                }
                Answer::Status(status) => {
                    if status == 204 {
                        let event = serde_json::from_slice(&body).unwrap();
                        let accepted = Accepted { event, body, timestamp, signature };
                        self.accepted.lock().unwrap().push(accepted);
                    }
                    write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n")?;
                }
                Answer::Close => return Ok(()),
            }
        }
    }
}
