//! The pages of section 5: the configuration of a node and the address book, from the declarations
//! of their keys.

use super::ManualPage;
use super::text::{PREAMBLE, body, sentence, verbatim};
use clap_mangen::roff::{Roff, bold, roman};
use skyhaul_config::{ConfigTable, Presence};

/// The pages of both files.
pub fn pages(version: &str, date: &str) -> Vec<ManualPage> {
    let pages = skyhaul_config::reference().into_iter().map(|(file, tables)| {
        let name = format!("skyhaul-{file}");
        let about = if file == "node.toml" { &NODE } else { &BOOK };
        let mut roff = Roff::new();
        let source = format!("skyhaul {version}");
        roff.control("TH", [&*name.to_uppercase(), "5", date, &source, "Skyhaul"]);
        roff.control("SH", ["NAME"]).text([roman(format!("{name} - {}", about.title))]);
        roff.control("SH", ["DESCRIPTION"]);
        for (place, paragraph) in about.description.iter().enumerate() {
            if place > 0 {
                roff.control("PP", []);
            }
            roff.text(sentence(paragraph));
        }
        roff.control("SH", ["TABLES"]);
        tables.iter().for_each(|table| write_table(table, &mut roff));
        let mut text = PREAMBLE.to_owned() + &body(&roff);
        text += &verbatim("EXAMPLES", about.example);
        let mut roff = Roff::new();
        roff.control("SH", ["SEE ALSO"]).text([roman(about.see_also)]);
        text += &body(&roff);
        ManualPage { name, section: 5, text }
    });
    pages.collect()
}

fn write_table(table: &ConfigTable, roff: &mut Roff) {
    roff.control("SS", [table.heading]).text(sentence(table.meaning));
    roff.text([roman(table.applies.to_string())]);
    for key in table.keys {
        let presence = match key.presence {
            Presence::Required => "required".to_owned(),
            Presence::Optional => "optional".to_owned(),
            Presence::Default(value) => format!("default: {value}"),
        };
        roff.control("TP", []).text([bold(key.name), roman(format!(" ({presence})"))]);
        roff.text(sentence(key.meaning));
    }
}

/// What a page says beside its tables.
struct FileAbout {
    title: &'static str,
    description: &'static [&'static str],
    example: &'static str,
    see_also: &'static str,
}

const NODE: FileAbout = FileAbout {
    title: "configuration of a Skyhaul node",
    description: &[
        "The file declares what a node does: what it captures and sends, what it receives and \
         makes of it, and who may look. It is in TOML. `skyhaul run` takes its name; the service \
         `skyhaul@NAME` reads `/etc/skyhaul/NAME.toml`.",
        "Unknown keys are refused. `skyhaul config check` checks a file and explains its effect. \
         Sizes, rates and times are texts with a unit, such as \"200 GB\", \"93 Mbit/s\" and \
         \"2 s\".",
    ],
    example: r#"[node]
name = "station-1"
key = "station-1.key"
state = "/var/lib/skyhaul/station-1"

[[peer]]
name = "centre-1"
addresses = ["centre.example.org:4700"]
fingerprints = ["SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]

[[destination]]
to = "node:centre-1"

[[channel]]
name = "x-band"
input = "tcp-listen:0.0.0.0:5000""#,
    see_also: "skyhaul(1), skyhaul-run(1), skyhaul-config-check(1), skyhaul-nodes.toml(5)",
};

const BOOK: FileAbout = FileAbout {
    title: "address book of Skyhaul's commands",
    description: &[
        "The file has the nodes that commands such as `skyhaul cp` can name: their addresses and \
         the fingerprints of their keys. It is `skyhaul/nodes.toml` in `$XDG_CONFIG_HOME` \
         (`~/.config`). `skyhaul node` and `skyhaul pair` write it.",
    ],
    example: r#"[[peer]]
name = "far"
addresses = ["198.51.100.1:4740"]
fingerprints = ["SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]"#,
    see_also: "skyhaul-node(1), skyhaul-pair(1), skyhaul-node.toml(5)",
};
