//! Requests to a node that has a few rows.

use crate::source::RowVisit;
use crate::{
    ExpositionForm, MetricFamily, ORDER_ROUTES, PAGE_FILES, ROUTES, WebLack, WebList, WebReply,
    WebSource, check_method, exposition, web_answer,
};
use bytes::Bytes;
use serde_json::{Value, json};
use skyhaul_serve::{ServeAnswer, ServeMethod, ServeRequest};
use skyhaul_units::Utc;

struct Few {
    lacks: Vec<WebLack>,
    rows: usize,
}

impl WebSource for Few {
    fn number(&self) -> u64 {
        7
    }

    fn taken(&self) -> Utc {
        Utc::from_rfc3339("2026-11-26T12:00:00Z").unwrap()
    }

    fn summary(&self) -> &str {
        "{\"node\":{\"name\":\"few\"}}"
    }

    fn rows(&self, list: WebList, visit: &mut RowVisit<'_>) {
        for number in 0..self.rows {
            let state = if number % 2 == 0 { "open" } else { "done" };
            let value = || json!({"name": number, "state": state, "list": list.name()});
            if visit(&format!("r-{number}"), &value).is_break() {
                return;
            }
        }
    }

    fn metrics(&self, form: ExpositionForm) -> Bytes {
        let families = [MetricFamily::counter("events", "Events.").value(2.0)];
        exposition(&families, form).into()
    }

    fn lacks(&self) -> Vec<WebLack> {
        self.lacks.clone()
    }

    fn is_alive(&self) -> bool {
        true
    }
}

fn ask(source: &Few, target: &str) -> ServeAnswer {
    with(source, target, &[])
}

fn with(source: &Few, target: &str, headers: &[(&str, &str)]) -> ServeAnswer {
    let mut request = ServeRequest::new(ServeMethod::Get, target).unwrap();
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    request.headers.extend(headers.iter().map(owned));
    match web_answer(&request, source) {
        WebReply::Answer(answer) | WebReply::Stream(answer) => answer,
    }
}

fn few() -> Few {
    Few { lacks: Vec::new(), rows: 5 }
}

fn json_of(answer: &ServeAnswer) -> Value {
    serde_json::from_str(&answer.text()).unwrap()
}

