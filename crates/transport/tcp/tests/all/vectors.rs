//! `docs/reference/wire-vectors.json`: the frames on the wire page are those that this program
//! writes and reads.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use skyhaul_sessions::ConnectionPurpose;
use skyhaul_tcp::wire::{FrameReader, TcpFrame};

fn vectors(table: &str) -> Vec<serde_json::Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/wire-vectors.json");
    let page: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    page[table].as_array().unwrap().clone()
}

fn bytes(vector: &serde_json::Value) -> Vec<u8> {
    let digits: Vec<u8> =
        vector["hex"].as_str().unwrap().bytes().filter(|byte| *byte != b' ').collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn text(frame: &TcpFrame) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match frame {
        TcpFrame::Greeting { purpose } => {
            format!("greeting joins={}", *purpose == ConnectionPurpose::JoinSession)
        }
        TcpFrame::Datagram(bytes) => format!("datagram {}", hex(bytes)),
        TcpFrame::Control(bytes) => format!("control {}", hex(bytes)),
        TcpFrame::Acknowledgement { count, delay } => {
            format!("acknowledgement count={count} delay_us={}", delay.as_micros())
        }
        TcpFrame::Ping(number) => format!("ping {number}"),
        TcpFrame::Pong(number) => format!("pong {number}"),
        TcpFrame::Close { code, reason } => format!("close code={code} reason={reason}"),
    }
}

#[test]
fn the_pages_frames_are_read_and_written() {
    for vector in vectors("tls_frames") {
        let mut reader = FrameReader::default();
        reader.extend(&bytes(&vector));
        let frame = reader.poll().unwrap().unwrap();
        assert_eq!(text(&frame), vector["reads"].as_str().unwrap());
        let mut written = Vec::new();
        frame.encode(&mut written);
        assert_eq!(written, bytes(&vector), "{}", vector["name"]);
    }
}

#[test]
fn what_the_page_refuses_is_refused() {
    for vector in vectors("refused_tls_frames") {
        let mut reader = FrameReader::default();
        reader.extend(&bytes(&vector));
        assert_eq!(reader.poll().unwrap_err().to_string(), vector["error"].as_str().unwrap());
    }
}
