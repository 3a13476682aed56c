use super::*;
use crate::{CentreConfig, NodeConfig, parse};
use skyhaul_dispatch::{DeliveryOrdering, MissingAnswer, VersionRule};

const CENTRE: &str = "[node]\nname = \"c\"\nkey = \"k\"\nstate = \"s\"\n[[listen]]\nbind = \
                      \"[::]:4700\"\n[products]\ndir = \"p\"\n";
const LANCE: &str = "[[destination]]\nname = \"lance\"\nto = \"folder:out/lance\"\n";
const WEB: &str = "[[destination]]\nname = \"web\"\nto = \"https://h/in\"\n";

fn node(tables: &str) -> Result<NodeConfig, ConfigError> {
    parse(&format!("{CENTRE}{tables}"), Path::new("/etc/skyhaul/node.toml"))
}

fn centre(tables: &str) -> CentreConfig {
    *node(tables).unwrap().centre.unwrap()
}

fn subscription(name: &str, keys: &str) -> String {
    format!("[[subscription]]\nof = \"products\"\nname = \"{name}\"\n{keys}")
}

#[track_caller]
fn assert_refused(tables: &str, what: &str) {
    let error = node(tables).unwrap_err();
    assert!(error.to_string().contains(what), "{error}");
    assert!(error.line().is_some(), "{error}");
}

#[test]
fn a_subscription_says_what_its_consumer_takes_or_is_refused_with_its_line() {
    let tables = LANCE.to_owned()
        + &subscription(
            "modis",
            "to = \"lance\"\nrecord = \"sips\"\nchecksum = \"cksum\"\nnode_name = \
             \"dist.example.org\"\ninto = \"sub\"\nfile_types = { data = \"HDF\" }\nanswer = { \
             within = \"6 h\", missing = \"remind\" \
             }\nretry = { first = \"2 s\", for = \"5 d\" }\n",
        );
    let config = centre(&tables);
    let (destination, of) = (&config.outlets.destinations[0], &config.outlets.subscriptions[0]);
    let terms = of.terms();
    assert_eq!(
        (terms.data_version.as_str(), terms.node_name.as_deref()),
        ("001", Some("dist.example.org"))
    );
    assert_eq!((terms.file_type.as_str(), terms.metadata_type.as_str()), ("HDF", "METADATA"));
    assert_eq!(of.directory(destination), "/etc/skyhaul/out/lance/sub");
    let rules = of.rules();
    assert_eq!(rules.answer.unwrap().missing, MissingAnswer::Remind);
    assert_eq!((rules.retry.span, rules.attempts), (Duration::from_secs(5 * 86_400), 3));
    assert_eq!(of.lane().ordering, DeliveryOrdering::Newest);
    assert_eq!(of.entry.versions.rule(), VersionRule::Latest);
    for (from, to, what) in [
        ("out/lance", "out/x=y", "/out/x=y/sub` as DIRECTORY_ID: the consumer tears it at `=`"),
        ("out/lance", "o'neil", "a quotation mark"),
        ("\"HDF\"", "\"DATA\"", "`DATA` is no file type of delivery records"),
        ("cksum\"", "sha1\"", "`sha1` is no checksum of delivery records"),
        ("cksum\"", "sha256\"", "a `sips` record has no checksum `sha256`"),
        ("\"sips\"", "\"cnm\"", "a `cnm` record has no checksum `cksum`"),
        ("dist.example", "dist example", "is not a name"),
        ("\"sub\"", "\"../sub\"", "`../sub` is not a folder below a destination"),
        ("\"remind\"", "\"shout\"", "`shout` does not say what follows a missing notice"),
        ("\"6 h\"", "\"0 s\"", "no notice comes within 0 s"),
        ("first = \"2 s\"", "first = \"2 h\"", "a first pause of"),
    ] {
        assert_refused(&tables.replace(from, to), what);
    }
    let edos = tables.replace("out/lance", "out/x=y").replace("\"sips\"", "\"edos\"");
    centre(&edos);
}

#[test]
fn a_cloud_message_names_its_files_by_the_address_of_the_place_without_its_user() {
    let address = |to: &str, keys: &str, into: &str| {
        let place = format!("[[destination]]\nname = \"p\"\nto = \"{to}\"\n{keys}");
        let keys = format!("record = \"cnm\"\nchecksum = \"sha256\"\ninto = \"{into}\"\n");
        let outlets = centre(&(place + &subscription("a", &keys))).outlets;
        outlets.subscriptions[0].directory(&outlets.destinations[0])
    };
    assert_eq!(address("folder:out/a b=c", "", ""), "file:///etc/skyhaul/out/a%20b=c");
    assert_eq!(address("folder:out", "", "x y/z"), "file:///etc/skyhaul/out/x%20y/z");
    let server = "sftp://me@podaac.example.org:2222/in/x";
    assert_eq!(address(server, "key = \"k\"\n", ""), "sftp://podaac.example.org:2222/in/x");
    let store = address("s3://bucket/level0", "profile_file = \"p\"\n", "sub");
    assert_eq!(store, "s3://bucket/level0/sub");
    assert_eq!(address("folder:out", "directory = \"s3://theirs/in\"\n", ""), "s3://theirs/in");
}

