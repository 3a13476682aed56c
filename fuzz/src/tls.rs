//! What arrives on a stream: from strangers, and from nodes with the right key.

use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use skyhaul_identity::{Identity, client_config};
use skyhaul_sessions::ConnectionPurpose;
use skyhaul_tcp::wire::{FrameReader, TcpFrame};
use skyhaul_tcp::{TcpPath, TlsEndpoint, TlsEndpointConfig};
use skyhaul_transport::{DownReason, Path, PathEvent, Token};
use skyhaul_units::Instant;
use std::io::Write as _;
use std::sync::Arc;

/// A stream gives the same frames however it is cut, and each is encoded again and reads the same.
pub fn tls_frames(input: &[u8]) {
    let whole = frames([input]);
    let (first, second) = input.split_at(input.len() / 2);
    assert_eq!(frames([first, second]), whole);
    for frame in whole {
        let mut encoded = Vec::new();
        frame.encode(&mut encoded);
        let again = frames([&encoded]);
        let [again] = &again[..] else { panic!("one frame reads as {again:?}") };
        // A close reason may have lost a broken character at its end, and no other frame anything.
        assert!(
            *again == frame
                || matches!((again, &frame), (TcpFrame::Close { .. }, TcpFrame::Close { .. }))
        );
    }
}

fn frames<const N: usize>(pieces: [&[u8]; N]) -> Vec<TcpFrame> {
    let mut reader = FrameReader::default();
    let mut frames = Vec::new();
    for piece in pieces {
        reader.extend(piece);
        while let Ok(Some(frame)) = reader.poll() {
            frames.push(frame);
        }
    }
    frames
}

/// A path takes any stream, of a stranger or inside TLS, without a panic, and tells the fate of
/// each token once.
pub fn tls_path(input: &[u8]) {
    let (station, centre) = (identity(1), identity(2));
    for mut stranger in [called(&station, &centre), calling(&station, &centre)] {
        assert_eq!(stranger.receive(NOW, input), input.len());
        assert!(read_out(&mut stranger).is_none_or(|down| matches!(down, DownReason::Failed(_))));
    }
    let mut path = called(&station, &centre);
    let alpn = skyhaul_transport::ProtocolVersions::OURS.names();
    let config = client_config(&station.into(), centre.fingerprint(), &Arc::default(), &alpn);
    let name = ServerName::try_from("skyhaul").expect("a valid name");
    let mut far = ClientConnection::new(Arc::new(config), name).expect("a client");
    exchange(&mut far, &mut path);
    exchange(&mut far, &mut path);
    let mut greeting = Vec::new();
    TcpFrame::Greeting { purpose: ConnectionPurpose::NewSession }.encode(&mut greeting);
    far.writer().write_all(&greeting).expect("memory takes all");
    exchange(&mut far, &mut path);
    assert_eq!(path.poll(NOW), Some(PathEvent::Up { payload: 1438 }));
    (0..TOKENS).for_each(|token| path.send(NOW, Some(Token(token)), vec![0; 100].into()));
    for piece in input.chunks(1 + input.len() / 2) {
        far.writer().write_all(piece).expect("memory takes all");
        exchange(&mut far, &mut path);
    }
    path.close(NOW, "the end of the input");
    let mut fates: Vec<u64> = Vec::new();
    while let Some(event) = path.poll(NOW) {
        match event {
            PathEvent::Acked(token) | PathEvent::Lost(token) => fates.push(token.0),
            PathEvent::Down(_) => assert_eq!(path.poll(NOW), None, "nothing after the end"),
            PathEvent::Up { .. } => panic!("up twice"),
            PathEvent::Datagram(_) | PathEvent::Control(_) => {}
        }
    }
    assert!(fates.into_iter().eq(0..TOKENS), "one fate each, in order");
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32]).expect("any seed is a key")
}

fn called(station: &Identity, centre: &Identity) -> TcpPath {
    let mut config = TlsEndpointConfig::new(centre.clone());
    config.trusted.insert(station.fingerprint());
    TlsEndpoint::new(config).accept(NOW).unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn calling(station: &Identity, centre: &Identity) -> TcpPath {
    let mut endpoint = TlsEndpoint::new(TlsEndpointConfig::new(station.clone()));
    endpoint.connect(NOW, centre.fingerprint()).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// Carries what each has to say to the other once.
fn exchange(far: &mut ClientConnection, path: &mut TcpPath) {
    let mut bytes = Vec::new();
    while far.wants_write() {
        far.write_tls(&mut bytes).expect("memory takes all");
    }
    path.receive(NOW, &bytes);
    let bytes = path.poll_transmit(NOW).to_vec();
    path.written(bytes.len());
    let mut rest = &bytes[..];
    while !rest.is_empty() && far.read_tls(&mut rest).is_ok_and(|count| count > 0) {
        let _ = far.process_new_packets();
        let mut reader = far.reader();
        let _ = std::io::copy(&mut reader, &mut std::io::sink());
    }
}

fn read_out(path: &mut TcpPath) -> Option<DownReason> {
    let bytes = path.poll_transmit(NOW).len();
    path.written(bytes);
    path.poll(NOW).map(|event| match event {
        PathEvent::Down(reason) => reason,
        other => panic!("a stranger brings {other:?}"),
    })
}

const NOW: Instant = Instant::ZERO;
/// Datagrams sent before the input comes, to be acknowledged by it.
const TOKENS: u64 = 50;
