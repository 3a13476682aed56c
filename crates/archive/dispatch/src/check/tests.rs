//! What is said of each kind of record and notice, good and bad.

use super::*;
use crate::{
    Checksum, DeliveryRecord, Notice, cnm as cnm_form, edos as edos_writer, sips as sips_writer,
};
use proptest::prelude::*;

fn record() -> DeliveryRecord {
    let mut record = crate::tests::record();
    record.span = None;
    (record.files[0].name, record.files[1].name) = ("a.PDS".to_owned(), "b.PDS".to_owned());
    record
}

fn sips_text() -> String {
    let terms = sips_writer::Terms {
        node_name: None,
        data_version: "001".to_owned(),
        file_type: "SCIENCE".parse().unwrap(),
        metadata_type: sips_writer::FileType::METADATA,
    };
    String::from_utf8(sips_writer::write_record(&record(), &terms).unwrap()).unwrap()
}

fn cnm_text() -> String {
    let mut record = record();
    record.files[1].checksum = Some(Checksum::Sha256([0xCD; 32]));
    let submitted = record.created;
    let terms = cnm_form::CnmTerms { data_version: "001".to_owned(), submitted };
    String::from_utf8(cnm_form::write_notification(&record, &terms)).unwrap()
}

/// The kind, and each refusal with its line.
fn said(bytes: &[u8]) -> (CheckedKind, Vec<(&'static str, Option<usize>)>) {
    let check = check(bytes, &CheckTerms::default());
    let refusals = check.findings.iter();
    let refusals = refusals.filter_map(|finding| Some((finding.verdict?, finding.line)));
    (check.kind, refusals.collect())
}

#[test]
fn what_is_written_here_is_taken() {
    let at = record().created;
    for (bytes, kind) in [
        (sips_text().into_bytes(), CheckedKind::SipsRecord),
        (edos_writer::write_record(&record()), CheckedKind::EdosRecord),
        (cnm_text().into_bytes(), CheckedKind::Cnm),
        (sips_writer::write_short(None, at), CheckedKind::ShortPan),
        (edos_writer::write_notice(7, at, &[("/d", "a", 0)]), CheckedKind::EdosNotice),
    ] {
        let check = check(&bytes, &CheckTerms::default());
        assert_eq!((check.kind, check.findings.as_slice()), (kind, &[][..]), "{check:?}");
        assert_eq!((check.verdict.as_str(), check.is_taken), ("SUCCESSFUL", true));
    }
    let counted = check(sips_text().as_bytes(), &CheckTerms::default());
    assert_eq!((counted.files, counted.bytes), (2, 24_690));
    let counted = check(&edos_writer::write_record(&record()), &CheckTerms::default());
    assert_eq!((counted.files, counted.bytes), (2, 24_690));
    let counted = check(cnm_text().as_bytes(), &CheckTerms::default());
    assert_eq!((counted.files, counted.bytes), (2, 24_690));
}

#[test]
fn each_fault_of_a_record_is_refused_by_its_name_at_its_line() {
    let text = sips_text();
    for (from, to, verdict, line) in [
        ("TOTAL_FILE_COUNT = 2", "TOTAL_FILE_COUNT = 3", COUNT, Some(3)),
        ("2024-12-07T02:00:00Z", "2024-12-07T02:60:00Z", STATEMENT, Some(4)),
        ("EXPIRATION_TIME", "EXPIRES", STATEMENT, None),
        ("  DATA_TYPE = viirs-science", "  DATA_TYPE = 20261123", DATA_TYPE, Some(6)),
        ("  DATA_VERSION = '001';\n", "", DATA_TYPE, Some(5)),
        ("    FILE_ID = a.PDS", "    FILE_ID = 2026-11-23", FILE_ID, Some(10)),
        ("    FILE_TYPE = SCIENCE", "    FILE_TYPE = DATA", FILE_TYPE, Some(11)),
        ("    FILE_SIZE = 12345", "    FILE_SIZE = '12345'", FILE_SIZE, Some(12)),
        ("TYPE = MD5", "TYPE = SHA256", SUM_TYPE, Some(13)),
        ("    FILE_CKSUM_TYPE = MD5;\n", "", NO_SUM_TYPE, Some(13)),
        ("VALUE = 4208254019", "VALUE = 0", NO_SUM, Some(21)),
        ("VALUE = 4208254019", "VALUE = f00d", SUM, Some(22)),
        ("    FILE_ID = a.PDS", "    FILE_ID = a=b.PDS", STATEMENT, Some(10)),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let changed = text.replacen(from, to, 1);
        assert_eq!(said(changed.as_bytes()).1, [(verdict, line)], "{to}: {changed}");
    }
    assert_eq!(said(b" \n").1, [(UNREADABLE, None)]);
    assert_eq!(said(b"\xFF\xFE").1, [(UNREADABLE, None)]);
    assert_eq!(said(&vec![b' '; LONGEST + 1]).1, [(UNREADABLE, None)]);
    let several = text.replace("SCIENCE", "DATA").replace("= MD5", "= SHA256");
    assert_eq!(said(several.as_bytes()).1, [(FILE_TYPE, Some(11)), (SUM_TYPE, Some(13))]);
}

#[test]
fn a_host_is_refused_only_where_the_consumers_hosts_are_known() {
    let named = sips_text().replace("  DATA_VERSION", "  NODE_NAME = centre-1;\n  DATA_VERSION");
    let with = |hosts: Option<&[&str]>| {
        let hosts = hosts.map(|hosts| hosts.iter().map(ToString::to_string).collect());
        check(named.as_bytes(), &CheckTerms { hosts })
    };
    let remark = with(None);
    assert!(remark.is_taken && remark.findings.len() == 1, "{remark:?}");
    assert_eq!(with(Some(&["dist.example.org"])).verdict, NODE_NAME);
    assert_eq!(with(Some(&["a", "centre-1"])).findings, []);
}

#[test]
fn an_object_that_does_not_end_is_a_remark_and_one_that_did_not_begin_a_refusal() {
    let text = sips_text();
    let open = text.replace("END_OBJECT = FILE_GROUP;\n", "");
    let open = check(open.as_bytes(), &CheckTerms::default());
    assert!(open.is_taken && open.findings.len() == 1, "{open:?}");
    let over = format!("END_OBJECT = X;\n{text}");
    assert_eq!(said(over.as_bytes()).1, [(STATEMENT, Some(1))]);
}

#[test]
fn a_record_of_edos_is_held_to_its_layout() {
    let bytes = edos_writer::write_record(&record());
    let text = String::from_utf8(bytes[64..].to_vec()).unwrap();
    let with = |text: &str| {
        let mut changed = [&bytes[..64], text.as_bytes()].concat();
        let length = u16::try_from(changed.len() - 24).unwrap();
        changed[18..20].copy_from_slice(&length.to_be_bytes());
        said(&changed).1
    };
    assert_eq!(with(&text), []);
    for (from, to, verdict) in [
        ("FILE_TYPE=DATA", "FILE_TYPE=SCIENCE", FILE_TYPE),
        ("TOTAL_FILE_COUNT=0002", "TOTAL_FILE_COUNT=0003", COUNT),
        ("AGGREGATE_LENGTH=24690", "AGGREGATE_LENGTH=1", COUNT),
        ("DAN_SEQ_NO=77", "DAN_SEQ_NO=x", STATEMENT),
        ("DIRECTORY_ID=/data/incoming", "DIRECTORY_ID=\"\"", DIRECTORY),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let found = with(&text.replacen(from, to, 1));
        assert_eq!(found, [(verdict, None)], "{to}");
    }
    assert_eq!(said(&bytes[..bytes.len() - 1]).1[0], (UNREADABLE, None));
    assert_eq!(said(&bytes[..30]).1[0].0, UNREADABLE);
}

#[test]
fn a_notice_is_said_to_ask_for_what_its_producer_does() {
    let long = |second: &str| {
        format!(
            "MESSAGE_TYPE = LONGPAN;\nNO_OF_FILES = 2;\nFILE_DIRECTORY = /d;\nFILE_NAME = a;\n\
             DISPOSITION = SUCCESSFUL;\nTIME_STAMP = 2026-11-26T00:00:00Z;\nFILE_DIRECTORY = \
             /d;\nFILE_NAME = b;\nDISPOSITION = \"{second}\";\nTIME_STAMP = \
             2026-11-26T00:00:00Z;\n"
        )
    };
    let pdrd = "MESSAGE_TYPE = SHORTPDRD;\nDISPOSITION = \"INVALID FILE COUNT\";";
    let groups = "MESSAGE_TYPE = LONGPDRD;\nNO_FILE_GRPS = 1;\nDATA_TYPE = x;\nDISPOSITION = \
                  \"INVALID DATA TYPE\";";
    let answer = |status: &str| {
        format!(
            "{{\"version\": \"1.6.1\", \"receivedTime\": \"2026-11-26T00:00:00Z\", \
             \"processCompleteTime\": \"2026-11-26T00:00:01Z\", \"submissionTime\": \
             \"2026-11-26T00:00:00.5+01:00\", \"identifier\": \"a\", \"collection\": \"x\", \
             \"response\": {{{status}}}}}"
        )
    };
    for (text, kind, asks) in [
        (long("SUCCESSFUL"), CheckedKind::LongPan, "nothing: it was taken"),
        (long("CHECKSUM VERIFICATION FAILURE"), CheckedKind::LongPan, "send again"),
        (long("ECS INTERNAL ERROR"), CheckedKind::LongPan, "send again after the longest pause"),
        (pdrd.to_owned(), CheckedKind::ShortPdrd, "stop and raise an alarm"),
        (groups.to_owned(), CheckedKind::LongPdrd, "stop and raise an alarm"),
        (answer("\"status\": \"SUCCESS\""), CheckedKind::CnmResponse, "nothing: it was taken"),
        (
            answer("\"status\": \"FAILURE\", \"errorCode\": \"TRANSFER_ERROR\""),
            CheckedKind::CnmResponse,
            "send again",
        ),
    ] {
        let check = check(text.as_bytes(), &CheckTerms::default());
        assert_eq!((check.kind, check.asks.as_deref()), (kind, Some(asks)), "{check:?}");
        assert_eq!(check.findings, [], "{text}");
        assert!(Notice::parse(text.as_bytes()).is_ok());
    }
    let unknown = check(long("OUT OF TEA").as_bytes(), &CheckTerms::default());
    assert!(unknown.is_taken && unknown.findings.len() == 1, "{unknown:?}");
    for bad in ["MESSAGE_TYPE = X;", "MESSAGE_TYPE", "MESSAGE_TYPE = LONGPAN;\nNO_OF_FILES = 1;"] {
        assert_eq!(
            said(bad.as_bytes()).1,
            [(NOTICE, None)]
                .map(|(name, line)| { (name, if bad.contains('=') { line } else { Some(1) }) })
        );
    }
}

#[test]
fn each_fault_of_a_message_is_refused() {
    let text = cnm_text();
    for (from, to) in [
        ("\"1.6.1\"", "\"9.9\""),
        ("\"submissionTime\": \"2024", "\"submissionTime\": \"x2024"),
        ("\"collection\": {", "\"collections\": {"),
        ("\"product\": {", "\"products\": {"),
        ("\"reprocessing\"", "\"sideways\""),
        ("\"files\"", "\"filegroups\""),
        ("\"type\": \"data\"", "\"type\": \"science\""),
        ("\"size\": 12345", "\"size\": \"12345\""),
        ("\"md5\"", "\"MD5\""),
        ("\"uri\"", "\"url\""),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let found = check(text.replacen(from, to, 1).as_bytes(), &CheckTerms::default());
        assert_eq!(found.verdict, "VALIDATION_ERROR", "{to}: {found:?}");
    }
    assert_eq!(said(b"{").1, [("VALIDATION_ERROR", Some(1))]);
}

#[test]
fn further_findings_are_counted() {
    let spec = "OBJECT = FILE_SPEC;\nEND_OBJECT = FILE_SPEC;\n".repeat(600);
    let text = format!("OBJECT = FILE_GROUP;\n{spec}END_OBJECT = FILE_GROUP;\n");
    let check = check(text.as_bytes(), &CheckTerms::default());
    assert_eq!(check.findings.len(), FINDINGS_MAX);
    assert!(check.findings_left_out > 1_000, "{}", check.findings_left_out);
}

proptest! {
    #[test]
    fn any_bytes_are_checked(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        kind in 0usize..4,
    ) {
        let starts = [&b""[..], b"\x0C", b"{\"response\":", b"MESSAGE_TYPE = "];
        let bytes = [starts[kind], &bytes].concat();
        let _ = check(&bytes, &CheckTerms::default());
    }
}
