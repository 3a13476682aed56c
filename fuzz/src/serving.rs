//! What customers send to the server of products.

use skyhaul_catalogue::{Filter, ItemListing};
use skyhaul_serve::{
    Accounts, AnswerBody, Asker, BodyPlace, ContactSession, FileBody, Gate, GateLimits, GateTime,
    HeldCollection, HeldItem, HeldPage, HoldingsError, RangeSelection, ServeMethod, ServeRequest,
    ServeRoot, ServedCatalogue, SessionFile, SessionFrames, SessionLabel, SessionProgress, answer,
    finished, parse_odata_filter, root_of, selection,
};
use skyhaul_units::{Instant, Utc};
use std::sync::{Arc, LazyLock};

/// A catalogue with nothing in it, and one contact.
struct Nothing;

impl ServedCatalogue for Nothing {
    fn list(&mut self, _: &ItemListing) -> Result<HeldPage, HoldingsError> {
        Ok(HeldPage { items: Vec::new(), next: None })
    }
    fn count(&mut self, _: &Filter, _: u64) -> Result<u64, HoldingsError> {
        Ok(0)
    }
    fn named(&mut self, _: &str, _: u32) -> Result<Option<HeldItem>, HoldingsError> {
        Ok(None)
    }
    fn numbered(&mut self, _: u64) -> Result<Option<HeldItem>, HoldingsError> {
        Ok(None)
    }
    fn collections(
        &mut self,
        _: Option<&str>,
        _: &Filter,
    ) -> Result<Vec<HeldCollection>, HoldingsError> {
        Ok(Vec::new())
    }
    fn sessions(&mut self) -> Vec<Arc<ContactSession>> {
        vec![Arc::new(contact())]
    }
}

/// A contact with a file, which filters and orders look at.
fn contact() -> ContactSession {
    let file = SessionFile {
        block: 1,
        name: "a.raw".to_owned(),
        size: 7,
        sha256: [1; 32],
        published: Utc::default(),
    };
    ContactSession {
        number: 1,
        name: "AQUA_1".to_owned(),
        of: SessionLabel::default(),
        published: Utc::default(),
        start: Utc::default(),
        stop: Utc::default(),
        progress: SessionProgress::Open,
        frames: SessionFrames::default(),
        files: vec![file],
        evicted: None,
    }
}

/// An account with an access key.
static ACCOUNTS: LazyLock<Accounts> = LazyLock::new(|| {
    let text = "[[account]]\nname = \"a\"\n[[account.key]]\nlabel = \"1\"\nid = \
                \"AKIAIOSFODNN7EXAMPLE\"\nsecret = \"nobody-knows-this-so-it-is-good\"\ncreated = \
                \"2026-11-26T00:00:00Z\"\n";
    Accounts::parse(text).unwrap_or_default()
});

/// Lines as target, `Authorization`, `x-amz-date` and host of a request of S3: it is refused or
/// answered with XML, and nobody who has no secret is admitted.
pub fn signed_requests(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    let mut lines = text.splitn(4, '\n');
    let Ok(mut request) = ServeRequest::new(ServeMethod::Get, lines.next().unwrap_or_default())
    else {
        return;
    };
    for (name, value) in ["authorization", "x-amz-date", "host"].into_iter().zip(lines) {
        request.headers.insert(name.to_owned(), value.to_owned());
    }
    let limits = GateLimits { connections: 1, per_address: 1 };
    let mut gate = Gate::new(limits, Some(ACCOUNTS.clone()));
    let utc = Utc::from_rfc3339("2013-05-24T00:00:00Z").unwrap_or_default();
    let now = GateTime { now: Instant::ZERO, utc };
    let refused = gate.admit(&request, Some(ServeRoot::S3), now);
    let refused = refused.expect_err("nobody has the secret");
    let refused = finished(Some(ServeRoot::S3), refused, "7F");
    assert!((400..600).contains(&refused.status) && refused.text().contains("<Error>"));
    let asker = Asker { account: None, base: "https://s3.example.org", node: "c" };
    let answered = answer(&request, &[ServeRoot::S3], asker, &mut Nothing);
    let answered = finished(Some(ServeRoot::S3), answered, "7F");
    assert!((200..600).contains(&answered.status));
}

/// A text as an address, as the body of a search, as a range, as a filter and as a file of
/// accounts: it is answered or refused, and never leaves the folder of products.
pub fn serving(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    let asker = Asker { account: None, base: "https://c", node: "c" };
    if let Ok(request) = ServeRequest::new(ServeMethod::Get, text) {
        let leaves = |part: &String| part.contains('/') || part == "..";
        assert!(!request.path.iter().any(leaves), "{text}");
        let root = root_of(&request);
        let answer = finished(root, answer(&request, &ServeRoot::ALL, asker, &mut Nothing), "7F");
        assert!((200..600).contains(&answer.status));
        // The file of the contact alone.
        let is_own = |body: &FileBody| body.place == BodyPlace::Contacts && body.name == "a.raw";
        assert!(match &answer.body {
            AnswerBody::Bytes(_) => true,
            AnswerBody::File(body) => is_own(body),
        });
        for (_, value) in answer.headers {
            assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{value:?}");
        }
    }
    if let Ok(mut request) = ServeRequest::new(ServeMethod::Post, "/stac/search") {
        request.body = input.to_vec();
        let answer = answer(&request, &ServeRoot::ALL, asker, &mut Nothing);
        assert!(matches!(answer.status, 200 | 400), "{}", answer.text());
    }
    if let RangeSelection::Parts(parts) = selection(text, 10_000) {
        assert!(parts.iter().all(|part| part.len > 0 && part.from + part.len <= 10_000));
    }
    let _ = (parse_odata_filter(text), Accounts::parse(text));
}
