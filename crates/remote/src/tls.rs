//! TLS to a server, by rustls: whom to trust, and who asks.
//!
//! Example: `?ca=FILE` trusts who has signed with a certificate of that file; without it those that the machine trusts.
//! `?cert=` and `?key=` show who asks.
//!
//! Invariant: nothing is sent before the server's certificate was found good for the host that was asked for.

use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::address::Proof;

/// A connection with TLS on it.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Where systems keep the authorities that they trust.
const SYSTEM: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Speaks TLS on a connection to `host`.
pub(crate) fn open(stream: TcpStream, host: &str, proof: &Proof) -> io::Result<TlsStream> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| invalid(host, &error))?;
    let connection =
        ClientConnection::new(Arc::new(configuration(proof)?), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

fn configuration(proof: &Proof) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let authority = authority(proof)?;
    for certificate in certificates(&authority)? {
        // Of a system's hundreds some may be of a kind that nobody uses.
        if roots.add(certificate).is_err() && proof.authority.is_some() {
            return Err(invalid(&authority.display().to_string(), &"no authority's certificate"));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let Some((certificate, key)) = &proof.certificate else { return Ok(builder.with_no_client_auth()) };
    let secret =
        PrivateKeyDer::from_pem_file(key).map_err(|error| invalid(&key.display().to_string(), &error))?;
    builder.with_client_auth_cert(certificates(certificate)?, secret).map_err(io::Error::other)
}

/// The file of authorities: as told, by the environment, or the system's.
fn authority(proof: &Proof) -> io::Result<PathBuf> {
    if let Some(file) = &proof.authority {
        return Ok(file.clone());
    }
    if let Some(file) = std::env::var_os("PERILUNE_CA").filter(|file| !file.is_empty()) {
        return Ok(file.into());
    }
    let system = SYSTEM.iter().map(PathBuf::from).find(|file| file.exists());
    system.ok_or_else(|| invalid("tls", &"no file of authorities: name one by ?ca=FILE or in $PERILUNE_CA"))
}

fn certificates(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| invalid(&file.display().to_string(), &error))
}

fn invalid(what: &str, why: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{what}: {why}"))
}
