use super::*;
use crate::{PairingCall, PairingFailure, PairingStep};
use skyhaul_identity::Identity;

fn card(name: &str, seed: u8) -> PairingCard {
    let fingerprint = Identity::from_seed(&[seed; 32]).unwrap().fingerprint();
    PairingCard::new(name, fingerprint, [format!("{name}.example.org:4740")]).unwrap()
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn desk() -> PairingDesk {
    PairingDesk::new(at(0), card("far", 1), [7; 32])
}

fn call(code: &PairingCode, seed: u8) -> PairingCall {
    PairingCall::new(at(0), code, card("near", 2), [seed; 32])
}

/// Another code of the same number.
fn wrong(code: &PairingCode) -> PairingCode {
    let other = PairingCode::new(code.number(), [1, 2, 3]);
    assert_ne!(&other, code);
    other
}

/// What the two ends did.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    call: Option<Result<PairingCard, PairingFailure>>,
    desk: Vec<PairingEvent>,
    /// All bytes, each direction.
    sent: [Vec<u8>; 2],
    closed: Vec<PairingVisitor>,
}

/// Carries bytes between a call and a desk until both are silent. `change` sees each message on its
/// way, with its direction.
fn run(
    desk: &mut PairingDesk,
    call: &mut PairingCall,
    visitor: PairingVisitor,
    change: &mut dyn FnMut(usize, Vec<u8>) -> Vec<u8>,
) -> Outcome {
    let mut outcome = Outcome::default();
    loop {
        let mut is_silent = true;
        while let Some(step) = call.poll() {
            is_silent = false;
            match step {
                PairingStep::Send(bytes) => {
                    outcome.sent[0].extend_from_slice(&bytes);
                    desk.handle(at(0), visitor, &change(0, bytes));
                }
                PairingStep::Paired(card) => outcome.call = Some(Ok(card)),
                PairingStep::Failed(failure) => outcome.call = Some(Err(failure)),
            }
        }
        while let Some(event) = desk.poll() {
            is_silent = false;
            match event {
                PairingEvent::Send { visitor: to, bytes } if to == visitor => {
                    outcome.sent[1].extend_from_slice(&bytes);
                    call.handle(at(0), &change(1, bytes));
                }
                PairingEvent::Close { visitor } => outcome.closed.push(visitor),
                event => outcome.desk.push(event),
            }
        }
        if is_silent {
            return outcome;
        }
    }
}

fn unchanged(_: usize, bytes: Vec<u8>) -> Vec<u8> {
    bytes
}

fn meet(desk: &mut PairingDesk, call: &mut PairingCall, visitor: PairingVisitor) -> Outcome {
    desk.enter(at(0), visitor);
    run(desk, call, visitor, &mut unchanged)
}

#[test]
fn the_right_code_gives_each_end_the_others_card() {
    let mut desk = desk();
    let mut call = call(&desk.code().clone(), 8);
    let outcome = meet(&mut desk, &mut call, 1);
    assert_eq!(outcome.call, Some(Ok(card("far", 1))));
    assert_eq!(outcome.desk, [PairingEvent::Paired(card("near", 2))]);
    assert_eq!((desk.next_timeout(), call.next_timeout()), (None, None));
    assert_eq!(outcome.closed, [1]);
}

#[test]
fn a_wrong_code_is_void_and_the_next_one_is_another() {
    let mut desk = desk();
    let first = desk.code().clone();
    let outcome = meet(&mut desk, &mut call(&wrong(&first), 8), 1);
    assert_eq!(outcome.call, Some(Err(PairingFailure::Refused(PairingRefusal::WrongCode))));
    assert_eq!(outcome.desk, [PairingEvent::WrongCode { visitor: 1, left: TRIES_MAX - 1 }]);
    assert_ne!(*desk.code(), first);
    // The right code comes too late, and costs no try.
    let outcome = meet(&mut desk, &mut call(&first, 9), 2);
    assert_eq!(outcome.call, Some(Err(PairingFailure::Refused(PairingRefusal::OldCode))));
    assert!(outcome.desk.is_empty());
    let code = desk.code().clone();
    let outcome = meet(&mut desk, &mut call(&code, 10), 3);
    assert_eq!(outcome.call, Some(Ok(card("far", 1))));
    // The pair is made: nobody else is let in.
    let code = desk.code().clone();
    let outcome = meet(&mut desk, &mut call(&code, 11), 4);
    assert_eq!((outcome.call, outcome.closed), (None, vec![4]));
}

