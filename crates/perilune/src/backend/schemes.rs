//! The back ends by what an address begins with: `tcp://db.example` is a server, a name without a scheme a file.
//!
//! A back end registers by a row here; nothing else in this crate names one, but for the mapped file, which is called
//! without a table ([`super`]).
//!
//! Invariants
//! - A name that begins with a scheme of the table and a colon is an address, also where such a file exists: that is opened
//!   as `./tcp:...`.
//! - A scheme never changes its meaning.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use perilune_memory::MemoryStore;
use perilune_remote::{RemoteOptions, RemoteStore};
use perilune_store::{Durability, Result as StoreResult};

use super::{mapped_options, Backend};
use crate::{Error, OpenOptions, Result};

/// A kind of store, and how one is opened.
pub(crate) struct Scheme {
    /// What its addresses begin with, before the colon.
    pub(crate) name: &'static str,
    /// Opens the one at an address, which is given whole.
    open: fn(&Path, &OpenOptions) -> Result<Backend>,
}

/// Every kind of store.
pub(crate) const SCHEMES: [Scheme; 5] = [
    Scheme { name: "file", open: open_named_file },
    Scheme { name: "tcp", open: open_server },
    Scheme { name: "tls", open: open_server },
    Scheme { name: "unix", open: open_server },
    Scheme { name: "memory", open: open_memory },
];

/// The scheme of an address; None: it is the name of a file.
pub(crate) fn scheme_of(path: &Path) -> Option<&'static Scheme> {
    let bytes = path.as_os_str().as_bytes();
    let has = |scheme: &&Scheme| {
        bytes.strip_prefix(scheme.name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b':'))
    };
    SCHEMES.iter().find(has)
}

/// Opens the store at `path`: a file, or what the table has for an address.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Backend> {
    match scheme_of(path) {
        Some(scheme) => (scheme.open)(path, options),
        None => open_file(path, options),
    }
}

fn open_file(path: &Path, options: &OpenOptions) -> Result<Backend> {
    let database = perilune_engine::Database::open(path, &mapped_options(options)?)?;
    Ok(Backend::Mapped(database, path.into()))
}

fn open_named_file(path: &Path, options: &OpenOptions) -> Result<Backend> {
    let name = path.as_os_str().as_bytes().strip_prefix(b"file:").unwrap_or_default();
    open_file(Path::new(OsStr::from_bytes(name)), options)
}

fn open_server(path: &Path, options: &OpenOptions) -> Result<Backend> {
    let far = RemoteOptions {
        read_only: options.read_only,
        fsync: options.durability == Some(Durability::Fsync),
        timeout: options.timeout,
    };
    let opened: StoreResult<RemoteStore> = RemoteStore::open(path, &far);
    let store = opened?;
    let name = store.address();
    Ok(Backend::Other { store: Arc::new(store), name: Path::new(&name).into(), is_remote: true })
}

/// Those in memory that have a name, as long as somebody has them open.
static NAMED: Mutex<BTreeMap<Vec<u8>, Weak<MemoryStore>>> = Mutex::new(BTreeMap::new());

/// `memory:` is a new database each time, `memory:NAME` one for all of the process that name it so.
fn open_memory(path: &Path, options: &OpenOptions) -> Result<Backend> {
    if options.read_only {
        let why = "a database in memory is empty when it is opened: opening it only to read is of no use";
        return Err(Error::invalid(why));
    }
    let bytes = path.as_os_str().as_bytes();
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.retain(|_, store| store.strong_count() > 0);
    let store = named.get(bytes).and_then(Weak::upgrade).unwrap_or_default();
    if bytes != b"memory:" {
        named.insert(bytes.to_vec(), Arc::downgrade(&store));
    }
    Ok(Backend::Other { store, name: path.into(), is_remote: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_begins_with_a_scheme() {
        let scheme = |text: &str| scheme_of(Path::new(text)).map(|scheme| scheme.name);
        assert_eq!(scheme("tcp://a:1"), Some("tcp"));
        assert_eq!(scheme("unix:/run/x"), Some("unix"));
        assert_eq!(scheme("tls:"), Some("tls"));
        assert_eq!(scheme("file:x.db"), Some("file"));
        assert_eq!(scheme("./unix:x"), None);
        assert_eq!(scheme("tcp"), None);
        assert_eq!(scheme("tcpx:"), None);
        assert_eq!(scheme(""), None);
    }

    #[test]
    fn every_scheme_of_servers_is_in_the_table() {
        for known in perilune_remote::SCHEMES {
            assert!(SCHEMES.iter().any(|scheme| scheme.name == known), "{known}");
        }
    }
}
