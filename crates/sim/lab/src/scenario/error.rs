//! Why a scenario file was refused: what, where, and what to do.

/// Why a scenario was refused. Whoever wrote the file must act.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}, {place}; help: {help}")]
pub struct ScenarioError {
    what: String,
    place: String,
    help: String,
}

impl ScenarioError {
    /// What is wrong.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// `file:line`, or the file where no one line is to blame.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What to do about it.
    pub fn help(&self) -> &str {
        &self.help
    }
}

/// A file that is being read, to say where in it something is wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub text: &'a str,
    /// Its name for people.
    pub name: &'a str,
}

impl Source<'_> {
    /// Something is wrong at a byte of the file.
    pub fn refuse(
        &self,
        at: usize,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> ScenarioError {
        let line = self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        ScenarioError {
            what: what.into(),
            place: format!("{}:{line}", self.name),
            help: help.into(),
        }
    }

    /// Something is wrong with the whole of it.
    pub fn refuse_whole(&self, what: impl Into<String>, help: impl Into<String>) -> ScenarioError {
        ScenarioError { what: what.into(), place: self.name.to_owned(), help: help.into() }
    }

    /// The TOML reader's sentence, with the place that it names.
    pub fn refuse_toml(&self, error: &toml::de::Error) -> ScenarioError {
        self.refuse_sentence(error.message(), error.span().map(|span| span.start))
    }

    /// A sentence that says what is wrong and what to do.
    pub fn refuse_sentence(&self, sentence: &str, at: Option<usize>) -> ScenarioError {
        let (what, help) = divide(&sentence.trim().replace('\n', " "));
        match at {
            Some(at) => self.refuse(at, what, help),
            None => self.refuse_whole(what, help),
        }
    }
}

/// Divides a reader's sentence into what is wrong and what to do.
fn divide(message: &str) -> (String, String) {
    if let Some((what, known)) = message.split_once(", expected ") {
        let known = known.trim_start_matches("one of ");
        if let Some(name) = what.strip_prefix("unknown field ") {
            return (format!("unknown key {name}"), format!("the keys here are {known}"));
        }
        if let Some(name) = what.strip_prefix("unknown variant ") {
            return (format!("{name} is not known here"), format!("write one of {known}"));
        }
        if let Some(found) = what.strip_prefix("invalid type: ") {
            let help = match known {
                "a string" => {
                    "it in quotes, a quantity with its unit: \"93 Mbit/s\", \"160 ms\", \"1 %\""
                }
                known => known,
            };
            return (
                format!("{found} stands where something else belongs"),
                format!("write {help}"),
            );
        }
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        return (format!("the key {name} is missing"), format!("add {name}"));
    }
    let parts = message.split_once("; ").or_else(|| message.split_once(": "));
    match parts {
        Some((what, help)) => (what.to_owned(), help.to_owned()),
        None => (message.to_owned(), "docs/how-to/lab.md shows every key with its form".to_owned()),
    }
}
