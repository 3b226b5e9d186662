//! How far the load of a file has come, kept in the database it goes to.
//!
//! `^_perilune("load",PATH)` holds three numbers: the offset of the first byte that is not loaded, the number of
//! lines before it, and a checksum of the last 4,096 bytes before it, by which another file of that name is
//! noticed. It is written after the nodes, by the same session: if it survives a crash, they have survived, too.
//! Nodes behind it may be set as well; setting them again changes nothing.
//!
//! Deliberately absent: any guard against two loads of one file at a time, which do no harm.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use perilune::{Batch, Node, Session, ValueRef};

use crate::exchange::OWN;
use crate::failure::{doing, found, Result};

/// Bytes before the place that are summed.
const SUMMED: u64 = 4096;
/// Bytes of a path that are used to tell files apart: a key has room for them.
const PATH_BYTES: usize = 1024;

/// A place between two lines of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    /// Offset of the next line.
    pub(crate) byte: u64,
    /// Lines before it.
    pub(crate) lines: u64,
}

/// The mark of one file in one database.
pub(crate) struct Mark {
    node: Node,
    file: File,
}

impl Mark {
    /// The mark of `file`, which is opened at `path`.
    pub(crate) fn new(path: &Path, file: &File) -> Result<Mark> {
        let path = path.canonicalize().map_err(doing(format!("find {}", path.display())))?;
        let bytes = path.as_os_str().as_bytes();
        let end = &bytes[bytes.len().saturating_sub(PATH_BYTES)..];
        let node = Node::new(OWN)?.with("load")?.with(end)?;
        let file = file.try_clone().map_err(doing(format!("read {}", path.display())))?;
        Ok(Mark { node, file })
    }

    /// Where an earlier load has come to.
    pub(crate) fn found(&self, session: &mut Session, name: &str) -> Result<Option<At>> {
        let Some(ValueRef::String(text)) = session.get_ref(&self.node)? else { return Ok(None) };
        let text = String::from_utf8_lossy(text).into_owned();
        let mut words = text.split(' ').map(str::parse::<u64>);
        let (Some(Ok(byte)), Some(Ok(lines)), Some(Ok(sum))) = (words.next(), words.next(), words.next())
        else {
            return Err(found(format!(
                "{}: {text:?} is no place in a file; load without --resume",
                self.node
            )));
        };
        if self.sum(byte).ok() != Some(sum) {
            return Err(found(format!(
                "{name} is not the file that was loaded up to line {lines}: load it without --resume"
            )));
        }
        Ok(Some(At { byte, lines }))
    }

    /// The file, for another reader.
    pub(crate) fn reopened(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Adds the mark to what is set next, as its last node.
    pub(crate) fn push(&self, at: At, batch: &mut Batch) -> Result<()> {
        let sum = self.sum(at.byte).map_err(doing("read the file again"))?;
        Ok(batch.push(&self.node, format!("{} {} {sum}", at.byte, at.lines))?)
    }

    /// Takes the mark away: the file is loaded.
    pub(crate) fn remove(&self, session: &mut Session) -> Result<()> {
        Ok(session.delete_value(&self.node).map(drop)?)
    }

    /// FNV-1a over the bytes before `byte`.
    fn sum(&self, byte: u64) -> io::Result<u64> {
        let mut bytes = vec![0; byte.min(SUMMED) as usize];
        self.file.read_exact_at(&mut bytes, byte - byte.min(SUMMED))?;
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Ok(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
    }
}
