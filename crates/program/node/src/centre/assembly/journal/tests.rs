//! What is due when, what is held, and that nothing of it is lost or changed by a kill.

use super::*;
use skyhaul_config::parse;
use skyhaul_level0::WindowCell;
use skyhaul_store::sim::SimDisk;
use skyhaul_units::ByteCount;

/// 2024-12-06T00:00:00Z.
const MIDNIGHT: Utc = Utc::from_micros(1_733_443_200_000_000);

fn rules(keys: &str) -> ProductRules {
    let text = format!(
        "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"s\"\n[[listen]]\nbind = \
        \"[::]:4700\"\n[products]\ndir = \"p\"\n{keys}"
    );
    parse(&text, "node.toml".as_ref()).unwrap().centre.unwrap().product_rules()
}

fn open(disk: &SimDisk) -> AssemblyJournal {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    AssemblyJournal::open(&disk, rules("time = true\n")).unwrap()
}

fn hours(hours: u64) -> Utc {
    MIDNIGHT + Duration::from_secs(hours * 3_600)
}

/// A contact that was finished at `at`, with packets of the product `imager` at these hours of the
/// day.
fn note(flow: u32, at: Utc, packets: &[u64]) -> ContactSummary {
    let cells = packets.iter().map(|hour| WindowCell::containing(hours(*hour))).collect();
    let version = Version {
        version: 1,
        name: format!("P1570800AAAAAAAAAAAAAS243410000{flow:02}000.PDS"),
        packets: 1,
        missing: 0,
        gaps: 0,
    };
    ContactSummary {
        station: "svalbard".to_owned(),
        flow,
        mission: "suomi-npp".to_owned(),
        scid: 157,
        noted_us: at.as_micros(),
        completes: None,
        origin: None,
        cells: BTreeMap::from([("imager".to_owned(), cells)]),
        versions: BTreeMap::from([("imager".to_owned(), version)]),
        span_us: None,
    }
}

fn contact(flow: u32) -> ContactKey {
    ("svalbard".to_owned(), flow)
}

fn made(job: &AssemblyJob, version: u32) -> BTreeMap<String, Version> {
    let name = format!("P1570800AAAAAAAAAAAAAT2434100000{version}000.PDS");
    let version = Version { version, name, packets: 10, missing: 0, gaps: 0 };
    let plan = job.plan.as_ref().unwrap();
    plan.products.iter().map(|product| (product.clone(), version.clone())).collect()
}

#[test]
fn a_window_is_due_when_it_is_over_and_nobody_may_still_bring_packets() {
    let mut journal = open(&SimDisk::new(ByteCount::mib(4)));
    journal.note(note(1, hours(3), &[2, 3])).unwrap();
    assert_eq!(journal.held(), [contact(1)].into());
    let soon = hours(4) + Duration::from_secs(29 * 60);
    assert_eq!(journal.next(soon, &[]).unwrap(), None);
    let due = hours(4) + Duration::from_secs(30 * 60);
    for other in [None, Some(157)] {
        assert_eq!(journal.next(due, &[OpenContact { scid: other }]).unwrap(), None, "{other:?}");
    }
    let another = [OpenContact { scid: Some(43) }];
    let job = journal.next(due, &another).unwrap().unwrap();
    assert_eq!(job.target.span().unwrap().from, hours(2));
    let plan = job.plan.clone().unwrap();
    assert_eq!((plan.contacts, plan.products), (vec![contact(1)], vec!["imager".to_owned()]));
    journal.done(&job, made(&job, 1)).unwrap();
    assert_eq!(journal.next(due, &[]).unwrap(), None);
    assert!(journal.held().is_empty());
}

#[test]
fn a_contact_that_stays_open_is_waited_for_an_hour() {
    let mut journal = open(&SimDisk::new(ByteCount::mib(4)));
    journal.note(note(1, hours(5), &[2])).unwrap();
    let open = [OpenContact { scid: Some(157) }];
    assert_eq!(journal.next(hours(6) - Duration::from_secs(1), &open).unwrap(), None);
    assert!(journal.next(hours(6), &open).unwrap().is_some());
}

#[test]
fn late_data_make_a_version_at_once_of_the_products_that_it_touches() {
    let disk = SimDisk::new(ByteCount::mib(4));
    let mut journal = open(&disk);
    journal.note(note(1, hours(3), &[2])).unwrap();
    let job = journal.next(hours(9), &[]).unwrap().unwrap();
    journal.done(&job, made(&job, 1)).unwrap();
    let mut late = note(2, hours(9), &[2, 7]);
    late.cells.insert("sounder".to_owned(), vec![WindowCell::containing(hours(3))]);
    journal.note(late).unwrap();
    let job = journal.next(hours(9), &[]).unwrap().unwrap();
    assert_eq!((job.contacts.clone(), job.versions["imager"].version), (vec![contact(1)], 1));
    let plan = job.plan.clone().unwrap();
    assert_eq!(plan.contacts, [contact(1), contact(2)]);
    assert_eq!(plan.products, ["imager", "sounder"]);
    journal.done(&job, made(&job, 2)).unwrap();
    let last = journal.next(hours(9), &[]).unwrap().unwrap();
    assert_eq!(last.target.span().unwrap().from, hours(6), "the other window of the late contact");
    assert!(last.plan.unwrap().created_us > plan.created_us, "no second is given twice");
}

