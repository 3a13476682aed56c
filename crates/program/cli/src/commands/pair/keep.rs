//! Writes the other node into the address book.

use crate::commands::book;
use skyhaul_config::{
    AddressBook, BookChangeError, BookPeer, HostPort, Name, PeerAddresses, PeerKeys,
};
use skyhaul_exit::Failure;
use skyhaul_node::log;
use skyhaul_pairing::PairingCard;
use std::io::Write;

/// Adds the node of `card`, or what is new about it if its key is known. `at` is where this node
/// connected to.
///
/// # Errors
/// The address book cannot be written.
pub fn keep(
    card: &PairingCard,
    name: Option<&Name>,
    at: Option<HostPort>,
) -> Result<BookPeer, Failure> {
    let said: Vec<HostPort> =
        card.addresses().iter().filter_map(|address| address.parse().ok()).collect();
    let addresses = if said.is_empty() { at.into_iter().collect() } else { said };
    let kept = book::change(|book| change(book, card, name, addresses))?;
    let wanted = name.map_or(card.name(), Name::as_str);
    if kept.name.as_str() != wanted {
        log::say(&format!("note: the name `{wanted}` is not free; the node is `{}`", kept.name));
    }
    Ok(kept)
}

fn change(
    book: &mut AddressBook,
    card: &PairingCard,
    name: Option<&Name>,
    addresses: Vec<HostPort>,
) -> Result<BookPeer, BookChangeError> {
    let key = card.fingerprint();
    let known = book.peers().iter().find(|peer| {
        peer.fingerprints.iter().any(|known| known == key)
            && name.is_none_or(|name| *name == peer.name)
    });
    if let Some(known) = known.cloned() {
        let all = known.addresses.iter().cloned().chain(addresses).collect();
        let addresses = PeerAddresses::new(all).unwrap_or_else(|_| known.addresses.clone());
        let new = BookPeer { addresses, ..known.clone() };
        if new != known {
            book.replace(new.clone())?;
        }
        return Ok(new);
    }
    let wanted = name.cloned().or_else(|| card.name().parse().ok());
    let wanted = wanted.unwrap_or_else(|| "node".parse().expect("a word is a name"));
    let peer = BookPeer {
        name: free(book, wanted),
        addresses: PeerAddresses::new(addresses).unwrap_or_default(),
        fingerprints: PeerKeys::new(vec![key]).expect("one key is possible"),
    };
    book.add(peer.clone())?;
    Ok(peer)
}

/// The name, or one with a number behind it.
fn free(book: &AddressBook, wanted: Name) -> Name {
    let is_free = |name: &Name| book.peers().iter().all(|peer| peer.name != *name);
    if is_free(&wanted) {
        return wanted;
    }
    let stem: String = wanted.as_str().chars().take(STEM).collect();
    let mut numbered = (2..).filter_map(|number| format!("{stem}-{number}").parse().ok());
    numbered.find(is_free).expect("the book has fewer nodes than there are numbers")
}

/// Prints both nodes, so that people can compare the fingerprints.
///
/// # Errors
/// The output is gone.
pub fn write(kept: &BookPeer, own: &PairingCard, out: &mut dyn Write) -> Result<(), Failure> {
    let name = &kept.name;
    writeln!(out, "paired with {name}")?;
    for key in kept.fingerprints.iter() {
        writeln!(out, "  its fingerprint        {key}")?;
    }
    for address in kept.addresses.iter() {
        writeln!(out, "  its address            {address}")?;
    }
    writeln!(out, "  this node's fingerprint  {}", own.fingerprint())?;
    if kept.addresses.iter().len() > 0 {
        writeln!(
            out,
            "`skyhaul cp FILE {name}:DIR` copies, while `skyhaul files serve` runs there"
        )?;
    }
    Ok(out.flush()?)
}

/// Leaves room for a number in a name of 64 characters.
const STEM: usize = 56;