#[test]
fn pages_have_each_row_once_and_say_where_the_next_begins() {
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = json_of(&ask(&few(), &format!("/api/v1/contacts?limit=2{after}")));
        assert_eq!(
            (&page["number"], &page["at"]),
            (&json!(7), &json!("2026-11-26T12:00:00.000000Z"))
        );
        seen.extend(page["rows"].as_array().unwrap().iter().map(|row| row["name"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(json!(seen), json!([0, 1, 2, 3, 4]));
    let done = json_of(&ask(&few(), "/api/v1/contacts?state=done&limit=1"));
    assert_eq!((&done["rows"][0]["name"], &done["next"]), (&json!(1), &json!("r-1")));
    assert_eq!(json_of(&ask(&few(), "/api/v1/gaps/r-3"))["list"], "gaps");
}

#[test]
fn a_page_stays_within_its_bytes_however_many_rows_are_asked_for() {
    struct Long;
    impl WebSource for Long {
        fn number(&self) -> u64 {
            1
        }
        fn taken(&self) -> Utc {
            Utc::default()
        }
        fn summary(&self) -> &str {
            "null"
        }
        fn rows(&self, _: WebList, visit: &mut RowVisit<'_>) {
            let value = || json!("x".repeat(100_000));
            for number in 0..100 {
                if visit(&number.to_string(), &value).is_break() {
                    return;
                }
            }
        }
        fn metrics(&self, _: ExpositionForm) -> Bytes {
            Bytes::new()
        }
        fn lacks(&self) -> Vec<WebLack> {
            Vec::new()
        }
        fn is_alive(&self) -> bool {
            false
        }
    }
    let request = ServeRequest::new(ServeMethod::Get, "/api/v1/gaps?limit=1000").unwrap();
    let WebReply::Answer(answer) = web_answer(&request, &Long) else { panic!("no stream") };
    assert!(answer.len() < 4 << 20, "{}", answer.len());
    assert_eq!(json_of(&answer)["next"], "40");
    let request = ServeRequest::new(ServeMethod::Get, "/livez").unwrap();
    let WebReply::Answer(answer) = web_answer(&request, &Long) else { panic!("no stream") };
    assert_eq!(answer.status, 503);
}

#[test]
fn what_cannot_be_answered_is_refused_with_a_sentence() {
    for (target, status, said) in [
        ("/api/v1/contacts?limit=0", 400, "`limit` is a number from 1 to 1000"),
        ("/api/v1/contacts?limit=x", 400, "`limit`"),
        ("/api/v1/contacts?colour=red", 400, "`limit`, `after`, `station`, `mission`, `state`"),
        ("/api/v1/contacts?after=gone", 410, "begin again"),
        ("/api/v1/contacts/gone", 404, "no such row"),
        ("/api/v1/nothing", 404, "/openapi.yaml"),
        ("/page/main.js", 404, "/openapi.yaml"),
        ("/a/b/c/d", 404, "/openapi.yaml"),
    ] {
        let answer = ask(&few(), target);
        assert_eq!(answer.status, status, "{target}");
        assert!(answer.text().contains(said), "{target}: {}", answer.text());
    }
}

#[test]
fn an_address_says_which_methods_it_takes() {
    use ServeMethod::{Get, Head, Other, Post};
    for (target, taken, allow) in [
        ("/api/v1/status", vec![Get, Head], "GET, HEAD"),
        ("/page.js", vec![Get, Head], "GET, HEAD"),
        ("/api/v1/session", vec![Get, Head, Post], "GET, HEAD, POST"),
        ("/api/v1/session/end", vec![Post], "POST"),
        ("/api/v1/alarms/x/ack", vec![Post], "POST"),
        ("/api/v1/deliveries/1/again", vec![Post], "POST"),
        ("/api/v1/keys", vec![Get, Head], "GET, HEAD"),
        ("/api/v1/keys/rotate", vec![Post], "POST"),
        ("/api/v1/keys/SHA256:00/revoke", vec![Post], "POST"),
    ] {
        for method in [Get, Head, Post, Other] {
            let checked = check_method(&ServeRequest::new(method, target).unwrap());
            assert_eq!(checked.is_ok(), taken.contains(&method), "{target}");
            if let Err(refused) = checked {
                assert_eq!((refused.status, refused.header_of("allow")), (405, Some(allow)));
            }
        }
    }
}

#[test]
fn metrics_come_in_the_form_that_the_client_likes() {
    for (accept, is_open) in [
        ("", false),
        ("*/*", false),
        ("text/plain;version=0.0.4", false),
        ("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", true),
        ("application/openmetrics-text;q=0.3, text/plain;q=0.5", false),
        ("application/openmetrics-text;q=0", false),
    ] {
        let answer = with(&few(), "/metrics", &[("accept", accept)]);
        assert_eq!(answer.text().ends_with("# EOF\n"), is_open, "{accept}");
        let media = answer.header_of("content-type").unwrap();
        assert_eq!(media.starts_with("application/openmetrics-text"), is_open, "{media}");
    }
}

#[test]
fn a_node_that_lacks_something_is_alive_and_not_ready() {
    assert_eq!((ask(&few(), "/livez").status, ask(&few(), "/readyz").status), (200, 200));
    let lack = WebLack { what: "spool_full", text: "the spool is full".to_owned() };
    let full = Few { lacks: vec![lack], rows: 0 };
    let answer = ask(&full, "/readyz");
    assert_eq!((ask(&full, "/livez").status, answer.status), (200, 503));
    assert_eq!(json_of(&answer)["lacks"][0]["what"], "spool_full");
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    for target in ["/", "/main.js", "/metrics", "/nothing", "/api/v1/stream", "/readyz"] {
        let answer = ask(&few(), target);
        let policy = answer.header_of("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self'; "), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
        assert_eq!(answer.header_of("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn the_files_of_the_page_are_fetched_once_and_name_no_other_host() {
    for file in PAGE_FILES {
        let first = ask(&few(), &format!("/{}", file.name));
        let tag = first.header_of("etag").unwrap();
        let again = with(&few(), &format!("/{}", file.name), &[("if-none-match", tag)]);
        assert_eq!((first.status, again.status, again.len()), (200, 304, 0), "{}", file.name);
        let text = first.text();
        let other = text
            .lines()
            .find(|line| line.contains("://") && !line.contains("http://www.w3.org/2000/svg"));
        assert_eq!(other, None, "{}", file.name);
        for inline in ["<script>", "<style", " style=", " onclick=", "innerHTML", "eval("] {
            assert!(!text.contains(inline), "{} has {inline}", file.name);
        }
    }
    assert_eq!(ask(&few(), "/").text(), ask(&few(), "/index.html").text());
}

#[test]
fn the_description_of_the_interface_has_every_path_list_and_parameter() {
    let description = ask(&few(), "/openapi.yaml").text();
    let has = |path: &str| description.contains(&format!("\n  {path}:\n"));
    for route in ROUTES.iter().chain(&ORDER_ROUTES) {
        assert!(has(route), "{route}");
    }
    let paths = description.lines().filter(|line| line.starts_with("  /")).count();
    assert_eq!(
        paths,
        ROUTES.len() + ORDER_ROUTES.len(),
        "no path is described that is not answered"
    );
    for list in WebList::ALL {
        assert!(description.contains(&format!("- {}\n", list.name())), "{}", list.name());
        for filter in list.filters() {
            assert!(description.contains(&format!("name: {filter}\n")), "{filter}");
        }
    }
}
