//! `docs/reference/wire-vectors.json`: the messages on the wire page are those that this program
//! writes and reads.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bytes::Bytes;
use skyhaul_channels::wire::{ChannelContent, ChannelMessage};

fn vectors(table: &str) -> Vec<serde_json::Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/wire-vectors.json");
    let page: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    page[table].as_array().unwrap().clone()
}

fn bytes(vector: &serde_json::Value) -> Bytes {
    let digits: Vec<u8> =
        vector["hex"].as_str().unwrap().bytes().filter(|byte| *byte != b' ').collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn text(ChannelMessage { generation, content }: &ChannelMessage) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match content {
        ChannelContent::Open { window, request } => {
            format!("open generation={generation} window={window} request={}", hex(request))
        }
        ChannelContent::Accept { window } => {
            format!("accept generation={generation} window={window}")
        }
        ChannelContent::Data(bytes) => format!("data generation={generation} bytes={}", hex(bytes)),
        ChannelContent::Expendable(bytes) => {
            format!("expendable generation={generation} bytes={}", hex(bytes))
        }
        ChannelContent::Finish => format!("finish generation={generation}"),
        ChannelContent::Reset { reason } => {
            format!("reset generation={generation} reason={}", hex(reason))
        }
        ChannelContent::Windows(limits) => {
            limits.iter().fold("windows".to_owned(), |text, limit| {
                format!("{text} {}={}", limit.key, limit.limit)
            })
        }
        ChannelContent::Service { kind, body } => {
            format!("service kind={kind} number={generation} body={}", hex(body))
        }
    }
}

#[test]
fn the_pages_messages_are_read_and_written() {
    for vector in vectors("channels") {
        let message = ChannelMessage::decode(&bytes(&vector)).unwrap();
        assert_eq!(text(&message), vector["reads"].as_str().unwrap());
        assert_eq!(message.encode(), bytes(&vector), "{}", vector["name"]);
    }
}

#[test]
fn what_the_page_refuses_is_refused() {
    for vector in vectors("refused_channels") {
        let error = ChannelMessage::decode(&bytes(&vector)).unwrap_err();
        assert_eq!(error.to_string(), vector["error"].as_str().unwrap());
    }
}
