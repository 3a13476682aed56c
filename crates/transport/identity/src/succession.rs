//! The statement that a node's key follows another one, and how two nodes speak of it in a session.

use crate::{Fingerprint, Identity, IdentityError};
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

/// `SubjectPublicKeyInfo` of an Ed25519 key (RFC 8410 4), DER: this, then the 32 bytes of the key.
const SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Bytes of a public key in that form.
const SPKI: usize = SPKI_PREFIX.len() + 32;
/// Bytes of an Ed25519 signature.
const SIGNATURE: usize = 64;
const PURPOSE: &[u8] = b"skyhaul key succession 1\0";

/// One key follows another: signed by the one, and by the other as a proof that its owner has it.
///
/// ```
/// use skyhaul_identity::{Identity, Succession};
///
/// let (old, new) = (Identity::from_seed(&[1; 32])?, Identity::from_seed(&[2; 32])?);
/// let succession = Succession::make(&old, &new)?;
/// assert_eq!((succession.from(), succession.to()), (old.fingerprint(), new.fingerprint()));
/// assert_eq!(Succession::from_bytes(&succession.to_bytes()), Ok(succession));
/// # Ok::<(), skyhaul_identity::IdentityError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Succession {
    from: [u8; SPKI],
    to: [u8; SPKI],
    from_proof: [u8; SIGNATURE],
    to_proof: [u8; SIGNATURE],
}

/// What is wrong with a message about keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyTalkError {
    /// It is too short or too long, or of an unknown kind.
    #[error("a message about keys cannot be read: install the same release on both nodes")]
    Form,
    /// A key in it is not Ed25519, or both keys are the same.
    #[error("a message about keys names no two Ed25519 keys")]
    Keys,
    /// A signature does not fit.
    #[error("a statement about keys is not signed by both of them")]
    Signature,
}

impl Succession {
    /// Bytes of a statement.
    pub const BYTES: usize = 2 * SPKI + 2 * SIGNATURE;

    /// That `new` follows `old`.
    ///
    /// # Errors
    /// A key cannot sign.
    pub fn make(old: &Identity, new: &Identity) -> Result<Self, IdentityError> {
        let spki = |identity: &Identity| {
            let shown = identity.certified();
            let key = shown.cert.first().map(|key| key.as_ref().try_into());
            key.and_then(Result::ok).ok_or(IdentityError::NotEd25519)
        };
        let (from, to) = (spki(old)?, spki(new)?);
        let from_proof = old.sign(&text(Signer::Old, &from, &to))?;
        let to_proof = new.sign(&text(Signer::New, &from, &to))?;
        Ok(Self { from, to, from_proof, to_proof })
    }

    /// The key that is followed.
    pub fn from(&self) -> Fingerprint {
        Fingerprint::of_public_key(&self.from)
    }

    /// The key that follows.
    pub fn to(&self) -> Fingerprint {
        Fingerprint::of_public_key(&self.to)
    }

    /// The public keys, then the signatures.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let parts = [&self.from[..], &self.to, &self.from_proof, &self.to_proof];
        let all = parts.into_iter().flatten();
        bytes.iter_mut().zip(all).for_each(|(byte, of)| *byte = *of);
        bytes
    }

    /// Reads a statement, and checks both signatures.
    ///
    /// # Errors
    /// See [`KeyTalkError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyTalkError> {
        let (from, rest) = bytes.split_first_chunk().ok_or(KeyTalkError::Form)?;
        let (to, rest) = rest.split_first_chunk().ok_or(KeyTalkError::Form)?;
        let (from_proof, rest) = rest.split_first_chunk().ok_or(KeyTalkError::Form)?;
        let (to_proof, rest) = rest.split_first_chunk().ok_or(KeyTalkError::Form)?;
        if !rest.is_empty() {
            return Err(KeyTalkError::Form);
        }
        let this = Self { from: *from, to: *to, from_proof: *from_proof, to_proof: *to_proof };
        if this.from == this.to {
            return Err(KeyTalkError::Keys);
        }
        let proofs = [(Signer::Old, &this.from, from_proof), (Signer::New, &this.to, to_proof)];
        for (signer, key, proof) in proofs {
            let key = key.strip_prefix(&SPKI_PREFIX).ok_or(KeyTalkError::Keys)?;
            UnparsedPublicKey::new(&ED25519, key)
                .verify(&text(signer, &this.from, &this.to), proof)
                .map_err(|_| KeyTalkError::Signature)?;
        }
        Ok(this)
    }
}

impl core::fmt::Debug for Succession {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Succession({} to {})", self.from(), self.to())
    }
}

#[derive(Debug, Clone, Copy)]
enum Signer {
    Old = 1,
    New = 2,
}

