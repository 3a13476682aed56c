//! The names of labs, and the flag that gives one on a command line.

/// The lab that is meant where none is named.
pub const DEFAULT_LAB: &str = "lab";

/// The name of a lab, from a command line.
///
/// # Errors
/// It is not 1 to 32 small letters, digits and `-`, or begins with `-`.
pub fn lab_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=MAX_NAME).contains(&text.len()) && text.chars().all(is_plain) && !text.starts_with('-')
    {
        return Ok(text.to_owned());
    }
    Err("take 1 to 32 small letters, digits and -".to_owned())
}

/// The flag that names `lab`, with a blank before it; empty for the default lab.
pub(super) fn lab_flag(lab: &str) -> String {
    if lab == DEFAULT_LAB { String::new() } else { format!(" --lab {lab}") }
}

/// A name is part of the names of namespaces, which are file names.
const MAX_NAME: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_name_has_up_to_32_small_letters_digits_and_hyphens() {
        for good in ["a", "lab-2", &"x".repeat(32)] {
            assert_eq!(lab_name(good), Ok(good.to_owned()));
        }
        for bad in ["", "-lab", "Lab", "lab/..", "lab 2", "läb", &"x".repeat(33)] {
            assert!(lab_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_a_lab_other_than_the_default_needs_a_flag() {
        assert_eq!(lab_flag(DEFAULT_LAB), "");
        assert_eq!(lab_flag("t-busy"), " --lab t-busy");
    }
}
