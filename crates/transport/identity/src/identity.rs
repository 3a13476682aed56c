//! A node's identity: an Ed25519 key, and the fingerprint by which others know it.

use aws_lc_rs::digest::{Context, SHA256, digest};
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// SHA-256 over a node's public key in its `SubjectPublicKeyInfo` form (RFC 7250 3, DER).
///
/// Written as `SHA256:` and 64 hexadecimal digits, lower case; read in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a public key in its DER `SubjectPublicKeyInfo` form.
    pub fn of_public_key(spki: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, spki).as_ref());
        Self(bytes)
    }

    /// The fingerprint with this hash, as [`Fingerprint::as_bytes`] gives it.
    pub const fn from_bytes(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// The hash itself.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl core::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl core::str::FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let refuse = || FingerprintError { text: text.chars().take(80).collect() };
        let digits = text.trim().strip_prefix(PREFIX).ok_or_else(refuse)?.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(refuse());
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16).ok_or_else(refuse)?;
            let low = char::from(pair[1]).to_digit(16).ok_or_else(refuse)?;
            *byte = u8::try_from(high * 16 + low).map_err(|_| refuse())?;
        }
        Ok(Self(bytes))
    }
}

const PREFIX: &str = "SHA256:";

/// A text that is not a fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a key fingerprint: write `SHA256:` and the 64 hexadecimal digits that keygen \
    prints"
)]
pub struct FingerprintError {
    text: String,
}

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The text holds no private key in PEM form.
    #[error("no `-----BEGIN PRIVATE KEY-----` section in the key file: make a key with keygen")]
    NotPem,
    /// The key is not Ed25519, or damaged.
    #[error("the private key is not an Ed25519 key in PKCS#8 form: make one with keygen")]
    NotEd25519,
    /// The system provides no random bytes.
    #[error("the system gives no random bytes for a key: check its random number device")]
    NoRandomness,
}

/// A node's key pair.
#[derive(Clone)]
pub struct Identity {
    pkcs8: Arc<[u8]>,
    certified: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// A new key from the system's random numbers.
    pub fn generate() -> Result<Self, IdentityError> {
        let pair = Ed25519KeyPair::generate().map_err(|_| IdentityError::NoRandomness)?;
        Self::from_pair(&pair)
    }

    /// The key that belongs to 32 given secret bytes (RFC 8032 5.1.5).
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, IdentityError> {
        let pair =
            Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| IdentityError::NotEd25519)?;
        Self::from_pair(&pair)
    }

    /// Reads a key from PEM text holding one `PRIVATE KEY` section (RFC 7468 10, RFC 8410 7).
    pub fn from_pem(text: &str) -> Result<Self, IdentityError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes())
            .map_err(|_| IdentityError::NotPem)?;
        Self::from_pkcs8(der.secret_pkcs8_der())
    }

    /// The private key as PEM text, as [`Identity::from_pem`] and OpenSSL read it. Keep it secret.
    pub fn to_pem(&self) -> String {
        let body = STANDARD.encode(&self.pkcs8);
        let lines: Vec<&str> = body
            .as_bytes()
            .chunks(64)
            .map(|line| core::str::from_utf8(line).expect("base64 is ASCII"))
            .collect();
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
    }

    /// The fingerprint by which others know this key.
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// A secret for `purpose` that only this key's owner can make, the same each time: SHA-256 over
    /// `purpose` and the private key. One purpose must not begin with another.
    pub fn derive_secret(&self, purpose: &[u8]) -> [u8; 32] {
        let mut hash = Context::new(&SHA256);
        hash.update(purpose);
        hash.update(&self.pkcs8);
        let mut secret = [0; 32];
        secret.copy_from_slice(hash.finish().as_ref());
        secret
    }

    /// Signs `message` (RFC 8032 5.1.6).
    pub(crate) fn sign(&self, message: &[u8]) -> Result<[u8; 64], IdentityError> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&self.pkcs8)
            .map_err(|_| IdentityError::NotEd25519)?;
        pair.sign(message).as_ref().try_into().map_err(|_| IdentityError::NotEd25519)
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }

    fn from_pair(pair: &Ed25519KeyPair) -> Result<Self, IdentityError> {
        // Version 1 of PKCS#8: OpenSSL does not read version 2.
        let document = pair.to_pkcs8v1().map_err(|_| IdentityError::NotEd25519)?;
        Self::from_pkcs8(document.as_ref())
    }

    fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, IdentityError> {
        let der = PrivatePkcs8KeyDer::from(pkcs8);
        let signer = rustls::crypto::aws_lc_rs::sign::any_eddsa_type(&der)
            .map_err(|_| IdentityError::NotEd25519)?;
        let spki = signer.public_key().ok_or(IdentityError::NotEd25519)?;
        let fingerprint = Fingerprint::of_public_key(&spki);
        // RFC 7250 3: the certificate's place is taken by the bare public key.
        let bare = CertificateDer::from(spki.to_vec());
        let certified = Arc::new(CertifiedKey::new(vec![bare], signer));
        let kept = PrivateKeyDer::Pkcs8(der.clone_key());
        Ok(Self { pkcs8: kept.secret_der().into(), certified, fingerprint })
    }
}

impl core::fmt::Debug for Identity {
    /// Without the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8410 10.3, the private key, and the public key of 10.1 that belongs to it.
    const RFC_8410_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
        -----END PRIVATE KEY-----\n";
    const RFC_8410_PUBLIC: &str = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=";

    #[test]
    fn the_key_of_rfc_8410_is_read_and_written_and_gives_its_public_key() {
        let identity = Identity::from_pem(RFC_8410_KEY).unwrap();
        let public = STANDARD.decode(RFC_8410_PUBLIC).unwrap();
        assert_eq!(identity.certified().cert[0].as_ref(), public);
        assert_eq!(identity.fingerprint(), Fingerprint::of_public_key(&public));
        assert_eq!(identity.to_pem(), RFC_8410_KEY);
    }

    #[test]
    fn generated_keys_differ_and_survive_their_file() {
        let one = Identity::generate().unwrap();
        let other = Identity::generate().unwrap();
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_eq!(Identity::from_pem(&one.to_pem()).unwrap().fingerprint(), one.fingerprint());
    }

    #[test]
    fn fingerprints_have_one_text_form() {
        let fingerprint = Identity::from_seed(&[7; 32]).unwrap().fingerprint();
        let text = fingerprint.to_string();
        assert_eq!(text.len(), 71);
        assert_eq!(text.parse::<Fingerprint>(), Ok(fingerprint));
        assert_eq!(text.to_uppercase().parse::<Fingerprint>(), Ok(fingerprint));
        for wrong in ["", "SHA256:", &text[..70], &text[7..], "SHA256:zz", &format!("{text}0")] {
            let error = wrong.parse::<Fingerprint>().unwrap_err().to_string();
            assert!(error.contains("keygen"), "{error}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_with_what_to_do() {
        let cut = RFC_8410_KEY.replace("MC4CAQAw", "MC4CAQAx");
        for (text, error) in [
            ("", IdentityError::NotPem),
            ("x", IdentityError::NotPem),
            (&cut, IdentityError::NotEd25519),
        ] {
            assert_eq!(Identity::from_pem(text).unwrap_err(), error, "{text}");
            assert!(error.to_string().contains("keygen"));
        }
    }
}
