//! What the databases of `openings` and `logs` hold: records that all have one version, the number of the
//! commit that wrote them last.

use std::path::Path;
use std::time::Duration;

use perilune_engine::{Database, OpenOptions, Session};
use perilune_store::{transact, Durability, Error, Result, Session as _, Store, TransactionOptions};

/// Records in the database.
pub(crate) const RECORDS: u32 = 16;
/// How long a transaction may take: single steps take their time.
const PATIENCE: Duration = Duration::from_secs(600);

/// How databases are opened, at a level, or at the one they have.
pub(crate) fn options(level: Option<Durability>) -> OpenOptions {
    OpenOptions { max_size: 64 << 20, durability: level, ..OpenOptions::default() }
}

pub(crate) fn key(index: u32) -> Vec<u8> {
    format!("node{index:04}").into_bytes()
}

/// The records' values of a version; one is long.
fn value(index: u32, version: u32) -> Vec<u8> {
    let words = if index == 7 { 1_200 } else { 2 };
    [index, version].into_iter().cycle().take(words).flat_map(u32::to_le_bytes).collect()
}

/// Gives all records a version, one after the other.
pub(crate) fn fill(database: &Database, version: u32) -> Result<()> {
    let mut session = database.session()?;
    (0..RECORDS).try_for_each(|index| session.set(&key(index), &value(index, version)))
}

/// Gives all records a version, in one transaction.
pub(crate) fn commit(session: &mut Session, version: u32) -> Result<()> {
    let options = TransactionOptions { timeout: PATIENCE, ..TransactionOptions::default() };
    transact(session, &options, |session| {
        (0..RECORDS).try_for_each(|index| session.set(&key(index), &value(index, version)))
    })
}

/// The version that all records of the database at `path` have, which this finds to be in good order.
pub(crate) fn version(database: &Database) -> Result<u32> {
    let report = database.verify()?;
    if report.records < u64::from(RECORDS) {
        return Err(Error::Internal(format!("only {} records are left", report.records)));
    }
    let mut session = database.session()?;
    let (mut found, mut first) = (Vec::new(), None);
    for index in 0..RECORDS {
        session.get(&key(index), &mut found)?;
        let version = found.get(4..8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        if found != value(index, version) || *first.get_or_insert(version) != version {
            return Err(Error::Internal(format!("record {index} is lost, or of another moment")));
        }
    }
    Ok(first.unwrap_or(0))
}

/// Makes a database of version 1 at `path`, and closes it.
pub(crate) fn create(path: &Path, level: Option<Durability>) -> Result<()> {
    let database = Database::open_threadless(path, &options(level))?;
    fill(&database, 1)?;
    database.close()
}
