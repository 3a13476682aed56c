//! Programs that do what they should.

use crate::looped::{Service, block_on, own_uid, service, until};
use skyhaul_blocks::{AllowRule, ProgramHint};
use skyhaul_blocks_io::{LocalNode, ProgramState};
use skyhaul_channels_io::{AppChannel, AppChannelError, HintError};
use skyhaul_transport::{Block, ClassId, MAX_BLOCK, Outcome, PathId};
use skyhaul_units::{Duration, FlowId, Probability, Rate};

/// Two programs with a session.
fn talking(service: &Service) -> (LocalNode, LocalNode, AppChannel, AppChannel) {
    let (near, far) = (service.program("camera"), service.program("screen"));
    far.listen().unwrap();
    let here = block_on(near.connect("mirror", "screen")).unwrap();
    let there = block_on(far.accept()).unwrap();
    (near, far, here, there)
}

#[test]
fn blocks_of_every_size_go_both_ways_and_their_fates_come_back() {
    let service = Service::usual();
    let (_near, _far, here, there) = talking(&service);
    assert_eq!((here.peer_name(), there.peer_name()), ("mirror".to_owned(), "mirror".to_owned()));
    for len in [1, 1_000, 65_536, 65_537, 300_000, MAX_BLOCK] {
        for (from, to) in [(&here, &there), (&there, &here)] {
            let mut bytes = vec![7; len];
            bytes[len - 1] = 9;
            let sent = block_on(from.send(Block::reliable(FlowId(5), bytes.clone().into())));
            let came = block_on(to.recv()).unwrap();
            assert_eq!((came.id.flow, &came.bytes[..]), (FlowId(5), &bytes[..]));
            assert_eq!(block_on(sent.unwrap()), Some(Outcome::Delivered));
        }
    }
    assert_eq!(here.stats().sent.blocks_reported, 6);
    assert_eq!(there.stats().received.blocks_delivered, 6);
}

#[test]
fn thousands_of_blocks_arrive_in_order_though_nobody_waits_for_each() {
    let service = Service::usual();
    let (_near, _far, here, there) = talking(&service);
    let sender = std::thread::spawn(move || {
        let send = |place: u32| {
            let block = Block::reliable(FlowId(1), place.to_be_bytes().to_vec().into());
            block_on(here.send(block)).unwrap()
        };
        let sent: Vec<_> = (0..5_000).map(send).collect();
        sent.into_iter().filter_map(block_on).all(|outcome| outcome == Outcome::Delivered)
    });
    for place in 0..5_000u32 {
        assert_eq!(block_on(there.recv()).unwrap().bytes[..], place.to_be_bytes());
    }
    assert!(sender.join().unwrap());
    assert!(block_on(there.recv()).is_none(), "its session was dropped");
}

#[test]
fn a_block_names_one_before_it_and_what_the_node_does_not_take_is_cancelled() {
    let service = Service::usual();
    let (_near, _far, here, _there) = talking(&service);
    let flow = FlowId(1);
    let patient = Duration::from_secs(60);
    let first = block_on(here.send(Block::expendable(flow, patient, "a".into()))).unwrap();
    let name = block_on(first.name());
    assert_eq!(name.map(|name| name.flow), Some(flow));
    let next = Block { depends_on: name, ..Block::expendable(flow, patient, "b".into()) };
    let next = block_on(here.send(next)).unwrap();
    assert_eq!(block_on(next), Some(Outcome::Delivered));
    let beyond = block_on(here.send(Block::reliable(FlowId(1_022), "c".into()))).unwrap();
    assert_eq!(block_on(beyond), Some(Outcome::Cancelled));
}

#[test]
fn a_program_learns_the_classes_that_it_may_use() {
    let classes = Some(vec!["urgent".to_owned()]);
    let service = service(vec![AllowRule { classes, ..AllowRule::all(own_uid()) }]);
    let (_near, _far, here, _there) = talking(&service);
    let tree = here.classes().unwrap();
    assert_eq!(tree.leaves().collect::<Vec<_>>(), [(ClassId(0), "urgent")]);
    let block = Block { class: ClassId(1), ..Block::reliable(FlowId(1), "x".into()) };
    let sent = block_on(here.send(block)).unwrap();
    assert_eq!(block_on(sent), Some(Outcome::Cancelled));
}

