use super::*;
use proptest::prelude::*;

fn head() -> BlockRequest {
    BlockRequest {
        class: Some(2),
        priority: 3,
        depends_on: Some(6),
        useful_alone: true,
        redundant: true,
        ..BlockRequest::expendable(7, 5, Duration::from_millis(250))
    }
}

fn arrived() -> ArrivedHead {
    ArrivedHead {
        flow: 5,
        seq: 9,
        sent: Utc::from_nanos(-3),
        last_original: Instant::from_nanos(1),
        complete: Instant::from_nanos(2),
        delivered: Instant::from_nanos(3),
        repaired: true,
    }
}

const fn loss(percent: u32) -> HintRequest {
    let loss = Probability::from_ppb(percent * 10_000_000);
    let says = ProgramHint::Loss { loss, lasts: Duration::from_millis(250) };
    HintRequest { number: 7, path: 1, says }
}

const fn hint_rate(lasts: Option<Duration>) -> ProgramMessage {
    let says = ProgramHint::Rate { rate: Rate::from_mbps(2), lasts };
    ProgramMessage::Hint(HintRequest { number: u64::MAX, path: 255, says })
}

#[test]
fn every_message_is_read_as_it_was_written() {
    let inline = BlockBody::Inline("abc".into());
    let (peer, program) = ("far".to_owned(), "video".to_owned());
    for message in [
        ProgramMessage::Call { peer, program, name: "camera".to_owned(), window: 1 << 25 },
        ProgramMessage::Listen { name: "video".to_owned(), window: 9 },
        ProgramMessage::Block { head: head(), body: inline.clone() },
        ProgramMessage::Block {
            head: BlockRequest::reliable(1, 0),
            body: BlockBody::Descriptor(1 << 20),
        },
        ProgramMessage::Taken(12),
        ProgramMessage::Hint(HintRequest { number: 4, path: 1, says: ProgramHint::Withdraw }),
        ProgramMessage::Hint(loss(20)),
        hint_rate(None),
        hint_rate(Some(Duration::from_secs(5))),
    ] {
        assert_eq!(ProgramMessage::decode(&message.encode()), Ok(message));
    }
    let refused = BlockRefusal::ALL.map(BlockFate::Refused);
    let plain = [BlockFate::Delivered, BlockFate::Expired, BlockFate::Cancelled, BlockFate::Sent];
    let fates = plain.into_iter().chain(refused).zip(1..).map(|(fate, number)| (number, fate));
    let classes = vec!["voice".to_owned(), "bulk".to_owned()];
    for message in [
        NodeMessage::Open { peer: "far".to_owned(), fingerprint: [7; 32], classes },
        NodeMessage::Ended("the session has ended".to_owned()),
        NodeMessage::Fates(fates.collect()),
        NodeMessage::Arrived { head: arrived(), body: inline },
        NodeMessage::Arrived { head: arrived(), body: BlockBody::Descriptor(70_000) },
        NodeMessage::Listening,
        NodeMessage::Session,
        NodeMessage::Hinted { number: 4, refusal: None },
        NodeMessage::Hinted { number: 5, refusal: Some("there is no path 7".to_owned()) },
    ] {
        assert_eq!(NodeMessage::decode(&message.encode()), Ok(message));
    }
}

/// The bytes of the page `docs/reference/blocks.md`.
#[test]
fn a_block_is_written_as_the_page_says() {
    let body = BlockBody::Inline("sky".into());
    let bytes = ProgramMessage::Block { head: head(), body }.encode();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let [number, flow, class] = ["0000000000000007", "00000005", "0002"];
    let rest = "000000000ee6b2800000000000000006";
    assert_eq!(hex, format!("03{number}{flow}{class}0307{rest}00000003736b79"));
}

/// As is this.
#[test]
fn a_hint_is_written_as_the_page_says() {
    let bytes = ProgramMessage::Hint(loss(2)).encode();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "05000000000000000701020000000001312d00000000000ee6b280");
}

#[test]
fn a_hint_that_cannot_be_is_refused() {
    // A loss of more than everything, a loss without an end, a kind that is none.
    for (at, byte) in [(11, 1), (19, 0), (10, 9)] {
        let mut bytes = ProgramMessage::Hint(loss(2)).encode();
        bytes[at] = byte;
        if at == 19 {
            bytes[19..].fill(0);
        }
        assert!(ProgramMessage::decode(&bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn what_is_no_message_is_refused() {
    let block = ProgramMessage::Block { head: head(), body: BlockBody::Inline("abc".into()) };
    let block = block.encode();
    let mut longer = block.clone();
    longer.push(0);
    for message in [&b""[..], &[0], &[9, 9], &block[..block.len() - 1], &longer, &[4, 0, 0]] {
        assert!(matches!(ProgramMessage::decode(message), Err(BadMessage::Unreadable { .. })));
        assert!(matches!(NodeMessage::decode(message), Err(BadMessage::Unreadable { .. })));
    }
    let mut other = ProgramMessage::Listen { name: "a".to_owned(), window: 1 }.encode();
    other[2] = 2;
    assert_eq!(ProgramMessage::decode(&other), Err(BadMessage::Version(2)));
    let name = "two\nlines".to_owned();
    let lines = ProgramMessage::Listen { name, window: 1 }.encode();
    assert!(ProgramMessage::decode(&lines).is_err());
}

#[test]
fn the_longest_deadline_overflows_nowhere() {
    let mut bytes =
        ProgramMessage::Block { head: head(), body: BlockBody::Inline("a".into()) }.encode();
    bytes[17..25].copy_from_slice(&[0xff; 8]);
    let Ok(ProgramMessage::Block { head, .. }) = ProgramMessage::decode(&bytes) else {
        panic!("it is a block");
    };
    let late = Instant::from_nanos(u64::MAX / 2);
    assert!(head.deadline.is_some_and(|deadline| late + deadline > late));
}

proptest! {
    #[test]
    fn any_bytes_are_read_the_same_again(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = ProgramMessage::decode(&bytes) {
            prop_assert_eq!(ProgramMessage::decode(&message.encode()), Ok(message));
        }
        if let Ok(message) = NodeMessage::decode(&bytes) {
            prop_assert_eq!(NodeMessage::decode(&message.encode()), Ok(message));
        }
    }
}
