//! `docs/reference/wire-vectors.json`: the messages about keys on the wire page, which another
//! implementation of Ed25519 has made, are those that this program writes and reads.

use crate::{Identity, KeyStage, KeyTalk, Succession};

fn vectors(part: &str) -> Vec<serde_json::Value> {
    let page = include_str!("../../../../docs/reference/wire-vectors.json");
    let page: serde_json::Value = serde_json::from_str(page).unwrap();
    page[part].as_array().unwrap().clone()
}

fn bytes(vector: &serde_json::Value) -> Vec<u8> {
    let digits: Vec<u8> =
        vector["hex"].as_str().unwrap().bytes().filter(|byte| *byte != b' ').collect();
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn stage(stage: KeyStage) -> &'static str {
    match stage {
        KeyStage::Staged => "staged",
        KeyStage::Switched => "switched",
    }
}

fn text(talk: &KeyTalk) -> String {
    match talk {
        KeyTalk::Follows(at, succession) => {
            let (from, to) = (succession.from(), succession.to());
            format!("follows stage={} from={from} to={to}", stage(*at))
        }
        KeyTalk::Noted(at, to) => format!("noted stage={} to={to}", stage(*at)),
    }
}

#[test]
fn the_messages_of_the_wire_page_read_as_it_says_and_are_written_so() {
    let all = vectors("keys");
    assert_eq!(all.len(), 4);
    for vector in &all {
        let bytes = bytes(vector);
        let talk = KeyTalk::decode(&bytes).unwrap();
        assert_eq!(text(&talk), vector["reads"].as_str().unwrap());
        assert_eq!(talk.encode(), bytes);
    }
    // Ed25519 is deterministic (RFC 8032 5.1.6).
    let key = |seed: u8| Identity::from_seed(&[seed; 32]).unwrap();
    let own = Succession::make(&key(1), &key(2)).unwrap();
    assert_eq!(KeyTalk::Follows(KeyStage::Staged, own).encode(), bytes(&all[0]));
}

#[test]
fn what_the_wire_page_refuses_is_refused_for_its_reason() {
    let all = vectors("refused_keys");
    assert!(all.len() >= 5);
    for vector in &all {
        let error = KeyTalk::decode(&bytes(vector)).unwrap_err();
        assert_eq!(error.to_string(), vector["error"].as_str().unwrap());
    }
}
