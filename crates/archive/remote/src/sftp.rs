//! SFTP servers (version 3, with the extensions of OpenSSH where they are).
//!
//! A file is written beside its final name with many requests under way, made durable, and renamed.

mod client;
mod known_status;
mod login;
mod refusal;
mod upload;

use crate::access::RemoteAccess;
use crate::connect::SinkRuntime;
use crate::place::{RemotePlace, RemoteServer};
use crate::sink::{
    Abilities, GoOn, OutgoingFile, PlaceProgress, Placing, RemoteEntry, RemoteFound, RemoteSink,
    ResumeNote,
};
use client::SftpClient;
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use skyhaul_units::ByteCount;

/// A folder of an SFTP server.
pub struct SftpSink {
    runtime: SinkRuntime,
    client: SftpClient,
}

impl SftpSink {
    /// Of a folder.
    ///
    /// # Errors
    /// This machine lacks resources.
    pub fn new(
        server: &RemoteServer,
        access: &RemoteAccess,
        known: Option<Abilities>,
    ) -> Result<Self, DeliveryFailure> {
        let place = RemotePlace::Sftp(server.clone()).to_string();
        let runtime = SinkRuntime::new(&place)?;
        Ok(Self { runtime, client: SftpClient::new(place, server.clone(), access.clone(), known) })
    }

    /// Carries out what is asked in a session. One in which the line failed is not used again.
    fn ask<T>(
        &mut self,
        what: impl AsyncFnOnce(&mut SftpClient) -> Result<T, DeliveryFailure>,
    ) -> Result<T, DeliveryFailure> {
        let Self { runtime, client } = self;
        let result = runtime.run(async {
            client.ready().await?;
            what(client).await
        });
        if result.as_ref().is_err_and(|failure| failure.kind == FailureKind::Line) {
            client.close();
            runtime.end();
        }
        result
    }
}

impl RemoteSink for SftpSink {
    fn abilities(&mut self) -> Result<Abilities, DeliveryFailure> {
        self.ask(async |client| client.trial().await)
    }

    fn look(&mut self, file: &OutgoingFile) -> Result<RemoteFound, DeliveryFailure> {
        self.ask(async |client| client.look(file).await)
    }

    fn place(
        &mut self,
        file: &OutgoingFile,
        resume: &ResumeNote,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Placing, DeliveryFailure> {
        self.ask(async |client| client.place(file, resume, progress).await)
    }

    fn discard(&mut self, file: &OutgoingFile, _: &ResumeNote) -> Result<(), DeliveryFailure> {
        self.ask(async |client| client.discard(file).await)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), DeliveryFailure> {
        self.ask(async |client| client.write(name, bytes).await)
    }

    fn list(&mut self, folder: &str) -> Result<Vec<RemoteEntry>, DeliveryFailure> {
        self.ask(async |client| client.list(folder).await)
    }

    fn read(&mut self, name: &str, most: ByteCount) -> Result<Option<Vec<u8>>, DeliveryFailure> {
        self.ask(async |client| client.read(name, most).await)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DeliveryFailure> {
        self.ask(async |client| client.rename(from, to).await)
    }
}
