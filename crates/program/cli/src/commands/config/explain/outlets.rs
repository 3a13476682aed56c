//! Where products go, in words.

use super::super::words::spoken;
use skyhaul_config::{
    OrderName, ProductDestination, ProductOutlets, ProductSubscription, RecordForm, SettleName,
    VersionsName,
};
use skyhaul_dispatch::MissingAnswer;
use std::io::{self, Write};
use std::path::Path;

/// Writes where the products in the folder `dir` go.
pub fn write(
    outlets: &ProductOutlets,
    dir: &Path,
    nowhere: &mut Vec<String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\nproducts in {}", dir.display())?;
    if outlets.subscriptions.is_empty() {
        writeln!(out, "  stay there: no [[subscription]] takes products")?;
    }
    for subscription in &outlets.subscriptions {
        write_subscription(subscription, &outlets.destinations, out)?;
    }
    let is_used = |one: &&ProductDestination| outlets.subscriptions_to(&one.name).is_empty();
    let unused = outlets.destinations.iter().filter(is_used);
    nowhere.extend(
        unused.map(|one| format!("destination {}: no subscription sends it a product", one.name)),
    );
    Ok(())
}

fn write_subscription(
    subscription: &ProductSubscription,
    destinations: &[ProductDestination],
    out: &mut dyn Write,
) -> io::Result<()> {
    let entry = &subscription.entry;
    let which = match &entry.filter {
        Some(filter) => format!("those with {filter}"),
        None => "all of them".to_owned(),
    };
    writeln!(out, "  {which}, as {}: {}", subscription.name, terms(subscription))?;
    for name in &subscription.to {
        let destination = destinations.iter().find(|one| one.name == *name);
        let place = destination.map_or(String::new(), |one| format!(" in {}", one.place));
        let class = destination.and_then(|one| one.entry.class.as_ref());
        let class = class.map_or(String::new(), |class| format!(", class {class}"));
        let folder = match subscription.folder().as_str() {
            "" => String::new(),
            folder => format!(", folder {folder}"),
        };
        writeln!(out, "    to {name}{place}{folder}{class}")?;
    }
    Ok(())
}

/// How a subscription's deliveries are made, in words.
fn terms(subscription: &ProductSubscription) -> String {
    let entry = &subscription.entry;
    let (rules, mut said) = (subscription.rules(), Vec::new());
    said.push(
        match entry.versions {
            VersionsName::Latest => "the latest version",
            VersionsName::All => "each version",
            VersionsName::First => "the first version",
        }
        .to_owned(),
    );
    said.push(
        match entry.order {
            OrderName::Newest => "newest first",
            OrderName::Oldest => "oldest first",
            OrderName::Deadline => "nearest deadline first",
        }
        .to_owned(),
    );
    if let Some(patience) = entry.patience {
        said.push(format!("incomplete ones after {}", spoken(patience)));
    }
    if let Some(deadline) = entry.deadline {
        let whose = match (entry.settle, &subscription.to[..]) {
            (_, [_]) | (SettleName::All, _) => String::new(),
            (SettleName::Any, _) => " at one of the destinations".to_owned(),
            (SettleName::First, [first, ..]) => format!(" at {first}"),
            (SettleName::First, []) => String::new(),
        };
        said.push(format!("due within {} of publication{whose}", spoken(deadline)));
    }
    said.push(
        match entry.record {
            RecordForm::None => "without a record",
            RecordForm::Sips => "with a sips record",
            RecordForm::Edos => "with an edos record",
            RecordForm::Cnm => "with a cloud notification message",
        }
        .to_owned(),
    );
    if let Some(answer) = rules.answer {
        let missing = match answer.missing {
            MissingAnswer::Settle => "settled without",
            MissingAnswer::Remind => "else reminded",
            MissingAnswer::Again => "else sent again",
        };
        said.push(format!("notice within {}, {missing}", spoken(answer.within)));
    }
    said.push(format!("given up after {} of failures", spoken(rules.retry.span)));
    if let Some(since) = entry.since {
        said.push(format!("also those published since {since}"));
    }
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::explained;

    #[test]
    fn where_products_go_is_explained_with_what_goes_nowhere() {
        let said = explained(
            "[[listen]]\nbind = \"127.0.0.1:0\"\n[products]\ndir = \"p\"\n[[destination]]\nname = \
             \"a\"\nto = \"folder:/a\"\n[[destination]]\nname = \"b\"\nto = \
             \"sftp://u@h/in\"\n[[destination]]\nname = \"c\"\nto = \
             \"s3://bucket\"\n[[subscription]]\nof = \"products\"\nname = \"nrt\"\nfilter = \
             \"mission = 'aqua'\"\nto = [\"a\", \"b\"]\nsettle = \"any\"\ndeadline = \"30 \
             min\"\nrecord = \"sips\"\ninto = \"aqua\"\n[subscription.answer]\nwithin = \"6 \
             h\"\nmissing = \"remind\"\n",
        );
        for part in [
            "products in p\n  those with mission = 'aqua', as nrt: the latest version, newest \
             first, due within 30 minutes of publication at one of the destinations, with a sips \
             record, notice within 6 hours, else reminded, given up after 3 days of failures\n    \
             to a in folder:/a, folder aqua\n    to b in sftp://u@h/in, folder aqua\n",
            "goes nowhere\n  destination c: no subscription sends it a product\n",
        ] {
            assert!(said.contains(part), "{said}");
        }
        let node = explained(
            "[[listen]]\nbind = \"127.0.0.1:0\"\n[products]\ndir = \"p\"\n[[class]]\nname = \
             \"rest\"\n[[class]]\nname = \"bulk\"\n[[peer]]\nname = \"far\"\nfingerprints = \
             [\"SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]\n\
             [[destination]]\nto = \"node:far/in\"\nclass = \"bulk\"\n[[subscription]]\nof = \
             \"products\"\nname = \"all\"\n",
        );
        assert!(node.contains("    to far in node:far/in, class bulk\n"), "{node}");
        let nobody = explained("[[listen]]\nbind = \"127.0.0.1:0\"\n[products]\ndir = \"p\"\n");
        assert!(nobody.contains("products in p\n  stay there: no [[subscription]]"), "{nobody}");
    }
}
