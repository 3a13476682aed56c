//! What the server waits for: sockets, and channels with news.

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFlags, Timespec};
use skyhaul_blocks::ProgramId;
use skyhaul_net::Waker;
use skyhaul_units::Duration;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

/// The sockets and channels of a server.
#[derive(Debug)]
pub(crate) struct Waiting {
    epoll: OwnedFd,
    news: Arc<News>,
}

/// Whose channels have news.
#[derive(Debug)]
struct News {
    /// No more than there are programs.
    of: Mutex<BTreeSet<u64>>,
    bell: Waker,
}

/// Wakes the thread for one program's channel.
struct ChannelWaker {
    of: u64,
    news: Arc<News>,
}

/// The token of the listening socket; programs have theirs from 1.
const LISTENER: u64 = 0;
/// The token of the bell; also the name under which lines tell of calls.
const BELL: u64 = u64::MAX;
/// Events of one wait.
const EVENTS: usize = 64;

impl Wake for ChannelWaker {
    fn wake(self: Arc<Self>) {
        self.news.of.lock().unwrap_or_else(PoisonError::into_inner).insert(self.of);
        self.news.bell.wake();
    }
}

impl Waiting {
    /// For programs that connect at `listener`.
    pub fn new(listener: &OwnedFd) -> io::Result<Self> {
        let news = Arc::new(News { of: Mutex::default(), bell: Waker::new()? });
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, news.bell.fd(), EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Self { epoll, news })
    }

    /// Ends a wait.
    pub fn bell(&self) -> Waker {
        self.news.bell.clone()
    }

    /// Notes news of a program's channel; of a line where there is no program.
    pub fn waker(&self, of: Option<ProgramId>) -> std::task::Waker {
        let of = of.map_or(BELL, |id| id.0);
        Arc::new(ChannelWaker { of, news: Arc::clone(&self.news) }).into()
    }

    /// The programs whose channels have news since the last call.
    pub fn take_news(&self) -> BTreeSet<ProgramId> {
        let mut of = self.news.of.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::take(&mut *of).into_iter().map(ProgramId).collect()
    }

    /// Watches the listening socket again.
    pub fn listen(&self, listener: &OwnedFd) {
        self.watch_listener(listener, EventFlags::IN);
    }

    /// Stops watching the listening socket.
    pub fn ignore(&self, listener: &OwnedFd) {
        self.watch_listener(listener, EventFlags::empty());
    }

    fn watch_listener(&self, listener: &OwnedFd, flags: EventFlags) {
        // It is watched from the start: nothing else can be wrong.
        let _ = epoll::modify(&self.epoll, listener, EventData::new_u64(LISTENER), flags);
    }

    /// Watches a program's socket.
    pub fn add(&self, socket: impl AsFd, id: ProgramId, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(id.0), flags)?)
    }

    /// Watches it for something else.
    pub fn change(&self, socket: impl AsFd, id: ProgramId, flags: EventFlags) {
        // It is watched: nothing else can be wrong.
        let _ = epoll::modify(&self.epoll, socket, EventData::new_u64(id.0), flags);
    }

    /// Watches it no more.
    pub fn remove(&self, socket: impl AsFd) {
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits, for this long at most. Returns the programs whose sockets are ready, and for what.
    pub fn wait(&self, most: Option<Duration>) -> Vec<(ProgramId, EventFlags)> {
        let bell = &self.news.bell;
        let may_sleep = bell.may_sleep();
        let most = if may_sleep { most } else { Some(Duration::ZERO) };
        let spec = most.map(|most| {
            let most = most.to_std();
            Timespec {
                tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: most.subsec_nanos().into(),
            }
        });
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(BELL) };
        let mut events = [none; EVENTS];
        let count = epoll::wait(&self.epoll, &mut events, spec.as_ref()).unwrap_or(0);
        let (events, token) = (&events[..count], |event: &Event| event.data.u64());
        if may_sleep {
            let rang = events.iter().any(|event| token(event) == BELL);
            bell.slept(if rang { PollFlags::IN } else { PollFlags::empty() });
        }
        let programs = events.iter().filter(|event| ![LISTENER, BELL].contains(&token(event)));
        programs.map(|event| (ProgramId(token(event)), event.flags)).collect()
    }
}
