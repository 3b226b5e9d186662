//! TLS by rustls: the server's configuration, and a stream that looks like the plain one.
//!
//! Invariants
//! - `read` fills its buffer or has emptied the socket, as edge-triggered events want it.
//! - At most one record of a client's replies waits here to be sent; the rest waits with its connection.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};

use crate::settings::{Name, Settings};

/// Plain bytes that are taken for a record at a time.
const RECORD: usize = 16 << 10;

/// The configuration that `tls-...` settings make; none if `tls-port` is 0.
///
/// # Errors
/// What is missing or cannot be read, and which setting says so.
pub(crate) fn configuration(settings: &Settings) -> Result<Option<Arc<ServerConfig>>, String> {
    if settings.number(Name::TlsPort) == 0 {
        return Ok(None);
    }
    let file = |name: Name| {
        settings.path(name).ok_or_else(|| format!("`tls-port` needs `{}`: a file in PEM", name.row().name))
    };
    let chain = certificates(&file(Name::TlsCertFile)?, Name::TlsCertFile)?;
    let key_file = file(Name::TlsKeyFile)?;
    let key = PrivateKeyDer::from_pem_file(&key_file)
        .map_err(|error| wrong(Name::TlsKeyFile, &key_file, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(&settings.text(Name::TlsProtocols))?)
        .map_err(|error| error.to_string())?;
    let builder = match &*settings.text(Name::TlsAuthClients) {
        "no" => builder.with_no_client_auth(),
        how => {
            let roots = roots(settings)?;
            if roots.is_empty() {
                return Err("`tls-port` needs `tls-ca-cert-file` or `tls-ca-cert-dir`, in PEM; or set \
                            `tls-auth-clients no`: then passwords alone tell clients"
                    .to_owned());
            }
            let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            if how == "optional" {
                verifier = verifier.allow_unauthenticated();
            }
            builder.with_client_cert_verifier(verifier.build().map_err(|error| error.to_string())?)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| format!("`tls-cert-file` and `tls-key-file`: {error}"))?;
    // A client that comes again shows what it knows; one ticket is enough for it.
    config.send_tls13_tickets = 1;
    Ok(Some(Arc::new(config)))
}

/// The versions of TLS that `tls-protocols` names.
fn versions(words: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let version = |word: &str| match &*word.to_ascii_lowercase() {
        "tlsv1.2" => Ok(&TLS12),
        "tlsv1.3" => Ok(&TLS13),
        _ => Err(format!("`tls-protocols`: TLSv1.2 and TLSv1.3 are spoken, not {word}")),
    };
    let versions: Vec<_> = words.split_whitespace().map(version).collect::<Result<_, _>>()?;
    // As in redis.conf: none are all.
    Ok(if versions.is_empty() { vec![&TLS12, &TLS13] } else { versions })
}

/// Who may have signed the certificates of clients.
fn roots(settings: &Settings) -> Result<RootCertStore, String> {
    let mut files = Vec::new();
    if let Some(path) = settings.path(Name::TlsCaCertFile) {
        files.push((Name::TlsCaCertFile, path));
    }
    if let Some(directory) = settings.path(Name::TlsCaCertDir) {
        let entries = fs::read_dir(&directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(|error| wrong(Name::TlsCaCertDir, &directory, &error))?;
        let paths = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file());
        files.extend(paths.map(|path| (Name::TlsCaCertDir, path)));
    }
    let mut roots = RootCertStore::empty();
    for (name, path) in files {
        for certificate in certificates(&path, name)? {
            roots.add(certificate).map_err(|error| wrong(name, &path, &error))?;
        }
    }
    Ok(roots)
}

fn wrong(name: Name, path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("`{}`: {}: {error}", name.row().name, path.display())
}

fn certificates(path: &Path, name: Name) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(found) if found.is_empty() => Err(wrong(name, path, &"no certificate in it")),
        Ok(found) => Ok(found),
        Err(error) => Err(wrong(name, path, &error)),
    }
}

/// A socket with TLS on it.
#[derive(Debug)]
pub(crate) struct TlsStream {
    pub(crate) socket: TcpStream,
    tls: ServerConnection,
    /// The client has ended its side.
    ended: bool,
}

impl TlsStream {
    pub(crate) fn new(socket: TcpStream, config: &Arc<ServerConfig>) -> io::Result<TlsStream> {
        let tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        Ok(TlsStream { socket, tls, ended: false })
    }

    /// Whether bytes wait for the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    /// Whether the next read has something to say although the socket is empty: the end.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Sends what waits; `WouldBlock` if not all of it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            if self.tls.write_tls(&mut self.socket)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Sends what the socket takes at once.
    fn flush_some(&mut self) -> io::Result<()> {
        match self.flush() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            outcome => outcome,
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.tls.reader().read(&mut buffer[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(filled);
                }
                Ok(came) => {
                    filled += came;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The socket has ended without a farewell: what came is whole requests or none.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.ended = true;
                    return Ok(filled);
                }
                Err(error) => return Err(error),
            }
            match self.tls.read_tls(&mut self.socket) {
                // The reader says what that means.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && filled > 0 => return Ok(filled),
                Err(error) => return Err(error),
            }
            if let Err(error) = self.tls.process_new_packets() {
                // The client is told why, if it still listens.
                let _ = self.flush_some();
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            self.flush_some()?;
        }
        Ok(filled)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let taken = self.tls.writer().write(&bytes[..bytes.len().min(RECORD)])?;
        self.flush_some()?;
        Ok(taken)
    }

    /// Says farewell.
    pub(crate) fn close(&mut self) {
        self.tls.send_close_notify();
        let _ = self.flush_some();
    }
}