#[test]
fn what_contradicts_itself_is_refused_with_a_sentence_and_its_line() {
    let two = format!("{LANCE}{WEB}");
    for (keys, what) in [
        ("to = \"mars\"", "there is no destination `mars` for the subscription `a`"),
        ("to = []", "the subscription `a` has no destination"),
        (
            "filter = \"mision = 'aqua'\"",
            "the filter is wrong at character 1: there is no property",
        ),
        ("answer = { within = \"6 h\" }", "`a` awaits notices, and writes no records"),
        ("patience = \"1 h\"\nversions = \"all\"", "waits for a better version"),
        ("order = \"deadline\"", "is ordered by deadlines, and has none"),
        ("mission = [\"aqua\"]", "has the key `mission`, which is for contacts"),
        ("class = \"bulk\"", "has the key `class`, which is for contacts"),
        ("record = \"pdf\"", "`pdf` is not a form of records"),
        ("versions = \"best\"", "`best` is not a rule of versions"),
        ("order = \"random\"", "`random` is not an order of deliveries"),
        ("deadline = \"0 s\"", "a deadline of zero"),
    ] {
        assert_refused(&format!("{two}{}\n", subscription("a", keys)), what);
    }
    let direct = two.replace("https://h/in\"", "https://h/in\"\npublish = \"direct\"");
    assert_refused(&format!("{direct}{}", subscription("a", "")), "no record says when");
    let folder = two.replace("out/lance\"", "out/lance\"\npublish = \"rename\"");
    assert_refused(&format!("{folder}{}", subscription("a", "")), "and has no `publish`");
    let twice = subscription("a", "to = \"web\"\n") + &subscription("a", "to = \"lance\"\n");
    assert_refused(&format!("{two}{twice}"), "the subscription `a` is defined twice");
    assert_refused("[[subscription]]\nof = \"products\"\n", "to products has no name");
    assert_refused("[[destination]]\nto = \"folder:out\"\n", "`folder:out` has no name");
    assert_refused(&format!("{LANCE}{LANCE}"), "the destination `lance` is defined twice");
    assert_refused(&format!("{LANCE}shadow = true\n"), "is no node, and has no `shadow`");
    assert_refused("[[destination]]\nname = \"a\"\nto = \"http://x\"\n", "write \"node:NAME\", ");
    let contacts = format!("{LANCE}[[subscription]]\nof = \"contacts\"\n");
    assert_refused(&contacts, "a subscription to contacts has no effect without a [[destination]]");
    for key in ["expires = \"1 d\"", "checksum = \"cksum\"", "data_version = \"002\""] {
        assert_refused(&format!("{contacts}{key}\n"), "which is for products");
    }
}

#[test]
fn products_need_a_node_that_makes_them_and_go_to_no_node() {
    let text = format!("{CENTRE}{LANCE}{}", subscription("a", ""));
    let without = |table: &str, what: &str| {
        let error = parse(&text.replace(table, ""), Path::new("node.toml")).unwrap_err();
        assert!(error.to_string().contains(what) && error.line().is_some(), "{error}");
    };
    without("[products]\ndir = \"p\"\n", "no products can be delivered without a [products]");
    without("[[listen]]\nbind = \"[::]:4700\"\n", "without a [[listen]]");
    let peer = format!(
        "[[peer]]\nname = \"far\"\naddresses = [\"h:1\"]\nfingerprints = [\"SHA256:{}\"]\n\
         [[destination]]\nto = \"node:far\"\n",
        "a".repeat(64)
    );
    let to_node = format!("{peer}{LANCE}{}", subscription("a", "to = [\"lance\", \"far\"]\n"));
    assert_refused(&to_node, "the destination `far` is a node, and takes contacts, no products");
    let keyed = peer.replace("\"node:far\"\n", "\"node:far\"\nkey = \"k\"\n");
    assert_refused(&keyed, "is a node, and has no `key`");
    // Contacts and products stand side by side, in any order.
    let both = format!(
        "{}[[subscription]]\nof = \"contacts\"\nto = [\"far\"]\n{peer}{LANCE}",
        subscription("a", "")
    );
    let config = node(&both).unwrap();
    assert_eq!(config.station.unwrap().subscription.len(), 1);
    let outlets = config.centre.unwrap().outlets;
    assert_eq!(outlets.subscriptions[0].to, [outlets.destinations[0].name.clone()]);
    // And an error names the line of its own table.
    let wrong = both.replace("to = [\"far\"]", "to = [\"lance\"]");
    let error = node(&wrong).unwrap_err();
    let line = format!("{CENTRE}{wrong}").lines().position(|line| line.contains("[\"lance\"]"));
    assert_eq!(error.line(), line.map(|line| line + 1), "{error}");
}