#[test]
fn the_desk_closes_after_some_wrong_codes() {
    let mut desk = desk();
    for number in 1..=TRIES_MAX {
        let code = wrong(desk.code());
        let outcome = meet(&mut desk, &mut call(&code, 8), u64::from(number));
        let last = match number {
            TRIES_MAX => PairingEvent::Over(PairingEnd::TooManyTries),
            _ => PairingEvent::WrongCode { visitor: number.into(), left: TRIES_MAX - number },
        };
        assert_eq!(outcome.desk, [last]);
    }
    assert_eq!(desk.next_timeout(), None);
}

#[test]
fn of_two_guessers_at_one_time_only_one_has_a_try() {
    let mut desk = desk();
    let code = desk.code().clone();
    let (mut guesser, mut friend) = (call(&wrong(&code), 8), call(&code, 9));
    desk.enter(at(0), 1);
    desk.enter(at(0), 2);
    // Both have the desk's share before either proves anything.
    for (visitor, call) in [(1, &mut guesser), (2, &mut friend)] {
        let Some(PairingStep::Send(hello)) = call.poll() else { panic!() };
        desk.handle(at(0), visitor, &hello);
        let Some(PairingEvent::Send { bytes, .. }) = desk.poll() else { panic!() };
        call.handle(at(0), &bytes);
    }
    let outcome = run(&mut desk, &mut guesser, 1, &mut unchanged);
    assert_eq!(outcome.call, Some(Err(PairingFailure::Refused(PairingRefusal::WrongCode))));
    let outcome = run(&mut desk, &mut friend, 2, &mut unchanged);
    assert_eq!(outcome.call, Some(Err(PairingFailure::Refused(PairingRefusal::OldCode))));
    assert!(outcome.desk.is_empty());
}

#[test]
fn the_desk_closes_in_time_and_lets_those_finish_who_have_the_code() {
    let mut late = desk();
    late.enter(at(599), 1);
    late.handle_timeout(at(600));
    let events: Vec<_> = std::iter::from_fn(|| late.poll()).collect();
    let over = PairingEvent::Over(PairingEnd::Expired);
    assert_eq!(events, [PairingEvent::Close { visitor: 1 }, over]);
    late.enter(at(601), 2);
    assert_eq!(late.poll(), Some(PairingEvent::Close { visitor: 2 }));
    assert!(PairingEnd::Expired.to_string().contains("10 minutes"));
}

#[test]
fn who_says_nothing_leaves_and_is_in_nobodys_way() {
    let mut desk = desk();
    let strangers = VISITORS_MAX as u64;
    (0..strangers).for_each(|visitor| desk.enter(at(0), visitor));
    // The next takes the place of the first.
    let code = desk.code().clone();
    let outcome = meet(&mut desk, &mut call(&code, 8), 99);
    assert_eq!(outcome.call, Some(Ok(card("far", 1))));
    assert_eq!(outcome.closed[0], 0);

    let mut desk = self::desk();
    desk.enter(at(0), 1);
    assert_eq!(desk.next_timeout(), Some(at(5)));
    // Bytes that are no message yet win no time.
    desk.handle(at(4), 1, &[1]);
    desk.handle_timeout(at(5));
    assert_eq!(desk.poll(), Some(PairingEvent::Close { visitor: 1 }));
    let mut call = call(desk.code(), 8);
    call.handle_timeout(at(10));
    let steps: Vec<_> = std::iter::from_fn(|| call.poll()).collect();
    assert_eq!(steps[1..], [PairingStep::Failed(PairingFailure::TooSlow)]);
}

