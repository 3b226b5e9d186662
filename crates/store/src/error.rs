//! The one error type of the storage layers. Each text says what happened and what to do next.
//!
//! Three answers never mix. [`Error::NotDurable`]: it *has* happened, and may be lost if the machine crashes; doing
//! it again would do it twice. [`Error::WritesStopped`]: it has not, and nothing will until the disk is seen to.
//! All others: it has not happened ([`Error::CommitUnknown`], of stores behind a network, apart). Of these
//! [`Error::Unavailable`] says that the same call may do later, with no change of anything.
//!
//! [`Error::Conflict`] and [`Error::Restart`] are control flow of transactions: whoever meets them
//! returns them unchanged, and the transaction's runner starts again.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The result of every storage operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A process that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id, as it sees that itself.
    pub pid: u32,
    /// It is stopped: by a signal, a debugger, or with its container.
    pub stopped: bool,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Holder { pid, stopped } = self;
        if *stopped {
            write!(
                f,
                "process {pid}, which is stopped in the midst of a change: continue it (kill -CONT {pid}, its debugger, \
                 `docker unpause`) or kill it (kill -9 is safe: what it had not finished is finished or taken back)"
            )
        } else {
            write!(f, "process {pid}, which is in the midst of a change and did not go on: see what keeps it")
        }
    }
}

/// What an error is about, as people call it: the path of a file, the address of a server. A text, so that errors are the
/// same for every kind of store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place(Box<str>);

impl Place {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Place {
        Place(path.display().to_string().into())
    }
}

impl From<&PathBuf> for Place {
    fn from(path: &PathBuf) -> Place {
        path.as_path().into()
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Place {
        path.as_path().into()
    }
}

impl From<&str> for Place {
    fn from(text: &str) -> Place {
        Place(text.into())
    }
}

impl From<String> for Place {
    fn from(text: String) -> Place {
        Place(text.into())
    }
}

/// What a storage operation can answer instead of its result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What the transaction has read is no longer one state; nothing was written. Run it again.
    Conflict,
    /// The transaction's body asked to be run again from its outermost level.
    Restart,
    /// The commit may or may not have happened (never answered by a back end on one machine).
    CommitUnknown {
        /// Why nobody knows, and what to do.
        why: String,
    },
    /// The transaction has reached its time limit, all tries and waits together; nothing was written.
    TransactionTimeout {
        /// The limit that was reached.
        limit: Duration,
        /// For whom it waited then, if it did.
        holder: Option<Holder>,
    },
    /// Another process holds a page, a step or the log, and has not gone on for the whole wait limit. The operation has not
    /// happened (of several values set by one call those before may be set).
    Busy {
        /// How long it was waited for.
        waited: Duration,
        /// Who it is, if it is one and the same.
        holder: Option<Holder>,
    },
    /// The store is not to be reached now - its server is down, or the way there is - and nothing has happened. Try later.
    Unavailable {
        /// The store.
        place: Place,
        /// Why not, and what to do.
        why: String,
    },
    /// Granting the lock would close a circle of waiters; release what you hold and try again.
    Deadlock,
    /// The operation needs an open transaction (or the reverse); the text says which.
    TransactionState(&'static str),
    /// The transaction belongs to the parent of this forked process.
    Forked,
    /// The key is longer than the back end takes.
    KeyTooLong {
        /// Bytes given.
        bytes: usize,
        /// Bytes at most.
        limit: usize,
    },
    /// The value is longer than the back end takes.
    ValueTooLong {
        /// Bytes given.
        bytes: usize,
        /// Bytes at most.
        limit: usize,
    },
    /// A bounded resource is used up: the text names it, its limit and what to do.
    LimitReached {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        limit: u64,
    },
    /// A long value would be read by a session that reads no such ones, as [`crate::Bounds::limit_reads`] has it.
    LongRead {
        /// How many bytes would have been read.
        bytes: usize,
    },
    /// A channel holds as many messages as it was created for.
    ChannelFull,
    /// The database was opened, or the transaction begun, read-only.
    ReadOnly,
    /// The file is not a Perilune database, or not one this version reads.
    NotADatabase {
        /// The file.
        place: Place,
        /// Why not, and what to do.
        why: String,
    },
    /// The database is there, but cannot be opened now or here.
    CannotOpen {
        /// The file.
        place: Place,
        /// Why not, and what to do.
        why: String,
    },
    /// No space is left for growth; nothing was written. Reads and smaller writes go on.
    NoSpace {
        /// The file that could not grow.
        place: Place,
        /// Whether it is this process that may not make files larger (`ulimit -f`), rather than the disk that is
        /// full.
        is_limited: bool,
    },
    /// The operating system refused an operation on a file.
    Io {
        /// What was being done.
        action: &'static str,
        /// The file.
        place: Place,
        /// The system's answer.
        source: io::Error,
    },
    /// The commit has happened and every process sees it, but it could not be made durable: a crash of the
    /// machine may still take it back. Not to be done again.
    NotDurable {
        /// Why not, and what to do.
        why: String,
    },
    /// Nothing was written, and nobody writes any more; reads go on. Either a sync has failed, and what is on disk is
    /// unknown; or the log cannot be written.
    WritesStopped {
        /// The file that could not be synced, or written.
        place: Place,
        /// The system's answer.
        source: io::Error,
        /// Whether it stays so until all have closed the database: a sync has failed. Else it is tried again all
        /// the time.
        is_final: bool,
    },
    /// The name of a database that is open leads elsewhere by now: this process writes no more, reads go on in
    /// what it had.
    Replaced {
        /// The name.
        place: Place,
    },
    /// Bytes in the database contradict its format; the text names the place.
    Corrupt {
        /// Which page or record, and what is wrong with it.
        place: String,
    },
    /// Bytes in the database contradict its format, and because of that a range of keys cannot be read. The rest can.
    Lost {
        /// Which page or record, and what is wrong with it.
        place: String,
        /// The keys that are lost: those behind the first, up to and with the second; empty: from the
        /// begin, to the end. Who reads on goes on at the second with a zero byte behind it.
        keys: Box<(Vec<u8>, Vec<u8>)>,
    },
    /// A server that has the store answered with an error that only it knows the particulars of.
    Answered {
        /// The word for the error's kind, as `NO_SPACE`, which is the public interface's.
        kind: &'static str,
        /// What happened, and what to do.
        text: String,
    },
    /// The caller's arithmetic or test on a value refused; the text is the caller's.
    Refused(String),
    /// An option or argument is unknown or out of range; the text says which values are good.
    Invalid(String),
    /// An invariant of Perilune itself failed. Please report it with the text.
    Internal(String),
}

impl Error {
    /// Whether somebody was waited for in vain.
    #[must_use]
    pub fn is_wait(&self) -> bool {
        matches!(self, Error::Busy { .. } | Error::TransactionTimeout { .. })
    }

