//! A transfer from its first message to its last, at the end that calls and at the one that is called.

use crate::cancel::Cancel;
use crate::claims::Claims;
use crate::event::Reports;
use crate::place::{Place, refusal};
use crate::receive::Receiving;
use crate::send::{Sending, Source};
use skyhaul::{Block, ClassId, ClassTree, Session};
use skyhaul_files::wire::{CONTROL, Direction, Hello, Message, WireError};
use skyhaul_files::{Reason, Refusal, Selection, SelectionError};
use skyhaul_net::Clock;

/// What the calling end does.
pub struct Task {
    /// What the far end is told.
    pub hello: Hello,
    /// The class of this end that it is sent under; of [`Direction::Put`].
    pub class: ClassId,
    /// What is sent; of [`Direction::Put`].
    pub sources: Vec<Source>,
    /// Where it goes; of [`Direction::Get`].
    pub into: Option<Place>,
}

/// What the called end lets be done.
#[derive(Debug, Clone)]
pub struct Root {
    /// The folder that nothing leads out of.
    pub place: Place,
    /// Whether files may be fetched.
    pub read: bool,
    /// Whether files may be put.
    pub write: bool,
    /// Of all its sessions.
    pub claims: Claims,
    /// The classes that what is fetched can go under.
    pub classes: ClassTree,
}

/// How a transfer did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The far end does not do it, or this one.
    Refused(Refusal),
    /// The session has ended.
    Lost(String),
    /// The far end said what cannot be.
    Malformed(String),
    /// It was ended from outside.
    Cancelled,
}

/// Carries out `task` over `link`.
///
/// # Errors
/// See [`End`]. What could not be done with single entries was told to `reports`.
pub fn call(link: &Session, mut task: Task, reports: &Reports, cancel: &Cancel) -> Result<(), End> {
    let hello = task.hello;
    say(link, cancel, &Message::Hello(hello.clone()))?;
    match hello.direction {
        Direction::Put => {
            let mut sending = Sending::new(link, cancel, reports, Clock::start());
            (sending.options, sending.class) = (hello.options, task.class);
            sending.selection = selection(&hello).map_err(pattern)?;
            sending.run(&mut task.sources)
        }
        Direction::Get => {
            let options = hello.options;
            let (claims, peer) = (Claims::default(), peer(link));
            let selection = Selection::default();
            Receiving { link, cancel, reports, options, selection, claims, peer }.run(task.into)
        }
    }
}

/// Does what the node at the far end of `link` asks for, as far as `root` lets it.
///
/// # Errors
/// See [`End`].
pub fn serve(link: &Session, root: &Root, reports: &Reports, cancel: &Cancel) -> Result<(), End> {
    let Some(first) = cancel.or(link.recv()).ok_or(End::Cancelled)? else { return Err(End::lost(link)) };
    let asked = match Message::decode(&first.bytes) {
        Ok(Message::Hello(hello)) => begin(link, root, hello, reports, cancel),
        Ok(_) => Err(End::Malformed("no greeting".to_owned())),
        Err(WireError::Version(_)) => {
            let sentence = "the far end speaks another version of the file transfer; install the same version at both ends";
            Err(End::Refused(Refusal::new(Reason::Version, sentence)))
        }
        Err(error) => Err(error.into()),
    };
    drop(first);
    if let Err(End::Refused(refused)) = &asked {
        say(link, cancel, &Message::Refused(refused.clone()))?;
    }
    asked
}

/// Tells the node at the far end of `link` that nothing is done here of what it asks for.
///
/// # Errors
/// See [`End`].
pub fn decline(link: &Session, reason: Reason, sentence: &str, cancel: &Cancel) -> Result<(), End> {
    let refused = Message::Refused(Refusal::new(reason, sentence));
    let block = Block { priority: 0, ..Block::reliable(CONTROL, refused.encode()) };
    let sent = cancel.or(link.send(block)).ok_or(End::Cancelled)?.map_err(|_| End::lost(link))?;
    // The link may be closed next: the far end is to hear of it.
    cancel.or(sent).map(drop).ok_or(End::Cancelled)
}

fn begin(link: &Session, root: &Root, hello: Hello, reports: &Reports, cancel: &Cancel) -> Result<(), End> {
    let (options, selection) = (hello.options, selection(&hello).map_err(pattern)?);
    match hello.direction {
        Direction::Put => {
            allowed(
                root.write,
                "be written to; the far end would have to be started with --write, or have `write = true` in [peer.files]",
            )?;
            let opened = if options.dry_run {
                root.place.folder(&hello.target)
            } else {
                root.place.make(&hello.target)
            };
            let place = match opened {
                Err(rustix::io::Errno::NOENT) if options.dry_run => None,
                other => Some(other.map_err(|error| {
                    End::Refused(refusal(&hello.target, "cannot be used as a folder", error))
                })?),
            };
            say(link, cancel, &Message::Welcome)?;
            let (claims, peer) = (root.claims.clone(), peer(link));
            Receiving { link, cancel, reports, options, selection, claims, peer }.run(place)
        }
        Direction::Get => {
            allowed(
                root.read,
                "be read from; the far end would have to be started without --write-only, or have `read = true` in [peer.files]",
            )?;
            let class = class(&root.classes, &hello.class)?;
            say(link, cancel, &Message::Welcome)?;
            let mut sources = Vec::new();
            for path in &hello.sources {
                match Source::below(&root.place, path) {
                    Ok(found) => sources.extend(found),
                    Err(error) => {
                        let refused =
                            Refusal::new(Reason::Absent, &format!("{path} cannot be sent: {error}"));
                        say(link, cancel, &Message::Missing(path.clone(), refused))?;
                    }
                }
            }
            let mut sending = Sending::new(link, cancel, reports, Clock::start());
            (sending.options, sending.selection, sending.tells) = (options, selection, true);
            sending.class = class;
            sending.run(&mut sources)
        }
    }
}

fn class(classes: &ClassTree, name: &str) -> Result<ClassId, End> {
    if name.is_empty() {
        return Ok(classes.default_leaf());
    }
    classes.find(name).ok_or_else(|| {
        let known: Vec<&str> = classes.leaves().map(|(_, name)| name).collect();
        let sentence =
            format!("there is no class `{name}` there; --class has to be one of {}", known.join(", "));
        End::Refused(Refusal::new(Reason::NotAllowed, &sentence))
    })
}

fn allowed(is: bool, what: &str) -> Result<(), End> {
    let refused = || End::Refused(Refusal::new(Reason::NotAllowed, &format!("its folder may not {what}")));
    if is { Ok(()) } else { Err(refused()) }
}

fn selection(hello: &Hello) -> Result<Selection, SelectionError> {
    Selection::new(hello.rules.clone())
}

fn pattern(error: SelectionError) -> End {
    End::Refused(Refusal::new(Reason::Failed, &error.to_string()))
}

fn peer(link: &Session) -> String {
    link.peer().map_or_else(String::new, |peer| peer.to_string())
}

fn say(link: &Session, cancel: &Cancel, message: &Message) -> Result<(), End> {
    let block = Block { priority: 0, ..Block::reliable(CONTROL, message.encode()) };
    let sent = cancel.or(link.send(block)).ok_or(End::Cancelled)?;
    sent.map(drop).map_err(|_| End::lost(link))
}

impl End {
    pub(crate) fn lost(link: &Session) -> Self {
        Self::Lost(link.closed().unwrap_or_else(|| "the session has ended".to_owned()))
    }
}

impl From<WireError> for End {
    fn from(error: WireError) -> Self {
        Self::Malformed(error.to_string())
    }
}
