//! `/cadip/odata/v1`: contacts as the CADU Interface Delivery Point (CADIP, ESA EOPG-GS) has them:
//! sessions, their files in blocks, and the quality of each channel, while they come in and after.
//!
//! A session is a contact, and has one channel. Its files have the frames that were received, each
//! behind its marker, in the order of reception; frames that could not be corrected are counted and
//! in no file.

use super::cells::{CelledEntity, ODataCell, fits, sort};
use super::identifier::{number_of, uuid_of};
use super::json_answer;
use super::query::ODataQuery;
use crate::answer::{AnswerBody, BodyPlace, ServeAnswer};
use crate::contact_session::{ContactSession, SessionFile, SessionFrames, SessionProgress};
use crate::file_answer::file_answer;
use crate::holdings::{Asker, ServedCatalogue};
use crate::http_date::milliseconds;
use crate::request::{ServeMethod, ServeRequest, encoded};
use serde_json::{Value, json};
use skyhaul_catalogue::{Item, ItemFile, ItemForm, ItemState};
use std::sync::Arc;

/// Entities of a page: as many as pollers ask for.
const PAGE: u64 = 1_000;
/// Files that are shown within the sessions of a page, about 4 MB; those of one session are all
/// shown.
const FILES_WITHIN: usize = 10_000;
const ROOT: &str = "/cadip/odata/v1";
/// The receiver in front of the node has no name that it knows.
const FRONT_END: &str = "skyhaul";

fn bad(what: impl AsRef<str>) -> ServeAnswer {
    ServeAnswer::problem(400, what.as_ref())
}

/// A session as an entity.
struct SessionEntity(Arc<ContactSession>);

/// A file as an entity.
struct FileEntity {
    session: Arc<ContactSession>,
    /// Its place among the files of the session.
    place: usize,
}

/// Answers a request behind `/cadip`.
///
/// # Errors
/// The answer to one that is refused.
pub fn answer(
    request: &ServeRequest,
    path: &[&str],
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    if !matches!(request.method, ServeMethod::Get | ServeMethod::Head) {
        let refused = ServeAnswer::problem(405, "sessions are read with GET");
        return Err(refused.header("allow", "GET, HEAD"));
    }
    let ["odata", "v1", rest @ ..] = path else {
        return Err(ServeAnswer::problem(404, "the service is at /cadip/odata/v1"));
    };
    let sessions: Vec<Arc<ContactSession>> =
        holdings.sessions().into_iter().filter(|session| may_know(asker, session)).collect();
    match rest {
        [] => Ok(json_answer(&json!({
            "@odata.context": context(asker, ""),
            "value": [
                {"name": "Sessions", "kind": "EntitySet", "url": "Sessions"},
                {"name": "Files", "kind": "EntitySet", "url": "Files"},
            ],
        }))),
        ["$metadata"] => Ok(metadata()),
        ["Sessions", rest @ ..] => {
            let all = sessions.into_iter().map(SessionEntity).collect();
            set(request, "Sessions", rest, asker, all)
        }
        ["Files", rest @ ..] => {
            let all = sessions.iter().flat_map(files_of).collect();
            set(request, "Files", rest, asker, all)
        }
        [entity, rest @ ..] => match (within(entity, "Sessions"), within(entity, "Files")) {
            (Some(id), _) => one_session(request, id, rest, asker, &sessions),
            (_, Some(id)) => one_file(request, id, rest, asker, &sessions),
            _ => Err(ServeAnswer::problem(404, "there is no such set; see Sessions and Files")),
        },
    }
}

/// What stands within `SET(…)`.
fn within<'a>(entity: &'a str, set: &str) -> Option<&'a str> {
    let id = entity.strip_prefix(set)?.strip_prefix('(')?.strip_suffix(')')?;
    // Some clients put the identifier in apostrophes.
    Some(id.trim_matches('\''))
}

/// An account with a filter knows the contacts that it would know as products.
fn may_know(asker: Asker<'_>, session: &ContactSession) -> bool {
    let of = &session.of;
    asker.may_know(&Item {
        name: session.name.clone(),
        version: 1,
        form: ItemForm::Session,
        mission: of.mission.clone(),
        product: "contact".to_owned(),
        stations: vec![of.station.clone()],
        apids: Vec::new(),
        start: Some(session.start),
        end: Some(session.stop),
        published: session.published,
        packets: 0,
        missing: 0,
        state: ItemState::Present,
        files: Vec::new(),
    })
}

