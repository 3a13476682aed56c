//! Steps that stations and centres share when they start.

use crate::address_family::AddressFamily;
use crate::fault::Fault;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_config::{Mtu, Node};
use skyhaul_net::{
    AnyEndpoint, Clock, Driver, SessionManager, Socket, TcpConfig, TcpEndpoint, UdpEndpoint,
};
use skyhaul_quic::{EndpointConfig, Identity, QuicEndpoint};
use skyhaul_transport::SessionConfig;
use skyhaul_units::ByteCount;
use std::fs::{self, DirBuilder};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};

/// The node's key.
pub fn identity(node: &Node) -> Result<Identity, Fault> {
    let text = private_key(&node.key).map_err(|error| {
        let help = match is_exposed(&error) {
            true => {
                format!(
                    "chmod 600 {}; make a new key if another user may have read it",
                    node.key.display()
                )
            }
            false => "make one with `skyhaul keygen`, or correct `key` in [node]".to_owned(),
        };
        Fault::environment(
            format!("the private key cannot be read ({error})"),
            node.key.display(),
            help,
        )
    })?;
    Identity::from_pem(&text).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.rsplit_once(": ").map_or(&*reason, |(reason, _)| reason);
        Fault::configuration(
            format!("the file holds no private key ({reason})"),
            node.key.display(),
            "correct `key` in [node], or make a new key with `skyhaul keygen`",
        )
    })
}

/// Reads a private key, or another secret, from a file that this user alone may read: or, where
/// another user owns it and lets a group read it, such as root in `/etc`, that group.
///
/// # Errors
/// It cannot be read; `PermissionDenied` without an error of the system where others may read it.
pub fn private_key(file: &Path) -> io::Result<String> {
    let opened = fs::File::open(file)?;
    let metadata = opened.metadata()?;
    if has_readers(&metadata) {
        let mode = metadata.mode() & 0o777;
        let said = format!("other users can read it, its mode is {mode:03o}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, said));
    }
    io::read_to_string(opened)
}

/// Whether other users can read a file.
pub fn is_shared(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| has_readers(&metadata))
}

/// Whether others can read a file, unless its owner lends it to this user's group.
fn has_readers(metadata: &fs::Metadata) -> bool {
    let mode = metadata.mode() & 0o777;
    let is_lent = metadata.uid() != rustix::process::geteuid().as_raw() && mode & 0o027 == 0;
    metadata.is_file() && mode & 0o077 != 0 && !is_lent
}

/// Whether [`private_key`] refused the file because others may read it.
pub fn is_exposed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// Makes the state folder, for this user alone, and makes sure that it can be written.
pub fn make_state_folder(folder: &Path) -> Result<(), Fault> {
    // What fails here fails below, with its reason.
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    make_folder(folder)?;
    let mode = fs::metadata(folder).map_or(0, |metadata| metadata.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let folder = folder.display();
        tracing::warn!(
            "other users can enter the state folder {folder}, its mode is {mode:03o}: run chmod \
            700 {folder}"
        );
    }
    Ok(())
}

/// Makes a folder, and makes sure that it can be written.
pub fn make_folder(folder: &Path) -> Result<(), Fault> {
    let outcome = fs::create_dir_all(folder).and_then(|()| try_to_write(folder));
    outcome.map_err(|error| {
        let help = "give this user write permission there, or configure another folder";
        Fault::environment(
            format!("the folder cannot be written ({error})"),
            folder.display(),
            help,
        )
    })
}

/// Creates a file in the folder and drops it. The file has no name where the file system can do
/// that: a node that is killed meanwhile leaves nothing behind.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let unnamed = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(folder, unnamed, Mode::RUSR | Mode::WUSR) {
        Ok(_) => Ok(()),
        // Not on NFS and some overlays; old kernels take it for opening the folder itself.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            let probe = folder.join(".skyhaul-probe");
            fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe))
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens a UDP socket. Where the system chooses the port, it chooses one that TCP can listen on
/// too.
pub fn socket_beside_tcp(bind: SocketAddr) -> io::Result<Socket> {
    for _ in 1..PORT_ATTEMPTS {
        let socket = Socket::bind(bind)?;
        if bind.port() != 0 || TcpListener::bind(socket.local_addr()?).is_ok() {
            return Ok(socket);
        }
    }
    Socket::bind(bind)
}

/// Attempts to find such a port: connections over TCP hold a few ports in a thousand on a busy
/// host.
const PORT_ATTEMPTS: u32 = 8;

/// The state folder cannot be used.
pub fn disk_fault(folder: &Path, error: &io::Error) -> Fault {
    if error.kind() == io::ErrorKind::ResourceBusy {
        let help = "stop that node, or give this one another state folder";
        return Fault::environment("another node uses this state folder", folder.display(), help);
    }
    let help = "repair the disk or the permissions, then restart the node";
    Fault::environment(format!("the state folder cannot be used ({error})"), folder.display(), help)
}