#[test]
fn two_subscriptions_that_may_write_one_name_to_one_destination_are_refused() {
    let tables = |first: &str, second: &str| {
        let (first, second) = (subscription("a", first), subscription("b", second));
        format!("{LANCE}{WEB}{first}{second}")
    };
    let session = "filter = \"mission = 'aqua' AND kind = 'session'\"\n";
    for (first, second) in [
        ("", ""),
        (session, ""),
        (session, "filter = \"apid = 64\"\n"),
        ("to = \"web\"\n", "to = [\"lance\", \"web\"]\n"),
        ("into = \"x\"\n", "into = \"x\"\n"),
    ] {
        let what = "the subscriptions `a` and `b` may write files of one name to `";
        assert_refused(&tables(first, second), what);
    }
    for (first, second) in [
        (session, "filter = \"kind IN ('time', 'expedited')\"\n"),
        ("to = \"web\"\n", "to = \"lance\"\n"),
        ("", "into = \"other\"\n"),
    ] {
        centre(&tables(first, second));
    }
}

#[test]
fn products_go_to_folders_of_nodes_which_are_called_where_they_have_an_address() {
    let peer = |name: &str, keys: &str| {
        let key = if name == "far" { "a" } else { "b" }.repeat(64);
        format!("[[peer]]\nname = \"{name}\"\nfingerprints = [\"SHA256:{key}\"]\n{keys}")
    };
    let called = peer("far", "addresses = [\"h:1\"]\n");
    let to = |name: &str, place: &str| {
        format!("[[destination]]\nname = \"{name}\"\nto = \"node:{place}\"\n")
    };
    let all = subscription("a", "");
    let tables = [&called, &peer("near", ""), &to("x", "far/in/modis"), &to("y", "near/"), &all];
    let config = node(&tables.map(String::as_str).concat()).unwrap();
    // One is called, takes no contacts, and is part of no route; the other one has to connect.
    let station = config.station.unwrap();
    let [far] = &station.destinations[..] else { panic!("{:?}", station.destinations) };
    assert_eq!((far.name(), far.takes_contacts(), station.has_guests()), ("far", false, true));
    let label = crate::ContactLabel { station: "c".to_owned(), ..crate::ContactLabel::default() };
    assert!(station.route(&label).to.is_empty());
    let own = config.centre.unwrap();
    assert!(own.has_guests());
    let [x, y] = &own.outlets.destinations[..] else { panic!("{:?}", own.outlets) };
    assert_eq!(
        (x.place.to_string(), x.directory()),
        ("node:far/in/modis".into(), "in/modis".into())
    );
    assert_eq!((y.name.as_str(), y.node().unwrap().folder.as_str()), ("y", ""));
    // Contacts and products to one node share its session.
    let both = format!("{called}[[destination]]\nto = \"node:far\"\n{}{all}", to("x", "far/in"));
    let station = node(&both).unwrap().station.unwrap();
    let [far] = &station.destinations[..] else { panic!("{:?}", station.destinations) };
    assert_eq!(far.usage, crate::DestinationUse::Both);
    assert_eq!(station.route(&label).to, [0]);
    // A consumer there answers as any other, and products have a class of the session.
    let terms = subscription("b", "record = \"sips\"\nanswer = { within = \"1 h\" }\n");
    let class = "[[class]]\nname = \"bulk\"\n";
    let awaited = format!("{class}{called}{}class = \"bulk\"\n{terms}", to("x", "far/in"));
    let outlets = centre(&awaited).outlets;
    assert_eq!(outlets.destinations[0].entry.class.as_ref().unwrap().as_str(), "bulk");
    assert!(outlets.subscriptions[0].rules().answer.is_some());
    // Without a name it has that of the node, unless contacts have it.
    let nameless = format!("{called}[[destination]]\nto = \"node:far/in\"\n{all}");
    assert_eq!(centre(&nameless).outlets.destinations[0].name.as_str(), "far");
    for (tables, what) in [
        (to("x", "mars/in"), "there is no peer `mars`"),
        (called.clone() + &to("x", "far/../in"), "is not a folder below a destination"),
        (
            called.clone() + &to("x", "far/in") + "key = \"k\"\n",
            "is a folder of a node, and has no `key`",
        ),
        (called.clone() + &to("x", "far/in") + "shadow = true\n", "and has no `shadow`"),
        (both.replace("name = \"x\"\n", ""), "the destination `far` is defined twice"),
        (
            called.clone() + &to("x", "far/in") + "class = \"bulk\"\n" + &all,
            "there is no class `bulk` for a destination",
        ),
        (
            called.clone() + "[[destination]]\nto = \"node:far\"\nclass = \"bulk\"\n",
            "is a node, and has no `class`",
        ),
        (
            called.clone()
                + &to("x", "far/in")
                + &all
                + "[[channel]]\nname = \"a\"\ninput = \"udp:[::]:1\"\n",
            "the table `channel` has no effect without a [[destination]] with to = \"node:NAME\"",
        ),
    ] {
        let error = node(&tables).unwrap_err();
        assert!(error.to_string().contains(what), "{what}: {error}");
    }
}
