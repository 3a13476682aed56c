//! Who gets what and when; that nothing is forgotten or delivered twice; and what notices lead to.

use super::*;
use crate::centre::delivery::named::names;
use skyhaul_catalogue::{Item, ItemFile, ItemForm, ItemState};
use skyhaul_config::parse;
use skyhaul_dispatch::{
    DeliveryFailure, DeliveryState, FailureKind, FileAnswer, Notice, NoticeContent, Proof, sips,
};
use skyhaul_units::Duration;

const NOW: Utc = Utc::from_micros(1_733_443_200_000_000);

fn outlets(tables: &str) -> ProductOutlets {
    let text = format!(
        "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"s\"\n[[listen]]\nbind = \
        \"[::]:4700\"\n[products]\ndir = \"p\"\n{tables}"
    );
    parse(&text, "node.toml".as_ref()).unwrap().centre.unwrap().outlets
}

fn open(folder: &Path) -> DeliveryLedger {
    let tables = "[[destination]]\nname = \"fast\"\nto = \"folder:fast\"\n\
                  [[destination]]\nname = \"whole\"\nto = \"folder:whole\"\n\
                  [[subscription]]\nof = \"products\"\nname = \"each\"\nto = \"fast\"\n\
                  versions = \"all\"\nrecord = \"sips\"\ndeadline = \"1 h\"\n\
                  [subscription.answer]\nattempts = 2\n\
                  [[subscription]]\nof = \"products\"\nname = \"best\"\nto = \"whole\"\n\
                  patience = \"6 h\"\nfilter = \"product = 'imager'\"\n";
    open_with(folder, tables)
}

fn open_with(folder: &Path, tables: &str) -> DeliveryLedger {
    let (outlets, products) = (outlets(tables), "products".into());
    let archive = ArchiveRules { rules: Vec::new(), contacts: Duration::from_secs(1) };
    DeliveryLedger::open(LedgerSetup { state: folder, outlets, products, archive }).unwrap()
}

fn item(version: u32, missing: u64) -> Item {
    let stem = format!("P1570826VIIRSSCIENCEAT2434110000{version}000");
    let file = |name: String, is_metadata| ItemFile {
        name,
        size: 1,
        sha256: [0; 32],
        md5: None,
        cksum: None,
        is_metadata,
    };
    Item {
        name: "suomi-npp-imager-2024-12-06T00:00:00Z".to_owned(),
        version,
        form: ItemForm::Time,
        mission: "suomi-npp".to_owned(),
        product: "imager".to_owned(),
        stations: Vec::new(),
        apids: Vec::new(),
        start: None,
        end: None,
        published: NOW,
        packets: 1,
        missing,
        state: ItemState::Present,
        files: vec![
            file(format!("{stem}.PDS"), true),
            file(format!("{}1.PDS", &stem[..stem.len() - 1]), false),
        ],
    }
}

/// The deliveries that may begin, by destination and version.
fn due(ledger: &DeliveryLedger, now: Utc) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for destination in ["fast", "whole"] {
        for row in ledger.ask(|reader| reader.open_deliveries(destination)).unwrap() {
            if row.delivery.is_due(now, &ledger.rules_of(&row.subscription)) {
                let item = ledger.ask(|reader| reader.item(row.item)).unwrap().unwrap();
                found.push((destination.to_owned(), item.item.version));
            }
        }
    }
    found
}

/// Sends a delivery to its record.
fn send(ledger: &DeliveryLedger, id: u64) {
    for input in
        [DeliveryInput::Begin, DeliveryInput::Placed(Proof::Written), DeliveryInput::Recorded]
    {
        assert_eq!(ledger.step(id, input, NOW).unwrap().unwrap().1, DeliveryOutput::Quiet);
    }
}

fn fast(ledger: &DeliveryLedger) -> DeliveryRow {
    let query = DeliveryQuery {
        destination: Some("fast".to_owned()),
        limit: 1,
        ..DeliveryQuery::default()
    };
    ledger.ask(|reader| reader.deliveries(&query)).unwrap().remove(0).0
}

#[test]
fn one_gets_each_version_at_once_another_only_what_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    ledger.add(item(1, 7), NOW).unwrap();
    assert_eq!(due(&ledger, NOW), [("fast".to_owned(), 1)]);
    let later = NOW + Duration::from_secs(6 * 3_600);
    assert_eq!(due(&ledger, later).len(), 2, "patience is over");
    ledger.add(item(2, 0), NOW).unwrap();
    let all =
        [("fast", 1), ("fast", 2), ("whole", 2)].map(|(name, version)| (name.to_owned(), version));
    assert_eq!(due(&ledger, later), all, "the version that was replaced is not handed over");
}

