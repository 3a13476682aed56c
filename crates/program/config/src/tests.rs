//! Good files, and each kind of bad one.

use super::*;
use proptest::prelude::*;
use skyhaul_units::{ByteCount, Duration, Rate};

const STATION: &str = r#"
missions = ["missions"]

[node]
name = "station-1"
key = "station.key"
state = "state"

[[peer]]
name = "centre-1"
addresses = ["centre.example.org:4700"]
fingerprints = ["SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]

[[destination]]
to = "node:centre-1"

[line]
rate = "93 Mbit/s"

[[channel]]
name = "x-band"
input = "tcp-listen:127.0.0.1:5000"

[[channel]]
name = "replay"
input = "file:captures/npp.dat"
rate = "15 Mbit/s"
mission = "suomi-npp"
keep_check_symbols = true
"#;

const CENTRE: &str = r#"
[node]
name = "centre-1"
key = "centre.key"
state = "/var/lib/skyhaul"

[[listen]]
bind = "0.0.0.0:4700"

[[peer]]
name = "station-1"
fingerprints = ["SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]

[products]
dir = "products"
"#;

fn station(text: &str) -> StationConfig {
    *parse(text, Path::new("/etc/skyhaul/station.toml")).unwrap().station.unwrap()
}

fn centre(text: &str) -> CentreConfig {
    *parse(text, Path::new("/etc/skyhaul/centre.toml")).unwrap().centre.unwrap()
}

fn refused(text: &str) -> ConfigError {
    parse(text, Path::new("node.toml")).unwrap_err()
}

#[test]
fn a_station_gets_defaults_and_paths_from_its_own_folder() {
    let config = station(STATION);
    assert_eq!(config.node.key, Path::new("/etc/skyhaul/station.key"));
    assert_eq!(config.node.status_socket(), Path::new("/etc/skyhaul/state/status.sock"));
    assert_eq!(config.missions, [Path::new("/etc/skyhaul/missions")]);
    assert_eq!(
        config.destinations[0].peer.addresses.iter().next().unwrap().to_string(),
        "centre.example.org:4700"
    );
    assert_eq!(config.line.rate, Some(Rate::from_mbps(93)));
    assert_eq!(config.line.mtu.size(), ByteCount::new(1500));
    assert_eq!(config.spool.sync_interval, Duration::from_millis(100));
    let [live, replay] = &config.channel[..] else { panic!() };
    assert_eq!(live.silence, Duration::from_secs(2));
    assert_eq!(live.mission, None);
    assert!(!live.keep_check_symbols && replay.keep_check_symbols);
    assert_eq!(replay.input, Some(Input::File("/etc/skyhaul/captures/npp.dat".into())));
    assert_eq!(replay.rate, Some(Rate::from_mbps(15)));
    assert_eq!(replay.mission, Some(MissionRef::Named("suomi-npp".to_owned())));
}

#[test]
fn a_node_does_what_its_tables_say() {
    let sends = parse(STATION, Path::new("node.toml")).unwrap();
    assert!(sends.station.is_some() && sends.centre.is_none());
    let config = centre(CENTRE);
    assert_eq!(config.node.state, Path::new("/var/lib/skyhaul"));
    assert_eq!(config.store.sync_interval, Duration::from_millis(10));
    assert_eq!(config.session.receive_window, ByteCount::mib(64));
    assert_eq!(config.peer[0].name.as_str(), "station-1");
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_known_ones() {
    let error = refused(&STATION.replace("rate = \"93", "rat = \"93"));
    assert_eq!(error.what(), "unknown key `rat`");
    assert_eq!(error.place(), "node.toml:18");
    assert!(error.help().contains("`rate`, `mtu`, `controller`"), "{error}");
    let table = refused(&format!("{STATION}\n[spol]\nmax_size = \"1 GB\"\n"));
    assert_eq!(table.what(), "unknown key `spol`");
}

#[test]
fn a_wrong_unit_is_refused_with_the_right_form() {
    let error = refused(&STATION.replace("93 Mbit/s", "93 MB"));
    assert_eq!(error.line(), Some(18), "{error}");
    assert!(error.what().contains("`93 MB` is not a rate"), "{error}");
    assert!(error.help().contains("93 Mbit/s"), "{error}");
    let bare = refused(&STATION.replace("\"93 Mbit/s\"", "93"));
    assert_eq!(bare.line(), Some(18), "{bare}");
}

#[test]
fn a_missing_key_names_itself_and_its_table() {
    let is_key = |line: &&str| line.starts_with("fingerprints");
    let without: Vec<&str> = STATION.lines().filter(|line| !is_key(line)).collect();
    let error = refused(&without.join("\n"));
    assert!(error.what().contains("`fingerprints` is missing"), "{error}");
    assert_eq!(error.line(), Some(9), "{error}");
}

#[test]
fn contradictions_are_refused_where_they_stand() {
    let rate = "input = \"tcp-listen:127.0.0.1:5000\"";
    let live = refused(&STATION.replace(rate, &format!("{rate}\nrate = \"2 Mbit/s\"")));
    assert!(live.what().contains("channel `x-band` has a rate"), "{live}");
    assert_eq!(live.line(), Some(20), "{live}");
    let twice = refused(&STATION.replace("\"replay\"", "\"x-band\""));
    assert_eq!((twice.what(), twice.line()), ("channel `x-band` is defined twice", Some(25)));
    let still = refused(&STATION.replace("\"93 Mbit/s\"", "\"0 bit/s\""));
    assert!(still.what().contains("carries nothing"), "{still}");
    let spool = refused(&format!("{STATION}\n[spool]\nmax_size = \"64 MiB\"\n"));
    assert!(spool.what().contains("does not fit"), "{spool}");
    let window = refused(&format!("{CENTRE}\n[session]\nreceive_window = \"1 kB\"\n"));
    assert!(window.help().contains("write one from"), "{window}");
    let peer = "[[peer]]\nname = \"station-2\"\nfingerprints = \
               [\"SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]\n";
    let key = refused(&format!("{CENTRE}\n{peer}"));
    assert!(key.what().contains("is defined twice"), "{key}");
}

#[test]
fn a_fingerprint_that_is_none_is_refused_with_its_line() {
    let error = refused(&STATION.replace("SHA256:01", "SHA256:x1"));
    assert!(error.what().contains("is not a key fingerprint"), "{error}");
    assert_eq!(error.line(), Some(12), "{error}");
}

#[test]
fn a_node_may_send_and_receive_and_one_that_would_do_neither_is_refused() {
    let relay = CENTRE.replace(
        "[[peer]]",
        "[[destination]]\nto = \"node:next\"\n[[peer]]\nname = \
        \"next\"\naddresses = [\"192.0.2.1:4700\", \"[2001:db8::1]:4700\"]\nfingerprints = [\
        \"SHA256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]\n[[peer]]",
    );
    let forwards = "[[forward]]\nsocks = \"1080\"\n[[forward]]\nsocks = \"1081=station-1\"\n";
    let both = parse(&format!("{relay}{forwards}"), Path::new("node.toml")).unwrap();
    let (sends, receives) = (both.station.unwrap(), both.centre.unwrap());
    assert!(sends.channel.is_empty() && sends.destinations[0].peer.addresses.iter().len() == 2);
    assert_eq!((sends.forward.len(), receives.forward.len()), (1, 1));
    assert_eq!(receives.forward[0].node(), Some("station-1"));
    let bare = centre(&CENTRE.replace("[products]\ndir = \"products\"\n", ""));
    assert!(bare.products.is_none() && !bare.product_rules().enabled);

    let nothing = refused("[node]\nname = \"n\"\nkey = \"k\"\nstate = \"s\"\n");
    assert!(nothing.what().contains("neither a destination nor an address"), "{nothing}");
    let nowhere = refused(&STATION.replace("[[destination]]\nto = \"node:centre-1\"\n", ""));
    assert_eq!(nowhere.what(), "the table `channel` has no effect without a [[destination]]");
    assert!(nowhere.line().is_some(), "{nowhere}");
    let unheard = refused(&format!("{STATION}[store]\nmax_size = \"1 GB\"\n"));
    assert_eq!(unheard.what(), "the table `store` has no effect without a [[listen]]");
    let unmade = refused(
        &CENTRE.replace("[products]", "[[product]]\nname = \"x\"\n#").replace("dir =", "# dir ="),
    );
    assert!(unmade.what().contains("without a [products]"), "{unmade}");
    let syntax = refused("[node\nname = 1");
    assert_eq!(syntax.line(), Some(1), "{syntax}");
}

#[test]
fn destinations_and_listens_name_peers_that_are_there() {
    let told = |from: &str, to: &str| refused(&STATION.replace(from, to));
    for (to, what) in [
        ("node:centre-2", "there is no peer `centre-2` for the destination"),
        ("node:station-1", "the destination `station-1` is this node"),
        ("sftp:x", "`sftp:x` is no destination"),
        ("node:a b", "`a b` is not a name"),
    ] {
        let error = told("node:centre-1", to);
        assert!(error.what().contains(what) && error.line() == Some(15), "{error}");
    }
    let mute = told("addresses = [\"centre.example.org:4700\"]\n", "");
    assert!(mute.what().contains("has no address"), "{mute}");
    let two = refused(&format!("{STATION}[[destination]]\nto = \"node:centre-1\"\n"));
    assert!(two.what().contains("destination `centre-1` is defined twice"), "{two}");
    let own = told("name = \"centre-1\"", "name = \"station-1\"");
    assert!(own.what().contains("has the name of this node"), "{own}");
    let none =
        told("[\"SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]", "[]");
    assert!(none.what().contains("there is no fingerprint"), "{none}");

    let listen = |keys: &str| CENTRE.replace("bind = \"0.0.0.0:4700\"", keys);
    let two = "bind = \"192.0.2.1:4700\"\npeers = [\"station-1\"]\n[[listen]]\n\
    bind = \"10.0.0.1:4700\"\n\
               peers = []";
    let apart = centre(&listen(two)).trusted();
    assert_eq!((apart.len(), apart[0].len(), apart[1].len()), (2, 1, 0));
    assert_eq!(centre(CENTRE).trusted()[0].len(), 1);
    let stranger = refused(&listen(&two.replace("\"station-1\"", "\"station-2\"")));
    assert!(stranger.what().contains("no peer `station-2` for a [[listen]]"), "{stranger}");
    assert!(stranger.line().is_some(), "{stranger}");
    let twice = refused(&listen(&two.replace("10.0.0.1", "192.0.2.1")));
    assert!(twice.what().contains("192.0.2.1:4700 is listened on twice"), "{twice}");
}

#[test]
fn inputs_addresses_and_names_are_parsed_or_refused() {
    for text in [
        "tcp-listen:[::1]:5000",
        "tcp:receiver-2:5000",
        "udp:0.0.0.0:6000",
        "file:a b.dat",
        "stdin",
    ] {
        assert_eq!(text.parse::<Input>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "stdout",
        "tcp-listen:5000",
        "tcp:host",
        "tcp:host:0",
        "udp:host:1",
        "file:",
        "http:x:1",
    ] {
        assert!(text.parse::<Input>().is_err(), "{text}");
    }
    assert_eq!("[2001:db8::1]:4700".parse::<HostPort>().unwrap().host(), "2001:db8::1");
    for text in ["2001:db8::1:4700", ":4700", "host", "host:70000", "a b:1"] {
        assert!(text.parse::<HostPort>().is_err(), "{text}");
    }
    for text in ["", "..", "../x", "a/b", "a b", "-a", &"a".repeat(65)] {
        assert!(text.parse::<Name>().is_err(), "{text}");
    }
    for text in ["1500", "1279 B", "9217 B", "1 GB"] {
        assert!(text.parse::<Mtu>().is_err(), "{text}");
    }
}

#[test]
fn an_absent_or_oversized_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let absent = load(&folder.path().join("absent.toml")).unwrap_err();
    assert!(absent.to_string().contains("absent.toml"), "{absent}");
    let large = folder.path().join("large.toml");
    std::fs::write(&large, vec![b'#'; usize::try_from(MAX_FILE).unwrap() + 1]).unwrap();
    assert!(load(&large).unwrap_err().what().contains("more than"));
}

#[test]
fn every_default_is_in_the_reference() {
    for table in reference().into_iter().flat_map(|(_, tables)| tables) {
        assert!(!table.keys.is_empty() && !table.meaning.is_empty());
        assert!(
            table.keys.iter().all(|key| key.meaning.trim().ends_with('.')),
            "{}",
            table.heading
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = parse(&text, Path::new("any.toml"));
    }

    #[test]
    fn a_damaged_configuration_is_read_or_refused(at in 0usize..400, with in any::<char>()) {
        let mut text: Vec<char> = STATION.chars().collect();
        let at = at % text.len();
        text[at] = with;
        let _ = parse(&text.into_iter().collect::<String>(), Path::new("damaged.toml"));
    }
}

#[test]
fn a_line_of_unknown_rate_is_found_out_and_contradictions_are_refused() {
    let unknown = station(&STATION.replace("rate = \"93 Mbit/s\"\n", ""));
    assert_eq!(unknown.line.controller().name(), "adaptive");
    assert_eq!(station(STATION).line.controller().name(), "line");
    let twice = refused(
        &STATION.replace("rate = \"93 Mbit/s\"", "rate = \"93 Mbit/s\"\ncontroller = \"adaptive\""),
    );
    assert!(twice.to_string().contains("remove `rate`"), "{twice}");
    let none = refused(&STATION.replace("rate = \"93 Mbit/s\"", "controller = \"line\""));
    assert!(none.to_string().contains("needs the line's rate"), "{none}");
}

#[test]
fn a_line_is_shared_as_classes_and_channels_say() {
    let text = STATION.replace("[line]\nrate = \"93 Mbit/s\"\n", "").replace(
        "input = \"tcp-listen:127.0.0.1:5000\"",
        "input = \"stdin\"\n[[subscription]]\nof = \"contacts\"\nchannel = \
        [\"x-band\"]\nclass = \"b\"\ndeadline = \"30 s\"",
    );
    let classes = "[[class]]\nname = \"all\"\n[[class]]\nname = \"a\"\nparent = \
                  \"all\"\n[[class]]\nname = \"b\"\n";
    let config = station(&format!("{text}{classes}"));
    assert_eq!(config.line.controller().name(), "adaptive", "the table may be left out");
    let sharing = config.sharing(0);
    let of = |channel: &str| {
        let station = config.node.name.to_string();
        let label =
            ContactLabel { station, channel: channel.to_owned(), ..ContactLabel::default() };
        sharing.of(&label)
    };
    let (live, replay) = (of("x-band"), of("replay"));
    assert_eq!((live.deadline, live.priority), (Some(Duration::from_secs(30)), 1));
    let name = |class| {
        sharing.tree.leaves().find(|(leaf, _)| *leaf == class).map(|(_, name)| name.to_owned())
    };
    assert_eq!(
        (name(live.class), name(replay.class)),
        (Some("b".to_owned()), Some("a".to_owned()))
    );
    assert_eq!(of("unknown"), sharing.usual());
    assert!(sharing == config.sharing(0) && sharing != LineSharing::default());
    let inner = refused(&format!("{text}{classes}").replace("class = \"b\"", "class = \"all\""));
    assert!(inner.help().contains("a, b") && inner.line().is_some(), "{inner}");
}

#[test]
fn paths_have_names_and_outages() {
    let paths = "[[path]]\n[[path]]\nname = \"b\"\ninterface = \"eth1\"\n[[path.outage]]\n\
                 from = \"2026-11-22T12:30:00Z\"\nuntil = \"2026-11-22T12:38:00Z\"\n";
    let config = station(&format!("{STATION}{paths}"));
    let [first, second] = &config.paths()[..] else { panic!() };
    assert_eq!((first.title(), second.title(), second.place().as_str()), ("path-1", "b", "eth1"));
    let outage = &second.outages()[0];
    assert_eq!(outage.until.utc().since(outage.from.utc()), Duration::from_secs(480));
    assert_eq!(station(STATION).paths()[0].title(), "path-1");
    let twice = refused(&format!("{STATION}{}", paths.replace("\"b\"", "\"path-1\"")));
    assert!(twice.what().contains("path `path-1` is defined twice"), "{twice}");
}

#[test]
fn forwards_name_the_node_at_the_other_end_and_a_class_that_is_there() {
    let classes = "[[class]]\nname = \"a\"\n[[class]]\nname = \"b\"\n";
    let tables = "[[forward]]\nlocal = \"8080=centre-1:10.0.0.5:80\"\nclass = \"b\"\npriority = \
                 0\ndeadline = \"1 s\"\n\
                  [[forward]]\nremote = \"2222=centre-1:127.0.0.1:22\"\n[[forward]]\nsocks = \
                  \"1080\"\nidle = \"10 min\"\n";
    let with = |tables: &str| format!("{STATION}{classes}{tables}");
    let config = station(&with(tables));
    assert!(config.has_guests() && !station(STATION).has_guests());
    let forwarding = config.forwarding();
    assert_eq!((forwarding.listens.len(), forwarding.remotes.len()), (2, 1));
    let carriage = &forwarding.listens[0].carriage;
    assert_eq!((carriage.class.as_str(), carriage.priority), ("b", 0));
    assert_eq!(carriage.deadline, Some(Duration::from_secs(1)));
    assert_eq!(forwarding.nodes, ["centre-1"]);
    // The second table is wrong, and its own line is named.
    for (from, to, what, line) in [
        ("2222=centre-1", "2222=centre-2", "the far node `centre-2` is not known", "remote = "),
        (
            "remote = \"2222=centre-1:127.0.0.1:22\"",
            "class = \"b\"",
            "needs exactly one kind",
            "[[forward]]\nclass",
        ),
        (
            "127.0.0.1:22\"",
            "127.0.0.1:22\"\nclass = \"c\"",
            "no class `c` for a forward",
            "class = \"c\"",
        ),
        ("127.0.0.1:22\"", "127.0.0.1:22\"\nport = 3", "unknown key `port`", "port = 3"),
    ] {
        let text = with(&tables.replacen(from, to, 1));
        let error = refused(&text);
        assert!(error.what().contains(what), "{error}");
        let at = text[..text.find(line).unwrap()].matches('\n').count() + 1;
        assert_eq!(error.line(), Some(at), "{error}");
    }
    let none = refused(&format!("{STATION}[[forward]]\nsocks = \"1080\"\nclass = \"c\"\n"));
    assert!(none.help().contains("add a [[class]] table"), "{none}");
    let many = refused(&format!("{STATION}{}", "[[forward]]\nsocks = \"0\"\n".repeat(257)));
    assert_eq!((many.what(), many.line().is_some()), ("there are 257 [[forward]] tables", true));
}

#[test]
fn each_station_has_rules_of_its_own_and_a_centre_that_sends_more_than_reports_finds_its_rate() {
    let plain = centre(CENTRE);
    assert!(!plain.has_guests());
    assert_eq!(plain.controller().name(), "line");
    let rules = CENTRE.replace(
        "[products]",
        "allow = [\"10.0.0.0/8:80\"]\nallow_listen = [\"127.0.0.1:*\"]\n[products]",
    );
    let ruled = centre(&rules);
    let peer = ruled.peer[0].rules();
    assert_eq!((peer.allow.len(), peer.allow_listen.len()), (1, 1));
    assert_eq!(ruled.controller().name(), "adaptive");
    let declared = centre(&format!("{rules}[session]\nrate = \"20 Mbit/s\"\n"));
    assert_eq!(declared.controller().name(), "line");
    let leads = centre(&format!(
        "{CENTRE}[[class]]\nname = \"a\"\n[[forward]]\nlocal = \"22=station-1:a:22\"\nclass = \
        \"a\"\n"
    ));
    assert_eq!(leads.forwarding().nodes, ["station-1"]);
    assert!(leads.classes().find("a").is_some());
    for (text, what) in [
        (rules.replace("10.0.0.0/8:80", "10.0.0.0/8"), "the ports are missing"),
        (
            format!("{CENTRE}[[forward]]\nlocal = \"22=station-2:a:22\"\n"),
            "the far node `station-2` is not known",
        ),
        (format!("{CENTRE}[session]\nrate = \"0 bit/s\"\n"), "carries no reports"),
        (format!("{CENTRE}[[class]]\nname = \"a\"\nparent = \"b\"\n"), "there is no class `b`"),
    ] {
        let error = refused(&text);
        assert!(error.what().contains(what) && error.line().is_some(), "{error}");
    }
}

#[test]
fn a_budget_is_of_a_mission_and_a_form_or_refused_with_its_line() {
    let table = "[[budget]]\nmission = \"aqua\"\nkind = \"expedited\"\nwithin = \"3 h\"\n";
    let config = centre(&format!("{CENTRE}{table}"));
    let budget = &config.budget[0];
    assert_eq!(budget.kind.map(BudgetKind::name), Some("expedited"));
    assert_eq!(budget.within, Duration::from_secs(10_800));
    for (from, to, what) in [
        ("expedited", "files", "`files` is not a form of products"),
        ("3 h", "0 s", "a budget of no time is kept by nothing"),
    ] {
        let error = refused(&format!("{CENTRE}{}", table.replace(from, to)));
        assert!(error.what().contains(what) && error.line().is_some(), "{error}");
    }
}

#[test]
fn a_retention_says_what_goes_when_or_is_refused_with_its_line() {
    let table = "[[retention]]\nfilter = \"mission = 'aqua'\"\nkeep = \"30 d\"\n\
                 from = \"observed\"\nleave = \"record\"\nhold = [\"pending\", \"last-copy\"]\n";
    let rule = centre(&format!("{CENTRE}{table}")).retention[0].rule();
    assert_eq!(rule.keep, Some(Duration::from_secs(30 * 86_400)));
    assert_eq!(rule.from, skyhaul_catalogue::RetentionStart::Observed);
    assert_eq!(rule.copies, skyhaul_catalogue::CopyRule::One);
    for (from, to, what) in [
        ("keep = \"30 d\"", "", "a retention removes nothing"),
        ("30 d", "0 s", "a retention of no time"),
        ("observed", "seen", "`seen` begins no time of a product"),
        ("\"record\"", "\"all\"", "`all` cannot be left"),
        ("pending", "never", "`never` holds nothing"),
        ("mission =", "mision =", "there is no property `mision`"),
        ("mission = 'aqua'", "kind = 'contact'", "a contact is delivered nowhere"),
    ] {
        let error = refused(&format!("{CENTRE}{}", table.replace(from, to)));
        assert!(error.what().contains(what) && error.line().is_some(), "{error}");
    }
}

#[test]
fn mirrors_and_the_folders_for_them_are_read_or_refused_with_their_line() {
    let table = "[[mirror]]\nsource = \"logs\"\ninto = \"in/here\"\nexclude = [\"*.tmp\"]\ndelete \
                = true\nlimit = \"3 Mbit/s\"\n";
    let config = station(&format!("{STATION}{table}"));
    let mirror = &config.folders.mirrored[0];
    assert!(config.has_guests() && mirror.watch && mirror.source == Path::new("/etc/skyhaul/logs"));
    let hello = mirror.hello();
    assert_eq!((hello.target.to_string().as_str(), hello.options.priority), ("in/here", 7));
    assert_eq!((hello.options.delete, hello.rules.len()), (true, 1));
    for (from, to, what) in [
        ("in/here", "../out", "`../out` is not a folder of the centre"),
        ("3 Mbit/s", "0 bit/s", "a limit of 0 bit/s"),
        ("delete = true", "class = \"b\"", "there is no class `b` for a mirror"),
        ("delete = true", "remove = true", "unknown key `remove`"),
        ("*.tmp", "[", "`[`"),
    ] {
        let error = refused(&format!("{STATION}{}", table.replacen(from, to, 1)));
        assert!(error.what().contains(what) && error.line().is_some(), "{error}");
    }
    let files = "[peer.files]\nroot = \"from/station\"\n[products]";
    let with = CENTRE.replace("[products]", files);
    let centre = centre(&with);
    let served = centre.peer[0].files.as_ref().unwrap();
    assert_eq!(
        (served.root.as_path(), served.write, served.read),
        (Path::new("/etc/skyhaul/from/station"), true, false)
    );
    assert!(centre.has_guests());
    assert_eq!(centre.controller().name(), "line", "it sends answers alone");
    let none = refused(&with.replace("[products]", "write = false\n[products]"));
    assert!(none.what().contains("neither write nor read"), "{none}");
}

#[test]
fn streams_and_the_sinks_for_them_are_read_or_refused_with_their_line() {
    let table = "[[stream]]\nfrom = \"scan.vdif\"\nto = \"in/{utc}.vdif\"\nlateness = \"2 \
                s\"\npace = \"line\"\n";
    let config = station(&format!("{STATION}{table}"));
    let stream = &config.stream[0];
    assert!(config.has_guests() && !stream.again);
    assert_eq!(stream.from.0.to_string(), "/etc/skyhaul/scan.vdif");
    let begin = skyhaul_units::Utc::from_nanos(1_773_500_966_500_000_000);
    assert_eq!(stream.to.0.at(begin), "in/20260314T150926Z.vdif");
    let options = stream.options().unwrap();
    assert_eq!((options.pace, options.priority), (skyhaul_streams_io::SourcePace::Line, 1));
    for (from, to, what) in [
        ("scan.vdif", "-", "a station has no standard input"),
        ("scan.vdif", "udp://2630", "`udp://2630` is not a source"),
        ("in/{utc}.vdif", "../{utc}", "is not a sink"),
        ("in/{utc}.vdif", "-", "a centre has no standard output"),
        ("\"line\"", "\"quickly\"", "`quickly` is not a pace"),
        ("pace = \"line\"", "format = \"wav\"", "unknown format"),
        ("pace = \"line\"", "frames_per_second = 0", "0 frames per second"),
        ("pace = \"line\"", "group = \"1 GiB\"", "groups of 1 GiB are not possible"),
        ("pace = \"line\"", "class = \"b\"", "there is no class `b` for a stream"),
        ("\"in/{utc}.vdif\"", "\"rtp://10.0.0.5:5004\"", "takes only a stream from rtp://"),
        ("\"scan.vdif\"", "\"rtp:0.0.0.0:5004\"", "goes to rtp:// only"),
        ("pace = \"line\"", "sink = 1", "unknown key `sink`"),
    ] {
        let error = refused(&format!("{STATION}{}", table.replacen(from, to, 1)));
        assert!(error.what().contains(what) && error.line().is_some(), "{error}");
    }
    let many = refused(&format!("{STATION}{}", table.repeat(17)));
    assert!(many.what().contains("17"), "{many}");
    let streams = "[peer.streams]\nroot = \"from/station\"\nallow = [\"null\", \
                  \"udp://10.0.0.5:2630\"]\n[products]";
    let with = CENTRE.replace("[products]", streams);
    let centre = centre(&with);
    let taken = centre.peer[0].streams.as_ref().unwrap();
    assert_eq!(taken.root.as_deref(), Some(Path::new("/etc/skyhaul/from/station")));
    assert_eq!(taken.allow.0.len(), 2);
    assert!(centre.has_guests());
    assert_eq!(centre.controller().name(), "line", "it sends accounts alone");
    for (from, to, what) in [
        ("\"null\"", "\"-\"", "a centre has no standard output"),
        ("\"null\"", "\"a.vdif\"", "`allow` names a file"),
        (
            "root = \"from/station\"\nallow = [\"null\", \"udp://10.0.0.5:2630\"]\n",
            "",
            "allows no sink",
        ),
    ] {
        let error = refused(&with.replacen(from, to, 1));
        assert!(error.what().contains(what), "{error}");
    }
}
