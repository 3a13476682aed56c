//! Looks up names on a thread of its own: the system's way to do it waits.

use crate::Waker;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};

/// Looks up names. Its thread ends when it is dropped, after what it is at.
#[derive(Debug)]
pub(super) struct Resolver {
    asked: SyncSender<Question>,
    found: Receiver<Answer>,
}

#[derive(Debug)]
struct Question {
    token: u64,
    host: String,
    port: u16,
}

/// What a name stands for, or a sentence.
#[derive(Debug)]
pub(super) struct Answer {
    pub token: u64,
    pub addresses: Result<Vec<SocketAddr>, String>,
}

/// Names that wait to be looked up; whoever asks beyond is told that the system is busy.
const QUESTIONS_MAX: usize = 1_024;
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

impl Resolver {
    /// Starts the thread; answers wake `waker`.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn start(waker: Waker) -> io::Result<Self> {
        let (asked, questions) = sync_channel::<Question>(QUESTIONS_MAX);
        let (answers, found) = channel();
        let work = move || {
            for Question { token, host, port } in questions {
                let addresses = (host.as_str(), port).to_socket_addrs();
                let addresses = addresses.map(|found| found.take(ADDRESSES_MAX).collect());
                let addresses = addresses.map_err(|error| error.to_string());
                if answers.send(Answer { token, addresses }).is_err() {
                    return;
                }
                waker.wake();
            }
        };
        std::thread::Builder::new().name("skyhaul-resolver".to_owned()).spawn(work)?;
        Ok(Self { asked, found })
    }

    /// Asks for a name's addresses; whether there was room for the question.
    pub fn ask(&self, token: u64, host: &str, port: u16) -> bool {
        let question = Question { token, host: host.to_owned(), port };
        !matches!(
            self.asked.try_send(question),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_))
        )
    }

    /// The next answer.
    pub fn poll(&self) -> Option<Answer> {
        self.found.try_recv().ok()
    }
}
