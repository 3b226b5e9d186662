//! Killing whoever writes and syncs the log, makes room in a ring, changes the level, takes a checkpoint, lets
//! the file grow, recovers, closes, or makes a backup.
//!
//! The child has no threads but the one that is stepped, so nothing happens beside. The survivor looks after each
//! system call, whenever the watched words have changed, and besides after every [`BETWEEN`]th instruction that
//! writes to the shared files; as survivors would, and as one who comes after a crash of the machine.
//!
//! Deliberately absent: what a power loss leaves of what was written and not synced (`crash_sim`).

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use perilune_engine::{BackupKind, Database, Session};
use perilune_store::{Durability, Result, Session as _, Store};

use crate::openings::look;
use crate::records::{self, commit, fill, options};
use crate::run_case::{broken, Pace, Report};
use crate::setup::Directory;
use crate::stores::Stores;
use crate::survivor::{garble, Expected, Survivor, BACKUP, DATABASE};
use crate::tracee::{Step, Tracee};

/// Of the instructions that write to shared files, one in so many is followed by a look; where `-shm` is made
/// anew, one in [`BETWEEN_ANEW`].
const BETWEEN: u64 = 16;
/// See [`BETWEEN`].
const BETWEEN_ANEW: u64 = 128;

/// What remains of a segment where a batch is to go on in the next.
const SEGMENT_REST: u64 = 4 << 10;
/// What remains of a ring where a commit's record is to go on at its begin.
const RING_REST: u64 = 300;
/// Bytes of the values that fill rings and segments, while there is much room, and in the end.
const FILLERS: [usize; 2] = [1_500, 100];

/// The names of all cases here.
pub(crate) const NAMES: &[&str] = &[
    "flush",
    "flush-new-segment",
    "flush-used-segment",
    "flush-wrapped-ring",
    "make-room",
    "level-raised",
    "level-lowered",
    "log-checkpoint",
    "log-growth",
    "log-close",
    "log-recover",
    "log-recover-torn",
    "backup",
    "backup-again",
    "backup-newer",
];

type Act = Box<dyn FnOnce() -> Result<()>>;

/// Runs one case.
pub(crate) fn run(name: &str, pace: &Pace) -> Report {
    Report::of(|report| {
        let directory = Directory::new().map_err(broken)?;
        let copies = Directory::new().map_err(broken)?;
        let path = directory.path().join(DATABASE);
        let level = match name {
            "make-room" => Durability::Periodic,
            "level-raised" | "backup" | "backup-again" | "backup-newer" => Durability::None,
            _ => Durability::Fsync,
        };
        records::create(&path, Some(level))?;
        before(name, &path, level)?;
        let child = Tracee::start_with(|| {
            let act = prepare(name, &path, level).expect("the case is prepared");
            || act().expect("the operation succeeds")
        });
        let mut survivor = Survivor::new(directory.path(), copies.path(), expected(name));
        watch(&mut child.map_err(broken)?, directory.path(), &mut survivor, (name, pace), report)
            .map_err(broken)
    })
}

fn expected(name: &str) -> Expected {
    let (living, crashed) = match name {
        "level-raised" | "log-checkpoint" | "log-close" => ((2, 2), (2, 2)),
        "level-lowered" | "log-recover" | "log-recover-torn" => ((2, 2), (2, 2)),
        // It begins with a checkpoint.
        "backup" | "backup-again" | "backup-newer" => ((2, 2), (1, 2)),
        _ => ((1, 2), (1, 2)),
    };
    let crashed = if name == "level-raised" { (1, 2) } else { crashed };
    let backup = match name {
        "backup" => Some((0, 2)),
        "backup-again" | "backup-newer" => Some((1, 2)),
        _ => None,
    };
    Expected { living: Some(living), crashed: Some(crashed), backup }
}

