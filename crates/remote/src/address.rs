//! Addresses of servers: `tcp://host:6379`, `tls://host:6379?ca=FILE`, `unix:/path`, with a user and a password before an
//! `@`.
//!
//! Example: `tls://ann:secret@db.example?ca=/etc/ca.pem` is port 6379 of that host, as user `ann`, if its certificate was
//! signed by one of that file.
//!
//! Invariants
//! - What is wrong with an address is said together with how one looks.
//! - A password is never shown, not even by `Debug`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use perilune_store::{Error, Result};

const PORT: u16 = 6379;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Host and port.
    Tcp(String, u16),
    /// A host and a port reached by TLS, and what proves who is who.
    Tls(String, u16, Proof),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Files of certificates and keys, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Authorities that servers are trusted by; none: `$PERILUNE_CA`, or those of the system.
    pub(crate) authority: Option<PathBuf>,
    /// The client's certificate and its key, where the server asks for one.
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
}

/// Where a server is, and who asks.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) place: Place,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

/// What addresses of servers begin with, before the colon.
pub const SCHEMES: [&str; 3] = ["tcp", "unix", "tls"];

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// `Invalid`, with how one looks.
    pub(crate) fn parse(path: &Path) -> Result<Address> {
        let bytes = path.as_os_str().as_bytes();
        if let Some(rest) = bytes.strip_prefix(b"unix:") {
            let rest = rest.strip_prefix(b"//").unwrap_or(rest);
            let (user, password, path) = match rest.iter().position(|byte| *byte == b'/') {
                Some(start) if start > 0 && rest[start - 1] == b'@' => {
                    let (user, password) = login(&text(&rest[..start - 1])?)?;
                    (user, password, &rest[start..])
                }
                _ => (None, None, rest),
            };
            if path.is_empty() {
                return Err(malformed("a Unix socket needs a path"));
            }
            let place = Place::Unix(PathBuf::from(OsString::from_vec(path.to_vec())));
            return Ok(Address { place, user, password });
        }
        let text = text(bytes)?;
        let (rest, proof) = match (text.strip_prefix("tcp://"), text.strip_prefix("tls://")) {
            (Some(rest), _) => (rest, None),
            (_, Some(rest)) => {
                let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
                (rest, Some(proof(query)?))
            }
            _ => return Err(malformed("what follows tcp: or tls: begins with //")),
        };
        let (login_text, host) = match rest.rsplit_once('@') {
            Some((login, host)) => (login, host),
            None => ("", rest),
        };
        let (user, password) = login(login_text)?;
        let (host, port) = split_host(host.trim_end_matches('/'))?;
        let place = match proof {
            None => Place::Tcp(host, port),
            Some(proof) => Place::Tls(host, port, proof),
        };
        Ok(Address { place, user, password })
    }

    /// The address for people and messages: without the password.
    pub(crate) fn shown(&self) -> String {
        let (scheme, host, port) = match &self.place {
            Place::Tcp(host, port) => ("tcp", host, port),
            Place::Tls(host, port, _) => ("tls", host, port),
            Place::Unix(path) => return format!("unix:{}", path.display()),
        };
        if host.contains(':') {
            format!("{scheme}://[{host}]:{port}")
        } else {
            format!("{scheme}://{host}:{port}")
        }
    }
}

fn malformed(why: &str) -> Error {
    Error::Invalid(format!(
        "{why}: an address is tcp://[user:password@]host[:port], tls:// likewise, or unix:/path"
    ))
}

fn text(bytes: &[u8]) -> Result<String> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| malformed("an address is UTF-8"))
}

/// User and password, percent signs decoded.
fn login(text: &str) -> Result<(Option<String>, Option<String>)> {
    let filled = |part: String| Some(part).filter(|part| !part.is_empty());
    match text.split_once(':') {
        Some((user, password)) => Ok((filled(decoded(user)?), filled(decoded(password)?))),
        None => Ok((filled(decoded(text)?), None)),
    }
}

fn decoded(text: &str) -> Result<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
            _ => return Err(malformed("a percent sign in a password is written %25")),
        }
    }
    String::from_utf8(out).map_err(|_| malformed("an address is UTF-8"))
}

/// The files that a query names: `ca=FILE&cert=FILE&key=FILE`.
fn proof(query: &str) -> Result<Proof> {
    let (mut authority, mut certificate, mut key) = (None, None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, file) = pair.split_once('=').unwrap_or((pair, ""));
        let place = match name {
            "ca" => &mut authority,
            "cert" => &mut certificate,
            "key" => &mut key,
            _ => return Err(malformed("what follows ? is ca=, cert= and key=, each with a file")),
        };
        *place = Some(PathBuf::from(decoded(file)?));
    }
    let certificate = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(malformed("cert= and key= go together")),
    };
    Ok(Proof { authority, certificate })
}

fn split_host(text: &str) -> Result<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(|| malformed("a bracket is not closed"))?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((_, rest)) if rest.contains(':') => {
                return Err(malformed("an IPv6 address stands in brackets"))
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(malformed("the host is missing"));
    }
    let port = match port {
        None => PORT,
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| malformed("a port is a number up to 65535"))?,
    };
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address> {
        Address::parse(Path::new(text))
    }

    #[test]
    fn addresses_are_read_and_shown_without_their_password() -> Result<()> {
        let tcp = |host: &str, port| Place::Tcp(host.to_owned(), port);
        for (text, place, user, password, shown) in [
            ("tcp://db", tcp("db", 6379), None, None, "tcp://db:6379"),
            ("tcp://db:7000/", tcp("db", 7000), None, None, "tcp://db:7000"),
            ("tcp://:s%40%25@[::1]:7", tcp("::1", 7), None, Some("s@%"), "tcp://[::1]:7"),
            ("tcp://ann:pw@db", tcp("db", 6379), Some("ann"), Some("pw"), "tcp://db:6379"),
            (
                "tls://:pw@db?ca=/a%20b.pem&cert=c&key=k",
                Place::Tls(
                    "db".to_owned(),
                    6379,
                    Proof { authority: Some("/a b.pem".into()), certificate: Some(("c".into(), "k".into())) },
                ),
                None,
                Some("pw"),
                "tls://db:6379",
            ),
            ("unix:/run/a@b.sock", Place::Unix("/run/a@b.sock".into()), None, None, "unix:/run/a@b.sock"),
            ("unix:a.sock", Place::Unix("a.sock".into()), None, None, "unix:a.sock"),
            ("unix://:pw@/run/s", Place::Unix("/run/s".into()), None, Some("pw"), "unix:/run/s"),
        ] {
            let found = parse(text)?;
            assert_eq!(found.place, place, "{text}");
            assert_eq!((found.user.as_deref(), found.password.as_deref()), (user, password), "{text}");
            assert_eq!(found.shown(), shown);
        }
        for wrong in [
            "tcp:db",
            "tcp://",
            "tcp://db:0",
            "tcp://db:x",
            "tcp://::1",
            "tcp://[::1",
            "tcp://%4@a",
            "tls://a?x=1",
            "tls://a?key=k",
            "unix:",
        ] {
            assert!(matches!(parse(wrong), Err(Error::Invalid(_))), "{wrong}");
        }
        Ok(())
    }
}