#[test]
fn who_vanishes_before_it_accepts_leaves_a_new_code() {
    let mut desk = desk();
    let code = desk.code().clone();
    let mut call = call(&code, 8);
    desk.enter(at(0), 1);
    let mut messages = 0;
    let outcome = run(&mut desk, &mut call, 1, &mut |way, bytes| {
        messages += 1;
        // Its last message does not arrive.
        if way == 0 && messages == 5 { Vec::new() } else { bytes }
    });
    assert_eq!(outcome.call, Some(Ok(card("far", 1))));
    // Its proof came in time: it may accept a little later than the code expires.
    desk.handle_closed(1);
    assert_eq!(desk.poll(), Some(PairingEvent::Close { visitor: 1 }));
    assert_eq!(desk.poll(), Some(PairingEvent::Vanished { visitor: 1 }));
    assert_ne!(*desk.code(), code);
}

#[test]
fn who_sends_something_else_than_its_acceptance_leaves_a_new_code() {
    let other = PairingMessage::Reply { share: [0; 33] }.to_bytes();
    let forged = PairingMessage::Done { proof: [0; 32] }.to_bytes();
    for last in [other, forged, b"xxxxx".to_vec()] {
        let mut desk = desk();
        let code = desk.code().clone();
        let mut call = call(&code, 8);
        desk.enter(at(0), 1);
        let mut messages = 0;
        let outcome = run(&mut desk, &mut call, 1, &mut |way, bytes| {
            messages += 1;
            if way == 0 && messages == 5 { last.clone() } else { bytes }
        });
        assert!(!outcome.desk.contains(&PairingEvent::Paired(card("near", 2))));
        assert_ne!(*desk.code(), code);
        // The desk is open for the node that has the new code.
        assert_eq!(desk.next_timeout(), Some(Instant::ZERO + CODE_LIFE));
        let code = desk.code().clone();
        let mut call = self::call(&code, 9);
        assert_eq!(meet(&mut desk, &mut call, 2).call, Some(Ok(card("far", 1))));
    }
}

#[test]
fn a_node_does_not_pair_with_itself() {
    let mut desk = desk();
    let code = desk.code().clone();
    let mut call = PairingCall::new(at(0), &code, card("far", 1), [8; 32]);
    let outcome = meet(&mut desk, &mut call, 1);
    assert_eq!(outcome.call, Some(Err(PairingFailure::Refused(PairingRefusal::SameKey))));
    assert_ne!(*desk.code(), code);
}

/// The bytes of a good exchange, each direction.
fn good() -> [Vec<u8>; 2] {
    let mut desk = desk();
    let mut call = call(&desk.code().clone(), 8);
    meet(&mut desk, &mut call, 1).sent
}

#[test]
fn an_exchange_that_ends_at_any_byte_pairs_nobody_and_costs_no_try() {
    let whole = good();
    for end in 0..whole[0].len() {
        let mut desk = desk();
        let code = desk.code().clone();
        let mut call = call(&code, 8);
        desk.enter(at(0), 1);
        let mut left = end;
        let outcome = run(&mut desk, &mut call, 1, &mut |way, mut bytes| {
            if way == 0 {
                bytes.truncate(left);
                left -= bytes.len();
            }
            bytes
        });
        desk.handle_closed(1);
        let rest: Vec<_> = std::iter::from_fn(|| desk.poll()).collect();
        let all = outcome.desk.iter().chain(&rest);
        let fate: Vec<_> =
            all.filter(|event| !matches!(event, PairingEvent::Close { .. })).collect();
        match fate[..] {
            [] => assert_eq!(*desk.code(), code, "{end}"),
            [PairingEvent::Vanished { .. }] => assert_ne!(*desk.code(), code, "{end}"),
            ref other => panic!("{end}: {other:?}"),
        }
    }
    for end in 0..whole[1].len() {
        let mut desk = desk();
        let mut call = call(&desk.code().clone(), 8);
        desk.enter(at(0), 1);
        let mut left = end;
        let outcome = run(&mut desk, &mut call, 1, &mut |way, mut bytes| {
            if way == 1 {
                bytes.truncate(left);
                left -= bytes.len();
            }
            bytes
        });
        assert_eq!(outcome.call, None, "{end}");
        call.handle_closed();
        assert_eq!(call.poll(), Some(PairingStep::Failed(PairingFailure::Closed)), "{end}");
    }
}

