//! Questions of pollers, over contacts in memory.

use super::*;
use crate::holdings::{HeldCollection, HeldItem, HeldPage, HoldingsError};
use crate::{ServeRoot, finished};
use skyhaul_catalogue::{Filter, ItemListing};
use skyhaul_units::Utc;

/// Two contacts: one that has ended, and one that comes in.
struct Contacts;

fn at(second: i64) -> Utc {
    Utc::from_micros(1_790_000_000_000_000 + second * 1_000_000)
}

fn contact(number: u64, progress: SessionProgress, files: u32) -> ContactSession {
    let name = format!("AQUA_2026092114132{number}00004{number}");
    let file = |block: u32| SessionFile {
        block,
        name: format!("DCS_polar_{name}_ch1_DSDB_{block:05}.raw"),
        size: 1_000 * u64::from(block),
        sha256: [block as u8; 32],
        published: at(number as i64 * 100 + i64::from(block)),
    };
    ContactSession {
        number,
        of: crate::SessionLabel {
            station: "polar".to_owned(),
            channel: "x-band".to_owned(),
            mission: "aqua".to_owned(),
            flow: 40 + number as u32,
            is_retransfer: false,
        },
        published: at(number as i64 * 100),
        start: at(number as i64 * 100 - 5),
        stop: at(number as i64 * 100 + 50),
        progress,
        frames: SessionFrames {
            acquired: 100,
            corrected: 7,
            uncorrectable: 3,
            data: 90,
            corrected_data: 6,
        },
        files: (1..=files).map(file).collect(),
        evicted: None,
        name,
    }
}

impl ServedCatalogue for Contacts {
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
        let open = contact(2, SessionProgress::Open, 2);
        vec![Arc::new(contact(1, SessionProgress::Whole, 3)), Arc::new(open)]
    }
}

fn asked(request: &ServeRequest) -> ServeAnswer {
    let asker = Asker { account: None, base: "https://c.example.org", node: "centre" };
    let answer = crate::answer(request, &ServeRoot::ALL, asker, &mut Contacts);
    finished(Some(ServeRoot::Cadip), answer, "7F")
}

fn get(target: &str) -> ServeAnswer {
    let target = format!("/cadip/odata/v1/{}", target.replace(' ', "%20"));
    asked(&ServeRequest::new(ServeMethod::Get, &target).unwrap())
}

