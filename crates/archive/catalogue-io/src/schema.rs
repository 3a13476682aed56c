//! The tables, and how files of earlier versions become this one.
//!
//! Times are microseconds since 1970, UTC. Lists of a property stand with a comma before and behind
//! each entry. Numbers of states and proofs are those of [`crate::deliveries`]; they never change
//! their meaning.

use crate::error::CatalogueError;
use crate::summaries;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The version of the tables (`PRAGMA user_version`).
pub const VERSION: u32 = 7;

/// The tables of version 1.
pub const FIRST: &str = "
CREATE TABLE item(
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    form TEXT NOT NULL,
    mission TEXT NOT NULL,
    product TEXT NOT NULL,
    collection TEXT NOT NULL,
    stations TEXT NOT NULL,
    apids TEXT NOT NULL,
    first INTEGER,
    last INTEGER,
    published INTEGER NOT NULL,
    packets INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    size INTEGER NOT NULL,
    state TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX item_name ON item(name, version);
CREATE INDEX item_page ON item(published, id);
CREATE INDEX item_collection ON item(mission, product, published, id);
CREATE TABLE file(
    item INTEGER NOT NULL,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    md5 BLOB,
    cksum INTEGER,
    is_metadata INTEGER NOT NULL,
    PRIMARY KEY(item, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE destination(
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    sequence INTEGER NOT NULL DEFAULT 0,
    abilities TEXT
) STRICT;
CREATE TABLE subscription(
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE delivery(
    id INTEGER PRIMARY KEY,
    item INTEGER NOT NULL,
    subscription INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    state INTEGER NOT NULL,
    since INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    failing_since INTEGER,
    next INTEGER,
    deadline INTEGER,
    only TEXT,
    proof INTEGER,
    reason TEXT
) STRICT;
CREATE UNIQUE INDEX delivery_item ON delivery(item, destination, subscription);
CREATE INDEX delivery_state ON delivery(destination, state, id);
CREATE TABLE part(
    delivery INTEGER NOT NULL,
    file TEXT NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY(delivery, file)
) STRICT, WITHOUT ROWID;
CREATE TABLE event(
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    item INTEGER,
    delivery INTEGER,
    what TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX event_delivery ON event(delivery, n) WHERE delivery IS NOT NULL;
";

/// What makes version `n + 1` of `n`. The last version is the one before with its
/// [summaries](crate::summaries).
const STEPS: [&str; VERSION as usize - 1] = [
    FIRST,
    // The latency account. Deliveries from before it have their times from the events.
    "
ALTER TABLE delivery ADD COLUMN handed INTEGER;
ALTER TABLE delivery ADD COLUMN accepted INTEGER;
UPDATE delivery SET
    handed = (SELECT min(at) FROM event
        WHERE event.delivery = delivery.id AND what IN ('recorded', 'accepted')),
    accepted = (SELECT min(at) FROM event
        WHERE event.delivery = delivery.id AND what = 'accepted' AND delivery.proof = 4);
CREATE TABLE contact(
    name TEXT PRIMARY KEY,
    mission TEXT NOT NULL,
    closed INTEGER NOT NULL,
    blocks BLOB NOT NULL
) STRICT;
CREATE INDEX contact_closed ON contact(closed);
CREATE TABLE latency(
    item INTEGER PRIMARY KEY,
    contact TEXT NOT NULL,
    last_bit INTEGER NOT NULL,
    block BLOB NOT NULL
) STRICT;
",
    // The archive: what is held, what leaves, and the order in which it does.
    "
ALTER TABLE item ADD COLUMN removed INTEGER;
CREATE INDEX item_present ON item(published, id) WHERE state = 'present';
CREATE INDEX item_versioned ON item(name || '-v' || version);
CREATE INDEX item_of_collection ON item(collection, published, id);
CREATE INDEX item_first ON item(first);
CREATE TABLE removal(
    item INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    leaves_record INTEGER NOT NULL,
    reason TEXT NOT NULL
) STRICT;
CREATE TABLE hold(
    item INTEGER PRIMARY KEY,
    since INTEGER NOT NULL,
    why TEXT NOT NULL
) STRICT;
CREATE TABLE volume(
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    place TEXT NOT NULL,
    made INTEGER NOT NULL
) STRICT;
CREATE TABLE place(
    item INTEGER NOT NULL,
    volume INTEGER NOT NULL,
    PRIMARY KEY(item, volume)
) STRICT, WITHOUT ROWID;
CREATE TABLE setting(
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
",
    // The order of the keys of S3, in which a mission is listed.
    "
CREATE INDEX item_key ON item(mission, product, name || '-v' || version);
",
    // How often a delivery was ordered anew, which its record says.
    "
ALTER TABLE delivery ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;
",
    // The newest items of a mission: without it, millions of rows are sorted for a page.
    "
CREATE INDEX item_mission ON item(mission, published, id);
",
];

/// Opens the file for writing, makes it if it is missing, and migrates it if it is of an earlier
/// version.
pub fn open(path: &Path) -> Result<Connection, CatalogueError> {
    let error = |error: rusqlite::Error| CatalogueError::of(path, &error);
    own(path).map_err(|error| CatalogueError::Database {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let mut connection = Connection::open(path).map_err(error)?;
    connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(error)?;
    // The first reading of the file: what is no database is found here.
    let found = version(&connection).map_err(error)?;
    if found > VERSION {
        return Err(CatalogueError::Later { path: path.to_owned(), found, known: VERSION });
    }
    connection.pragma_update(None, "journal_mode", "WAL").map_err(error)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(error)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(error)?;
    check(path, &connection)?;
    if found == VERSION {
        return Ok(connection);
    }
    // What is under way has been copied.
    if found > 0 && !summaries::is_under_way(&connection).map_err(error)? {
        copy(&connection, &former(path, found), path)?;
    }
    let behaviour = TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(behaviour).map_err(error)?;
    // Another program may have made the tables meanwhile.
    let found = version(&transaction).map_err(error)?;
    for step in STEPS.iter().skip(found as usize) {
        transaction.execute_batch(step).map_err(error)?;
    }
    if found < VERSION {
        transaction.pragma_update(None, "user_version", VERSION - 1).map_err(error)?;
    }
    transaction.commit().map_err(error)?;
    summaries::make(&mut connection, VERSION).map_err(error)?;
    // The former file is not needed any more; if it stays, it harms nothing.
    (1..VERSION).for_each(|found| _ = fs::remove_file(former(path, found)));
    Ok(connection)
}

/// Where a file of an earlier version is kept until it is one of this version.
fn former(path: &Path, version: u32) -> PathBuf {
    path.with_extension(format!("version-{version}"))
}

/// The version of the tables.
fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Copies the whole file beside it. What a start that was killed left there is of the same version:
/// it is made anew.
fn copy(connection: &Connection, to: &Path, path: &Path) -> Result<(), CatalogueError> {
    let made = match fs::remove_file(to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        // SQLite writes into a file that is empty, and leaves its rights.
        _ => own(to),
    };
    made.map_err(|error| CatalogueError::Database {
        path: to.to_owned(),
        reason: error.to_string(),
    })?;
    let name = to.to_string_lossy().into_owned();
    let copied = connection.execute("VACUUM INTO ?1", [name]);
    copied.map(drop).map_err(|error| CatalogueError::of(path, &error))
}

/// Makes a file that only its owner can read; SQLite gives its other files the same rights.
fn own(path: &Path) -> std::io::Result<()> {
    fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}

/// Whether the pages that lead to all others can be read. The whole file would take minutes.
fn check(path: &Path, connection: &Connection) -> Result<(), CatalogueError> {
    let all = connection
        .prepare("SELECT count(*) FROM sqlite_schema")
        .and_then(|mut all| all.query_row([], |row| row.get::<_, i64>(0)));
    all.map(drop).map_err(|error| CatalogueError::of(path, &error))
}

/// Whether the file has the tables of this release: one that is only read is not migrated.
pub fn check_version(path: &Path, connection: &Connection) -> Result<(), CatalogueError> {
    let found = version(connection).map_err(|error| CatalogueError::of(path, &error))?;
    let (path, known) = (path.to_owned(), VERSION);
    match found.cmp(&VERSION) {
        core::cmp::Ordering::Less => Err(CatalogueError::Earlier { path, found, known }),
        core::cmp::Ordering::Equal => Ok(()),
        core::cmp::Ordering::Greater => Err(CatalogueError::Later { path, found, known }),
    }
}

/// Opens the file for reading.
pub fn open_reader(path: &Path) -> Result<Connection, CatalogueError> {
    let error = |error: rusqlite::Error| CatalogueError::of(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(error)?;
    connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(error)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(error)?;
    Ok(connection)
}

/// The page cache of a connection: 16 MiB. A node has a writer and a few readers.
const CACHE_KIB: i64 = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_items_of_a_mission_are_found_without_sorting_all_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let connection = open(&folder.path().join("catalogue.db")).unwrap();
        let plan = "EXPLAIN QUERY PLAN SELECT id FROM item WHERE mission = 'aqua' ORDER BY \
                    published DESC, id DESC LIMIT 100";
        let mut statement = connection.prepare(plan).unwrap();
        let steps = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        let steps: Vec<String> = steps.collect::<Result<_, _>>().unwrap();
        assert!(steps.len() == 1 && steps[0].contains("item_mission"), "{steps:?}");
    }
}
