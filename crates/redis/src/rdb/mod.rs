//! Redis's dumps (RDB, versions 1 to 12) into the tree.
//!
//! Invariants
//! - The bytes are hostile: every length is compared with what is there before memory is taken for it.
//! - A key is put down whole, in place of what lay there; keys before a damaged one stay, so that the same file can
//!   be imported again.
//! - Nothing is left out in silence: modules are an error that names the key, and streams, unless they are to be left out; those
//!   are counted then, and so are functions, which the dump holds as source.
//!
//! Deliberately absent: writing such files; what a replica is sent.

mod compact;
mod reader;
mod stream;

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Read};

use perilune::{Batch, Database, Session};

use self::compact::{intset, listpack, pairs, scores, ziplist, zipmap};
use self::reader::{Reader, Wrong};
use crate::effects::Effects;
use crate::failure::{text_of, Failure};
use crate::keyspace::{Contents, Keys, Scored};
use crate::limits::DATABASES_MOST;
use perilune_net::clock::clock;

/// Bytes of nodes that are set at a time.
const BATCH_BYTES: usize = 4 << 20;
/// Keys between two reports of progress.
const KEYS_A_LOOK: u64 = 256;

/// What becomes of streams, of which there are none here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// The import ends with an error that names the key.
    #[default]
    Refused,
    /// They are counted and left out.
    LeftOut,
}

/// What an import has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Keys that are in the database now.
    pub keys: u64,
    /// Keys whose time had passed, which were left out.
    pub expired: u64,
    /// Streams that were left out.
    pub streams: u64,
    /// Libraries of functions in the file, which were left out: load them with FUNCTION LOAD.
    pub functions: u64,
    /// Bytes of the file that were read.
    pub bytes: u64,
}

/// Why a dump could not be imported.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// The file is none, is damaged, or ends too early.
    Damaged {
        /// Bytes before the place.
        at: u64,
        /// What was met.
        what: String,
    },
    /// The file holds what there is none of here.
    Unsupported {
        /// Which key, and what it is.
        what: String,
    },
    /// The file cannot be read.
    Io(io::Error),
    /// The database answered.
    Database(perilune::Error),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Damaged { at, what } => {
                write!(
                    f,
                    "{what}, at byte {at}: check the file with redis-check-rdb, or dump it anew with SAVE"
                )
            }
            ImportError::Unsupported { what } => {
                write!(f, "{what}: remove it from the Redis server and dump again")
            }
            ImportError::Io(error) => write!(f, "cannot read the dump: {error}"),
            ImportError::Database(error) => write!(f, "{}", text_of(error)),
        }
    }
}

impl std::error::Error for ImportError {}

impl From<perilune::Error> for ImportError {
    fn from(error: perilune::Error) -> ImportError {
        ImportError::Database(error)
    }
}

impl From<Failure> for ImportError {
    fn from(failure: Failure) -> ImportError {
        ImportError::Database(failure.into())
    }
}

type Result<T> = std::result::Result<T, ImportError>;

/// Imports the dump that `input` reads, and tells `progress` now and then how far it has come.
///
/// # Errors
/// [`ImportError`]; the keys before the one that failed are imported.
pub fn import_rdb(
    database: &Database,
    input: impl Read,
    streams: Streams,
    mut progress: impl FnMut(&Imported),
) -> std::result::Result<Imported, ImportError> {
    let mut session = database.session()?;
    let mut import = Import {
        reader: Reader::new(input),
        streams,
        session: &mut session,
        effects: Effects::default(),
        batch: Batch::new(),
        waiting: HashSet::new(),
        database: 0,
        now: clock(),
        done: Imported::default(),
    };
    let outcome = import.run(&mut progress);
    // What was understood is put down, whatever came behind it.
    import.flush()?;
    outcome.map_err(|wrong| import.told(wrong))?;
    import.done.bytes = import.reader.place();
    Ok(import.done)
}

struct Import<'s, R> {
    reader: Reader<R>,
    streams: Streams,
    session: &'s mut Session,
    effects: Effects,
    batch: Batch,
    /// Keys in the batch.
    waiting: HashSet<(i64, Vec<u8>)>,
    database: i64,
    now: i64,
    done: Imported,
}