fn value(target: &str) -> Value {
    let answer = get(target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    assert_eq!(answer.header_of("odata-version"), Some("4.0"));
    serde_json::from_str(&answer.text()).unwrap()
}

fn count(target: &str) -> usize {
    value(target)["value"].as_array().unwrap().len()
}

#[test]
fn sessions_have_every_field_and_are_found_as_pollers_ask() {
    let asked = value(
        "Sessions?$filter=Satellite eq 'aqua' and Retransfer eq false and PublicationDate gt \
         2026-09-21T14:13:20.000Z&$count=true&$top=1000&$orderby=PublicationDate asc",
    );
    assert_eq!(asked["@odata.count"], 2);
    assert_eq!(asked["@odata.context"], "https://c.example.org/cadip/odata/v1/$metadata#Sessions");
    let session = &asked["value"][0];
    for name in SESSION {
        assert!(session.get(name).is_some_and(|value| !value.is_null()), "{name}: {session}");
    }
    assert_eq!(session["SessionId"], "AQUA_20260921141321000041");
    assert_eq!(session["PublicationDate"], "2026-09-21T14:15:00.000Z");
    assert_eq!(session["AcquisitionId"], "41");
    for (query, wanted) in [
        ("Sessions?$filter=PublicationDate gt 2026-09-21T14:15:00.000Z", 1),
        ("Sessions?$filter=SessionId eq 'AQUA_20260921141321000041'", 1),
        ("Sessions?$filter=StationUnitId in ('polar','x')", 2),
        ("Sessions?$filter=NumChannels eq 1 and not (DownlinkStatusOK eq true)", 2),
        ("Files?$filter=SessionId eq 'AQUA_20260921141321000041' and Retransfer eq false", 3),
        ("Files?$filter=FinalBlock eq null", 1),
        ("Files?$filter=FinalBlock eq true", 1),
        ("Files?$filter=Size ge 2000 and BlockNumber lt 3", 2),
        ("Files?$filter=startswith(Name,'DCS_polar')&$skip=4", 1),
        ("Files?$filter=EvictionDate eq null&$top=0", 0),
    ] {
        assert_eq!(count(query), wanted, "{query}");
    }
    assert_eq!(get("Files/$count").text(), "5");
}

#[test]
fn the_quality_adds_up_to_the_files() {
    let found = value("Sessions?$expand=QualityInfo&$orderby=SessionId desc");
    let session = &found["value"][1];
    let quality = &session["QualityInfo"][0];
    assert_eq!(session["NumChannels"], 1);
    assert_eq!((&quality["TotalChunks"], &quality["TotalVolume"]), (&json!(3), &json!(6_000)));
    assert_eq!((&quality["ErrorTFs"], &quality["CorrectedTFs"]), (&json!(10), &json!(7)));
    assert_eq!((&quality["DataTFs"], &quality["ErrorDataTFs"]), (&json!(90), &json!(6)));
    assert!(!quality["DeliveryStop"].is_null());
    let open = &found["value"][0]["QualityInfo"][0];
    assert!(open["DeliveryStop"].is_null() && !open["DeliveryStart"].is_null());
    let target = format!("Sessions({})", session["Id"].as_str().unwrap());
    assert_eq!(value(&format!("{target}/QualityInfo"))["value"][0], *quality);
    assert_eq!(value(&target)["SessionId"], session["SessionId"]);
    assert_eq!(count(&format!("{target}/Files?$orderby=BlockNumber desc")), 3);
}

#[test]
fn sessions_come_with_their_files_and_with_what_is_selected() {
    let found = value("Sessions?$expand=Files,QualityInfo&$orderby=PublicationDate asc");
    for session in found["value"].as_array().unwrap() {
        let own = format!("Files?$filter=SessionId eq {}", session["SessionId"]);
        let own = value(&own.replace('"', "'"));
        assert_eq!(session["Files"], own["value"]);
        assert_eq!(
            session["QualityInfo"][0]["TotalChunks"],
            own["value"].as_array().unwrap().len()
        );
    }
    let few = value("Files?$select=Name,Size&$top=1");
    assert!(few["@odata.context"].as_str().unwrap().ends_with("$metadata#Files(Name,Size)"));
    assert_eq!(few["value"][0].as_object().unwrap().len(), 2);
}

/// Contacts of very many files.
#[test]
fn a_page_of_sessions_with_their_files_ends_early_and_goes_on() {
    let all: Vec<SessionEntity> = (1..=4)
        .map(|number| contact(number, SessionProgress::Whole, 6_000 * (number as u32 % 3)))
        .map(|session| SessionEntity(Arc::new(session)))
        .collect();
    let page = |all: Vec<SessionEntity>, query: &str| {
        let asker = Asker { account: None, base: "https://c.example.org", node: "centre" };
        let target = format!("/cadip/odata/v1/Sessions?$expand=Files{query}");
        let request = ServeRequest::new(ServeMethod::Get, &target).unwrap();
        let answer = set(&request, "Sessions", &[], asker, all).unwrap();
        let value: Value = serde_json::from_str(&answer.text()).unwrap();
        let next = value["@odata.nextLink"].as_str();
        let next = next.and_then(|next| Some(next.split_once("$expand=Files")?.1.to_owned()));
        (value["value"].as_array().unwrap().len(), next)
    };
    let again = || all.iter().map(|one| SessionEntity(Arc::clone(&one.0))).collect();
    // 6,000 files; 12,000, which are more than fit; none and 6,000.
    let (mut query, mut lengths) = ("&$top=9".to_owned(), Vec::new());
    loop {
        let (length, next) = page(again(), &query);
        lengths.push(length);
        let Some(next) = next else { break };
        query = next;
    }
    assert_eq!(lengths, [1, 1, 2]);
}

#[test]
fn a_file_goes_out_in_ranges_from_the_folder_of_contacts() {
    let file = &value("Files?$orderby=Size desc&$top=1")["value"][0];
    let target = format!("/cadip/odata/v1/Files({})/$value", file["Id"].as_str().unwrap());
    let mut request = ServeRequest::new(ServeMethod::Get, &target).unwrap();
    request.headers.insert("range".to_owned(), "bytes=1000-".to_owned());
    let answer = asked(&request);
    assert_eq!((answer.status, answer.len()), (206, 2_000));
    let AnswerBody::File(body) = &answer.body else { panic!("it is a file") };
    assert_eq!(
        (body.place, body.name.as_str()),
        (BodyPlace::Contacts, file["Name"].as_str().unwrap())
    );
}

#[test]
fn pages_follow_each_other() {
    let mut seen = Vec::new();
    let mut target = "Files?$orderby=PublicationDate%20desc".to_owned();
    let whole = value(&target);
    assert!(whole.get("@odata.nextLink").is_none(), "five fit in a page");
    for _ in 0..5 {
        let page = value(&format!("{target}&$top=1"));
        let number = page["value"][0]["Id"].as_str().unwrap().to_owned();
        let last = number_of(&number).unwrap();
        seen.push(page["value"][0].clone());
        target = format!("Files?$orderby=PublicationDate%20desc&$skiptoken={last}");
    }
    assert_eq!(json!(seen), whole["value"]);
}

#[test]
fn what_is_wrong_is_refused_with_a_sentence() {
    for (query, said) in [
        ("Sessions?$filter=Sattelite eq 'x'", "there is no property `Sattelite`"),
        ("Sessions?$filter=Satellite eq 7", "`Satellite` is compared with a text"),
        ("Sessions?$filter=PublicationDate gt 'yesterday'", "compared with a time"),
        ("Sessions?$filter=Retransfer eq 'false'", "compared with true or false"),
        ("Files?$filter=Size gt null", "null by eq and ne alone"),
        ("Files?$filter=contains(Size,'1')", "`Size` is no text"),
        ("Files?$orderby=Apple", "there is no property `Apple`"),
        ("Files?$skiptoken=99", "begin anew"),
        ("Files?$expand=QualityInfo", "$expand of a session"),
        ("Sessions?$select=x", "there is no property `x`"),
        ("Sessions?$search=x", "the option `$search` is not supported"),
        ("Sessions?$filter=Attributes/any(a:a/Name eq 'x' and a/Value eq 1)", "only products"),
    ] {
        let answer = get(query);
        assert_eq!(answer.status, 400, "{query}: {}", answer.text());
        let error: Value = serde_json::from_str(&answer.text()).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{query}: {message}");
        assert!(answer.header_of("warning").is_some());
    }
    for absent in ["Products", "Files(536b7968-6175-8000-8000-000000000001)", "Sessions(x)"] {
        assert_eq!(get(absent).status, 404, "{absent}");
    }
    let xml = get("$metadata").text();
    assert!(SESSION.iter().chain(&FILE).all(|name| xml.contains(&format!("Name=\"{name}\""))));
}
