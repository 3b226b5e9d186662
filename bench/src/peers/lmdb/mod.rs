//! LMDB: one table, a reader that is renewed for each operation.
//!
//! Renewing is LMDB's own advice for short reads, and what seeing the latest commit takes. Keys are
//! byte strings that sort as the integers do, as an ordered store in general has them; the side
//! `lmdb-int` has `MDB_INTEGERKEY`, which can have no other keys, and no other kind of tree beside.

mod library;
pub(crate) mod ordered;

use std::ffi::{c_uint, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use crate::data::essence;
use crate::subject::{missing, Abilities, Class, Database, Pair, Passage, Peer, Result, Session, Tree};
use library::{check, functions, Bytes, CursorPointer, Env, Functions, Txn};

const ABILITIES: Abilities = Abilities { processes: true, threads: true, locks: false };

const RELAXED: c_uint = library::NO_SYNC | library::WRITE_MAP;

pub(crate) const PEERS: &[Peer] = &[
    Peer {
        name: "lmdb",
        class: Class::D4,
        settings: "MDB_NOSYNC | MDB_WRITEMAP | MDB_NOTLS; outlives its processes",
        abilities: ABILITIES,
        version,
        open: |directory, _processes| open(directory, RELAXED, Keys::Bytes),
        compact,
    },
    Peer {
        name: "lmdb-int",
        class: Class::D4,
        settings: "as lmdb, with MDB_INTEGERKEY",
        abilities: ABILITIES,
        version,
        open: |directory, _processes| open(directory, RELAXED, Keys::Integers),
        compact,
    },
    Peer {
        name: "lmdb",
        class: Class::D1,
        settings: "default: fdatasync at every commit; MDB_NOTLS",
        abilities: ABILITIES,
        version,
        open: |directory, _processes| open(directory, 0, Keys::Bytes),
        compact,
    },
];

/// How keys are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// Big endian, compared as bytes.
    Bytes,
    /// `MDB_INTEGERKEY`, compared as integers.
    Integers,
}

impl Keys {
    /// The integer whose bytes in memory are the key, and back.
    #[inline]
    fn turn(self, key: u64) -> u64 {
        match self {
            Keys::Bytes => key.to_be(),
            Keys::Integers => key,
        }
    }
}

/// The version of the library.
///
/// # Errors
/// It is not installed.
pub(crate) fn version() -> Result<String> {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    let functions = functions()?;
    // SAFETY: three integers to write to.
    unsafe { (functions.version)(&mut major, &mut minor, &mut patch) };
    Ok(format!("{major}.{minor}.{patch}"))
}

/// Room in the address space; the file is sparse.
const MAP_BYTES: usize = 8 << 30;

fn open(directory: &Path, flags: c_uint, keys: Keys) -> Result<Box<dyn Database>> {
    let functions = functions()?;
    let path = CString::new(directory.as_os_str().as_bytes())?;
    let mut opened = Opened { functions, env: ptr::null_mut(), table: 0, keys };
    // SAFETY: an environment is made, set up and opened once, in the order lmdb.h asks for; the
    // transaction ends before `txn` goes.
    unsafe {
        check(functions, (functions.env_create)(&mut opened.env))?;
        check(functions, (functions.env_set_mapsize)(opened.env, MAP_BYTES))?;
        check(functions, (functions.env_open)(opened.env, path.as_ptr(), flags | library::NO_TLS, 0o600))?;
        let mut txn = ptr::null_mut();
        check(functions, (functions.txn_begin)(opened.env, ptr::null_mut(), 0, &mut txn))?;
        let integers = if keys == Keys::Integers { library::INTEGER_KEY } else { 0 };
        check(
            functions,
            (functions.dbi_open)(txn, ptr::null(), library::CREATE | integers, &mut opened.table),
        )?;
        check(functions, (functions.txn_commit)(txn))?;
    }
    Ok(Box::new(opened))
}

/// Replaces the file by a copy without free pages: LMDB has no other way.
fn compact(directory: &Path) -> Result<()> {
    let f = functions()?;
    let copy = directory.join("copy");
    std::fs::create_dir(&copy)?;
    let path = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (from, to) = (path(directory)?, path(&copy)?);
    let mut opened = Opened { functions: f, env: ptr::null_mut(), table: 0, keys: Keys::Bytes };
    // SAFETY: an environment is made, set up and opened once; both paths end in 0.
    unsafe {
        check(f, (f.env_create)(&mut opened.env))?;
        check(f, (f.env_set_mapsize)(opened.env, MAP_BYTES))?;
        check(f, (f.env_open)(opened.env, from.as_ptr(), library::NO_TLS, 0o600))?;
        check(f, (f.env_copy2)(opened.env, to.as_ptr(), library::COPY_COMPACT))?;
    }
    drop(opened);
    std::fs::rename(copy.join("data.mdb"), directory.join("data.mdb"))?;
    Ok(std::fs::remove_dir(copy)?)
}

