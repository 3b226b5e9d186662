//! The back ends: the mapped file, and any other store. Everything else of the crate sees the storage traits.
//!
//! An operation on a mapped file takes 40 ns, so the calls of a mapped session are direct: what tells it from
//! another store is one comparison, which the processor predicts. Other stores - a server's, one in memory - are
//! objects ([`any`]) that a table names by the scheme of their addresses ([`schemes`]): a new one is a row there.
//!
//! Example: `tcp://db.example` opens an object, `person.db` a mapped file.
//!
//! Invariant: what only a file can do, as a backup, is refused of others by name ([`Backend::refuse`]), and never
//! passed over.

mod any;
mod schemes;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use perilune_store::{
    Added, Addition, Bulk, Change, ChannelOptions, CommitHook, Entries, Error as StoreError, Granularity,
    Limits, LockOwner, LockRequest, Locks, Message, Messages, Page, Presence, Reports, Result as StoreResult,
    Scan, Session as StoreSession, Span, Store, TransactionOptions, Transactions, Watch, WatchId,
    WatchRequest,
};

use self::any::{AnySession, AnyStore};
use crate::{OpenOptions, Result};

pub(crate) use self::schemes::{open, scheme_of};
pub(crate) use perilune_engine::Session as MappedSession;
pub(crate) use perilune_engine::{install_sigbus, LostRange, SalvageReport};
pub use perilune_engine::{BackupKind, BackupReport, CompactReport, LostPage, RecoveryReport};

/// The store below, and what it is called: its path, or its address without a password.
#[derive(Clone)]
pub(crate) enum Backend {
    /// A file that this process maps.
    Mapped(perilune_engine::Database, Arc<Path>),
    /// Any other.
    Other { store: Arc<dyn AnyStore>, name: Arc<Path>, is_remote: bool },
}

/// A session of the store below.
#[allow(clippy::large_enum_variant, reason = "one a thread, and the large one is the fast one")]
pub(crate) enum BackendSession {
    /// Of a mapped file.
    Mapped(MappedSession),
    /// Of any other.
    Other(Box<dyn AnySession>),
}

/// The options of a mapped file.
pub(crate) fn mapped_options(options: &OpenOptions) -> Result<perilune_engine::OpenOptions> {
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
    let database = backend.mapped("verify")?;
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
            Backend::Mapped(database, _) => database.session().map(BackendSession::Mapped),
            Backend::Other { store, .. } => store.open_session().map(BackendSession::Other),
        }
    }

    pub(crate) fn snapshot(&self) -> StoreResult<BackendSession> {
        match self {
            Backend::Mapped(database, _) => database.snapshot().map(BackendSession::Mapped),
            Backend::Other { store, .. } => match store.open_snapshot() {
                Some(snapshot) => snapshot.map(BackendSession::Other),
                None => Err(self.refuse("a snapshot")),
            },
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        match self {
            Backend::Mapped(database, _) => database.limits(),
            Backend::Other { store, .. } => store.all_limits(),
        }
    }

    pub(crate) fn checkpoint(&self) -> StoreResult<bool> {
        self.mapped("a checkpoint")?.checkpoint()
    }

    pub(crate) fn recovery(&self) -> Option<&RecoveryReport> {
        match self {
            Backend::Mapped(database, _) => database.recovery(),
            Backend::Other { .. } => None,
        }
    }

    pub(crate) fn close(self) -> StoreResult<()> {
        match self {
            Backend::Mapped(database, _) => database.close(),
            Backend::Other { .. } => Ok(()),
        }
    }

    pub(crate) fn backup(
        &self,
        dest: &Path,
        kind: BackupKind,
        options: &perilune_engine::OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> StoreResult<BackupReport> {
        self.mapped("a backup")?.backup(dest, kind, options, progress)
    }

    /// Figures, locks, processes.
    pub(crate) fn reports(&self) -> StoreResult<&dyn Reports> {
        match self {
            Backend::Mapped(database, _) => Ok(database),
            Backend::Other { store, .. } => store.any_reports().ok_or_else(|| self.refuse("a report")),
        }
    }

    /// Its path, or its address without a password.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Backend::Mapped(_, name) | Backend::Other { name, .. } => name,
        }
    }

    /// Whether it is behind a server.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Backend::Other { is_remote: true, .. })
    }

    /// The mapped file, for what only it can do.
    fn mapped(&self, what: &str) -> StoreResult<&perilune_engine::Database> {
        match self {
            Backend::Mapped(database, _) => Ok(database),
            Backend::Other { .. } => Err(self.refuse(what)),
        }
    }

    /// The refusal of what only a file can do.
    fn refuse(&self, what: &str) -> StoreError {
        let where_else = if self.is_remote() { ": do it on the server's machine" } else { "" };
        StoreError::Invalid(format!(
            "{what} is for a database in a file, not for {}{where_else}",
            self.name().display()
        ))
    }
}

