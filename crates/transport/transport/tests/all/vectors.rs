//! `docs/reference/wire-vectors.json`: the bytes on the wire page are the bytes that this program
//! writes and reads.

use bytes::Bytes;
use proptest::prelude::*;
use skyhaul_transport::repair::{RepairSymbol, Sid};
use skyhaul_transport::wire::{
    AbandonedNotice, Control, ControlReader, Datagram, FlowReport, Head, Recovered, Report, Symbol,
    SymbolHeader, encode_protected, encode_repair, padding,
};
use skyhaul_transport::{
    BlockMark, Custody, FlowId, Held, Resume, SPOOLS_MAX, Seq, SpoolId, SpoolIdentity, SpoolOpening,
};
use skyhaul_units::{Duration, Utc};

fn vectors() -> serde_json::Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/wire-vectors.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("docs/reference/wire-vectors.json"))
        .expect("JSON")
}

fn hex(text: &serde_json::Value) -> Vec<u8> {
    let digits: Vec<u8> =
        text.as_str().expect("hex").bytes().filter(|byte| *byte != b' ').collect();
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a hex digit") as u8;
    let byte = |pair: &[u8]| digit(pair[0]) << 4 | digit(pair[1]);
    digits.chunks(2).map(byte).collect()
}

fn datagram_text(datagram: &Datagram) -> String {
    match datagram {
        Datagram::Symbol(Symbol { header, bytes }) => {
            let head = header.head.map_or("-".to_owned(), |head| {
                let life = head.life.map_or(String::new(), |life| format!("+{}", life.as_millis()));
                format!("{}{life}", head.sent.as_micros())
            });
            let slice = digits(bytes);
            format!(
                "symbol flow={} seq_low={} offset={} fin={} repeated={} head={head} bytes={slice}",
                header.flow, header.seq_low, header.offset, header.fin, header.repeated
            )
        }
        Datagram::Protected { sid, content } => {
            format!("protected sid={} content={}", sid.to_wire(), digits(content))
        }
        Datagram::Repair { path, symbol } => format!(
            "repair path={path} first={} count={} stride={} index={} bytes={}",
            symbol.first.to_wire(),
            symbol.count,
            symbol.stride,
            symbol.index,
            digits(&symbol.bytes)
        ),
        Datagram::Notice(notice) => {
            let one = |(flow, seq, cost): &(FlowId, u64, u64)| format!(" {flow}:{seq} cost={cost}");
            format!("notice{}", notice.given_up.iter().map(one).collect::<String>())
        }
        Datagram::Padding(size) => format!("padding size={size}"),
        Datagram::Report(report) => {
            let range = |(start, end): &(u32, Option<u32>)| {
                format!("{start}..{}", end.map_or(String::new(), |end| end.to_string()))
            };
            let flow = |flow: &FlowReport| {
                let missing: Vec<String> = flow.missing.iter().map(range).collect();
                let done: Vec<String> =
                    flow.done.iter().map(|(a, b)| format!("{a}..{b}")).collect();
                let (done, missing) = (done.join(" "), missing.join(" "));
                format!(" flow={} next={} done=[{done}] missing=[{missing}]", flow.flow, flow.next)
            };
            let flows: String = report.flows.iter().map(flow).collect();
            let run = |run: &Recovered| {
                format!(" recovered={}:{}+{}", run.path, run.first.to_wire(), run.count)
            };
            let runs: String = report.recovered.iter().map(run).collect();
            format!("report number={} limit={}{flows}{runs}", report.number, report.limit)
        }
    }
}

fn spool_text(spool: &SpoolIdentity) -> String {
    let SpoolIdentity { id, opening } = spool;
    format!("{id}/{}/{:016x}", opening.count, opening.drawn)
}

fn custody_text(custody: &Custody) -> String {
    let Custody { spool, resume } = custody;
    let held = |held: &Held| format!("{}:{}/{:016x}", held.flow, held.next, held.last.0);
    let open: Vec<String> = resume.open.iter().map(held).collect();
    let (spool, below, open) = (spool_text(spool), resume.finished_below, open.join(" "));
    format!(" custody={spool} finished_below={below} open=[{open}]")
}

fn control_text(control: &Control) -> String {
    match control {
        Control::Hello { name, window, flow_base, spool, custody } => {
            let custody: String = custody.iter().map(custody_text).collect();
            let spool = spool_text(spool);
            format!("hello name={name} window={window} base={flow_base} spool={spool}{custody}")
        }
        Control::Receipt { flow, next } => format!("receipt flow={flow} next={next}"),
        Control::Refuse { cause, reason } => format!("refuse cause={cause:?} reason={reason}"),
        Control::Application { body } => format!("application {}", digits(body)),
        Control::Join { path, proof } => format!("join path={path} proof={}", digits(proof)),
    }
}

