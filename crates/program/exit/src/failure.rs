//! The failure of a command, and its exit code.

/// Who must act, as an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The result is not as asked: data is missing or differs.
    Result = 1,
    /// The configuration or the command line is wrong.
    Usage = 2,
    /// This machine refused: a file, folder, disk or port.
    Environment = 3,
    /// The other end refused, or speaks another version.
    Peer = 4,
    /// Interrupted before there was a result.
    Interrupted = 130,
}

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("error: {what}; help: {help}")]
pub struct Failure {
    exit: Exit,
    what: String,
    help: String,
    source: Option<std::io::Error>,
}

impl Exit {
    /// The exit codes as `--help` shows them.
    pub const TABLE: &str = "Exit codes:
  0    done, and the result is as asked
  1    done, but the result is not as asked: data is missing or differs
  2    the command line or a configuration is wrong
  3    this machine refused: a file, folder, disk or port
  4    the other end refused, or speaks another version
  130  interrupted before a result";
}

impl Failure {
    /// With the fault and the remedy.
    pub fn new(exit: Exit, what: &str, help: &str) -> Self {
        Self { exit, what: what.to_owned(), help: help.to_owned(), source: None }
    }
    /// This machine refused to read or write.
    pub fn io(what: &str, place: &str, help: &str, source: std::io::Error) -> Self {
        Self {
            exit: Exit::Environment,
            what: format!("{what} ({source}), {place}"),
            help: help.to_owned(),
            source: Some(source),
        }
    }
    /// From an error text with the fault, then `; ` (or in short ones `: `) and the remedy.
    pub fn from_sentence(exit: Exit, sentence: &str) -> Self {
        let parts = sentence.split_once("; ").or_else(|| sentence.rsplit_once(": "));
        let (what, help) = parts.unwrap_or((sentence, "see the command's --help"));
        Self::new(exit, what, help)
    }
    /// The same failure, where another one must act.
    pub fn with(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }
    /// The same failure, saying where.
    pub fn at(mut self, place: &str) -> Self {
        self.what = format!("{}, {place}", self.what);
        self
    }
    /// The same failure, whose remedy begins with a guess.
    pub fn suggesting(mut self, guess: &str) -> Self {
        self.help = format!("{guess} Or {}", self.help);
        self
    }
    /// The code that the program ends with.
    pub fn exit(&self) -> Exit {
        self.exit
    }
    /// Whether the reader of standard output has closed the pipe.
    pub fn is_closed_pipe(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

impl From<std::io::Error> for Failure {
    /// For writing the result. Other reads and writes describe themselves with [`Failure::io`].
    fn from(source: std::io::Error) -> Self {
        Self::io(
            "the result cannot be written",
            "standard output",
            "write it to a file or pipe with free space",
            source,
        )
    }
}
