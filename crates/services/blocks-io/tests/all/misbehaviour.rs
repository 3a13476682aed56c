//! Programs that do what they should not: each costs itself alone, and is named.

use crate::looped::{Service, block_on, bounded, own_uid, until};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketType,
};
use skyhaul_blocks::message::{BlockBody, MESSAGE_MAX};
use skyhaul_blocks::{
    AllowRule, BlockFate, BlockRefusal, BlockRequest, HintRequest, NodeMessage, ProgramHint,
    ProgramLimits, ProgramMessage,
};
use skyhaul_transport::{Block, Outcome};
use skyhaul_units::{ByteCount, FlowId};
use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// A program without the library.
struct Bare(OwnedFd);

impl Bare {
    fn at(service: &Service) -> Self {
        let kind = SocketType::SEQPACKET;
        let socket = rustix::net::socket(AddressFamily::UNIX, kind, None).unwrap();
        rustix::net::connect(&socket, &SocketAddrUnix::new(&service.socket).unwrap()).unwrap();
        Self(socket)
    }

    fn say(&self, bytes: &[u8]) -> bool {
        rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL).is_ok()
    }

    fn hear(&self) -> Option<NodeMessage> {
        let mut room = vec![0; MESSAGE_MAX];
        let (len, _) = rustix::net::recv(&self.0, &mut room[..], RecvFlags::empty()).ok()?;
        (len > 0).then(|| NodeMessage::decode(&room[..len]).unwrap())
    }

    /// One with a session.
    fn calling(service: &Service) -> Self {
        let bare = Self::at(service);
        let (peer, program) = ("mirror".to_owned(), "sink".to_owned());
        let call = ProgramMessage::Call { peer, program, name: "bare".to_owned(), window: 1 };
        assert!(bare.say(&call.encode()));
        assert!(matches!(bare.hear(), Some(NodeMessage::Open { .. })));
        bare
    }

    fn send_block(&self, number: u64, body: BlockBody, descriptor: Option<&OwnedFd>) {
        let head = BlockRequest::reliable(number, 0);
        let bytes = ProgramMessage::Block { head, body }.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<_> = descriptor.iter().map(|one| one.as_fd()).collect();
        if !descriptors.is_empty() {
            beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        let bytes = [IoSlice::new(&bytes)];
        rustix::net::sendmsg(&self.0, &bytes, &mut beside, SendFlags::NOSIGNAL).unwrap();
    }
}

/// A program that takes blocks and counts them.
fn sink(service: &Service) -> std::thread::JoinHandle<usize> {
    let node = service.program("sink");
    node.listen().unwrap();
    std::thread::spawn(move || {
        let session = block_on(node.accept()).unwrap();
        std::iter::from_fn(|| block_on(session.recv())).count()
    })
}

#[test]
fn a_program_that_gives_hints_and_reads_no_answer_is_sent_away() {
    let service = Service::usual();
    let _counting = sink(&service);
    let bare = Bare::calling(&service);
    let hint = HintRequest { number: 1, path: 0, says: ProgramHint::Withdraw };
    let hint = ProgramMessage::Hint(hint).encode();
    // It may hand over as many as the service takes, which ends.
    let given = (0..1_000_000).take_while(|_| bare.say(&hint)).count();
    assert!((2_000..1_000_000).contains(&given), "{given}");
    until("it is named", || {
        let notices = service.notices.lock().unwrap();
        notices.iter().any(|notice| notice.what.contains("read the answers to its hints"))
    });
}

