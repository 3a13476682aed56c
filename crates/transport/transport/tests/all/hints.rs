//! What is foretold of a path, in virtual time: an outage that is known costs nothing but the
//! path's time.

use skyhaul_lab::world::{Bulk, Sink, World, WorldConfig, WorldPath};
use skyhaul_lab::{PlainChange, PlainLine};
use skyhaul_transport::{
    Block, FlowId, Hint, Outlook, PathId, PathOptions, PathState, PathStats, SessionConfig, Stats,
};
use skyhaul_units::{Duration, Instant, Rate};

type Plain = World<Bulk, Sink>;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn line(rate: u64, one_way: u64) -> PlainLine {
    PlainLine {
        rate: Rate::from_mbps(rate),
        one_way_delay: millis(one_way),
        ..PlainLine::default()
    }
}

fn opened(lines: &[PlainLine]) -> Plain {
    let paths: Vec<WorldPath> = lines.iter().map(|line| WorldPath::new(*line)).collect();
    let mut world =
        World::new(WorldConfig::default(), &paths, 5, Bulk::new(FlowId(1)), Sink::default());
    assert!(world.open());
    world
}

/// Path 0 is out from `begin + 3 s` for four seconds.
fn cut(world: &mut Plain) -> (Instant, Instant) {
    let from = world.now() + millis(3_000);
    world.paths[0].change(from, PlainChange::Hole(millis(4_000)));
    (from, from + millis(4_000))
}

fn stats(world: &Plain, path: u8) -> PathStats {
    let found = world.near.session.paths().iter().find(|(id, _)| *id == PathId(path));
    found.expect("the path is there").1.stats
}

fn state(world: &Plain, path: u8) -> PathState {
    let found = world.near.session.paths().iter().find(|(id, _)| *id == PathId(path));
    found.expect("the path is there").1.state
}

/// Bulk over two paths of which the first is out for a while, foretold or not: what the near
/// session did until two seconds after, and what each path did.
fn through_an_outage(hinted: bool) -> (Stats, [PathStats; 2]) {
    let mut world = opened(&[line(20, 40), line(30, 70)]);
    let (from, until) = cut(&mut world);
    if hinted {
        assert!(world.near.session.hint(PathId(0), [Hint::Outage { from, until }]));
    }
    world.run_until(until + millis(2_000), |_| false);
    (world.near.session.stats(), [stats(&world, 0), stats(&world, 1)])
}

#[test]
fn a_foretold_outage_loses_nothing_and_repeats_nothing() {
    let (foretold, [first, second]) = through_an_outage(true);
    assert_eq!(
        (foretold.sent.symbols_lost, foretold.sent.symbols_overdue, foretold.sent.symbols_repeated),
        (0, 0, 0)
    );
    assert_eq!((first.stalls, second.stalls), (0, 0), "no alarm");
    let (surprise, [first, _]) = through_an_outage(false);
    assert!(surprise.sent.symbols_repeated > 20 && first.stalls > 0, "{surprise:?}");
}

#[test]
fn nothing_goes_out_that_would_not_arrive_and_the_path_is_used_at_once_afterwards() {
    let mut world = opened(&[line(20, 40), line(30, 70)]);
    let (from, until) = cut(&mut world);
    world.near.session.hint(PathId(0), [Hint::Outage { from, until }]);
    world.run_until(from - millis(40), |_| false);
    let before = stats(&world, 0);
    assert!(before.bytes_sent > 6_000_000, "it was in use: {before:?}");
    world.run_until(until - millis(2), |_| false);
    assert_eq!(stats(&world, 0), before, "not even a report");
    assert_eq!(state(&world, 0), PathState::Absent);
    world.run_until(until + millis(500), |_| false);
    assert_eq!(state(&world, 0), PathState::Active);
    let carried = stats(&world, 0).bytes_sent - before.bytes_sent;
    // Half a second at 20 Mbit/s are 1.25 MB.
    assert!(carried > 1_100_000, "{carried} bytes in the first half second");
}

