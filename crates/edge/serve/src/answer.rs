//! An answer: status, headers, and a body that is bytes or slices of a file.

use bytes::Bytes;
use serde_json::{Value, json};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeAnswer {
    /// The status.
    pub status: u16,
    /// The headers, without those that every answer has.
    pub headers: Vec<(&'static str, String)>,
    /// The body. For a HEAD its length counts.
    pub body: AnswerBody,
}

/// A body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerBody {
    /// These bytes.
    Bytes(Bytes),
    /// Slices of a published file, with bytes between them.
    File(FileBody),
}

/// A folder of files that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyPlace {
    /// That of products.
    Products,
    /// That of the files of contacts.
    Contacts,
}

/// Slices of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBody {
    /// Where the file is.
    pub place: BodyPlace,
    /// The name of the file there.
    pub name: String,
    /// The bytes that the file must have.
    pub size: u64,
    /// What goes out, in order.
    pub slices: Vec<FileSlice>,
}

/// A part of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSlice {
    /// These bytes.
    Bytes(Bytes),
    /// Bytes of the file.
    Span(ByteSpan),
}

/// Bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSpan {
    /// The first one.
    pub from: u64,
    /// How many.
    pub len: u64,
}

impl ServeAnswer {
    /// An answer without a body.
    pub const fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: AnswerBody::Bytes(Bytes::new()) }
    }

    /// An answer of JSON.
    pub fn json(status: u16, value: &Value) -> Self {
        Self::json_as(status, "application/json", value)
    }

    /// An answer of JSON under another name.
    pub fn json_as(status: u16, media: &str, value: &Value) -> Self {
        let bytes = value.to_string().into();
        let headers = vec![("content-type", media.to_owned())];
        Self { status, headers, body: AnswerBody::Bytes(bytes) }
    }

    /// A refusal: one sentence, as OGC API - Features 7.5.1 has it.
    pub fn problem(status: u16, what: &str) -> Self {
        Self::json(status, &json!({"code": code(status), "description": what}))
    }

    /// With one more header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The value of a header.
    pub fn header_of(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The bytes of its body.
    pub fn len(&self) -> u64 {
        match &self.body {
            AnswerBody::Bytes(bytes) => bytes.len() as u64,
            AnswerBody::File(file) => file.len(),
        }
    }

    /// Whether it has no body.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The body as text; empty where it is a file's.
    pub fn text(&self) -> String {
        match &self.body {
            AnswerBody::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            AnswerBody::File(_) => String::new(),
        }
    }
}

impl FileBody {
    /// The bytes that go out.
    pub fn len(&self) -> u64 {
        let of = |slice: &FileSlice| match slice {
            FileSlice::Bytes(bytes) => bytes.len() as u64,
            FileSlice::Span(span) => span.len,
        };
        self.slices.iter().map(of).sum()
    }

    /// Whether none goes out.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The word for a status, for programs.
pub const fn code(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "ContentTooLarge",
        414 => "UriTooLong",
        415 => "UnsupportedMediaType",
        416 => "RangeNotSatisfiable",
        421 => "MisdirectedRequest",
        429 => "TooManyRequests",
        501 => "NotImplemented",
        503 => "ServiceUnavailable",
        _ => "InternalServerError",
    }
}
