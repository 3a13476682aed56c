//! Programs that await: blocks cross real sockets, memory stays bounded, and ends are told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the two ends of a link wait for each other")]

use crate::support::block_on;
use skyhaul_channels_io::{AppChannelError, AppClient, ClientSetup};
use skyhaul_quic::Identity;
use skyhaul_transport::{Block, FlowId, Outcome, SessionConfig};
use skyhaul_units::{ByteCount, Duration};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake};

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn node(name: &str, seed: u8) -> ClientSetup {
    ClientSetup::new(name, Identity::from_seed(&[seed; 32]).unwrap())
}

fn pair(session: &SessionConfig) -> (AppClient, AppClient) {
    let (station, centre) = (node("station", 1), node("centre", 2));
    let called = ClientSetup {
        session: session.clone(),
        ..centre.trusting([station.identity.fingerprint()])
    };
    let calling = ClientSetup { session: session.clone(), ..station };
    (AppClient::start(calling).unwrap(), AppClient::start(called).unwrap())
}

#[test]
fn a_sender_waits_while_a_receiver_keeps_its_blocks_and_nothing_is_lost() {
    let small = SessionConfig {
        receive_window: ByteCount::kib(256),
        send_buffer: ByteCount::kib(256),
        ..SessionConfig::default()
    };
    let (calling, called) = pair(&small);
    let key = Identity::from_seed(&[2; 32]).unwrap().fingerprint();
    let link = block_on(calling.connect(called.addresses()[0], key)).unwrap();
    let sender = std::thread::spawn(move || {
        block_on(async {
            let mut sent = Vec::new();
            for number in 0..500u32 {
                let bytes = number.to_be_bytes().repeat(2_500).into();
                sent.push(link.send(Block::reliable(FlowId(3), bytes)).await.unwrap());
            }
            for sent in sent {
                assert_eq!(sent.await, Some(Outcome::Delivered));
            }
        });
    });
    let far = block_on(called.accept()).unwrap();
    let mut kept = Vec::new();
    for number in 0..500u32 {
        let incoming = block_on(far.recv()).unwrap();
        assert_eq!(incoming.bytes[..], number.to_be_bytes().repeat(2_500));
        // 20 of 10 kB are most of the window.
        kept.push(incoming);
        if kept.len() == 20 {
            kept.clear();
        }
    }
    drop(kept);
    sender.join().unwrap();
    assert_eq!(
        block_on(far.recv()).map(|incoming| incoming.id),
        None,
        "the far end let go of the link"
    );
}

#[test]
fn another_key_and_a_stopped_node_are_reported() {
    let (calling, called) = pair(&SessionConfig::default());
    let other = Identity::from_seed(&[9; 32]).unwrap().fingerprint();
    let refused = block_on(calling.connect(called.addresses()[0], other)).unwrap_err();
    assert!(
        matches!(&refused, AppChannelError::Closed(reason) if reason.contains("key")),
        "{refused}"
    );

    let key = Identity::from_seed(&[2; 32]).unwrap().fingerprint();
    let link = block_on(calling.connect(called.addresses()[0], key)).unwrap();
    drop(called);
    assert!(block_on(link.recv()).is_none());
    let block = Block::expendable(FlowId(0), Duration::from_secs(1), "late".into());
    assert!(matches!(block_on(link.send(block)), Err(AppChannelError::Closed(_))));
}

#[test]
fn a_program_that_gives_up_waiting_leaves_nothing_behind() {
    let (calling, called) = pair(&SessionConfig::default());
    let key = Identity::from_seed(&[2; 32]).unwrap().fingerprint();
    let thread = Arc::new(Unpark(std::thread::current()));
    let waker = Arc::clone(&thread).into();
    let give_up = |future: &mut dyn FnMut(&mut Context<'_>) -> bool| {
        for _ in 0..3 {
            assert!(future(&mut Context::from_waker(&waker)), "nothing is there yet");
        }
    };
    give_up(&mut |context| pin!(called.accept()).poll(context).is_pending());
    let link = block_on(calling.connect(called.addresses()[0], key)).unwrap();
    give_up(&mut |context| pin!(link.recv()).poll(context).is_pending());
    // The one here and the one in `waker`.
    assert_eq!(Arc::strong_count(&thread), 2);
    // A call that is given up is no session at the far end for longer than it takes to tell it.
    give_up(&mut |context| {
        pin!(calling.connect(called.addresses()[0], key)).poll(context).is_pending()
    });
    assert_eq!(Arc::strong_count(&thread), 2);
    let _first = block_on(called.accept()).unwrap();
    for _ in 0..3 {
        let abandoned = block_on(called.accept()).unwrap();
        assert!(block_on(abandoned.recv()).is_none(), "its caller let go of it");
    }
}

#[test]
fn an_outcome_is_known_after_its_session_is_dropped_and_to_all_that_wait() {
    let (calling, called) = pair(&SessionConfig::default());
    let key = Identity::from_seed(&[2; 32]).unwrap().fingerprint();
    let link = block_on(calling.connect(called.addresses()[0], key)).unwrap();
    let sent = block_on(link.send(Block::reliable(FlowId(0), "whole".into()))).unwrap();
    drop(link);
    let far = block_on(called.accept()).unwrap();
    assert_eq!(block_on(far.recv()).unwrap().bytes, "whole");
    assert!(block_on(far.recv()).is_none(), "the session ends once nothing is under way");
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| block_on(sent.outcome()))).collect();
        for one in waiting {
            assert_eq!(one.join().unwrap(), Some(Outcome::Delivered));
        }
    });
    assert!(block_on(sent.name()).is_some());
    assert_eq!(block_on(sent), Some(Outcome::Delivered));
}
