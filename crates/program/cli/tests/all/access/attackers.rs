//! Who should not come in, and does not.

use super::{Shown, config, is};
use crate::support::patience::until;
use crate::support::process::{printed, run, skyhaul, text};
use crate::support::refusal::assert_refused;
use crate::webdav::certificate;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn attackers_of_the_page_are_refused_and_the_node_goes_on() {
    let shown = Shown::start();
    let host = &shown.address;
    // Another name for this address (DNS rebinding).
    let rebound = "GET /api/v1/status HTTP/1.1\r\nhost: evil.example.com\r\nconnection: \
                   close\r\nauthorization: Bearer good\r\n\r\n";
    assert!(is(&shown.exchange(rebound.as_bytes()), 421));
    for (path, token, status) in [
        ("/api/v1/status", "good", 200),
        ("/api/v1/status", "late", 401),
        ("/api/v1/status", "guess", 401),
        ("/api/v1/status", "metrics", 403),
        ("/metrics", "metrics", 200),
        ("/metrics?token=metrics", "metrics", 400),
        ("/api/v1/stream?access_token=good", "good", 400),
        ("/../../etc/passwd", "good", 400),
    ] {
        let answer = shown.get(path, &format!("authorization: Bearer {token}\r\n"));
        assert!(is(&answer, status), "{path} {token}: {answer}");
    }
    for path in ["/metrics", "/readyz", "/api/v1/status", "/api/v1/stream", "/openapi.yaml"] {
        let answer = shown.get(path, "");
        assert!(is(&answer, 401) && answer.contains("www-authenticate: Bearer\r\n"), "{answer}");
    }
    // A body of 1 GiB, announced or not.
    let long = format!(
        "POST /api/v1/session HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: \
         application/json\r\n"
    );
    let announced = format!("{long}content-length: 1073741824\r\n\r\n{{");
    assert!(is(&shown.exchange(announced.as_bytes()), 413));
    let chunk = format!("4000\r\n{}\r\n", " ".repeat(0x4000));
    let unannounced = format!("{long}transfer-encoding: chunked\r\n\r\n{chunk}");
    assert!(is(&shown.exchange(unannounced.as_bytes()), 413));
    // A head that does not end: the connection is closed, with an answer or none.
    let slow = format!("GET / HTTP/1.1\r\nhost: {host}\r\nx: ");
    let answer = shown.exchange(slow.as_bytes());
    assert!(answer.is_empty() || is(&answer, 408) || is(&answer, 400), "{answer}");
    // Who guesses waits, and so does the right password.
    let guess = |password: &str| {
        let body = format!("{{\"name\":\"vera\",\"password\":\"{password}\"}}");
        shown.post("/api/v1/session", "", &body)
    };
    for _ in 0..4 {
        assert!(is(&guess("guess"), 401));
    }
    let answer = guess("password");
    assert!(is(&answer, 429) && answer.contains("retry-after: "), "{answer}");
    // Which tokens were used is known, and not what they are.
    let list = || {
        let list = ["web", "token", "list", "--config", "n.toml", "--json"];
        let tokens = printed(&list, shown.folder());
        let tokens: serde_json::Value = serde_json::from_str(&tokens).unwrap();
        (tokens[0]["last_used"].is_string() && tokens[1]["last_used"].is_null()).then_some(())
    };
    until(list, || "no use of a token is kept".to_owned());
    let events = printed(&["events", "--config", "n.toml", "--json"], shown.folder());
    assert!(events.contains("\"access.shut\""), "{events}");
    assert!(!events.contains("password"), "{events}");
    assert!(is(&shown.get("/livez", ""), 200));
}

