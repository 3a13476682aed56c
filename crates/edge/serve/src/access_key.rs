//! Access keys: what clients of S3 sign their requests with.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// An access key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// Its identifier, which is no secret.
    pub id: String,
    /// Its secret.
    pub secret: KeySecret,
}

/// The secret of an access key. The server needs it as it is: a request has a digest that was made
/// with it, not the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

/// What clients take: as many characters as they keep.
const LENGTH: core::ops::RangeInclusive<usize> = 16..=128;
/// The random bytes of an identifier, and those of a secret: 240 bits.
const ID_BYTES: usize = 12;
const SECRET_BYTES: usize = 30;

impl AccessKey {
    /// A key as it stands in a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(id: String, secret: String) -> Result<Self, String> {
        let is_id = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !LENGTH.contains(&id.len()) || !id.chars().all(is_id) {
            return Err("`id` is not 16 to 128 letters, digits and `_`".to_owned());
        }
        if !LENGTH.contains(&secret.len()) || !secret.chars().all(|c| c.is_ascii_graphic()) {
            return Err("`secret` is not 16 to 128 characters without spaces".to_owned());
        }
        Ok(Self { id, secret: KeySecret(secret) })
    }

    /// A key from random bytes.
    pub fn from_random(id: [u8; 32], secret: [u8; 32]) -> Self {
        let id: String = id[..ID_BYTES].iter().map(|byte| format!("{byte:02X}")).collect();
        let secret = BASE64_URL_SAFE_NO_PAD.encode(&secret[..SECRET_BYTES]);
        Self { id: format!("SKY{id}"), secret: KeySecret(secret) }
    }
}

impl KeySecret {
    /// The secret itself: for signatures, for the accounts file, and to be printed once.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl core::fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_can_stand_in_a_file() {
        let key = AccessKey::from_random([0xa5; 32], [0x5a; 32]);
        assert_eq!((key.id.len(), key.secret.as_str().len()), (27, 40));
        let read = AccessKey::new(key.id.clone(), key.secret.as_str().to_owned());
        assert_eq!(read, Ok(key.clone()));
        assert!(!format!("{key:?}").contains(key.secret.as_str()));
    }
}
