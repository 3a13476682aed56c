//! CQL2 as JSON (OGC 21-065r2, 8) to CQL2 text, which the catalogue reads. What the text cannot say
//! is refused here; names and types are checked there.

use serde_json::Value;

/// The deepest nesting, as of filters in text.
const DEPTH_MAX: usize = 60;

/// The text of a filter.
///
/// # Errors
/// What is wrong with it.
pub fn cql2_text(value: &Value) -> Result<String, String> {
    filter(value, 0)
}

fn filter(value: &Value, depth: usize) -> Result<String, String> {
    if depth > DEPTH_MAX {
        return Err(format!("the filter is nested more than {DEPTH_MAX} deep"));
    }
    if let Value::Bool(holds) = value {
        return Ok(if *holds { "TRUE" } else { "FALSE" }.to_owned());
    }
    let (op, arguments) = value["op"].as_str().zip(value["args"].as_array()).ok_or_else(|| {
        "a filter of JSON is an object with `op` and a list `args`, or true or false".to_owned()
    })?;
    match (op, arguments.as_slice()) {
        ("and" | "or", [_, ..]) => {
            let parts = arguments
                .iter()
                .map(|part| Ok(format!("({})", filter(part, depth + 1)?)))
                .collect::<Result<Vec<_>, String>>()?;
            Ok(parts.join(if op == "and" { " AND " } else { " OR " }))
        }
        ("not", [inner]) => Ok(format!("NOT ({})", filter(inner, depth + 1)?)),
        ("=" | "<>" | "<" | "<=" | ">" | ">=", [one, other]) => {
            Ok(format!("{} {op} {}", scalar(one)?, scalar(other)?))
        }
        ("like", [property, pattern]) => {
            Ok(format!("{} LIKE {}", scalar(property)?, scalar(pattern)?))
        }
        ("in", [property, Value::Array(values)]) => {
            let values = values.iter().map(scalar).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("{} IN ({})", scalar(property)?, values.join(", ")))
        }
        ("between", [property, least, most]) => {
            Ok(format!("{} BETWEEN {} AND {}", scalar(property)?, scalar(least)?, scalar(most)?))
        }
        ("isNull", [property]) => Ok(format!("{} IS NULL", scalar(property)?)),
        ("t_after" | "t_before", [property, time]) => {
            Ok(format!("{}({}, {})", op.to_ascii_uppercase(), scalar(property)?, scalar(time)?))
        }
        ("t_during", [property, span]) => {
            let bounds = span["interval"].as_array().map(Vec::as_slice);
            let Some([from, to]) = bounds else {
                return Err("`t_during` takes a property and an `interval` of two".to_owned());
            };
            Ok(format!(
                "T_DURING({}, INTERVAL({}, {}))",
                scalar(property)?,
                scalar(from)?,
                scalar(to)?
            ))
        }
        _ => {
            let op = skyhaul_units::printable(op, 32);
            Err(format!("`{op}` with {} arguments is not supported", arguments.len()))
        }
    }
}

/// A property or a value.
fn scalar(value: &Value) -> Result<String, String> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match value {
        Value::String(text) => Ok(quoted(text)),
        Value::Number(number) => Ok(number.to_string()),
        value => {
            let member = |name: &str| value.get(name).and_then(Value::as_str);
            if let Some(name) = member("property") {
                return Ok(format!("\"{}\"", name.replace('"', "\"\"")));
            }
            if let Some(time) = member("timestamp").or_else(|| member("date")) {
                return Ok(format!("TIMESTAMP({})", quoted(time)));
            }
            Err("a value is text, a number, a `property`, a `timestamp` or a `date`".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use skyhaul_catalogue::Filter;

    #[test]
    fn filters_of_json_mean_what_their_text_says() {
        let property = |name: &str| json!({"property": name});
        let comparison =
            |op: &str, name: &str, value: Value| json!({"op": op, "args": [property(name), value]});
        for (value, text) in [
            (comparison("=", "mission", json!("o'b")), "mission = 'o''b'"),
            (comparison(">=", "missing", json!(3)), "missing >= 3"),
            (
                json!({"op": "and", "args": [comparison("=", "mission", json!("a")),
                    {"op": "not", "args": [comparison("like", "product", json!("x%"))]}]}),
                "mission = 'a' AND NOT (product LIKE 'x%')",
            ),
            (comparison("in", "kind", json!(["session", "time"])), "kind IN ('session', 'time')"),
            (
                json!({"op": "between", "args": [property("size"), 1, 2.5]}),
                "(size >= 1 AND size <= 2.5)",
            ),
            (json!({"op": "isNull", "args": [property("end_datetime")]}), "end_datetime IS NULL"),
            (
                comparison("t_after", "datetime", json!({"timestamp": "2026-11-23T00:00:00Z"})),
                "start_datetime > TIMESTAMP('2026-11-23T00:00:00.000000Z')",
            ),
            (
                comparison("t_during", "datetime", json!({"interval": ["2026-11-23", ".."]})),
                "start_datetime > TIMESTAMP('2026-11-23T00:00:00.000000Z')",
            ),
            (json!(true), "TRUE"),
        ] {
            let read: Filter = cql2_text(&value).unwrap().parse().unwrap();
            assert_eq!(read, text.parse::<Filter>().unwrap(), "{value}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused_however_deep() {
        let mut deep = json!(true);
        for _ in 0..100 {
            deep = json!({"op": "not", "args": [deep]});
        }
        for bad in [
            deep,
            json!({}),
            json!([]),
            json!({"op": "s_intersects", "args": [1, 2]}),
            json!({"op": "=", "args": [1]}),
            json!({"op": "and", "args": []}),
            json!({"op": "=", "args": [{"function": "x"}, 1]}),
        ] {
            assert!(cql2_text(&bad).is_err(), "{bad}");
        }
        let name = json!({"op": "=", "args": [{"property": "a\" OR TRUE OR \"b"}, 1]});
        assert!(cql2_text(&name).unwrap().parse::<Filter>().is_err());
    }
}
