//! What a node says of itself when it is paired.

use skyhaul_identity::Fingerprint;

/// A node's name for itself, its key, and where it can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairingCard {
    name: String,
    fingerprint: [u8; 32],
    addresses: Vec<String>,
}

/// Why there is no card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairingCardError {
    /// The name is empty, too long, or has signs that a terminal does not print.
    #[error("a name has 1 to {NAME_MAX} printable ASCII characters without spaces")]
    Name,
    /// An address is too long or has such signs, or there are too many.
    #[error("a card has at most {ADDRESSES_MAX} addresses of printable ASCII characters")]
    Addresses,
    /// The bytes end too early, or more follow.
    #[error("the card of the other end is incomplete")]
    Length,
}

impl PairingCard {
    /// A card.
    ///
    /// # Errors
    /// The name or an address cannot be on it.
    pub fn new(
        name: &str,
        fingerprint: Fingerprint,
        addresses: impl IntoIterator<Item = String>,
    ) -> Result<Self, PairingCardError> {
        let fingerprint = *fingerprint.as_bytes();
        Self { name: name.to_owned(), fingerprint, addresses: addresses.into_iter().collect() }
            .checked()
    }

    /// The node's name for itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fingerprint of its key.
    pub fn fingerprint(&self) -> Fingerprint {
        let digits: String = self.fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("SHA256:{digits}").parse().expect("64 digits are a fingerprint")
    }

    /// Where it can be reached, as text.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.fingerprint);
        text(to, &self.name);
        to.push(self.addresses.len() as u8);
        self.addresses.iter().for_each(|address| text(to, address));
    }

    /// Reads a card that fills `bytes`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, PairingCardError> {
        let (fingerprint, mut rest) = bytes.split_first_chunk().ok_or(PairingCardError::Length)?;
        let name = take(&mut rest)?;
        let (count, mut rest) = rest.split_first().ok_or(PairingCardError::Length)?;
        if usize::from(*count) > ADDRESSES_MAX {
            return Err(PairingCardError::Addresses);
        }
        let addresses = (0..*count).map(|_| take(&mut rest)).collect::<Result<_, _>>()?;
        match rest {
            [] => Self { name, fingerprint: *fingerprint, addresses }.checked(),
            _ => Err(PairingCardError::Length),
        }
    }

    fn checked(self) -> Result<Self, PairingCardError> {
        let plain = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !plain(&self.name, NAME_MAX) {
            return Err(PairingCardError::Name);
        }
        let fit = self.addresses.iter().all(|address| plain(address, ADDRESS_MAX));
        if !fit || self.addresses.len() > ADDRESSES_MAX {
            return Err(PairingCardError::Addresses);
        }
        Ok(self)
    }
}

/// Checked to be short.
fn text(to: &mut Vec<u8>, text: &str) {
    to.push(text.len() as u8);
    to.extend_from_slice(text.as_bytes());
}

fn take(bytes: &mut &[u8]) -> Result<String, PairingCardError> {
    let (length, rest) = bytes.split_first().ok_or(PairingCardError::Length)?;
    let (text, rest) =
        rest.split_at_checked(usize::from(*length)).ok_or(PairingCardError::Length)?;
    *bytes = rest;
    let text = core::str::from_utf8(text).map_err(|_| PairingCardError::Name)?;
    Ok(text.to_owned())
}

/// As of a node's name in a configuration.
const NAME_MAX: usize = 64;
/// The addresses of one host: two lines of two versions of IP.
const ADDRESSES_MAX: usize = 4;
/// A host name has at most 253 characters (RFC 1035 2.3.4), of which few have more than 100.
const ADDRESS_MAX: usize = 200;

/// Fingerprint, name, count and addresses with their lengths.
pub(crate) const CARD_MAX: usize = 32 + 1 + NAME_MAX + 1 + ADDRESSES_MAX * (1 + ADDRESS_MAX);
