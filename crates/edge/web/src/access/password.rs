//! Passwords: kept as Argon2id hashes in the PHC string format, as other programs write them.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;

/// The hash of a password, with what is needed to compare another one with it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash {
    costs: HashCosts,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

/// What one guess costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HashCosts {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

/// 19 MiB and two passes: 30 ms of a processor of 2024, and no memory to speak of beside a node's
/// buffers. These are the costs that RFC 9106 and OWASP's list of 2023 begin with.
const COSTS: HashCosts = HashCosts { memory_kib: 19_456, passes: 2, lanes: 1 };
const HASH_LEN: usize = 32;
/// A file that asks for more is a mistake: one login would take the memory of the node.
const MEMORY_MAX_KIB: u32 = 256 << 10;
const PASSES_MAX: u32 = 32;
const LANES_MAX: u32 = 16;
const SALT_LEN: core::ops::RangeInclusive<usize> = 8..=64;
const HASH_LENS: core::ops::RangeInclusive<usize> = 16..=64;

/// The shortest password, in characters.
pub const PASSWORD_MIN: usize = 10;
/// The longest password, in bytes.
pub const PASSWORD_MAX: usize = 256;

impl PasswordHash {
    /// The hash of a new password; `salt` is random.
    ///
    /// # Errors
    /// The password is too short, too long, or has a character that cannot be typed.
    pub fn make(password: &str, salt: [u8; 16]) -> Result<Self, String> {
        let count = password.chars().count();
        if count < PASSWORD_MIN || password.len() > PASSWORD_MAX {
            return Err(format!(
                "a password has {PASSWORD_MIN} characters at least and {PASSWORD_MAX} bytes at \
                 most; a few words are easy to remember"
            ));
        }
        if password.chars().any(char::is_control) {
            return Err("a password has no control characters; type another".to_owned());
        }
        let hash = computed(COSTS, password, &salt, HASH_LEN);
        let hash = hash.ok_or_else(|| "no memory for the hash of the password".to_owned())?;
        Ok(Self { costs: COSTS, salt: salt.to_vec(), hash })
    }

    /// A hash that no password has: comparing with it takes as long as with a new one.
    pub fn of_nobody() -> Self {
        Self { costs: COSTS, salt: vec![0; 16], hash: vec![0; HASH_LEN] }
    }

    /// From its text: `$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("$argon2id$v=19$")?.split('$');
        let (costs, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let mut costs = costs.split(',');
        let mut cost = |name: &str| costs.next()?.strip_prefix(name)?.parse::<u32>().ok();
        let costs = HashCosts { memory_kib: cost("m=")?, passes: cost("t=")?, lanes: cost("p=")? };
        let is_bounded = (1..=LANES_MAX).contains(&costs.lanes)
            && (1..=PASSES_MAX).contains(&costs.passes)
            && (8 * costs.lanes..=MEMORY_MAX_KIB).contains(&costs.memory_kib);
        let [salt, hash] = [salt, hash].map(|part| BASE64_STANDARD_NO_PAD.decode(part).ok());
        let (salt, hash) = (salt?, hash?);
        let fits = is_bounded && SALT_LEN.contains(&salt.len()) && HASH_LENS.contains(&hash.len());
        fits.then_some(Self { costs, salt, hash })
    }

    /// As text, as [`PasswordHash::parse`] reads it.
    pub fn to_text(&self) -> String {
        let HashCosts { memory_kib, passes, lanes } = self.costs;
        let [salt, hash] = [&self.salt, &self.hash].map(|part| BASE64_STANDARD_NO_PAD.encode(part));
        format!("$argon2id$v=19$m={memory_kib},t={passes},p={lanes}${salt}${hash}")
    }

    /// Whether this is its password. Takes as long for any answer, and tens of milliseconds.
    pub fn is_of(&self, password: &str) -> bool {
        if password.len() > PASSWORD_MAX {
            return false;
        }
        let found = computed(self.costs, password, &self.salt, self.hash.len());
        found.is_some_and(|found| {
            let differ = found.iter().zip(&self.hash).fold(0, |bits, (a, b)| bits | (a ^ b));
            differ == 0
        })
    }
}

fn computed(costs: HashCosts, password: &str, salt: &[u8], len: usize) -> Option<Vec<u8>> {
    let HashCosts { memory_kib, passes, lanes } = costs;
    let params = Params::new(memory_kib, passes, lanes, Some(len)).ok()?;
    let mut hash = vec![0; len];
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon.hash_password_into(password.as_bytes(), salt, &mut hash).ok()?;
    Some(hash)
}

impl core::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the reference implementation: `echo -n password | argon2 somesalt -id -t 2 -m 8 -p 1`.
    const REFERENCE: &str =
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

    #[test]
    fn a_hash_of_the_reference_implementation_is_compared() {
        let hash = PasswordHash::parse(REFERENCE).unwrap();
        assert_eq!(hash.to_text(), REFERENCE);
        assert!(hash.is_of("password") && !hash.is_of("Password") && !hash.is_of(""));
        assert!(!hash.is_of(&"x".repeat(PASSWORD_MAX + 1)));
    }

    #[test]
    fn what_would_take_too_much_or_is_another_algorithm_is_refused() {
        for (from, to) in [
            ("argon2id", "argon2i"),
            ("m=256", "m=262145"),
            ("m=256", "m=7"),
            ("t=2", "t=0"),
            ("t=2", "t=33"),
            ("p=1", "p=17"),
            ("p=1", "p=1,x=2$"),
            ("c29tZXNhbHQ", "c29t"),
            ("c29tZXNhbHQ", "%"),
            ("9U1bMCHGi/4", "9U1bMCHGi/4$x"),
        ] {
            assert_eq!(PasswordHash::parse(&REFERENCE.replacen(from, to, 1)), None, "{to}");
        }
    }

    #[test]
    fn a_password_that_is_too_short_is_refused() {
        for password in ["short", "nine char", "ten chars\n!", &"x".repeat(257)] {
            assert!(PasswordHash::make(password, [1; 16]).is_err(), "{password}");
        }
    }
}
