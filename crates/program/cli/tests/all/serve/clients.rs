//! Other people's clients of OData and STAC: a strict library that goes by the schemas of the
//! services, and, where everything is tested, those of European ground segments.

use super::*;
use crate::support::rung::is_all;
use serde_json::json;
use std::collections::BTreeMap;

/// What a script of the readers prints.
fn script(served: &Served, of: &str, arguments: &[&str]) -> Option<Value> {
    let python = python(of)?;
    let name = if of == "odata" { "odata_sets" } else { of };
    let script = format!("{}/tests/readers/{name}.py", env!("CARGO_MANIFEST_DIR"));
    let ca = served.site.folder().join("tls.pem");
    let output = Command::new(python)
        .args([&script, &served.base, &served.token])
        .args(arguments)
        .current_dir(served.site.folder())
        .env("REQUESTS_CA_BUNDLE", &ca)
        .env("SSL_CERT_FILE", &ca)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The products that are served: the digests of their files by their names, those of the files that
/// stand for them, and their collection.
struct Products {
    files: BTreeMap<String, Vec<String>>,
    first: BTreeMap<String, String>,
    collection: String,
}

impl Products {
    fn of(served: &Served) -> Option<Self> {
        let found = served.json("/stac/search?limit=1000")?;
        let items = found["features"].as_array().unwrap();
        let own = |name: &str| {
            let bytes = fs::read(served.site.folder().join("products").join(name)).unwrap();
            sha256(&bytes)
        };
        let (mut files, mut first) = (BTreeMap::new(), BTreeMap::new());
        for item in items {
            let id = item["id"].as_str().unwrap().to_owned();
            let assets = item["assets"].as_object().unwrap();
            let is_data = |(name, asset): &(&String, &Value)| {
                asset["roles"] == json!(["data"]) && name.ends_with(".PDS")
            };
            let data = assets.iter().find(is_data).unwrap().0;
            first.insert(id.clone(), own(data));
            let mut digests: Vec<String> = assets.keys().map(|name| own(name)).collect();
            digests.sort();
            files.insert(id, digests);
        }
        let collection = items[0]["collection"].as_str().unwrap().to_owned();
        Some(Self { files, first, collection })
    }
}

#[test]
fn a_library_of_odata_reads_both_services_by_their_schemas() {
    let Some(served) = Served::start() else { return };
    let Some(products) = Products::of(&served) else { return };
    let Some(found) = script(&served, "odata", &["tls.pem"]) else { return };
    let digests: BTreeMap<String, String> = found["products"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, one)| (name.clone(), one["sha256"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(digests, products.first);
    let sessions = found["sessions"].as_object().unwrap();
    assert_eq!(sessions.len(), 1, "{found}");
    assert!(sessions.values().all(|one| one["satellite"] == "suomi-npp" && one["frames"] != 0));
}

#[test]
fn clients_of_ground_segments_take_every_product() {
    if !is_all() {
        eprintln!("SKIPPED: eodag, DRB and python-odata are installed where all is tested");
        return;
    }
    let Some(served) = Served::start() else { return };
    let Some(products) = Products::of(&served) else { return };
    let arguments = ["ground", products.collection.as_str()];
    let Some(found) = script(&served, "ground", &arguments) else { return };
    for client in ["python-odata", "drb"] {
        assert_eq!(found[client], json!(products.first), "{client}: {found}");
    }
    let single = |(name, digest): (&String, &String)| (name.clone(), vec![digest.clone()]);
    let by_odata: BTreeMap<_, _> = products.first.iter().map(single).collect();
    assert_eq!(found["eodag by skyhaul_prip"], json!(by_odata), "{found}");
    assert_eq!(found["eodag by skyhaul_stac"], json!(products.files), "{found}");
}
