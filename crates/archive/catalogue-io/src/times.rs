//! The latency account as rows: the way of each contact's blocks, that of each item's last packet,
//! and the products of a period with their consumers.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use skyhaul_catalogue::{AccountRow, ConsumerTimes, ContactTimes, ItemForm, ItemTimes};
use skyhaul_units::Utc;

/// Keeps the way of a contact's blocks, which ended then.
pub fn keep_contact(
    connection: &Connection,
    name: &str,
    closed: Utc,
    times: &ContactTimes,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO contact(name, mission, closed, blocks) VALUES(?1,?2,?3,?4)",
        )?
        .execute(params![name, times.mission, closed.as_micros(), times.encode()])?;
    connection
        .prepare_cached("DELETE FROM contact WHERE closed < ?1")?
        .execute([closed.as_micros().saturating_sub(KEPT_US)])
        .map(drop)
}

/// The way of a contact's blocks.
pub fn contact(connection: &Connection, name: &str) -> rusqlite::Result<Option<ContactTimes>> {
    connection
        .prepare_cached("SELECT mission, blocks FROM contact WHERE name = ?1")?
        .query_row([name], contact_of)
        .optional()
}

fn contact_of(row: &Row<'_>) -> rusqlite::Result<ContactTimes> {
    let blocks = row.get_ref(1)?.as_blob().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(1, Type::Blob, Box::new(error))
    })?;
    Ok(ContactTimes::decode(row.get(0)?, blocks))
}

/// Keeps the way of the last packet of an item that is there. What is kept already stays: it is of
/// when the item was published.
pub fn keep_item(
    connection: &Connection,
    name: &str,
    version: u32,
    times: &ItemTimes,
) -> rusqlite::Result<()> {
    let mut one = ContactTimes::new("");
    one.push(times.block);
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO latency(item, contact, last_bit, block) \
             SELECT id, ?3, ?4, ?5 FROM item WHERE name = ?1 AND version = ?2",
        )?
        .execute(params![name, version, times.contact, times.last_bit.as_micros(), one.encode()])
        .map(drop)
}

/// Which products an account is of: from one time until before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountScope {
    /// Those that were published then.
    Published {
        /// From then on.
        from: Utc,
        /// Until before then.
        to: Utc,
    },
    /// Those whose account ended then: that were handed over, or published where nobody gets them.
    /// Of those that were published longer than ten days before, nothing is said.
    Ended {
        /// From then on.
        from: Utc,
        /// Until before then.
        to: Utc,
    },
}

/// Each product of a scope, once for each consumer, or once without one, in the order of
/// publication.
pub fn accounts(
    connection: &Connection,
    scope: AccountScope,
    mut visit: impl FnMut(&AccountRow),
) -> rusqlite::Result<()> {
    let (oldest, from, to, is_ended) = match scope {
        AccountScope::Published { from, to } => (from.as_micros(), from, to, false),
        AccountScope::Ended { from, to } => {
            (from.as_micros().saturating_sub(ENDED_US), from, to, true)
        }
    };
    let mut statement = connection.prepare_cached(&format!(
        "{ACCOUNTS} WHERE item.published >= ?1 AND item.published < ?3 AND (NOT ?4 OR CASE \
         WHEN delivery.id IS NULL THEN item.published >= ?2 \
         ELSE delivery.handed >= ?2 AND delivery.handed < ?3 END) \
         ORDER BY item.published, item.id, delivery.id"
    ))?;
    let mut rows = statement.query(params![oldest, from.as_micros(), to.as_micros(), is_ended])?;
    while let Some(row) = rows.next()? {
        visit(&account(row)?);
    }
    Ok(())
}

/// The products with their way and their deliveries.
const ACCOUNTS: &str = "SELECT item.mission, item.product, item.form, item.stations, item.name, \
    item.version, item.last, item.published, latency.contact, latency.last_bit, latency.block, \
    destination.name, delivery.handed, delivery.accepted, delivery.state \
    FROM item LEFT JOIN latency ON latency.item = item.id \
    LEFT JOIN delivery ON delivery.item = item.id \
    LEFT JOIN destination ON destination.id = delivery.destination";
/// Ten days: more are looked at by a report alone.
const ENDED_US: i64 = 10 * 86_400 * 1_000_000;

fn account(row: &Row<'_>) -> rusqlite::Result<AccountRow> {
    let time = |at: usize| row.get::<_, Option<i64>>(at).map(|time| time.map(Utc::from_micros));
    let (form, stations): (String, String) = (row.get(2)?, row.get(3)?);
    let stations = stations.split(',').filter(|name| !name.is_empty()).map(str::to_owned);
    let times = match (row.get::<_, Option<String>>(8)?, time(9)?) {
        (Some(contact), Some(last_bit)) => {
            let blocks: Vec<u8> = row.get(10)?;
            let block = ContactTimes::decode(String::new(), &blocks).blocks().first().copied();
            block.map(|block| ItemTimes { contact, last_bit, block })
        }
        _ => None,
    };
    let consumer = match row.get::<_, Option<String>>(11)? {
        None => None,
        Some(name) => Some(ConsumerTimes {
            name,
            handed: time(12)?,
            accepted: time(13)?,
            is_given_up: crate::deliveries::is_given_up(row.get(14)?),
        }),
    };
    Ok(AccountRow {
        mission: row.get(0)?,
        product: row.get(1)?,
        form: ItemForm::named(&form).unwrap_or(ItemForm::File),
        stations: stations.collect(),
        name: row.get(4)?,
        version: row.get(5)?,
        observed: time(6)?,
        times,
        published: Utc::from_micros(row.get(7)?),
        consumer,
    })
}

/// Each contact that ended from one time until before another.
pub fn contacts(
    connection: &Connection,
    from: Utc,
    to: Utc,
    mut visit: impl FnMut(&ContactTimes),
) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare("SELECT mission, blocks FROM contact WHERE closed >= ?1 AND closed < ?2")?;
    let mut rows = statement.query([from.as_micros(), to.as_micros()])?;
    while let Some(row) = rows.next()? {
        visit(&contact_of(row)?);
    }
    Ok(())
}

/// 100 days: a quarter's report. 100 contacts a day take 700 MB at the most.
const KEPT_US: i64 = 100 * 86_400 * 1_000_000;