    /// Whether the transaction's runner handles this by running the transaction again.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        matches!(self, Error::Conflict | Error::Restart)
    }

    /// What is told of a commit that has happened and that `cause` keeps from the disk.
    #[must_use]
    pub fn not_durable(cause: &Error) -> Error {
        Error::NotDurable { why: Cause(cause).to_string() }
    }
}

/// What stands in the way, and what to do, without what has become of the operation.
struct Cause<'a>(&'a Error);

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::NoSpace { place, is_limited: true } => write!(
                f,
                "{place}: this process may make no file as large as it would have to be: raise `ulimit -f`, or open with \
                 a smaller max_size"),
            Error::NoSpace { place, is_limited: false } => write!(
                f,
                "{place}: no space left to grow: free some space on this file system, or try again in a moment, when a \
                 checkpoint may have freed some"),
            Error::WritesStopped { place, source, is_final: true } => write!(
                f,
                "{place}: writing has stopped since fdatasync failed ({source}): nothing committed is lost while the \
                 machine runs; see to the disk, close the database in all processes (`perilune processes` \
                 names them) and open it again, which writes everything anew"),
            Error::WritesStopped { place, source, is_final: false } => write!(
                f,
                "{place}: writing has stopped since the log cannot be written ({source}): it is tried again several \
                 times a second, see to the disk"),
            other => other.fmt(f),
        }
    }
}