/// The reason of the alarm about a state file of which one copy was damaged.
pub const STATE_MENDED: &str =
    "one of two copies was damaged; the other copy was used, no data is lost; check the disk";

/// The state folder was moved or removed while the node ran.
pub fn gone(error: &io::Error) -> Fault {
    let help = "restore or mount the folder, then restart the node: no data was acknowledged since";
    Fault::environment("the state folder is gone", error, help)
}

/// The built-in missions and those of the configuration's files and folders.
pub fn missions(paths: &[PathBuf]) -> Result<MissionSet, Fault> {
    let mut set = MissionSet::built_in();
    for path in paths {
        let files = if path.is_dir() { toml_files(path) } else { Ok(vec![path.clone()]) };
        for file in files.map_err(|error| unreadable(path, &error))? {
            set.add(mission_file(&file)?).map_err(|mission| {
                let help =
                    "give each mission its own name and spacecraft, or remove one of the files";
                Fault::configuration(
                    format!("mission `{}` is defined twice", mission.name()),
                    file.display(),
                    help,
                )
            })?;
        }
    }
    Ok(set)
}

/// The mission in a file.
pub fn mission_file(file: &Path) -> Result<Mission, Fault> {
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    Mission::from_toml(&text).map_err(|error| {
        Fault::configuration(
            format!("the mission cannot be used: {error}"),
            file.display(),
            "correct the mission file",
        )
    })
}

fn toml_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path, error: &io::Error) -> Fault {
    let what = format!("the mission cannot be read ({error})");
    Fault::environment(
        what,
        path.display(),
        "correct `missions`, or give this user read permission",
    )
}

/// A session manager on an endpoint, which is at `place`.
pub fn driver(
    endpoint: AnyEndpoint,
    place: &str,
    window: SessionMemory,
    clock: Clock,
) -> Result<Driver, Fault> {
    let session = SessionConfig {
        receive_window: window.receive,
        send_buffer: window.send,
        utc_at_zero: clock.utc_at_start(),
        ..SessionConfig::default()
    };
    Driver::new(SessionManager::new(endpoint, session), clock).map_err(|error| {
        Fault::environment(
            format!("the line cannot start ({error})"),
            place,
            "close files of other programs",
        )
    })
}

/// Less than this is 170 ms at 93 Mbit/s: about as long as a busy machine keeps a thread from
/// running.
const RECEIVE_BUFFER_MIN: ByteCount = ByteCount::mib(2);

/// Starts QUIC on a UDP socket; `place` names it in errors.
pub fn endpoint(
    socket: io::Result<Socket>,
    place: &str,
    config: EndpointConfig,
) -> Result<UdpEndpoint, Fault> {
    let socket = socket.map_err(|error| {
        let help = "stop the program that uses the port, or configure another address and port of \
                   this host";
        Fault::environment(format!("the UDP port cannot be used ({error})"), place, help)
    })?;
    let buffers = socket.buffers();
    if buffers.receive < RECEIVE_BUFFER_MIN {
        tracing::warn!(
            "the system grants {} of the {} receive buffer requested: raise net.core.rmem_max to \
            avoid loss on this host",
            buffers.receive,
            buffers.wanted
        );
    }
    let quic = QuicEndpoint::new(config).map_err(|error| {
        Fault::configuration(
            error.to_string(),
            "mtu",
            "write an mtu from \"1280 B\" up to the line's largest IP packet",
        )
    })?;
    Ok(UdpEndpoint::new(quic, socket))
}

/// TLS over TCP, at `place`; on a socket that listens already, where one is given.
pub fn over_tcp(
    config: TcpConfig,
    given: Option<OwnedFd>,
    place: &str,
) -> Result<TcpEndpoint, Fault> {
    let opened = match given {
        Some(listener) => TcpEndpoint::open_on(config, listener),
        None => TcpEndpoint::open(config),
    };
    opened.map_err(|error| {
        let help = "stop the program that uses the port, or write `tcp = false` under [[listen]]";
        Fault::environment(format!("the TCP port cannot be used ({error})"), place, help)
    })
}

/// The memory of a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionMemory {
    /// For blocks that arrive.
    pub receive: ByteCount,
    /// For blocks that leave.
    pub send: ByteCount,
}

/// The largest UDP payload on a line with this largest IP packet.
pub fn udp_payload(mtu: Mtu, family: AddressFamily) -> u16 {
    u16::try_from(mtu.size().as_u64().saturating_sub(family.headers())).unwrap_or(u16::MAX)
}

/// Starts a thread.
pub fn thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Fault> {
    Builder::new().name(name.to_owned()).spawn(body).map_err(|error| {
        Fault::environment(
            format!("cannot start a thread ({error})"),
            name,
            "raise this user's process limit (ulimit -u)",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_the_system_chooses_is_free_for_tcp_too() {
        let socket = socket_beside_tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        TcpListener::bind(socket.local_addr().unwrap()).unwrap();
    }

    #[test]
    fn a_folder_that_was_tried_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        make_folder(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
