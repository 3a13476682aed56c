//! The versions of the protocol.

/// The versions of the protocol that an end speaks, without gaps.
///
/// Both ends list theirs in the handshake, by their ALPN names, and the newest that both have is
/// spoken. A node has its own version and the one before, so that the nodes of a network can be
/// replaced one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolVersions {
    oldest: u16,
    newest: u16,
}

/// The version that this program writes first.
pub const PROTOCOL_VERSION: u16 = 1;

/// What the ALPN names of all versions begin with.
const ALPN_PREFIX: &str = "skyhaul/";

impl ProtocolVersions {
    /// Those of this program. No release has spoken another version than this one.
    pub const OURS: Self = Self::new(PROTOCOL_VERSION, PROTOCOL_VERSION);

    /// From `oldest` to `newest`.
    pub const fn new(oldest: u16, newest: u16) -> Self {
        assert!(oldest <= newest, "an end speaks at least one version");
        Self { oldest, newest }
    }

    /// Their ALPN names, the newest first.
    pub fn names(self) -> Vec<Vec<u8>> {
        let versions = (self.oldest..=self.newest).rev();
        versions.map(|version| format!("{ALPN_PREFIX}{version}").into_bytes()).collect()
    }

    /// Their ALPN names for people, and for the far end's people.
    pub fn text(self) -> String {
        let names = self.names();
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        names.join(" or ")
    }

    /// The version with this ALPN name, if it is one of these.
    pub fn of_name(self, name: &[u8]) -> Option<u16> {
        let digits = core::str::from_utf8(name).ok()?.strip_prefix(ALPN_PREFIX)?;
        let version = digits.parse().ok()?;
        let is_ours = (self.oldest..=self.newest).contains(&version);
        (is_ours && version.to_string() == digits).then_some(version)
    }

    /// The first ALPN name of another version of this protocol that a caller offers which offers
    /// none of these.
    pub fn other<'a>(self, offered: impl Iterator<Item = &'a [u8]>) -> Option<String> {
        let mut other = None;
        for name in offered {
            if self.of_name(name).is_some() {
                return None;
            }
            if other.is_none() && name.starts_with(ALPN_PREFIX.as_bytes()) {
                other = core::str::from_utf8(name).ok();
            }
        }
        other.map(|name| skyhaul_units::printable(name, name.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: ProtocolVersions = ProtocolVersions::new(1, 2);

    #[test]
    fn the_newest_name_comes_first_and_only_own_names_are_versions() {
        assert_eq!(BOTH.names(), [b"skyhaul/2".to_vec(), b"skyhaul/1".to_vec()]);
        assert_eq!(BOTH.text(), "skyhaul/2 or skyhaul/1");
        assert_eq!(BOTH.of_name(b"skyhaul/1"), Some(1));
        for other in [&b"skyhaul/3"[..], b"skyhaul/0", b"skyhaul/01", b"skyhaul/+1", b"h3", b"\xff"]
        {
            assert_eq!(BOTH.of_name(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_caller_that_offers_only_other_versions_is_told_apart_from_another_protocol() {
        let other = |offered: &[&[u8]]| BOTH.other(offered.iter().copied());
        assert_eq!(other(&[b"skyhaul/4", b"skyhaul/3"]).as_deref(), Some("skyhaul/4"));
        assert_eq!(other(&[b"skyhaul/3", b"skyhaul/2"]), None);
        assert_eq!(other(&[b"h3"]), None);
    }
}
