//! The addresses of another node.

use crate::name::HostPort;
use std::str::FromStr;

/// Where a node can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerAddresses(Vec<HostPort>);

impl PeerAddresses {
    /// Of these, without repetition.
    ///
    /// # Errors
    /// There are more than 16.
    pub fn new(addresses: Vec<HostPort>) -> Result<Self, String> {
        let mut unique: Vec<HostPort> = Vec::new();
        for address in addresses {
            if !unique.contains(&address) {
                unique.push(address);
            }
        }
        match unique.len() {
            0..=ADDRESSES_MAX => Ok(Self(unique)),
            many => Err(format!("there are {many} addresses; write at most {ADDRESSES_MAX}")),
        }
    }

    /// In the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, HostPort> {
        self.0.iter()
    }
}

impl FromStr for PeerAddresses {
    type Err = &'static str;

    /// The default of the key alone: a file writes an array.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "[]" { Ok(Self::default()) } else { Err("an array of addresses") }
    }
}

impl<'de> serde::Deserialize<'de> for PeerAddresses {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(<Vec<_> as serde::Deserialize>::deserialize(deserializer)?)
            .map_err(serde::de::Error::custom)
    }
}

/// As many paths as a program gives a session.
const ADDRESSES_MAX: usize = 16;
