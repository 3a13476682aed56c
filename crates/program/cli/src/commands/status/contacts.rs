//! The contacts of a node, with their times (UTC).

use super::word;
use skyhaul_node::status::{ContactCaptured, ContactReceived, ContactState, ContactWay};
use std::io::{self, Write};

/// The newest contacts that a station captured.
pub fn write_captured(contacts: &[ContactCaptured], out: &mut dyn Write) -> io::Result<()> {
    if contacts.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n  {:<12} {:<16} {:<6} {:<12} {:<19} {:<19} {:>10} {:>9}",
        "contact", "of", "state", "mission", "from (UTC)", "until", "frames", "set aside"
    )?;
    for contact in contacts.iter().rev().take(CONTACTS_SHOWN).rev() {
        let (from, until) = span(contact.opened.as_deref(), contact.closed.as_deref());
        writeln!(
            out,
            "  {:<12} {:<16} {:<6} {:<12} {from:<19} {until:<19} {:>10} {:>9}",
            contact.flow,
            contact.channel,
            word(&contact.state),
            contact.mission,
            contact.frames,
            contact.set_aside
        )?;
    }
    Ok(())
}

/// The newest contacts of a centre.
pub fn write_received(contacts: &[ContactReceived], out: &mut dyn Write) -> io::Result<()> {
    if contacts.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n  {:<22} {:<6} {:<12} {:<19} {:<19} {:>10} {:>8} {:>9} {:>9}",
        "contact",
        "state",
        "mission",
        "from (UTC)",
        "until",
        "frames",
        "missing",
        "set aside",
        "products"
    )?;
    for contact in contacts.iter().rev().take(CONTACTS_SHOWN).rev() {
        let (from, until) = span(contact.opened.as_deref(), contact.closed.as_deref());
        let ready = match contact.last_bit_to_product_s {
            Some(seconds) if contact.state == ContactState::Done => {
                format!("  {seconds:.2} s after the last bit")
            }
            _ => String::new(),
        };
        writeln!(
            out,
            "  {:<22} {:<6} {:<12} {from:<19} {until:<19} {:>10} {:>8} {:>9} {:>9}{ready}",
            contact.name(),
            word(&contact.state),
            contact.mission,
            contact.reception.frames,
            contact.reception.missing,
            contact.reception.set_aside,
            contact.products.len()
        )?;
        write_way(&contact.way, out)?;
    }
    Ok(())
}

/// The nodes that a contact came through and goes on to.
fn write_way(way: &ContactWay, out: &mut dyn Write) -> io::Result<()> {
    if !way.via.is_empty() {
        let via: Vec<&str> = way.via.iter().map(|hop| hop.node.as_str()).collect();
        writeln!(out, "    came through {}", via.join(", "))?;
    }
    if !way.to.is_empty() {
        writeln!(out, "    passed on to {}", way.to.join(", "))?;
    }
    Ok(())
}

/// From when to when: to the second, and the end's day only where it is another one.
fn span(opened: Option<&str>, closed: Option<&str>) -> (String, String) {
    let at = |time: &str| time.get(..19).unwrap_or(time).replace('T', " ");
    let (Some(opened), closed) = (opened.map(at), closed.map(at)) else {
        return ("-".to_owned(), "-".to_owned());
    };
    let until = match closed {
        None => "now".to_owned(),
        Some(closed) if closed.get(..10) == opened.get(..10) => {
            closed.get(11..).unwrap_or("-").to_owned()
        }
        Some(closed) => closed,
    };
    (opened, until)
}

/// The newest contacts; --json has all.
pub const CONTACTS_SHOWN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_across_midnight_shows_both_days() {
        let at = |day: &str, time: &str| format!("2026-11-{day}T{time}.250000Z");
        let (opened, closed) = (at("23", "23:55:01"), at("23", "23:59:59"));
        let said = |closed: Option<&str>| span(Some(&opened), closed);
        let from = "2026-11-23 23:55:01".to_owned();
        assert_eq!(said(Some(&closed)), (from.clone(), "23:59:59".to_owned()));
        assert_eq!(
            said(Some(&at("24", "00:04:07"))),
            (from.clone(), "2026-11-24 00:04:07".to_owned())
        );
        assert_eq!(said(None), (from, "now".to_owned()));
        assert_eq!(span(None, None).0, "-");
    }
}
