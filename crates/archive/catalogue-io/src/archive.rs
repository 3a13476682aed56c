//! What leaves the archive, as rows: marked before its files are removed, and settled after that.
//!
//! ```text
//!  present ── mark ──► removing ── files removed, settle ──► removed, or no row
//! ```
//!
//! A kill between any two of these leaves an item that is `removing`, which the next look finishes:
//! no row says that files are there which are not, and no file is there without a row.

use crate::catalogue::ArchiveWriter;
use crate::deliveries;
use crate::error::CatalogueError;
use crate::events::{self, EventSubject};
use crate::items::{self, ItemRow};
use crate::reader::ArchiveReader;
use crate::search::{self, Clause, ItemPage, ItemQuery};
use crate::summaries;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use skyhaul_catalogue::{
    Filter, PendingDelivery, RetentionFigures, RetentionLeaves, RetentionStanding, RetentionStart,
};
use skyhaul_units::{Duration, Utc};

/// An item that is to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRemoval {
    /// Its number.
    pub item: u64,
    /// What stays of it.
    pub leaves: RetentionLeaves,
    /// Why it leaves, in a sentence.
    pub reason: String,
}

/// The items that one rule decides about: those that its filter takes, and no earlier one.
#[derive(Debug, Clone, Copy)]
pub struct RetentionScope<'a> {
    /// The filters of the earlier rules; none takes all.
    pub before: &'a [Option<Filter>],
    /// Its own.
    pub own: Option<&'a Filter>,
    /// From when its time is counted.
    pub from: RetentionStart,
}

/// An item that may be due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionCandidate {
    /// The item, with its files.
    pub row: ItemRow,
    /// When its time began.
    pub at: Utc,
    /// What the catalogue knows of it beside its record.
    pub standing: RetentionStanding,
}

/// Where a list of candidates goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidatePlace {
    /// When the time of the last one began.
    pub at: Utc,
    /// Its number.
    pub id: u64,
}

/// What an operator says about an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldOrder {
    /// It stays, for this reason.
    Hold(String),
    /// It may leave.
    Release,
}

/// The name under which the time of the last look is kept.
const LOOKED: &str = "retention-looked";

impl ArchiveWriter<'_> {
    /// Marks items as leaving, before any of their files is removed. What is held or needed by now
    /// is left out. Returns those that were marked.
    ///
    /// # Errors
    /// See [`CatalogueError`]: nothing was marked.
    pub fn mark(&self, removals: Vec<ItemRemoval>, now: Utc) -> Result<Vec<u64>, CatalogueError> {
        self.0.write(move |connection| {
            let mut marked = Vec::new();
            for removal in &removals {
                if mark(connection, removal, now)? {
                    marked.push(removal.item);
                }
            }
            Ok(marked)
        })
    }

    /// The files of these items are gone, durably.
    ///
    /// # Errors
    /// See [`CatalogueError`]: settle them again.
    pub fn settle(&self, items: Vec<u64>) -> Result<(), CatalogueError> {
        self.0.write(move |connection| items.iter().try_for_each(|item| settle(connection, *item)))
    }

    /// The files of an item that was removed are there again, durably.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn restored(&self, item: u64, from: &str, now: Utc) -> Result<bool, CatalogueError> {
        let from = format!("from {from}");
        self.0.write(move |connection| {
            let changed = connection.execute(
                "UPDATE item SET state = 'present', removed = NULL WHERE id = ?1 AND \
                 state <> 'removing'",
                [item.cast_signed()],
            )?;
            events::add(connection, now, EventSubject::Item(item), "restored", &from)?;
            Ok(changed > 0)
        })
    }

    /// Holds an item, or releases it. Returns whether that changed anything.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn hold(&self, item: u64, order: HoldOrder, now: Utc) -> Result<bool, CatalogueError> {
        self.0.write(move |connection| {
            let (changed, what, text) = match &order {
                HoldOrder::Hold(why) => (hold(connection, item, why, now)?, "held", why.as_str()),
                HoldOrder::Release => {
                    let gone = "DELETE FROM hold WHERE item = ?1";
                    let gone = connection.execute(gone, [item.cast_signed()])?;
                    (gone > 0, "released", "")
                }
            };
            if changed {
                events::add(connection, now, EventSubject::Item(item), what, text)?;
            }
            Ok(changed)
        })
    }

    /// Items are on a volume, which was verified.
    ///
    /// # Errors
    /// See [`CatalogueError`]: tell it again.
    pub fn placed(
        &self,
        volume: &str,
        place: &str,
        items: Vec<u64>,
        now: Utc,
    ) -> Result<(), CatalogueError> {
        let (name, place) = (volume.to_owned(), place.to_owned());
        self.0.write(move |connection| {
            connection
                .prepare_cached("INSERT OR IGNORE INTO volume(name, place, made) VALUES(?1,?2,?3)")?
                .execute(params![name, place, now.as_micros()])?;
            for item in items {
                connection
                    .prepare_cached(
                        "INSERT OR IGNORE INTO place(item, volume) \
                         SELECT ?1, id FROM volume WHERE name = ?2",
                    )?
                    .execute(params![item.cast_signed(), name])?;
                let text = format!("on volume {name}");
                events::add(connection, now, EventSubject::Item(item), "written", &text)?;
            }
            Ok(())
        })
    }

    /// Keeps when the items were last looked at.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn looked(&self, at: Utc) -> Result<(), CatalogueError> {
        self.0.write(move |connection| {
            connection
                .execute(
                    "INSERT OR REPLACE INTO setting(name, value) VALUES(?1, ?2)",
                    params![LOOKED, at.as_micros()],
                )
                .map(drop)
        })
    }
}