fn files_of(session: &Arc<ContactSession>) -> impl Iterator<Item = FileEntity> {
    (0..session.files.len()).map(|place| FileEntity { session: Arc::clone(session), place })
}

fn context(asker: Asker<'_>, what: &str) -> String {
    let what = if what.is_empty() { String::new() } else { format!("#{what}") };
    format!("{}{ROOT}/$metadata{what}", asker.base)
}

/// An entity of a set.
trait Entity: CelledEntity {
    /// Its number.
    fn number(&self) -> u64;

    /// It as JSON, with what `expanded` says.
    fn json(&self, expanded: Expanded) -> Value;

    /// How many files are shown within it.
    fn files_within(&self, expanded: Expanded) -> usize;
}

/// What is shown within a session.
#[derive(Clone, Copy, Default)]
struct Expanded {
    /// The quality of its channels.
    has_quality: bool,
    /// Its files.
    has_files: bool,
}

fn expands(query: &ODataQuery, set: &str) -> Result<Expanded, ServeAnswer> {
    let mut expanded = Expanded::default();
    for name in &query.expand {
        match (set, name.as_str()) {
            ("Sessions", "QualityInfo") => expanded.has_quality = true,
            ("Sessions", "Files") => expanded.has_files = true,
            _ => return Err(bad("$expand of a session is QualityInfo or Files; files have none")),
        }
    }
    Ok(expanded)
}

/// A list of a set, or how many there are.
fn set<T: Entity>(
    request: &ServeRequest,
    name: &str,
    rest: &[&str],
    asker: Asker<'_>,
    all: Vec<T>,
) -> Result<ServeAnswer, ServeAnswer> {
    let query = ODataQuery::of(request).map_err(bad)?;
    let expanded = expands(&query, name)?;
    let mut found = Vec::new();
    for entity in all {
        let is_wanted = query.filter.as_ref().map_or(Ok(true), |filter| fits(&entity, filter));
        if is_wanted.map_err(bad)? {
            found.push(entity);
        }
    }
    match rest {
        [] => {}
        ["$count"] => {
            let mut answer = ServeAnswer::empty(200).header("content-type", "text/plain");
            answer.body = AnswerBody::Bytes(found.len().to_string().into());
            return Ok(answer);
        }
        _ => return Err(ServeAnswer::problem(404, "a set has $count")),
    }
    found.sort_by_key(Entity::number);
    sort(&mut found, &query.order).map_err(bad)?;
    let count = found.len();
    // A further page begins behind the last one that was seen.
    let skip = match &query.skip_token {
        None => usize::try_from(query.skip).unwrap_or(usize::MAX),
        Some(token) => {
            let last = token.parse::<u64>().ok();
            let place = found.iter().position(|entity| Some(entity.number()) == last);
            let gone = || bad("the place in the list is gone; begin anew");
            place.ok_or_else(gone)? + 1
        }
    };
    let wanted = query.top.unwrap_or(u64::MAX);
    let limit = usize::try_from(wanted.min(PAGE)).unwrap_or(usize::MAX);
    let left = found.get(skip..).unwrap_or(&[]);
    let page = &left[..limit.min(left.len())];
    let mut files = 0;
    // The first one is always whole.
    let is_full = |entity: &T| {
        files += entity.files_within(expanded);
        files > FILES_WITHIN
    };
    let fitting = page.iter().position(is_full).map_or(page.len(), |full| full.max(1));
    let page = &page[..fitting.min(page.len())];
    let values = page.iter().map(|entity| query.selected(entity.json(expanded)));
    let values: Vec<Value> = values.collect::<Result<_, _>>().map_err(bad)?;
    let context = context(asker, &query.context_of(name));
    let mut value = json!({"@odata.context": context, "value": values});
    if query.is_counted {
        value["@odata.count"] = json!(count);
    }
    let shown = page.len() as u64;
    if let Some(last) = page.last().filter(|_| left.len() > page.len() && wanted > shown) {
        let top = query.top.map(|top| format!("$top={}", top - shown));
        let kept = request.query.iter().filter(|(name, _)| {
            !["top", "skip", "skiptoken"].contains(&name.trim_start_matches('$'))
        });
        let options: Vec<String> = kept
            .map(|(name, value)| format!("${}={}", name.trim_start_matches('$'), encoded(value)))
            .chain(top)
            .chain([format!("$skiptoken={}", last.number())])
            .collect();
        value["@odata.nextLink"] =
            json!(format!("{}{ROOT}/{name}?{}", asker.base, options.join("&")));
    }
    Ok(json_answer(&value))
}

