//! A channel whose spool is behind.

use super::*;
use crate::alarms::Alarms;
use crate::station::board::StationBoard;
use crate::station::routing;
use crate::status::ChannelStatus;
use skyhaul_ccsds::mission::MissionSet;
use skyhaul_ccsds::sync::SyncConfig;
use skyhaul_net::Waker;
use skyhaul_records::payload::BlockHead;
use skyhaul_records::{Record, RecordReader};
use skyhaul_store::{Spool, SpoolConfig, SpoolDraw, sim::SimDisk};
use skyhaul_units::ByteCount;
use std::net::UdpSocket;

const CADU: usize = 1_024;
/// Less than a whole block, in more blocks of their own than the queue has room for.
const CADUS: usize = 100;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// Regression: blocks of a few milliseconds filled the queue while a disk stalled for half a
/// second; then the channel waited, and the kernel dropped the datagrams of its input.
#[test]
fn a_live_input_is_read_while_the_spool_is_behind_and_nothing_is_lost() {
    let state = tempfile::tempdir().unwrap();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!(
        "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"s\"\n[[peer]]\nname = \"c\"\naddresses = \
         [\"127.0.0.1:9\"]\nfingerprints = [\"SHA256:{}\"]\n[[destination]]\nto = \"node:c\"\n\
         [[channel]]\nname = \"x\"\ninput = \"udp:{port}\"\nsilence = \"600 s\"\n",
        "a".repeat(64)
    );
    let config = skyhaul_config::parse(&text, "node.toml".as_ref()).unwrap().station.unwrap();
    let clock = Clock::start();
    let disk = Arc::new(SimDisk::new(ByteCount::mib(256)));
    let settings = SpoolConfig {
        max_size: ByteCount::mib(8),
        segment_size: ByteCount::mib(1),
        ..SpoolConfig::default()
    };
    let mut spool = Spool::open(disk.clone(), settings, clock.utc(), SpoolDraw([7; 24])).unwrap();
    let routing = routing::to_one_centre(&mut spool);
    let board = StationBoard::new("s".to_owned(), vec![ChannelStatus::default()], Vec::new());
    let (alarms, waker) = (Alarms::quiet(clock), Waker::new().unwrap());
    let shared = Arc::new(StationShared::new(board, routing, spool, alarms, waker));
    let (blocks, queue) = sync_channel(2);
    let context = ChannelContext {
        shared: shared.clone(),
        disk,
        blocks,
        clock,
        missions: MissionSet::built_in(),
        gather: Duration::from_millis(1),
        sync: SyncConfig::default(),
        handed: Arc::default(),
    };
    let channel = config.channel[0].clone();
    let runner = ChannelRunner::open(0, channel, state.path(), context).unwrap();
    let running = crate::services::thread("channel", move || drop(runner.run())).unwrap();
    let file = "../../../testdata/cadu/npp.20241206T173815.dat";
    let cadus = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let feeder = UdpSocket::bind("127.0.0.1:0").unwrap();
    let read = || {
        let mut bytes = 0;
        shared.board.channel(0, |shown| bytes = shown.bytes);
        bytes
    };
    // Nobody takes anything from the queue.
    for cadu in cadus.chunks(CADU).take(CADUS) {
        feeder.send_to(cadu, port).unwrap();
        std::thread::park_timeout(PAUSE);
    }
    let mut looks = 0;
    while read() < (CADUS * CADU) as u64 {
        looks += 1;
        assert!(looks < 4_000, "{} bytes were read in 20 s", read());
        std::thread::park_timeout(PAUSE);
    }
    shared.shutdown.request();
    let (mut frames, mut count) = (0, 0);
    for item in queue {
        let ToSpool::Block(block) = item else { continue };
        count += 1;
        let (_, content) = BlockHead::decode(&block.payload).unwrap();
        let records = content.records().unwrap();
        let (mut reader, mut records) = (RecordReader::new(), &records[..]);
        while let Ok(Some(record)) = reader.read(&mut records) {
            frames += usize::from(matches!(record, Record::Frame(_)));
        }
    }
    running.join().unwrap();
    assert!(frames >= CADUS - 2, "{frames} frames in {count} blocks");
    assert!(count < 12, "{count} blocks: they grew while the spool was behind");
}
