//! A database: opened once per process and path, shared by its threads, each with its session.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use perilune_store::{Error as StoreError, Limits};

use crate::backend::{self, Backend, RecoveryReport};
use crate::{OpenOptions, Result, Session};

/// An open database. Clones are the same database; threads open a [`Session`] each.
///
/// ```
/// # let directory = std::env::temp_dir().join(format!("perilune-doc-db-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).unwrap();
/// # let path = directory.join("t.db");
/// use perilune::{node, Database};
///
/// let database = Database::open(&path)?;
/// let mut session = database.session()?;
/// session.set(&node!("^person", 21, "name")?, "Ada")?;
/// assert_eq!(session.get_str(&node!("^person", 21, "name")?)?, Some("Ada"));
/// # let _ = std::fs::remove_dir_all(&directory);
/// # Ok::<(), perilune::Error>(())
/// ```
#[derive(Clone)]
pub struct Database {
    pub(crate) backend: Backend,
}

impl Database {
    /// Opens the database at `path`, creating it when it is missing; or the one behind the server at an address,
    /// `tcp://[user:password@]host[:port]` or `unix:/path`; or one in the memory of this process: `memory:` is a new one
    /// each time, `memory:NAME` one for all that name it so, as long as somebody has it open.
    ///
    /// # Errors
    /// `NotADatabase`, `CannotOpen`, `NoSpace`, I/O: each says what to do.
    pub fn open(path: impl AsRef<Path>) -> Result<Database> {
        OpenOptions::default().open(path)
    }

    /// Opens the database at [`Database::default_path`], creating it and, if it is ours, its
    /// directory (mode 0700) when they are missing.
    ///
    /// # Errors
    /// As [`Database::open`] and [`Database::default_path`].
    pub fn open_default() -> Result<Database> {
        Database::open_default_with(&OpenOptions::default())
    }

    /// As [`Database::open_default`], with options.
    ///
    /// # Errors
    /// As [`Database::open_default`].
    pub fn open_default_with(options: &OpenOptions) -> Result<Database> {
        let path = Database::default_path()?;
        let ours = env::var_os("PERILUNE_DB").is_none_or(|path| path.is_empty());
        if ours && options.create && !options.reads_only() {
            if let Some(directory) = path.parent() {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
                made.map_err(|source| StoreError::Io {
                    action: "create the directory of the default database",
                    place: directory.to_owned().into(),
                    source,
                })?;
            }
        }
        options.open(path)
    }

    /// Where the database is when nobody says: `$PERILUNE_DB`, or else
    /// `$XDG_DATA_HOME/perilune/default.db`, or else `~/.local/share/perilune/default.db`.
    ///
    /// # Errors
    /// `CannotOpen` if none of $PERILUNE_DB, $XDG_DATA_HOME and $HOME is set.
    pub fn default_path() -> Result<PathBuf> {
        default_path(|name| env::var_os(name))
    }

    /// The options a database can be opened with, at their defaults.
    pub fn options() -> OpenOptions {
        OpenOptions::default()
    }

    /// Opens a session, one thread's way into the database.
    ///
    /// # Errors
    /// `LimitReached` when all sessions are taken.
    pub fn session(&self) -> Result<Session> {
        Session::open(&self.backend)
    }

    /// A session that reads the database as it is now: everything committed before the call, nothing after,
    /// however long it is read. It blocks nobody and waits for nobody. Its own tree of local nodes can be
    /// written; writing to the database, locks, watches and channels answer `ReadOnly`.
    ///
    /// The pages it needs are kept until it is dropped or its process ends; a forked child's copy answers
    /// `Forked`. There are at most 255 at once, over all processes.
    ///
    /// # Errors
    /// `LimitReached`; `ReadOnly` if the database was opened for reading only.
    pub fn snapshot(&self) -> Result<Session> {
        Session::at_snapshot(&self.backend)
    }

    /// Takes a checkpoint while others read and write: everything committed before the call survives a crash
    /// of the machine. False if nothing has changed since the last one.
    ///
    /// # Errors
    /// `ReadOnly`; `WritesStopped` after a failed sync; `NoSpace`, I/O: the checkpoint before still counts.
    pub fn checkpoint(&self) -> Result<bool> {
        Ok(self.backend.checkpoint()?)
    }

