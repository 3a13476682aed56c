//! Secrets that only the two ends of a connection share, and the proof that a connection belongs to
//! a session.

use aws_lc_rs::{constant_time, hmac};

/// Keying material of one connection (RFC 8446 7.5): both ends derive the same.
#[derive(Clone, PartialEq, Eq)]
pub struct Keying {
    /// Identifies the session that the connection begins.
    session: [u8; 32],
    /// Makes proofs on the connection.
    proof: [u8; 32],
}

/// The end that gives a proof. The number is what the proof covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProvenBy {
    /// The one that accepted the connection.
    Accepting = 0,
    /// The one that opened it.
    Connecting = 1,
}

impl core::fmt::Debug for Keying {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Keying(secret)")
    }
}

impl Keying {
    /// Derives the material by `export`, which fills its argument for a label without context.
    /// `None` if it fails.
    pub fn derive(mut export: impl FnMut(&mut [u8; 32], &[u8]) -> bool) -> Option<Self> {
        let mut keying = Self { session: [0; 32], proof: [0; 32] };
        let derived = export(&mut keying.session, b"EXPORTER-skyhaul-session")
            && export(&mut keying.proof, b"EXPORTER-skyhaul-join");
        derived.then_some(keying)
    }

    /// The proof, sent on this connection, that it is `path` of the session that `first` began:
    /// HMAC-SHA-256, with this connection's key, of the first one's secret, the direction and the
    /// path.
    pub fn prove(&self, first: &Self, path: u8, by: ProvenBy) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.proof);
        let mut message = [0; 34];
        message[..32].copy_from_slice(&first.session);
        message[32..].copy_from_slice(&[by as u8, path]);
        let mut proof = [0; 32];
        proof.copy_from_slice(hmac::sign(&key, &message).as_ref());
        proof
    }

    /// Whether `proof` is the result of [`Keying::prove`]. Takes the same time for any proof.
    pub fn is_proved(&self, first: &Self, path: u8, by: ProvenBy, proof: &[u8; 32]) -> bool {
        constant_time::verify_slices_are_equal(&self.prove(first, path, by), proof).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keying(seed: u8) -> Keying {
        let export = |out: &mut [u8; 32], label: &[u8]| {
            *out = [seed.wrapping_add(label.len() as u8); 32];
            true
        };
        Keying::derive(export).expect("derived")
    }

    #[test]
    fn a_proof_holds_for_its_connections_path_and_direction_alone() {
        let (first, second, other) = (keying(1), keying(50), keying(99));
        let proof = second.prove(&first, 3, ProvenBy::Connecting);
        assert!(second.is_proved(&first, 3, ProvenBy::Connecting, &proof));
        assert!(!second.is_proved(&first, 4, ProvenBy::Connecting, &proof));
        assert!(!second.is_proved(&first, 3, ProvenBy::Accepting, &proof));
        assert!(!second.is_proved(&other, 3, ProvenBy::Connecting, &proof));
        assert!(!other.is_proved(&first, 3, ProvenBy::Connecting, &proof));
        assert!(!second.is_proved(&first, 3, ProvenBy::Connecting, &[0; 32]));
    }

    /// The expected value is another implementation's.
    #[test]
    fn the_proof_is_hmac_sha_256() {
        let first = Keying { session: [0x61; 32], proof: [0; 32] };
        let second = Keying { session: [0; 32], proof: [0x0b; 32] };
        let hex: String = second
            .prove(&first, 2, ProvenBy::Connecting)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hex, "b75faefbe77867d3dcd27a3f8fbe516c430e68fec8df3877710bd11130a19ee6");
    }

    #[test]
    fn nothing_is_derived_where_the_connection_exports_nothing() {
        assert!(Keying::derive(|_, _| false).is_none());
    }
}
