//! What carries orders out, as the page's server sees it.

use skyhaul_history::HistoryQuery;
use skyhaul_serve::{AnswerBody, ServeAnswer};
use skyhaul_units::Utc;
use skyhaul_web::access::{WebOrder, WebOwner};
use skyhaul_web::{EventsAsked, WebQuestion};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What carries orders out: the node. It may wait for disks.
pub trait WebDesk: Send + Sync {
    /// Carries an order out, and answers it.
    fn give(&self, order: WebOrder, giver: &OrderGiver) -> ServeAnswer;

    /// Answers a question that a look does not.
    fn ask(&self, question: &WebQuestion) -> ServeAnswer;

    /// The series of the history, or one of them over time, as an answer.
    fn history(&self, query: Option<HistoryQuery>) -> ServeAnswer;

    /// Events of the log.
    ///
    /// # Errors
    /// The refusal of what is asked for, or of the disk.
    fn events(&self, asked: &EventsAsked) -> Result<EventsFound, ServeAnswer>;

    /// The number of the last event that is kept.
    fn last_event(&self) -> u64;

    /// Notes who came, or who is kept out.
    fn note(&self, news: AccessNews);

    /// Keeps when tokens were last used, by their names.
    fn keep_uses(&self, uses: &BTreeMap<String, Utc>);
}

/// Events that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsFound {
    /// In the order that was asked for.
    pub rows: Vec<FoundEvent>,
    /// Numbers between them that are not kept.
    pub holes: Vec<NumberHole>,
    /// Where the next page goes on; none behind the oldest one.
    pub next: Option<u64>,
    /// The number of the last event that is kept.
    pub last: u64,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundEvent {
    /// Its number.
    pub number: u64,
    /// As JSON, in one line.
    pub json: String,
}

/// Numbers of events that are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberHole {
    /// The first of them.
    pub from: u64,
    /// The last of them.
    pub to: u64,
}

impl NumberHole {
    fn json(&self) -> String {
        let Self { from, to } = self;
        format!("{{\"from\":{from},\"to\":{to}}}")
    }

    /// As an event of a stream.
    pub fn as_sent(&self) -> String {
        format!("event: hole\nid: {}\ndata: {}\n\n", self.to, self.json())
    }
}

impl EventsFound {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.holes.is_empty()
    }

    /// As an answer.
    pub fn answer(&self) -> ServeAnswer {
        let rows: Vec<&str> = self.rows.iter().map(|row| &*row.json).collect();
        let holes: Vec<String> = self.holes.iter().map(NumberHole::json).collect();
        let next = self.next.map_or_else(|| "null".to_owned(), |next| next.to_string());
        let (rows, holes, last) = (rows.join(","), holes.join(","), self.last);
        let text =
            format!("{{\"rows\":[{rows}],\"holes\":[{holes}],\"next\":{next},\"last\":{last}}}");
        ServeAnswer {
            status: 200,
            headers: vec![("content-type", "application/json".to_owned())],
            body: AnswerBody::Bytes(text.into()),
        }
        .header("cache-control", "no-store")
    }
}

/// Who gives an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderGiver {
    /// Who.
    pub owner: WebOwner,
    /// Where from.
    pub address: IpAddr,
}

/// What happened at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessNews {
    /// Somebody has logged in.
    LoggedIn {
        /// Who.
        user: String,
        /// Where from.
        address: IpAddr,
    },
    /// Too many logins have failed: the next ones from there, or of this user, have to wait.
    Shut {
        /// The name that was given.
        user: String,
        /// Where from.
        address: IpAddr,
    },
}
