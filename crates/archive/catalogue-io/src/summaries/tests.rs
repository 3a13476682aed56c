//! Summaries are what a look at every item and delivery gives, after any history, and no question
//! that they answer looks at all.

use super::*;
use crate::archive::{ItemRemoval, RetentionScope};
use crate::{Catalogue, CatalogueReader, DeliveryOffer, schema};
use proptest::prelude::*;
use skyhaul_catalogue::{Item, ItemFile, ItemForm, ItemState, RetentionLeaves, RetentionStart};
use skyhaul_dispatch::{DeliveryInput, DeliveryOrder, DeliveryRules, VersionRule};
use skyhaul_units::Utc;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What is done to a catalogue.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Publish(u32),
    Mark(u64),
    Settle(u64),
    Restore(u64),
    Cancel(u64),
    Again(u64),
    /// A change that is undone in its middle.
    Fail(u32),
    Reopen,
}

const LEAVES: [RetentionLeaves; 2] = [RetentionLeaves::Record, RetentionLeaves::Nothing];

fn item(number: u32) -> Item {
    let of = |list: &[&str], by: u32| list[(number / by) as usize % list.len()].to_owned();
    let time = |second: u32| Some(Utc::from_micros(i64::from(second) * 1_000_000));
    Item {
        name: format!("P{number}"),
        version: 1,
        form: ItemForm::ALL[number as usize / 3 % 2],
        mission: of(&["aqua", "terra"], 1),
        product: of(&["modis", "ceres"], 2),
        stations: (0..number / 5 % 3).map(|place| format!("s-{place}")).collect(),
        apids: vec![u16::try_from(number % 3).unwrap()],
        // Many have the same times, and some have none.
        start: (!number.is_multiple_of(4)).then(|| time(number * 7 % 5)).flatten(),
        end: (!number.is_multiple_of(3)).then(|| time(number * 7 % 5 + number % 2)).flatten(),
        published: Utc::from_micros(i64::from(number * 11 % 17)),
        packets: 1,
        missing: 0,
        state: ItemState::Present,
        files: vec![ItemFile {
            name: "a".to_owned(),
            size: u64::from(number),
            sha256: [0; 32],
            md5: None,
            cksum: None,
            is_metadata: false,
        }],
    }
}

fn offers(number: u32) -> Vec<DeliveryOffer> {
    let offer = |place: u32| DeliveryOffer {
        subscription: "all".to_owned(),
        destination: format!("d{place}"),
        versions: VersionRule::All,
        deadline: None,
        begin: None,
    };
    (0..number % 3).map(offer).collect()
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (0..40_u32).prop_map(Deed::Publish),
        3 => (1..30_u64).prop_map(Deed::Mark),
        3 => (1..30_u64).prop_map(Deed::Settle),
        2 => (1..30_u64).prop_map(Deed::Restore),
        3 => (1..40_u64).prop_map(Deed::Cancel),
        1 => (1..40_u64).prop_map(Deed::Again),
        1 => (0..40_u32).prop_map(Deed::Fail),
        1 => Just(Deed::Reopen),
    ]
}

fn order(catalogue: &Catalogue, id: u64, order: DeliveryOrder) {
    let row = catalogue.reader().unwrap().delivery(id).unwrap();
    let Some(mut delivery) = row.map(|row| row.delivery) else { return };
    delivery.handle(Utc::default(), DeliveryInput::Ordered(order), &DeliveryRules::default());
    catalogue.save(id, delivery).unwrap();
}

fn do_to(catalogue: &mut Catalogue, path: &Path, deed: Deed) {
    let now = Utc::default();
    let archive = catalogue.archive();
    match deed {
        Deed::Publish(number) => {
            drop(catalogue.publish(item(number), offers(number), now).unwrap());
        }
        Deed::Mark(item) => {
            let leaves = LEAVES[item as usize % 2];
            let removal = ItemRemoval { item, leaves, reason: "old".to_owned() };
            drop(archive.mark(vec![removal], now).unwrap());
        }
        Deed::Settle(item) => archive.settle(vec![item]).unwrap(),
        Deed::Restore(item) => drop(archive.restored(item, "v", now).unwrap()),
        Deed::Cancel(id) => order(catalogue, id, DeliveryOrder::Cancel),
        Deed::Again(id) => order(catalogue, id, DeliveryOrder::Again),
        Deed::Fail(number) => {
            let undone = catalogue.write(move |connection| {
                crate::items::add(connection, &item(number))?;
                connection.execute("DELETE FROM item WHERE id % 2 = 0", [])?;
                Err::<(), _>(rusqlite::Error::InvalidQuery)
            });
            undone.unwrap_err();
        }
        Deed::Reopen => *catalogue = Catalogue::open(path).unwrap(),
    }
}

