//! Checks JSON against a schema of docs/reference/schema, with the parts of JSON Schema 2020-12
//! that these schemas use.

use super::process::text;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// The JSON that a command printed. The command must have succeeded, and the JSON must fit
/// docs/reference/schema/`name`.
#[track_caller]
pub fn found(output: &Output, name: &str) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid(&found, name);
    found
}

/// Asserts that `value` fits docs/reference/schema/`name`.
#[track_caller]
pub fn assert_valid(value: &Value, name: &str) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/schema"))
        .join(name);
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut faults = Vec::new();
    check(value, (&schema, &schema), "$", &mut faults);
    assert!(faults.is_empty(), "{faults:#?}\n{value:#}");
}

/// `root` has the parts to which a schema refers.
fn check(value: &Value, (schema, root): (&Value, &Value), at: &str, faults: &mut Vec<String>) {
    let schema = schema.as_object().expect("a schema is an object");
    for (keyword, given) in schema {
        let holds = match keyword.as_str() {
            "type" => {
                let kinds =
                    given.as_array().map_or_else(|| vec![given], |kinds| kinds.iter().collect());
                kinds.into_iter().any(|kind| is_of(value, kind.as_str().unwrap()))
            }
            "enum" => given.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= given.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= given.as_f64().unwrap()),
            "required" => given.as_array().unwrap().iter().all(|key| {
                value.as_object().is_none_or(|object| object.contains_key(key.as_str().unwrap()))
            }),
            "properties" => {
                for (key, inner) in given.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        check(value, (inner, root), &format!("{at}.{key}"), faults);
                    }
                }
                true
            }
            "additionalProperties" => match given {
                Value::Bool(false) => value.as_object().is_none_or(|object| {
                    object.keys().all(|key| schema["properties"].get(key).is_some())
                }),
                _ => panic!("{at}: only `false` is understood"),
            },
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(value, (given, root), &format!("{at}[{index}]"), faults);
                }
                true
            }
            "$ref" => {
                let place = given.as_str().and_then(|name| name.strip_prefix('#'));
                let part = place.and_then(|place| root.pointer(place));
                check(value, (part.expect("a part of this schema"), root), at, faults);
                true
            }
            "$schema" | "$defs" | "title" | "description" => true,
            other => panic!("{at}: the test does not know the keyword {other}"),
        };
        if !holds {
            faults.push(format!("{at}: {keyword} {given}, but it is {value}"));
        }
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("no kind {other}"),
    }
}