#[test]
fn a_changed_byte_anywhere_pairs_nobody() {
    let whole = good();
    for way in 0..2 {
        for place in 0..whole[way].len() {
            let mut desk = desk();
            let mut call = call(&desk.code().clone(), 8);
            desk.enter(at(0), 1);
            let mut passed = 0;
            let outcome = run(&mut desk, &mut call, 1, &mut |of, mut bytes| {
                if of == way {
                    if let Some(byte) = place.checked_sub(passed).and_then(|at| bytes.get_mut(at)) {
                        *byte ^= 1;
                    }
                    passed += bytes.len();
                }
                bytes
            });
            let is_paired = |event: &PairingEvent| matches!(event, PairingEvent::Paired(_));
            assert!(!outcome.desk.iter().any(is_paired), "{way} {place}");
            // The connecting end cannot know that its last message is changed.
            let is_last = way == 0 && place >= whole[0].len() - 35;
            assert_eq!(matches!(outcome.call, Some(Ok(_))), is_last, "{way} {place}");
        }
    }
}

#[test]
fn a_recorded_exchange_is_of_no_use() {
    let whole = good();
    let mut desk = desk();
    desk.enter(at(0), 1);
    // The desk draws the same code from the same seed, but the recording was made with the share of
    // another exchange.
    desk.random.draw();
    let mut rest = &whole[0][..];
    while let Ok(Some((_, length))) = PairingMessage::read(rest) {
        desk.handle(at(0), 1, &rest[..length]);
        rest = &rest[length..];
    }
    let events: Vec<_> = std::iter::from_fn(|| desk.poll()).collect();
    assert!(events.contains(&PairingEvent::WrongCode { visitor: 1, left: TRIES_MAX - 1 }));
    let mut call = call(self::desk().code(), 9);
    call.handle(at(0), &whole[1][..36]);
    call.handle(at(0), &whole[1][36..]);
    let steps: Vec<_> = std::iter::from_fn(|| call.poll()).collect();
    assert_eq!(steps.last(), Some(&PairingStep::Failed(PairingFailure::WrongAnswer)));
}

#[test]
fn another_protocol_gets_no_answer_and_costs_no_try() {
    let long = vec![1; 5_000];
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"SSH-2.0-x\r\n", b"\x16\x03\x01\x02\0", &long] {
        let mut desk = desk();
        let code = desk.code().clone();
        desk.enter(at(0), 1);
        desk.handle(at(0), 1, bytes);
        let events: Vec<_> = std::iter::from_fn(|| desk.poll()).collect();
        assert_eq!(events.last(), Some(&PairingEvent::Close { visitor: 1 }));
        assert!(events.len() <= 2 && *desk.code() == code, "{events:?}");
    }
}

/// The bytes on docs/reference/wire.md: they change with the protocol's version alone.
#[test]
fn the_messages_are_those_of_the_documentation() {
    use aws_lc_rs::digest::{SHA256, digest};
    let hashes = good().map(|bytes| {
        let hash: String =
            digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        (bytes.len(), hash)
    });
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/wire.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (length, hash) in hashes {
        let row = format!("{length} | `{hash}`");
        assert!(page.contains(&row), "docs/reference/wire.md has no `{row}`");
    }
    assert!(page.contains(&desk().code().to_string()), "{}", desk().code());
}
