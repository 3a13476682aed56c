//! Pieces of manual pages: sentences with `code`, sections, examples.

use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io;

/// What a page begins with: apostrophes stay straight in every formatter.
pub const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// A sentence of a help text or of the configuration's reference; `code` becomes bold.
pub fn sentence(text: &str) -> Vec<Inline> {
    let parts = text.trim().split('`').enumerate();
    let parts = parts.filter(|(_, part)| !part.is_empty());
    parts.map(|(place, part)| if place % 2 == 1 { bold(part) } else { roman(part) }).collect()
}

/// The lines of a document, without the preamble.
pub fn body(roff: &Roff) -> String {
    let text = roff.render();
    text.strip_prefix(PREAMBLE).unwrap_or(&text).to_owned()
}

/// A section that the generator of manual pages writes, with `code` in bold and paragraphs that
/// begin by a request: an empty line is a mistake to formatters.
///
/// # Errors
/// Never: it writes into memory.
pub fn generated(
    section: impl FnOnce(&mut dyn io::Write) -> Result<(), io::Error>,
) -> Result<String, io::Error> {
    let mut bytes = Vec::new();
    section(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix(PREAMBLE).unwrap_or(&text);
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim_end) {
        let before = lines.last().map_or("", String::as_str);
        match (line, before) {
            // A break beside a space has no effect.
            ("", ".br") => {
                lines.pop();
                lines.push(".sp".to_owned());
            }
            ("" | ".br", ".sp") => {}
            ("", _) => lines.push(".sp".to_owned()),
            _ => lines.push(in_bold(line)),
        }
    }
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// A line with each `code` in bold.
fn in_bold(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return line.to_owned();
    }
    let parts = parts.iter().enumerate().map(|(place, part)| match place % 2 {
        1 => format!("\\fB{part}\\fR"),
        _ => (*part).to_owned(),
    });
    parts.collect()
}

/// A section whose lines stay as they are.
pub fn verbatim(heading: &str, lines: &str) -> String {
    let mut roff = Roff::new();
    roff.control("SH", [heading]).control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    body(roff.control("fi", []))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_becomes_bold_and_a_line_cannot_begin_a_request() {
        let mut roff = Roff::new();
        roff.text(sentence("`--node` names it. \\n is kept"));
        assert_eq!(body(&roff), "\\fB\\-\\-node\\fR names it. \\\\n is kept\n");
        let kept = verbatim("EXAMPLES", "  .so /etc/passwd\n  'tis");
        assert_eq!(kept, ".SH EXAMPLES\n.nf\n\\&.so /etc/passwd\n\\*(Aqtis\n.fi\n");
    }

    #[test]
    fn a_generated_section_has_no_empty_line_and_no_odd_mark() {
        let text = generated(|out| write!(out, "{PREAMBLE}a `b` c\n.br\n\n.br\nit`s\n"));
        assert_eq!(text.unwrap(), "a \\fBb\\fR c\n.sp\nit`s\n");
    }
}
