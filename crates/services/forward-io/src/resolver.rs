//! Name look-ups, on a thread of their own because the system's call blocks.

use crate::refusal::RequestRefusal;
use skyhaul_forward::ConnectRefusal;
use skyhaul_net::Waker;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};

/// Name look-ups. The thread starts with the first one.
#[derive(Debug)]
pub(super) struct NameLookups {
    waker: Waker,
    resolver: Option<Resolver>,
}

/// The thread. It ends when this is dropped, after the look-up in progress.
#[derive(Debug)]
struct Resolver {
    asked: SyncSender<Question>,
    found: Receiver<Found>,
}

#[derive(Debug)]
struct Question {
    token: u64,
    host: String,
    port: u16,
}

#[derive(Debug)]
struct Found {
    token: u64,
    addresses: Result<Vec<SocketAddr>, String>,
}

/// The result of a look-up.
#[derive(Debug)]
pub(super) struct Answer {
    pub token: u64,
    /// At least one address.
    pub addresses: Result<Vec<SocketAddr>, RequestRefusal>,
}

/// Names that wait to be looked up; a request beyond is refused as busy.
const QUESTIONS_MAX: usize = 1_024;
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

impl NameLookups {
    /// Each result wakes `waker`.
    pub const fn new(waker: Waker) -> Self {
        Self { waker, resolver: None }
    }

    /// Begins a look-up. Returns false where too many wait, or the system has no more threads.
    pub fn ask(&mut self, token: u64, host: &str, port: u16) -> bool {
        if self.resolver.is_none() {
            self.resolver = Resolver::start(self.waker.clone()).ok();
        }
        self.resolver.as_ref().is_some_and(|resolver| resolver.ask(token, host, port))
    }

    /// The next result.
    pub fn poll(&self) -> Option<Answer> {
        let Found { token, addresses } = self.resolver.as_ref()?.found.try_recv().ok()?;
        let addresses = match addresses {
            Ok(addresses) if addresses.is_empty() => Err("the name has no address".to_owned()),
            addresses => addresses,
        };
        let addresses =
            addresses.map_err(|error| RequestRefusal::new(ConnectRefusal::NameUnknown, &error));
        Some(Answer { token, addresses })
    }
}

impl Resolver {
    fn start(waker: Waker) -> io::Result<Self> {
        let (asked, questions) = sync_channel::<Question>(QUESTIONS_MAX);
        let (answers, found) = channel();
        let work = move || {
            for Question { token, host, port } in questions {
                let addresses = (host.as_str(), port).to_socket_addrs();
                let addresses = addresses.map(|found| found.take(ADDRESSES_MAX).collect());
                let addresses = addresses.map_err(|error| error.to_string());
                if answers.send(Found { token, addresses }).is_err() {
                    return;
                }
                waker.wake();
            }
        };
        std::thread::Builder::new().name("skyhaul-resolver".to_owned()).spawn(work)?;
        Ok(Self { asked, found })
    }

    fn ask(&self, token: u64, host: &str, port: u16) -> bool {
        let question = Question { token, host: host.to_owned(), port };
        !matches!(
            self.asked.try_send(question),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_))
        )
    }
}
