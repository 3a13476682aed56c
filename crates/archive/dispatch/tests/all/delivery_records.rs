//! Delivery records as the consumer of NASA's Cumulus reads them: its own PVL reader, and its
//! rules.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

use crate::cumulus;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use skyhaul_dispatch::sips::{FileType, Terms, write_record};
use skyhaul_dispatch::{CheckTerms, Checksum, DeliveredFile, DeliveryRecord, RecordCheck, check};
use skyhaul_units::{ByteCount, Duration, Utc};

const HOSTS: &str = "dist.example.org,192.0.2.7,2026";

/// Names as folders, files and systems have them, and such as a reader takes for something else.
fn name(random: &mut ChaCha8Rng) -> String {
    let made: [fn(&mut ChaCha8Rng) -> String; 8] = [
        |random| {
            format!("P{:07}VIIRSSCIENCEAT24341{:09}.PDS", random.random_range(0..9_999_999), 7)
        },
        |random| random.random_range(0..u64::MAX).to_string(),
        |random| format!("-{}.{}", random.random_range(0..99), random.random_range(0..99)),
        |random| format!("2026-11-{:02}", random.random_range(1..30)),
        |random| {
            format!(
                "2026-11-{:02}T{:02}:00:00Z",
                random.random_range(1..30),
                random.random_range(0..24)
            )
        },
        |random| format!("00{}", random.random_range(0..99)),
        |_| "END".to_owned(),
        |random| {
            let of = "abcXYZ019 _-.:/;,()[]{}<>!#%&@|~^$*+\\äß漢".chars().collect::<Vec<_>>();
            let inner: String =
                (0..random.random_range(1..40)).map(|_| *of.choose(random).unwrap()).collect();
            format!("x{inner}x")
        },
    ];
    made.choose(random).unwrap()(random)
}

fn checksum(random: &mut ChaCha8Rng) -> Option<Checksum> {
    match random.random_range(0..8) {
        0 => None,
        1 => Some(Checksum::Cksum([0, 1, u32::MAX][random.random_range(0..3)])),
        2 | 3 => Some(Checksum::Cksum(random.random())),
        // All digits, which stand for a number unless they are marked as text.
        4 | 5 => {
            let digit = |random: &mut ChaCha8Rng| {
                random.random_range(0..10) << 4 | random.random_range(0..10)
            };
            Some(Checksum::Md5(std::array::from_fn(|_| digit(random))))
        }
        _ => Some(Checksum::Md5(random.random())),
    }
}

pub fn record(random: &mut ChaCha8Rng) -> (DeliveryRecord, Terms) {
    let at = Utc::from_day(
        random.random_range(18_000..30_000),
        Duration::from_secs(random.random_range(0..86_400)),
    );
    let file = |random: &mut ChaCha8Rng| DeliveredFile {
        directory: format!("/{}", name(random)),
        name: name(random),
        size: ByteCount::new(random.random_range(0..1 << 50)),
        checksum: checksum(random),
        is_metadata: random.random(),
    };
    let record = DeliveryRecord {
        originator: name(random),
        consumer: name(random),
        sequence: random.random(),
        product: name(random),
        mission: name(random),
        data_type: name(random),
        version: random.random(),
        is_expedited: random.random(),
        created: at,
        expires: at + Duration::from_secs(7 * 86_400),
        span: random.random::<bool>().then_some((at, at + Duration::from_secs(60))),
        files: (0..random.random_range(1..6)).map(|_| file(random)).collect(),
    };
    let node = HOSTS.split(',').nth(random.random_range(0..6)).map(str::to_owned);
    let types = ["HDF", "HDF-EOS", "SCIENCE", "BROWSE", "QA", "TGZ", "LINKAGE"];
    let file_type = types.choose(random).unwrap().parse().unwrap();
    let metadata_type = FileType::METADATA;
    (record, Terms { node_name: node, data_version: name(random), file_type, metadata_type })
}

/// What a reader is to find.
fn expected(record: &DeliveryRecord, terms: &Terms) -> Value {
    let files = record.files.iter().map(|file| {
        let sum = match file.checksum {
            // The consumer has no check of 0.
            None | Some(Checksum::Cksum(0) | Checksum::Sha256(_)) => Value::Null,
            Some(Checksum::Cksum(value)) => json!(["CKSUM", value]),
            Some(Checksum::Md5(digest)) => {
                json!(["MD5", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()])
            }
        };
        json!({
            "directory": file.directory,
            "name": file.name,
            "size": file.size.as_u64(),
            "type": if file.is_metadata { "METADATA" } else { terms.file_type.as_str() },
            "sum": sum,
        })
    });
    json!({
        "from": record.originator,
        "to": record.consumer,
        "expires": format!("{}.000Z", &record.expires.to_string()[..19]),
        "groups": [{
            "type": record.data_type,
            "version": terms.data_version,
            "node": terms.node_name,
            "files": files.collect::<Vec<_>>(),
        }],
    })
}