impl ArchiveReader<'_> {
    /// When the items were last looked at; where they never were, when the newest was published.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn looked(&self) -> Result<Option<Utc>, CatalogueError> {
        let found: Option<i64> = self.0.ask(|connection| {
            connection
                .prepare_cached(
                    "SELECT coalesce((SELECT value FROM setting WHERE name = ?1), \
                     (SELECT max(published) FROM item))",
                )?
                .query_row([LOOKED], |row| row.get(0))
        })?;
        Ok(found.map(Utc::from_micros))
    }

    /// What the items of a rule are together. Where its filters are not over the properties of
    /// summaries alone, it takes as long as it takes.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn figures(
        &self,
        scope: RetentionScope<'_>,
        now: Utc,
    ) -> Result<RetentionFigures, CatalogueError> {
        self.0.ask_long(|connection| figures(connection, scope, now))
    }

    /// The items of a rule in the order in which they leave. It takes as long as it takes.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn candidates(
        &self,
        scope: RetentionScope<'_>,
        after: Option<CandidatePlace>,
        limit: usize,
    ) -> Result<Vec<RetentionCandidate>, CatalogueError> {
        let mut clause = scope.clause();
        let (start, join) = match scope.from {
            RetentionStart::Published => ("published", ""),
            RetentionStart::Observed => ("coalesce(last, first, published)", ""),
            RetentionStart::Received => (
                "coalesce(latency.last_bit, published)",
                "LEFT JOIN latency ON latency.item = item.id",
            ),
        };
        if let Some(CandidatePlace { at, id }) = after {
            clause.sql = format!("{} AND ({start}, id) > (?, ?)", clause.sql);
            clause.values.push(Value::Integer(at.as_micros()));
            clause.values.push(Value::Integer(id.cast_signed()));
        }
        clause.values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
        let sql = format!(
            "SELECT {}, {start} FROM item {join} WHERE state = 'present' AND {} \
             ORDER BY {start}, id LIMIT ?",
            items::COLUMNS,
            clause.sql
        );
        self.0.ask_long(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let found: Vec<(ItemRow, i64)> = statement
                .query_map(params_from_iter(&clause.values), |row| {
                    Ok((items::read(row)?, row.get(items::COUNT)?))
                })?
                .collect::<Result<_, _>>()?;
            let candidate = |(mut row, at): (ItemRow, i64)| {
                row.item.files = items::files(connection, row.id)?;
                let standing = standing(connection, row.id)?;
                Ok(RetentionCandidate { row, at: Utc::from_micros(at), standing })
            };
            found.into_iter().map(candidate).collect()
        })
    }

    /// What the catalogue knows of an item beside its record.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn standing(&self, item: u64) -> Result<RetentionStanding, CatalogueError> {
        self.0.ask(|connection| standing(connection, item))
    }

    /// The names of the volumes that have an item.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn volumes_of(&self, item: u64) -> Result<Vec<String>, CatalogueError> {
        self.0.ask(|connection| {
            connection
                .prepare_cached(
                    "SELECT volume.name FROM place JOIN volume ON volume.id = place.volume \
                     WHERE place.item = ?1 ORDER BY volume.id",
                )?
                .query_map([item.cast_signed()], |row| row.get(0))?
                .collect()
        })
    }

    /// A page of the items that an operator holds.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn held(&self, query: &ItemQuery) -> Result<ItemPage, CatalogueError> {
        self.0.ask(|connection| search::search_held(connection, query))
    }

    /// Items that are marked as leaving, with their files.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn leaving(&self, limit: usize) -> Result<Vec<ItemRow>, CatalogueError> {
        self.0.ask(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT item FROM removal ORDER BY item LIMIT ?1")?;
            let ids: Vec<i64> = statement
                .query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let found = ids.into_iter().map(|id| items::get(connection, id.cast_unsigned()));
            Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        })
    }
}

impl RetentionScope<'_> {
    /// Whether summaries say all about its items.
    fn is_summed(&self) -> bool {
        let is_over = |filter: &Filter| filter.is_over(&summaries::is_summed);
        self.own.is_none_or(is_over) && self.before.iter().flatten().all(is_over)
    }

    fn clause(&self) -> Clause {
        let mut clause = Clause::default();
        for before in self.before {
            clause.sql.push_str("NOT ifnull((");
            match before {
                Some(filter) => clause.filter(filter),
                None => clause.sql.push('1'),
            }
            clause.sql.push_str("), 0) AND ");
        }
        clause.sql.push('(');
        match self.own {
            Some(filter) => clause.filter(filter),
            None => clause.sql.push('1'),
        }
        clause.sql.push(')');
        clause
    }
}