impl Error {
    /// Says for whom it was waited, and how long.
    fn fmt_wait(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TransactionTimeout { limit, holder: None } => write!(
                f,
                "the transaction reached its time limit of {} s: make it shorter, or give it a higher `timeout`",
                limit.as_secs_f64()
            ),
            Error::TransactionTimeout { limit, holder: Some(holder) } => write!(
                f,
                "the transaction reached its time limit of {} s waiting for {holder}",
                limit.as_secs_f64()
            ),
            Error::Busy { waited, holder: Some(holder) } => {
                write!(f, "gave up after {:.3} s of waiting for {holder}", waited.as_secs_f64())
            }
            Error::Busy { waited, holder: None } => write!(
                f,
                "gave up after {:.3} s in which others were faster again and again: try again, or with a higher `wait_limit`",
                waited.as_secs_f64()
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Conflict => write!(f, "the transaction met a concurrent change and has to run again"),
            Error::Restart => write!(f, "the transaction asked to run again"),
            Error::TransactionTimeout { .. } | Error::Busy { .. } => self.fmt_wait(f),
            Error::Deadlock => write!(
                f,
                "waiting for this lock would close a circle of waiters: release the locks held and try again"
            ),
            Error::TransactionState(what) => f.write_str(what),
            Error::Forked => write!(
                f,
                "this transaction or snapshot was begun before fork() and belongs to the parent process: leave it in the \
                 child, then begin another"
            ),
            Error::KeyTooLong { bytes, limit } => write!(
                f,
                "the key takes {bytes} bytes, {limit} at most: use shorter or fewer subscripts"
            ),
            Error::ValueTooLong { bytes, limit } => {
                write!(f, "the value has {bytes} bytes, {limit} at most: store it in several nodes")
            }
            Error::LimitReached { what, limit } => write!(f, "too many {what}: the limit is {limit}"),
            Error::LongRead { bytes } => {
                write!(f, "{bytes} bytes of a value are more than this session reads at once: read pieces of it")
            }
            Error::ChannelFull => write!(
                f,
                "the channel is full: receive its messages, or create it larger or with DropOldest"
            ),
            Error::ReadOnly => write!(f, "the database or transaction is read-only: open or begin it with read_only=false to write"),
            Error::NotADatabase { place, why } => write!(f, "{place}: {why}"),
            Error::CannotOpen { place, why } | Error::Unavailable { place, why } => write!(f, "{place}: {why}"),
            Error::NoSpace { .. } => write!(f, "{}; nothing was written", Cause(self)),
            Error::Io { action, place, source } => write!(f, "{place}: cannot {action}: {source}"),
            Error::NotDurable { why } => {
                write!(f, "committed, but not yet on disk (a crash of the machine may take it back): {why}")
            }
            Error::WritesStopped { .. } => write!(f, "{}; this was not written", Cause(self)),
            Error::Replaced { place } => write!(
                f,
                "{place}: the database was removed or replaced (or renamed) while this process had it open: it writes no \
                 more, and reads go on in the old one; open it again"),
            Error::Corrupt { place } => write!(
                f,
                "the database is damaged: {place}: see `perilune check`; `perilune salvage` copies what can be read"
            ),
            Error::Lost { place, keys } => {
                let (after, upto) = (keys.0.escape_ascii().to_string(), keys.1.escape_ascii().to_string());
                write_lost(f, place, &after, &upto)
            }
            Error::Answered { text, .. } => f.write_str(text),
            Error::CommitUnknown { why } | Error::Refused(why) => f.write_str(why),
            Error::Invalid(why) => f.write_str(why),
            Error::Internal(what) => write!(f, "internal error, please report it: {what}"),
        }
    }
}

/// Writes what is damaged, and which keys are lost: those behind `after` (empty: from the first key on), up to `upto` (empty:
/// to the last key).
///
/// # Errors
/// What writing to `f` answers.
pub fn write_lost(f: &mut fmt::Formatter<'_>, place: &str, after: &str, upto: &str) -> fmt::Result {
    write!(f, "the database is damaged: {place}; ")?;
    match (after.is_empty(), upto.is_empty()) {
        (true, true) => write!(f, "nothing can be read")?,
        (true, false) => write!(f, "what lies up to {upto} cannot be read")?,
        (false, true) => write!(f, "what lies behind {after} cannot be read")?,
        (false, false) => write!(f, "what lies behind {after}, up to {upto}, cannot be read")?,
    }
    write!(f, ": see `perilune check`; `perilune salvage` copies what can be read")
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } | Error::WritesStopped { source, .. } => Some(source),
            _ => None,
        }
    }
}
