//! A station that reaches for a centre of another release.

use skyhaul_config::parse;
use skyhaul_net::SessionManager;
use skyhaul_net::{Clock, Driver, Service, Socket, UdpEndpoint};
use skyhaul_node::fault::Responsible;
use skyhaul_node::station::reach;
use skyhaul_quic::{EndpointConfig, Identity, PathConfig, QuicEndpoint};
use skyhaul_sessions::SessionManagerEvent;
use skyhaul_transport::{PROTOCOL_VERSION, ProtocolVersions, SessionConfig};
use skyhaul_units::{ByteCount, Instant, Rate};
use std::sync::atomic::{AtomicBool, Ordering};

/// A far end that only listens.
struct Silent;

impl Service for Silent {
    fn event(&mut self, _now: Instant, _engine: &mut SessionManager, _event: SessionManagerEvent) {}
    fn work(&mut self, _now: Instant, _engine: &mut SessionManager) -> Option<Instant> {
        None
    }
}

#[test]
fn a_centre_of_another_protocol_version_is_told_with_both_versions() {
    let (station, centre) =
        (Identity::from_seed(&[1; 32]).unwrap(), Identity::from_seed(&[2; 32]).unwrap());
    let clock = Clock::start();
    let path = PathConfig::over(Rate::from_mbps(93));
    let mut config = EndpointConfig::new(centre.clone(), path, clock.std_start());
    config.listen = true;
    config.versions = ProtocolVersions::new(PROTOCOL_VERSION + 1, PROTOCOL_VERSION + 1);
    config.trusted.insert(station.fingerprint());
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let session = SessionConfig {
        receive_window: ByteCount::mib(1),
        send_buffer: ByteCount::mib(1),
        utc_at_zero: clock.utc_at_start(),
        ..SessionConfig::default()
    };
    let endpoint = UdpEndpoint::new(QuicEndpoint::new(config).unwrap(), socket);
    let mut driver = Driver::new(SessionManager::new(endpoint.into(), session), clock).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("station.key");
    std::fs::write(&key, &*station.to_pem()).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let text = format!(
        "[node]\nname = \"station-1\"\nkey = \"station.key\"\nstate = \"state\"\n\
         [[peer]]\nname = \"centre-1\"\naddresses = [\"{address}\"]\nfingerprints = [\"{}\"]\n\
         [[destination]]\nto = \"node:centre-1\"\n\
         [line]\nrate = \"93 Mbit/s\"\n[[channel]]\nname = \"x\"\ninput = \
         \"tcp-listen:127.0.0.1:0\"\n",
        centre.fingerprint()
    );
    let config = parse(&text, &folder.path().join("node.toml")).unwrap().station.unwrap();

    let stop = AtomicBool::new(false);
    let fault = std::thread::scope(|scope| {
        scope.spawn(|| driver.run(&mut Silent, &stop).unwrap());
        let outcome = reach(&config, &config.destinations[0]);
        stop.store(true, Ordering::Relaxed);
        outcome.unwrap_err()
    });
    assert_eq!(fault.who, Responsible::Peer);
    assert_eq!(fault.what, "this node uses skyhaul/1, the far end skyhaul/2");
    assert_eq!(fault.place, address.to_string());
    assert_eq!(fault.help, "install the same release on both");
}