#[test]
fn the_consumer_of_cumulus_reads_every_record_as_it_was_meant() {
    let Some(folder) = cumulus::reader() else { return };
    let mut random = ChaCha8Rng::seed_from_u64(22);
    let records: Vec<_> = (0..5_000).map(|_| record(&mut random)).collect();
    let texts: Vec<_> = records
        .iter()
        .map(|(record, terms)| String::from_utf8(write_record(record, terms).unwrap()).unwrap())
        .collect();
    let read = cumulus::read(&folder, HOSTS, &texts);
    assert_eq!(read.len(), records.len());
    for (((record, terms), text), read) in records.iter().zip(&texts).zip(read) {
        assert_eq!(read, expected(record, terms), "{text}");
    }
}

#[test]
fn what_breaks_a_rule_of_the_consumer_is_refused_by_its_reader() {
    let Some(folder) = cumulus::reader() else { return };
    let record = |lines: &str| {
        format!(
            "ORIGINATING_SYSTEM = a;\nCONSUMER_SYSTEM = b;\nTOTAL_FILE_COUNT = 1;\n\
             EXPIRATION_TIME = 2026-11-30T08:07:13Z;\nOBJECT = FILE_GROUP;\nDATA_TYPE = \
             c;\nDATA_VERSION = 001;\n\
             OBJECT = FILE_SPEC;\n{lines}END_OBJECT = FILE_SPEC;\nEND_OBJECT = FILE_GROUP;\nEND;\n"
        )
    };
    let file = "DIRECTORY_ID = /d;\nFILE_ID = f;\nFILE_SIZE = 1;\n";
    let science = format!("{file}FILE_TYPE = SCIENCE;\n");
    let cases = [
        (science.clone(), None),
        (format!("{file}FILE_TYPE = DATA;\n"), Some("INVALID FILE_TYPE PARAMETER: DATA")),
        (
            format!("{science}FILE_CKSUM_TYPE = SHA256;\nFILE_CKSUM_VALUE = ab;\n"),
            Some("UNSUPPORTED CHECKSUM TYPE: SHA256"),
        ),
        (
            format!(
                "{science}FILE_CKSUM_TYPE = MD5;\nFILE_CKSUM_VALUE = \
                \"12345678901234567890123456789012\";\n"
            ),
            Some("an MD5 is text"),
        ),
        (science.replace("= f;", "= 20261123;"), Some("FILE_ID is text")),
        (science.replace("= f;", "= 2026-11-23;"), Some("FILE_ID is text")),
        (
            science.replace("= f;", "= a=b.dat;"),
            Some("Failed to parse value ('a = b.dat') of FILE_ID"),
        ),
    ];
    let mut texts: Vec<_> = cases.iter().map(|(lines, _)| record(lines)).collect();
    texts.push(record(&science).replace("DATA_VERSION", "NODE_NAME = centre-1;\nDATA_VERSION"));
    let refused: Vec<_> = cumulus::read(&folder, HOSTS, &texts)
        .into_iter()
        .map(|read| read["refused"].as_str().map(str::to_owned))
        .collect();
    let wanted = cases
        .iter()
        .map(|(_, refused)| *refused)
        .chain([Some("Provider for host centre-1 not found")]);
    assert_eq!(
        refused.iter().map(Option::as_deref).collect::<Vec<_>>(),
        wanted.collect::<Vec<_>>()
    );
}

/// What is said here of a record.
fn checked(text: &str) -> RecordCheck {
    let hosts = Some(HOSTS.split(',').map(str::to_owned).collect());
    check(text.as_bytes(), &CheckTerms { hosts })
}

