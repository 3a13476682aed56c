//! Cloud notification messages fit the schema of their format, by an independent validator, and a
//! check here says of broken ones what that one says.

use crate::delivery_records::record;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use skyhaul_dispatch::cnm::{CnmTerms, write_notification};
use skyhaul_dispatch::{CheckTerms, check};
use std::io::Write;
use std::process::{Command, Stdio};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Which texts fit the schema; none where there is no validator.
fn valid(texts: &[String]) -> Option<Vec<bool>> {
    let started = Command::new("python3")
        .arg(format!("{HERE}/tests/cnm.py"))
        .arg(format!("{HERE}/../../../docs/reference/schema/cnm.json"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = started else {
        eprintln!("SKIPPED: there is no python3 for the validator of JSON schemas");
        return None;
    };
    let mut input = python.stdin.take().unwrap();
    // Where the validator is missing, it reads nothing.
    let _ = input.write_all(&serde_json::to_vec(texts).unwrap());
    drop(input);
    let output = python.wait_with_output().unwrap();
    if output.status.code() == Some(77) {
        eprintln!("SKIPPED: the Python package jsonschema is not installed");
        return None;
    }
    assert!(output.status.success(), "cnm.py failed");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn message(random: &mut ChaCha8Rng) -> String {
    let (mut record, terms) = record(random);
    let base = ["s3://bucket/a", "file:///data/out/", "sftp://host/in"];
    let base = (*base.choose(random).unwrap()).to_owned();
    record.files.iter_mut().for_each(|file| file.directory.clone_from(&base));
    let terms = CnmTerms { data_version: terms.data_version, submitted: record.created };
    String::from_utf8(write_notification(&record, &terms)).unwrap()
}

/// The pointers to all parts of a value, but for times, whose form the validator does not look at.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut within = |key: String, inner: &Value| {
        let at = format!("{at}/{key}");
        if !key.ends_with("Time") {
            found.push(at.clone());
        }
        pointers(inner, &at, found);
    };
    match value {
        Value::Object(parts) => {
            parts.iter().for_each(|(key, inner)| within(key.clone(), inner));
        }
        Value::Array(parts) => {
            parts.iter().enumerate().for_each(|(at, inner)| within(at.to_string(), inner));
        }
        _ => {}
    }
}

/// Breaks a part of a message.
fn broken(random: &mut ChaCha8Rng, text: &str) -> String {
    let mut message: Value = serde_json::from_str(text).unwrap();
    let mut found = Vec::new();
    pointers(&message, "", &mut found);
    let at = found.choose(random).unwrap();
    let odd = [
        json!(null),
        json!(1),
        json!(""),
        json!("data"),
        json!("1.5"),
        json!("SHA2"),
        json!([]),
        json!({}),
        json!({"name": "a", "version": "1"}),
        json!([{"id": "a", "files": []}]),
        json!("forward"),
    ];
    let (parent, key) = at.rsplit_once('/').unwrap();
    let place = message.pointer_mut(parent).unwrap();
    match (random.random_range(0..4), place) {
        (0, Value::Object(parts)) => drop(parts.remove(key)),
        (1, Value::Object(parts)) => {
            let value = parts.remove(key).unwrap();
            parts.insert((*["filegroups", "x"].choose(random).unwrap()).to_owned(), value);
        }
        (_, place) => match place {
            Value::Object(parts) => {
                parts.insert(key.to_owned(), odd.choose(random).unwrap().clone());
            }
            Value::Array(parts) => {
                parts[key.parse::<usize>().unwrap()] = odd.choose(random).unwrap().clone();
            }
            _ => {}
        },
    }
    message.to_string()
}

#[test]
fn a_validator_takes_every_message_and_refuses_what_a_check_here_refuses() {
    let mut random = ChaCha8Rng::seed_from_u64(161);
    let good: Vec<String> = (0..1_000).map(|_| message(&mut random)).collect();
    let bad: Vec<String> = (0..5_000)
        .map(|_| {
            let text = good.choose(&mut random).unwrap();
            broken(&mut random, text)
        })
        .collect();
    let Some(fits) = valid(&good) else { return };
    assert!(fits.iter().all(|fits| *fits), "a message does not fit");
    let Some(fits) = valid(&bad) else { return };
    let taken = |text: &String| check(text.as_bytes(), &CheckTerms::default());
    for text in &good {
        let check = taken(text);
        assert!(check.is_taken, "{check:?}");
    }
    for (text, fits) in bad.iter().zip(&fits) {
        let check = taken(text);
        assert_eq!(check.is_taken, *fits, "{check:?}\n{text}");
    }
    let refused = fits.iter().filter(|fits| !**fits).count();
    assert!((1_000..4_900).contains(&refused), "{refused}");
}
