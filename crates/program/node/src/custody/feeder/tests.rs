//! Lanes: what is urgent overtakes what is not, whatever was written first; nothing is given twice.

use super::*;
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame, Quality};
use skyhaul_config::{CatchUp, SharingRules};
use skyhaul_level0::standby::{
    ChannelMatch, DeliveredContact, EdgeFrame, FrameMark, StandbyReport,
};
use skyhaul_records::payload::BlockContent;
use skyhaul_records::{Open, Record, RecordWriter};
use skyhaul_store::sim::SimDisk;
use skyhaul_store::{DestinationRole, Held, Since, SpoolConfig, SpoolDestination, SpoolDraw, mark};
use skyhaul_transport::{ClassId, ClassesConfig, Event, Opening, PathEvent, PathId, SessionConfig};
use skyhaul_units::Duration;
use std::sync::Arc;

const NOW: Utc = Utc::from_micros(1_790_000_000_000_000);
const BUFFER: ByteCount = ByteCount::kib(400);
const TENTH: Duration = Duration::from_millis(100);

fn sharing() -> LineSharing {
    sharing_with(None)
}

/// Contacts of `fast` go first, and within 30 s.
fn sharing_with(catch_up: Option<CatchUp>) -> LineSharing {
    let classes = "[[class]]\nname = \"bulk\"\n[[class]]\nname = \"quick\"\n";
    let config: ClassesConfig = toml::from_str(classes).unwrap();
    let fast = toml::from_str("of = \"contacts\"\nchannel = [\"fast\"]").unwrap();
    let deadline = Some(Duration::from_secs(30));
    let quick = SendingTerms { class: ClassId(1), priority: 1, deadline };
    let rules =
        SharingRules { subscriptions: vec![(fast, quick)], catch_up, ..SharingRules::default() };
    LineSharing::new(config, skyhaul_transport::PolicyConfig::default(), rules).unwrap()
}

fn payload(channel: &str, number: u8) -> Vec<u8> {
    let mut payload = Vec::new();
    let head = BlockHead {
        closed: NOW,
        position: BitPosition::START,
        set_aside: 0,
        corrected_symbols: 0,
        channel: channel.to_owned(),
        mission: String::new(),
        frames: Vec::new(),
        hops: Vec::new(),
    };
    head.encode(BlockContent::Records(&[]), &mut payload);
    payload.resize(20_000, number);
    payload
}

/// A spool with 60 blocks of a slow contact, and then 10 of a fast one.
fn spool() -> (Spool, [FlowId; 2]) {
    let config = SpoolConfig {
        max_size: ByteCount::mib(64),
        segment_size: ByteCount::mib(1),
        ..SpoolConfig::default()
    };
    let mut spool =
        Spool::open(Arc::new(SimDisk::new(ByteCount::mib(512))), config, NOW, SpoolDraw([7; 24]))
            .unwrap();
    let flows = [0, 1].map(|_| spool.open_flow(NOW).unwrap());
    for (flow, channel, count) in [(flows[0], "slow", 60), (flows[1], "fast", 10)] {
        for number in 0..count {
            spool.append(flow, &payload(channel, number), NOW).unwrap();
        }
    }
    spool.sync().unwrap();
    (spool, flows)
}

/// A session whose far end has greeted it, and which sends nothing for want of room.
fn session() -> Session {
    let mut session =
        Session::new(SessionConfig { send_buffer: BUFFER, ..SessionConfig::default() });
    let mut far = Session::new(SessionConfig::default());
    session.open(Opening { name: "station".to_owned(), ..Opening::default() });
    far.open(Opening { name: "centre".to_owned(), ..Opening::default() });
    for end in [&mut session, &mut far] {
        end.handle(Instant::ZERO, PathId(0), PathEvent::Up { payload: 1_438 });
    }
    let greeting = Bytes::copy_from_slice(far.control_mut().poll(PathId(0)));
    session.handle(Instant::ZERO, PathId(0), PathEvent::Control(greeting));
    while session.poll().is_some() {}
    assert!(session.is_open());
    session
}

