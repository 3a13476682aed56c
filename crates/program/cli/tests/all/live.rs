//! Live packets: what a centre forwards as it arrives, compared with its products and with what
//! tshark reads.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

use crate::support::process::text;
use crate::support::recordings::sha256;
use crate::support::site::{Site, channel};
use serde_json::Value;
use skyhaul_ccsds::packet::{Packets, SpaceHeader};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A receiver on this host. It ends when it receives nothing for this long.
fn receiver() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// Receives datagrams until no more arrive.
fn datagrams(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; 1 << 16];
    let mut received = Vec::new();
    while let Ok(len) = socket.recv(&mut buffer) {
        received.push(buffer[..len].to_vec());
    }
    received
}

/// The number of copies of each packet, by application and digest.
fn bag<'a>(packets: impl IntoIterator<Item = &'a [u8]>) -> BTreeMap<(u16, String), usize> {
    let mut bag = BTreeMap::new();
    for packet in packets {
        let apid = SpaceHeader::parse(packet).unwrap().apid.value();
        *bag.entry((apid, sha256(packet))).or_default() += 1;
    }
    bag
}

/// Packets in the files that the centre wrote: those of the products, and those set aside.
fn written(folder: &Path) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let with_packets = files.filter(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.ends_with("1.PDS") || name.ends_with(".aside")
    });
    let packets = with_packets.flat_map(|file| {
        let bytes = std::fs::read(file).unwrap();
        Packets::new(&bytes).map(|(_, packet)| packet.to_vec()).collect::<Vec<_>>()
    });
    packets.collect()
}

/// A capture file (libpcap's format) with each datagram as raw IPv4.
fn pcap(datagrams: &[Vec<u8>], port: u16) -> Vec<u8> {
    const RAW_IPV4: u32 = 228;
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4, 2 << 16 | 4, 0, 0, 1 << 17, RAW_IPV4] {
        file.extend(u32::to_be_bytes(word));
    }
    for (at, payload) in datagrams.iter().enumerate() {
        let udp = [
            &[0x13, 0x88],
            &port.to_be_bytes()[..],
            &(8 + payload.len() as u16).to_be_bytes(),
            &[0; 2],
        ];
        let total = (28 + payload.len() as u16).to_be_bytes();
        let ip =
            [0x45, 0, total[0], total[1], 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1];
        let len = 28 + payload.len() as u32;
        for word in [at as u32, 0, len, len] {
            file.extend(word.to_be_bytes());
        }
        file.extend(ip);
        file.extend(udp.concat());
        file.extend(payload);
    }
    file
}

/// APID, sequence count and length field of each packet, as tshark reads them. None if there is no
/// tshark.
fn by_tshark(file: &Path, port: u16) -> Option<Vec<[u16; 3]>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/tshark.sh");
    let found = Command::new("sh").arg(script).output().unwrap();
    if !found.status.success() {
        eprintln!("SKIPPED: {}", text(&found.stderr).trim());
        return None;
    }
    let fields = ["ccsds.apid", "ccsds.seqnum", "ccsds.length"];
    let read = Command::new(text(&found.stdout).trim())
        .arg("-r")
        .arg(file)
        .args(["-d", &format!("udp.port=={port},ccsds"), "-T", "fields", "-E", "separator=,"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", text(&read.stderr));
    let number = |field: &str| match field.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).unwrap(),
        None => field.parse().unwrap(),
    };
    let row = |line: &str| -> [u16; 3] {
        line.split(',').map(number).collect::<Vec<_>>().try_into().unwrap()
    };
    Some(text(&read.stdout).lines().map(row).collect())
}

#[test]
fn live_packets_are_sent_as_they_arrive_each_in_one_datagram() {
    let (all, all_port) = receiver();
    let (some, some_port) = receiver();
    // So slow that a reader which has to wait for the processor loses nothing.
    let site = Site::with(&format!(
        "[[live]]\nto = \"udp:127.0.0.1:{all_port}\"\nrate = \"4 Mbit/s\"\n\
         [[live]]\nto = \"udp:127.0.0.1:{some_port}\"\napids = \"800-802,826\"\n"
    ));
    site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{}", channel("")));
    let readers = [all, some].map(|socket| {
        std::thread::Builder::new()
            .spawn(move || {
                socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let mut first = vec![0; 1 << 16];
                let len = socket.recv(&mut first).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
                let mut received = vec![first[..len].to_vec()];
                received.extend(datagrams(&socket));
                received
            })
            .unwrap()
    });
    assert_eq!(site.start().end().code, Some(0));
    let contact = site.assert_whole();
    let [all, some] = readers.map(|reader| reader.join().unwrap());
    let written = written(&site.folder().join("products"));
    let written = bag(written.iter().map(Vec::as_slice));
    assert!(written.len() > 100, "{contact}");
    assert_eq!(bag(all.iter().map(Vec::as_slice)), written);
    let chosen = written.into_iter().filter(|((apid, _), _)| matches!(apid, 800..=802 | 826));
    assert_eq!(bag(some.iter().map(Vec::as_slice)), chosen.collect());
    let live = site.centre_until(|status| status["live"].as_array().cloned());
    assert_eq!(
        (&live[0]["packets"], &live[0]["dropped"]),
        (&Value::from(all.len()), &Value::from(0))
    );
    let shown = site.shown("centre.toml");
    assert!(
        shown.contains(&format!("{} packets to udp:127.0.0.1:{some_port}", some.len())),
        "{shown}"
    );

    let file = site.folder().join("live.pcap");
    std::fs::write(&file, pcap(&all, all_port)).unwrap();
    let Some(theirs) = by_tshark(&file, all_port) else { return };
    let ours = all.iter().map(|packet| {
        let header = SpaceHeader::parse(packet).unwrap();
        [header.apid.value(), header.count, (header.total_len - SpaceHeader::LEN - 1) as u16]
    });
    assert_eq!(theirs, ours.collect::<Vec<_>>());
}

#[test]
fn live_packets_above_the_rate_are_left_out_and_counted() {
    let (socket, port) = receiver();
    let site =
        Site::with(&format!("[[live]]\nto = \"udp:127.0.0.1:{port}\"\nrate = \"8 kbit/s\"\n"));
    site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{}", channel("")));
    assert_eq!(site.start().end().code, Some(0));
    let contact = site.assert_whole();
    assert!(
        !contact["products"].as_array().unwrap().is_empty(),
        "the products do not wait for anyone"
    );
    assert!(datagrams(&socket).len() < 20);
}
