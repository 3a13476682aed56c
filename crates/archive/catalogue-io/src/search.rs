//! Searching items: filters as SQL, and pages that neither lose nor repeat items while others come.

use crate::items::{self, ItemRow};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use skyhaul_catalogue::{Filter, LikePart, Property, PropertyType, PropertyValue};
use skyhaul_units::Utc;

/// What is searched for. Newest first.
#[derive(Debug, Clone)]
pub struct ItemQuery {
    /// Items that it takes; none takes all.
    pub filter: Option<Filter>,
    /// Behind this item.
    pub after: Option<PageToken>,
    /// At most so many.
    pub limit: usize,
}

/// The last item of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageToken {
    /// When it was published.
    pub published: Utc,
    /// Its number.
    pub id: u64,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPage {
    /// The items.
    pub items: Vec<ItemRow>,
    /// Where the next page begins; none behind the last one.
    pub next: Option<PageToken>,
}

impl core::fmt::Display for PageToken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}-{}", self.published.as_micros(), self.id)
    }
}

impl core::str::FromStr for PageToken {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text
            .rsplit_once('-')
            .and_then(|(published, id)| Some((published.parse().ok()?, id.parse::<u64>().ok()?)));
        let refuse = || format!("`{text}` is no place in a list; take one from an earlier page");
        let (published, id) = parts.ok_or_else(refuse)?;
        Ok(Self { published: Utc::from_micros(published), id })
    }
}

/// A page of items, with their files.
pub fn search(connection: &Connection, query: &ItemQuery) -> rusqlite::Result<ItemPage> {
    search_in(connection, query, "item")
}

/// The same of those that an operator holds: few, so that all others are not looked at.
pub fn search_held(connection: &Connection, query: &ItemQuery) -> rusqlite::Result<ItemPage> {
    search_in(connection, query, "hold CROSS JOIN item ON item.id = hold.item")
}

fn search_in(
    connection: &Connection,
    query: &ItemQuery,
    source: &str,
) -> rusqlite::Result<ItemPage> {
    let mut clause = Clause::default();
    // First, so that SQLite begins there and not at a bound of the filter: it takes one of those
    // that are as good.
    if let Some(after) = query.after {
        clause.sql.push_str("(published, id) < (?, ?) AND ");
        clause.values.push(Value::Integer(after.published.as_micros()));
        clause.values.push(Value::Integer(after.id.cast_signed()));
    }
    clause.sql.push('(');
    match &query.filter {
        Some(filter) => clause.filter(filter),
        None => clause.sql.push('1'),
    }
    clause.sql.push(')');
    clause.values.push(Value::Integer(i64::try_from(query.limit + 1).unwrap_or(i64::MAX)));
    let sql = format!(
        "SELECT {} FROM {source} WHERE {} ORDER BY published DESC, id DESC LIMIT ?",
        items::COLUMNS,
        clause.sql
    );
    // A page after the other, and thousands of looks at one name, are one statement.
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found: Vec<ItemRow> = statement
        .query_map(params_from_iter(clause.values), items::read)?
        .collect::<Result<_, _>>()?;
    let has_more = found.len() > query.limit;
    found.truncate(query.limit);
    for row in &mut found {
        row.item.files = items::files(connection, row.id)?;
    }
    let last = found.last().filter(|_| has_more);
    let next = last.map(|row| PageToken { published: row.item.published, id: row.id });
    Ok(ItemPage { items: found, next })
}

/// A condition in SQL, with its values.
#[derive(Debug, Default)]
pub struct Clause {
    pub sql: String,
    pub values: Vec<Value>,
}

impl Clause {
    /// Adds a filter. Values go beside the text, never into it.
    pub fn filter(&mut self, filter: &Filter) {
        match filter {
            Filter::Always(holds) => self.sql.push(if *holds { '1' } else { '0' }),
            Filter::And(all) if all.is_empty() => self.sql.push('1'),
            Filter::Or(any) if any.is_empty() => self.sql.push('0'),
            Filter::And(all) => self.joined(all, " AND "),
            Filter::Or(any) => self.joined(any, " OR "),
            Filter::Not(inner) => {
                self.sql.push_str("NOT (");
                self.filter(inner);
                self.sql.push(')');
            }
            Filter::IsNull(property) if property.is_list() => {
                self.sql.push_str(&format!("{} = ''", column(*property)));
            }
            Filter::IsNull(property) => {
                self.sql.push_str(&format!("{} IS NULL", column(*property)));
            }
            Filter::Compare(property, op, value) => {
                self.each(*property, |clause, column| {
                    clause.sql.push_str(&format!("{column} {} ?", op.sign()));
                    clause.values.push(bound(value));
                });
            }
            Filter::In(property, values) => self.each(*property, |clause, column| {
                let marks = vec!["?"; values.len()].join(",");
                clause.sql.push_str(&format!("{column} IN ({marks})"));
                clause.values.extend(values.iter().map(bound));
            }),
            Filter::Like(property, like) => self.each(*property, |clause, column| {
                clause.sql.push_str(&format!("{column} GLOB ?"));
                clause.values.push(Value::Text(glob(&like.parts())));
            }),
        }
    }

