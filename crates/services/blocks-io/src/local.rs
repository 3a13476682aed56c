//! A program's side: sessions through the block service of this host's node.

use crate::local_link::LocalLink;
use crate::packet::{self, Came, Packet, Room};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_blocks::message::NAME_MAX;
use skyhaul_blocks::{NodeMessage, ProgramMessage};
use skyhaul_channels_io::{AppChannel, AppChannelError, CarriedChannel, CarriedChannels};
use skyhaul_net::Waker;
use skyhaul_units::Duration;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// This host's node, by its block service. Its sessions have the calls of one that the program
/// opens itself. Dropping it ends the listening; sessions go on until they are dropped themselves
/// and their blocks have an outcome.
#[derive(Debug)]
pub struct LocalNode {
    socket: PathBuf,
    name: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    carrier: CarriedChannels,
    stop: AtomicBool,
    bell: Waker,
    /// Connections on their way to the thread.
    new: Mutex<Vec<Connection>>,
}

/// A connection to the service.
#[derive(Debug)]
enum Connection {
    Session(LocalLink),
    Listening(OwnedFd),
}

/// The block service cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Its socket cannot be reached.
    #[error("the block service at {socket} cannot be reached ({error})")]
    Socket {
        /// The socket file.
        socket: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It does not take this program.
    #[error("the block service says: {0}")]
    Refused(String),
    /// A name is not one.
    #[error("`{0}` is no name: it has 1 to {NAME_MAX} bytes and no control characters")]
    Name(String),
    /// The thread cannot start.
    #[error("no thread can be started ({0})")]
    Thread(io::Error),
}

/// The cost of blocks of a session that this program holds and has not taken, at most.
const WINDOW: u64 = 32 << 20;
/// How long the service may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

impl LocalNode {
    /// The node whose block service listens at the socket file, for a program of this name.
    ///
    /// # Errors
    /// Nobody listens there, or the name is none.
    pub fn at(socket: &Path, name: &str) -> Result<Self, LocalError> {
        check_name(name)?;
        // Whether it is there is said now, not at the first session.
        drop(connect(socket)?);
        let bell = Waker::new().map_err(LocalError::Thread)?;
        let shared = Arc::new(Shared {
            carrier: CarriedChannels::new(bell.clone()),
            stop: AtomicBool::new(false),
            bell,
            new: Mutex::default(),
        });
        let its = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("skyhaul-local".to_owned())
            .spawn(move || run(&its))
            .map_err(LocalError::Thread)?;
        let (socket, name) = (socket.to_owned(), name.to_owned());
        Ok(Self { socket, name, shared })
    }

    /// A session with the program that listens as `program` at the node's peer of this name, once
    /// it is open. While the line to the peer is down, it waits.
    ///
    /// # Errors
    /// The service does not take this program or knows no such peer, or no such program listens
    /// there.
    pub async fn connect(&self, peer: &str, program: &str) -> Result<AppChannel, AppChannelError> {
        let closed = |error: LocalError| AppChannelError::Closed(error.to_string());
        check_name(peer).and_then(|()| check_name(program)).map_err(closed)?;
        let socket = connect(&self.socket).map_err(closed)?;
        let (peer, program) = (peer.to_owned(), program.to_owned());
        let call = ProgramMessage::Call { peer, program, name: self.name.clone(), window: WINDOW };
        let (channel, carried) = self.shared.carrier.begin();
        self.begin(Connection::Session(LocalLink::calling(socket, carried, &call)));
        self.shared.carrier.opened(&channel).await?;
        Ok(channel)
    }

    /// Takes sessions of far programs under this program's name from now on:
    /// [`LocalNode::accept`] gives them out.
    ///
    /// # Errors
    /// The service does not take this program, or another one listens under its name.
    pub fn listen(&self) -> Result<(), LocalError> {
        let socket = connect(&self.socket)?;
        let fault = |error| LocalError::Socket { socket: self.socket.clone(), error };
        let listen = ProgramMessage::Listen { name: self.name.clone(), window: WINDOW };
        let packet = Packet { bytes: listen.encode(), descriptor: None };
        packet::send(&socket, &packet).map_err(fault)?;
        match answer(&socket).map_err(fault)? {
            NodeMessage::Listening => {}
            NodeMessage::Ended(reason) => return Err(LocalError::Refused(reason)),
            _ => return Err(LocalError::Refused("it answers what it was not asked".to_owned())),
        }
        self.begin(Connection::Listening(socket));
        Ok(())
    }