/// What is behind `Sessions(ID)`.
fn one_session(
    request: &ServeRequest,
    id: &str,
    rest: &[&str],
    asker: Asker<'_>,
    sessions: &[Arc<ContactSession>],
) -> Result<ServeAnswer, ServeAnswer> {
    let found = number_of(id)
        .and_then(|number| sessions.iter().find(|session| session.number == number))
        .ok_or_else(|| ServeAnswer::problem(404, "there is no such session"))?;
    match rest {
        [] => {
            let query = ODataQuery::of(request).map_err(bad)?;
            let entity = SessionEntity(Arc::clone(found));
            let value = entity.json(expands(&query, "Sessions")?);
            let mut value = query.selected(value).map_err(bad)?;
            let set = query.context_of("Sessions");
            value["@odata.context"] = json!(context(asker, &format!("{set}/$entity")));
            Ok(json_answer(&value))
        }
        ["QualityInfo"] => Ok(json_answer(&json!({
            "@odata.context": context(asker, "QualityInfo"),
            "value": [quality(found)],
        }))),
        ["Files", rest @ ..] => {
            set(request, "Files", rest, asker, files_of(found).collect::<Vec<_>>())
        }
        _ => Err(ServeAnswer::problem(404, "a session has QualityInfo and Files")),
    }
}

/// What is behind `Files(ID)`.
fn one_file(
    request: &ServeRequest,
    id: &str,
    rest: &[&str],
    asker: Asker<'_>,
    sessions: &[Arc<ContactSession>],
) -> Result<ServeAnswer, ServeAnswer> {
    let found = number_of(id).map(ContactSession::of_file_number).and_then(|(number, block)| {
        let session = sessions.iter().find(|session| session.number == number)?;
        let place = session.files.iter().position(|file| file.block == block)?;
        Some(FileEntity { session: Arc::clone(session), place })
    });
    let found = found.ok_or_else(|| ServeAnswer::problem(404, "there is no such file"))?;
    match rest {
        [] => {
            let query = ODataQuery::of(request).map_err(bad)?;
            let value = found.json(expands(&query, "Files")?);
            let mut value = query.selected(value).map_err(bad)?;
            let set = query.context_of("Files");
            value["@odata.context"] = json!(context(asker, &format!("{set}/$entity")));
            Ok(json_answer(&value))
        }
        ["$value"] => {
            let file = found.file();
            let served = ItemFile {
                name: file.name.clone(),
                size: file.size,
                sha256: file.sha256,
                md5: None,
                cksum: None,
                is_metadata: false,
            };
            let mut answer = file_answer(request, &served, file.published);
            if let AnswerBody::File(body) = &mut answer.body {
                body.place = BodyPlace::Contacts;
            }
            Ok(answer)
        }
        _ => Err(ServeAnswer::problem(404, "a file has $value")),
    }
}

impl CelledEntity for SessionEntity {
    fn cell(&self, name: &str) -> Option<ODataCell> {
        let session = &*self.0;
        let text = |text: &str| ODataCell::Text(text.to_owned());
        Some(match name {
            "Id" => ODataCell::Uuid(uuid_of(session.number)),
            "SessionId" => text(&session.name),
            "NumChannels" => ODataCell::Number(1),
            "PublicationDate" => ODataCell::Time(session.published),
            "Satellite" => text(&session.of.mission),
            "StationUnitId" => text(&session.of.station),
            "DownlinkOrbit" => ODataCell::Number(0),
            "AcquisitionId" => ODataCell::Text(session.of.flow.to_string()),
            "AntennaId" => text(&session.of.channel),
            "FrontEndId" => text(FRONT_END),
            "Retransfer" => ODataCell::Bool(session.of.is_retransfer),
            "AntennaStatusOK" | "FrontEndStatusOK" => ODataCell::Bool(true),
            "PlannedDataStart" | "DownlinkStart" => ODataCell::Time(session.start),
            "PlannedDataStop" | "DownlinkStop" => ODataCell::Time(session.stop),
            "DownlinkStatusOK" => ODataCell::Bool(session.frames.uncorrectable == 0),
            "DeliveryPushOK" => ODataCell::Bool(session.progress != SessionProgress::Broken),
            _ => return None,
        })
    }
}