struct Opened {
    functions: &'static Functions,
    env: Env,
    table: c_uint,
    keys: Keys,
}

// SAFETY: lmdb.h: an environment is shared by threads; with MDB_NOTLS so are its readers.
unsafe impl Sync for Opened {}

impl Drop for Opened {
    fn drop(&mut self) {
        if !self.env.is_null() {
            // SAFETY: sessions borrow this, so that none is left.
            unsafe { (self.functions.env_close)(self.env) }
        }
    }
}

impl Database for Opened {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let mut open = Open { of: self, reader: ptr::null_mut(), cursor: ptr::null_mut() };
        let f = self.functions;
        // SAFETY: the environment is open; the reader is kept as reset, the cursor belongs to it.
        unsafe {
            check(f, (f.txn_begin)(self.env, ptr::null_mut(), library::READ_ONLY, &mut open.reader))?;
            check(f, (f.cursor_open)(open.reader, self.table, &mut open.cursor))?;
            (f.txn_reset)(open.reader);
        }
        Ok(Box::new(open))
    }
}

struct Open<'a> {
    of: &'a Opened,
    /// A read transaction, reset between operations.
    reader: Txn,
    cursor: CursorPointer,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let f = self.of.functions;
        // SAFETY: both are ours; the cursor goes first, as lmdb.h asks for readers.
        unsafe {
            if !self.cursor.is_null() {
                (f.cursor_close)(self.cursor);
            }
            if !self.reader.is_null() {
                (f.txn_abort)(self.reader);
            }
        }
    }
}

impl Open<'_> {
    /// Reads within a transaction that is open.
    #[inline]
    fn read(&self, txn: Txn, tree: Tree, number: u64) -> Result<Option<i64>> {
        let mut key = self.of.keys.turn(tree.key(number));
        let key = Bytes { size: 8, data: (&raw mut key).cast() };
        let mut value = Bytes { size: 0, data: ptr::null_mut() };
        // SAFETY: the transaction is open; the value is read before it ends.
        match unsafe { (self.of.functions.get)(txn, self.of.table, &key, &mut value) } {
            0 => integer(&value).map(|value| Some(value as i64)),
            library::NOT_FOUND => Ok(None),
            code => check(self.of.functions, code).map(|()| None),
        }
    }

    /// Writes within a write transaction that is open.
    #[inline]
    fn write(&self, txn: Txn, tree: Tree, number: u64, mut value: i64) -> Result<()> {
        let mut key = self.of.keys.turn(tree.key(number));
        let key = Bytes { size: 8, data: (&raw mut key).cast() };
        let mut value = Bytes { size: 8, data: (&raw mut value).cast() };
        // SAFETY: the transaction is open; LMDB copies both.
        let code = unsafe { (self.of.functions.put)(txn, self.of.table, &key, &mut value, 0) };
        check(self.of.functions, code)
    }

    /// Runs `body` in a write transaction.
    #[inline]
    fn writing<R>(&self, body: impl FnOnce(Txn) -> Result<R>) -> Result<R> {
        let f = self.of.functions;
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open.
        check(f, unsafe { (f.txn_begin)(self.of.env, ptr::null_mut(), 0, &mut txn) })?;
        match body(txn) {
            Ok(result) => {
                // SAFETY: the transaction is open and ours; a commit ends it in any case.
                check(f, unsafe { (f.txn_commit)(txn) })?;
                Ok(result)
            }
            Err(error) => {
                // SAFETY: the transaction is open and ours; this ends it.
                unsafe { (f.txn_abort)(txn) };
                Err(error)
            }
        }
    }

    /// Runs `body` with the reader renewed.
    #[inline]
    fn reading<R>(&self, body: impl FnOnce(Txn) -> Result<R>) -> Result<R> {
        let f = self.of.functions;
        // SAFETY: the reader is reset.
        check(f, unsafe { (f.txn_renew)(self.reader) })?;
        let result = body(self.reader);
        // SAFETY: the reader is open; nothing read from it is used any more.
        unsafe { (f.txn_reset)(self.reader) };
        result
    }

    /// Moves the cursor of the renewed reader; the key and value there, or nothing at the end.
    #[inline]
    fn step(&self, to: u64, way: c_uint) -> Result<Option<(u64, u64)>> {
        let f = self.of.functions;
        let mut sought = self.of.keys.turn(to);
        let mut key = Bytes { size: 8, data: (&raw mut sought).cast() };
        let mut value = Bytes { size: 0, data: ptr::null_mut() };
        // SAFETY: reader and cursor are open; key and value are read before the reader is reset.
        match unsafe { (f.cursor_get)(self.cursor, &mut key, &mut value, way) } {
            0 => Ok(Some((self.of.keys.turn(integer(&key)?), integer(&value)?))),
            library::NOT_FOUND => Ok(None),
            code => check(f, code).map(|()| None),
        }
    }
}

