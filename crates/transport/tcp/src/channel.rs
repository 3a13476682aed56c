//! TLS over the byte stream: the handshake, encryption and decryption.

use crate::terms::Terms;
use crate::wire::FrameReader;
use bytes::{BufMut as _, BytesMut};
use rustls::pki_types::ServerName;
use rustls::server::Acceptor;
use rustls::{ClientConnection, Connection, Error};
use skyhaul_identity::{Fingerprint, RefusedKey, client_config, presented_key, server_config};
use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

/// One end of the TLS connection.
pub(crate) struct Channel {
    stage: Stage,
    refused: Arc<RefusedKey>,
    other_version: Option<String>,
}

enum Stage {
    /// Called; the caller's hello is not there yet.
    Listening(Box<Acceptor>, Box<Terms>),
    Talking(Box<Connection>),
    /// The hello was refused.
    Broken,
}

impl Channel {
    /// Calls the node whose key is `expected`.
    pub(crate) fn call(terms: &Terms, expected: Fingerprint) -> Result<Self, Error> {
        let refused = Arc::default();
        let config = client_config(&terms.identity, expected, &refused, &terms.versions.names());
        let name = ServerName::try_from(SERVER_NAME).expect("a valid name");
        let connection = ClientConnection::new(Arc::new(config), name)?;
        Ok(Self { stage: talking(connection.into()), refused, other_version: None })
    }

    /// Is called.
    pub(crate) fn answer(terms: Terms) -> Self {
        let stage = Stage::Listening(Box::default(), Box::new(terms));
        Self { stage, refused: Arc::default(), other_version: None }
    }

    /// Takes in some of `bytes`, and appends their clear text to `clear`. Alerts for the far end go
    /// to `out`.
    pub(crate) fn receive(
        &mut self,
        bytes: &mut &[u8],
        clear: &mut FrameReader,
        out: &mut BytesMut,
    ) -> Result<Progress, Error> {
        let broken = |error: std::io::Error| Error::General(error.to_string());
        match &mut self.stage {
            Stage::Listening(acceptor, _) => {
                acceptor.read_tls(bytes).map_err(broken)?;
                self.accept(out)?;
                // The acceptor may have read on behind the hello.
                if let Stage::Talking(connection) = &mut self.stage {
                    return process(connection, clear);
                }
                Ok(Progress::Open)
            }
            Stage::Talking(connection) => {
                connection.read_tls(bytes).map_err(broken)?;
                process(connection, clear)
            }
            Stage::Broken => Ok(Progress::Ended),
        }
    }

    /// Goes on with the handshake when the hello is whole.
    fn accept(&mut self, out: &mut BytesMut) -> Result<(), Error> {
        let Stage::Listening(acceptor, terms) = &mut self.stage else { return Ok(()) };
        let alerted = match acceptor.accept() {
            Ok(None) => return Ok(()),
            Ok(Some(accepted)) => {
                let offered = accepted.client_hello().alpn().into_iter().flatten();
                self.other_version = terms.versions.other(offered);
                let other = self.other_version.as_ref().map(|name| vec![name.clone().into_bytes()]);
                let alpn = other.unwrap_or_else(|| terms.versions.names());
                let config = server_config(&terms.identity, &terms.trust, &self.refused, &alpn);
                accepted.into_connection(Arc::new(config))
            }
            Err(alerted) => Err(alerted),
        };
        match alerted {
            Ok(connection) => {
                self.stage = talking(connection.into());
                Ok(())
            }
            Err((error, mut alert)) => {
                self.stage = Stage::Broken;
                alert.write_all(&mut out.writer()).expect("memory takes all");
                Err(error)
            }
        }
    }

    /// Encrypts `clear`, in records of its own.
    pub(crate) fn seal(&mut self, clear: &[u8]) {
        if let Stage::Talking(connection) = &mut self.stage {
            // The buffer has no limit, so only a connection that TLS has ended refuses: its end is
            // being told already.
            let _ = connection.writer().write_all(clear);
        }
    }

    /// Sends the TLS alert after which no more is sealed.
    pub(crate) fn close_notify(&mut self) {
        if let Stage::Talking(connection) = &mut self.stage {
            connection.send_close_notify();
        }
    }

    /// Moves what is to be written to `out`.
    pub(crate) fn take(&mut self, out: &mut BytesMut) {
        let Stage::Talking(connection) = &mut self.stage else { return };
        while connection.wants_write() {
            connection.write_tls(&mut out.writer()).expect("memory takes all");
        }
    }

    /// Whether the handshake goes on.
    pub(crate) fn is_handshaking(&self) -> bool {
        match &self.stage {
            Stage::Listening(..) => true,
            Stage::Talking(connection) => connection.is_handshaking(),
            Stage::Broken => false,
        }
    }

    /// The key the far end has proven.
    pub(crate) fn peer(&self) -> Option<Fingerprint> {
        let Stage::Talking(connection) = &self.stage else { return None };
        presented_key(connection.peer_certificates()?)
    }

    /// The protocol agreed on.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        let Stage::Talking(connection) = &self.stage else { return None };
        connection.alpn_protocol()
    }

    /// The protocol name of a caller that speaks another version. It is let in as far as the
    /// handshake goes, because only then can it be told which versions are spoken here.
    pub(crate) fn other_version(&self) -> Option<&str> {
        self.other_version.as_deref()
    }

    /// The key that was refused here, once.
    pub(crate) fn take_refused(&self) -> Option<Fingerprint> {
        self.refused.take()
    }

    pub(crate) fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> bool {
        let Stage::Talking(connection) = &self.stage else { return false };
        connection.export_keying_material(out, label, Some(context)).is_ok()
    }
}

/// How far the far end's stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More may come.
    Open,
    /// The far end has said farewell; what still comes means nothing.
    Ended,
}

fn talking(mut connection: Connection) -> Stage {
    // The path bounds what it seals, and the library must never take half of a record.
    connection.set_buffer_limit(None);
    Stage::Talking(Box::new(connection))
}

fn process(connection: &mut Connection, clear: &mut FrameReader) -> Result<Progress, Error> {
    let state = connection.process_new_packets();
    let mut reader = connection.reader();
    while let Ok(piece) = reader.fill_buf()
        && !piece.is_empty()
    {
        clear.extend(piece);
        let taken = piece.len();
        reader.consume(taken);
    }
    Ok(if state?.peer_has_closed() { Progress::Ended } else { Progress::Open })
}

/// Not sent (no server name indication), but the TLS library wants one.
const SERVER_NAME: &str = "skyhaul";
