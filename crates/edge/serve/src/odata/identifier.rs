//! Identifiers of entities: UUIDs of version 8 (RFC 9562 5.8), which have a number of the catalogue
//! in them, so that they are found without a further index.

/// Marks identifiers of products of this program: `Skyhau` in ASCII.
const MARK: &str = "536b7968-6175-8";

/// The identifier of a number.
pub fn uuid_of(number: u64) -> String {
    let [high, low] = [number >> 48, number & 0xffff_ffff_ffff];
    // The variant of RFC 9562 takes two bits, and the 16 highest bits of a number lie about them.
    format!("{MARK}{:03x}-{:04x}-{low:012x}", high & 0xfff, 0x8000 | high >> 12)
}

/// The number of an identifier; none of one that is not ours.
pub fn number_of(text: &str) -> Option<u64> {
    if !super::filter::is_uuid(text) {
        return None;
    }
    let text = text.to_ascii_lowercase();
    let rest = text.strip_prefix(MARK)?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (middle, variant, low) = (hex(&rest[..3])?, hex(&rest[4..8])?, hex(&rest[9..])?);
    let number = (variant & 0xf) << 60 | middle << 48 | low;
    (uuid_of(number) == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_from_identifiers() {
        for number in [0, 1, 17, 1 << 48, u64::MAX, 0xabcd_ef01_2345_6789] {
            let text = uuid_of(number);
            assert!(super::super::filter::is_uuid(&text), "{text}");
            assert_eq!(number_of(&text.to_ascii_uppercase()), Some(number), "{text}");
        }
        assert_eq!(uuid_of(1), "536b7968-6175-8000-8000-000000000001");
        for other in
            ["", "536b7968-6175-8000-9000-000000000001", "0e3d0b3a-7f7c-4f4e-8a53-1ad2f2a6c1d2"]
        {
            assert_eq!(number_of(other), None);
        }
    }
}
