//! TLS towards servers of other people: who vouches for them, and what goes wrong.

use crate::failure::{failed, words};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A client that trusts the certificates of a file, or those of this machine.
///
/// # Errors
/// There are none.
pub fn config(place: &str, ca: Option<&Path>) -> Result<Arc<ClientConfig>, DeliveryFailure> {
    config_of(place, ca, rustls::DEFAULT_VERSIONS)
}

/// The same, for some versions of TLS.
///
/// # Errors
/// As [`config`].
pub fn config_of(
    place: &str,
    ca: Option<&Path>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Result<Arc<ClientConfig>, DeliveryFailure> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("the provider has the suites of TLS 1.2 and 1.3")
        .with_root_certificates(roots(place, ca)?)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn roots(place: &str, ca: Option<&Path>) -> Result<RootCertStore, DeliveryFailure> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        return match roots.is_empty() {
            false => Ok(roots),
            true => {
                let what = "this machine has no certificates that vouch for servers; install the \
                            package ca-certificates, or name a file of them";
                Err(failed(FailureKind::Access, place, what))
            }
        };
    };
    let bad = |error: &dyn core::fmt::Display| {
        let what = format!("{} has no certificates (PEM): {error}", path.display());
        failed(FailureKind::Access, place, what)
    };
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| bad(&error))? {
        let certificate = certificate.map_err(|error| bad(&error))?;
        roots.add(certificate).map_err(|error| bad(&error))?;
    }
    match roots.is_empty() {
        true => Err(bad(&"it is empty")),
        false => Ok(roots),
    }
}

/// The name by which a server's certificate is checked.
///
/// # Errors
/// It is none.
pub fn server_name(place: &str, host: &str) -> Result<ServerName<'static>, DeliveryFailure> {
    ServerName::try_from(host.to_owned()).map_err(|_| {
        let host = words(host);
        failed(FailureKind::Access, place, format!("`{host}` is no name of a server"))
    })
}

/// Why TLS was not agreed on.
pub fn failure(place: &str, error: &io::Error) -> DeliveryFailure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let kind = match inner {
        Some(
            rustls::Error::InvalidCertificate(_)
            | rustls::Error::PeerIncompatible(_)
            | rustls::Error::AlertReceived(_),
        ) => FailureKind::Access,
        _ => FailureKind::Line,
    };
    failed(kind, place, format!("TLS was not agreed on: {}", words(&error.to_string())))
}
