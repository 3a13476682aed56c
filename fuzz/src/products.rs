//! Level-0 product files.

use skyhaul_dispatch::{CheckTerms, Notice, check, pvl};
use skyhaul_level0::construction::ConstructionRecord;
use skyhaul_level0::ledger::{Ledger, talk::Talk};
use skyhaul_level0::naming::ProductName;
use skyhaul_level0::rdr::{CommonRdr, RdrTable};

/// A construction record that reads is written back and reads the same.
pub fn construction_record(input: &[u8]) {
    let Ok(record) = ConstructionRecord::parse(input) else { return };
    assert_eq!(record.encoded_len(), input.len());
    let written = record.write().expect("a record that was read can be written");
    let again = ConstructionRecord::parse(&written).expect("a record that was written can be read");
    assert_eq!(again, record);
}

/// A product's name that reads prints as it was.
pub fn product_name(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(name) = ProductName::parse(text) {
        assert_eq!(name.to_string(), text);
    }
}

/// A notice of a consumer, and the statements in it: those that read are written back and read the
/// same.
pub fn delivery_notice(input: &[u8]) {
    let _ = Notice::parse(input);
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(statements) = pvl::parse(text) {
        let again = pvl::write(&statements, "\n");
        if let Ok(read) = pvl::parse(&again) {
            assert_eq!(pvl::write(&read, "\n"), again);
        }
    }
}

/// A record or a notice of any kind is taken or refused; what is said of a line is said of one that
/// it has.
pub fn record_check(input: &[u8]) {
    let hosts = (input.len() % 2 == 1).then(|| vec!["dist.example.org".to_owned()]);
    let check = check(input, &CheckTerms { hosts });
    let refusals = check.findings.iter().filter(|finding| finding.verdict.is_some()).count();
    assert!(check.is_taken == (refusals == 0) || check.findings_left_out > 0);
    let lines = input.split(|byte| *byte == b'\n').count();
    let mut named = check.findings.iter().filter_map(|finding| finding.line);
    assert!(named.all(|line| (1..=lines).contains(&line)));
}

/// A Common RDR that reads has every packet within it, and no more packets than trackers.
pub fn common_rdr(input: &[u8]) {
    let Ok(read) = CommonRdr::parse(input) else { return };
    let packets = read.packets();
    assert!(packets.len() <= read.trackers.len());
    assert!(packets.iter().all(|packet| packet.bytes.len() <= read.storage().len()));
    assert!(read.damaged() <= read.trackers.len() as u64);
}

/// A table of Raw Data Records is read or refused at one of its lines; what was read finds its own
/// collections.
pub fn rdr_table(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match RdrTable::from_toml(text) {
        Ok(table) => {
            for (plan, collection) in
                table.plans().flat_map(|plan| plan.collections.iter().map(move |c| (plan, c)))
            {
                assert_eq!(plan.collection(&collection.name), Some(collection));
                let apid = collection.packets[0].apid;
                assert!(plan.of_apid(apid).is_some());
            }
        }
        Err(error) => assert!((1..=text.lines().count() + 1).contains(&error.line), "{error}"),
    }
}

/// What is said about gaps reads the same when it is said again; and a record of gaps is read or
/// refused.
pub fn gap_talk(input: &[u8]) {
    if let Ok(talk) = Talk::decode(input) {
        assert_eq!(Talk::decode(&talk.encode()), Ok(talk));
    }
    let mut ledger = Ledger::new(0);
    if ledger.restore(input).is_ok() {
        let ids: Vec<_> = ledger.contacts().map(|known| known.id.clone()).collect();
        for id in ids {
            let record = ledger.record(&id).expect("a contact that is known has a record");
            Ledger::new(0).restore(&record).expect("a record that was written can be read");
        }
    }
}