fn fed(spool: &mut Spool, feeder: &mut Feeder, session: &mut Session, at: Utc) {
    feeder
        .feed(
            |reader, wanted| spool.queue_mut().read_flows(reader, wanted),
            session,
            Instant::ZERO,
            || at,
        )
        .expect("the spool is in order");
}

/// How many blocks of each flow the session has taken.
fn taken(session: &Session, flows: [FlowId; 2]) -> [u64; 2] {
    flows.map(|flow| session.sender().next_seq(flow).0)
}

#[test]
fn what_is_urgent_does_not_wait_behind_what_was_written_before_it() {
    let (mut spool, flows) = spool();
    let (mut feeder, mut session) =
        (Feeder::new(DestinationId::FIRST, sharing(), BUFFER), session());
    feeder.greeted(&mut spool, &resume(&flows), NOW);
    fed(&mut spool, &mut feeder, &mut session, NOW);
    // 20 blocks fit: the three lanes have room for 3 each, and 10 are for whoever has more.
    let [slow, fast] = taken(&session, flows);
    assert!(slow + fast >= 17 && slow >= 7 && fast >= 7, "{slow} {fast}");
    let channel = |flow| feeder.label(flow).map(|label| label.channel.as_str());
    assert_eq!((channel(flows[0]), channel(flows[1])), (Some("slow"), Some("fast")));
    assert_eq!(feeder.place(flows[1]), Some(Seq(fast)));
}

/// All of it is wanted.
fn resume(flows: &[FlowId]) -> Resume {
    Resume { finished_below: flows[0], open: Vec::new() }
}

#[test]
fn what_is_settled_makes_room_in_its_lane() {
    let (mut spool, flows) = spool();
    let (mut feeder, mut session) =
        (Feeder::new(DestinationId::FIRST, sharing(), BUFFER), session());
    feeder.greeted(&mut spool, &resume(&flows), NOW);
    fed(&mut spool, &mut feeder, &mut session, NOW);
    let before = taken(&session, flows);
    for seq in 0..before[0] {
        session.cancel(BlockId { flow: flows[0], seq: Seq(seq) });
    }
    while let Some(event) = session.poll() {
        if let Event::Settled { id, .. } = event {
            feeder.settled(id);
        }
    }
    fed(&mut spool, &mut feeder, &mut session, NOW);
    assert!(taken(&session, flows)[0] > before[0], "{before:?}");
}

#[test]
fn deadlines_count_from_the_capture() {
    let (mut spool, flows) = spool();
    let (mut feeder, mut session) =
        (Feeder::new(DestinationId::FIRST, sharing(), BUFFER), session());
    feeder.greeted(&mut spool, &resume(&flows), NOW);
    // The fast contact has waited 20 of its 30 s.
    fed(&mut spool, &mut feeder, &mut session, NOW + Duration::from_secs(20));
    let forecasts = session.sender().forecasts(Instant::ZERO, session.paths(), &[]);
    let fast = forecasts.iter().find(|forecast| forecast.flow == flows[1]).unwrap();
    let skyhaul_transport::Outlook::Unknown = fast.outlook else { panic!("{fast:?}") };
    let line = skyhaul_transport::Estimate {
        rate: skyhaul_units::Rate::from_mbps(1_000),
        rtt: Duration::from_millis(10),
        ..Default::default()
    };
    session.measured(PathId(0), line);
    let forecasts = session.sender().forecasts(Instant::ZERO, session.paths(), &[]);
    let fast = forecasts.iter().find(|forecast| forecast.flow == flows[1]).unwrap();
    let skyhaul_transport::Outlook::OnTime(spare) = fast.outlook else { panic!("{fast:?}") };
    assert!(spare > Duration::from_secs(9) && spare < Duration::from_secs(10), "{spare}");
}