#[test]
fn a_plan_is_the_same_after_a_kill_whatever_came_meanwhile() {
    let disk = SimDisk::new(ByteCount::mib(4));
    let mut journal = open(&disk);
    journal.note(note(1, hours(3), &[2])).unwrap();
    let job = journal.next(hours(9), &[]).unwrap().unwrap();
    journal.note(note(2, hours(9), &[2])).unwrap();
    disk.crash(7);
    let mut journal = open(&disk);
    let again = journal.next(hours(20), &[]).unwrap().unwrap();
    assert_eq!(again, job);
    journal.done(&again, made(&again, 1)).unwrap();
    disk.crash(8);
    let next = open(&disk).next(hours(20), &[]).unwrap().unwrap();
    assert_eq!(
        next.plan.unwrap().contacts,
        [contact(1), contact(2)],
        "what came meanwhile makes a version"
    );
}

#[test]
fn a_contact_that_completes_another_makes_a_version_of_its_products() {
    let mut journal = open(&SimDisk::new(ByteCount::mib(4)));
    journal.note(note(1, hours(3), &[])).unwrap();
    journal.note(ContactSummary { completes: Some(1), ..note(2, hours(4), &[]) }).unwrap();
    let open = [OpenContact { scid: Some(157) }];
    let job = journal.next(hours(4), &open).unwrap().unwrap();
    assert_eq!(job.target, ProductTarget::Contact { station: "svalbard".to_owned(), flow: 1 });
    assert_eq!(job.versions["imager"].version, 1);
    assert_eq!(
        (job.contacts.clone(), job.plan.clone().unwrap().contacts),
        (vec![contact(1)], vec![contact(1), contact(2)])
    );
    journal.done(&job, BTreeMap::new()).unwrap();
    assert_eq!(journal.next(hours(4), &[]).unwrap(), None);
}

/// Regression: a relay without products tried for ever to make a version of those that it had not.
#[test]
fn a_node_that_makes_no_products_has_no_jobs() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(ByteCount::mib(4)));
    let rules = ProductRules { enabled: false, ..rules("session = false\nselect = false\n") };
    let mut journal = AssemblyJournal::open(&disk, rules).unwrap();
    journal.note(note(1, hours(3), &[])).unwrap();
    journal.note(ContactSummary { completes: Some(1), ..note(2, hours(4), &[]) }).unwrap();
    assert_eq!(journal.next(hours(4), &[]).unwrap(), None);
    assert!(journal.held().is_empty() && journal.standing().next().is_none());
}

/// A contact of another station that heard the packets of these seconds.
fn heard(station: &str, flow: u32, at: Utc, span_s: (i64, i64)) -> ContactSummary {
    let span_us = Some((span_s.0 * 1_000_000, span_s.1 * 1_000_000));
    ContactSummary { station: station.to_owned(), span_us, ..note(flow, at, &[]) }
}

#[test]
fn contacts_that_overlap_make_a_version_of_each_others_products_when_none_is_open() {
    let disk = SimDisk::new(ByteCount::mib(4));
    let mut journal = open(&disk);
    for note in [
        heard("svalbard", 1, hours(3), (0, 600)),
        heard("tromso", 1, hours(3), (400, 900)),
        heard("wallops", 1, hours(3), (901, 990)),
        ContactSummary { scid: 43, ..heard("fairbanks", 1, hours(3), (0, 600)) },
    ] {
        journal.note(note).unwrap();
    }
    assert_eq!(
        journal.next(hours(3), &[OpenContact { scid: Some(157) }]).unwrap(),
        None,
        "another may bring more"
    );
    let all = |contacts: &[(&str, u32)]| -> Vec<ContactKey> {
        contacts.iter().map(|(station, flow)| ((*station).to_owned(), *flow)).collect()
    };
    for (own, span) in [(("svalbard", 1), (0, 600)), (("tromso", 1), (400, 900))] {
        let job = journal.next(hours(3), &[OpenContact { scid: Some(43) }]).unwrap().unwrap();
        assert_eq!(job.target, ProductTarget::Contact { station: own.0.to_owned(), flow: 1 });
        assert_eq!((job.contacts.clone(), job.versions["imager"].version), (all(&[own]), 1));
        let plan = job.plan.clone().unwrap();
        let other = if own.0 == "tromso" { ("svalbard", 1) } else { ("tromso", 1) };
        assert_eq!(plan.contacts, all(&[("svalbard", 1), ("tromso", 1)]));
        assert_eq!(plan.joined, [all(&[own, other])]);
        assert_eq!(plan.span_us, Some((span.0 * 1_000_000, span.1 * 1_000_000)));
        journal.done(&job, made(&job, 2)).unwrap();
    }
    assert_eq!(journal.next(hours(3), &[]).unwrap(), None);
    assert!(journal.held().is_empty());
    // Frames found later in a recording of one take part in what both have, in the products of
    // both.
    journal
        .note(ContactSummary { completes: Some(1), ..heard("tromso", 2, hours(4), (500, 501)) })
        .unwrap();
    for own in [("svalbard", 1), ("tromso", 1)] {
        let job = journal.next(hours(4), &[]).unwrap().unwrap();
        let other = if own.0 == "tromso" { ("svalbard", 1) } else { ("tromso", 1) };
        let joined = job.plan.clone().unwrap().joined;
        assert_eq!(
            joined,
            [all(&[own, other]), all(&[own, other, ("tromso", 2)])],
            "{:?}",
            job.target
        );
        journal.done(&job, made(&job, 3)).unwrap();
    }
    drop(journal);
    assert_eq!(open(&disk).next(hours(4), &[]).unwrap(), None, "as after a kill");
}