/// The integer in 8 bytes of LMDB.
#[inline]
fn integer(bytes: &Bytes) -> Result<u64> {
    if bytes.size != 8 {
        return Err(format!("LMDB: {} bytes where 8 were written", bytes.size).into());
    }
    // SAFETY: LMDB answers a pointer to `size` bytes, of any alignment.
    Ok(unsafe { ptr::read_unaligned(bytes.data.cast::<u64>()) })
}

impl Session for Open<'_> {
    #[inline]
    fn get(&mut self, tree: Tree, number: u64) -> Result<Option<i64>> {
        self.reading(|txn| self.read(txn, tree, number))
    }

    #[inline]
    fn set(&mut self, tree: Tree, number: u64, value: i64) -> Result<()> {
        self.writing(|txn| self.write(txn, tree, number, value))
    }

    fn increment(&mut self, tree: Tree, number: u64, by: i64) -> Result<i64> {
        self.writing(|txn| {
            let sum = self.read(txn, tree, number)?.unwrap_or(0) + by;
            self.write(txn, tree, number, sum)?;
            Ok(sum)
        })
    }

    fn update_pair(
        &mut self,
        tree: Tree,
        numbers: [u64; 2],
        change: &mut dyn FnMut(Pair) -> Pair,
    ) -> Result<()> {
        self.writing(|txn| {
            let new = change([self.read(txn, tree, numbers[0])?, self.read(txn, tree, numbers[1])?]);
            for (number, value) in numbers.into_iter().zip(new) {
                if let Some(value) = value {
                    self.write(txn, tree, number, value)?;
                }
            }
            Ok(())
        })
    }

    fn get_snapshot(&mut self, tree: Tree, numbers: &[u64]) -> Result<u64> {
        self.reading(|txn| {
            let mut sum = 0u64;
            for number in numbers {
                let value = self.read(txn, tree, *number)?.ok_or_else(|| missing(*number))?;
                sum = sum.wrapping_add(essence(value));
            }
            Ok(sum)
        })
    }

    fn walk(&mut self, tree: Tree, limit: u64) -> Result<Passage> {
        let f = self.of.functions;
        let mut passage = Passage::default();
        let (mut from, end) = tree.bounds();
        while passage.entries < limit {
            let entry = self.reading(|txn| {
                // SAFETY: the reader is open, the cursor was made in it.
                check(f, unsafe { (f.cursor_renew)(txn, self.cursor) })?;
                self.step(from, library::SET_RANGE)
            })?;
            let Some((key, _)) = entry.filter(|(key, _)| *key < end) else { break };
            passage.entries += 1;
            from = key + 1;
        }
        Ok(passage)
    }

    fn scan(&mut self, tree: Tree, limit: u64) -> Result<Passage> {
        let f = self.of.functions;
        let (from, end) = tree.bounds();
        self.reading(|txn| {
            let mut passage = Passage::default();
            // SAFETY: the reader is open, the cursor was made in it.
            check(f, unsafe { (f.cursor_renew)(txn, self.cursor) })?;
            let mut entry = self.step(from, library::SET_RANGE)?;
            while let Some((key, value)) = entry.filter(|(key, _)| *key < end) {
                passage.entries += 1;
                passage.numbers = passage.numbers.wrapping_add(Tree::number(key));
                passage.values = passage.values.wrapping_add(essence(value as i64));
                if passage.entries == limit {
                    break;
                }
                entry = self.step(0, library::NEXT)?;
            }
            Ok(passage)
        })
    }

    fn fill(&mut self, tree: Tree, pairs: &mut dyn Iterator<Item = (u64, i64)>) -> Result<()> {
        self.writing(|txn| {
            for (number, value) in pairs {
                self.write(txn, tree, number, value)?;
            }
            Ok(())
        })
    }
}
