//! The fields extension: which members of an item are shown.

use serde_json::{Map, Value};

/// Which members are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemFields {
    include: Vec<String>,
    exclude: Vec<String>,
}

/// What makes an item an item; it stays unless it is excluded by name.
const ALWAYS: [&str; 4] = ["type", "stac_version", "id", "collection"];
/// Names of one request.
const NAMES_MAX: usize = 100;

impl ItemFields {
    /// From `["a", "-b"]` of an address, or from an object with `include` and `exclude`.
    ///
    /// # Errors
    /// It is neither.
    pub fn read(value: &Value) -> Result<Self, String> {
        let names = |value: &Value| -> Option<Vec<String>> {
            let values = value.as_array().filter(|values| values.len() <= NAMES_MAX)?;
            values.iter().map(|name| Some(name.as_str()?.to_owned())).collect()
        };
        let refuse = || "`fields` is a list of names, or has `include` and `exclude`".to_owned();
        let mut fields = Self::default();
        if let Value::Object(members) = value {
            for (name, value) in members {
                let listed = names(value).ok_or_else(refuse)?;
                match name.as_str() {
                    "include" => fields.include = listed,
                    "exclude" => fields.exclude = listed,
                    _ => return Err(refuse()),
                }
            }
            return Ok(fields);
        }
        for name in names(value).ok_or_else(refuse)?.into_iter().filter(|name| !name.is_empty()) {
            match name.strip_prefix('-') {
                Some(name) => fields.exclude.push(name.to_owned()),
                None => fields.include.push(name.trim_start_matches(['+', ' ']).to_owned()),
            }
        }
        Ok(fields)
    }

    /// An item with these members alone.
    pub fn of(&self, mut item: Value) -> Value {
        if !self.include.is_empty() {
            let mut kept = Map::new();
            let always = ALWAYS.into_iter().map(str::to_owned);
            for name in always.chain(self.include.iter().cloned()) {
                copy(&item, &mut kept, &name);
            }
            item = Value::Object(kept);
        }
        for name in &self.exclude {
            remove(&mut item, name);
        }
        item
    }
}

/// Copies `a` or `a.b`.
fn copy(item: &Value, kept: &mut Map<String, Value>, name: &str) {
    let (outer, inner) = name.split_once('.').map_or((name, None), |(a, b)| (a, Some(b)));
    let Some(value) = item.get(outer) else { return };
    match inner {
        None => drop(kept.insert(outer.to_owned(), value.clone())),
        Some(inner) => {
            let Some(found) = value.get(inner) else { return };
            let within = kept.entry(outer).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(within) = within {
                within.insert(inner.to_owned(), found.clone());
            }
        }
    }
}

fn remove(item: &mut Value, name: &str) {
    let (outer, inner) = name.split_once('.').map_or((name, None), |(a, b)| (a, Some(b)));
    let Value::Object(members) = item else { return };
    match inner {
        None => drop(members.remove(outer)),
        Some(inner) => {
            if let Some(Value::Object(within)) = members.get_mut(outer) {
                within.remove(inner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_included_and_excluded() {
        let item = json!({"type": "Feature", "id": "x", "properties": {"a:b": 1, "c": 2},
            "assets": {"d.PDS": {}}});
        for (fields, shown) in [
            (json!([]), item.clone()),
            (
                json!(["-assets", "-properties.c"]),
                json!({"type": "Feature", "id": "x", "properties": {"a:b": 1}}),
            ),
            (
                json!(["properties.a:b"]),
                json!({"type": "Feature", "id": "x", "properties": {"a:b": 1}}),
            ),
            (
                json!({"include": ["assets"], "exclude": ["type"]}),
                json!({"id": "x", "assets": {"d.PDS": {}}}),
            ),
            (json!(["id", "nothing", "id.x"]), json!({"type": "Feature", "id": "x"})),
        ] {
            assert_eq!(ItemFields::read(&fields).unwrap().of(item.clone()), shown, "{fields}");
        }
        for bad in [json!("a"), json!({"with": []}), json!([1]), json!(vec!["a"; 101])] {
            assert!(ItemFields::read(&bad).is_err(), "{bad}");
        }
    }
}
