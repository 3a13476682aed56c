//! The local status socket: a client that may connect sends one question or order, and gets one
//! line of JSON back.

use super::{
    ArchiveRequest, BackfillPage, BackfillRequest, CataloguePage, ConfigReport, DeliveryFilter,
    DeliveryPage, DeliveryReport, DestinationTrial, GapFilter, GapReport, GapsAsked, KeyReport,
    NodeStatus, OrderResult, OutletStatus, ReprocessReport, ReprocessRequest, SocketAccess,
    StatusReply, StatusRequest,
};
use crate::fault::Fault;
use crate::journal::EventPage;
use crate::upgrade::UpgradeOrder;
use skyhaul_events::AlarmStatus;
use skyhaul_history::{HistoryList, HistoryPage, HistoryQuery};
use skyhaul_net::option::{SocketCaller, caller};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Answers on a node's status socket until dropped.
#[derive(Debug)]
pub struct StatusServer {
    path: PathBuf,
    access: Arc<Mutex<SocketAccess>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Programs that are answered at a time; more wait their turn.
const AT_A_TIME: usize = 8;

/// How long one asker may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an order may take: a name that has to be looked up, a thread that is busy.
const ORDER: Duration = Duration::from_secs(10);
/// The longest reply: a node with 1,000 contacts sends less.
const LONGEST: u64 = 64 << 20;
/// A request holds a path's keys at most.
const LONGEST_REQUEST: u64 = 16 << 10;

impl StatusServer {
    /// Answers at `path` those whom `access` lets in, with what `reply` gives for the number of the
    /// user. A socket left over from a killed process is replaced.
    ///
    /// # Errors
    /// A node that runs answers there already, or the path cannot be used.
    #[allow(
        clippy::disallowed_methods,
        reason = "the socket is served beside the node's own threads"
    )]
    pub fn start(
        path: &Path,
        access: SocketAccess,
        reply: impl Fn(u32, StatusRequest) -> StatusReply + Send + Sync + 'static,
    ) -> Result<Self, Fault> {
        if UnixStream::connect(path).is_ok() {
            let help = "stop that node, or give this one another state folder";
            return Err(Fault::environment(
                "a node with this status socket is already running",
                path.display(),
                help,
            ));
        }
        let listener = listen(path, &access).map_err(|error| {
            let help =
                "set status_socket in [node] to a path of at most 103 bytes in a folder that this \
                user can write to";
            Fault::environment(format!("the status socket cannot be made \
                                       ({error})"), path.display(), help)
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let access = Arc::new(Mutex::new(access));
        let served = Arc::new((listener, Arc::clone(&access), reply));
        let serve = |_| {
            let (served, stopped) = (Arc::clone(&served), Arc::clone(&stop));
            std::thread::spawn(move || {
                let (listener, access, reply) = &*served;
                while let Ok((stream, _)) = listener.accept()
                    && !stopped.load(Ordering::Relaxed)
                {
                    answer(stream, access, reply);
                }
            })
        };
        let threads = (0..AT_A_TIME).map(serve).collect();
        Ok(Self { path: path.to_owned(), access, stop, threads })
    }

    /// Lets others in from now on. Returns whether that is another set.
    pub fn adopt(&self, access: SocketAccess) -> bool {
        let mut before = self.access.lock().unwrap_or_else(PoisonError::into_inner);
        if *before == access {
            return false;
        }
        // What the kernel lets through is checked too.
        let _ = std::fs::set_permissions(&self.path, permissions(&access));
        *before = access;
        true
    }
}

/// Others may connect where some of them may come; each is looked at then.
fn permissions(access: &SocketAccess) -> Permissions {
    Permissions::from_mode(if access.is_for_others() { 0o666 } else { 0o600 })
}

/// Binds the socket so that no other user can open it in between: it gets its name after its
/// permissions.
fn listen(path: &Path, access: &SocketAccess) -> std::io::Result<UnixListener> {
    let new = path.with_extension("new");
    let _ = std::fs::remove_file(&new);
    let listener = UnixListener::bind(&new)?;
    std::fs::set_permissions(&new, permissions(access))?;
    std::fs::rename(&new, path)?;
    Ok(listener)
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Each thread takes one call, and ends.
        let woken = self.threads.iter().all(|_| UnixStream::connect(&self.path).is_ok());
        let _ = std::fs::remove_file(&self.path);
        for thread in self.threads.drain(..).filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn answer(
    mut stream: UnixStream,
    access: &Mutex<SocketAccess>,
    reply: &impl Fn(u32, StatusRequest) -> StatusReply,
) {
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let Ok(SocketCaller { uid, .. }) = caller(&stream) else { return };
    let access = access.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // Who may not ask at all is not waited for.
    let known = access.check(uid, &StatusRequest::Status);
    let asked = known
        .and_then(|()| request(&stream))
        .and_then(|request| access.check(uid, &request).map(|()| request));
    let reply = match asked {
        Ok(request) => reply(uid, request),
        Err(fault) => StatusReply::Answer(Err(fault).into()),
    };
    let mut line =
        serde_json::to_vec(&reply).expect("the reply has no map with keys other than text");
    line.push(b'\n');
    // Who hangs up before the end does not want it.
    let _ = stream.write_all(&line);
}

/// The request; an empty one asks for the status.
fn request(stream: &UnixStream) -> Result<StatusRequest, Fault> {
    let refused = |reason: String| {
        let help = "use the release that the node runs";
        Fault::configuration(
            format!("the request cannot be read ({reason})"),
            "the status socket",
            help,
        )
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| refused(error.to_string()))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_REQUEST))
        .read_line(&mut line)
        .map_err(|error| refused(error.to_string()))?;
    if line.trim().is_empty() {
        return Ok(StatusRequest::Status);
    }
    serde_json::from_str(&line).map_err(|error| refused(error.to_string()))
}

