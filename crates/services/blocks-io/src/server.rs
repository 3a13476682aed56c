//! The node's side: one thread that serves all programs.

use crate::entrance::{Entering, Entrance};
use crate::line::{BlockLine, LineChannel};
use crate::link::{Link, ProgramOwner, Role};
use crate::notices::{EntranceNotice, NoticeLimits, ProgramNotice};
use crate::packet::{self, Room};
use crate::status::ProgramStatus;
use crate::turns::{self, ReadDesk, ReadError, Reading, Wish};
use crate::waiting::Waiting;
use rustix::event::epoll::EventFlags;
use skyhaul_blocks::message::INLINE_MAX;
use skyhaul_blocks::{AllowRule, HintRequest, NodeMessage, ProgramId, ProgramLimits, Programs};
use skyhaul_channels_io::ChannelPhase;
use skyhaul_net::option::{SocketCaller, caller};
use skyhaul_net::{Clock, Waker};
use skyhaul_transport::cost;
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How the service is set up.
pub struct ServerSetup {
    /// The socket file.
    pub socket: PathBuf,
    /// Who may use it.
    pub allow: Vec<AllowRule>,
    /// The bounds of what it holds.
    pub limits: ProgramLimits,
    /// The sessions that it sends in.
    pub lines: Vec<Box<dyn BlockLine>>,
    /// The clock of those sessions.
    pub clock: Clock,
    /// Takes notices about programs; it must not wait.
    pub notify: Box<dyn Fn(ProgramNotice) + Send>,
    /// Takes notices about whether programs can connect; it must not wait.
    pub entrance: Box<dyn Fn(EntranceNotice) + Send>,
}

/// A running service. Dropping it ends it, and removes the socket file.
#[derive(Debug)]
pub struct BlockServer {
    asked: Arc<Asked>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread shares with its owner.
#[derive(Debug)]
struct Asked {
    stop: AtomicBool,
    /// New rules, until the thread has taken them.
    allow: Mutex<Option<Vec<AllowRule>>>,
    status: Mutex<Vec<ProgramStatus>>,
    bell: Waker,
}

struct Server {
    entrance: Entrance,
    setup: ServerSetup,
    asked: Arc<Asked>,
    waiting: Waiting,
    programs: Programs,
    links: BTreeMap<ProgramId, Link>,
    /// The programs that listen, by their name.
    names: BTreeMap<String, ProgramId>,
    /// Those whose socket may have more to read.
    readable: BTreeSet<ProgramId>,
    /// Those that are not read because there is no room.
    full: BTreeSet<ProgramId>,
    /// Those that have hung up.
    hung_up: BTreeSet<ProgramId>,
    /// Those whose socket may take what waits for it.
    writable: BTreeSet<ProgramId>,
    notices: NoticeLimits,
    update_at: Instant,
    /// Whether the status shows a program.
    shows_some: bool,
    room: Room,
}

/// What a program gets that has just come.
struct Granted {
    role: Role,
    /// The classes of its blocks; the first one is the default.
    classes: Vec<String>,
    /// The line of its session, by its place.
    line: usize,
}

/// Programs accepted in one turn.
const ACCEPTS: usize = 16;
/// Between two updates of the status.
const UPDATE: Duration = Duration::from_secs(1);
/// A program that has said nothing for so long is sent away.
const SILENCE: Duration = Duration::from_secs(10);
/// After a turn with work, more is gathered for so long: a turn costs the same for one block and
/// for many.
const GATHER: Duration = Duration::from_micros(500);
impl BlockServer {
    /// Listens at the socket file and starts the thread.
    ///
    /// # Errors
    /// The socket file cannot be made, or another program listens there.
    pub fn start(setup: ServerSetup) -> io::Result<Self> {
        let listener = packet::listen(&setup.socket)?;
        let waiting = Waiting::new(&listener)?;
        let asked = Arc::new(Asked {
            stop: AtomicBool::new(false),
            allow: Mutex::new(Some(setup.allow.clone())),
            status: Mutex::default(),
            bell: waiting.bell(),
        });
        let mut server = Server {
            entrance: Entrance::new(listener),
            programs: Programs::new(setup.limits),
            setup,
            asked: Arc::clone(&asked),
            waiting,
            links: BTreeMap::new(),
            names: BTreeMap::new(),
            readable: BTreeSet::new(),
            full: BTreeSet::new(),
            hung_up: BTreeSet::new(),
            writable: BTreeSet::new(),
            notices: NoticeLimits::default(),
            update_at: Instant::ZERO,
            shows_some: false,
            room: Room::default(),
        };
        let thread =
            std::thread::Builder::new().name("blocks".to_owned()).spawn(move || server.run())?;
        Ok(Self { asked, thread: Some(thread) })
    }

