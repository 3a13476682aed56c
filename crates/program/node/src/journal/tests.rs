use super::*;
use skyhaul_store::sim::SimDisk;
use skyhaul_units::{ByteCount, Utc};

fn started(disk: &SimDisk) -> EventLog {
    EventLog::start(Arc::new(disk.clone()), "polar", Clock::start()).unwrap()
}

fn tell(log: &EventLog, count: u64) {
    for nth in 0..count {
        log.sink().tell(EventKind::PathDown, "path a", format!("{nth}"));
    }
}

/// Waits until so many events are kept.
fn until(log: &EventLog, last: u64) {
    while log.sink().last() < last {
        std::thread::yield_now();
    }
}

fn numbers(page: &EventPage) -> Vec<u64> {
    page.events.iter().map(|event| event.number).collect()
}

#[test]
fn events_are_numbered_over_restarts_and_read_in_pages() {
    let disk = SimDisk::new(ByteCount::mib(16));
    let log = started(&disk);
    tell(&log, 3);
    drop(log);
    let log = started(&disk);
    tell(&log, 2);
    until(&log, 5);
    let page = log.sink().page(0, 4).unwrap();
    assert_eq!((numbers(&page), page.next, page.last), (vec![1, 2, 3, 4], 4, 5));
    assert_eq!(page.holes, []);
    let page = log.sink().page(page.next, 4).unwrap();
    assert_eq!((numbers(&page), page.next), (vec![5], 5));
    assert_eq!(page.events[0].node, "polar");
    assert_eq!(numbers(&log.sink().page(5, 4).unwrap()), [0; 0]);
}

#[test]
fn a_line_that_a_kill_tore_is_cut_off_and_a_damaged_one_is_a_hole() {
    let disk = SimDisk::new(ByteCount::mib(16));
    let log = started(&disk);
    tell(&log, 3);
    drop(log);
    let name = disk.list(segments::FOLDER).unwrap()[0].name.clone();
    let file = disk.open(&format!("{}/{name}", segments::FOLDER)).unwrap();
    let mut text = vec![0; file.size().unwrap().as_usize()];
    file.read_at(&mut text, ByteCount::ZERO).unwrap();
    // The second event no longer says that it is one.
    let second = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    text[second] = b'!';
    file.truncate(ByteCount::ZERO).unwrap();
    file.append(&text).unwrap();
    file.append(b"{\"number\":4,\"ti").unwrap();
    let log = started(&disk);
    tell(&log, 1);
    until(&log, 4);
    let page = log.sink().page(0, 100).unwrap();
    assert_eq!(
        (numbers(&page), &*page.holes),
        (vec![1, 3, 4], &[EventHole { from: 2, to: 2 }][..])
    );
    assert_eq!(page.events[2].sentence, "0", "it is the new one");
}

#[test]
fn a_full_disk_holds_nobody_up_and_what_does_not_wait_is_a_hole() {
    let disk = SimDisk::new(ByteCount::mib(16));
    let log = started(&disk);
    tell(&log, 1);
    until(&log, 1);
    disk.set_capacity(ByteCount::ZERO);
    tell(&log, QUEUE_MAX as u64 + 10);
    assert_eq!(log.sink().lost(), 10);
    disk.set_capacity(ByteCount::mib(16));
    until(&log, QUEUE_MAX as u64 + 1);
    tell(&log, 1);
    let after = QUEUE_MAX as u64 + 12;
    until(&log, after);
    let page = log.sink().page(QUEUE_MAX as u64, 10).unwrap();
    assert_eq!(numbers(&page), [QUEUE_MAX as u64 + 1, after]);
    assert_eq!(page.holes, [EventHole { from: QUEUE_MAX as u64 + 2, to: after - 1 }]);
}

#[test]
fn an_event_names_the_one_that_explains_it_over_a_restart_too() {
    let disk = SimDisk::new(ByteCount::mib(16));
    let log = started(&disk);
    log.sink().tell(EventKind::GapFound, "contact s-1", "3 gaps");
    drop(log);
    let log = started(&disk);
    log.sink().tell(EventKind::GapAsked, "contact s-1", "asked");
    log.sink().tell(EventKind::GapFilled, "contact s-2", "another contact");
    until(&log, 3);
    let page = log.sink().page(0, 10).unwrap();
    let causes: Vec<Option<u64>> =
        page.events.iter().map(|event| event.cause.as_ref().map(|cause| cause.number)).collect();
    assert_eq!(causes, [None, Some(1), None]);
    let cause = page.events[1].cause.as_ref().unwrap();
    assert_eq!((cause.kind, &cause.subject[..]), (EventKind::GapFound, "contact s-1"));
}

#[test]
fn what_was_not_kept_explains_nothing() {
    let disk = SimDisk::new(ByteCount::mib(16));
    let log = started(&disk);
    disk.set_capacity(ByteCount::ZERO);
    tell(&log, QUEUE_MAX as u64);
    log.sink().tell(EventKind::GapFound, "contact s-1", "it finds no room");
    disk.set_capacity(ByteCount::mib(16));
    until(&log, QUEUE_MAX as u64);
    log.sink().tell(EventKind::GapAsked, "contact s-1", "asked");
    let last = QUEUE_MAX as u64 + 2;
    until(&log, last);
    assert_eq!(log.sink().page(last - 1, 1).unwrap().events[0].cause, None);
}

fn event(number: u64, at: Utc) -> NodeEvent {
    NodeEvent {
        number,
        time: at.to_string(),
        node: "polar".to_owned(),
        kind: EventKind::PathUp,
        severity: Severity::Info,
        subject: "path a".to_owned(),
        sentence: String::new(),
        cause: None,
        data: Map::new(),
    }
}

#[test]
fn the_oldest_events_go_when_there_are_enough_or_they_are_old() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(ByteCount::mib(128)));
    let mut log = EventSegments::open(disk.clone()).unwrap();
    let start = Utc::from_rfc3339("2026-11-26T00:00:00Z").unwrap();
    let mut number = 0;
    let mut write = |log: &mut EventSegments, count: u64, at: Utc| {
        let events: Vec<NodeEvent> = (1..=count).map(|nth| event(number + nth, at)).collect();
        number += count;
        events.chunks(BATCH_MAX).for_each(|batch| log.append(batch, at).unwrap());
    };
    write(&mut log, 130_000, start);
    let first = log.view().read(0, 1).unwrap()[0].number;
    assert!(first > 1 && 130_000 - first >= 100_000 - 1, "{first}");
    let files = disk.list(segments::FOLDER).unwrap().len();
    assert!(files <= 27, "{files}");
    let day = Duration::from_secs(86_400);
    write(&mut log, 1, start + day * 2);
    write(&mut log, 1, start + day * 33);
    let kept = log.view().read(0, 10).unwrap();
    assert_eq!(kept.iter().map(|event| event.number).collect::<Vec<_>>(), [130_001, 130_002]);
    let again = EventSegments::open(disk).unwrap();
    assert_eq!(again.view().last(), 130_002);
}