#[test]
fn garbage_ends_the_program_that_sent_it_and_no_other() {
    let service = Service::usual();
    let counting = sink(&service);
    let near = service.program("good");
    let good = block_on(near.connect("mirror", "sink")).unwrap();
    let block = ProgramMessage::Block {
        head: BlockRequest::reliable(1, 0),
        body: BlockBody::Inline("x".into()),
    };
    let mut long = block.encode();
    long.resize(MESSAGE_MAX + 1, 0);
    for garbage in [&b"GET / HTTP/1.1"[..], &[0], &block.encode(), &long, &[1, 0, 2]] {
        let bare = Bare::at(&service);
        assert!(bare.say(garbage));
        assert!(matches!(bare.hear(), Some(NodeMessage::Ended(_))), "{garbage:?}");
        assert_eq!(bare.hear(), None);
    }
    let sent = block_on(good.send(Block::reliable(FlowId(1), "y".into()))).unwrap();
    assert_eq!(block_on(sent), Some(Outcome::Delivered));
    drop(good);
    assert_eq!(counting.join().unwrap(), 1);
    let notices = service.notices.lock().unwrap();
    let named = notices.iter().filter(|notice| notice.what.contains("sent away")).count();
    assert_eq!(named, 1, "once for one user: {notices:?}");
}

#[test]
fn numbers_out_of_order_end_the_session() {
    let service = Service::usual();
    let counting = sink(&service);
    let bare = Bare::calling(&service);
    bare.send_block(1, BlockBody::Inline("x".into()), None);
    bare.send_block(3, BlockBody::Inline("x".into()), None);
    let said: Vec<NodeMessage> = std::iter::from_fn(|| bare.hear()).collect();
    let Some(NodeMessage::Ended(reason)) = said.last() else { panic!("{said:?}") };
    assert_eq!(reason, "block 3 came where block 2 was due");
    assert!(counting.join().unwrap() <= 1);
}

#[test]
fn descriptors_that_may_change_under_the_node_are_refused() {
    let service = Service::usual();
    let _counting = sink(&service);
    let bare = Bare::calling(&service);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[7; 100_000]).unwrap();
    let unsealed = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&unsealed, 100_000).unwrap();
    let refused = BlockFate::Refused(BlockRefusal::Descriptor);
    for (number, descriptor) in [(1, Some(file.into())), (2, Some(unsealed)), (3, None)] {
        bare.send_block(number, BlockBody::Descriptor(100_000), descriptor.as_ref());
        assert_eq!(bare.hear(), Some(NodeMessage::Fates(vec![(number, refused)])));
    }
    bare.send_block(4, BlockBody::Inline("x".into()), None);
    assert_eq!(bare.hear(), Some(NodeMessage::Fates(vec![(4, BlockFate::Delivered)])));
}

#[test]
fn a_program_that_does_not_read_is_not_read_and_others_go_on() {
    let limits = ProgramLimits { each: ByteCount::mib(1), ..ProgramLimits::default() };
    let service = bounded(vec![AllowRule::all(own_uid())], limits);
    let far = service.program("sink");
    far.listen().unwrap();
    let deaf = Bare::calling(&service);
    let session = block_on(far.accept()).unwrap();
    let swallow = std::thread::spawn(move || {
        let mut count = 0;
        while block_on(session.recv()).is_some() {
            count += 1;
        }
        count
    });
    rustix::io::ioctl_fionbio(&deaf.0, true).unwrap();
    // It sends for as long as the node takes anything, and never reads a fate.
    let mut number = 0;
    let mut refused = 0;
    while refused < 100 {
        let head = BlockRequest::reliable(number + 1, 0);
        let body = BlockBody::Inline("x".into());
        match deaf.say(&ProgramMessage::Block { head, body }.encode()) {
            true => (number, refused) = (number + 1, 0),
            false => {
                refused += 1;
                std::thread::park_timeout(std::time::Duration::from_millis(1));
            }
        }
        assert!(number < 100_000, "the node holds fates without a bound");
    }
    let near = service.program("good");
    let good = block_on(near.connect("mirror", "sink")).unwrap();
    let there = block_on(far.accept()).unwrap();
    for _ in 0..100 {
        let sent = block_on(good.send(Block::reliable(FlowId(1), "y".into()))).unwrap();
        assert_eq!(block_on(there.recv()).unwrap().bytes, "y");
        assert_eq!(block_on(sent), Some(Outcome::Delivered));
    }
    // It dies.
    drop(deaf);
    assert!(swallow.join().unwrap() > 0);
    until("its place is free", || {
        service.server.status().iter().all(|program| program.name != "bare")
    });
}