impl Entity for SessionEntity {
    fn number(&self) -> u64 {
        self.0.number
    }

    fn json(&self, expanded: Expanded) -> Value {
        let mut value = of_cells(self, &SESSION);
        if expanded.has_quality {
            value["QualityInfo"] = json!([quality(&self.0)]);
        }
        if expanded.has_files {
            let files = files_of(&self.0).map(|file| file.json(Expanded::default()));
            value["Files"] = files.collect();
        }
        value
    }

    fn files_within(&self, expanded: Expanded) -> usize {
        if expanded.has_files { self.0.files.len() } else { 0 }
    }
}

impl FileEntity {
    fn file(&self) -> &SessionFile {
        &self.session.files[self.place]
    }
}

impl CelledEntity for FileEntity {
    fn cell(&self, name: &str) -> Option<ODataCell> {
        let (session, file) = (&*self.session, self.file());
        Some(match name {
            "Id" => ODataCell::Uuid(uuid_of(session.file_number(file.block))),
            "Name" => ODataCell::Text(file.name.clone()),
            "SessionId" => ODataCell::Text(session.name.clone()),
            "Channel" => ODataCell::Number(1),
            "BlockNumber" => ODataCell::Number(u64::from(file.block)),
            "FinalBlock" => session.is_last(file).map_or(ODataCell::Null, ODataCell::Bool),
            "PublicationDate" => ODataCell::Time(file.published),
            "EvictionDate" => session.evicted.map_or(ODataCell::Null, ODataCell::Time),
            "Size" => ODataCell::Number(file.size),
            "Retransfer" => ODataCell::Bool(session.of.is_retransfer),
            _ => return None,
        })
    }
}

impl Entity for FileEntity {
    fn number(&self) -> u64 {
        self.session.file_number(self.file().block)
    }

    fn json(&self, _: Expanded) -> Value {
        of_cells(self, &FILE)
    }

    fn files_within(&self, _: Expanded) -> usize {
        0
    }
}

const SESSION: [&str; 19] = [
    "Id",
    "SessionId",
    "NumChannels",
    "PublicationDate",
    "Satellite",
    "StationUnitId",
    "DownlinkOrbit",
    "AcquisitionId",
    "AntennaId",
    "FrontEndId",
    "Retransfer",
    "AntennaStatusOK",
    "FrontEndStatusOK",
    "PlannedDataStart",
    "PlannedDataStop",
    "DownlinkStart",
    "DownlinkStop",
    "DownlinkStatusOK",
    "DeliveryPushOK",
];
const FILE: [&str; 10] = [
    "Id",
    "Name",
    "SessionId",
    "Channel",
    "BlockNumber",
    "FinalBlock",
    "PublicationDate",
    "EvictionDate",
    "Size",
    "Retransfer",
];

