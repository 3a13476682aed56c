//! A catalogue of many items and deliveries: how fast it grows, how long pages of lists take, and
//! what memory the process has.
//!
//! `BENCH_ITEMS` says how many items (100,000; 10 million take about 8 GB of disk in `BENCH_DIR`,
//! by default where the system keeps temporary files, and hours). With `BENCH_KEPT` the catalogue
//! is this file and is kept: where it is there, no items are made. `bench/peers/catalogue.py`
//! makes a small one large in minutes.
//!
//! Seven deliveries are made for each five items, to 24 destinations; one in a hundred has failed.
//! Items are published as a centre does it, each with its files and deliveries in one transaction,
//! by 64 threads at a time, so that the writer has groups to commit. Each question is asked as
//! often on a connection that knows nothing and on one that does; the slowest answer of both
//! counts. Bars, for 10 million items and 14 million deliveries: a page of a search in 50 ms, a
//! list of one customer's failures in 200 ms, collections and counts in 10 ms, less than 300 MB of
//! memory, 500 changes a second.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::disallowed_methods, reason = "wall-clock figures, to be read")]

use skyhaul_catalogue::{
    Filter, Item, ItemFile, ItemForm, ItemListing, ItemOrder, ItemState, ListDirection, OrderKey,
    Property, RetentionStart,
};
use skyhaul_catalogue_io::{
    Catalogue, CatalogueReader, DeliveryOffer, DeliveryQuery, ItemQuery, RetentionScope,
};
use skyhaul_dispatch::{DeliveryState, VersionRule};
use skyhaul_units::Utc;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Threads that publish: so many items are in one commit at most.
const THREADS: usize = 64;
const DESTINATIONS: u64 = 24;
const MISSIONS: [&str; 5] = ["aqua", "aura", "terra", "noaa-20", "noaa-21"];
const PRODUCTS: [&str; 8] =
    ["modis", "ceres-1", "ceres-2", "airs", "imager", "sounder", "ozone", "telemetry"];
/// Items of a page.
const PAGE: usize = 100;
/// Failures of a list.
const FAILURES: usize = 200;
/// How often each question is asked.
const ROUNDS: usize = 10;
/// Changes of deliveries: at 500 a second half a minute's.
const STEPS: u64 = 15_000;
/// Between two products of a centre.
const APART_US: i64 = 260_000;
const BEGAN_US: i64 = 1_780_000_000_000_000;

fn main() {
    let items: u64 =
        std::env::var("BENCH_ITEMS").map_or(100_000, |text| text.parse().expect("a number"));
    let place = std::env::var_os("BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(place).unwrap();
    let kept = std::env::var_os("BENCH_KEPT").map(PathBuf::from);
    let is_filled = kept.as_ref().is_some_and(|path| path.exists());
    let path = kept.unwrap_or_else(|| folder.path().join("catalogue.db"));
    let begun = Instant::now();
    let catalogue = Catalogue::open(&path).unwrap();
    println!("opened in {:.1} s", begun.elapsed().as_secs_f64());
    let deliveries = match is_filled {
        true => (0..items).map(deliveries_of).sum(),
        false => fill(&catalogue, items),
    };
    let last = catalogue.reader().unwrap().delivery(deliveries).unwrap();
    assert!(last.is_some(), "{} has fewer than {deliveries} deliveries", path.display());
    println!("memory after filling: {}", memory());
    change(&catalogue, deliveries);
    ask(&path, items, deliveries);
    println!("memory after the questions: {}", memory());
}

fn fill(catalogue: &Catalogue, items: u64) -> u64 {
    let (next, offered) = (AtomicU64::new(0), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= items {
                        break;
                    }
                    offered.fetch_add(publish(catalogue, number), Ordering::Relaxed);
                }
            });
        }
    });
    let (span, deliveries) = (begun.elapsed().as_secs_f64(), offered.into_inner());
    println!(
        "{items} items and {deliveries} deliveries in {span:.0} s: {:.0} items/s",
        items as f64 / span
    );
    deliveries
}

/// Changes of deliveries, as their threads make them: read, and saved. They are spread over all
/// that there are, so that no page of the file is in memory because of the one before.
fn change(catalogue: &Catalogue, deliveries: u64) {
    let next = AtomicU64::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let reader = catalogue.reader().unwrap();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= STEPS {
                        break;
                    }
                    let id = 1 + number * deliveries.div_ceil(STEPS) % deliveries;
                    let Some(row) = reader.delivery(id).unwrap() else { continue };
                    let mut delivery = row.delivery;
                    delivery.attempts += 1;
                    catalogue.save(id, delivery).unwrap();
                }
            });
        }
    });
    let span = begun.elapsed().as_secs_f64();
    println!("{STEPS} changes of deliveries in {span:.1} s: {:.0} changes/s", STEPS as f64 / span);
}

/// Publishes an item; one delivery in a hundred has failed. Returns how many it has.
fn publish(catalogue: &Catalogue, number: u64) -> u64 {
    let at = Utc::from_micros(BEGAN_US + APART_US * number.cast_signed());
    let to = |place: u64| DeliveryOffer {
        subscription: "all".to_owned(),
        destination: format!("customer-{}", (number + 7 * place) % DESTINATIONS),
        versions: VersionRule::Latest,
        deadline: None,
        begin: None,
    };
    let count = deliveries_of(number);
    let published = catalogue.publish(item(number, at), (0..count).map(to).collect(), at).unwrap();
    if number.is_multiple_of(100) {
        let reader = catalogue.reader().unwrap();
        for (_, id) in published.deliveries {
            let mut delivery = reader.delivery(id).unwrap().unwrap().delivery;
            delivery.state = DeliveryState::Failed;
            delivery.reason = Some("the server says: 553 no such folder".to_owned());
            catalogue.save(id, delivery).unwrap();
        }
    }
    count
}

