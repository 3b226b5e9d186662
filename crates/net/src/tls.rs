//! TLS by rustls: the server's configuration, and a stream that looks like the plain one.
//!
//! Invariants
//! - `read` fills its buffer or has emptied the socket, as edge-triggered events want it.
//! - At most one record of a client's replies waits here to be sent; the rest waits with its connection.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};

/// Plain bytes that are taken for a record at a time.
const RECORD: usize = 16 << 10;

/// What a server shows its clients, and wants to see of them. Files are in PEM, each with the name of the setting that names
/// it, for messages.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, with those that it was signed by.
    pub certificates: NamedFile,
    /// Its key.
    pub key: NamedFile,
    /// Who may have signed the certificates of clients: a file.
    pub authorities: Option<NamedFile>,
    /// A directory of such files.
    pub more_authorities: Option<NamedFile>,
    /// Whether clients show a certificate.
    pub clients: Clients,
    /// Versions of TLS, by name; none: all.
    pub versions: String,
}

/// A file, or a directory, and the setting that names it.
#[derive(Clone, Debug)]
pub struct NamedFile {
    /// The setting.
    pub setting: &'static str,
    /// Where it is.
    pub path: PathBuf,
}

/// Whether clients show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// They need not have any.
    Unknown,
    /// One that is shown must be good.
    MayShow,
    /// None is let in without.
    MustShow,
}

/// What is wrong with TLS's files: a text for who starts the server, or that authorities are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// What cannot be read or used, with the setting that says so.
    Wrong(String),
    /// Clients are to show certificates, and nobody is known who may have signed them.
    NoAuthority,
}

impl From<String> for TlsError {
    fn from(text: String) -> TlsError {
        TlsError::Wrong(text)
    }
}

/// The configuration that these files make.
///
/// # Errors
/// What is missing or cannot be read, and which setting says so.
pub fn configuration(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(&files.certificates)?;
    let key = PrivateKeyDer::from_pem_file(&files.key.path).map_err(|error| wrong(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(&files.versions)?)
        .map_err(|error| error.to_string())?;
    let builder = match files.clients {
        Clients::Unknown => builder.with_no_client_auth(),
        how => {
            let roots = roots(files)?;
            if roots.is_empty() {
                return Err(TlsError::NoAuthority);
            }
            let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            if how == Clients::MayShow {
                verifier = verifier.allow_unauthenticated();
            }
            builder.with_client_cert_verifier(verifier.build().map_err(|error| error.to_string())?)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| format!("`{}` and `{}`: {error}", files.certificates.setting, files.key.setting))?;
    // A client that comes again shows what it knows; one ticket is enough for it.
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}

/// The versions of TLS that `tls-protocols` names.
fn versions(words: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let version = |word: &str| match &*word.to_ascii_lowercase() {
        "tlsv1.2" => Ok(&TLS12),
        "tlsv1.3" => Ok(&TLS13),
        _ => Err(format!("`tls-protocols`: TLSv1.2 and TLSv1.3 are spoken, not {word}")),
    };
    let versions: Vec<_> = words.split_whitespace().map(version).collect::<Result<_, _>>()?;
    // None named are all.
    Ok(if versions.is_empty() { vec![&TLS12, &TLS13] } else { versions })
}

/// Who may have signed the certificates of clients.
fn roots(files: &TlsFiles) -> Result<RootCertStore, String> {
    let mut all: Vec<NamedFile> = files.authorities.iter().cloned().collect();
    if let Some(directory) = &files.more_authorities {
        let entries = fs::read_dir(&directory.path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(|error| wrong(directory, &error))?;
        let paths = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file());
        all.extend(paths.map(|path| NamedFile { setting: directory.setting, path }));
    }
    let mut roots = RootCertStore::empty();
    for file in &all {
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|error| wrong(file, &error))?;
        }
    }
    Ok(roots)
}

fn wrong(file: &NamedFile, error: &dyn std::fmt::Display) -> String {
    format!("`{}`: {}: {error}", file.setting, file.path.display())
}

fn certificates(file: &NamedFile) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(&file.path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(found) if found.is_empty() => Err(wrong(file, &"no certificate in it")),
        Ok(found) => Ok(found),
        Err(error) => Err(wrong(file, &error)),
    }
}

/// A socket with TLS on it.
#[derive(Debug)]
pub struct TlsStream {
    /// Below TLS.
    pub socket: TcpStream,
    tls: ServerConnection,
    /// The client has ended its side.
    ended: bool,
}

impl TlsStream {
    /// A stream on a socket that was just accepted.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(socket: TcpStream, config: &Arc<ServerConfig>) -> io::Result<TlsStream> {
        let tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        Ok(TlsStream { socket, tls, ended: false })
    }

    /// Whether bytes wait for the socket.
    pub fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    /// Whether the next read has something to say although the socket is empty: the end.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Sends what waits; `WouldBlock` if not all of it.
    pub fn flush(&mut self) -> io::Result<()> {
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

    /// Fills the buffer, or has emptied the socket.
    ///
    /// # Errors
    /// The system's, and of what no TLS is.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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

    /// Takes a record's worth at most, and sends what the socket takes.
    ///
    /// # Errors
    /// The system's; `WouldBlock`: it has taken nothing.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let taken = self.tls.writer().write(&bytes[..bytes.len().min(RECORD)])?;
        self.flush_some()?;
        Ok(taken)
    }

    /// Says farewell.
    pub fn close(&mut self) {
        self.tls.send_close_notify();
        let _ = self.flush_some();
    }
}
