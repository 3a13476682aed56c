//! Makes text of unknown origin safe to print.

/// A text from a far end as it may stand in a log line or on a terminal, at most `max` bytes of it:
/// control characters, line ends and marks that turn the direction of writing stand as `\x1b`, each
/// byte of theirs. What was made printable stays as it is.
///
/// ```
/// assert_eq!(skyhaul_units::printable("polar\n\u{1b}[2J", 64), r"polar\x0a\x1b[2J");
/// assert_eq!(skyhaul_units::printable("Åre \\x1b", 64), r"Åre \x1b");
/// ```
pub fn printable(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    for character in text.chars() {
        if out.len() >= max {
            break;
        }
        if !misleads(character) {
            out.push(character);
            continue;
        }
        let mut bytes = [0; 4];
        for byte in character.encode_utf8(&mut bytes).bytes() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out.truncate(out.floor_char_boundary(max));
    out
}

/// Control characters (C0, C1), and those that end lines or reorder what is shown (Unicode 15,
/// 23.2; UAX 9).
fn misleads(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_far_end_moves_the_cursor_ends_a_line_or_turns_what_is_written() {
        let told = "a\r\n\t\u{7}\u{1b}]0;title\u{7}\u{9b}2J\u{202e}gpj.exe\u{2028}é\u{0}";
        let shown = printable(told, 200);
        assert!(!shown.chars().any(misleads), "{shown:?}");
        assert!(
            shown.starts_with(r"a\x0d\x0a\x09\x07\x1b]0;title") && shown.contains(r"\xc2\x9b2J"),
            "{shown}"
        );
        assert_eq!(printable(&shown, 200), shown);
        let plain = "sval-bard_1.é 北极 \\ \"";
        assert_eq!(printable(plain, 200), plain);
    }

    #[test]
    fn no_more_is_kept_than_is_wanted_and_what_is_kept_stays_so() {
        for max in 0..20 {
            for text in
                ["é\u{9b}\u{2028}abc", "\n\n\n\n\n\n", "ééééééééééé", "plain and long enough"]
            {
                let kept = printable(text, max);
                assert!(kept.len() <= max && printable(&kept, max) == kept, "{kept:?}");
            }
        }
    }
}
