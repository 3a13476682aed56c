//! The matrix of a session's states and of all that can happen to it: what each cell does is a
//! snapshot, so that a changed transition shows in review.

use bytes::Bytes;
use skyhaul_transport::wire::Control;
use skyhaul_transport::{
    Block, BlockId, ClassTree, Custody, DownReason, Estimate, Event, FlowId, Hint, Opening,
    PathEvent, PathId, PathOptions, PolicyConfig, RefusalCause, Seq, Session, SessionConfig, Token,
};
use skyhaul_units::{Duration, Instant, Rate};
use std::fmt::Write;

/// The payload of every path here.
const PAYLOAD: usize = 1_138;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// When the event of a cell happens.
const NOW: u64 = 200;

fn opening(name: &str) -> Opening {
    Opening { name: name.to_owned(), custody: vec![Custody::default()], ..Opening::default() }
}

fn hello(window: u64) -> Bytes {
    let Opening { name, spool, custody, flow_base } = opening("far");
    Control::Hello { name, window, flow_base, spool, custody }.encode().into()
}

const WINDOW: u64 = 1 << 20;

fn up(session: &mut Session, path: u8) {
    session.handle(at(1), PathId(path), PathEvent::Up { payload: PAYLOAD });
}

fn control(session: &mut Session, bytes: Bytes) {
    session.handle(at(2), PathId(0), PathEvent::Control(bytes));
}

fn connected() -> Session {
    let mut session = Session::new(SessionConfig::default());
    session.add_path(PathId(0), PathOptions::default());
    up(&mut session, 0);
    session
}

fn opened() -> Session {
    let mut session = connected();
    session.open(opening("near"));
    session
}

/// Both ends have introduced themselves; a block of this end is under way.
fn established() -> Session {
    let mut session = opened();
    control(&mut session, hello(WINDOW));
    session.handle_timeout(at(3));
    session.send(at(3), block()).unwrap();
    drop(sent(&mut session, 4));
    session
}

fn over_two_paths() -> Session {
    let mut session = established();
    up(&mut session, 1);
    session.send(at(5), block()).unwrap();
    drop(sent(&mut session, 5));
    session
}

/// An only path has not answered for longer than it may.
fn silent() -> Session {
    let mut session = established();
    for millis in [50, 100, 150] {
        session.send(at(millis), block()).unwrap();
        drop(sent(&mut session, millis));
    }
    session.handle_timeout(at(5_000));
    session
}

