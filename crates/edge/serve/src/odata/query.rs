//! The options of a query: `$filter`, `$orderby`, `$top`, `$skip`, `$count`, `$expand`.

use super::filter::{self, ODataFilter};
use crate::request::ServeRequest;
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
                "expand" => {
                    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                    query.expand = names.map(str::to_owned).collect();
                }
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
