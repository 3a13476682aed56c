//! The options of a query: `$filter`, `$orderby`, `$top`, `$skip`, `$count`, `$select`, `$expand`.

use super::filter::{self, ODataFilter};
use crate::request::ServeRequest;
use serde_json::Value;
use skyhaul_catalogue::ListDirection;

/// The options of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct ODataQuery {
    /// What is asked for; all without.
    pub filter: Option<ODataFilter>,
    /// By which properties it is ordered.
    pub order: Vec<ODataOrder>,
    /// At most so many.
    pub top: Option<u64>,
    /// Without the first so many.
    pub skip: u64,
    /// Whether they are counted.
    pub is_counted: bool,
    /// Which properties are shown; all without.
    pub select: Vec<String>,
    /// What is shown with them.
    pub expand: Vec<String>,
    /// Where a page begins that the server has cut.
    pub skip_token: Option<String>,
}

/// A property that decides an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ODataOrder {
    /// The property.
    pub path: String,
    /// The direction.
    pub direction: ListDirection,
}

/// More is never skipped: the next page is at hand under `@odata.nextLink`.
const SKIP_MAX: u64 = 1_000_000;

impl ODataQuery {
    /// The options of a request.
    ///
    /// # Errors
    /// What is wrong with one.
    pub fn of(request: &ServeRequest) -> Result<Self, String> {
        let mut query = Self {
            filter: None,
            order: Vec::new(),
            top: None,
            skip: 0,
            is_counted: false,
            select: Vec::new(),
            expand: Vec::new(),
            skip_token: None,
        };
        let mut seen: Vec<&str> = Vec::new();
        for (name, value) in &request.query {
            // Newer services write them without the dollar sign (OData 4.01).
            let plain = name.strip_prefix('$').unwrap_or(name);
            if seen.contains(&plain) {
                return Err(format!("${plain} is there twice"));
            }
            let number =
                || value.parse::<u64>().map_err(|_| format!("${plain} is a number from 0"));
            match plain {
                "filter" => query.filter = Some(filter::parse(value)?),
                "orderby" => query.order = order(value)?,
                "top" => query.top = Some(number()?),
                "skip" => query.skip = number()?,
                "count" => {
                    query.is_counted = match value.as_str() {
                        "true" => true,
                        "false" => false,
                        _ => return Err("$count is true or false".to_owned()),
                    }
                }
                "select" => query.select = names(value),
                "expand" => query.expand = names(value),
                "skiptoken" => query.skip_token = Some(value.clone()),
                "format" if value == "json" || value.starts_with("application/json") => {}
                _ => {
                    let name = skyhaul_units::printable(name, 64);
                    return Err(format!("the option `{name}` is not supported"));
                }
            }
            seen.push(plain);
        }
        if query.skip > SKIP_MAX {
            return Err(format!("$skip is at most {SKIP_MAX}; follow @odata.nextLink instead"));
        }
        Ok(query)
    }
}

fn names(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

impl ODataQuery {
    /// An entity with those of its properties that are wanted.
    ///
    /// # Errors
    /// It has no such property.
    pub fn selected(&self, mut entity: Value) -> Result<Value, String> {
        let Some(properties) = entity.as_object_mut() else { return Ok(entity) };
        if let Some(name) =
            self.select.iter().find(|name| *name != "*" && !properties.contains_key(*name))
        {
            let name = skyhaul_units::printable(name, 64);
            return Err(format!("there is no property `{name}`; $metadata has them"));
        }
        if !self.select.is_empty() && !self.select.iter().any(|name| name == "*") {
            properties.retain(|name, _| self.select.contains(name) || self.expand.contains(name));
        }
        Ok(entity)
    }

    /// The set as the context of an answer names it: with the properties that are shown, where not
    /// all are (OData JSON format 4.0, 10.7).
    pub fn context_of(&self, set: &str) -> String {
        match self.select.is_empty() {
            true => set.to_owned(),
            false => format!("{set}({})", self.select.join(",")),
        }
    }
}

fn order(text: &str) -> Result<Vec<ODataOrder>, String> {
    let mut keys = Vec::new();
    for key in text.split(',').map(str::trim).filter(|key| !key.is_empty()) {
        let mut words = key.split_whitespace();
        let path = words.next().unwrap_or_default().to_owned();
        let direction = match words.next() {
            None | Some("asc") => ListDirection::Rising,
            Some("desc") => ListDirection::Falling,
            Some(_) => return Err("$orderby is a property, then asc or desc".to_owned()),
        };
        if words.next().is_some() {
            return Err("$orderby is a property, then asc or desc".to_owned());
        }
        keys.push(ODataOrder { path, direction });
    }
    Ok(keys)
}