fn of_cells(entity: &dyn CelledEntity, names: &[&str]) -> Value {
    let cells = names.iter().map(|name| {
        let value = match entity.cell(name).unwrap_or(ODataCell::Null) {
            ODataCell::Text(text) | ODataCell::Uuid(text) => json!(text),
            ODataCell::Number(number) => json!(number),
            ODataCell::Time(time) => json!(milliseconds(time)),
            ODataCell::Bool(is_true) => json!(is_true),
            ODataCell::Null => Value::Null,
        };
        ((*name).to_owned(), value)
    });
    Value::Object(cells.collect())
}
/// The quality of the channel of a session.
fn quality(session: &ContactSession) -> Value {
    let SessionFrames { acquired, corrected, uncorrectable, data, corrected_data } = session.frames;
    let first = session.files.first().map(|file| milliseconds(file.published));
    let last = session.files.last().filter(|_| session.is_over());
    json!({
        "Id": uuid_of(session.number),
        "Channel": 1,
        "SessionId": session.name,
        "AcquiredTFs": acquired,
        "ErrorTFs": corrected + uncorrectable,
        "CorrectedTFs": corrected,
        "UncorrectableTFs": uncorrectable,
        "DataTFs": data,
        "ErrorDataTFs": corrected_data,
        "CorrectedDataTFs": corrected_data,
        "UncorrectableDataTFs": 0,
        "DeliveryStart": first,
        "DeliveryStop": last.map(|file| milliseconds(file.published)),
        "TotalChunks": session.files.len(),
        "TotalVolume": session.volume(),
    })
}

/// The schema (OData CSDL), as far as clients read it.
fn metadata() -> ServeAnswer {
    let property = |name: &str, kind: &str| {
        // Times are shown to the millisecond.
        let facet = if kind == "DateTimeOffset" { " Precision=\"3\"" } else { "" };
        format!("<Property Name=\"{name}\" Type=\"Edm.{kind}\"{facet}/>\n")
    };
    let of = |names: &[&str]| -> String {
        names.iter().filter(|name| **name != "Id").map(|name| property(name, kind(name))).collect()
    };
    let head = "<Key><PropertyRef Name=\"Id\"/></Key>\n<Property Name=\"Id\" Type=\"Edm.Guid\" \
                Nullable=\"false\"/>\n";
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<edmx:Edmx Version=\"4.0\" \
         xmlns:edmx=\"http://docs.oasis-open.org/odata/ns/edmx\">\n<edmx:DataServices><Schema \
         Namespace=\"OData.CSC\" xmlns=\"http://docs.oasis-open.org/odata/ns/edm\">\n<EntityType \
         Name=\"Session\">{head}{}<NavigationProperty Name=\"QualityInfo\" \
         Type=\"Collection(OData.CSC.QualityInfo)\" ContainsTarget=\"true\"/>\n\
         <NavigationProperty Name=\"Files\" Type=\"Collection(OData.CSC.File)\"/>\n\
         </EntityType>\n<EntityType Name=\"File\" \
         HasStream=\"true\">{head}{}</EntityType>\n<EntityType \
         Name=\"QualityInfo\">{head}{}</EntityType>\n<EntityContainer \
         Name=\"Container\"><EntitySet Name=\"Sessions\" EntityType=\"OData.CSC.Session\">\n\
         <NavigationPropertyBinding Path=\"Files\" Target=\"Files\"/>\n</EntitySet>\n\
         <EntitySet Name=\"Files\" EntityType=\"OData.CSC.File\"/>\n</EntityContainer>\n</Schema>\
         </edmx:DataServices>\n</edmx:Edmx>\n",
        of(&SESSION),
        of(&FILE),
        of(&QUALITY),
    );
    let mut answer = ServeAnswer::empty(200).header("content-type", "application/xml");
    answer.body = AnswerBody::Bytes(text.into());
    answer
}

const QUALITY: [&str; 14] = [
    "Channel",
    "SessionId",
    "AcquiredTFs",
    "ErrorTFs",
    "CorrectedTFs",
    "UncorrectableTFs",
    "DataTFs",
    "ErrorDataTFs",
    "CorrectedDataTFs",
    "UncorrectableDataTFs",
    "DeliveryStart",
    "DeliveryStop",
    "TotalChunks",
    "TotalVolume",
];

/// The type of a property.
fn kind(name: &str) -> &'static str {
    match name {
        "Retransfer" | "FinalBlock" | "DeliveryPushOK" => "Boolean",
        name if name.ends_with("OK") => "Boolean",
        name if name.ends_with("Date") || name.ends_with("Start") || name.ends_with("Stop") => {
            "DateTimeOffset"
        }
        name if name.ends_with("TFs") => "Int64",
        "NumChannels" | "Channel" | "BlockNumber" | "Size" | "TotalChunks" | "TotalVolume"
        | "DownlinkOrbit" => "Int64",
        _ => "String",
    }
}

#[cfg(test)]
mod tests;
