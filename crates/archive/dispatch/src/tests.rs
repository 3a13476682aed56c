//! Records are read back as they were written; notices of every kind are understood, and anything
//! else is refused.

use super::*;
use proptest::prelude::*;
use skyhaul_units::Duration;

pub(crate) fn record() -> DeliveryRecord {
    let at = Utc::from_day(20_063, Duration::from_secs(7_200));
    let digest = [
        0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90,
        0x12,
    ];
    let file = |name: &str, is_metadata, checksum| DeliveredFile {
        directory: "/data/incoming".to_owned(),
        name: name.to_owned(),
        size: ByteCount::new(12_345),
        checksum: Some(checksum),
        is_metadata,
    };
    DeliveryRecord {
        originator: "centre-1".to_owned(),
        consumer: "LAADS".to_owned(),
        sequence: 77,
        product: "P1570826VIIRSSCIENCEAT24341100000000".to_owned(),
        mission: "suomi-npp".to_owned(),
        data_type: "viirs-science".to_owned(),
        version: 2,
        is_expedited: false,
        created: at,
        expires: at + Duration::from_secs(86_400),
        span: Some((at, at + Duration::from_secs(60))),
        files: vec![
            file("P1570826VIIRSSCIENCEAT24341100000001.PDS", false, Checksum::Md5(digest)),
            file("P1570826VIIRSSCIENCEAT24341100000000.PDS", true, Checksum::Cksum(4_208_254_019)),
        ],
    }
}

fn group(statements: &[pvl::Statement]) -> &[pvl::Statement] {
    let found = statements.iter().find_map(|statement| match statement {
        pvl::Statement::Object(name, body) if name == "FILE_GROUP" => Some(body),
        _ => None,
    });
    found.unwrap()
}

fn terms() -> sips::Terms {
    sips::Terms {
        node_name: None,
        data_version: "001".to_owned(),
        file_type: "SCIENCE".parse().unwrap(),
        metadata_type: sips::FileType::METADATA,
    }
}

fn files(group: &[pvl::Statement]) -> Vec<[Option<&str>; 3]> {
    let files = group.iter().filter_map(|statement| match statement {
        pvl::Statement::Object(_, body) => Some(
            ["FILE_TYPE", "FILE_CKSUM_TYPE", "FILE_CKSUM_VALUE"].map(|key| pvl::value(body, key)),
        ),
        pvl::Statement::Value(..) => None,
    });
    files.collect()
}

#[test]
fn a_sips_record_says_what_is_delivered() {
    let text = String::from_utf8(sips::write_record(&record(), &terms()).unwrap()).unwrap();
    let all = pvl::parse(&text).unwrap();
    assert_eq!(pvl::value(&all, "TOTAL_FILE_COUNT"), Some("2"));
    assert_eq!(pvl::value(&all, "EXPIRATION_TIME"), Some("2024-12-07T02:00:00Z"));
    let group = group(&all);
    let said = ["DATA_TYPE", "DATA_VERSION", "NODE_NAME"].map(|key| pvl::value(group, key));
    assert_eq!(said, [Some("viirs-science"), Some("001"), None]);
    assert_eq!(pvl::value(group, "BEGINNING_DATE/TIME"), Some("2024-12-06T02:00:00Z"));
    let digest = "12345678901234567890123456789012";
    assert_eq!(
        files(group),
        [
            [Some("SCIENCE"), Some("MD5"), Some(digest)],
            [Some("METADATA"), Some("CKSUM"), Some("4208254019")]
        ]
    );
    assert!(text.contains(&format!("    FILE_CKSUM_VALUE = '{digest}';\n")), "{text}");
    assert!(text.ends_with("END_OBJECT = FILE_GROUP;\nEND;\n"), "{text}");
}

#[test]
fn a_sips_record_names_a_host_where_one_is_configured() {
    let terms = sips::Terms { node_name: Some("192.0.2.7".to_owned()), ..terms() };
    let text = String::from_utf8(sips::write_record(&record(), &terms).unwrap()).unwrap();
    assert!(text.contains("  NODE_NAME = '192.0.2.7';\n"), "{text}");
}