impl BackendSession {
    /// [`StoreSession::next_within`] or [`StoreSession::previous_within`] for a caller that looks at so much of what is
    /// found: see [`perilune_store::Granular`].
    #[inline]
    pub(crate) fn find(
        &mut self,
        scan: &Scan<'_>,
        granularity: Granularity,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> StoreResult<bool> {
        match self {
            BackendSession::Mapped(session) if scan.backwards => {
                session.previous_within(scan.from, scan.bound, key, value)
            }
            BackendSession::Mapped(session) => {
                session.next_within(scan.from, scan.inclusive, scan.bound, key, value)
            }
            // NB: a copy: what its address is given of would have to lie in memory, also for a step in a mapped file.
            BackendSession::Other(session) => find_elsewhere(&mut **session, *scan, granularity, key, value),
        }
    }

    /// [`Bulk::entries`] for a caller that looks at so much of the keys.
    #[inline]
    pub(crate) fn entries_at(
        &mut self,
        scan: &Scan<'_>,
        granularity: Granularity,
        out: &mut Entries,
    ) -> StoreResult<bool> {
        match self {
            BackendSession::Mapped(session) => session.entries(scan, out),
            BackendSession::Other(session) => match session.any_granular() {
                Some(granular) => {
                    let (key, value) = out.single();
                    granular.find(scan, granularity, key, scan.values.then_some(value))
                }
                None => session.entries(scan, out),
            },
        }
    }

    /// Whether the child that a step back has come to by a key below it has a value, copied into the buffer if it is wanted;
    /// else the buffer may hold anything.
    pub(crate) fn own_value(
        &mut self,
        child: &[u8],
        value: &mut Vec<u8>,
        is_wanted: bool,
    ) -> StoreResult<bool> {
        match self {
            BackendSession::Mapped(session) => session.get(child, value),
            BackendSession::Other(session) => match session.any_granular() {
                Some(granular) => granular.own_value(child, is_wanted.then_some(value)),
                None => session.get(child, value),
            },
        }
    }
}

/// [`BackendSession::find`] in any other back end than a mapped file.
#[inline(never)]
fn find_elsewhere(
    session: &mut dyn AnySession,
    scan: Scan<'_>,
    granularity: Granularity,
    key: &mut Vec<u8>,
    value: Option<&mut Vec<u8>>,
) -> StoreResult<bool> {
    match session.any_granular() {
        Some(granular) => granular.find(&scan, granularity, key, value),
        None if scan.backwards => session.previous_within(scan.from, scan.bound, key, value),
        None => session.next_within(scan.from, scan.inclusive, scan.bound, key, value),
    }
}

/// Hands each method on to the back end in use.
macro_rules! hand_on {
    ($($(#[$attribute:meta])* fn $name:ident(&mut self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {$(
        $(#[$attribute])*
        fn $name(&mut self $(, $argument: $type)*) $(-> $result)? {
            match self {
                BackendSession::Mapped(session) => session.$name($($argument),*),
                BackendSession::Other(session) => session.$name($($argument),*),
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
            BackendSession::Mapped(session) => session.are_current(entries),
            BackendSession::Other(session) => session.are_current(entries),
        }
    }

    hand_on! {
        fn get_pieces(
            &mut self, key: &[u8], pieces: &[Range<usize>], out: &mut Vec<u8>
        ) -> StoreResult<Option<usize>>;
        #[inline]
        fn preview_within(
            &mut self, from: &[u8], inclusive: bool, end: &[u8], key: &mut Vec<u8>, value: &mut Vec<u8>
        ) -> StoreResult<bool>;
        fn set_piece(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> StoreResult<Option<usize>>;
        fn entries(&mut self, scan: &Scan<'_>, out: &mut Entries) -> StoreResult<bool>;
        fn set_each(&mut self, pairs: &[(&[u8], &[u8])]) -> StoreResult<()>;
        fn count(&mut self, span: &Span<'_>, key: &mut Vec<u8>) -> StoreResult<u64>;
        fn estimate(&mut self, low: &[u8], high: &[u8]) -> StoreResult<Option<u64>>;
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
            BackendSession::Mapped(session) => session.depth(),
            BackendSession::Other(session) => session.depth(),
        }
    }

    fn restarts(&self) -> u32 {
        match self {
            BackendSession::Mapped(session) => session.restarts(),
            BackendSession::Other(session) => session.restarts(),
        }
    }
}

/// Hands out what only makes things faster, and that only of a mapped file.
macro_rules! of_mapped {
    ($($facet:ident)*) => {$(
        #[inline]
        pub(crate) fn $facet(&mut self) -> Option<&mut MappedSession> {
            match self {
                BackendSession::Mapped(session) => Some(session),
                BackendSession::Other(_) => None,
            }
        }
    )*};
}

impl BackendSession {
    of_mapped! { deferral optimistic read_sets bounds }

    /// The mapped file's session, to be asked what changes nothing.
    #[inline]
    pub(crate) fn file(&self) -> Option<&MappedSession> {
        match self {
            BackendSession::Mapped(session) => Some(session),
            BackendSession::Other(_) => None,
        }
    }

    /// Whether each operation is a journey, so that few large ones are better than many small ones.
    pub(crate) fn is_far(&mut self) -> bool {
        match self {
            BackendSession::Mapped(_) => false,
            BackendSession::Other(session) => session.any_granular().is_some(),
        }
    }

    /// Has the store run a program next to the data; a file has nobody to do so.
    pub(crate) fn run(&mut self, options: &TransactionOptions, program: &[u8]) -> StoreResult<Vec<u8>> {
        let programs = match self {
            BackendSession::Mapped(_) => None,
            BackendSession::Other(session) => session.any_programs(),
        };
        match programs {
            Some(programs) => programs.run(options, program),
            None => Err(StoreError::Invalid("the database has no server that could run it".to_owned())),
        }
    }
}

/// Hands each method of a facet on to the back end in use, which may lack it.
macro_rules! hand_on_facet {
    ($any:ident, $what:literal: $(fn $name:ident(&mut self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {$(
        fn $name(&mut self $(, $argument: $type)*) -> StoreResult<$result> {
            match self {
                BackendSession::Mapped(session) => session.$name($($argument),*),
                BackendSession::Other(session) => match session.$any() {
                    Some(facet) => facet.$name($($argument),*),
                    None => Err(StoreError::Invalid(concat!("this kind of database has no ", $what).to_owned())),
                },
            }
        }
    )*};
}

impl Locks for BackendSession {
    fn new_lock_owner(&mut self) -> LockOwner {
        match self {
            BackendSession::Mapped(session) => session.new_lock_owner(),
            // Where there are no locks any owner has as many.
            BackendSession::Other(session) => {
                session.any_locks().map_or(LockOwner(0), |locks| locks.new_lock_owner())
            }
        }
    }

    hand_on_facet! { any_locks, "locks":
        fn lock(&mut self, owner: LockOwner, requests: &[LockRequest<'_>], timeout: Option<Duration>) -> bool;
        fn unlock(&mut self, owner: LockOwner, name: &[u8]) -> bool;
        fn unlock_all(&mut self, owner: LockOwner) -> ();
        fn lock_count(&mut self, owner: LockOwner, name: &[u8]) -> u32;
    }
}

impl Watch for BackendSession {
    hand_on_facet! { any_watches, "watches":
        fn watch(&mut self, requests: &[WatchRequest<'_>]) -> WatchId;
        fn wait(&mut self, id: WatchId, timeout: Option<Duration>) -> bool;
        fn watch_descriptor(&mut self, id: WatchId) -> i32;
    }

    fn unwatch(&mut self, id: WatchId) {
        match self {
            BackendSession::Mapped(session) => session.unwatch(id),
            BackendSession::Other(session) => {
                if let Some(watches) = session.any_watches() {
                    watches.unwatch(id);
                }
            }
        }
    }
}

impl Messages for BackendSession {
    hand_on_facet! { any_messages, "channels":
        fn create_channel(&mut self, name: &[u8], options: ChannelOptions) -> ();
        fn post(&mut self, name: &[u8], body: &[u8]) -> u64;
        fn receive(&mut self, name: &[u8], timeout: Option<Duration>) -> Option<Message>;
        fn follow(&mut self, name: &[u8], after: u64, timeout: Option<Duration>) -> Option<Message>;
        fn remove_channel(&mut self, name: &[u8]) -> ();
    }
}