    /// Joins one filter or more, by halves: SQLite takes a chain of a thousand words for one that
    /// is nested as deep, and refuses it.
    fn joined(&mut self, filters: &[Filter], word: &str) {
        self.sql.push('(');
        if let [one] = filters {
            self.filter(one);
        } else {
            let (first, second) = filters.split_at(filters.len() / 2);
            self.joined(first, word);
            self.sql.push_str(word);
            self.joined(second, word);
        }
        self.sql.push(')');
    }

    /// A condition on the value of a column, or on any entry of a list; not known where there is
    /// none.
    fn each(&mut self, property: Property, condition: impl FnOnce(&mut Self, &str)) {
        let column = column(property);
        if !property.is_list() {
            return condition(self, column);
        }
        // The list as JSON: entries are names and numbers, which need no escapes.
        let (json, entry) = match property.of_type() {
            PropertyType::Number => (format!("'[' || trim({column}, ',') || ']'"), "entry.value"),
            _ => (
                format!("'[\"' || replace(trim({column}, ','), ',', '\",\"') || '\"]'"),
                "entry.value",
            ),
        };
        self.sql.push_str(&format!(
            "CASE {column} WHEN '' THEN NULL ELSE EXISTS(SELECT 1 FROM json_each({json}) AS entry \
             WHERE "
        ));
        condition(self, entry);
        self.sql.push_str(") END");
    }
}

/// The column of a property, or what is computed from columns.
pub const fn column(property: Property) -> &'static str {
    match property {
        Property::Id => "name",
        Property::VersionedId => "(name || '-v' || version)",
        Property::Collection => "collection",
        Property::Kind => "form",
        Property::Mission => "mission",
        Property::Station => "stations",
        Property::Product => "product",
        Property::Apid => "apids",
        Property::Version => "version",
        Property::Start => "first",
        Property::End => "last",
        Property::Published => "published",
        Property::Size => "size",
        Property::Missing => "missing",
        Property::State => "state",
    }
}

/// A value beside the text of a statement.
pub fn bound(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Text(text) => Value::Text(text.clone()),
        PropertyValue::Number(number) => Value::Real(*number),
        PropertyValue::Time(time) => Value::Integer(time.as_micros()),
    }
}

/// A pattern as SQLite's `GLOB` has it, which tells capital letters from small ones.
fn glob(parts: &[LikePart]) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            LikePart::Any => text.push('*'),
            LikePart::One => text.push('?'),
            LikePart::Exactly(character) if "*?[".contains(*character) => {
                text.push('[');
                text.push(*character);
                text.push(']');
            }
            LikePart::Exactly(character) => text.push(*character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use skyhaul_catalogue::{CompareOp, Item, ItemForm, ItemState};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn item(number: i64) -> Item {
        Item {
            name: format!("P{number}"),
            version: 1,
            form: ItemForm::Session,
            mission: "aqua".to_owned(),
            product: "modis".to_owned(),
            stations: Vec::new(),
            apids: Vec::new(),
            start: None,
            end: None,
            published: Utc::from_micros(number),
            packets: 1,
            missing: 0,
            state: ItemState::Present,
            files: Vec::new(),
        }
    }

    /// Regression: each page of what a subscription takes looked at all pages before it, where a
    /// filter bounds the time too.
    #[test]
    fn a_page_costs_the_same_wherever_it_is() {
        const ITEMS: i64 = 3_000;
        let folder = tempfile::tempdir().unwrap();
        let mut connection = schema::open(&folder.path().join("catalogue.db")).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        for number in 1..=ITEMS {
            items::add(&connection, &item(number)).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        let steps = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&steps);
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        connection.progress_handler(1, Some(count)).unwrap();
        let published = |op, at| {
            let at = PropertyValue::Time(Utc::from_micros(at));
            Filter::Compare(Property::Published, op, at)
        };
        let present = PropertyValue::Text("present".to_owned());
        let filter = Filter::And(vec![
            published(CompareOp::GreaterEqual, 0),
            published(CompareOp::Less, 2 * ITEMS),
            Filter::Compare(Property::State, CompareOp::Equal, present),
        ]);
        let cost_after = |place: i64| {
            let after = PageToken { published: Utc::from_micros(place), id: place as u64 };
            let query = ItemQuery { filter: Some(filter.clone()), after: Some(after), limit: 100 };
            let before = steps.load(Ordering::Relaxed);
            let page = search(&connection, &query).unwrap();
            assert_eq!(page.items.len(), 100);
            assert_eq!(page.items[0].id, place as u64 - 1);
            steps.load(Ordering::Relaxed) - before
        };
        let first = cost_after(ITEMS);
        let last = cost_after(101);
        assert!(last < first * 3 / 2, "{first} steps of the first page, {last} of the last one");
    }
}