/// What the items of a rule are together.
pub fn figures(
    connection: &Connection,
    scope: RetentionScope<'_>,
    now: Utc,
) -> rusqlite::Result<RetentionFigures> {
    let clause = scope.clause();
    let sums = if scope.is_summed() {
        "SELECT ifnull(sum(items), 0), ifnull(sum(size), 0) FROM summary"
    } else {
        "SELECT count(*), ifnull(sum(size), 0) FROM item"
    };
    let of = format!("WHERE state = 'present' AND {}", clause.sql);
    let [items, bytes] = connection
        .prepare_cached(&format!("{sums} {of}"))?
        .query_row(params_from_iter(&clause.values), |row| {
            Ok([row.get::<_, i64>(0)?, row.get(1)?])
        })?;
    let day = Value::Integer((now - DAY).as_micros());
    let recent: i64 = connection
        .prepare_cached(&format!("SELECT count(*) FROM item {of} AND published > ?"))?
        .query_row(params_from_iter(clause.values.iter().chain([&day])), |row| row.get(0))?;
    let [items, bytes, recent] = [items, bytes, recent].map(i64::cast_unsigned);
    Ok(RetentionFigures { items, bytes, recent })
}

/// Marks an item, unless it is held or needed.
fn mark(connection: &Connection, removal: &ItemRemoval, now: Utc) -> rusqlite::Result<bool> {
    let ItemRemoval { item, leaves, reason } = removal;
    let standing = standing(connection, *item)?;
    if standing.held.is_some() || standing.pending.is_some() {
        return Ok(false);
    }
    let changed = connection
        .prepare_cached("UPDATE item SET state = 'removing' WHERE id = ?1 AND state = 'present'")?
        .execute([item.cast_signed()])?;
    if changed == 0 {
        return Ok(false);
    }
    connection
        .prepare_cached("INSERT INTO removal(item, at, leaves_record, reason) VALUES(?1,?2,?3,?4)")?
        .execute(params![
            item.cast_signed(),
            now.as_micros(),
            *leaves == RetentionLeaves::Record,
            reason
        ])?;
    Ok(true)
}

/// Settles an item whose files are gone.
fn settle(connection: &Connection, item: u64) -> rusqlite::Result<()> {
    let id = item.cast_signed();
    let found: Option<(i64, bool, String)> = connection
        .prepare_cached("SELECT at, leaves_record, reason FROM removal WHERE item = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((at, leaves_record, reason)) = found else { return Ok(()) };
    let run = |sql: &str| connection.prepare_cached(sql)?.execute([id]).map(drop);
    if leaves_record {
        connection
            .prepare_cached("UPDATE item SET state = 'removed', removed = ?2 WHERE id = ?1")?
            .execute(params![id, at])?;
    } else {
        let of = "SELECT id FROM delivery WHERE item = ?1";
        run(&format!("DELETE FROM part WHERE delivery IN ({of})"))?;
        for table in ["delivery", "file", "latency", "place"] {
            run(&format!("DELETE FROM {table} WHERE item = ?1"))?;
        }
        run("DELETE FROM item WHERE id = ?1")?;
    }
    run("DELETE FROM removal WHERE item = ?1")?;
    events::add(connection, Utc::from_micros(at), EventSubject::Item(item), "removed", &reason)
}

fn hold(connection: &Connection, item: u64, why: &str, now: Utc) -> rusqlite::Result<bool> {
    let is_there = connection
        .prepare_cached("SELECT 1 FROM item WHERE id = ?1 AND state = 'present'")?
        .exists([item.cast_signed()])?;
    if is_there {
        connection
            .prepare_cached("INSERT OR REPLACE INTO hold(item, since, why) VALUES(?1,?2,?3)")?
            .execute(params![item.cast_signed(), now.as_micros(), why])?;
    }
    Ok(is_there)
}

/// What is known of an item beside its record.
fn standing(connection: &Connection, item: u64) -> rusqlite::Result<RetentionStanding> {
    let held = connection
        .prepare_cached("SELECT why FROM hold WHERE item = ?1")?
        .query_row([item.cast_signed()], |row| row.get(0))
        .optional()?;
    let pending = deliveries::open_of_item(connection, item)?;
    let pending = pending.map(|(id, destination, state)| PendingDelivery {
        id,
        destination,
        state: state.name().to_owned(),
    });
    let volumes: i64 = connection
        .prepare_cached("SELECT count(*) FROM place WHERE item = ?1")?
        .query_row([item.cast_signed()], |row| row.get(0))?;
    let copies = deliveries::copies_of(connection, item)? + volumes.cast_unsigned();
    Ok(RetentionStanding { held, pending, copies, absent: None })
}

const DAY: Duration = Duration::from_secs(86_400);