    /// What was done to recover the database after a crash of the machine, if this process had to when it
    /// opened it. Printed to stderr, too, where `PERILUNE_LOG` is `info`.
    #[must_use]
    pub fn recovery(&self) -> Option<&RecoveryReport> {
        self.backend.recovery()
    }

    /// Closes the database, as dropping its last clone and session does, and answers what dropping hides. While
    /// others are left nothing happens.
    ///
    /// # Errors
    /// What kept the last process of all from taking its checkpoint: `NoSpace`, I/O, `CannotOpen` (it waited too
    /// long). Nothing is lost as long as the machine runs: open and close it again.
    pub fn close(self) -> Result<()> {
        Ok(self.backend.close()?)
    }

    /// Whether `path` is an address - `tcp:`, `unix:`, `tls:`, `memory:`, `file:` - and not the name of a file; `./tcp:...` is one.
    #[must_use]
    pub fn is_address(path: impl AsRef<Path>) -> bool {
        backend::scheme_of(path.as_ref()).is_some()
    }

    /// Whether it is behind a server, and not in a file that this process maps.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.backend.is_remote()
    }

    /// The path it was opened at, or the address of its server, without a password.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.backend.name()
    }

    /// What the database takes: bytes of a key, of a value, levels of transactions.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        self.backend.limits()
    }
}

impl OpenOptions {
    /// Opens the database at `path`.
    ///
    /// # Errors
    /// `NotADatabase`, `CannotOpen`, `NoSpace`, I/O: each says what to do.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Database> {
        let options = OpenOptions { read_only: self.reads_only(), ..self.clone() };
        Ok(Database { backend: backend::open(path.as_ref(), &options)? })
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("path", &self.path()).finish_non_exhaustive()
    }
}

fn default_path(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let set = |name| variable(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    if let Some(path) = set("PERILUNE_DB") {
        return Ok(path);
    }
    // A relative $XDG_DATA_HOME counts as unset, says the XDG Base Directory Specification.
    let data = set("XDG_DATA_HOME").filter(|path| path.is_absolute());
    match data.or_else(|| set("HOME").map(|home| home.join(".local/share"))) {
        Some(data) => Ok(data.join("perilune/default.db")),
        None => Err(StoreError::CannotOpen {
            place: "default.db".into(),
            why: "no place for the default database: set $PERILUNE_DB or $HOME, or give a path".to_owned(),
        }
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node;

    #[test]
    fn the_default_path_follows_its_rule() {
        let path = |set: &[(&str, &str)]| {
            default_path(|name| set.iter().find(|(key, _)| *key == name).map(|(_, text)| text.into())).ok()
        };
        let all = [("PERILUNE_DB", "/a/b.db"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(path(&all), Some("/a/b.db".into()));
        assert_eq!(path(&all[1..]), Some("/x/perilune/default.db".into()));
        assert_eq!(path(&all[2..]), Some("/h/.local/share/perilune/default.db".into()));
        assert_eq!(path(&[("PERILUNE_DB", ""), ("HOME", "/h")]), path(&all[2..]));
        assert_eq!(path(&[]), None);
    }

    #[test]
    fn databases_in_memory_are_new_or_shared_by_their_name() -> Result<()> {
        let node = node!("^person", 21, "name")?;
        let [first, second, new] = ["memory:a", "memory:a", "memory:"].map(Database::open);
        let (first, second, new) = (first?, second?, new?);
        let mut session = first.session()?;
        session.set(&node, "Ada")?;
        assert_eq!(second.session()?.get_str(&node)?, Some("Ada"));
        assert_eq!(new.session()?.get(&node)?, None);
        assert_eq!((new.is_remote(), new.path().to_str()), (false, Some("memory:")));
        session.transaction(|session| {
            session.increment(&node!("^visits")?, 1)?;
            session.set(&node, "Grace")
        })?;
        assert_eq!(session.count_children(&node!("^person")?)?, 1);
        let refused = new.checkpoint().unwrap_err().to_string();
        assert!(refused.contains("is for a database in a file, not for memory:"), "{refused}");
        drop((first, second, session));
        assert_eq!(Database::open("memory:a")?.session()?.get(&node)?, None, "nobody had it open");
        Ok(())
    }
}