#[test]
fn what_a_program_says_of_a_path_goes_to_the_line_and_the_answer_comes_back() {
    let service = Service::usual();
    let (_near, _far, here, there) = talking(&service);
    let (rate, loss) = (Rate::from_mbps(3), Probability::of(1, 50));
    let second = Duration::from_secs(1);
    assert_eq!(block_on(here.hint_rate(PathId(1), rate, Some(second))), Ok(()));
    assert_eq!(block_on(there.hint_loss(PathId(0), loss, second)), Ok(()));
    assert_eq!(block_on(here.withdraw_hints(PathId(1))), Ok(()));
    let refused = block_on(here.hint_rate(PathId(2), rate, None)).unwrap_err();
    let words = "the node says: there is no path 2 to mirror; its paths are 0, 1";
    assert_eq!(refused.to_string(), words);
    let [camera, screen] = ["camera", "screen"].map(|name| format!("{name} (user {})", own_uid()));
    let said = [
        (camera.clone(), 1, ProgramHint::Rate { rate, lasts: Some(second) }),
        (screen, 0, ProgramHint::Loss { loss, lasts: second }),
        (camera, 1, ProgramHint::Withdraw),
    ];
    let taken = service.hints().into_iter().map(|(who, hint)| (who, hint.path, hint.says));
    assert_eq!(taken.collect::<Vec<_>>(), said);
    // Who is not allowed is told what to set, and goes on otherwise.
    service.server.allow(vec![AllowRule { hints: false, ..AllowRule::all(own_uid()) }]);
    until("the rule is adopted", || block_on(here.withdraw_hints(PathId(1))).is_err());
    let refused = block_on(here.hint_rate(PathId(1), rate, None)).unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("set `hints = true` in its [[blocks.allow]]"), "{refused}");
    let sent = block_on(here.send(Block::reliable(FlowId(1), "x".into()))).unwrap();
    assert_eq!(block_on(sent), Some(Outcome::Delivered));
    drop(service);
    until("the service has gone", || here.closed().is_some());
    assert_eq!(block_on(here.withdraw_hints(PathId(1))), Err(HintError::Closed));
}

#[test]
fn who_cannot_have_a_session_is_told_why() {
    let service = Service::usual();
    let near = service.program("camera");
    for (peer, program, why) in [
        ("nobody", "screen", "its peers are mirror"),
        ("mirror", "screen", "no program listens there as `screen`"),
        ("mirror", "two\nlines", "is no name"),
    ] {
        let error = block_on(near.connect(peer, program)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert!(matches!(error, AppChannelError::Closed(_)));
    }
    near.listen().unwrap();
    let other = service.program("camera").listen().unwrap_err();
    assert!(other.to_string().contains("another program listens as `camera`"), "{other}");
    // The name is free again when its program ends.
    drop(near);
    let again = service.program("camera");
    until("the name is free", || again.listen().is_ok());
}

#[test]
fn rules_that_change_apply_at_once_and_the_status_names_programs() {
    let service = Service::usual();
    let (_near, _far, here, there) = talking(&service);
    until("the status shows it", || {
        let programs = service.server.status();
        let is =
            |name: &str, state| programs.iter().any(|one| one.name == name && one.state == state);
        is("camera", ProgramState::Open) && is("screen", ProgramState::Listening)
    });
    service.server.allow(vec![AllowRule::all(own_uid() + 1)]);
    assert!(block_on(here.recv()).is_none());
    assert!(here.closed().is_some_and(|reason| reason.contains("may not use")));
    assert!(block_on(there.recv()).is_none());
    let error = LocalNode::at(&service.socket, "late").unwrap();
    let error = error.listen().unwrap_err();
    assert!(error.to_string().contains("add a [[blocks.allow]]"), "{error}");
}

#[test]
fn the_end_of_the_service_ends_its_sessions_and_its_socket() {
    let service = Service::usual();
    let (_near, far, here, _there) = talking(&service);
    let Service { server, socket, .. } = service;
    drop(server);
    assert!(block_on(here.recv()).is_none());
    assert!(block_on(far.accept()).is_none());
    assert!(!socket.exists());
    assert!(LocalNode::at(&socket, "late").is_err());
}