/// What has happened before, by processes that are gone.
fn before(name: &str, path: &Path, level: Durability) -> Result<()> {
    match name {
        "level-lowered" => die_after(path, level, &[2]),
        "log-recover" => {
            die_after(path, level, &[1, 2])?;
            crash(path).map_err(broken)
        }
        "log-recover-torn" => {
            die_after(path, level, &[2, 3])?;
            tear(path).and_then(|()| crash(path)).map_err(broken)
        }
        "backup-again" | "backup-newer" => {
            let database = Database::open_threadless(path, &options(None))?;
            database.backup(
                &path.with_file_name(BACKUP),
                BackupKind::Whole,
                &options(None),
                &mut |_, _| {},
            )?;
            database.close()
        }
        _ => Ok(()),
    }
}

/// Lets a process commit these versions, and kills it.
fn die_after(path: &Path, level: Durability, versions: &[u32]) -> Result<()> {
    let works = || {
        let database = Database::open_threadless(path, &options(Some(level))).expect("the database opens");
        let mut session = database.session().expect("there is a session");
        for version in versions {
            commit(&mut session, *version).expect("the database takes writes");
        }
        std::mem::forget((session, database));
        || {}
    };
    Tracee::start_with(works).map(drop).map_err(broken)
}

/// The machine crashes: `-shm` is gone, and what the last checkpoint does not need holds anything.
fn crash(path: &Path) -> std::io::Result<()> {
    fs::remove_file(path.with_file_name("x.db-shm"))?;
    garble(path)
}

/// Damages the last batch of the log, which was not known to be on disk when it was written.
fn tear(path: &Path) -> std::io::Result<()> {
    let log = File::options().read(true).write(true).open(path.with_file_name("x.db-wal.0"))?;
    let mut bytes = vec![0; log.metadata()?.len() as usize];
    log.read_exact_at(&mut bytes, 0)?;
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    log.write_all_at(&[!bytes[last]], last as u64)
}

/// What the child does before it is stepped, and the operation.
fn prepare(name: &str, path: &Path, level: Durability) -> Result<Act> {
    let path = path.to_path_buf();
    if name.starts_with("log-recover") || name == "level-lowered" {
        let level = (name == "level-lowered").then_some(Durability::None);
        return Ok(Box::new(move || Database::open_threadless(&path, &options(level)).map(std::mem::forget)));
    }
    let database = Database::open_threadless(&path, &options(Some(level)))?;
    let mut session = database.session()?;
    match name {
        "flush-new-segment" => fill_segment(&database, &mut session)?,
        "flush-used-segment" => {
            fill_segment(&database, &mut session)?;
            commit(&mut session, 1)?;
            // What is in the first segment is needed no more; the batch to come goes there.
            database.checkpoint()?;
            fill_segment(&database, &mut session)?;
        }
        "flush-wrapped-ring" => fill_until(&mut session, |session| session.ring_room().1 as u64, RING_REST)?,
        "make-room" => fill_until(&mut session, |session| session.ring_room().0 as u64, 0)?,
        "log-growth" => {
            let commits = commits_before_growth()?;
            (0..commits).try_for_each(|_| commit(&mut session, 1))?;
        }
        "log-checkpoint" => {
            fill_segment(&database, &mut session)?;
            database.checkpoint()?;
            // In the next segment; the one before will be spare.
            commit(&mut session, 2)?;
        }
        "log-close" => commit(&mut session, 2)?,
        "level-raised" | "backup" | "backup-again" | "backup-newer" => fill(&database, 2)?,
        _ => {}
    }
    Ok(operation(name, path, database, session))
}

/// The operation of a case whose child has opened the database before.
fn operation(name: &str, path: PathBuf, database: Database, mut session: Session) -> Act {
    let kind = if name == "backup-newer" { BackupKind::Incremental } else { BackupKind::Whole };
    let wanted = match name {
        "log-growth" => [true, false, false],
        "flush-new-segment" | "flush-used-segment" => [false, true, false],
        "flush-wrapped-ring" | "make-room" => [false, false, true],
        _ => [false; 3],
    };
    match name {
        "log-checkpoint" => Box::new(move || {
            assert!(database.checkpoint()?, "there was nothing to write");
            std::mem::forget((session, database));
            Ok(())
        }),
        "log-close" => Box::new(move || {
            drop(session);
            database.close()
        }),
        "level-raised" => Box::new(move || {
            let second = Database::open_threadless(&path, &options(Some(Durability::Fsync)))?;
            std::mem::forget((session, database, second));
            Ok(())
        }),
        "backup" | "backup-again" | "backup-newer" => Box::new(move || {
            database.backup(&path.with_file_name(BACKUP), kind, &options(None), &mut |_, _| {})?;
            std::mem::forget((session, database));
            Ok(())
        }),
        _ => Box::new(move || {
            let before = shape(&database, &session)?;
            commit(&mut session, 2)?;
            // At periodic this is what a thread would do.
            database.flush()?;
            assert_eq!(way(before, shape(&database, &session)?), wanted, "the way it took");
            std::mem::forget((session, database));
            Ok(())
        }),
    }
}