#[test]
fn a_third_contact_changes_the_group_and_a_plan_that_was_begun_stays_as_it_was() {
    let disk = SimDisk::new(ByteCount::mib(4));
    let mut journal = open(&disk);
    journal.note(heard("svalbard", 1, hours(3), (0, 600))).unwrap();
    journal.note(heard("tromso", 1, hours(3), (400, 900))).unwrap();
    let begun = journal.next(hours(3), &[]).unwrap().unwrap();
    journal.note(heard("wallops", 1, hours(3), (500, 990))).unwrap();
    disk.crash(3);
    let mut journal = open(&disk);
    let mut versions = BTreeMap::new();
    while let Some(job) = journal.next(hours(3), &[]).unwrap() {
        let version = versions.entry(job.target.key()).or_insert(1);
        if *version == 1 && job.target == begun.target {
            assert_eq!(job, begun);
        } else {
            assert_eq!(job.plan.as_ref().unwrap().joined.last().map(Vec::len), Some(3));
        }
        *version += 1;
        journal.done(&job, made(&job, *version)).unwrap();
    }
    assert_eq!(
        versions.into_values().collect::<Vec<_>>(),
        [3, 2, 2],
        "each of all three in the end"
    );
}

#[test]
fn a_name_that_another_contact_has_is_not_free() {
    let mut journal = open(&SimDisk::new(ByteCount::mib(4)));
    let one = note(1, hours(3), &[]);
    let name = ProductName::parse(&one.versions["imager"].name).unwrap();
    journal.note(one).unwrap();
    let (created, digit) = (name.created() + Duration::from_millis(700), name.uniqueness());
    assert!(!journal.is_free(&contact(2), created, digit));
    assert!(journal.is_free(&contact(1), created, digit), "processed again, it gets its own");
    assert!(journal.is_free(&contact(2), created, Digit::NINE));
    assert!(journal.is_free(&contact(2), created + Duration::from_secs(1), digit));
}

#[test]
fn contacts_are_left_apart_where_that_is_not_wanted() {
    for keys in ["select = false\n", "session = false\ntime = true\nwait = \"24 h\"\n"] {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(ByteCount::mib(4)));
        let mut journal = AssemblyJournal::open(&disk, rules(keys)).unwrap();
        journal.note(heard("svalbard", 1, hours(3), (0, 600))).unwrap();
        journal.note(heard("tromso", 1, hours(3), (400, 900))).unwrap();
        assert_eq!(journal.next(hours(3), &[]).unwrap(), None, "{keys}");
    }
}

#[test]
fn a_job_whose_contacts_are_gone_is_made_no_more() {
    let disk = SimDisk::new(ByteCount::mib(4));
    let mut journal = open(&disk);
    journal.note(note(1, hours(3), &[2])).unwrap();
    let job = journal.next(hours(9), &[]).unwrap().unwrap();
    journal.done(&job, made(&job, 1)).unwrap();
    journal.forget(|_| false).unwrap();
    assert!(!journal.is_noted(&contact(1)));
    journal.note(note(2, hours(9), &[2])).unwrap();
    let job = journal.next(hours(9), &[]).unwrap().unwrap();
    journal.seal(&job).unwrap();
    assert_eq!(journal.next(hours(9), &[]).unwrap(), None);
    journal.note(note(3, hours(9), &[2])).unwrap();
    assert_eq!(open(&disk).next(hours(9), &[]).unwrap(), None);
    assert!(journal.held().is_empty());
}

#[test]
fn products_differ_as_they_are_configured() {
    let rules = rules(
        "[[product]]\nname = \"imager\"\ntime = true\nwindow = \"10 min\"\n\
         [[product]]\nname = \"imager\"\nmission = \"aqua\"\nform = \"packets\"\n",
    );
    let minutes = |mission| {
        rules.of(mission, "imager").window.map(|length| length.as_duration().as_millis() / 60_000)
    };
    assert_eq!((minutes("terra"), minutes("aqua")), (Some(10), None));
    assert!(rules.of("terra", "other").session);
}
