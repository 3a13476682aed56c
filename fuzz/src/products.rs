//! Level-0 product files.

use skyhaul_level0::construction::ConstructionRecord;
use skyhaul_level0::delivery::{Notice, pvl};
use skyhaul_level0::naming::ProductName;

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

/// A notice of a consumer, and the statements in it: those that read are written back and read the same.
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
