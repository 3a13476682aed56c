//! A transfer from its first message to its last, at the calling and at the called end.

use crate::asked::Asked;
use crate::cancel::Cancel;
use crate::claims::Claims;
use crate::end::TransferEnd;
use crate::event::TransferReports;
use crate::place::{Directory, refusal};
use crate::receive::Receiving;
use crate::rights::{unreadable, unwritable};
use crate::send::{FileSource, Sending};
use crate::talk::{hear, say};
use rustix::io::Errno;
use skyhaul::{Block, ClassId, ClassTree, Session};
use skyhaul_files::wire::{CONTROL, Message, Naming, TransferDirection, TransferHello, WireError};
use skyhaul_files::{RefusalReason, RelPath, Selection, SelectionError, TransferRefusal};
use skyhaul_net::Clock;

/// The task of the calling end.
pub struct TransferTask {
    /// The request to the far end.
    pub hello: TransferHello,
    /// The class of this end that it is sent under; of [`TransferDirection::Put`].
    pub class: ClassId,
    /// What is sent; of [`TransferDirection::Put`].
    pub sources: Vec<FileSource>,
    /// Where it goes; of [`TransferDirection::Get`]. With [`Naming::As`] in the greeting it is the
    /// folder above that: the target is made in it as a folder where the far end says that the
    /// source is more than a file.
    pub into: Option<Directory>,
}

/// The permissions of the called end.
#[derive(Debug, Clone)]
pub struct Root {
    /// The folder that is served; no path leads out of it.
    pub place: Directory,
    /// Whether files may be fetched.
    pub read: bool,
    /// Whether files may be put.
    pub write: bool,
    /// The files that its sessions are writing.
    pub claims: Claims,
    /// The classes that fetched files can use.
    pub classes: ClassTree,
}

/// Carries out `task` over `link`.
///
/// # Errors
/// See [`TransferEnd`]. Failures of single entries are told to `reports`.
pub fn call(
    link: &Session,
    mut task: TransferTask,
    reports: &TransferReports,
    cancel: &Cancel,
) -> Result<(), TransferEnd> {
    let hello = task.hello;
    say(link, cancel, &Message::Hello(hello.clone()))?;
    match hello.direction {
        TransferDirection::Put => {
            let mut sending = Sending::new(link, cancel, reports, Clock::start());
            (sending.options, sending.class) = (hello.options, task.class);
            sending.selection = selection(&hello).map_err(pattern)?;
            if hello.naming == Naming::As && welcomed(link, cancel)? == Naming::As {
                let name = last(&hello.target)?;
                task.sources.iter_mut().for_each(|source| source.rename(name.clone()));
            }
            sending.run(&mut task.sources)
        }
        TransferDirection::Get => {
            let options = hello.options;
            let (claims, peer) = (Claims::default(), peer(link));
            let selection = Selection::default();
            let place = match hello.naming {
                Naming::As if welcomed(link, cancel)? == Naming::Into => below(task.into, &hello)?,
                Naming::As | Naming::Into => task.into,
            };
            Receiving { link, cancel, reports, options, selection, claims, peer }.run(place)
        }
        // Such requests are not a transfer ([`crate::FileRequests`]).
        TransferDirection::Ask => Ok(()),
    }
}

/// The answer of the far end to the requested naming.
fn welcomed(link: &Session, cancel: &Cancel) -> Result<Naming, TransferEnd> {
    match hear(link, cancel)?.ok_or_else(|| TransferEnd::lost(link))? {
        Message::Welcome(naming) => Ok(naming),
        Message::Refused(refusal) => Err(TransferEnd::Refused(refusal)),
        _ => Err(TransferEnd::Malformed("an unexpected message instead of the result".to_owned())),
    }
}

/// The last name of a path.
fn last(path: &RelPath) -> Result<RelPath, TransferEnd> {
    let name = path.split().and_then(|(_, name)| RelPath::new(name).ok());
    name.ok_or_else(|| TransferEnd::Malformed("a missing name".to_owned()))
}

/// Makes the target folder below `above`.
fn below(
    above: Option<Directory>,
    hello: &TransferHello,
) -> Result<Option<Directory>, TransferEnd> {
    let Some(above) = above.filter(|_| !hello.options.dry_run) else { return Ok(None) };
    let made = above.make(&hello.target);
    made.map(Some).map_err(|error| {
        TransferEnd::Here(refusal(&hello.target, "cannot be used as a folder", error))
    })
}

/// Carries out the request of the node at the far end of `link`, as far as `root` permits.
///
/// # Errors
/// See [`TransferEnd`].
pub fn serve(
    link: &Session,
    root: &Root,
    reports: &TransferReports,
    cancel: &Cancel,
) -> Result<(), TransferEnd> {
    let Some(first) = cancel.or(link.recv()).ok_or(TransferEnd::Cancelled)? else {
        return Err(TransferEnd::lost(link));
    };
    let asked = match Message::decode(&first.bytes) {
        Ok(Message::Hello(hello)) => begin(link, root, hello, reports, cancel),
        Ok(_) => Err(TransferEnd::Malformed("no Hello message".to_owned())),
        Err(WireError::Version(_)) => {
            let sentence = "the far end uses another version of the file transfer; install the \
                           same version at both ends";
            Err(TransferEnd::Refused(TransferRefusal::new(RefusalReason::Version, sentence)))
        }
        Err(error) => Err(error.into()),
    };
    drop(first);
    match &asked {
        Err(TransferEnd::Refused(refused)) => {
            say(link, cancel, &Message::Refused(refused.clone()))?;
        }
        // Another call would fail in the same way: the far end is told so.
        Err(TransferEnd::Malformed(what)) => {
            let sentence = format!(
                "the far end received an invalid message ({what}); install the same version at \
                both ends"
            );
            // It may have ended.
            let _ = say(
                link,
                cancel,
                &Message::Refused(TransferRefusal::new(RefusalReason::Version, &sentence)),
            );
        }
        Ok(()) | Err(TransferEnd::Here(_) | TransferEnd::Lost(_) | TransferEnd::Cancelled) => {}
    }
    asked
}