fn encode(datagram: &Datagram) -> Bytes {
    match datagram {
        Datagram::Symbol(symbol) => symbol.header.encode(&symbol.bytes),
        Datagram::Report(report) => report.encode(),
        Datagram::Notice(notice) => notice.encode(),
        Datagram::Padding(size) => padding(*size),
        Datagram::Protected { sid, content } => encode_protected(content, *sid),
        Datagram::Repair { path, symbol } => encode_repair(*path, symbol),
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
        flags in any::<(bool, bool)>(), head in any::<Option<(i64, Option<u32>)>>(),
        slice in proptest::collection::vec(any::<u8>(), 1..100),
    ) {
        let head = head.map(|(micros, life)| Head {
            sent: Utc::from_micros(micros >> 11),
            life: life.map(|millis| Duration::from_millis(millis.into())),
        });
        let offset = if head.is_some() { 0 } else { offset };
        let header = SymbolHeader { flow: FlowId(flow), seq_low, offset, fin: flags.0,
            repeated: flags.1, head };
        let bytes = header.encode(&slice);
        prop_assert_eq!(bytes.len(), header.len() + slice.len());
        let symbol = Symbol { header, bytes: Bytes::from(slice) };
        prop_assert_eq!(Datagram::decode(&bytes), Ok(Datagram::Symbol(symbol)));
    }

    #[test]
    fn reports_survive(
        number in any::<u32>(), limit in 0u64..1 << 62,
        flows in proptest::collection::vec(
            (any::<u32>(), 0u64..1 << 60,
                proptest::collection::vec((0u32..1 << 24, 1u32..1 << 24), 0..8)), 0..20
        ),
    ) {
        let flow = |(flow, next, missing): (u32, u64, Vec<(u32, u32)>)| FlowReport {
            flow: FlowId(flow),
            next,
            done: (1..=missing.len() as u64).map(|run| (next + run * 3,
                next + run * 3 + 2)).collect(),
            missing: missing.into_iter().map(|(start, len)| (start, Some(start + len))).collect(),
        };
        let run = |path| Recovered { path, first: Sid::from_wire(number >> (path % 24)),
            count: path + 1 };
        let recovered = (0..(number % 40) as u8).map(run).collect();
        let report = Report { number, limit, flows: flows.into_iter().map(flow).collect(),
            recovered };
        prop_assert_eq!(Datagram::decode(&report.encode()), Ok(Datagram::Report(report)));
    }

    #[test]
    fn notices_protected_and_repair_datagrams_survive(
        given_up in proptest::collection::vec((any::<u32>(), 0u64..1 << 62, 0u64..1 << 62), 0..64),
        group in any::<(u8, u32, u8, u8)>(), count in 1u8..=255,
        slice in proptest::collection::vec(any::<u8>(), 1..100),
    ) {
        let given_up = given_up.into_iter().map(|(flow, seq, cost)| (FlowId(flow), seq,
            cost)).collect();
        let notice = Datagram::Notice(AbandonedNotice { given_up });
        prop_assert_eq!(Datagram::decode(&encode(&notice)), Ok(notice));
        let (path, first, stride, index) = group;
        let symbol =
            RepairSymbol { first: Sid::from_wire(first), count, stride, index,
                bytes: Bytes::from(slice.clone()) };
        let repair = Datagram::Repair { path, symbol };
        prop_assert_eq!(Datagram::decode(&encode(&repair)), Ok(repair));
        let header = SymbolHeader {
            flow: FlowId(first), seq_low: 7, offset: 3, fin: false, repeated: false, head: None
        };
        let protected = Datagram::Protected { sid: Sid::from_wire(first),
            content: header.encode(&slice) };
        prop_assert_eq!(Datagram::decode(&encode(&protected)), Ok(protected));
    }

    #[test]
    fn greetings_survive(
        name in "[a-zA-Z0-9 é_.-]{0,60}", window in 0u64..1 << 62, below in any::<u32>(),
        spools in proptest::collection::vec((any::<[u8; 16]>(), 0u64..1 << 62, any::<u64>()),
            1..=SPOOLS_MAX),
        open in proptest::collection::btree_map(any::<u32>(), (0u64..1 << 62, any::<u64>()), 0..50),
    ) {
        let held = |(flow, (next, last))| Held { flow: FlowId(flow), next: Seq(next),
            last: BlockMark(last) };
        let resume = Resume { finished_below: FlowId(below),
            open: open.into_iter().map(held).collect() };
        let spool = |(id, count, drawn)| SpoolIdentity { id: SpoolId(id),
            opening: SpoolOpening { count, drawn } };
        let custody: Vec<Custody> =
            spools.into_iter().map(|one| Custody { spool: spool(one),
                resume: resume.clone() }).collect();
        let spool = custody[0].spool;
        let hello = Control::Hello { name, window, flow_base: FlowId(below / 2), spool, custody };
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