#[test]
fn shared_otherwise_nothing_is_given_twice_or_left_out() {
    let (mut spool, flows) = spool();
    let (mut feeder, mut session) =
        (Feeder::new(DestinationId::FIRST, sharing(), BUFFER), session());
    feeder.greeted(&mut spool, &resume(&flows), NOW);
    fed(&mut spool, &mut feeder, &mut session, NOW);
    let before = taken(&session, flows);
    feeder.share(&spool, LineSharing::default());
    let mut rounds = 0;
    while taken(&session, flows) != [60, 10] {
        for (flow, end) in flows.into_iter().zip(taken(&session, flows)) {
            for seq in 0..end {
                session.cancel(BlockId { flow, seq: Seq(seq) });
            }
        }
        while let Some(event) = session.poll() {
            if let Event::Settled { id, .. } = event {
                feeder.settled(id);
            }
        }
        fed(&mut spool, &mut feeder, &mut session, NOW);
        rounds += 1;
        assert!(rounds < 20, "{before:?} {:?}", taken(&session, flows));
    }
}

#[test]
fn what_a_destination_comes_back_to_is_sent_in_a_class_of_its_own_behind_live_contacts() {
    let (mut spool, flows) = spool();
    // The slow contact ended long ago; the fast one is open, and as old.
    spool.close_flow(flows[0]).unwrap();
    let catch_up = CatchUp { class: Some(ClassId(0)), after: Duration::from_secs(60) };
    let behind = catch_up.of(SendingTerms::default());
    for (later, lanes) in [(Duration::from_secs(59), "slow"), (Duration::from_secs(61), "behind")] {
        let sharing = sharing_with(Some(catch_up));
        let mut feeder = Feeder::new(DestinationId::FIRST, sharing.clone(), BUFFER);
        let mut session = session();
        let now = NOW + later;
        feeder.greeted(&mut spool, &resume(&flows), now);
        fed(&mut spool, &mut feeder, &mut session, now);
        let delivery = |flow: &FlowId| feeder.lanes[feeder.flows[flow].lane].delivery;
        let [slow, fast] = [delivery(&flows[0]), delivery(&flows[1])];
        assert_eq!(slow == behind, lanes == "behind", "{slow:?}");
        assert_eq!(fast.class, ClassId(1), "what is open is live");
        // The class tree changes, and what is behind stays behind.
        feeder.share(&spool, sharing);
        let slow = feeder.lanes[feeder.flows[&flows[0]].lane].delivery;
        assert_eq!(slow == behind, lanes == "behind", "{slow:?}");
    }
}

#[test]
fn each_destination_is_fed_behind_its_own_custody() {
    let (mut spool, flows) = spool();
    let counted = |name: &str| SpoolDestination {
        name: name.to_owned(),
        role: DestinationRole::Counted,
        since: Since::Kept,
    };
    let ids = spool.destinations_mut().set(&[counted("oper"), counted("backup")]).unwrap();
    spool.custody(ids[0], flows[1], Seq(9));
    for (to, next) in [(ids[0], 9), (ids[1], 0)] {
        let mut feeder = Feeder::new(to, sharing(), BUFFER);
        let mut session = session();
        let held = Held { flow: flows[1], next: Seq(next), last: mark(&[]) };
        let custody = Resume { finished_below: flows[0], open: vec![held] };
        feeder.greeted(&mut spool, &custody, NOW);
        assert_eq!(feeder.to(), to);
        fed(&mut spool, &mut feeder, &mut session, NOW);
        assert_eq!(spool.queue().extent(to, flows[1]).unwrap().custody, Seq(next));
        assert_eq!(feeder.place(flows[1]).map(|place| place.0 > next), Some(true));
        // A receipt of one is not one of the other.
        feeder.custody(&mut spool, flows[0], Seq(1));
    }
    spool.custody(ids[0], flows[0], Seq(60));
    assert_eq!(spool.queue().extent(ids[1], flows[0]).unwrap().custody, Seq(1));
}