    /// Changes who may use it, at once. Programs of users who may not any more are sent away.
    pub fn allow(&self, rules: Vec<AllowRule>) {
        *self.asked.allow.lock().unwrap_or_else(PoisonError::into_inner) = Some(rules);
        self.asked.bell.wake();
    }

    /// The programs, as of the last second.
    pub fn status(&self) -> Vec<ProgramStatus> {
        self.asked.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for BlockServer {
    fn drop(&mut self) {
        self.asked.stop.store(true, Ordering::Relaxed);
        self.asked.bell.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has reported it on standard error.
            let _ = thread.join();
        }
    }
}

impl Server {
    fn run(&mut self) {
        while !self.asked.stop.load(Ordering::Relaxed) {
            if self.turn() {
                std::thread::park_timeout(GATHER.to_std());
            }
            self.wait();
        }
        for link in self.links.values_mut() {
            link.end("the node has stopped");
        }
        let now = self.setup.clock.now();
        for (id, link) in &mut self.links {
            let _ = link.write(now, *id, &mut self.programs);
        }
        // A file that is gone needs no removal.
        let _ = std::fs::remove_file(&self.setup.socket);
    }

    /// Waits until something happens, and notes which programs have what to do.
    fn wait(&mut self) {
        let update = (!self.links.is_empty() || self.shows_some).then_some(self.update_at);
        let due = self.programs.poll_timeout().into_iter().chain(update);
        let due = due.chain(self.entrance.due()).min();
        let most = match self.readable.is_empty() && self.writable.is_empty() {
            false => Some(Duration::ZERO),
            true => due.map(|due| self.setup.clock.until(due)),
        };
        for (id, flags) in self.waiting.wait(most) {
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                self.readable.insert(id);
            }
            if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
                self.hung_up.insert(id);
            }
            if flags.contains(EventFlags::OUT) {
                self.writable.insert(id);
            }
        }
    }

    /// Does what there is to do. Returns whether there was anything.
    fn turn(&mut self) -> bool {
        let now = self.setup.clock.now();
        self.adopt_rules(now);
        self.accept(now);
        let mut touched = core::mem::take(&mut self.writable);
        self.take_calls(now);
        for id in self.waiting.take_news() {
            self.news(id);
            touched.insert(id);
        }
        self.read(now, &mut touched);
        let had = turns::hand_over(now, &mut self.programs, &self.links);
        let with_fates = self.links.keys().filter(|id| self.programs.has_fates(**id));
        touched.extend(with_fates.copied().collect::<Vec<_>>());
        let had = had || !touched.is_empty();
        for id in touched {
            self.write(now, id);
        }
        self.read_again();
        self.update(now);
        had
    }

    /// Programs that there is room for again are read in the next turn, which follows at once.
    fn read_again(&mut self) {
        for id in core::mem::take(&mut self.full) {
            let Some(link) = self.links.get(&id) else { continue };
            let has_room = match &link.large {
                Some(large) => self.programs.claim(id, cost(large.len)),
                None => self.programs.room(id) >= cost(INLINE_MAX),
            };
            let next = if has_room { &mut self.readable } else { &mut self.full };
            next.insert(id);
        }
    }