/// Asks the node whose status socket is at `path`.
///
/// # Errors
/// No node answers there, or not in this version's form.
pub fn ask(path: &Path) -> Result<NodeStatus, Fault> {
    let text = exchange(path, &StatusRequest::Status, PATIENCE)?;
    read(path, &text)
}

/// Asks the centre whose status socket is at `path` for its gaps.
///
/// # Errors
/// No centre answers there, or not in this version's form.
pub fn ask_gaps(path: &Path) -> Result<GapReport, Fault> {
    of_centre(path, &StatusRequest::Gaps)
}

/// Makes the centre whose status socket is at `path` request unrecoverable frames again.
///
/// # Errors
/// No centre answers there, or it knows of no such gap.
pub fn ask_again(path: &Path, which: GapFilter) -> Result<GapsAsked, Fault> {
    of_centre(path, &StatusRequest::AskGaps(which))
}

/// Asks the node whose status socket is at `path` for a page of deliveries.
///
/// # Errors
/// No node answers there, or it receives nothing.
pub fn ask_deliveries(path: &Path, filter: DeliveryFilter) -> Result<DeliveryPage, Fault> {
    of_centre(path, &StatusRequest::Deliveries(filter))
}

/// Asks the node whose status socket is at `path` for one delivery.
///
/// # Errors
/// No node answers there, or it has no such delivery.
pub fn ask_delivery(path: &Path, id: u64) -> Result<DeliveryReport, Fault> {
    of_centre(path, &StatusRequest::Delivery { id })
}

/// Asks the node whose status socket is at `path` for a page of its catalogue.
///
/// # Errors
/// No node answers there, it receives nothing, or the filter is none.
pub fn ask_items(
    path: &Path,
    filter: Option<String>,
    after: Option<String>,
    limit: usize,
) -> Result<CataloguePage, Fault> {
    of_centre(path, &StatusRequest::Items { filter, after, limit })
}

/// Asks the node whose status socket is at `path` for its destinations of products.
///
/// # Errors
/// No node answers there, or it receives nothing.
pub fn ask_outlets(path: &Path) -> Result<Vec<OutletStatus>, Fault> {
    of_centre(path, &StatusRequest::Outlets)
}

/// Has the node whose status socket is at `path` try a destination that is a folder of another one.
///
/// # Errors
/// No node answers there, or the destination cannot be entered.
pub fn try_outlet(path: &Path, name: &str) -> Result<DestinationTrial, Fault> {
    of_centre(path, &StatusRequest::TryOutlet { name: name.to_owned() })
}

/// Asks the node whose status socket is at `path` for a page of products that were published
/// before.
///
/// # Errors
/// No node answers there, or it has no such subscription.
pub fn ask_backfill(path: &Path, request: BackfillRequest) -> Result<BackfillPage, Fault> {
    of_centre(path, &StatusRequest::Backfill(request))
}

/// Asks the archive of the node whose status socket is at `path`.
///
/// # Errors
/// No node answers there, or it receives nothing.
pub fn ask_archive<T: serde::de::DeserializeOwned>(
    path: &Path,
    request: ArchiveRequest,
) -> Result<T, Fault> {
    of_centre(path, &StatusRequest::Archive { order: request })
}

