//! Who gets what and when; that nothing is forgotten or handed over twice; and what notices lead
//! to.

use super::*;
use skyhaul_config::parse;
use skyhaul_dispatch::{FileAnswer, sips};
use skyhaul_store::sim::SimDisk;
use skyhaul_units::{ByteCount, Duration};

const NOW: Utc = Utc::from_micros(1_733_443_200_000_000);

fn consumers(tables: &str) -> Vec<DeliveryEntry> {
    let text = format!(
        "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"s\"\n[[listen]]\nbind = \
        \"[::]:4700\"\n[products]\ndir = \"p\"\n{tables}"
    );
    parse(&text, "node.toml".as_ref()).unwrap().centre.unwrap().delivery
}

fn open(disk: &SimDisk) -> DeliveryList {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let tables = "[[delivery]]\nname = \"fast\"\ndir = \"fast\"\nattempts = 2\n\
                  [[delivery]]\nname = \"whole\"\ndir = \"whole\"\nmode = \"complete\"\nproducts = \
                  \"imager\"\n";
    DeliveryList::open(&disk, consumers(tables)).unwrap()
}

fn item(consumer: &str, list: &DeliveryList, version: u32, is_complete: bool) -> ProductDelivery {
    ProductDelivery {
        consumer: consumer.to_owned(),
        sequence: list.next,
        stem: format!("P1570826VIIRSSCIENCEAT2434110000{version}000"),
        mission: "suomi-npp".to_owned(),
        product: "imager".to_owned(),
        lineage: "suomi-npp/imager/2024-12-06T00:00:00Z/false".to_owned(),
        version,
        is_expedited: false,
        is_complete,
        span_us: None,
        files: vec![ItemFile { name: "a".to_owned(), bytes: 1, sha256: String::new() }],
        offered_us: NOW.as_micros(),
        state: DeliveryState::Waiting,
        attempts: 0,
        reason: None,
    }
}

/// As `offer` does for each consumer.
fn put(list: &mut DeliveryList, consumer: &str, version: u32, is_complete: bool) {
    let item = item(consumer, list, version, is_complete);
    let mode = list.consumer(consumer).unwrap().mode;
    list.supersede(&item, mode).unwrap();
    list.next += 1;
    list.put(item).unwrap();
}

fn due(list: &DeliveryList, now: Utc) -> Vec<(String, u32)> {
    list.due(now).into_iter().map(|item| (item.consumer, item.version)).collect()
}

#[test]
fn one_gets_each_version_at_once_another_only_what_is_complete() {
    let mut list = open(&SimDisk::new(ByteCount::mib(4)));
    put(&mut list, "fast", 1, false);
    put(&mut list, "whole", 1, false);
    assert_eq!(due(&list, NOW), [("fast".to_owned(), 1)]);
    let later = NOW + Duration::from_secs(6 * 3_600);
    assert_eq!(due(&list, later).len(), 2, "patience is over");
    put(&mut list, "fast", 2, true);
    put(&mut list, "whole", 2, true);
    let all =
        [("fast", 1), ("fast", 2), ("whole", 2)].map(|(name, version)| (name.to_owned(), version));
    assert_eq!(due(&list, later), all, "the version that was replaced is not handed over");
    let entry = list.consumer("whole").unwrap();
    assert!(entry.takes("imager") && !entry.takes("sounder"));
}

#[test]
fn what_was_handed_over_stays_so_after_a_crash() {
    let disk = SimDisk::new(ByteCount::mib(4));
    let mut list = open(&disk);
    put(&mut list, "fast", 1, false);
    put(&mut list, "fast", 2, false);
    let first = list.due(NOW).remove(0);
    list.sent(&first).unwrap();
    disk.crash(3);
    let list = open(&disk);
    assert_eq!(due(&list, NOW), [("fast".to_owned(), 2)]);
    assert_eq!((list.next, list.damaged().len()), (3, 0));
}

fn notice(bytes: &[u8]) -> Notice {
    Notice::parse(bytes).unwrap()
}

#[test]
fn a_notice_settles_a_delivery_or_has_it_repeated() {
    let mut list = open(&SimDisk::new(ByteCount::mib(4)));
    put(&mut list, "fast", 1, false);
    let item = list.due(NOW).remove(0);
    let (failed, fine) =
        (notice(&sips::write_short(Some("CHECKSUM"), NOW)), notice(&sips::write_short(None, NOW)));
    let stem = format!("X{}", &item.stem[1..]);
    assert_eq!(
        list.answer("fast", Some(&stem), &fine).unwrap(),
        None,
        "nothing was handed over yet"
    );
    list.sent(&item).unwrap();
    assert_eq!(list.answer("whole", Some(&stem), &fine).unwrap(), None, "another consumer's");
    let state = |answered: Option<ProductDelivery>| answered.map(|item| item.state);
    assert_eq!(
        state(list.answer("fast", Some(&stem), &failed).unwrap()),
        Some(DeliveryState::Waiting)
    );
    let again = list.due(NOW).remove(0);
    assert_eq!((again.attempts, again.reason.as_deref()), (1, Some("CHECKSUM")));
    list.sent(&again).unwrap();
    assert_eq!(
        state(list.answer("fast", Some(&stem), &failed).unwrap()),
        Some(DeliveryState::Refused)
    );
    assert!(list.due(NOW).is_empty(), "two attempts are configured");
    let numbered = Notice { sequence: Some(item.sequence), answer: NoticeContent::Accepted };
    assert_eq!(state(list.answer("fast", None, &numbered).unwrap()), Some(DeliveryState::Accepted));
    let by_file = NoticeContent::Files(vec![FileAnswer { name: "a".to_owned(), failure: None }]);
    let by_file = Notice { sequence: None, answer: by_file };
    assert_eq!(
        state(list.answer("fast", Some("whatever"), &by_file).unwrap()),
        Some(DeliveryState::Accepted)
    );
}

#[test]
fn a_product_that_is_withheld_says_why_and_holds_no_other_up() {
    let mut list = open(&SimDisk::new(ByteCount::mib(4)));
    put(&mut list, "fast", 1, true);
    put(&mut list, "fast", 2, true);
    let first = list.due(NOW).remove(0);
    list.withhold(&first, "a differs from the published file").unwrap();
    assert_eq!(due(&list, NOW), [("fast".to_owned(), 2)]);
    let shown = list.shown().into_iter().find(|shown| shown.version == 1).unwrap();
    assert_eq!(shown.state, DeliveryState::Withheld);
    assert_eq!(shown.reason.as_deref(), Some("a differs from the published file"));
}
