//! `docs/reference/wire-vectors.json`: what forwards say on the wire page is what this program
//! writes and reads.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bytes::Bytes;
use skyhaul_channels::wire::{ChannelContent, ChannelMessage};
use skyhaul_forward::wire::{ForwardRefusal, ListenMessage, MalformedMessage, StreamRequest};
use skyhaul_forward::{Carriage, Listen};
use skyhaul_units::Duration;

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

/// What was read, and the same written again.
struct Read {
    text: String,
    again: Bytes,
}

fn read(vector: &serde_json::Value) -> Result<Read, MalformedMessage> {
    let bytes = bytes(vector);
    Ok(match vector["on"].as_str().unwrap() {
        "request" => {
            let request = StreamRequest::decode(&bytes)?;
            let StreamRequest { target, carriage: way } = &request;
            Read { text: format!("target={target} {}", carriage(way)), again: request.encode() }
        }
        "refusal" => {
            let refused = ForwardRefusal::decode(&bytes)?;
            Read { text: refusal(&refused), again: refused.encode() }
        }
        _ => {
            let message = ChannelMessage::decode(&bytes).unwrap();
            let ChannelContent::Service { kind, body } = message.content else {
                panic!("{vector} is no message of a service")
            };
            let (number, said) = (message.generation, ListenMessage::decode(kind, &body)?);
            let text = match &said {
                ListenMessage::Listen(Listen { at, target, carriage: way, idle }) => format!(
                    "listen number={number} at={at} target={target} {} idle_ms={}",
                    carriage(way),
                    millis(*idle)
                ),
                ListenMessage::Listening(at) => format!("listening number={number} at={at}"),
                ListenMessage::NotListening(refused) => {
                    format!("not-listening number={number} {}", refusal(refused))
                }
            };
            Read { text, again: said.encode(number) }
        }
    })
}

fn carriage(Carriage { class, priority, deadline }: &Carriage) -> String {
    format!("class={class} priority={priority} deadline_ms={}", millis(*deadline))
}

fn refusal(ForwardRefusal { reason, sentence }: &ForwardRefusal) -> String {
    format!("{} {sentence}", reason.name())
}

fn millis(span: Option<Duration>) -> String {
    span.map_or_else(|| "-".to_owned(), |span| span.as_millis().to_string())
}

#[test]
fn what_the_page_says_of_forwards_is_read_and_written() {
    for vector in vectors("forwards") {
        let Read { text, again } = read(&vector).unwrap();
        assert_eq!(text, vector["reads"].as_str().unwrap());
        assert_eq!(again, bytes(&vector), "{}", vector["name"]);
    }
}

#[test]
fn what_the_page_refuses_is_refused() {
    for vector in vectors("refused_forwards") {
        let Err(error) = read(&vector) else { panic!("{vector} is read") };
        assert_eq!(error.to_string(), vector["error"].as_str().unwrap());
    }
}
