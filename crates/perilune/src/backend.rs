//! The back ends: the engine, and a server's database. Only this file names both; everything else sees the
//! storage traits.
//!
//! Invariant: an operation of the engine costs one compare more than a call of its own, which the processor
//! foresees.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use perilune_store::{
    Added, Addition, Bulk, Change, ChannelOptions, CommitHook, Entries, Error as StoreError, Facets, Figure,
    Limits, LockOwner, LockReport, LockRequest, Locks, Message, Messages, Page, Presence, ProcessReport,
    Reports, Result as StoreResult, Scan, Session as StoreSession, Span, Store, TransactionOptions,
    Transactions, Watch, WatchId, WatchRequest,
};

use crate::remote::{is_address, Glance, RemoteDatabase, RemoteSession};
use crate::{OpenOptions, Result};

pub(crate) use perilune_engine::{install_sigbus, LostRange, SalvageReport};
pub use perilune_engine::{BackupKind, BackupReport, CompactReport, LostPage, RecoveryReport};

/// The store below.
#[derive(Clone)]
pub(crate) enum Backend {
    /// A file that this process maps.
    File(perilune_engine::Database),
    /// A server's.
    Server(RemoteDatabase),
}

/// A session of the store below.
#[allow(clippy::large_enum_variant, reason = "one a thread, and the large one is the fast one")]
pub(crate) enum BackendSession {
    /// Of a file.
    File(perilune_engine::Session),
    /// Of a server.
    Server(Box<RemoteSession>),
}

/// Opens the store at `path`.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Backend> {
    if is_address(path) {
        return Ok(Backend::Server(RemoteDatabase::open(path, options)?));
    }
    Ok(Backend::File(perilune_engine::Database::open(path, &self::options(options)?)?))
}

/// The store's own options.
pub(crate) fn options(options: &OpenOptions) -> Result<perilune_engine::OpenOptions> {
    Ok(perilune_engine::OpenOptions {
        create: options.create,
        read_only: options.read_only,
        durability: options.level()?,
        max_size: options.bytes_max()?,
        timeout: options.timeout,
        wait_limit: options.wait_limit,
        wake_stopped: options.wake_stopped,
        file_mode: options.file_mode,
        shm_dir: options.shm_dir.clone(),
        allow_any_filesystem: options.allow_any_filesystem,
        accept_lost_commits: options.accept_lost_commits,
        behind_damage: options.behind_damage,
    })
}

/// What is wrong with the store's own structure, and what was.
pub(crate) fn verify(backend: &Backend) -> Result<(Vec<String>, Vec<String>)> {
    let database = match backend {
        Backend::File(database) => database,
        Backend::Server(database) => return Ok(database.refuse("verify")?),
    };
    let mended = database.mended()?;
    match database.verify() {
        Ok(_) => Ok((Vec::new(), mended)),
        Err(StoreError::Corrupt { place }) => Ok((vec![place], mended)),
        Err(error) => Err(error.into()),
    }
}