/// Bytes of the file, bytes left in the segment, and bytes until the ring wraps or is half full.
fn shape(database: &Database, session: &Session) -> Result<[u64; 3]> {
    let (room, until_wrap) = session.ring_room();
    let in_ring = if room == 0 { 0 } else { until_wrap };
    Ok([database.statistics()?.file_bytes, database.log_room()?.unwrap_or(0), in_ring as u64])
}

/// Whether the file has grown, the log gone on in another segment, the ring wrapped or been emptied.
fn way(before: [u64; 3], after: [u64; 3]) -> [bool; 3] {
    [after[0] > before[0], after[1] > before[1], after[2] > before[2]]
}

/// Commits until the segment of the log has no room for the commit to come.
fn fill_segment(database: &Database, session: &mut Session) -> Result<()> {
    let room = |_: &Session| database.log_room().ok().flatten().unwrap_or(u64::MAX);
    fill_until(session, room, SEGMENT_REST)
}

/// Sets values until no more than `rest` bytes of room are left.
fn fill_until(session: &mut Session, room: impl Fn(&Session) -> u64, rest: u64) -> Result<()> {
    // NB: at fsync each value takes whole blocks of the log.
    for number in 0..100_000_u32 {
        let left = room(session);
        if left <= rest {
            return Ok(());
        }
        let filler = FILLERS[usize::from(left < 16 << 10)];
        session.set(&[b"filler", &number.to_be_bytes()[3..]].concat(), &vec![7; filler])?;
    }
    panic!("there is no end to it");
}

/// How many commits of all records a new database takes before one lets the file grow.
fn commits_before_growth() -> Result<u32> {
    let directory = Directory::new().map_err(broken)?;
    let path = directory.path().join(DATABASE);
    records::create(&path, Some(Durability::Fsync))?;
    let database = Database::open_threadless(&path, &options(Some(Durability::Fsync)))?;
    let mut session = database.session()?;
    let bytes = database.statistics()?.file_bytes;
    let mut count = 0;
    while database.statistics()?.file_bytes == bytes {
        commit(&mut session, 1)?;
        count += 1;
    }
    Ok(count - 1)
}

fn watch(
    child: &mut Tracee,
    directory: &Path,
    survivor: &mut Survivor<'_>,
    (name, pace): (&str, &Pace),
    report: &mut Report,
) -> std::io::Result<()> {
    let mut stores = Stores::new(child, Some(directory))?;
    let phase = pace.phase(name);
    let between = if name.starts_with("log-recover") { BETWEEN_ANEW } else { BETWEEN };
    let (mut before, mut touched) = (survivor.watched(), 0_u64);
    loop {
        stores.before(child)?;
        let enters_kernel = stores.enters_kernel();
        let step = child.step()?;
        if let Step::Broken(status) = step {
            report.problem(format!("instruction {}: the child broke: {status}", report.instructions));
            return Ok(());
        }
        stores.after()?;
        report.instructions += 1;
        let is_over = step == Step::Over;
        if stores.take_changed()? {
            touched += 1;
            let now = survivor.watched();
            let is_point = enters_kernel || now != before || touched.is_multiple_of(between);
            before = now;
            report.points += u64::from(is_point);
            if is_point && report.points % pace.every == phase && !is_over {
                look(survivor, report);
            }
        }
        if is_over {
            look(survivor, report);
            survivor.missing().into_iter().for_each(|problem| report.problem(problem));
            return Ok(());
        }
    }
}