impl<R: Read> Import<'_, R> {
    fn told(&self, wrong: Wrong) -> ImportError {
        match wrong {
            Wrong::Damaged(what) => ImportError::Damaged { at: self.reader.place(), what: what.to_owned() },
            Wrong::Unsupported(what) => ImportError::Unsupported { what },
            Wrong::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                ImportError::Damaged { at: self.reader.place(), what: "the file ends too early".to_owned() }
            }
            Wrong::Io(error) => ImportError::Io(error),
            Wrong::Other(error) => *error,
        }
    }

    fn run(&mut self, progress: &mut impl FnMut(&Imported)) -> reader::Result<()> {
        let version = self.reader.header()?;
        let mut expires = None;
        loop {
            match self.reader.byte()? {
                0xFA => {
                    self.reader.string()?;
                    self.reader.string()?;
                }
                0xFB => {
                    self.reader.length()?;
                    self.reader.length()?;
                }
                0xFE => {
                    self.database = match i64::try_from(self.reader.length()?) {
                        Ok(database) if database < DATABASES_MOST => database,
                        _ => return unsupported(format!("a database beyond {}", DATABASES_MOST - 1)),
                    }
                }
                0xFD => {
                    let seconds = i32::from_le_bytes(self.reader.array()?);
                    expires = Some(i64::from(seconds) * 1_000);
                }
                0xFC => expires = Some(i64::from_le_bytes(self.reader.array()?)),
                0xF8 => drop(self.reader.length()?),
                0xF9 => drop(self.reader.byte()?),
                0xF5 => {
                    self.reader.string()?;
                    self.done.functions += 1;
                }
                0xF6 | 0xF7 => return unsupported("data of a module".to_owned()),
                0xFF => return self.reader.end(version),
                kind => {
                    self.key(kind, expires.take())?;
                    if self.done.keys.is_multiple_of(KEYS_A_LOOK) {
                        self.done.bytes = self.reader.place();
                        progress(&self.done);
                    }
                }
            }
        }
    }

    fn key(&mut self, kind: u8, expires: Option<i64>) -> reader::Result<()> {
        let name = self.reader.string()?;
        if stream::is_one(kind) && self.streams == Streams::LeftOut {
            stream::pass(&mut self.reader, kind)?;
            self.done.streams += 1;
            return Ok(());
        }
        let contents = self.contents(kind, &name)?;
        if !contents.is_sound() {
            return Err(Wrong::Damaged("a key that holds nothing, or the same twice"));
        }
        if expires.is_some_and(|expires| expires <= self.now) {
            self.done.expired += 1;
            return Ok(());
        }
        self.put(&name, &contents, expires).map_err(|error| Wrong::Other(Box::new(error)))?;
        self.done.keys += 1;
        Ok(())
    }

    /// The value of a key, in any of the encodings there have been.
    fn contents(&mut self, kind: u8, name: &[u8]) -> reader::Result<Contents> {
        let reader = &mut self.reader;
        Ok(match kind {
            0 => Contents::String(reader.string()?),
            1 => Contents::List(reader.many(Reader::string)?),
            2 => Contents::Set(reader.many(Reader::string)?),
            3 => Contents::Zset(
                reader.many(|reader| Ok(Scored { member: reader.string()?, score: reader.old_double()? }))?,
            ),
            4 => Contents::Hash(reader.many(|reader| Ok((reader.string()?, reader.string()?)))?),
            5 => Contents::Zset(reader.many(|reader| {
                Ok(Scored { member: reader.string()?, score: f64::from_le_bytes(reader.array()?) })
            })?),
            9 => Contents::Hash(zipmap(&reader.string()?)?),
            10 => Contents::List(ziplist(&reader.string()?)?),
            11 => Contents::Set(intset(&reader.string()?)?),
            12 => Contents::Zset(scores(ziplist(&reader.string()?)?)?),
            13 => Contents::Hash(pairs(ziplist(&reader.string()?)?)?),
            14 => Contents::List(reader.many(|reader| ziplist(&reader.string()?))?.concat()),
            16 => Contents::Hash(pairs(listpack(&reader.string()?)?)?),
            17 => Contents::Zset(scores(listpack(&reader.string()?)?)?),
            18 => Contents::List(
                reader
                    .many(|reader| match reader.length()? {
                        1 => Ok(vec![reader.string()?]),
                        2 => listpack(&reader.string()?),
                        _ => Err(Wrong::Damaged("a node of a list of an unknown kind")),
                    })?
                    .concat(),
            ),
            20 => Contents::Set(listpack(&reader.string()?)?),
            6 | 7 => return unsupported(format!("the key `{}` holds a module's value", name.escape_ascii())),
            _ if stream::is_one(kind) => {
                return unsupported(format!(
                    "the key `{}` holds a stream (--without-streams leaves them all out)",
                    name.escape_ascii()
                ));
            }
            _ => return Err(Wrong::Damaged("a value of an unknown kind")),
        })
    }

    /// Puts a key down, in place of what lies there.
    fn put(&mut self, name: &[u8], contents: &Contents, expires: Option<i64>) -> Result<()> {
        if !self.waiting.insert((self.database, name.to_vec())) {
            // The same key twice: the later one stays.
            self.flush()?;
        }
        let exists = {
            let keys = Keys::new(self.session, &mut self.effects, self.database, self.now, true);
            let key = keys.key(name)?;
            keys.session.data(&key.node)? != perilune::Data::Nothing
        };
        if exists {
            self.flush()?;
            let (effects, database, now) = (&mut self.effects, self.database, self.now);
            self.session.transaction(|session| {
                let mut keys = Keys::new(session, effects, database, now, true);
                let key = keys.key(name)?;
                match keys.open(&key)? {
                    Some(entry) => Ok(keys.erase(&key, &entry)?),
                    None => Ok(()),
                }
            })?;
        }
        let Import { session, effects, batch, .. } = self;
        let keys = Keys::new(session, effects, self.database, self.now, true);
        let key = keys.key(name)?;
        if let Some(expires) = expires {
            batch.push(&keys.expiry_place(&key, expires)?, true)?;
        }
        contents.lay(&key, expires, &mut |node, value| Ok(batch.push(node, value)?))?;
        if self.batch.bytes() >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.batch.sort();
        self.session.set_each(&self.batch)?;
        self.batch.clear();
        self.waiting.clear();
        Ok(())
    }
}

fn unsupported<T>(what: String) -> reader::Result<T> {
    Err(Wrong::Unsupported(what))
}
