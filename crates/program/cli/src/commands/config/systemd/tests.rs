//! Drop-ins of every kind of node.

use super::*;
use skyhaul_config::parse;

/// A station of `/etc/skyhaul/node.toml` with these tables too.
fn station(tables: &str) -> DropIn {
    drop_in("/etc/skyhaul/node.toml", &format!("{STATION}{tables}"))
}

/// A centre of `/etc/skyhaul/node.toml` with these tables too.
fn centre(tables: &str) -> DropIn {
    drop_in("/etc/skyhaul/node.toml", &format!("{CENTRE}{tables}"))
}

fn drop_in(file: &str, text: &str) -> DropIn {
    let config = parse(text, Path::new(file)).unwrap_or_else(|error| panic!("{error}: {text}"));
    DropIn::new(Path::new(file), &NodeNeeds::of(&config)).unwrap()
}

fn settings(unit: &DropIn) -> Vec<&str> {
    unit.settings.keys().map(String::as_str).collect()
}

const STATION: &str = r#"
[node]
name = "n"
key = "n.key"
state = "/var/lib/skyhaul/node"
[[destination]]
to = "node:c"
[[peer]]
name = "c"
addresses = ["c.example.org:4700"]
fingerprints = ["SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]
"#;
const CENTRE: &str = r#"
[node]
name = "n"
key = "n.key"
state = "/var/lib/skyhaul/node"
[[listen]]
bind = "0.0.0.0:4700"
[[peer]]
name = "s"
fingerprints = ["SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]
"#;

#[test]
fn a_node_in_its_own_folders_needs_nothing() {
    let unit = station("[[channel]]\nname = \"x\"\ninput = \"tcp-listen:0.0.0.0:5000\"\n");
    assert_eq!(settings(&unit), [""; 0]);
    let mut out = Vec::new();
    unit.write(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("# /etc/systemd/system/skyhaul@node.service.d/node.conf\n"), "{text}");
    assert!(text.ends_with("[Service]\n# This node needs no more than skyhaul@.service grants.\n"));
}

#[test]
fn each_folder_that_is_written_is_named_with_its_key() {
    let unit = centre(
        "[peer.files]\nroot = \"/srv/in\"\n[peer.streams]\nroot = \"/srv/streams\"\n\
         [products]\ndir = \"/srv/products\"\n\
         [[destination]]\nname = \"mirror\"\nto = \"folder:/mnt/other disk/100%\"\n\
         [[subscription]]\nname = \"all\"\nof = \"products\"\nto = \"mirror\"\n",
    );
    assert_eq!(
        settings(&unit),
        [
            "ReadWritePaths=\"/mnt/other disk/100%%\"",
            "ReadWritePaths=/srv/in",
            "ReadWritePaths=/srv/products",
            "ReadWritePaths=/srv/streams",
        ]
    );
    assert_eq!(unit.warnings.len(), 4);
    assert!(unit.warnings.iter().any(|warning| warning
        == "/srv/in ([[peer]] s files) does not exist, and the service does not start without \
            it; help: run `install -d -o skyhaul -g skyhaul -m 0750 /srv/in`"));
    let mut out = Vec::new();
    unit.write(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("# [products] dir\nReadWritePaths=/srv/products\n"), "{text}");
}

#[test]
fn the_places_of_a_drop_folder_a_mirror_and_the_address_of_blocks() {
    let unit = station(
        "[[folder]]\nname = \"f\"\npath = \"/srv/drop\"\nas = \"files\"\n\
         done = \"move:/srv/done\"\n[[mirror]]\nsource = \"/srv/mirrored\"\ninto = \".\"\n\
         [blocks]\nsocket = \"/run/skyhaul/node/blocks.sock\"\n",
    );
    // What is only read can be read.
    assert_eq!(settings(&unit), ["ReadWritePaths=/srv/done", "ReadWritePaths=/srv/drop"]);
    let shared = station("[blocks]\nsocket = \"/run/skyhaul/programs/blocks.sock\"\n");
    assert_eq!(settings(&shared), ["RuntimeDirectory=skyhaul/programs"]);
}

#[test]
fn a_state_folder_elsewhere_is_created_or_has_to_be_there() {
    let at = |state: &str| {
        let text = STATION.replace("/var/lib/skyhaul/node", state);
        drop_in("/etc/skyhaul/node.toml", &text)
    };
    assert_eq!(settings(&at("/var/lib/skyhaul/other")), ["StateDirectory=skyhaul/other"]);
    assert_eq!(settings(&at("/var/lib/skyhaul")), ["StateDirectory=skyhaul"]);
    assert_eq!(settings(&at("/data/spool")), ["ReadWritePaths=/data/spool"]);
    assert_eq!(settings(&at("../../data/./spool")), ["ReadWritePaths=/data/spool"]);
    assert_eq!(settings(&at("state")), ["ReadWritePaths=/etc/skyhaul/state"]);
}

#[test]
fn hidden_places_are_bound_and_no_others() {
    let channel = |path: &str| {
        let lines = format!("[[channel]]\nname = \"x\"\ninput = \"file:{path}\"\n");
        station(&lines)
    };
    assert_eq!(
        settings(&channel("/home/ops/pass.dat")),
        ["BindReadOnlyPaths=/home/ops/pass.dat", "ProtectHome=tmpfs"]
    );
    assert_eq!(settings(&channel("/tmp/pass.dat")), ["BindReadOnlyPaths=/tmp/pass.dat"]);
    assert_eq!(settings(&channel("/srv/pass.dat")), [""; 0]);
    let written = station(
        "[[folder]]\nname = \"f\"\npath = \"/home/ops/out\"\nas = \"files\"\n\
         [[mirror]]\nsource = \"/run/user/7/m\"\ninto = \".\"\n",
    );
    assert_eq!(
        settings(&written),
        ["BindPaths=/home/ops/out", "BindReadOnlyPaths=/run/user/7/m", "ProtectHome=tmpfs"]
    );
    let socket = STATION.replace("state =", "status_socket = \"/tmp/status.sock\"\nstate =");
    let unit = drop_in("/etc/skyhaul/node.toml", &socket);
    assert_eq!(settings(&unit), ["PrivateTmp=no", "ReadWritePaths=/tmp"]);
}

#[test]
fn low_ports_and_diverted_connections_need_capabilities() {
    let unit = drop_in("/etc/skyhaul/node.toml", &CENTRE.replace("4700", "443"));
    let one = [
        "AmbientCapabilities=CAP_NET_BIND_SERVICE",
        "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
        "PrivateUsers=no",
    ];
    assert_eq!(settings(&unit), one);
    let reasons = &unit.settings["PrivateUsers=no"];
    assert!(reasons.contains("[[listen]] bind: port 443"), "{reasons:?}");
    for tables in [
        "[[channel]]\nname = \"x\"\ninput = \"udp:0.0.0.0:514\"\n",
        "[[forward]]\nlocal = \"0.0.0.0:80=c:10.0.0.1:80\"\n",
        "[web]\nbind = \"127.0.0.1:80\"\n",
        "[[stream]]\nfrom = \"udp://0.0.0.0:1000\"\nto = \"null\"\n",
    ] {
        assert_eq!(settings(&station(tables)), one, "{tables}");
    }
    let listens = STATION.to_owned() + "allow_listen = [\"10.0.0.1:22\"]\n";
    assert_eq!(settings(&drop_in("/etc/skyhaul/node.toml", &listens)), one);
    let diverted = station("[[forward]]\ntransparent = \"9000\"\n");
    assert_eq!(
        settings(&diverted),
        [
            "AmbientCapabilities=CAP_NET_ADMIN",
            "CapabilityBoundingSet=CAP_NET_ADMIN",
            "PrivateUsers=no",
        ]
    );
}

#[test]
fn devices_shared_memory_and_many_clients() {
    let device = station("[[stream]]\nfrom = \"/dev/absent-receiver\"\nto = \"null\"\n");
    assert_eq!(settings(&device), ["DeviceAllow=/dev/absent-receiver r", "PrivateDevices=no"]);
    assert!(device.warnings[0].contains("/dev/absent-receiver ([[stream]] from) does not exist"));
    let ring = station("[[stream]]\nfrom = \"shm:/ring\"\nto = \"null\"\n");
    assert_eq!(settings(&ring), ["RemoveIPC=no"]);
    let sinks = centre("[peer.streams]\nallow = [\"shm:/ring\"]\n");
    assert_eq!(settings(&sinks), ["RemoveIPC=no"]);
    let serves = |connections: &str| {
        centre(&format!(
            "[products]\ndir = \"/var/lib/skyhaul/node/products\"\n[serve]\n\
             bind = \"127.0.0.1:8443\"\n{connections}"
        ))
    };
    assert_eq!(settings(&serves("")), [""; 0]);
    assert_eq!(settings(&serves("connections = 40000\n")), ["LimitNOFILE=88192"]);
}

#[test]
fn programs_that_the_node_runs_are_named() {
    let unit = station(
        "[[exec]]\ncommand = [\"/home/ops/page\", \"--now\"]\nevents = [\"alarm.*\"]\n\
         [[path]]\nfeed = \"exec:modem-feed --all\"\n",
    );
    assert_eq!(settings(&unit), ["BindReadOnlyPaths=/home/ops/page", "ProtectHome=tmpfs"]);
    assert!(unit.remarks.iter().any(|remark| remark.contains("`/home/ops/page --now` with the")));
    assert!(unit.remarks.iter().any(|remark| remark.contains("`modem-feed --all`")));
    let folder = std::env::temp_dir().join(format!("skyhaul-sendmail-{}", std::process::id()));
    std::fs::write(&folder, "").unwrap();
    let mails = |mode| {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        let program = folder.display();
        station(&format!(
            "[[mail]]\nto = [\"noc@example.org\"]\nevents = [\"alarm.*\"]\n\
             sendmail = \"{program}\"\n"
        ))
    };
    assert_eq!(mails(0o755).warnings, [""; 0]);
    let unit = mails(0o2755);
    std::fs::remove_file(&folder).unwrap();
    assert!(unit.warnings[0].contains("takes the rights of another user or group"), "{unit:?}");
}

#[test]
fn a_file_elsewhere_changes_the_command() {
    let unit = drop_in("/srv/conf/node.toml", STATION);
    assert_eq!(
        settings(&unit),
        ["ExecStart=", "ExecStart=/usr/bin/skyhaul run --log-format journal /srv/conf/node.toml",]
    );
}

#[test]
fn what_cannot_be_written_into_a_unit_is_refused() {
    let refused = |file: &str, tables: &str| {
        let config = parse(&format!("{STATION}{tables}"), Path::new(file)).unwrap();
        DropIn::new(Path::new(file), &NodeNeeds::of(&config)).unwrap_err().to_string()
    };
    let name = refused("/etc/skyhaul/my node.toml", "");
    assert!(name.contains("cannot be that of a service, /etc/skyhaul/my node.toml"), "{name}");
    let colon =
        refused("/etc/skyhaul/node.toml", "[[mirror]]\nsource = \"/home/a:b\"\ninto = \".\"\n");
    assert!(colon.contains("`/home/a:b` has a colon"), "{colon}");
    let line = refused(
        "/etc/skyhaul/node.toml",
        "[[folder]]\nname = \"f\"\npath = \"/srv/a\\nb\"\nas = \"files\"\n",
    );
    assert!(line.contains("has a control character"), "{line}");
    let folder = STATION.replace("/var/lib/skyhaul/node", "/var/lib/skyhaul/my node");
    let config = parse(&folder, Path::new("/etc/skyhaul/node.toml")).unwrap();
    let error = DropIn::new(Path::new("/etc/skyhaul/node.toml"), &NodeNeeds::of(&config));
    assert!(error.unwrap_err().to_string().contains("cannot be a folder that systemd creates"));
}