/// Orders products to be made again of the node whose status socket is at `path`, or asks what
/// became of that.
///
/// # Errors
/// No node answers there, or it has no such contacts.
pub fn ask_reprocess(path: &Path, request: ReprocessRequest) -> Result<ReprocessReport, Fault> {
    of_centre(path, &StatusRequest::Reprocess { order: request })
}

/// Asks the node whose status socket is at `path` for events behind number `since`.
///
/// # Errors
/// No node answers there, or its log cannot be read.
pub fn ask_events(path: &Path, since: u64, limit: usize) -> Result<EventPage, Fault> {
    of_centre(path, &StatusRequest::Events { since, limit })
}

/// Asks the node whose status socket is at `path` for the series of its history.
///
/// # Errors
/// No node answers there, or it keeps no history.
pub fn ask_history_list(path: &Path) -> Result<HistoryList, Fault> {
    of_centre(path, &StatusRequest::History { query: None })
}

/// Asks the node whose status socket is at `path` for a series over time.
///
/// # Errors
/// No node answers there, or nothing can be said.
pub fn ask_history(path: &Path, query: HistoryQuery) -> Result<HistoryPage, Fault> {
    of_centre(path, &StatusRequest::History { query: Some(query) })
}

/// Asks the node whose status socket is at `path` for its alarms.
///
/// # Errors
/// No node answers there, or not in this version's form.
pub fn ask_alarms(path: &Path) -> Result<Vec<AlarmStatus>, Fault> {
    let text = exchange(path, &StatusRequest::Alarms, PATIENCE)?;
    read(path, &text)
}

/// Asks the node whose status socket is at `path` for its keys, and those that it knows.
///
/// # Errors
/// No node answers there, or not in this version's form.
pub fn ask_keys(path: &Path) -> Result<KeyReport, Fault> {
    let text = exchange(path, &StatusRequest::Keys, PATIENCE)?;
    read(path, &text)
}

/// Asks a node how its configuration differs from its file.
///
/// # Errors
/// No node answers there, or not in this version's form.
pub fn ask_config(path: &Path) -> Result<ConfigReport, Fault> {
    let text = exchange(path, &StatusRequest::Config, PATIENCE)?;
    read(path, &text)
}

fn of_centre<T: serde::de::DeserializeOwned>(
    path: &Path,
    request: &StatusRequest,
) -> Result<T, Fault> {
    let text = exchange(path, request, ORDER)?;
    if let Ok(refused @ OrderResult::Refused { .. }) = serde_json::from_str::<OrderResult>(&text) {
        return Err(Result::<String, Fault>::from(refused).err().unwrap_or_else(|| {
            Fault::peer("the node does not answer this request", path.display(), "ask a centre")
        }));
    }
    read(path, &text)
}

/// Sends an order to the node whose status socket is at `path`, and returns its reply.
///
/// # Errors
/// No node answers there, or it cannot do so.
pub fn order(path: &Path, request: &StatusRequest) -> Result<String, Fault> {
    let text = exchange(path, request, ORDER)?;
    read::<OrderResult>(path, &text)?.into()
}

/// Orders the node whose status socket is at `path` to go on in another process, and returns its
/// reply, which comes once that process is ready.
///
/// # Errors
/// No node answers there, or the process cannot take over.
pub fn order_upgrade(
    path: &Path,
    binary: Option<PathBuf>,
    patience: skyhaul_units::Duration,
) -> Result<String, Fault> {
    let patience_s = u32::try_from(patience.as_millis() / 1_000).unwrap_or(u32::MAX).max(1);
    let request = StatusRequest::Upgrade { binary, patience_s };
    let wait = UpgradeOrder::longest(patience).to_std() + ORDER;
    let text = exchange(path, &request, wait)?;
    read::<OrderResult>(path, &text)?.into()
}