#[test]
fn a_value_that_a_sips_record_cannot_carry_is_refused_with_the_reason() {
    for (folder, reason) in [
        ("/out/a=b", "DIRECTORY_ID: the consumer tears it at `=`"),
        ("/out/o'neil", "a quotation mark"),
        ("/out/\"x\"", "a quotation mark"),
        ("/out/a\nb", "`/out/a\\nb` as DIRECTORY_ID: it has a control character"),
        ("/out/\u{FFFD}", "not UTF-8"),
        ("", "it is empty"),
    ] {
        let mut record = record();
        record.files[0].directory = folder.to_owned();
        let error = sips::write_record(&record, &terms()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!(sips::check_folder(folder).unwrap_err().to_string(), error);
    }
    sips::check_folder("/ein Ordner/für (alle); 100 %").unwrap();
}

#[test]
fn an_edos_record_has_header_labels_and_text() {
    let bytes = edos::write_record(&record());
    assert_eq!((bytes[0], bytes[2], bytes[3]), (9, 1, 6));
    assert_eq!(usize::from(u16::from_be_bytes([bytes[18], bytes[19]])), bytes.len() - 24);
    let text = core::str::from_utf8(&bytes[64..]).unwrap();
    assert!(text.starts_with("ORIGINATING_SYSTEM=centre-1;\x0C\n"), "{text}");
    let all = pvl::parse(text).unwrap();
    assert_eq!(
        (pvl::value(&all, "DAN_SEQ_NO"), pvl::value(&all, "TOTAL_FILE_COUNT")),
        (Some("77"), Some("0002"))
    );
    assert_eq!(pvl::value(&all, "AGGREGATE_LENGTH"), Some("24690"));
    assert_eq!(edos::write_record(&DeliveryRecord { is_expedited: true, ..record() })[0], 0x0B);
}

#[test]
fn notices_are_understood() {
    let long = |second: &str| {
        format!(
            "MESSAGE_TYPE=LONGPAN;\nNO_OF_FILES=2;\n\
             FILE_DIRECTORY=/d;\nFILE_NAME=a;\nDISPOSITION=\"SUCCESSFUL\";\n\
             TIME_STAMP=2024-12-06T00:00:00Z;\n\
             FILE_DIRECTORY=/d;\nFILE_NAME=b;\nDISPOSITION=\"{second}\";\n\
             TIME_STAMP=2024-12-06T00:00:00Z;\n"
        )
    };
    let at = Utc::default();
    for (bytes, sequence, failure) in [
        (sips::write_short(None, at), None, None),
        (
            sips::write_short(Some("METADATA PREPROCESSING ERROR"), at),
            None,
            Some("METADATA PREPROCESSING ERROR"),
        ),
        (long("SUCCESSFUL").into_bytes(), None, None),
        (long("CHECKSUM ERROR").into_bytes(), None, Some("b: CHECKSUM ERROR")),
        (
            b"MESSAGE_TYPE = 'SHORTPAN';\nDISPOSITION = 'FAILED; DISK = FULL';".to_vec(),
            None,
            Some("FAILED; DISK = FULL"),
        ),
        (
            b"MESSAGE_TYPE = SHORTPDRD;\nDISPOSITION = \"INVALID FILE COUNT\";".to_vec(),
            None,
            Some("INVALID FILE COUNT"),
        ),
        (
            b"MESSAGE_TYPE=LONGPDRD;NO_FILE_GRPS=1;DATA_TYPE=x;DISPOSITION=\"INVALID DATA TYPE\";"
                .to_vec(),
            None,
            Some("x: INVALID DATA TYPE"),
        ),
        (edos::write_notice(77, at, &[("/d", "a", 0), ("/d", "b", 0)]), Some(77), None),
        (
            edos::write_notice(78, at, &[("/d", "a", 0), ("/d", "b", 3)]),
            Some(78),
            Some("b: checksum or size is wrong"),
        ),
    ] {
        let notice = Notice::parse(&bytes).unwrap();
        assert_eq!(
            (notice.sequence, notice.failure().as_deref()),
            (sequence, failure),
            "{:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
    let mut digits = edos::write_notice(1, at, &[("/d", "a", 0)]);
    digits[36..40].copy_from_slice(b"0001");
    assert_eq!(Notice::parse(&digits).unwrap().failure(), None, "the other form of the count");
}

#[test]
fn what_is_no_notice_is_refused_with_the_reason() {
    for (bytes, reason) in [
        (&b""[..], "no MESSAGE_TYPE"),
        (b"hello", "line 1: a statement has no `=`"),
        (b"A=1;\nOBJECT=x;\n", "not ended"),
        (b"END_OBJECT=x;", "not begun"),
        (b"A=\"x", "does not end"),
        (
            b"MESSAGE_TYPE=LONGPAN;NO_OF_FILES=2;FILE_NAME=a;DISPOSITION=OK;",
            "NO_OF_FILES does not agree",
        ),
        (b"MESSAGE_TYPE=OTHER;", "no kind of notice"),
        (b"\xFF", "no text"),
        (b"\x0C", "inside its header"),
        (&[0x0C; 41], "does not agree"),
    ] {
        let error = Notice::parse(bytes).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

fn any_statements() -> impl Strategy<Value = Vec<pvl::Statement>> {
    let value = ("[A-Z][A-Z_/]{0,8}", "[ -!#-~]{0,20}")
        .prop_map(|(key, value)| pvl::Statement::Value(key, value));
    let keyword = |one: &pvl::Statement| {
        !matches!(one,
        pvl::Statement::Value(key, _) if key.contains("OBJECT") || key.contains("GROUP") || key ==
            "END")
    };
    let value = value.prop_filter("a word of the language", keyword);
    let object = |inner: BoxedStrategy<pvl::Statement>| {
        ("[A-Z]{1,8}", proptest::collection::vec(inner, 0..4))
            .prop_map(|(name, body)| pvl::Statement::Object(name, body))
    };
    let statement =
        value.boxed().prop_recursive(3, 16, 4, move |inner| object(inner.boxed()).boxed());
    proptest::collection::vec(statement, 0..6)
}

proptest! {
    #[test]
    fn statements_are_read_back(statements in any_statements(), style in 0usize..2) {
        let text = pvl::write(&statements, ["\n", "\x0C\n"][style]);
        prop_assert_eq!(pvl::parse(&text).unwrap(), statements);
    }

    #[test]
    fn any_bytes_are_a_notice_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..600),
        binary: bool) {
        let mut bytes = bytes;
        if let (true, Some(first)) = (binary, bytes.first_mut()) {
            *first = 0x0C;
        }
        let _ = Notice::parse(&bytes);
    }

    #[test]
    fn any_text_is_statements_or_none(text in "[A-Z=;\"\n OBJECTEND_ä]{0,80}") {
        let _ = pvl::parse(&text);
    }
}

#[test]
fn what_a_consumer_says_neither_steers_a_terminal_nor_fills_the_catalogue() {
    let long = "x".repeat(9_000);
    for notice in [
        format!("MESSAGE_TYPE = SHORTPAN;\nDISPOSITION = \"\u{1b}[2J{long}\";\n"),
        format!("MESSAGE_TYPE = SHORTPDRD;\nDISPOSITION = \"\u{1b}[2J{long}\";\n"),
        format!(
            "{{\"response\": {{\"status\": \"FAILURE\", \"errorCode\": \"\\u001b[2J{long}\"}}}}"
        ),
    ] {
        let said = Notice::parse(notice.as_bytes()).unwrap().failure().unwrap();
        assert!(said.starts_with(r"\x1b[2Jx") && said.len() <= 500, "{said}");
    }
    let unknown = Notice::parse(b"MESSAGE_TYPE = \"\x1b[2J\";\n").unwrap_err();
    assert!(unknown.to_string().ends_with(r"`\x1b[2J` is no kind of notice"), "{unknown}");
}
