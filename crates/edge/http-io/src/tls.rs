//! TLS of the server: a certificate and its key, as PEM.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// TLS 1.2 and 1.3 with a certificate, which is followed by those that lead to it.
///
/// # Errors
/// What is wrong with the texts.
pub fn acceptor(certificate: &str, key: &str) -> Result<TlsAcceptor, String> {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("the certificate cannot be read ({error})"))?;
    if chain.is_empty() {
        return Err("the certificate file has no certificate (PEM)".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|error| format!("the private key cannot be read ({error})"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::DEFAULT_VERSIONS)
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| format!("certificate and key do not fit ({error})"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