fn exchange(path: &Path, request: &StatusRequest, patience: Duration) -> Result<String, Fault> {
    let no_node = |error: &std::io::Error| {
        let (what, help) = match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                ("no node is running".to_owned(), "start it with `skyhaul run`")
            }
            ErrorKind::PermissionDenied => (
                format!("the node does not answer this user ({error})"),
                "run the command as the user that runs the node, or let this user in by [status]",
            ),
            _ => (format!("the node does not answer ({error})"), "start it with `skyhaul run`"),
        };
        Fault::environment(what, path.display(), help)
    };
    let talk = || {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(patience))?;
        let mut line = serde_json::to_vec(request).map_err(std::io::Error::other)?;
        line.push(b'\n');
        // Who may not ask is answered before the request is read: a whole answer stands then,
        // though the socket says that not all was taken.
        let sent = stream.write_all(&line);
        let mut text = Vec::new();
        let read = stream.take(LONGEST).read_to_end(&mut text);
        if !text.ends_with(b"\n") {
            sent.and(read.map(drop))?;
        }
        String::from_utf8(text).map_err(std::io::Error::other)
    };
    talk().map_err(|error| no_node(&error))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| {
        let help = "use the release that the node runs";
        Fault::peer(
            format!("the node's answer is not a status of this release ({error})"),
            path.display(),
            help,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::StationStatus;

    fn station() -> NodeStatus {
        let station = StationStatus { name: "polar".to_owned(), ..StationStatus::default() };
        NodeStatus { station: Some(station), ..NodeStatus::default() }
    }

    fn reply(_: u32, request: StatusRequest) -> StatusReply {
        match request {
            StatusRequest::Status => StatusReply::Status(Box::new(station())),
            StatusRequest::RemovePath { name } => {
                StatusReply::Answer(Ok(format!("{name} is gone")).into())
            }
            _ => StatusReply::Answer(Err(Fault::configuration("no", "here", "do not")).into()),
        }
    }

    #[test]
    fn orders_are_carried_and_their_outcome_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.sock");
        let _server = StatusServer::start(&path, SocketAccess::default(), reply).unwrap();
        let gone = order(&path, &StatusRequest::RemovePath { name: "x".to_owned() });
        assert_eq!(gone, Ok("x is gone".to_owned()));
        let refused =
            order(&path, &StatusRequest::AddPath { path: serde_json::Value::Null }).unwrap_err();
        assert_eq!(refused, Fault::configuration("no", "here", "do not"));
        for (said, wanted) in
            [("", "polar"), ("{\"ask\":\"status\"}\n", "polar"), ("nonsense\n", "cannot be read")]
        {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(said.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.contains(wanted), "{said}: {text}");
        }
    }

    #[test]
    fn a_program_that_says_nothing_keeps_nobody_else_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.sock");
        // Every thread but one has somebody whose answer is not asked for before all others have
        // theirs.
        let (go, gone) = std::sync::mpsc::sync_channel::<()>(0);
        let waiting = Mutex::new(gone);
        let server = StatusServer::start(&path, SocketAccess::default(), move |uid, request| {
            if matches!(request, StatusRequest::RemovePath { .. }) {
                let _ = waiting.lock().unwrap().recv();
            }
            reply(uid, request)
        });
        let slow: Vec<UnixStream> = (1..AT_A_TIME)
            .map(|_| {
                let mut stream = UnixStream::connect(&path).unwrap();
                let request = StatusRequest::RemovePath { name: "x".to_owned() };
                stream.write_all(&serde_json::to_vec(&request).unwrap()).unwrap();
                stream.write_all(b"\n").unwrap();
                stream
            })
            .collect();
        for _ in 0..3 {
            assert_eq!(ask(&path), Ok(station()));
        }
        drop(go);
        for mut stream in slow {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.contains("x is gone"), "{text}");
        }
        drop(server);
    }

    #[test]
    fn nobody_but_the_owner_may_ask() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.sock");
        let server = StatusServer::start(&path, SocketAccess::default(), reply).unwrap();
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        let entry = skyhaul_config::StatusEntry {
            readers: Some(skyhaul_config::UserNames(vec![skyhaul_config::UserName::Number(7)])),
            operators: None,
        };
        assert!(server.adopt(SocketAccess::of(&entry).unwrap()));
        assert_eq!(mode(), 0o666);
        assert!(!server.adopt(SocketAccess::of(&entry).unwrap()));
    }

    #[test]
    fn a_running_node_answers_and_a_stopped_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.sock");
        let server = StatusServer::start(&path, SocketAccess::default(), reply).unwrap();
        for _ in 0..3 {
            assert_eq!(ask(&path), Ok(station()));
        }
        let second = StatusServer::start(&path, SocketAccess::default(), reply).unwrap_err();
        assert!(second.to_string().contains("already running"), "{second}");
        drop(server);
        let gone = ask(&path).unwrap_err();
        assert!(gone.to_string().starts_with("no node is running, "), "{gone}");
    }

    #[test]
    fn a_socket_left_over_from_a_killed_node_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let _server = StatusServer::start(&path, SocketAccess::default(), reply).unwrap();
        assert_eq!(ask(&path), Ok(station()));
    }
}