    fn adopt_rules(&mut self, now: Instant) {
        let rules = self.asked.allow.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(rules) = rules else { return };
        let own = rustix::process::geteuid().as_raw();
        let is_for_others = rules.iter().any(|rule| rule.uid != own && rule.uid != 0);
        // The kernel refuses others where nobody else is allowed; the rules decide in any case.
        let mode = if is_for_others { 0o666 } else { 0o600 };
        let _ = std::fs::set_permissions(&self.setup.socket, std::fs::Permissions::from_mode(mode));
        for id in self.programs.allow(rules) {
            self.send_away(now, id, "its user may not use the block service any more");
        }
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS {
            let socket = match self.entrance.next(now, &self.waiting) {
                Entering::Program(socket) => socket,
                Entering::Nobody => return,
                Entering::Short(reason) => {
                    return (self.setup.entrance)(EntranceNotice::Short(reason));
                }
                Entering::Again => return (self.setup.entrance)(EntranceNotice::Open),
            };
            let Ok(SocketCaller { uid, pid }) = caller(&socket) else { continue };
            self.admit(now, socket, ProgramOwner { uid, pid });
        }
    }

    /// Admits a program, or tells it why not.
    fn admit(&mut self, now: Instant, socket: OwnedFd, caller: ProgramOwner) -> Option<ProgramId> {
        let id = match self.programs.admit(caller.uid) {
            Ok(id) => id,
            Err(error) => {
                let mut link = Link::new(socket, caller, now, self.waiting.waker(None));
                self.tell(now, caller.uid, &link.title(), &error.to_string());
                link.tell(&NodeMessage::Ended(error.to_string()), None);
                let _ = link.write(now, ProgramId(0), &mut self.programs);
                return None;
            }
        };
        let mut link = Link::new(socket, caller, now, self.waiting.waker(Some(id)));
        let flags = EventFlags::IN;
        if self.waiting.add(&link.socket, id, flags).is_err() {
            self.programs.leave(id);
            return None;
        }
        link.watched = flags;
        self.links.insert(id, link);
        Some(id)
    }

    /// Sessions that far programs have asked for go to the programs that listen.
    fn take_calls(&mut self, now: Instant) {
        let waker = self.waiting.waker(None);
        for place in 0..self.setup.lines.len() {
            for _ in 0..ACCEPTS {
                let Some(line) = self.setup.lines.get(place) else { break };
                let Some((channel, name)) = line.poll_called(&waker) else { break };
                self.called(now, &name, place, channel);
            }
        }
    }

    fn called(&mut self, now: Instant, name: &str, line: usize, channel: Box<dyn LineChannel>) {
        let Some(listening) = self.names.get(name).copied() else { return };
        let Some(link) = self.links.get(&listening).filter(|link| !link.is_waiting()) else {
            // It does not take what it was given before: this one ends, and its caller hears so.
            return;
        };
        let caller = ProgramOwner { uid: link.uid, pid: link.pid };
        let window = link.inbox.window;
        let classes = link.classes.clone();
        let Ok((own, its)) = packet::pair() else { return };
        let Some(id) = self.admit(now, own, caller) else { return };
        if let Some(new) = self.links.get_mut(&id) {
            (new.name, new.classes, new.inbox.window) = (name.to_owned(), classes, window);
            (new.role, new.line) = (Role::Session(channel), line);
        }
        if let Some(link) = self.links.get_mut(&listening) {
            link.tell(&NodeMessage::Session, Some(its));
        }
        self.write(now, listening);
        self.news(id);
        self.write(now, id);
    }

    fn news(&mut self, id: ProgramId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Role::Session(channel) = &link.role else { return };
        match turns::news(id, link, &**channel, &mut self.programs) {
            ChannelPhase::Opening => {}
            ChannelPhase::Open { peer, key } => {
                if link.peer.is_empty() {
                    let fingerprint = key.map_or([0; 32], |key| *key.as_bytes());
                    let classes = link.classes.clone();
                    link.tell(
                        &NodeMessage::Open { peer: peer.clone(), fingerprint, classes },
                        None,
                    );
                    link.peer = peer;
                }
            }
            ChannelPhase::Ended(reason) => link.end(&reason),
        }
    }