/// The name of a refusal that stands for a rule of the consumer's reader.
fn verdict(refused: &str) -> &'static str {
    let names = [
        ("PDR file had no contents", "INVALID OR UNREADABLE FILE"),
        ("Failed to parse value", "INVALID PVL STATEMENT"),
        ("Cannot read properties", "INVALID PVL STATEMENT"),
        ("DATA_TYPE is text", "INVALID DATA TYPE"),
        ("DATA_VERSION is missing", "INVALID DATA TYPE"),
        ("No FILE_SPEC", "INVALID FILE GROUP"),
        ("Provider for host", "INVALID NODE NAME"),
        ("DIRECTORY_ID is text", "INVALID DIRECTORY"),
        ("FILE_ID is text", "INVALID FILE ID"),
        ("FILE_SIZE is a number", "INVALID FILE SIZE"),
        ("INVALID FILE_TYPE", "INVALID FILE TYPE"),
        ("MISSING FILE_CKSUM_TYPE", "MISSING FILE_CKSUM_TYPE PARAMETER"),
        ("MISSING FILE_CKSUM_VALUE", "MISSING FILE_CKSUM_VALUE PARAMETER"),
        ("UNSUPPORTED CHECKSUM TYPE", "UNSUPPORTED CHECKSUM TYPE"),
        ("a CKSUM is a number", "INVALID FILE_CKSUM_VALUE"),
        ("an MD5 is text", "INVALID FILE_CKSUM_VALUE"),
        ("there is a FILE_GROUP", "INVALID FILE GROUP"),
        ("Duplicate granule", "INVALID FILE GROUP"),
        ("TOTAL_FILE_COUNT", "INVALID FILE COUNT"),
        ("EXPIRATION_TIME is a time", "INVALID PVL STATEMENT"),
        ("Invalid time value", "INVALID PVL STATEMENT"),
    ];
    let found = names.iter().find(|(rule, _)| refused.starts_with(rule));
    found.unwrap_or_else(|| panic!("no name for: {refused}")).1
}

/// Values and lines that readers take for something else.
const ODD: [&str; 40] = [
    "",
    "0",
    "00",
    "7",
    "-1",
    "1.5",
    "1.",
    "+3",
    "'7'",
    "''",
    "'it",
    "2026-11-30",
    "2026-11-30T",
    "2026-02-31",
    "2026-13-01",
    "2026-11-30T24:00:00",
    "2026-11-30T08:07",
    "2026-11-30T08",
    "2026-11-30T08:07:13.25Z",
    "2026-11-30-08:07:13",
    "11/30/2026",
    "11/30/2026-08:07",
    "13/30/2026",
    "11/30/2026T08:07:13",
    "MD5",
    "CKSUM",
    "SHA256",
    "DATA",
    "SCIENCE",
    "a=b",
    "\"x\"",
    "x;y",
    "{",
    "ä",
    "END",
    "END_OBJECT",
    "OBJECT",
    "FILE_SPEC",
    "/* c */",
    "dist.example.org",
];

/// Breaks a record here and there.
fn broken(random: &mut ChaCha8Rng, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..random.random_range(1..4) {
        if lines.is_empty() {
            break;
        }
        let (at, other) =
            (random.random_range(0..lines.len()), random.random_range(0..lines.len()));
        let odd = *ODD.choose(random).unwrap();
        match random.random_range(0..9) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => lines[at] = odd.to_owned(),
            4 => lines.insert(at, format!("{odd} = {odd};")),
            5 => {
                // A character anywhere in the line.
                let of = "=;'\"/*{}# \tä\u{feff}\u{85}\u{a0}\r0".chars().collect::<Vec<_>>();
                let ends: Vec<usize> = lines[at].char_indices().map(|(end, _)| end).collect();
                let end = ends.choose(random).copied().unwrap_or_default();
                lines[at].insert(end, *of.choose(random).unwrap());
            }
            _ => {
                let key = lines[at].split(" = ").next().unwrap().to_owned();
                lines[at] = format!("{key} = {odd};");
            }
        }
    }
    lines.join("\n")
}

#[test]
fn a_check_says_what_the_consumer_says_of_good_and_of_broken_records() {
    let Some(folder) = cumulus::reader() else { return };
    let mut random = ChaCha8Rng::seed_from_u64(21);
    let texts: Vec<String> = (0..10_000)
        .map(|number| {
            let (record, terms) = record(&mut random);
            let text = String::from_utf8(write_record(&record, &terms).unwrap()).unwrap();
            if number % 5 == 0 { text } else { broken(&mut random, &text) }
        })
        // Such a text is taken for another kind of file here.
        .filter(|text| !text.starts_with(['{', '\u{c}']))
        .collect();
    let read = cumulus::read(&folder, HOSTS, &texts);
    let mut refused = std::collections::BTreeMap::new();
    for (text, read) in texts.iter().zip(read) {
        let check = checked(text);
        let said = read["refused"].as_str();
        assert_eq!(check.verdict, said.map_or("SUCCESSFUL", verdict), "{said:?}\n{text}");
        if let Some(said) = said {
            *refused.entry(verdict(said)).or_insert(0) += 1;
        }
    }
    // Enough of each kind: the comparison means something.
    assert!(refused.len() >= 12 && refused.values().sum::<i32>() > 3_000, "{refused:?}");
}
