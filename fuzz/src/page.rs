//! What browsers and scrapers send to the page of a node.

use bytes::Bytes;
use core::ops::ControlFlow;
use serde_json::{Value, json};
use skyhaul_serve::{AnswerBody, ServeMethod, ServeRequest};
use skyhaul_units::Utc;
use skyhaul_web::{
    ExpositionForm, MetricFamily, RowVisit, WebLack, WebList, WebReply, WebSource, exposition,
    web_answer,
};

/// A node whose rows have the text as names.
struct Named<'a>(&'a str);

impl WebSource for Named<'_> {
    fn number(&self) -> u64 {
        1
    }
    fn taken(&self) -> Utc {
        Utc::default()
    }
    fn summary(&self) -> &str {
        "{}"
    }
    fn rows(&self, _: WebList, visit: &mut RowVisit<'_>) {
        for id in ["a", self.0, "b"] {
            let value = || -> Value { json!({"id": id, "state": self.0}) };
            if visit(id, &value) == ControlFlow::Break(()) {
                return;
            }
        }
    }
    fn metrics(&self, form: ExpositionForm) -> Bytes {
        let mut family = MetricFamily::counter("events", "Events.");
        family.add(&[("name", self.0)], 1.0);
        exposition(&[family], form).into()
    }
    fn lacks(&self) -> Vec<WebLack> {
        Vec::new()
    }
    fn is_alive(&self) -> bool {
        true
    }
}

/// A text as an address, as the `Accept` of a scraper and as a name in rows and labels: it is
/// answered with JSON and headers that are whole, or refused, and a label stays on its line.
pub fn page(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    let source = Named(text);
    for (target, accept) in [(text, ""), ("/metrics", text), ("/api/v1/gaps?limit=2", text)] {
        let Ok(mut request) = ServeRequest::new(ServeMethod::Get, target) else { continue };
        request.headers.insert("accept".to_owned(), accept.to_owned());
        let (WebReply::Answer(answer) | WebReply::Stream(answer)) = web_answer(&request, &source);
        assert!((200..600).contains(&answer.status));
        for (name, value) in &answer.headers {
            assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{value:?}");
            let AnswerBody::Bytes(bytes) = &answer.body else { panic!("no answer is a file") };
            if (*name, &**value) == ("content-type", "application/json") {
                assert!(serde_json::from_slice::<Value>(bytes).is_ok(), "{}", answer.text());
            }
        }
    }
    let metrics = source.metrics(ExpositionForm::Classic);
    let metrics = core::str::from_utf8(&metrics).expect("metrics are text");
    assert_eq!(metrics.lines().count(), 3, "{metrics}");
}