type State = (&'static str, fn() -> Session);

const STATES: &[State] = &[
    ("new", || Session::new(SessionConfig::default())),
    ("connected", connected),
    ("opened here", opened),
    ("greeted there", || {
        let mut session = connected();
        control(&mut session, hello(WINDOW));
        session
    }),
    ("established", established),
    ("over two paths", over_two_paths),
    ("silent", silent),
    ("refused here", || {
        let mut session = established();
        session.refuse(RefusalCause::Told, "enough");
        session
    }),
    ("replaced here", || {
        let mut session = established();
        session.refuse(RefusalCause::Replaced, "another node has the key");
        session
    }),
    ("refused there", || {
        let mut session = established();
        let refusal = Control::Refuse { cause: RefusalCause::Told, reason: "full".to_owned() };
        control(&mut session, refusal.encode().into());
        session
    }),
    ("replaced there", || {
        let mut session = established();
        let refusal = Control::Refuse { cause: RefusalCause::Replaced, reason: "key".to_owned() };
        control(&mut session, refusal.encode().into());
        session
    }),
    ("broken there", || {
        let mut session = established();
        control(&mut session, hello(WINDOW / 2));
        session
    }),
    ("without a path", || {
        let mut session = established();
        session.handle(at(6), PathId(0), PathEvent::Down(DownReason::TimedOut));
        session
    }),
    ("refused before it opened", || {
        let mut session = connected();
        session.refuse(RefusalCause::Told, "unknown key");
        session
    }),
];

type Happening = (&'static str, fn(&mut Session) -> String);

fn on_path(session: &mut Session, event: PathEvent) -> String {
    session.handle(at(NOW), PathId(0), event);
    String::new()
}

fn message(session: &mut Session, message: &Control) -> String {
    on_path(session, PathEvent::Control(message.encode().into()))
}

const HAPPENINGS: &[Happening] = &[
    ("nothing", |_| String::new()),
    ("open", |session| {
        session.open(opening("near"));
        String::new()
    }),
    ("add_path 1", |session| {
        session.add_path(PathId(1), PathOptions { standby: true, ..PathOptions::default() });
        String::new()
    }),
    ("remove_path 0", |session| {
        session.remove_path(PathId(0));
        String::new()
    }),
    ("up", |session| on_path(session, PathEvent::Up { payload: PAYLOAD })),
    ("up, larger", |session| on_path(session, PathEvent::Up { payload: PAYLOAD * 2 })),
    ("up, too small", |session| on_path(session, PathEvent::Up { payload: 100 })),
    ("down", |session| on_path(session, PathEvent::Down(DownReason::TimedOut))),
    ("acked", |session| on_path(session, PathEvent::Acked(Token(0)))),
    ("acked, unknown", |session| on_path(session, PathEvent::Acked(Token(99)))),
    ("lost", |session| on_path(session, PathEvent::Lost(Token(0)))),
    ("datagram of a symbol", |session| on_path(session, PathEvent::Datagram(symbol()))),
    ("datagram of a report", |session| on_path(session, PathEvent::Datagram(report()))),
    ("datagram of garbage", |session| {
        on_path(session, PathEvent::Datagram(Bytes::from_static(&[0xff; 40])))
    }),
    ("hello", |session| on_path(session, PathEvent::Control(hello(WINDOW)))),
    ("another hello", |session| on_path(session, PathEvent::Control(hello(WINDOW * 2)))),
    ("join", |session| message(session, &Control::Join { path: 1, proof: [0; 32] })),
    ("receipt there", |session| {
        message(session, &Control::Receipt { flow: FlowId(0), next: Seq(1) })
    }),
    ("application there", |session| {
        message(session, &Control::Application { body: Bytes::from_static(b"question") })
    }),
    ("refuse there", |session| {
        message(session, &Control::Refuse { cause: RefusalCause::Told, reason: "bye\n".to_owned() })
    }),
    ("replace there", |session| {
        message(
            session,
            &Control::Refuse { cause: RefusalCause::Replaced, reason: "bye".to_owned() },
        )
    }),
    ("refuse and receipt there", |session| {
        let refuse = Control::Refuse { cause: RefusalCause::Told, reason: "bye".to_owned() };
        let mut bytes = refuse.encode();
        bytes.extend(Control::Receipt { flow: FlowId(0), next: Seq(1) }.encode());
        on_path(session, PathEvent::Control(bytes.into()))
    }),
    ("control garbage", |session| {
        on_path(session, PathEvent::Control(Bytes::from_static(&[0xff; 40])))
    }),
    ("time-out", |session| {
        session.handle_timeout(at(NOW));
        String::new()
    }),
    ("late time-out", |session| {
        session.handle_timeout(at(60_000));
        String::new()
    }),
    ("measured", |session| {
        let (rtt, rate) = (Duration::from_millis(40), Rate::from_mbps(8));
        let answered = at(NOW + 5_000);
        session.measured(PathId(0), Estimate { rtt, rate, answered, ..Estimate::default() });
        String::new()
    }),
    ("outage foretold", |session| {
        let taken = session.hint(PathId(0), [Hint::Outage { from: at(0), until: at(9_000) }]);
        taken.to_string()
    }),
    ("send", |session| match session.send(at(NOW), block()) {
        Ok(id) => format!("{id:?}"),
        Err(error) => error.to_string(),
    }),
    ("send, too long", |session| {
        let long = Block::reliable(FlowId(0), Bytes::from(vec![7; 2 << 20]));
        session.send(at(NOW), long).unwrap_err().to_string()
    }),
    ("cancel", |session| session.cancel(BlockId { flow: FlowId(0), seq: Seq(0) }).to_string()),
    ("tell", |session| format!("{:?}", session.control_mut().tell(Bytes::from_static(b"answer")))),
    ("receipt", |session| {
        session.control_mut().receipt(FlowId(0), Seq(1));
        String::new()
    }),
    ("refuse", |session| {
        session.refuse(RefusalCause::Told, "no more");
        String::new()
    }),
    ("replace", |session| {
        session.refuse(RefusalCause::Replaced, "another one");
        String::new()
    }),
    ("share", |session| {
        session.sender_mut().share(ClassTree::default(), PolicyConfig::default());
        String::new()
    }),
];

fn block() -> Block {
    Block::reliable(FlowId(0), Bytes::from(vec![7; 3_000]))
}

/// A symbol of a far end.
fn symbol() -> Bytes {
    let mut far = opened();
    control(&mut far, hello(WINDOW));
    far.handle_timeout(at(3));
    far.send(at(3), block()).unwrap();
    far.poll_datagram(at(4), PathId(0)).unwrap().1
}

/// A report of a far end that has the first symbol.
fn report() -> Bytes {
    let mut far = opened();
    control(&mut far, hello(WINDOW));
    far.handle_timeout(at(3));
    far.handle(at(100), PathId(0), PathEvent::Datagram(symbol()));
    far.handle_timeout(at(150));
    far.poll_datagram(at(150), PathId(0)).unwrap().1
}

/// The kinds of all datagrams that it sends now, by their first byte, with their length.
fn sent(session: &mut Session, millis: u64) -> Vec<String> {
    let mut sent = Vec::new();
    for path in session.paths().fill_order() {
        while let Some((token, datagram)) = session.poll_datagram(at(millis), path) {
            sent.push(format!("{}:{}:{:02x}x{}", path.0, token.0, datagram[0], datagram.len()));
            assert!(sent.len() < 100, "a path is given no end of datagrams");
        }
    }
    sent
}

fn describe(event: &Event) -> String {
    match event {
        Event::Greeted { name, custody, .. } => {
            format!("greeted {name} custody={}", custody.is_some())
        }
        Event::Block(received) => format!("block of {}", received.bytes.len()),
        Event::Settled { id, outcome } => format!("settled {}/{} {outcome:?}", id.flow.0, id.seq.0),
        Event::Custody { flow, next } => format!("custody {} {}", flow.0, next.0),
        Event::Application { body } => format!("application {}", body.len()),
        Event::PathUp(path) => format!("up {}", path.0),
        Event::PathStalled(path) => format!("stalled {}", path.0),
        Event::PathBack(path) => format!("back {}", path.0),
        Event::PathResized(path) => format!("resized {}", path.0),
        Event::PathDown(path, reason) => format!("down {} {reason}", path.0),
        Event::Closed(reason) => format!("closed: {reason}"),
    }
}

/// What a session does and shows after something has happened to it.
fn shown(session: &mut Session) -> String {
    let mut text = String::new();
    let millis = |at: Instant| at.as_nanos() / 1_000;
    let due = session.next_timeout().map(millis);
    let events: Vec<_> =
        std::iter::from_fn(|| session.poll()).map(|event| describe(&event)).collect();
    let paths: Vec<_> = session
        .paths()
        .iter()
        .map(|(id, path)| format!("{}={}", id.0, path.state.name()))
        .collect();
    let open = if session.is_open() { "open" } else { "not open" };
    let _ = write!(
        text,
        "{open}; room {}; next {:?}; symbol {}; held back {}; peer {}; paths {paths:?}",
        session.room().as_u64(),
        due,
        session.has_symbol(),
        session.is_open() && session.sender().is_held_back(),
        session.sender().peer_window().as_u64(),
    );
    let _ = write!(text, "\n    events {events:?}");
    let _ = write!(text, "\n    sent {:?}", sent(session, NOW + 1));
    let early = session.control_mut().wants_close();
    let mut control = Vec::new();
    for path in [PathId(0), PathId(1)] {
        let bytes = session.control_mut().poll(path).to_vec();
        session.control_mut().taken(bytes.len());
        control.push((bytes.len(), bytes.get(4).copied()));
    }
    let close = session.control_mut().wants_close();
    let _ = write!(text, "; control {control:?}; close {early:?} then {close:?}");
    let memory = session.stats().memory;
    let stats = session.stats();
    let _ = write!(
        text,
        "\n    memory {memory}; taken {} symbols {}+{} lost {} overdue {} received {} malformed {}",
        stats.sent.blocks_taken,
        stats.sent.symbols_sent,
        stats.sent.symbols_repeated,
        stats.sent.symbols_lost,
        stats.sent.symbols_overdue,
        stats.received.symbols_received,
        stats.received.malformed,
    );
    text
}

#[test]
fn each_event_in_each_state_does_what_the_matrix_says() {
    for (name, make) in STATES {
        let mut text = String::new();
        for (what, happen) in HAPPENINGS {
            let mut session = make();
            while session.poll().is_some() {}
            let answer = happen(&mut session);
            let arrow = if answer.is_empty() { "" } else { " -> " };
            let _ = writeln!(text, "{what}{arrow}{answer}");
            let _ = writeln!(text, "    {}", shown(&mut session));
        }
        insta::assert_snapshot!(name.replace([' ', ','], "_"), text);
    }
}
