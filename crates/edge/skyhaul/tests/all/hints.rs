//! What a program knows of a path of its session.

use skyhaul::{
    Block, Duration, FlowId, HintError, Identity, Node, Outcome, Path, PathId, Probability, Rate,
    Session, Wait,
};

fn key(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32]).unwrap()
}

/// Waits until the only path is so, for as long as a busy machine needs.
fn until(session: &Session, what: &str, is_so: impl Fn(Probability) -> bool) {
    for _ in 0..12_000 {
        let paths = session.paths();
        if paths.iter().any(|(_, status)| is_so(status.loss)) {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    panic!("{what}: {:?}", session.paths());
}

#[test]
fn a_program_says_the_rate_and_the_loss_of_a_path_and_withdraws_that() {
    let here = "127.0.0.1:0".parse().unwrap();
    let far = Node::named("far", key(2)).bind(here).trust(key(1).fingerprint()).start().unwrap();
    let near = Node::named("near", key(1)).start().unwrap();
    let to = Path::to(far.addresses()[0]);
    let session = near.connect([to], key(2).fingerprint()).wait().unwrap();
    until(&session, "the path is up", |_| true);
    let minute = Duration::from_secs(60);
    // What is planned for is a little less than what was said.
    let [fifth, tenth] = [5, 10].map(|parts| Probability::of(1, parts));
    session.hint_loss(PathId(0), fifth, minute).wait().unwrap();
    until(&session, "repair is planned for the loss", |loss| loss >= tenth);
    let slow = Rate::from_bps(200_000);
    session.hint_rate(PathId(0), slow, Some(minute)).wait().unwrap();
    let block = || Block::reliable(FlowId(0), vec![7; 25_000].into());
    let sent = [block(), block()].map(|block| session.send(block).wait().unwrap());
    let caller = far.accept().wait().unwrap();
    let [first, second] = [(), ()].map(|()| caller.recv().wait().unwrap().timing.complete);
    assert!(sent.map(Wait::wait).iter().all(|outcome| *outcome == Some(Outcome::Delivered)));
    // A second of the rate lies between the two.
    let took = second.since(first);
    assert!(took >= Duration::from_millis(500), "{took:?} for a second of the rate");
    session.withdraw_hints(PathId(0)).wait().unwrap();
    // Without traffic too: nothing is left of what was said.
    until(&session, "nothing is planned for what was withdrawn", |loss| loss < tenth);
    let other = session.hint_rate(PathId(7), slow, None).wait();
    assert_eq!(other, Err(HintError::NoPath(PathId(7))));
    let beyond = session.hint_rate(PathId(0), Rate::from_bps(1), None).wait().unwrap_err();
    assert!(beyond.to_string().contains("a rate of 1 bit/s is out of range"), "{beyond}");
    let whole = Probability::of(1, 1);
    let beyond = session.hint_loss(PathId(0), whole, minute).wait().unwrap_err();
    assert!(beyond.to_string().contains("a loss of 100 % is out of range"), "{beyond}");
    drop(far);
    assert!(session.recv().wait().is_none());
    assert_eq!(session.withdraw_hints(PathId(0)).wait(), Err(HintError::Closed));
}
