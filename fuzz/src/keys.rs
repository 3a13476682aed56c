//! What nodes say of their keys, and keep of those of others.

use skyhaul_identity::KeyTalk;

/// A message about keys that reads is written as it was.
pub fn key_talk(input: &[u8]) {
    if let Ok(talk) = KeyTalk::decode(input) {
        assert_eq!(talk.encode(), input);
    }
}

/// A record of keys that reads is written and reads the same.
pub fn key_record(input: &[u8]) {
    if let Err(error) = skyhaul_node::check_record(input) {
        assert!(!error.contains("not what was read"), "{error}");
    }
}