/// Writes a file anew; see [`perilune_engine::Database::compact`].
pub(crate) fn compact(
    path: &Path,
    options: &perilune_engine::OpenOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> StoreResult<CompactReport> {
    perilune_engine::Database::compact(path, options, progress)
}

/// Copies what can be read; see [`perilune_engine::Database::salvage`].
pub(crate) fn salvage(
    path: &Path,
    new: &Path,
    options: &perilune_engine::OpenOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> StoreResult<SalvageReport> {
    perilune_engine::Database::salvage(path, new, options, progress)
}

impl Backend {
    pub(crate) fn session(&self) -> StoreResult<BackendSession> {
        match self {
            Backend::File(database) => database.session().map(BackendSession::File),
            Backend::Server(database) => Ok(BackendSession::Server(Box::new(database.session()?))),
        }
    }

    pub(crate) fn snapshot(&self) -> StoreResult<BackendSession> {
        match self {
            Backend::File(database) => database.snapshot().map(BackendSession::File),
            Backend::Server(database) => database.refuse("a snapshot"),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        match self {
            Backend::File(database) => database.limits(),
            Backend::Server(database) => database.limits(),
        }
    }

    pub(crate) fn checkpoint(&self) -> StoreResult<bool> {
        match self {
            Backend::File(database) => database.checkpoint(),
            Backend::Server(database) => database.refuse("a checkpoint"),
        }
    }

    pub(crate) fn recovery(&self) -> Option<&RecoveryReport> {
        match self {
            Backend::File(database) => database.recovery(),
            Backend::Server(_) => None,
        }
    }

    pub(crate) fn close(self) -> StoreResult<()> {
        match self {
            Backend::File(database) => database.close(),
            Backend::Server(_) => Ok(()),
        }
    }

    pub(crate) fn backup(
        &self,
        dest: &Path,
        kind: BackupKind,
        options: &perilune_engine::OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> StoreResult<BackupReport> {
        match self {
            Backend::File(database) => database.backup(dest, kind, options, progress),
            Backend::Server(database) => database.refuse("a backup"),
        }
    }

    pub(crate) fn figures(&self) -> StoreResult<Vec<Figure>> {
        match self {
            Backend::File(database) => Reports::figures(database),
            Backend::Server(database) => database.figures(),
        }
    }

    pub(crate) fn locks(&self) -> StoreResult<Vec<LockReport>> {
        match self {
            Backend::File(database) => Reports::locks(database),
            Backend::Server(database) => Reports::locks(database),
        }
    }

    pub(crate) fn processes(&self) -> StoreResult<Vec<ProcessReport>> {
        match self {
            Backend::File(database) => database.processes(),
            Backend::Server(database) => database.processes(),
        }
    }

    /// The address of the server, without its password.
    pub(crate) fn address(&self) -> Option<String> {
        match self {
            Backend::File(_) => None,
            Backend::Server(database) => Some(database.shown()),
        }
    }
}

impl BackendSession {
    /// [`StoreSession::next_within`] for a caller that looks at so much of the key: to a server it matters.
    #[inline]
    pub(crate) fn glance_next(
        &mut self,
        (from, inclusive, end): (&[u8], bool, &[u8]),
        glance: Glance,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> StoreResult<bool> {
        match self {
            BackendSession::File(session) => session.next_within(from, inclusive, end, key, value),
            BackendSession::Server(session) => {
                session.glance_next((from, inclusive, end), glance, key, value)
            }
        }
    }

    /// [`StoreSession::previous_within`] for a caller that looks at so much of the key: to a server it matters.
    #[inline]
    pub(crate) fn glance_previous(
        &mut self,
        (from, begin): (&[u8], &[u8]),
        glance: Glance,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> StoreResult<bool> {
        match self {
            BackendSession::File(session) => session.previous_within(from, begin, key, value),
            BackendSession::Server(session) => session.glance_previous((from, begin), glance, key, value),
        }
    }

    /// [`Bulk::entries`] for a caller that looks at so much of the keys: to a server it matters.
    #[inline]
    pub(crate) fn glance_entries(
        &mut self,
        scan: &Scan<'_>,
        glance: Glance,
        out: &mut Entries,
    ) -> StoreResult<bool> {
        let session = match self {
            BackendSession::File(session) => return session.entries(scan, out),
            BackendSession::Server(session) => session,
        };
        let (key, value) = out.single();
        let value = scan.values.then_some(value);
        if scan.backwards {
            return session.glance_previous((scan.from, scan.bound), glance, key, value);
        }
        session.glance_next((scan.from, scan.inclusive, scan.bound), glance, key, value)
    }

    /// The value of a child that a step back has come to by a key below it.
    pub(crate) fn own_value(&mut self, child: &[u8], value: (&mut Vec<u8>, bool)) -> StoreResult<bool> {
        match self {
            BackendSession::File(session) => session.get(child, value.0),
            BackendSession::Server(session) => session.own_value(child, value),
        }
    }
}

/// Hands each method on to the back end in use.
macro_rules! hand_on {
    ($($(#[$attribute:meta])* fn $name:ident(&mut self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {$(
        $(#[$attribute])*
        fn $name(&mut self $(, $argument: $type)*) $(-> $result)? {
            match self {
                BackendSession::File(session) => session.$name($($argument),*),
                BackendSession::Server(session) => session.$name($($argument),*),
            }
        }
    )*};
}

impl StoreSession for BackendSession {
    hand_on! {
        #[inline]
        fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> StoreResult<bool>;
        #[inline]
        fn presence(&mut self, key: &[u8]) -> StoreResult<Presence>;
        #[inline]
        fn next_within(
            &mut self, from: &[u8], inclusive: bool, end: &[u8], key: &mut Vec<u8>, value: Option<&mut Vec<u8>>
        ) -> StoreResult<bool>;
        #[inline]
        fn previous_within(&mut self, from: &[u8], begin: &[u8], key: &mut Vec<u8>, value: Option<&mut Vec<u8>>) -> StoreResult<bool>;
        fn page(&mut self, span: &Span<'_>, with_values: bool, page: &mut Page) -> StoreResult<()>;
        #[inline]
        fn set(&mut self, key: &[u8], value: &[u8]) -> StoreResult<()>;
        #[inline]
        fn remove(&mut self, key: &[u8]) -> StoreResult<bool>;
        fn remove_prefix(&mut self, prefix: &[u8]) -> StoreResult<()>;
        #[inline]
        fn add(&mut self, key: &[u8], addition: Addition<'_>) -> StoreResult<Added>;
        #[inline]
        fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> StoreResult<()>;
        fn compare_and_set(&mut self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> StoreResult<bool>;
        fn set_commit_hook(&mut self, hook: Option<CommitHook>);
    }
}

impl Bulk for BackendSession {
    #[inline]
    fn are_current(&self, entries: &Entries) -> bool {
        match self {
            BackendSession::File(session) => session.are_current(entries),
            BackendSession::Server(session) => session.are_current(entries),
        }
    }

    hand_on! {
        fn get_pieces(
            &mut self, key: &[u8], pieces: &[Range<usize>], out: &mut Vec<u8>
        ) -> StoreResult<Option<usize>>;
        #[inline]
        fn glance_within(
            &mut self, from: &[u8], inclusive: bool, end: &[u8], key: &mut Vec<u8>, value: &mut Vec<u8>
        ) -> StoreResult<bool>;
        fn set_piece(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> StoreResult<Option<usize>>;
        fn entries(&mut self, scan: &Scan<'_>, out: &mut Entries) -> StoreResult<bool>;
        fn set_each(&mut self, pairs: &[(&[u8], &[u8])]) -> StoreResult<()>;
        fn count(&mut self, span: &Span<'_>, key: &mut Vec<u8>) -> StoreResult<u64>;
        fn count_groups(
            &mut self, span: &Span<'_>, group: &dyn Fn(&[u8]) -> usize, key: &mut Vec<u8>
        ) -> StoreResult<Option<u64>>;
    }
}

impl Transactions for BackendSession {
    hand_on! {
        fn begin(&mut self, options: &TransactionOptions) -> StoreResult<()>;
        fn commit(&mut self) -> StoreResult<()>;
        fn rollback(&mut self) -> StoreResult<()>;
        fn validate(&mut self) -> StoreResult<()>;
        fn retry(&mut self) -> StoreResult<()>;
        fn give_up(&mut self);
    }

    #[inline]
    fn depth(&self) -> usize {
        match self {
            BackendSession::File(session) => session.depth(),
            BackendSession::Server(session) => session.depth(),
        }
    }

    fn restarts(&self) -> u32 {
        match self {
            BackendSession::File(session) => session.restarts(),
            BackendSession::Server(session) => session.restarts(),
        }
    }
}

/// Hands out what the engine has and a server has not.
macro_rules! of_files {
    ($($facet:ident)*) => {$(
        #[inline]
        fn $facet(&mut self) -> Option<&mut perilune_engine::Session> {
            match self {
                BackendSession::File(session) => Some(session),
                BackendSession::Server(_) => None,
            }
        }
    )*};
}

impl Facets for BackendSession {
    type Locks = BackendSession;
    type Watch = BackendSession;
    type Messages = BackendSession;
    type Deferral = perilune_engine::Session;
    type Optimistic = perilune_engine::Session;
    type ReadSets = perilune_engine::Session;
    type Bounds = perilune_engine::Session;

    fn locks(&mut self) -> Option<&mut BackendSession> {
        Some(self)
    }

    fn watches(&mut self) -> Option<&mut BackendSession> {
        Some(self)
    }

    fn messages(&mut self) -> Option<&mut BackendSession> {
        Some(self)
    }

    of_files! { deferral optimistic read_sets bounds }
}

impl BackendSession {
    /// The engine's session, to be asked what changes nothing.
    #[inline]
    pub(crate) fn file(&self) -> Option<&perilune_engine::Session> {
        match self {
            BackendSession::File(session) => Some(session),
            BackendSession::Server(_) => None,
        }
    }

    /// Whether it is behind a server.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, BackendSession::Server(_))
    }

    /// Has the server run a program; a file has none.
    pub(crate) fn run(&mut self, options: &TransactionOptions, program: &[u8]) -> StoreResult<Vec<u8>> {
        match self {
            BackendSession::File(_) => {
                Err(StoreError::Invalid("the database is in a file: there is no server to run it".to_owned()))
            }
            BackendSession::Server(session) => session.run(options, program),
        }
    }
}

impl Locks for BackendSession {
    hand_on! {
        fn new_lock_owner(&mut self) -> LockOwner;
        fn lock(&mut self, owner: LockOwner, requests: &[LockRequest<'_>], timeout: Option<Duration>) -> StoreResult<bool>;
        fn unlock(&mut self, owner: LockOwner, name: &[u8]) -> StoreResult<bool>;
        fn unlock_all(&mut self, owner: LockOwner) -> StoreResult<()>;
        fn lock_count(&mut self, owner: LockOwner, name: &[u8]) -> StoreResult<u32>;
    }
}

impl Watch for BackendSession {
    hand_on! {
        fn watch(&mut self, requests: &[WatchRequest<'_>]) -> StoreResult<WatchId>;
        fn wait(&mut self, id: WatchId, timeout: Option<Duration>) -> StoreResult<bool>;
        fn watch_descriptor(&mut self, id: WatchId) -> StoreResult<i32>;
        fn unwatch(&mut self, id: WatchId);
    }
}

impl Messages for BackendSession {
    hand_on! {
        fn create_channel(&mut self, name: &[u8], options: ChannelOptions) -> StoreResult<()>;
        fn post(&mut self, name: &[u8], body: &[u8]) -> StoreResult<u64>;
        fn receive(&mut self, name: &[u8], timeout: Option<Duration>) -> StoreResult<Option<Message>>;
        fn follow(&mut self, name: &[u8], after: u64, timeout: Option<Duration>) -> StoreResult<Option<Message>>;
        fn remove_channel(&mut self, name: &[u8]) -> StoreResult<()>;
    }
}