    /// The next session of a far program; `None` once the service has stopped.
    pub async fn accept(&self) -> Option<AppChannel> {
        self.shared.carrier.accept().await
    }

    fn begin(&self, connection: Connection) {
        self.shared.new.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        self.shared.bell.wake();
    }
}

impl Drop for LocalNode {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.bell.wake();
    }
}

fn check_name(name: &str) -> Result<(), LocalError> {
    let is_name = (1..=NAME_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if is_name { Ok(()) } else { Err(LocalError::Name(name.escape_debug().to_string())) }
}

fn connect(socket: &Path) -> Result<OwnedFd, LocalError> {
    let fault = |error| LocalError::Socket { socket: socket.to_owned(), error };
    packet::connect(socket).map_err(fault)
}

/// The first answer of the service.
fn answer(socket: &OwnedFd) -> io::Result<NodeMessage> {
    let mut room = Room::default();
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    let wait =
        Timespec { tv_sec: i64::try_from(ANSWER.as_millis() / 1_000).unwrap_or(1), tv_nsec: 0 };
    poll(&mut fds, Some(&wait))?;
    match packet::receive(socket, &mut room)? {
        Came::Message(message, _) => NodeMessage::decode(message).map_err(io::Error::other),
        Came::Nothing => Err(io::ErrorKind::TimedOut.into()),
        Came::TooLong | Came::End => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// The thread: moves blocks between the program and the service.
fn run(shared: &Shared) {
    let (mut links, mut listening) = (Vec::new(), Vec::new());
    let mut room = Room::default();
    loop {
        let is_stopped = shared.stop.load(Ordering::Relaxed);
        let new = core::mem::take(&mut *shared.new.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in new {
            match connection {
                Connection::Session(link) => links.push(link),
                Connection::Listening(socket) => listening.push(socket),
            }
        }
        links.retain_mut(|link: &mut LocalLink| link.turn(&mut room));
        let had = listening.len();
        listening
            .retain(|socket| !is_stopped && take_sessions(shared, socket, &mut links, &mut room));
        if listening.len() < had {
            shared.carrier.stop_accepting();
        }
        shared.carrier.tidy();
        if is_stopped && links.is_empty() {
            return shared.carrier.stop("the local node was dropped");
        }
        wait(shared, &links, &listening);
    }
}

/// Sessions that the service hands over. Returns whether there may be more.
fn take_sessions(
    shared: &Shared,
    socket: &OwnedFd,
    links: &mut Vec<LocalLink>,
    room: &mut Room,
) -> bool {
    loop {
        match packet::receive(socket, room) {
            Ok(Came::Message(message, descriptor)) => {
                let message = NodeMessage::decode(message);
                let (Ok(NodeMessage::Session), Some(socket)) = (message, descriptor) else {
                    return false;
                };
                let carried: CarriedChannel = shared.carrier.arrived();
                links.push(LocalLink::called(socket, carried));
            }
            Ok(Came::Nothing) => return true,
            Ok(Came::TooLong | Came::End) | Err(_) => return false,
        }
    }
}

/// Waits for a socket, or for the program.
fn wait(shared: &Shared, links: &[LocalLink], listening: &[OwnedFd]) {
    if links.iter().any(LocalLink::has_more) || !shared.bell.may_sleep() {
        return;
    }
    let bell = shared.bell.fd();
    let mut fds = vec![PollFd::from_borrowed_fd(bell, PollFlags::IN)];
    for link in links {
        let flags = if link.is_waiting() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        fds.push(PollFd::from_borrowed_fd(link.as_fd(), flags));
    }
    fds.extend(listening.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
    // An interrupted wait is repeated.
    let _ = poll(&mut fds, None);
    let rang = fds.first().map_or(PollFlags::empty(), PollFd::revents);
    shared.bell.slept(rang);
}