/// A spool with a contact of 20 blocks, each with the frame of a tenth of a second.
fn feed_spool() -> (Spool, FlowId) {
    let config = SpoolConfig {
        max_size: ByteCount::mib(64),
        segment_size: ByteCount::mib(1),
        ..SpoolConfig::default()
    };
    let disk = Arc::new(SimDisk::new(ByteCount::mib(512)));
    let mut spool = Spool::open(disk, config, NOW, SpoolDraw([7; 24])).unwrap();
    let flow = spool.open_flow(NOW).unwrap();
    for number in 0..20u8 {
        let mut records = Vec::new();
        let mut writer = RecordWriter::new();
        if number == 0 {
            let open = Open {
                channel: "x".to_owned(),
                mission: "name = \"aqua\"".to_owned(),
                also_fits: Vec::new(),
                scid: None,
                opened: NOW,
                keeps_check_symbols: false,
                completes: None,
                file: None,
            };
            writer.write(&Record::Open(open), &mut records);
        }
        let frame = CapturedFrame {
            received: NOW + TENTH * u64::from(number),
            position: BitPosition::START,
            quality: Quality::NOT_CHECKED,
            set_aside: None,
            bytes: Bytes::from(vec![number; 100]),
            check_symbols: Bytes::new(),
        };
        writer.write_frame(&frame, &mut records);
        let head = BlockHead {
            closed: NOW,
            position: BitPosition::START,
            set_aside: 0,
            corrected_symbols: 0,
            channel: "x".to_owned(),
            mission: "aqua".to_owned(),
            frames: Vec::new(),
            hops: Vec::new(),
        };
        let mut payload = Vec::new();
        head.encode(BlockContent::Records(&records), &mut payload);
        spool.append(flow, &payload, NOW).unwrap();
    }
    spool.close_flow(flow).unwrap();
    (spool, flow)
}

/// The centre has the frames up to this tenth of a second from the first station, and got no more
/// for two seconds.
fn has_up_to(tenth: u8) -> StandbyReport {
    let edge = |tenth: u8| EdgeFrame {
        received: NOW + TENTH * u64::from(tenth),
        mark: FrameMark::of(&[tenth; 100]),
    };
    let contact = DeliveredContact {
        name: "station-1-3".to_owned(),
        mission: "aqua".to_owned(),
        channel: "x-band".to_owned(),
        first: edge(0),
        last: edge(tenth),
        is_ended: false,
        idle: Duration::from_secs(2),
        lacks: Vec::new(),
    };
    let (of, contacts) = ("station-1".to_owned(), vec![contact]);
    StandbyReport { of, is_known: true, is_whole: true, contacts }
}

/// A standby that has read its spool, and whose centre has said what it has.
fn standing_by(spool: &mut Spool, flow: FlowId, tenth: u8) -> (Feeder, Session) {
    let feeder = Feeder::new(DestinationId::FIRST, sharing(), BUFFER);
    let mut feeder = feeder.standing_by(StandbyGate::new(
        "station-1".to_owned(),
        TENTH * 12,
        ChannelMatch::Mission,
    ));
    let mut session = session();
    feeder.greeted(spool, &resume(&[flow]), NOW);
    let standby = feeder.standby().unwrap();
    standby.connected(spool, Instant::ZERO);
    standby.read_ahead(|reader| spool.queue_mut().read(reader)).unwrap();
    for step in 0..4 {
        let now = Instant::ZERO + TENTH * (5 * step);
        feeder.standby().unwrap().report(now, has_up_to(tenth));
        let changes = feeder.look(spool, now, NOW);
        assert!(step > 2 || changes.released.is_empty(), "too early");
        fed(spool, &mut feeder, &mut session, NOW + TENTH * 30);
        assert!(step > 2 || session.sender().next_seq(flow) == Seq::FIRST);
    }
    (feeder, session)
}

#[test]
fn a_standby_gives_what_the_centre_lacks_and_empty_places_for_what_it_has() {
    let (mut spool, flow) = feed_spool();
    let (mut feeder, session) = standing_by(&mut spool, flow, 10);
    assert_eq!(session.sender().next_seq(flow), Seq(20), "the whole contact");
    // The first block opens the contact; the last half second that is there goes again.
    assert_eq!(feeder.standby().unwrap().counts().kept_back_blocks, 5);
}

#[test]
fn a_standby_settles_what_the_centre_has_without_giving_it() {
    let (mut spool, flow) = feed_spool();
    let (mut feeder, session) = standing_by(&mut spool, flow, 19);
    assert_eq!(session.sender().next_seq(flow), Seq::FIRST);
    assert!(spool.queue().flows_to(DestinationId::FIRST).is_empty());
    let counts = feeder.standby().unwrap().counts();
    assert_eq!((counts.settled_contacts, counts.settled_blocks), (1, 20));
    assert_eq!(spool.stats().gave_way, 0);
}
