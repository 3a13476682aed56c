//! The messages of two nodes that are paired, and the address book that it writes.

use skyhaul_config::AddressBook;
use skyhaul_identity::Identity;
use skyhaul_pairing::{
    PairingCall, PairingCard, PairingDesk, PairingEvent, PairingMessage, PairingStep,
};
use skyhaul_units::{Duration, Instant};
use std::path::Path;

/// Any bytes at both ends of an exchange, in pieces: neither panics, the desk accepts nobody, and a
/// message that is read is written as it was.
pub fn pairing(input: &[u8]) {
    if let Ok(Some((message, length))) = PairingMessage::read(input) {
        assert_eq!(message.to_bytes(), input[..length]);
    }
    let Ok(own) = Identity::from_seed(&[1; 32]) else { return };
    let Ok(card) = PairingCard::new("far", own.fingerprint(), []) else { return };
    let mut desk = PairingDesk::new(Instant::ZERO, card.clone(), [7; 32]);
    let mut call = PairingCall::new(Instant::ZERO, desk.code(), card, [8; 32]);
    let mut now = Instant::ZERO;
    // The first byte of each piece says how long it is, who sends it, and how much later it comes.
    let mut rest = input;
    while let Some((head, behind)) = rest.split_first() {
        let (piece, behind) = behind.split_at(behind.len().min(usize::from(head >> 2)));
        rest = behind;
        now += Duration::from_millis(u64::from(head & 3) * 2_000);
        let visitor = u64::from(head & 1);
        match head & 3 {
            3 => desk.handle_closed(visitor),
            2 => desk.enter(now, visitor),
            _ => desk.handle(now, visitor, piece),
        }
        call.handle(now, piece);
        desk.handle_timeout(now);
        call.handle_timeout(now);
        while let Some(event) = desk.poll() {
            assert!(!matches!(event, PairingEvent::Paired(_)), "nobody has the code");
        }
        while let Some(step) = call.poll() {
            assert!(!matches!(step, PairingStep::Paired(_)), "nobody has the code");
        }
    }
}

/// An address book: read or refused; one that is read is the same after a change and its reverse,
/// and the text that is written can be read.
pub fn address_book(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let file = Path::new("nodes.toml");
    let book = match AddressBook::parse(text, file) {
        Ok(book) => book,
        Err(error) => {
            let sentence = error.to_string();
            assert!(sentence.contains("nodes.toml") && sentence.contains("; help: "), "{sentence}");
            assert!(!sentence.contains('\n'), "{sentence}");
            return;
        }
    };
    let again = AddressBook::parse(&book.text(), file).expect("what was written can be read");
    assert_eq!(again.peers(), book.peers());
    let Some(first) = book.peers().first().cloned() else { return };
    let mut changed = book.clone();
    if changed.remove(&first.name).is_ok() {
        let less = AddressBook::parse(&changed.text(), file).expect("less can be read");
        assert_eq!(less.peers(), &book.peers()[1..]);
        changed.add(first).expect("its name is free");
        let more = AddressBook::parse(&changed.text(), file).expect("more can be read");
        assert_eq!(more.peers(), changed.peers());
    }
}
