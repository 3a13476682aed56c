//! A kill between any two steps leaves no row without its files, and no file without its row.

use super::*;
use skyhaul_catalogue::{Filter, ItemFile, ItemForm, ItemState, RetentionLeaves};
use skyhaul_catalogue_io::{HoldOrder, ItemQuery};

const NOW: Utc = Utc::from_micros(1_733_443_200_000_000);

fn item(number: u32) -> Item {
    let file = |suffix: &str, is_metadata| ItemFile {
        name: format!("P{number}.{suffix}"),
        size: 3,
        sha256: [0; 32],
        md5: None,
        cksum: None,
        is_metadata,
    };
    Item {
        name: format!("P{number}"),
        version: 1,
        form: ItemForm::Session,
        mission: "aqua".to_owned(),
        product: "imager".to_owned(),
        stations: Vec::new(),
        apids: Vec::new(),
        start: None,
        end: None,
        published: NOW,
        packets: 1,
        missing: 0,
        state: ItemState::Present,
        files: vec![file("PDS", false), file("CR", true)],
    }
}

fn archive(folder: &Path, count: u32) -> Catalogue {
    let catalogue = Catalogue::open(&folder.join("catalogue.db")).unwrap();
    fs::create_dir(folder.join("products")).unwrap();
    for number in 0..count {
        for file in &item(number).files {
            fs::write(folder.join("products").join(&file.name), "abc").unwrap();
        }
        catalogue.publish(item(number), Vec::new(), NOW).unwrap();
    }
    catalogue
}

fn removals(catalogue: &Catalogue) -> Vec<ItemRemoval> {
    let rows = rows(catalogue);
    let leaves =
        |number| if number % 2 == 0 { RetentionLeaves::Record } else { RetentionLeaves::Nothing };
    rows.iter()
        .map(|row| ItemRemoval { item: row.id, leaves: leaves(row.id), reason: "old".to_owned() })
        .collect()
}

fn rows(catalogue: &Catalogue) -> Vec<ItemRow> {
    let query = ItemQuery { filter: None, after: None, limit: 100 };
    catalogue.reader().unwrap().search(&query).unwrap().items
}

/// Each file has a row that says so, and each row that says so has its files.
fn agree(folder: &Path, catalogue: &Catalogue, what: &str) {
    let rows = rows(catalogue);
    let products = folder.join("products");
    for row in &rows {
        let missing = absent(&products, &row.item);
        match row.item.state {
            ItemState::Present => assert_eq!(missing, None, "{what}"),
            ItemState::Removing => {}
            ItemState::Removed => {
                let is_there = |file: &ItemFile| products.join(&file.name).exists();
                assert!(!row.item.files.iter().any(is_there), "{what}");
            }
        }
    }
    for entry in fs::read_dir(&products).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let has = |row: &&ItemRow| row.item.files.iter().any(|file| file.name == name);
        let row = rows.iter().find(has);
        let state = row.map(|row| row.item.state);
        assert!(matches!(state, Some(ItemState::Present | ItemState::Removing)), "{what}: {name}");
    }
}

#[test]
fn a_kill_at_any_step_leaves_files_and_rows_in_agreement_and_the_next_run_ends_it() {
    const COUNT: u32 = 6;
    // Marked; each file removed; synced; settled.
    for killed_after in 0..=(2 * COUNT as usize + 2) {
        let folder = tempfile::tempdir().unwrap();
        let products = folder.path().join("products");
        let what = format!("killed after step {killed_after}");
        {
            let catalogue = archive(folder.path(), COUNT);
            if killed_after > 0 {
                let marked = mark(&catalogue, removals(&catalogue), NOW).unwrap();
                assert_eq!(marked.len(), COUNT as usize);
            }
            let leaving = catalogue.reader().unwrap().archive().leaving(100).unwrap();
            let files = leaving.iter().flat_map(|row| &row.item.files);
            for file in files.take(killed_after.saturating_sub(1)) {
                fs::remove_file(products.join(&file.name)).unwrap();
            }
            if killed_after == 2 * COUNT as usize + 2 {
                settle(&catalogue, &leaving).unwrap();
            }
        }
        let catalogue = Catalogue::open(&folder.path().join("catalogue.db")).unwrap();
        agree(folder.path(), &catalogue, &what);
        finish(&catalogue, &products).unwrap();
        agree(folder.path(), &catalogue, &what);
        let states: Vec<ItemState> = rows(&catalogue).iter().map(|row| row.item.state).collect();
        let expected = match killed_after {
            0 => vec![ItemState::Present; COUNT as usize],
            _ => vec![ItemState::Removed; COUNT as usize / 2],
        };
        assert_eq!(states, expected, "{what}");
    }
}

#[test]
fn what_is_held_meanwhile_is_not_marked_and_what_left_cannot_be_held() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = archive(folder.path(), 2);
    let all = removals(&catalogue);
    let (first, second) = (all[0].item, all[1].item);
    let hold = |item| catalogue.archive().hold(item, HoldOrder::Hold("study".to_owned()), NOW);
    assert!(hold(first).unwrap());
    assert_eq!(mark(&catalogue, all, NOW).unwrap(), [second]);
    finish(&catalogue, &folder.path().join("products")).unwrap();
    assert!(!hold(second).unwrap());
    assert!(catalogue.archive().hold(first, HoldOrder::Release, NOW).unwrap());
    let filter: Filter = "state = 'present'".parse().unwrap();
    let query = ItemQuery { filter: Some(filter), after: None, limit: 10 };
    let left = catalogue.reader().unwrap().search(&query).unwrap().items;
    assert_eq!(left.iter().map(|row| row.id).collect::<Vec<_>>(), [first]);
}