/// Refuses the request of the node at the far end of `link`.
///
/// # Errors
/// See [`TransferEnd`].
pub fn decline(
    link: &Session,
    reason: RefusalReason,
    sentence: &str,
    cancel: &Cancel,
) -> Result<(), TransferEnd> {
    let refused = Message::Refused(TransferRefusal::new(reason, sentence));
    let block = Block { priority: 0, ..Block::reliable(CONTROL, refused.encode()) };
    let sent = cancel
        .or(link.send(block))
        .ok_or(TransferEnd::Cancelled)?
        .map_err(|_| TransferEnd::lost(link))?;
    // The link may be closed next: wait until the refusal is delivered.
    cancel.or(sent).map(drop).ok_or(TransferEnd::Cancelled)
}

fn begin(
    link: &Session,
    root: &Root,
    hello: TransferHello,
    reports: &TransferReports,
    cancel: &Cancel,
) -> Result<(), TransferEnd> {
    let (options, selection) = (hello.options, selection(&hello).map_err(pattern)?);
    match hello.direction {
        TransferDirection::Put => {
            if !root.write {
                return Err(TransferEnd::Refused(unwritable()));
            }
            let (naming, place) = opened(root, &hello)?;
            say(link, cancel, &Message::Welcome(naming))?;
            let (claims, peer) = (root.claims.clone(), peer(link));
            Receiving { link, cancel, reports, options, selection, claims, peer }.run(place)
        }
        TransferDirection::Get => {
            if !root.read {
                return Err(TransferEnd::Refused(unreadable()));
            }
            let class = class(&root.classes, &hello.class)?;
            let (mut sources, mut missing) = (Vec::new(), Vec::new());
            for path in &hello.sources {
                match FileSource::below(&root.place, path) {
                    Ok(found) => sources.extend(found),
                    Err(error) => {
                        let refused = TransferRefusal::new(
                            RefusalReason::Absent,
                            &format!("{path} cannot be sent: {error}"),
                        );
                        missing.push(Message::Missing(path.clone(), refused));
                    }
                }
            }
            let naming = match sources.len() > 1 || sources.iter().any(|source| !source.is_single())
            {
                true => Naming::Into,
                false => hello.naming,
            };
            if naming == Naming::As {
                let name = last(&hello.target)?;
                sources.iter_mut().for_each(|source| source.rename(name.clone()));
            }
            say(link, cancel, &Message::Welcome(naming))?;
            for message in &missing {
                say(link, cancel, message)?;
            }
            let mut sending = Sending::new(link, cancel, reports, Clock::start());
            (sending.options, sending.selection, sending.tells) = (options, selection, true);
            sending.class = class;
            sending.run(&mut sources)
        }
        TransferDirection::Ask => {
            let Root { place, read, write, .. } = root;
            Asked { link, cancel, place, read: *read, write: *write }.run()
        }
    }
}

/// The target of put files: into the named folder, or under the given name.
fn opened(root: &Root, hello: &TransferHello) -> Result<(Naming, Option<Directory>), TransferEnd> {
    let open = |path: &RelPath| match hello.options.dry_run {
        true => root.place.folder(path),
        false => root.place.make(path),
    };
    let above = hello.target.split().filter(|_| hello.naming == Naming::As).map(|(above, _)| above);
    let (naming, place) = match (above, root.place.folder(&hello.target)) {
        (Some(above), Err(Errno::NOENT | Errno::NOTDIR)) => (Naming::As, open(&above)),
        (None, Err(Errno::NOENT)) => (Naming::Into, open(&hello.target)),
        (_, found) => (Naming::Into, found),
    };
    match place {
        Err(Errno::NOENT) if hello.options.dry_run => Ok((naming, None)),
        Err(error) => {
            Err(TransferEnd::Refused(refusal(&hello.target, "cannot be used as a folder", error)))
        }
        Ok(place) => Ok((naming, Some(place))),
    }
}

fn class(classes: &ClassTree, name: &str) -> Result<ClassId, TransferEnd> {
    if name.is_empty() {
        return Ok(classes.default_leaf());
    }
    classes.find(name).ok_or_else(|| {
        let known: Vec<&str> = classes.leaves().map(|(_, name)| name).collect();
        let sentence =
            format!("there is no class `{name}` there; set --class to one of {}", known.join(", "));
        TransferEnd::Refused(TransferRefusal::new(RefusalReason::NotAllowed, &sentence))
    })
}

fn selection(hello: &TransferHello) -> Result<Selection, SelectionError> {
    Selection::new(hello.rules.clone())
}

fn pattern(error: SelectionError) -> TransferEnd {
    TransferEnd::Refused(TransferRefusal::new(RefusalReason::Failed, &error.to_string()))
}

fn peer(link: &Session) -> String {
    link.peer().map_or_else(String::new, |peer| peer.to_string())
}