#[test]
fn an_only_path_is_used_up_to_the_end_and_what_arrived_is_not_sent_again() {
    let mut world = opened(&[line(20, 150)]);
    let (from, until) = cut(&mut world);
    world.near.session.hint(PathId(0), [Hint::Outage { from, until }]);
    world.run_until(from - millis(250), |_| false);
    let before = stats(&world, 0).bytes_sent;
    world.run_until(until - millis(2), |_| false);
    let late = stats(&world, 0).bytes_sent - before;
    assert!(late > 100_000, "{late} bytes went although their answers would come late");
    world.run_until(until + millis(3_000), |_| false);
    let done = world.near.session.stats();
    assert_eq!(
        (done.sent.symbols_lost, done.sent.symbols_overdue, done.sent.symbols_repeated),
        (0, 0, 0),
        "{done:?}"
    );
    assert!(done.sent.bytes_reported > 12_000_000, "{done:?}");
}

#[test]
fn a_forecast_counts_with_the_outage_and_with_the_rate_after_it() {
    let mut world = opened(&[line(8, 40)]);
    world.near.user.stop();
    // What bulk has in the buffer takes 70 s.
    world.run_for(millis(80_000), |world| world.near.session.stats().sent.buffer == 0);
    let now = world.now();
    let flow = FlowId(9);
    let session = &mut world.near.session;
    // A megabyte takes a second at 8 Mbit/s.
    let outlook = |session: &mut skyhaul_transport::Session| {
        let forecasts = session.sender().forecasts(now, session.paths(), &[]);
        forecasts
            .into_iter()
            .find(|forecast| forecast.flow == flow)
            .expect("it has something to send")
            .outlook
    };
    let block = Block {
        deadline: Some(millis(100_000)),
        priority: 0,
        ..Block::reliable(flow, vec![7; 1_000_000].into())
    };
    session.send(now, block).expect("there is room");
    let Outlook::OnTime(spare) = outlook(session) else { panic!("{:?}", outlook(session)) };
    let (from, until) = (now + millis(100), now + millis(60_100));
    session.hint(PathId(0), [Hint::Outage { from, until }]);
    let Outlook::OnTime(less) = outlook(session) else { panic!("{:?}", outlook(session)) };
    let cost = spare - less;
    assert!(cost >= millis(60_000) && cost < millis(60_100), "{cost}");
    session
        .hint(PathId(0), [Hint::Rate { from: until, until: None, rate: Rate::from_bps(10_000) }]);
    assert!(matches!(outlook(session), Outlook::LateBy(_)), "{:?}", outlook(session));
    session.hint(PathId(0), [Hint::Withdraw]);
    assert_eq!(outlook(session), Outlook::OnTime(spare));
}

#[test]
fn a_standby_steps_in_before_the_outage_and_steps_back_after_it() {
    let paths = [
        WorldPath::new(line(20, 40)),
        WorldPath {
            options: PathOptions { standby: true, ..PathOptions::default() },
            ..WorldPath::new(line(5, 80))
        },
    ];
    let config = WorldConfig::alike(SessionConfig::default());
    let mut world = World::new(config, &paths, 5, Bulk::new(FlowId(1)), Sink::default());
    assert!(world.open());
    let (from, until) = cut(&mut world);
    world.near.session.hint(PathId(0), [Hint::Outage { from, until }]);
    world.run_until(from - millis(300), |_| false);
    assert!(stats(&world, 1).bytes_sent < 10_000);
    world.run_until(from, |_| false);
    assert!(stats(&world, 1).bytes_sent > 20_000, "{:?}", stats(&world, 1));
    world.run_until(until + millis(300), |_| false);
    let then = stats(&world, 1).bytes_sent;
    world.run_until(until + millis(2_000), |_| false);
    assert!(stats(&world, 1).bytes_sent < then + 50_000);
    assert_eq!(stats(&world, 0).stalls, 0);
}
