use super::*;
use crate::{RefusalReason, Rule, SourceStamp, TreeEntryKind};
use proptest::prelude::*;
use skyhaul_units::{Duration, Rate};

fn messages() -> Vec<Message> {
    let path = RelPath::new(b"a/caf\xe9").unwrap();
    let refusal = TransferRefusal::new(RefusalReason::NoSpace, "the disk is full");
    let hash = blake3::hash(b"abc");
    let entry = |kind| Entry {
        path: path.clone(),
        kind,
        mode: 0o640,
        mtime: -5,
        stamp: SourceStamp([7; 16]),
    };
    let kinds = [
        TreeEntryKind::File { size: 1 << 50 },
        TreeEntryKind::Folder,
        TreeEntryKind::Link { target: b"../x".to_vec() },
        TreeEntryKind::Pipe,
    ];
    let entries: Vec<(OfferId, Entry)> = (0..).zip(kinds.map(entry)).collect();
    let no = OfferAnswer::No(refusal.clone());
    let answers = [
        OfferAnswer::Have,
        OfferAnswer::Made,
        OfferAnswer::Send,
        OfferAnswer::Compare(hash),
        no,
        OfferAnswer::Rights,
    ];
    vec![
        Message::Hello(hello(&path)),
        Message::Welcome(Naming::Into),
        Message::Welcome(Naming::As),
        Message::Refused(refusal.clone()),
        Message::Offer(entries.clone()),
        Message::Answers((0..).zip(answers).collect()),
        Message::Held(3, vec![[1; 32]; 3]),
        Message::Small(vec![(1, hash, "abc".into()), (2, hash, Bytes::new())]),
        Message::Data(1, 1 << 40, "bytes".into()),
        Message::End(1, 1 << 40, hash),
        Message::Same(1),
        Message::Abandon(1, refusal.clone()),
        Message::Done(vec![(1, Ok(hash)), (2, Err(refusal.clone()))]),
        Message::Attributes(entries.into_iter().map(|(_, entry)| entry).collect()),
        Message::Missing(path.clone(), refusal),
        Message::Only(path.clone(), b"a".to_vec(), Vec::new(), vec![b"b".to_vec(), b"c".to_vec()]),
        Message::Removed(vec![path.clone()]),
        Message::Finish,
        Message::Finished(10, 2),
        Message::List(path.clone()),
        Message::Names(vec![(1 << 40, b"a.PAN".to_vec()), (0, b"caf\xe9".to_vec())]),
        Message::Names(Vec::new()),
        Message::Read(path.clone(), 1 << 20),
        Message::Move(path.clone(), RelPath::new(b"b").unwrap()),
        Message::Hello(TransferHello { direction: TransferDirection::Ask, ..hello(&path) }),
    ]
}

fn hello(path: &RelPath) -> TransferHello {
    TransferHello {
        direction: TransferDirection::Get,
        options: Options {
            dry_run: true,
            checksum: true,
            delete: true,
            keep: true,
            limit: Some(Rate::from_mbps(5)),
            deadline: Some(Duration::from_secs(3)),
            priority: 2,
        },
        class: "bulk".to_owned(),
        naming: Naming::As,
        target: RelPath::here(),
        sources: vec![path.clone(), RelPath::here()],
        rules: vec![Rule { include: false, pattern: "*.tmp".to_owned() }],
    }
}

#[test]
fn messages_cross_and_no_part_of_one_is_taken_for_another() {
    for message in messages() {
        let block = message.encode();
        assert_eq!(Message::decode(&block).as_ref(), Ok(&message));
        for len in 0..block.len() {
            assert_ne!(Message::decode(&block.slice(..len)).as_ref(), Ok(&message));
        }
    }
}

#[test]
fn packs_of_files_of_any_length_are_taken_whole() {
    for (files, size) in [(2 * ITEMS_MAX + 1, 0), (20_000, 23), (20_000, 25), (50, 64 << 10)] {
        let (mut pack, mut blocks, contents) = (Pack::default(), Vec::new(), vec![7; size]);
        let hash = blake3::hash(&contents);
        for id in 0..files as OfferId {
            if !pack.has_room(size) {
                blocks.extend(pack.take());
            }
            pack.put(id, &hash, &contents);
        }
        blocks.extend(pack.take());
        assert!(pack.is_empty() && pack.take().is_none());
        let mut ids = Vec::new();
        for block in &blocks {
            let Ok(Message::Small(some)) = Message::decode(block) else { panic!("{size} bytes") };
            assert_eq!(Message::Small(some.clone()).encode(), block);
            ids.extend(some.into_iter().map(|(id, _, bytes)| (id, bytes.len())));
        }
        assert!(
            ids.into_iter().eq((0..files as OfferId).map(|id| (id, size))),
            "{files} of {size} bytes"
        );
    }
}

#[test]
fn another_version_is_told_by_its_number() {
    let mut block = Message::Welcome(Naming::Into).encode().to_vec();
    block[2] += 1;
    assert_eq!(Message::decode(&block.into()), Err(WireError::Version(VERSION + 1)));
}

#[test]
fn no_entry_has_a_path_that_leads_elsewhere() {
    let path = RelPath::new(b"abc/d").unwrap();
    let entry = Entry {
        path,
        kind: TreeEntryKind::Folder,
        mode: 0o755,
        mtime: 0,
        stamp: SourceStamp::default(),
    };
    let block = Message::Offer(vec![(1, entry)]).encode().to_vec();
    let at = block.windows(5).position(|part| part == b"abc/d").unwrap();
    for bad in [*b"../ab", *b"/abcd", *b"a/../", *b"ab\0cd"] {
        let mut block = block.clone();
        block[at..at + 5].copy_from_slice(&bad);
        assert!(Message::decode(&block.into()).is_err());
    }
}

#[test]
fn the_length_of_an_offer_is_what_it_takes() {
    for message in messages() {
        if let Message::Offer(entries) = &message {
            let len: usize = entries.iter().map(|(_, entry)| offer_len(entry)).sum();
            assert_eq!(message.encode().len(), 1 + len);
        }
    }
}

proptest! {
    #[test]
    fn what_is_read_is_written_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..200),
        kind in 0u8..22) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        if let Ok(message) = Message::decode(&bytes.into()) {
            prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }
}