#[test]
fn what_was_handed_over_stays_so_after_a_restart_and_is_offered_once() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    ledger.add(item(1, 0), NOW).unwrap();
    send(&ledger, fast(&ledger).id);
    ledger.add(item(2, 0), NOW).unwrap();
    drop(ledger);
    let ledger = open(folder.path());
    // The products are offered again after a kill.
    ledger.add(item(1, 0), NOW).unwrap();
    ledger.add(item(2, 0), NOW).unwrap();
    let wanted = [("fast".to_owned(), 2), ("whole".to_owned(), 2)];
    assert_eq!(due(&ledger, NOW), wanted);
    assert_eq!(fast(&ledger).sequence, 2);
}

#[test]
fn a_notice_is_found_by_its_number_its_name_and_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    ledger.add(item(1, 0), NOW).unwrap();
    let row = fast(&ledger);
    let fine = Notice::parse(&sips::write_short(None, NOW)).unwrap();
    let stem = "X1570826VIIRSSCIENCEAT24341100001000";
    let answered = |consumer: &str, stem, notice: &Notice| {
        let names = names(stem, notice);
        ledger.ask(|reader| reader.delivery_named_by(consumer, &names)).unwrap()
    };
    assert_eq!(answered("fast", Some(stem), &fine), None, "nothing was handed over yet");
    send(&ledger, row.id);
    assert_eq!(answered("fast", Some(stem), &fine), Some(row.id));
    assert_eq!(answered("whole", Some(stem), &fine), None, "another consumer's");
    let numbered = Notice { sequence: Some(row.sequence), answer: NoticeContent::Accepted };
    assert_eq!(answered("fast", None, &numbered), Some(row.id));
    let name = item(1, 0).files[1].name.clone();
    let by_file = NoticeContent::Files(vec![FileAnswer { name, failure: None }]);
    let by_file = Notice { sequence: None, answer: by_file };
    assert_eq!(answered("fast", Some("whatever"), &by_file), Some(row.id));
    // Two attempts are configured.
    let failed = || {
        let notice = Notice::parse(&sips::write_short(Some("NETWORK FAILURE"), NOW)).unwrap();
        ledger.step(row.id, DeliveryInput::Noticed(notice), NOW).unwrap().unwrap().0.delivery.state
    };
    assert_eq!(failed(), DeliveryState::Waiting);
    send(&ledger, row.id);
    assert_eq!(failed(), DeliveryState::Refused);
}

#[test]
fn a_product_that_cannot_be_sent_says_why_and_holds_no_other_up() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    ledger.add(item(1, 0), NOW).unwrap();
    let id = fast(&ledger).id;
    ledger.add(item(2, 0), NOW).unwrap();
    ledger.step(id, DeliveryInput::Begin, NOW).unwrap();
    let failure = DeliveryFailure::new(FailureKind::Source, "a differs from the published file");
    let output = ledger.step(id, DeliveryInput::Failed(failure, 0), NOW).unwrap().unwrap().1;
    assert_eq!(output, DeliveryOutput::Alarm);
    assert!(due(&ledger, NOW).contains(&("fast".to_owned(), 2)));
    let shown = ledger.shown(NOW).into_iter().find(|shown| shown.id == id).unwrap();
    assert_eq!(shown.state, DeliveryState::Refused);
    assert_eq!(shown.reason.as_deref(), Some("a differs from the published file"));
}

#[test]
fn what_was_published_before_is_offered_once_to_a_subscription_that_comes_later() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open_with(folder.path(), "");
    ledger.add(item(1, 0), NOW).unwrap();
    assert_eq!(due(&ledger, NOW), []);
    drop(ledger);
    let ledger = open(folder.path());
    let rows = ledger.ask(|reader| {
        reader.search(&skyhaul_catalogue_io::ItemQuery { filter: None, after: None, limit: 9 })
    });
    let row = rows.unwrap().items.remove(0);
    let outlets = ledger.outlets();
    let offered: Vec<DeliveryOffer> =
        outlets.subscriptions.iter().flat_map(|one| offers(one, &row.item, NOW)).collect();
    assert_eq!(ledger.offer_again(vec![(row.id, offered.clone())], NOW).unwrap(), 2);
    assert_eq!(ledger.offer_again(vec![(row.id, offered)], NOW).unwrap(), 0);
    assert_eq!(due(&ledger, NOW), [("fast".to_owned(), 1), ("whole".to_owned(), 1)]);
    let late = NOW + Duration::from_secs(3_601);
    let shown = ledger.shown(late);
    let is_late: Vec<_> = shown.iter().map(|one| (&one.subscription[..], one.is_late)).collect();
    assert_eq!(is_late, [("each", true), ("best", false)]);
}