/// What a key signs.
fn text(signer: Signer, from: &[u8; SPKI], to: &[u8; SPKI]) -> Vec<u8> {
    [PURPOSE, &[signer as u8], from, to].concat()
}

/// How far a node is with its next key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyStage {
    /// It has the next key, and uses the one before.
    Staged = 1,
    /// It uses the next key.
    Switched = 2,
}

/// What two nodes say about their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTalk {
    /// The sender's key is followed by another one.
    Follows(KeyStage, Succession),
    /// The sender of this message has noted, durably, what it was told of the key with this
    /// fingerprint.
    Noted(KeyStage, Fingerprint),
}

/// The first byte: no other message of the applications begins with it.
const MARK: u8 = 0x4b;
const FOLLOWS: u8 = 1;
const NOTED: u8 = 2;

impl KeyTalk {
    /// Whether a message is about keys.
    pub fn is_marked(body: &[u8]) -> bool {
        body.first() == Some(&MARK)
    }

    /// As it is sent.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Follows(stage, succession) => {
                [&[MARK, FOLLOWS, *stage as u8][..], &succession.to_bytes()].concat()
            }
            Self::Noted(stage, to) => [&[MARK, NOTED, *stage as u8][..], to.as_bytes()].concat(),
        }
    }

    /// Reads a message, and checks its signatures.
    ///
    /// # Errors
    /// See [`KeyTalkError`].
    pub fn decode(body: &[u8]) -> Result<Self, KeyTalkError> {
        let ([MARK, kind, stage], rest) = body.split_first_chunk().ok_or(KeyTalkError::Form)?
        else {
            return Err(KeyTalkError::Form);
        };
        let stage = match stage {
            1 => KeyStage::Staged,
            2 => KeyStage::Switched,
            _ => return Err(KeyTalkError::Form),
        };
        match *kind {
            FOLLOWS => Ok(Self::Follows(stage, Succession::from_bytes(rest)?)),
            NOTED => {
                let hash = rest.try_into().map_err(|_| KeyTalkError::Form)?;
                Ok(Self::Noted(stage, Fingerprint::from_bytes(hash)))
            }
            _ => Err(KeyTalkError::Form),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> Identity {
        Identity::from_seed(&[seed; 32]).unwrap()
    }

    #[test]
    fn a_statement_that_is_changed_in_any_byte_is_refused() {
        let bytes = Succession::make(&key(1), &key(2)).unwrap().to_bytes();
        for place in 0..bytes.len() {
            let mut changed = bytes;
            changed[place] ^= 1;
            assert!(Succession::from_bytes(&changed).is_err(), "byte {place}");
        }
        assert_eq!(Succession::from_bytes(&bytes[..215]), Err(KeyTalkError::Form));
        assert_eq!(Succession::from_bytes(&[&bytes[..], &[0]].concat()), Err(KeyTalkError::Form));
    }

    #[test]
    fn a_key_cannot_be_named_as_the_next_one_without_having_it() {
        let (old, new, other) = (key(1), key(2), key(3));
        let mut forged = Succession::make(&old, &new).unwrap();
        forged.to_proof = Succession::make(&old, &other).unwrap().to_proof;
        assert_eq!(Succession::from_bytes(&forged.to_bytes()), Err(KeyTalkError::Signature));
        let twice = Succession::make(&old, &old).unwrap();
        assert_eq!(Succession::from_bytes(&twice.to_bytes()), Err(KeyTalkError::Keys));
    }

    #[test]
    fn the_proofs_of_the_two_keys_are_not_exchangeable() {
        let forth = Succession::make(&key(1), &key(2)).unwrap();
        let swapped = Succession {
            from: forth.to,
            to: forth.from,
            from_proof: forth.to_proof,
            to_proof: forth.from_proof,
        };
        assert_eq!(Succession::from_bytes(&swapped.to_bytes()), Err(KeyTalkError::Signature));
    }

    #[test]
    fn messages_come_back_from_their_bytes() {
        let succession = Succession::make(&key(1), &key(2)).unwrap();
        for talk in [
            KeyTalk::Follows(KeyStage::Staged, succession),
            KeyTalk::Follows(KeyStage::Switched, succession),
            KeyTalk::Noted(KeyStage::Staged, key(2).fingerprint()),
            KeyTalk::Noted(KeyStage::Switched, key(2).fingerprint()),
        ] {
            let bytes = talk.encode();
            assert!(KeyTalk::is_marked(&bytes));
            assert_eq!(KeyTalk::decode(&bytes), Ok(talk));
            assert!(KeyTalk::decode(&bytes[..bytes.len() - 1]).is_err());
        }
        for wrong in [&b""[..], b"K", b"{\"say\":1}", b"K\x03\x01", b"K\x02\x00"] {
            assert_eq!(KeyTalk::decode(wrong), Err(KeyTalkError::Form));
        }
    }
}