#[test]
fn orders_of_other_sites_and_of_viewers_are_refused() {
    let shown = Shown::start();
    let host = &shown.address;
    // A session is good for the page alone, and orders are for operators.
    let ack = shown.ack_path();
    let (kim, vera) = (shown.logged_in("kim"), shown.logged_in("vera"));
    let cookie = kim.lines().find(|line| line.starts_with("cookie")).unwrap();
    for (headers, status) in [
        (String::new(), 401),
        (vera, 403),
        ("authorization: Bearer good\r\n".to_owned(), 403),
        (format!("{cookie}\r\n"), 403),
        (format!("{cookie}\r\norigin: http://evil.example.com\r\n"), 403),
        (format!("{cookie}\r\norigin: null\r\n"), 403),
        (format!("{kim}sec-fetch-site: cross-site\r\n"), 403),
    ] {
        let answer = shown.post(&ack, &headers, "{}");
        assert!(is(&answer, status), "{headers}: {answer}");
    }
    let form = format!(
        "POST {ack} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{kim}content-type: \
         text/plain\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    assert!(is(&shown.exchange(form.as_bytes()), 415));
}

#[test]
fn beyond_this_host_there_is_tls_and_the_cookie_is_for_tls_alone() {
    let folder = tempfile::tempdir().unwrap();
    let open = "[web]\nbind = \"0.0.0.0:0\"\nusers = \"users.toml\"\n";
    config(folder.path(), "", open);
    for command in [&["config", "check", "n.toml"][..], &["run", "n.toml"]] {
        let refused = run(command, folder.path());
        assert_refused(&refused, 2, &["[web] would be open to other hosts without TLS"]);
    }
    if certificate(folder.path(), &[]).is_none() {
        return;
    }
    let tls = "[web]\nbind = \"127.0.0.1:0\"\nusers = \"users.toml\"\ncertificate = \
               \"tls.pem\"\nkey = \"tls.key\"\n";
    std::fs::remove_file(folder.path().join("n.key")).unwrap();
    config(folder.path(), "", tls);
    let shown = Shown::of(folder);
    let base = format!("https://{}", shown.address);
    let curl = Command::new("curl")
        .args(["-ksi", "-H", "content-type: application/json", "-H"])
        .arg(format!("origin: {base}"))
        .args(["-d", "{\"name\":\"kim\",\"password\":\"password\"}"])
        .arg(format!("{base}/api/v1/session"))
        .output();
    let Ok(curl) = curl else {
        eprintln!("SKIPPED: curl is not installed");
        return;
    };
    let answer = text(&curl.stdout);
    let cookie = answer.lines().find(|line| line.starts_with("set-cookie: ")).unwrap();
    assert!(cookie.starts_with("set-cookie: __Host-skyhaul-"), "{answer}");
    for part in ["; Secure", "; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
}

#[test]
fn users_and_tokens_are_kept_by_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let with_password = |arguments: &[&str], password: &str| {
        let piped = skyhaul(arguments, at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = piped.unwrap();
        child.stdin.take().unwrap().write_all(password.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let add = ["web", "user", "add", "kim", "--role", "operator", "--users", "users.toml"];
    assert_refused(&with_password(&add, "short\n"), 2, &["a password has 10 characters at least"]);
    assert_refused(&with_password(&add, ""), 2, &["no password was given"]);
    let added = with_password(&add, "correct horse\n");
    assert_eq!(text(&added.stdout), "added user kim (operator)\n", "{}", text(&added.stderr));
    let file = std::fs::read_to_string(at.join("users.toml")).unwrap();
    assert!(file.contains("$argon2id$v=19$m=19456,t=2,p=1$") && !file.contains("horse"), "{file}");
    let wrong = ["web", "user", "add", "lee", "--role", "boss", "--users", "users.toml"];
    assert_eq!(run(&wrong, at).status.code(), Some(2));
    let token = ["web", "token", "add", "prom", "--role", "metrics", "--users", "users.toml"];
    let secret = printed(&[&token[..], &["--expires", "365d"]].concat(), at);
    assert!(secret.starts_with("sky_") && secret.trim().len() == 47, "{secret}");
    assert_refused(&run(&token, at), 2, &["there is a token `prom`"]);
    let list = |what: &str| {
        let lines = printed(&["web", what, "list", "--users", "users.toml", "--json"], at);
        serde_json::from_str::<serde_json::Value>(&lines).unwrap()
    };
    assert_eq!(list("user")[0]["role"], "operator");
    assert_eq!(list("token")[0]["name"], "prom");
    assert!(list("token")[0]["expires"].is_string());
    printed(&["web", "token", "remove", "prom", "--users", "users.toml"], at);
    printed(&["web", "user", "remove", "kim", "--users", "users.toml"], at);
    let gone = run(&["web", "user", "remove", "kim", "--users", "users.toml"], at);
    assert_refused(&gone, 2, &["there is no user `kim`"]);
    assert_eq!(list("user"), serde_json::json!([]));
}