    fn read(&mut self, now: Instant, touched: &mut BTreeSet<ProgramId>) {
        let mut turn = core::mem::take(&mut self.readable);
        turn.append(&mut self.full);
        let (programs, room) = (&mut self.programs, &mut self.room);
        let mut desk = ReadDesk { programs, room, wishes: Vec::new(), hints: Vec::new() };
        let (mut gone, mut bad) = (Vec::new(), Vec::new());
        for id in turn {
            let Some(link) = self.links.get_mut(&id) else { continue };
            if link.is_ending() && matches!(link.role, Role::New) {
                continue;
            }
            match turns::read(now, id, link, &mut desk) {
                Ok(Reading::Done) => {}
                Ok(Reading::More) => {
                    self.readable.insert(id);
                }
                Ok(Reading::Full) if !self.hung_up.contains(&id) => {
                    self.full.insert(id);
                }
                // What it has sent last is lost with it where there was no room.
                Ok(Reading::Full) | Err(ReadError::Gone) => gone.push(id),
                Err(error) => bad.push((id, error)),
            }
            touched.insert(id);
        }
        let (wishes, hints) = (desk.wishes, desk.hints);
        gone.into_iter().for_each(|id| self.remove(id));
        bad.into_iter().for_each(|(id, error)| self.send_away(now, id, &error.to_string()));
        for (id, wish) in wishes {
            self.wish(id, wish);
        }
        for (id, hint) in hints {
            self.hint(now, id, &hint);
        }
    }

