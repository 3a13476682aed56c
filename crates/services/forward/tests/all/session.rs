//! Streams over sessions of the transport, on a line in virtual time that loses.

#![allow(clippy::unwrap_used, reason = "test support")]

use skyhaul_channels::{ChannelKey, SessionEnd};
use skyhaul_forward::{Carriage, Event as Told, ForwardStreams};
use skyhaul_lab::{PlainEnd, PlainLine, PlainPath};
use skyhaul_transport::{ClassTree, Event, Opening, Session, SessionConfig, Supply, drive};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};
use std::collections::BTreeMap;

/// Two ends; the first sends, the second accepts all and takes all, but of streams that it leaves
/// alone.
struct World {
    now: Instant,
    sessions: [Session; 2],
    muxes: [ForwardStreams; 2],
    path: PlainPath,
    /// What each stream is still to send.
    left: BTreeMap<ChannelKey, usize>,
    got: BTreeMap<ChannelKey, usize>,
    finished: Vec<ChannelKey>,
    /// Nothing of it is taken.
    stuck: Option<ChannelKey>,
}

/// What waits for the line, at most, as the forwarder on sockets has it.
const AHEAD: u64 = 64 << 10;

impl World {
    fn new(loss: u64) -> Self {
        let line = PlainLine { loss: Probability::of(loss, 100), ..PlainLine::default() };
        let mut sessions = [(); 2].map(|()| Session::new(SessionConfig::default()));
        sessions.iter_mut().for_each(|session| session.open(Opening::default()));
        let mux = |end| ForwardStreams::new(end, &ClassTree::default(), ByteCount::mib(256));
        Self {
            now: Instant::ZERO,
            sessions,
            muxes: [mux(SessionEnd::Calling), mux(SessionEnd::Called)],
            path: PlainPath::new(line, 11),
            left: BTreeMap::new(),
            got: BTreeMap::new(),
            finished: Vec::new(),
            stuck: None,
        }
    }

    fn open(&mut self, len: usize) -> ChannelKey {
        let target = "10.0.0.5:80".parse().unwrap();
        let id = self.muxes[0].open(self.now, target, &Carriage::default()).unwrap();
        self.left.insert(id, len);
        id
    }

    fn run_until(&mut self, deadline: Instant, done: impl Fn(&Self) -> bool) -> bool {
        while self.now < deadline && !done(self) {
            self.pump();
            (0..2).for_each(|side| self.step(side));
            let timeouts = self.sessions.iter().filter_map(Session::next_timeout);
            let arrivals = self.path.ends.iter().filter_map(PlainEnd::next_event);
            let sends = (0..2).filter(|side| self.sessions[*side].has_symbol());
            let sends = sends.map(|side| self.path.ends[side].free_at());
            let tick = self.now + Duration::from_micros(1);
            self.now = timeouts.chain(arrivals).chain(sends).min().unwrap_or(deadline).max(tick);
        }
        done(self)
    }

    /// Reads from applications what the line has room for.
    fn pump(&mut self) {
        let (mux, session) = (&mut self.muxes[0], &mut self.sessions[0]);
        let mut any = false;
        for (id, left) in &mut self.left {
            let len = mux.credit(*id).min(*left).min(32 << 10);
            if len > 0
                && session.is_open()
                && session.sender().waiting(Default::default(), 1).as_u64() < AHEAD
            {
                mux.data(*id, &vec![5; len]);
                *left -= len;
                if *left == 0 {
                    mux.finish(*id);
                }
            }
            any |= *left > 0;
            while session.is_open()
                && let Some(block) = mux.poll_block()
            {
                session.send(self.now, block).unwrap();
            }
        }
        session.sender_mut().set_supply(if any { Supply::Continues } else { Supply::Complete });
    }

    fn step(&mut self, side: usize) {
        let (mux, session) = (&mut self.muxes[side], &mut self.sessions[side]);
        drive(session, &mut self.path.ends[side], self.now);
        while let Some(event) = session.poll() {
            let Event::Block(received) = event else { continue };
            session.release(received.bytes.len());
            mux.receive(self.now, received.id.flow, &received.bytes).unwrap();
        }
        while let Some(event) = mux.poll_event() {
            match event {
                Told::Opened { id, .. } => mux.accept(self.now, id),
                Told::Data(id, bytes) => {
                    *self.got.entry(id).or_default() += bytes.len();
                    if self.stuck != Some(id) {
                        mux.taken(self.now, session.paths().rtt(), id, bytes.len());
                    }
                }
                Told::Finished(id) => {
                    self.finished.push(id);
                    mux.finish(id);
                }
                _ => {}
            }
        }
        while session.is_open()
            && let Some(block) = mux.poll_block()
        {
            session.send(self.now, block).unwrap();
        }
        drive(session, &mut self.path.ends[side], self.now);
        self.path.exchange();
    }
}

/// What the line carries of a datagram's payload, its headers and what is lost taken off: 93 Mbit/s
/// are counted in IP packets, and a symbol has some header of its own.
fn limit(loss: u64) -> Rate {
    Rate::from_mbps(93).scaled(1_425, 1_500).scaled(100 - loss, 100)
}

#[test]
fn one_stream_fills_the_line_through_losses() {
    for loss in [0, 1, 10] {
        let mut world = World::new(loss);
        let id = world.open(200 << 20);
        world.run_until(Instant::from_nanos(3_000_000_000), |_| false);
        let early = world.got[&id];
        world.run_until(Instant::from_nanos(7_000_000_000), |_| false);
        let rate = Rate::over(ByteCount::of(world.got[&id] - early), Duration::from_secs(4));
        let share = rate.as_bps() as f64 / limit(loss).as_bps() as f64;
        let begun = Rate::over(ByteCount::of(early), Duration::from_secs(3));
        println!(
            "{loss} % loss: {rate}, {share:.3} of the limit; {begun} in the first three seconds"
        );
        assert!(share > 0.95, "{loss} %: {share:.3} of the limit");
        assert!(begun.as_bps() * 4 > limit(loss).as_bps(), "{loss} %: begins with {begun}");
    }
}

#[test]
fn a_stream_that_nobody_takes_holds_back_none_beside_it() {
    let mut world = World::new(1);
    let stuck = world.open(200 << 20);
    world.stuck = Some(stuck);
    let amount = 20 << 20;
    let quick = world.open(amount);
    let done =
        world.run_until(Instant::from_nanos(20_000_000_000), |world| world.finished == [quick]);
    assert!(done, "{:?}", world.got);
    assert!(world.got[&stuck] <= 32 << 20, "{} bytes are kept for nobody", world.got[&stuck]);
}
