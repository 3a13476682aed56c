//! Servers of other makers on this machine, as consumers of products. Each runs in a folder of its
//! own below the demonstration's, and listens on loopback.

use super::wait::pause;
use rustix::process::{Pid, Signal, kill_process};
use skyhaul_exit::Failure;
use skyhaul_units::Duration;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server, ended when it is dropped.
pub struct ServerProcess(Child);

/// A server with its `[[destination]]`; or, in a sentence, what this machine lacks.
pub type FoundServer = Result<(ServerProcess, String), String>;

/// Starts a server in a folder.
pub type ServerStart = fn(&Path) -> Result<FoundServer, Failure>;

/// OpenSSH's server, for the user of the demonstration alone.
pub struct SftpServer;

/// An object store.
pub struct ObjectStore;

/// Where Debian has it; other systems have it there too.
const SSHD: &str = "/usr/sbin/sshd";
/// A server listens within so many looks.
const LOOKS: u32 = 200;
const LOOK: Duration = Duration::from_millis(50);
const BUCKET: &str = "products";
const ACCESS: &str = "demo";
const SECRET: &str = "demo-secret";

impl SftpServer {
    /// Starts it in `root`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn start(root: &Path) -> Result<FoundServer, Failure> {
        let absent = |what: &str| {
            Ok(Err(format!(
                "no SFTP server: {what}; `scripts/setup demo` installs it, as the package \
                 openssh-server"
            )))
        };
        if !Path::new(SSHD).exists() {
            return absent("OpenSSH is not installed");
        }
        let dir = root.join("sftp");
        let folder = |source| refused(&dir, source);
        make_folder(&dir.join("in")).map_err(folder)?;
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(key));
            if !keygen.status().is_ok_and(|status| status.success()) {
                return absent("ssh-keygen makes no keys");
            }
        }
        if rustix::process::geteuid().is_root() {
            // Where the server of a root user separates privileges.
            let _ = fs::create_dir_all("/run/sshd");
        }
        let port = free_port().map_err(folder)?;
        let text = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {0}/host\nPidFile none\nUsePAM no\n\
             StrictModes no\nAuthorizedKeysFile {0}/user.pub\nPermitRootLogin yes\nSubsystem sftp \
             internal-sftp\nLogLevel QUIET\n",
            dir.display()
        );
        let config = dir.join("config");
        write_secret(&config, &text).map_err(folder)?;
        let mut command = Command::new(SSHD);
        let Some(server) = listening(command.args(["-D", "-e", "-f"]).arg(&config), port, &dir)
        else {
            return absent("OpenSSH's server does not start; see sftp/server.log");
        };
        let (Some(user), Some(key)) = (
            said(Command::new("id").arg("-un")),
            said(Command::new("ssh-keygen").arg("-lf").arg(dir.join("host.pub"))),
        ) else {
            return absent("the user or the host key has no name");
        };
        let key = key.split_whitespace().nth(1).unwrap_or_default();
        let table = format!(
            "\n[[destination]]\nname = \"sftp-server\"\nto = \"sftp://{}@127.0.0.1:{port}{}/in\"\n\
             key = \"sftp/user\"\nhost_keys = [\"{key}\"]\n",
            user.trim(),
            dir.display()
        );
        Ok(Ok((server, table)))
    }
}

impl ObjectStore {
    /// Starts the first of the known ones that this machine has, in `root`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn start(root: &Path) -> Result<FoundServer, Failure> {
        let dir = root.join("store");
        let folder = |source| refused(&dir, source);
        // A bucket is a folder for the stores that keep objects as files.
        make_folder(&dir.join("objects").join(BUCKET)).map_err(folder)?;
        let port = free_port().map_err(folder)?;
        let at = format!("127.0.0.1:{port}");
        let objects = dir.join("objects").display().to_string();
        let keys = format!("{ACCESS},{SECRET}");
        let port_text = port.to_string();
        let known: [(&str, Vec<&str>); 3] = [
            (
                "versitygw",
                vec!["--access", ACCESS, "--secret", SECRET, "--port", &at, "posix", &objects],
            ),
            ("rclone", vec!["serve", "s3", &objects, "--addr", &at, "--auth-key", &keys]),
            ("moto_server", vec!["-H", "127.0.0.1", "-p", &port_text]),
        ];
        for (program, arguments) in known {
            let Some(path) = on_path(program) else { continue };
            let Some(server) = listening(Command::new(path).args(arguments), port, &dir) else {
                continue;
            };
            // One that keeps nothing on the disk has no bucket yet; the others have it.
            let _ = ask(port, &format!("PUT /{BUCKET}"));
            let credentials = dir.join("credentials");
            let text = format!(
                "[default]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n"
            );
            write_secret(&credentials, &text).map_err(folder)?;
            let table = format!(
                "\n[[destination]]\nname = \"object-store\"\nto = \"s3://{BUCKET}/level0\"\n\
                 endpoint = \"http://{at}\"\nprofile_file = \"store/credentials\"\n"
            );
            return Ok(Ok((server, table)));
        }
        let sentence = "no object store: this machine has none of versitygw, rclone 1.65 or later, \
                        and moto_server; install one to see it";
        Ok(Err(sentence.to_owned()))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        // It may have ended already.
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        for _ in 0..LOOKS {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            pause(LOOK);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, and waits until it listens; none where it ends, or does not listen in time.
fn listening(command: &mut Command, port: u16, dir: &Path) -> Option<ServerProcess> {
    let log = File::create(dir.join("server.log")).ok()?;
    let errors = log.try_clone().ok()?;
    let command = command.stdin(Stdio::null()).stdout(log).stderr(errors).current_dir(dir);
    let mut server = ServerProcess(command.spawn().ok()?);
    for _ in 0..LOOKS {
        if !matches!(server.0.try_wait(), Ok(None)) {
            return None;
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(server);
        }
        pause(LOOK);
    }
    None
}

/// Sends one request without a body, and reads the answer.
fn ask(port: u16, line: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
    let head = format!(
        "{line} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: 0\r\nconnection: \
         close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A program of the search path.
#[allow(clippy::disallowed_methods, reason = "programs are found as the shell finds them")]
fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    let mut options = File::options();
    let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn refused(place: &Path, source: io::Error) -> Failure {
    let help = "give --dir a folder that this user can write to, on a disk with free space";
    Failure::io(
        "the demonstration's folder cannot be used",
        &place.display().to_string(),
        help,
        source,
    )
}
