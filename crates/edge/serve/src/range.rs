//! The parts of a file that a request wants (RFC 9110 14).

use crate::answer::ByteSpan;

/// What a `Range` header selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeSelection {
    /// The whole file: there is no such header, or one that is not understood.
    Whole,
    /// These parts; at least one.
    Parts(Vec<ByteSpan>),
    /// Nothing that the file has.
    Nothing,
}

/// A header with more ranges is ignored, as RFC 9110 14.2 allows: a player or a downloader asks for
/// a few.
const RANGES_MAX: usize = 64;

/// What a header selects of a file.
pub fn selection(header: &str, size: u64) -> RangeSelection {
    let Some((unit, set)) = header.trim().split_once('=') else { return RangeSelection::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.split(',').count() > RANGES_MAX {
        return RangeSelection::Whole;
    }
    let mut parts = Vec::new();
    for range in set.split(',').map(str::trim).filter(|range| !range.is_empty()) {
        match part(range, size) {
            Some(Some(span)) => parts.push(span),
            Some(None) => {}
            None => return RangeSelection::Whole,
        }
    }
    match (parts.is_empty(), set.trim().is_empty()) {
        (true, true) => RangeSelection::Whole,
        (true, false) => RangeSelection::Nothing,
        (false, _) => RangeSelection::Parts(apart(parts)),
    }
}

/// One range: none where it is written wrongly, and none within where the file does not have it.
fn part(range: &str, size: u64) -> Option<Option<ByteSpan>> {
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim_end(), last.trim_start());
    if first.is_empty() {
        let count = number(last)?.min(size);
        return Some((count > 0).then(|| ByteSpan { from: size - count, len: count }));
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    let end = last.saturating_add(1).min(size);
    Some((first < end).then(|| ByteSpan { from: first, len: end - first }))
}

/// A number, of which digits that no file needs are cut.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Parts in the order in which they were asked for; if some overlap, all are joined and sorted, so
/// that no byte goes out twice (RFC 9110 15.3.7.2).
fn apart(parts: Vec<ByteSpan>) -> Vec<ByteSpan> {
    let mut sorted = parts.clone();
    sorted.sort_by_key(|part| part.from);
    let overlap = sorted.windows(2).any(|two| two[1].from < two[0].from + two[0].len);
    if !overlap {
        return parts;
    }
    let mut joined: Vec<ByteSpan> = Vec::new();
    for part in sorted {
        match joined.last_mut() {
            Some(last) if part.from <= last.from + last.len => {
                let end = (last.from + last.len).max(part.from + part.len);
                last.len = end - last.from;
            }
            _ => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(spans: &[(u64, u64)]) -> RangeSelection {
        RangeSelection::Parts(spans.iter().map(|&(from, len)| ByteSpan { from, len }).collect())
    }

    #[test]
    fn ranges_select_what_the_standard_says() {
        for (header, selected) in [
            ("bytes=0-499", parts(&[(0, 500)])),
            ("bytes=500-999", parts(&[(500, 500)])),
            ("bytes=-500", parts(&[(9_500, 500)])),
            ("bytes=9500-", parts(&[(9_500, 500)])),
            ("bytes=0-0,-1", parts(&[(0, 1), (9_999, 1)])),
            ("bytes= 0-0, 4-5 ,,", parts(&[(0, 1), (4, 2)])),
            ("bytes=500-600,601-999", parts(&[(500, 101), (601, 399)])),
            ("bytes=500-700,601-999", parts(&[(500, 500)])),
            ("Bytes=0-20000", parts(&[(0, 10_000)])),
            ("bytes=-20000", parts(&[(0, 10_000)])),
            ("bytes=0-1,10000-", parts(&[(0, 2)])),
            ("bytes=0-99999999999999999999999", parts(&[(0, 10_000)])),
            ("bytes=10000-", RangeSelection::Nothing),
            ("bytes=-0", RangeSelection::Nothing),
            ("bytes=5-4", RangeSelection::Whole),
            ("bytes=a-b", RangeSelection::Whole),
            ("bytes=", RangeSelection::Whole),
            ("lines=0-1", RangeSelection::Whole),
            ("", RangeSelection::Whole),
            ("bytes=+1-2", RangeSelection::Whole),
        ] {
            assert_eq!(selection(header, 10_000), selected, "{header}");
        }
        let many = format!("bytes={}", "0-0,".repeat(65));
        assert_eq!(selection(&many, 10_000), RangeSelection::Whole);
        assert_eq!(selection("bytes=0-", 0), RangeSelection::Nothing);
    }

    proptest::proptest! {
        #[test]
        fn any_header_selects_bytes_that_are_there_and_none_twice(
            header in "(bytes=)?[-0-9, ]{0,40}", size in 0_u64..2_000,
        ) {
            if let RangeSelection::Parts(parts) = selection(&header, size) {
                let mut sorted = parts;
                sorted.sort_by_key(|part| part.from);
                let mut end = 0;
                for part in sorted {
                    proptest::prop_assert!(part.len > 0 && part.from >= end);
                    end = part.from + part.len;
                }
                proptest::prop_assert!(end <= size);
            }
        }
    }
}
