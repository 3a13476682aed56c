//! A line whose one peer is the service itself: what is sent arrives at once.

use skyhaul_blocks::{AllowRule, HintRequest, ProgramLimits};
use skyhaul_blocks_io::{
    ArrivedLineBlock, BlockLine, BlockServer, EntranceNotice, LineChannel, LocalNode,
    ProgramNotice, ServerSetup,
};
use skyhaul_channels_io::{ChannelPhase, PolledBlock};
use skyhaul_net::Clock;
use skyhaul_transport::{BlockId, BlockTiming, Outcome, Received};
use skyhaul_units::{Instant, Seq, Utc};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// What both ends of a channel share.
#[derive(Default)]
struct Pair {
    sides: [Side; 2],
    ended: Option<String>,
}

#[derive(Default)]
struct Side {
    incoming: VecDeque<Received>,
    outcomes: Vec<(u64, Outcome)>,
    waker: Option<Waker>,
    /// Classes and numbers of what was handed over, as the line saw them.
    seq: u64,
}

struct LoopChannel {
    pair: Arc<Mutex<Pair>>,
    side: usize,
}

#[derive(Default)]
struct Calls {
    listens: BTreeMap<String, Vec<String>>,
    waiting: VecDeque<(LoopChannel, String)>,
    waker: Option<Waker>,
    /// What programs have said of the paths.
    hints: Vec<(String, HintRequest)>,
}

#[derive(Default, Clone)]
struct LoopLine(Arc<Mutex<Calls>>);

/// The deepest queue of a receiver.
const DEPTH: usize = 64;

impl BlockLine for LoopLine {
    fn peers(&self) -> Vec<String> {
        vec!["mirror".to_owned()]
    }

    fn classes(&self) -> Vec<String> {
        vec!["usual".to_owned(), "urgent".to_owned()]
    }

    fn call(&self, _: &str, _: Vec<String>, program: &str) -> Box<dyn LineChannel> {
        let pair = Arc::new(Mutex::new(Pair::default()));
        let mut calls = self.0.lock().unwrap();
        if calls.listens.contains_key(program) {
            let far = LoopChannel { pair: Arc::clone(&pair), side: 1 };
            calls.waiting.push_back((far, program.to_owned()));
            calls.waker.take().into_iter().for_each(Waker::wake);
        } else {
            pair.lock().unwrap().ended = Some(format!("no program listens there as `{program}`"));
        }
        Box::new(LoopChannel { pair, side: 0 })
    }

    fn listen(&self, program: &str, classes: Vec<String>) {
        self.0.lock().unwrap().listens.insert(program.to_owned(), classes);
    }

    fn listen_no_more(&self, program: &str) {
        self.0.lock().unwrap().listens.remove(program);
    }

    fn hint(&self, peer: &str, program: &str, hint: &HintRequest) -> Result<(), String> {
        if hint.path > 1 {
            return Err(format!("there is no path {} to {peer}; its paths are 0, 1", hint.path));
        }
        self.0.lock().unwrap().hints.push((program.to_owned(), *hint));
        Ok(())
    }

    fn poll_called(&self, waker: &Waker) -> Option<(Box<dyn LineChannel>, String)> {
        let mut calls = self.0.lock().unwrap();
        let Some((channel, program)) = calls.waiting.pop_front() else {
            calls.waker = Some(waker.clone());
            return None;
        };
        Some((Box::new(channel), program))
    }
}

impl LineChannel for LoopChannel {
    fn poll(&self, waker: &Waker, outcomes: &mut Vec<(u64, Outcome)>) -> ChannelPhase {
        let mut pair = self.pair.lock().unwrap();
        let side = &mut pair.sides[self.side];
        outcomes.append(&mut side.outcomes);
        side.waker = Some(waker.clone());
        match &pair.ended {
            Some(reason) => ChannelPhase::Ended(reason.clone()),
            None => ChannelPhase::Open { peer: "mirror".to_owned(), key: None },
        }
    }

    fn room(&self) -> usize {
        let pair = self.pair.lock().unwrap();
        match pair.ended {
            Some(_) => 0,
            None => DEPTH.saturating_sub(pair.sides[1 - self.side].incoming.len()),
        }
    }

    fn hand_over(&self, blocks: Vec<PolledBlock>) {
        let mut pair = self.pair.lock().unwrap();
        for PolledBlock { number, block, .. } in blocks {
            let side = &mut pair.sides[self.side];
            side.outcomes.push((number, Outcome::Delivered));
            side.seq += 1;
            let id = BlockId { flow: block.flow, seq: Seq(side.seq) };
            let received = Received { id, bytes: block.bytes, timing: timing() };
            pair.sides[1 - self.side].incoming.push_back(received);
        }
        pair.wake();
    }

    fn recv(&self) -> Option<ArrivedLineBlock> {
        let mut pair = self.pair.lock().unwrap();
        let received = pair.sides[self.side].incoming.pop_front()?;
        pair.wake();
        Some(ArrivedLineBlock { received, window: None })
    }
}

impl Drop for LoopChannel {
    fn drop(&mut self) {
        let mut pair = self.pair.lock().unwrap();
        pair.ended.get_or_insert_with(|| "ended by the far end".to_owned());
        pair.wake();
    }
}

impl Pair {
    fn wake(&mut self) {
        self.sides.iter_mut().filter_map(|side| side.waker.take()).for_each(Waker::wake);
    }
}

const fn timing() -> BlockTiming {
    BlockTiming {
        sent: Utc::from_nanos(5),
        last_original: Instant::ZERO,
        complete: Instant::ZERO,
        delivered: Instant::ZERO,
        repaired: false,
    }
}

/// A service in a folder of its own.
pub struct Service {
    pub server: BlockServer,
    pub socket: PathBuf,
    pub notices: Arc<Mutex<Vec<ProgramNotice>>>,
    /// What was said of whether programs can connect.
    pub entrance: Arc<Mutex<Vec<EntranceNotice>>>,
    line: LoopLine,
    _folder: tempfile::TempDir,
}

pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub fn service(allow: Vec<AllowRule>) -> Service {
    bounded(allow, ProgramLimits::default())
}

pub fn bounded(allow: Vec<AllowRule>, limits: ProgramLimits) -> Service {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("blocks.sock");
    let notices: Arc<Mutex<Vec<ProgramNotice>>> = Arc::default();
    let told = Arc::clone(&notices);
    let entrance: Arc<Mutex<Vec<EntranceNotice>>> = Arc::default();
    let said = Arc::clone(&entrance);
    let line = LoopLine::default();
    let server = BlockServer::start(ServerSetup {
        socket: socket.clone(),
        allow,
        limits,
        lines: vec![Box::new(line.clone())],
        clock: Clock::start(),
        notify: Box::new(move |notice| told.lock().unwrap().push(notice)),
        entrance: Box::new(move |notice| said.lock().unwrap().push(notice)),
    })
    .unwrap();
    Service { server, socket, notices, entrance, line, _folder: folder }
}

impl Service {
    pub fn usual() -> Self {
        service(vec![AllowRule::all(own_uid())])
    }

    /// What programs have said of the paths, each with its name for people.
    pub fn hints(&self) -> Vec<(String, HintRequest)> {
        self.line.0.lock().unwrap().hints.clone()
    }

    pub fn program(&self, name: &str) -> LocalNode {
        LocalNode::at(&self.socket, name).unwrap()
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Waits until something is so: for as long as the machine needs.
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if is() {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
    panic!("{what}: not so");
}
