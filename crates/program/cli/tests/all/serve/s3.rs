//! Readers of S3: boto3, rclone and curl, each with a signature of its own.

use super::*;

/// An access key of the account `lance`.
fn access_key(served: &Served) -> (String, String) {
    let add = ["serve", "key", "add", "lance", "--config", "centre.toml", "--json"];
    let key: Value = serde_json::from_str(&printed(&add, served.site.folder())).unwrap();
    served.site.centre.signal(Signal::HUP);
    let part = |name: &str| key[name].as_str().unwrap().to_owned();
    let found = (part("id"), part("secret"));
    // It is read again on SIGHUP.
    until(
        || {
            let code = signed(served, &found, &["-o", "/dev/null", "-w", "%{http_code}"], "/")?;
            (text(&code.stdout) != "403").then_some(())
        },
        || served.site.shown("centre.toml"),
    );
    found
}

/// What curl says to a request that it signs.
fn signed(
    served: &Served,
    (id, secret): &(String, String),
    further: &[&str],
    path: &str,
) -> Option<Output> {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "60", "--aws-sigv4", "aws:amz:eu-north-1:s3", "--user"]);
    curl.arg(format!("{id}:{secret}")).arg("--cacert").arg(served.site.folder().join("tls.pem"));
    ran(curl.args(further).arg(format!("{}{path}", served.base)))
}

/// The objects of the products that were published: keys, and digests.
fn published(served: &Served) -> Option<std::collections::BTreeMap<String, String>> {
    let found = served.json("/stac/search?limit=1000")?;
    let mut objects = std::collections::BTreeMap::new();
    for item in found["features"].as_array().unwrap() {
        let product = item["properties"]["product:type"].as_str().unwrap();
        let id = item["id"].as_str().unwrap();
        for (name, asset) in item["assets"].as_object().unwrap() {
            let digest = asset["file:checksum"].as_str().unwrap().trim_start_matches("1220");
            objects.insert(format!("{product}/{id}/{name}"), digest.to_owned());
        }
    }
    Some(objects)
}

#[test]
fn clients_of_s3_list_and_read_every_product() {
    let Some(served) = Served::start() else { return };
    let Some(objects) = published(&served) else { return };
    let key = access_key(&served);
    let folder = served.site.folder();
    let ca = folder.join("tls.pem");
    let buckets = signed(&served, &key, &[], "/").unwrap();
    let list = text(&buckets.stdout);
    let bucket = list.split("<Name>").nth(1).and_then(|rest| rest.split('<').next());
    let bucket = bucket.unwrap_or_else(|| panic!("{list}")).to_owned();
    // curl, with a path of its own for what is not signed.
    let (path, digest) = objects.first_key_value().unwrap();
    let object = signed(&served, &key, &[], &format!("/{bucket}/{path}")).unwrap();
    assert_eq!(&sha256(&object.stdout), digest, "{}", text(&object.stdout));
    let plain = format!("{}/s3/{bucket}/{path}", served.base);
    assert_eq!(&sha256(&served.curl(&[&plain]).unwrap().stdout), digest);
    let denied = ran(Command::new("curl").args(["-sk", &plain])).unwrap();
    assert!(text(&denied.stdout).contains("<Code>AccessDenied</Code>"), "{denied:?}");
    // The bucket in the name of the host.
    let port = served.base.rsplit_once(':').unwrap().1;
    let host = format!("{bucket}.localhost:{port}");
    let resolve = format!("{host}:127.0.0.1");
    let mut curl = Command::new("curl");
    curl.args(["-skS", "--aws-sigv4", "aws:amz:x:s3", "--resolve", &resolve, "--user"]);
    curl.arg(format!("{}:{}", key.0, key.1)).arg(format!("https://{host}/{path}"));
    assert_eq!(&sha256(&ran(&mut curl).unwrap().stdout), digest);
    // rclone copies all of it.
    let mut rclone = Command::new("rclone");
    rclone.args(["copy", &format!(":s3:{bucket}"), "by-rclone", "--config", "/dev/null"]);
    rclone.args(["--s3-provider", "Other", "--s3-endpoint", &served.base, "--s3-env-auth"]);
    rclone.args(["--ca-cert"]).arg(&ca).current_dir(folder);
    // It has the authority by its own option.
    rclone
        .env_remove("AWS_CA_BUNDLE")
        .env("AWS_ACCESS_KEY_ID", &key.0)
        .env("AWS_SECRET_ACCESS_KEY", &key.1);
    if let Some(output) = ran(&mut rclone) {
        assert!(output.status.success(), "{}", text(&output.stderr));
        for (path, digest) in &objects {
            let copied = fs::read(folder.join("by-rclone").join(path)).unwrap();
            assert_eq!(&sha256(&copied), digest, "{path}");
        }
    }
    let Some(python) = python("s3") else { return };
    fs::create_dir(folder.join("by-boto")).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/s3.py");
    let output = Command::new(python)
        .args([script, &served.base, "by-boto"])
        .current_dir(folder)
        .env("AWS_ACCESS_KEY_ID", &key.0)
        .env("AWS_SECRET_ACCESS_KEY", &key.1)
        .env("AWS_CA_BUNDLE", ca)
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("SSL_CERT_FILE", folder.join("tls.pem"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["buckets"], serde_json::json!([bucket]));
    assert_eq!(found["objects"], serde_json::json!(objects));
}

#[test]
fn access_keys_come_and_go_and_their_file_is_for_its_owner_alone() {
    let Some(mut served) = Served::start() else { return };
    let key = access_key(&served);
    let folder = served.site.folder();
    let place = ["--config", "centre.toml"];
    let list = [&["serve", "key", "list"], &place[..]].concat();
    let listed = printed(&list, folder);
    assert!(listed.contains(&key.0) && !listed.contains(&key.1), "{listed}");
    let code = || {
        let output = signed(&served, &key, &["-o", "/dev/null", "-w", "%{http_code}"], "/");
        output.map(|output| text(&output.stdout)).unwrap_or_default()
    };
    assert_eq!(code(), "200");
    let remove = [&["serve", "key", "remove", "lance"], &place[..]].concat();
    assert_eq!(printed(&remove, folder), "removed access key 1 of lance\n");
    served.site.centre.signal(Signal::HUP);
    until(|| (code() == "403").then_some(()), || "the key is valid".to_owned());
    assert_refused(&run(&remove, folder), 2, &["account `lance` has no key `1`"]);
    // A file of secrets that others can read is not taken.
    printed(&["serve", "key", "add", "lance", "--config", "centre.toml"], folder);
    let file = folder.join("accounts.toml");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let folder = folder.to_owned();
    served.site.kill_centre();
    let started = run(&["run", "centre.toml"], &folder);
    assert_eq!(started.status.code(), Some(3));
    let said = text(&started.stderr);
    assert!(said.contains("has access keys, and other users can read it"), "{said}");
    assert!(said.contains("help: chmod 600 accounts.toml"), "{said}");
}