    /// A program says something of a path, and hears whether it counts.
    fn hint(&mut self, now: Instant, id: ProgramId, hint: &HintRequest) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if link.has_many_waiting() {
            return self.send_away(now, id, "it does not read the answers to its hints");
        }
        let may = self.programs.rule(link.uid).is_some_and(|rule| rule.hints);
        let taken = match self.setup.lines.get(link.line) {
            _ if !may => Err(format!(
                "user {} may not say what paths carry, which changes what all programs have of the \
                line; set `hints = true` in its [[blocks.allow]]",
                link.uid
            )),
            Some(line) if !link.peer.is_empty() => {
                line.hint(&link.peer, &format!("{} (user {})", link.name, link.uid), hint)
            }
            _ => Err("the session is not open yet; give the hint once it is".to_owned()),
        };
        link.tell(&NodeMessage::Hinted { number: hint.number, refusal: taken.err() }, None);
    }

    /// What a program that has just come wants.
    fn wish(&mut self, id: ProgramId, wish: Wish) {
        let Some(link) = self.links.get(&id) else { return };
        let (uid, name) = (link.uid, link.name.clone());
        let granted = match wish {
            Wish::Call { peer, program } => self.call(uid, &peer, &program),
            Wish::Listen => self.listen(id, uid, &name),
        };
        let Some(link) = self.links.get_mut(&id) else { return };
        match granted {
            Ok(Granted { role, classes, line }) => {
                if matches!(role, Role::Listening) {
                    link.tell(&NodeMessage::Listening, None);
                }
                (link.role, link.classes, link.line) = (role, classes, line);
                self.news(id);
            }
            Err(reason) => link.end(&reason),
        }
    }

    fn call(&self, uid: u32, peer: &str, program: &str) -> Result<Granted, String> {
        let mut known = Vec::new();
        for (place, line) in self.setup.lines.iter().enumerate() {
            let peers = line.peers();
            if peers.iter().any(|one| one == peer) {
                let classes = self.classes(uid, &**line)?;
                let role = Role::Session(line.call(peer, classes.clone(), program));
                return Ok(Granted { role, classes, line: place });
            }
            known.extend(peers);
        }
        Err(format!("this node has no peer `{peer}`; its peers are {}", known.join(", ")))
    }

    fn listen(&mut self, id: ProgramId, uid: u32, name: &str) -> Result<Granted, String> {
        if name.is_empty() {
            return Err("a program that listens needs a name".to_owned());
        }
        if self.names.contains_key(name) {
            return Err(format!(
                "another program listens as `{name}`; end it, or use another name"
            ));
        }
        let mut all: Vec<String> = Vec::new();
        for line in &self.setup.lines {
            for class in self.classes(uid, &**line)? {
                if !all.contains(&class) {
                    all.push(class);
                }
            }
        }
        for line in &self.setup.lines {
            line.listen(name, all.clone());
        }
        self.names.insert(name.to_owned(), id);
        Ok(Granted { role: Role::Listening, classes: all, line: 0 })
    }

    /// The classes that a user's blocks may have, the default one first.
    fn classes(&self, uid: u32, line: &dyn BlockLine) -> Result<Vec<String>, String> {
        let all = line.classes();
        let Some(rule) = self.programs.rule(uid) else { return Err("not allowed".to_owned()) };
        let allowed: Vec<String> = all.iter().filter(|one| rule.allows(one)).cloned().collect();
        if allowed.is_empty() && !all.is_empty() {
            let all = all.join(", ");
            return Err(format!(
                "user {uid} may use none of the classes {all}; correct `classes` in \
                [[blocks.allow]]"
            ));
        }
        Ok(allowed)
    }

    fn write(&mut self, now: Instant, id: ProgramId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if link.write(now, id, &mut self.programs).is_err() {
            return self.remove(id);
        }
        let mut wanted = EventFlags::empty();
        if !self.full.contains(&id) && !link.is_ending() {
            wanted |= EventFlags::IN;
        }
        if link.is_waiting() {
            wanted |= EventFlags::OUT;
        }
        if wanted != link.watched {
            link.watched = wanted;
            self.waiting.change(&link.socket, id, wanted);
        }
    }

    /// A program that breaks the rules: it is told why, and named.
    fn send_away(&mut self, now: Instant, id: ProgramId, why: &str) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let (uid, title) = (link.uid, link.title());
        link.tell(&NodeMessage::Ended(why.to_owned()), None);
        let _ = link.write(now, id, &mut self.programs);
        self.remove(id);
        self.tell(now, uid, &title, &format!("sent away: {why}"));
    }

    fn remove(&mut self, id: ProgramId) {
        self.programs.leave(id);
        self.full.remove(&id);
        self.readable.remove(&id);
        self.hung_up.remove(&id);
        let Some(link) = self.links.remove(&id) else { return };
        self.waiting.remove(&link.socket);
        if matches!(link.role, Role::Listening) && self.names.get(&link.name) == Some(&id) {
            self.names.remove(&link.name);
            self.setup.lines.iter().for_each(|line| line.listen_no_more(&link.name));
        }
    }

    fn tell(&mut self, now: Instant, uid: u32, program: &str, what: &str) {
        if let Some(left_out) = self.notices.admit(now, uid) {
            let (program, what) = (program.to_owned(), what.to_owned());
            (self.setup.notify)(ProgramNotice { program, what, left_out });
        }
    }

    /// What is due each second.
    fn update(&mut self, now: Instant) {
        if now < self.update_at {
            return;
        }
        let span = now.since(self.update_at).max(Duration::from_millis(1)).min(UPDATE);
        self.update_at = now + UPDATE;
        let mut status = Vec::new();
        let (mut silent, mut unread) = (Vec::new(), Vec::new());
        for (id, link) in &mut self.links {
            let sent = self.programs.counters(*id);
            let bytes = sent.bytes.saturating_sub(link.seen.bytes);
            link.seen.bytes = sent.bytes;
            link.seen.rate_bps = bytes * 8_000 / span.as_millis().max(1);
            status.push(ProgramStatus {
                name: link.name.clone(),
                pid: link.pid,
                uid: link.uid,
                state: link.state(now),
                peer: link.peer.clone(),
                sent,
                received: link.inbox.blocks,
                received_bytes: link.inbox.bytes,
                rate_bps: link.seen.rate_bps,
            });
            if matches!(link.role, Role::New) && now.since(link.since) > SILENCE {
                silent.push(*id);
            }
            let is_unread = link.is_unread(now);
            if is_unread && !link.seen.is_named_unread {
                unread.push((link.uid, link.title()));
            }
            link.seen.is_named_unread = is_unread;
        }
        self.shows_some = !status.is_empty();
        *self.asked.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
        for id in silent {
            self.send_away(now, id, "it has said nothing for 10 s");
        }
        for (uid, title) in unread {
            let what = "does not read what the node sends it; its blocks wait, other programs' do \
                        not";
            self.tell(now, uid, &title, what);
        }
    }
}