/// Seven for five items.
fn deliveries_of(number: u64) -> u64 {
    1 + u64::from(number % 5 < 2)
}

fn item(number: u64, at: Utc) -> Item {
    let (mission, product) = (MISSIONS[(number % 5) as usize], PRODUCTS[(number / 5 % 8) as usize]);
    let name = format!("{mission}-{product}-polar-{number}");
    let file = |suffix: &str, is_metadata| {
        let mut sha256 = [7; 32];
        sha256[..8].copy_from_slice(&number.to_be_bytes());
        ItemFile {
            name: format!("{name}.{suffix}"),
            size: 100_000_000 + number,
            sha256,
            md5: Some([1; 16]),
            cksum: Some(1),
            is_metadata,
        }
    };
    Item {
        version: 1,
        form: ItemForm::Session,
        mission: mission.to_owned(),
        product: product.to_owned(),
        stations: vec!["polar".to_owned()],
        apids: vec![64, 127],
        start: Some(at),
        end: Some(at),
        published: at,
        packets: 1_000,
        missing: number % 3,
        state: ItemState::Present,
        files: vec![file("CR", true), file("PDS", false)],
        name,
    }
}

fn ask(path: &Path, items: u64, deliveries: u64) {
    let size = std::fs::metadata(path).unwrap().len() + wal(path);
    println!("{:.0} bytes for each item and its deliveries", size as f64 / items as f64);
    let middle = BEGAN_US + APART_US * (items / 2).cast_signed();
    let middle = Utc::from_micros(middle);
    let search = |filter: &str| {
        let filter: Filter = filter.parse().unwrap();
        move |reader: &CatalogueReader| {
            let query = ItemQuery { filter: Some(filter.clone()), after: None, limit: PAGE };
            reader.search(&query).unwrap().items.len()
        }
    };
    timed("newest page", path, search("TRUE"));
    timed("page of a mission", path, search("mission = 'aqua'"));
    timed("page of a product", path, search("collection = 'noaa-21-imager'"));
    let time = format!("published < TIMESTAMP('{middle}') AND station = 'polar'");
    timed("page in mid-time, of a station", path, search(&time));
    let observed = format!("start_datetime > TIMESTAMP('{middle}') AND apid = 64");
    timed("page by observation and application", path, search(&observed));
    let by_key = OrderKey { property: Property::VersionedId, direction: ListDirection::Rising };
    let listing = ItemListing {
        filter: "state = 'present' AND mission = 'terra' AND product = 'modis' AND versioned_id > \
                 'terra-modis-polar-5'"
            .parse()
            .unwrap(),
        order: ItemOrder::new(vec![by_key]).unwrap(),
        after: None,
        skip: 0,
        limit: PAGE,
    };
    timed("page of keys of S3", path, |reader| reader.list(&listing).unwrap().items.len());
    timed("collections", path, |reader| {
        reader.collections(None, &Filter::Always(true)).unwrap().len()
    });
    let present: Filter = "state = 'present' AND mission = 'aqua'".parse().unwrap();
    timed("count of a mission", path, |reader| reader.count(&present, u64::MAX).unwrap() as usize);
    timed("states of deliveries", path, |reader| reader.counts().unwrap().len());
    let scope =
        RetentionScope { before: &[], own: Some(&present), from: RetentionStart::Published };
    let now = Utc::from_micros(BEGAN_US + APART_US * items.cast_signed());
    timed("sums of a rule of retention", path, |reader| {
        reader.archive().figures(scope, now).unwrap().items as usize
    });
    let failed = DeliveryQuery {
        destination: Some("customer-7".to_owned()),
        state: Some(DeliveryState::Failed),
        limit: FAILURES,
        ..DeliveryQuery::default()
    };
    timed("failures of a customer", path, |reader| reader.deliveries(&failed).unwrap().len());
    println!("{deliveries} deliveries in all");
}

/// Asks on connections that know nothing and on one that does.
fn timed(what: &str, path: &Path, ask: impl Fn(&CatalogueReader) -> usize) {
    let (mut all, mut found) = (Vec::new(), 0);
    let known = CatalogueReader::open(path).unwrap();
    for _ in 0..ROUNDS {
        for reader in [&known, &CatalogueReader::open(path).unwrap()] {
            let begun = Instant::now();
            found = ask(reader);
            all.push(begun.elapsed());
        }
    }
    all.sort();
    let ms = |span: Duration| span.as_secs_f64() * 1_000.0;
    let (middle, most) = (all[all.len() / 2], all[all.len() - 1]);
    println!("{what}: {found} in {:.2} ms, at most {:.2} ms", ms(middle), ms(most));
}

fn wal(path: &Path) -> u64 {
    std::fs::metadata(path.with_extension("db-wal")).map_or(0, |found| found.len())
}

/// What the process has in memory now, and at most until now.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.unwrap_or(0) / 1024
    };
    format!("{} MiB, at most {} MiB", of("VmRSS:"), of("VmHWM:"))
}
