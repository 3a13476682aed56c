//! `docs/wire-vectors.json`: the bytes on the wire page are the bytes that this program writes and reads.

use bytes::Bytes;
use proptest::prelude::*;
use skyhaul_transport::wire::{Control, ControlReader, Datagram, FlowReport, Report, Symbol, SymbolHeader};
use skyhaul_transport::{FlowId, Resume, Seq};
use skyhaul_units::Utc;

fn vectors() -> serde_json::Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wire-vectors.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("docs/wire-vectors.json")).expect("JSON")
}

fn hex(text: &serde_json::Value) -> Vec<u8> {
    let digits: Vec<u8> = text.as_str().expect("hex").bytes().filter(|byte| *byte != b' ').collect();
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a hex digit") as u8;
    let byte = |pair: &[u8]| digit(pair[0]) << 4 | digit(pair[1]);
    digits.chunks(2).map(byte).collect()
}

fn datagram_text(datagram: &Datagram) -> String {
    match datagram {
        Datagram::Symbol(Symbol { header, bytes }) => {
            let sent = header.sent.map_or("-".to_owned(), |sent| sent.as_micros().to_string());
            let slice: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!(
                "symbol flow={} seq_low={} offset={} fin={} repeated={} sent={sent} bytes={slice}",
                header.flow, header.seq_low, header.offset, header.fin, header.repeated
            )
        }
        Datagram::Report(report) => {
            let range = |(start, end): &(u32, Option<u32>)| {
                format!("{start}..{}", end.map_or(String::new(), |end| end.to_string()))
            };
            let flow = |flow: &FlowReport| {
                let missing: Vec<String> = flow.missing.iter().map(range).collect();
                format!(" flow={} next={} missing=[{}]", flow.flow, flow.next, missing.join(" "))
            };
            let flows: String = report.flows.iter().map(flow).collect();
            format!("report number={} limit={}{flows}", report.number, report.limit)
        }
    }
}

fn control_text(control: &Control) -> String {
    match control {
        Control::Hello { name, window, resume } => {
            let open: Vec<String> = resume.open.iter().map(|(flow, next)| format!("{flow}:{next}")).collect();
            let below = resume.finished_below;
            format!("hello name={name} window={window} finished_below={below} open=[{}]", open.join(" "))
        }
        Control::Receipt { flow, next } => format!("receipt flow={flow} next={next}"),
        Control::Refuse { reason } => format!("refuse reason={reason}"),
    }
}

fn encode(datagram: &Datagram) -> Bytes {
    match datagram {
        Datagram::Symbol(symbol) => symbol.header.encode(&symbol.bytes),
        Datagram::Report(report) => report.encode(),
    }
}

#[test]
fn datagrams_of_the_wire_page() {
    for vector in vectors()["datagrams"].as_array().expect("datagrams") {
        let bytes = Bytes::from(hex(&vector["hex"]));
        let datagram = Datagram::decode(&bytes).expect("a valid vector");
        assert_eq!(datagram_text(&datagram), vector["reads"], "{}", vector["name"]);
        assert_eq!(encode(&datagram), bytes, "{}", vector["name"]);
    }
}

#[test]
fn control_messages_of_the_wire_page() {
    for vector in vectors()["control"].as_array().expect("control") {
        let bytes = hex(&vector["hex"]);
        let mut reader = ControlReader::default();
        for byte in &bytes[..bytes.len() - 1] {
            reader.push(&[*byte]);
            assert_eq!(reader.next_message(), Ok(None), "{}", vector["name"]);
        }
        reader.push(&bytes[bytes.len() - 1..]);
        let message = reader.next_message().expect("a valid vector").expect("whole");
        assert_eq!(control_text(&message), vector["reads"], "{}", vector["name"]);
        assert_eq!(message.encode(), bytes, "{}", vector["name"]);
    }
}

#[test]
fn refused_messages_of_the_wire_page() {
    for vector in vectors()["refused"].as_array().expect("refused") {
        let bytes = hex(&vector["hex"]);
        let error = if vector["on"] == "datagram" {
            Datagram::decode(&Bytes::from(bytes)).map(|_| ()).unwrap_err()
        } else {
            let mut reader = ControlReader::default();
            reader.push(&bytes);
            reader.next_message().map(|_| ()).unwrap_err()
        };
        assert_eq!(error.to_string(), vector["error"]);
    }
}

proptest! {
    #[test]
    fn symbols_survive(
        flow in any::<u32>(), seq_low in 0u32..1 << 24, offset in 1u32..1 << 23,
        flags in any::<(bool, bool)>(), head in any::<Option<i64>>(),
        slice in proptest::collection::vec(any::<u8>(), 1..100),
    ) {
        let sent = head.map(|micros| Utc::from_micros(micros >> 11));
        let offset = if sent.is_some() { 0 } else { offset };
        let header = SymbolHeader { flow: FlowId(flow), seq_low, offset, fin: flags.0, repeated: flags.1, sent };
        let bytes = header.encode(&slice);
        prop_assert_eq!(bytes.len(), header.len() + slice.len());
        let symbol = Symbol { header, bytes: Bytes::from(slice) };
        prop_assert_eq!(Datagram::decode(&bytes), Ok(Datagram::Symbol(symbol)));
    }

    #[test]
    fn reports_survive(
        number in any::<u32>(), limit in 0u64..1 << 62,
        flows in proptest::collection::vec(
            (any::<u32>(), 0u64..1 << 62, proptest::collection::vec((0u32..1 << 24, 1u32..1 << 24), 0..8)), 0..20
        ),
    ) {
        let flow = |(flow, next, missing): (u32, u64, Vec<(u32, u32)>)| FlowReport {
            flow: FlowId(flow),
            next,
            missing: missing.into_iter().map(|(start, len)| (start, Some(start + len))).collect(),
        };
        let report = Report { number, limit, flows: flows.into_iter().map(flow).collect() };
        prop_assert_eq!(Datagram::decode(&report.encode()), Ok(Datagram::Report(report)));
    }

    #[test]
    fn greetings_survive(
        name in ".{0,60}", window in 0u64..1 << 62, below in any::<u32>(),
        open in proptest::collection::btree_map(any::<u32>(), 0u64..1 << 62, 0..50),
    ) {
        let open = open.into_iter().map(|(flow, next)| (FlowId(flow), Seq(next))).collect();
        let hello = Control::Hello { name, window, resume: Resume { finished_below: FlowId(below), open } };
        let mut reader = ControlReader::default();
        reader.push(&hello.encode());
        prop_assert_eq!(reader.next_message(), Ok(Some(hello)));
        prop_assert_eq!(reader.next_message(), Ok(None));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Datagram::decode(&Bytes::from(bytes.clone()));
        let mut reader = ControlReader::default();
        reader.push(&bytes);
        while let Ok(Some(_)) = reader.next_message() {}
    }
}