/// How many rows the summaries have that a look at all gives not, and the other way round.
pub fn wrong(connection: &Connection) -> rusqlite::Result<i64> {
    let (start, end, is_of) = (start("item"), end("item"), is_of("item"));
    let looks = [
        (
            "SELECT mission, product, collection, form, stations, state, items, size, first, last \
             FROM summary"
                .to_owned(),
            format!(
                "SELECT mission, product, collection, form, stations, state, count(*), sum(size), \
                 min({start}), max({end}) FROM item GROUP BY mission, product, form, stations, \
                 state"
            ),
        ),
        (
            "SELECT summary, is_last, at, item FROM edge".to_owned(),
            format!(
                "SELECT summary.id, 0, {start}, item.id FROM item JOIN summary ON {is_of} UNION \
                 SELECT summary.id, 1, {end}, item.id FROM item JOIN summary ON {is_of}"
            ),
        ),
        (
            "SELECT destination, state, count FROM tally".to_owned(),
            "SELECT destination, state, count(*) FROM delivery GROUP BY destination, state"
                .to_owned(),
        ),
    ];
    let mut found = 0;
    for (kept, looked) in looks {
        for (one, other) in [(&kept, &looked), (&looked, &kept)] {
            let sql = format!(
                "SELECT count(*) FROM (SELECT * FROM ({one}) EXCEPT SELECT * FROM ({other}))"
            );
            found += connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?;
        }
    }
    Ok(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn summaries_are_what_a_look_at_all_gives_after_any_history(
        deeds in proptest::collection::vec(deed(), 1..80),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalogue.db");
        let mut catalogue = Catalogue::open(&path).unwrap();
        for deed in deeds {
            do_to(&mut catalogue, &path, deed);
            prop_assert_eq!(catalogue.write(wrong).unwrap(), 0, "after {:?}", deed);
        }
    }
}

/// What a process that is killed writes, until it is: it has the catalogue in its environment.
const PLACE: &str = "SKYHAUL_KILLED_CATALOGUE";

/// Between two looks at what it wrote; a minute of them on a machine that does nothing else.
const LOOK: Duration = Duration::from_millis(1);
const LOOKS_MAX: u32 = 60_000;

#[allow(clippy::disallowed_methods, reason = "the test tells itself where it runs")]
fn killed_at() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

#[test]
fn summaries_of_a_catalogue_are_whole_whenever_its_node_is_killed() {
    let name = "summaries_of_a_catalogue_are_whole_whenever_its_node_is_killed";
    if let Some(path) = killed_at() {
        return write_until_killed(&path);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalogue.db");
    let mut before = 0;
    for nth in 1..=6 {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        let mut writer = command.arg(name).env(PLACE, &path).stdout(Stdio::null()).spawn().unwrap();
        // As many more as the number of the kill, so that each is at another moment.
        let (mut looks, wanted) = (0, before + 40 * nth);
        while events(&path) < wanted {
            looks += 1;
            assert!(looks < LOOKS_MAX, "{} of {wanted}", events(&path));
            std::thread::park_timeout(LOOK);
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        before = events(&path);
        let catalogue = Catalogue::open(&path).unwrap();
        assert_eq!(catalogue.write(wrong).unwrap(), 0, "kill {nth}");
    }
}

/// What happened in a catalogue until now.
fn events(path: &Path) -> i64 {
    let last = |connection: Connection| {
        connection.query_row("SELECT ifnull(max(n), 0) FROM event", [], |row| row.get(0))
    };
    schema::open_reader(path).ok().and_then(|connection| last(connection).ok()).unwrap_or(0)
}

fn write_until_killed(path: &Path) {
    let catalogue = Catalogue::open(path).unwrap();
    let first = u32::try_from(events(path)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let catalogue = &catalogue;
            scope.spawn(move || {
                for number in 0.. {
                    let number = 4 * (first + number) + thread;
                    let now = Utc::default();
                    let published = catalogue.publish(item(number), offers(number), now).unwrap();
                    for (_, id) in published.deliveries {
                        order(catalogue, id, DeliveryOrder::Cancel);
                    }
                    let (item, leaves) = (published.item, LEAVES[number as usize / 4 % 2]);
                    let removal = ItemRemoval { item, leaves, reason: "old".to_owned() };
                    let marked = catalogue.archive().mark(vec![removal], now).unwrap();
                    if number % 3 > 0 {
                        catalogue.archive().settle(marked).unwrap();
                    }
                }
            });
        }
    });
}

/// A catalogue of so many items, on a connection that counts the steps of what is asked.
fn counted(items: u32) -> (tempfile::TempDir, Connection, Arc<AtomicU64>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalogue.db");
    let catalogue = Catalogue::open(&path).unwrap();
    let all = (0..items).map(|number| (item(number), offers(number)));
    for (item, offers) in all {
        catalogue.publish(item, offers, Utc::default()).unwrap();
    }
    let (mut connection, steps) =
        (schema::open_reader(&path).unwrap(), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&steps);
    let counted = move || {
        count.fetch_add(1, Ordering::Relaxed);
        false
    };
    connection.progress_handler(1, Some(counted)).unwrap();
    (folder, connection, steps)
}

#[test]
fn what_summaries_know_is_answered_without_a_look_at_all_items() {
    let filter = |text: &str| text.parse::<Filter>().unwrap();
    let known = filter("state = 'present' AND station = 's-1' AND kind <> 'time'");
    let (two, all) = (filter("collection IN ('aqua-modis', 'terra-ceres')"), filter("TRUE"));
    type Question<'a> = (&'a str, Box<dyn Fn(&Connection) -> u64 + 'a>);
    let collections = |connection: &Connection, mission, filter: &Filter| {
        crate::listing::collections(connection, mission, filter).unwrap().len() as u64
    };
    let count = |connection: &Connection, filter: &Filter| {
        crate::listing::count(connection, filter, u64::MAX).unwrap()
    };
    let figures = |connection: &Connection| {
        let before = [Some(two.clone())];
        let from = RetentionStart::Published;
        let scope = RetentionScope { before: &before, own: Some(&known), from };
        let now = Utc::from_day(20_000, skyhaul_units::Duration::ZERO);
        crate::archive::figures(connection, scope, now).unwrap().items
    };
    let questions: [Question<'_>; 6] = [
        ("collections", Box::new(|connection| collections(connection, None, &all))),
        ("collections of a mission", Box::new(|it| collections(it, Some("aqua"), &known))),
        ("count of all", Box::new(|connection| count(connection, &all))),
        ("count", Box::new(|connection| count(connection, &known))),
        ("figures of a rule", Box::new(figures)),
        ("deliveries", Box::new(|it| crate::deliveries::counts(it).unwrap().len() as u64)),
    ];
    let made = [600, 1_200].map(counted);
    for (what, ask) in questions {
        let [few, many] = made.each_ref().map(|(_, connection, steps)| {
            let before = steps.load(Ordering::Relaxed);
            assert!(ask(connection) > 0, "{what}");
            steps.load(Ordering::Relaxed) - before
        });
        assert!(many < few + few / 10 && many < 20_000, "{what}: {few} steps, then {many}");
    }
}

/// A file of the version before, with so many items.
fn former(path: &Path, items: u32) {
    let catalogue = Catalogue::open(path).unwrap();
    for number in 0..items {
        catalogue.publish(item(number), offers(number), Utc::default()).unwrap();
    }
    let undo = |connection: &Connection| {
        for name in [
            "item_added",
            "item_moved",
            "item_gone",
            "delivery_added",
            "delivery_moved",
            "delivery_gone",
        ] {
            connection.execute_batch(&format!("DROP TRIGGER {name}"))?;
        }
        connection.execute_batch("DROP TABLE summary; DROP TABLE edge; DROP TABLE tally")?;
        connection.pragma_update(None, "user_version", schema::VERSION - 1)
    };
    catalogue.write(undo).unwrap();
}

#[test]
fn the_summaries_of_a_former_file_are_made_when_it_is_opened_also_after_kills() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalogue.db");
    former(&path, 300);
    let early = CatalogueReader::open(&path).unwrap();
    let error = early.counts().unwrap_err().to_string();
    assert!(error.contains("start the node once"), "{error}");
    // A start that was killed after some rows.
    let mut connection = Connection::open(&path).unwrap();
    connection.execute_batch(TABLES).unwrap();
    let [of_items, _] = filled();
    let transaction = connection.transaction().unwrap();
    for sum in &of_items.sums {
        transaction.execute(sum, [0, 100]).unwrap();
    }
    let mark = "INSERT INTO setting(name, value) VALUES(?1, 100)";
    transaction.execute(mark, [of_items.mark]).unwrap();
    transaction.commit().unwrap();
    drop(connection);
    let catalogue = Catalogue::open(&path).unwrap();
    assert_eq!(catalogue.write(wrong).unwrap(), 0);
    let left = "SELECT count(*) FROM setting";
    let left = catalogue.write(move |it| it.query_row(left, [], |row| row.get::<_, i64>(0)));
    assert_eq!(left.unwrap(), 0, "no mark is left");
    assert_eq!(early.counts().unwrap().iter().map(|one| one.count).sum::<u64>(), 300);
    // From then on they are kept.
    catalogue.publish(item(1_000), offers(1_000), Utc::default()).unwrap();
    assert_eq!(catalogue.write(wrong).unwrap(), 0);
}
