//! What the three examples share: their command line, a sender that hands over on time, and a
//! receiver that counts.
//!
//! `PROGRAM receive ADDR…` waits for one sender, prints what was in time, and ends. `PROGRAM send
//! SECONDS ADDR…` sends; where several addresses are given, over a path to each of them.
//!
//! Both ends use a key that everybody knows. A program for use has one of its own:
//! [`Identity::generate`].

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program at the edge, with a clock and a terminal"
)]

use skyhaul::{Block, BlockId, FlowId, Identity, Node, Path, Session, Wait};
use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

/// What an example sends.
pub struct Stream {
    pub name: &'static str,
    /// Between two blocks.
    pub period: Duration,
    /// From the hand-over on, a block is worth something for so long.
    pub life: Duration,
    /// A block is worth nothing without the first of its group; a group of one stands alone.
    pub group: u64,
    /// Bytes of the first of a group, and of the others.
    pub sizes: (usize, usize),
    /// 0 goes first.
    pub priority: u8,
}

/// Does what the command line says.
pub fn run(stream: &Stream) -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let addresses =
        |words: &[String]| words.iter().map(|word| word.parse()).collect::<Result<Vec<_>, _>>();
    match words.split_first() {
        Some((word, rest)) if word == "receive" && !rest.is_empty() => {
            receive(stream, &addresses(rest)?)
        }
        Some((word, [seconds, rest @ ..])) if word == "send" && !rest.is_empty() => {
            send(stream, Duration::from_secs(seconds.parse()?), &addresses(rest)?)
        }
        _ => Err("write: receive ADDR:PORT…, or: send SECONDS ADDR:PORT…".into()),
    }
}

fn send(stream: &Stream, span: Duration, addresses: &[SocketAddr]) -> Result<(), Box<dyn Error>> {
    let far = Identity::from_seed(RECEIVER)?.fingerprint();
    let node = Node::named(stream.name, Identity::from_seed(SENDER)?).start()?;
    let session = node.connect(addresses.iter().copied().map(Path::to), far).wait()?;
    let began = Instant::now();
    let mut first_of_group = None;
    let mut under_way = Vec::new();
    for number in 0.. {
        let due = stream.period * number;
        if due >= span {
            break;
        }
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let block = stream.block(u64::from(number), first_of_group)?;
        let sent = session.send(block).wait()?;
        if u64::from(number).is_multiple_of(stream.group) {
            first_of_group = sent.name().wait();
        }
        under_way.push(sent);
    }
    let all = under_way.len() as u64;
    for sent in under_way {
        sent.wait();
    }
    // Reliable: it comes, whatever became of the others.
    let end = Block::reliable(END, all.to_be_bytes().to_vec().into());
    session.send(end).wait()?.wait();
    Ok(())
}

impl Stream {
    fn block(&self, number: u64, first_of_group: Option<BlockId>) -> Result<Block, Box<dyn Error>> {
        let begins = number.is_multiple_of(self.group);
        let mut bytes = vec![0; if begins { self.sizes.0 } else { self.sizes.1 }];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        bytes[8..16].copy_from_slice(&now()?.to_be_bytes());
        let life = skyhaul::Duration::from_millis(u64::try_from(self.life.as_millis())?);
        Ok(Block {
            priority: self.priority,
            depends_on: first_of_group.filter(|_| !begins),
            ..Block::expendable(DATA, life, bytes.into())
        })
    }
}

fn receive(stream: &Stream, addresses: &[SocketAddr]) -> Result<(), Box<dyn Error>> {
    let far = Identity::from_seed(SENDER)?.fingerprint();
    let builder = Node::named(stream.name, Identity::from_seed(RECEIVER)?).trust(far);
    let node = addresses.iter().fold(builder, |builder, address| builder.bind(*address)).start()?;
    println!("{} waits at {}", stream.name, listed(node.addresses()));
    let session = node.accept().wait().ok_or("the node has stopped")?;
    println!("{}", count(stream, &session)?);
    Ok(())
}

/// What was in time, of use, and how long it took.
fn count(stream: &Stream, session: &Session) -> Result<String, Box<dyn Error>> {
    let mut in_time = BTreeMap::new();
    let all = loop {
        let Some(block) = session.recv().wait() else {
            return Err(session.closed().unwrap_or_default().into());
        };
        let word = |at: usize| block.bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
        let number = u64::from_be_bytes(word(0).ok_or("a block is too short")?);
        if block.id.flow == END {
            break number;
        }
        let handed_over = u64::from_be_bytes(word(8).ok_or("a block is too short")?);
        let took = Duration::from_nanos(now()?.saturating_sub(handed_over));
        if took <= stream.life {
            in_time.insert(number, took);
        }
    };
    let of_use =
        in_time.keys().filter(|number| in_time.contains_key(&(*number - *number % stream.group)));
    let mut took: Vec<Duration> = in_time.values().copied().collect();
    took.sort_unstable();
    let median = took.get(took.len() / 2).map_or(0, Duration::as_millis);
    Ok(format!("{}: {} of {all} in time, median {median} ms", stream.name, of_use.count()))
}

fn listed(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" ")
}

/// Nanoseconds of calendar time: the two ends' clocks must agree.
fn now() -> Result<u64, Box<dyn Error>> {
    Ok(u64::try_from(SystemTime::UNIX_EPOCH.elapsed()?.as_nanos())?)
}

const DATA: FlowId = FlowId(0);
const END: FlowId = FlowId(1);
const SENDER: &[u8; 32] = b"a key that everybody knows (one)";
const RECEIVER: &[u8; 32] = b"a key that everybody knows (two)";
