//! `dump`: nodes of a database as lines of text, in the order of the tree.
//!
//! A file named by `-o` appears when it is complete: until then it is a file beside it that nobody else has
//! made (`perilune_server::files`).
//!
//! Invariants
//! - A dump is of one moment: it reads a snapshot.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use perilune::{Cursor, Database, Node, Session, ValueRef};
use perilune_server::files::NewFile;

use crate::exchange::format::{CharsetName, Format, Writer};
use crate::exchange::progress::Progress;
use crate::exchange::{zwr, OWN};
use crate::failure::{doing, environment, found, wrong_use, Result};
use crate::inspect;

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 1 << 18;

/// What to dump, and how.
#[derive(Args, Debug)]
pub(crate) struct DumpOptions {
    /// The database
    db: PathBuf,
    /// What to write: globals and nodes with all below them, ^name or ^name(1,"x") [default: everything]
    nodes: Vec<String>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The character set of a ZWR extract: that of the system which will load it
    #[arg(long, value_enum, default_value_t = CharsetName::Utf8)]
    charset: CharsetName,
    /// The first line of a ZWR extract
    #[arg(long, value_name = "TEXT", default_value = "Perilune dump")]
    label: String,
    /// Leaves out what the format cannot hold, tells it, and goes on
    #[arg(long)]
    keep_going: bool,
    /// Writes to FILE instead of the standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Dumps a database.
pub(crate) fn dump(options: &DumpOptions) -> Result<()> {
    inspect::is_file(&options.db)?;
    if !options.db.exists() {
        return Err(environment(format!("{}: no such database", options.db.display())));
    }
    let mut cursors = Vec::new();
    for text in &options.nodes {
        let node = if text.starts_with('^') { Node::parse(text) } else { Node::parse(&format!("^{text}")) };
        let node = node.map_err(|error| wrong_use(format!("{text}: {error}")))?;
        cursors.push(Cursor::subtree(&node));
    }
    if cursors.is_empty() {
        // The least of all names.
        cursors.push(Cursor::range(Node::new("^%")?..)?);
    }
    let mut session = Database::options().create(false).open(&options.db)?.snapshot()?;
    let left_out = match &options.output {
        None => write_all(options, &mut session, cursors, &mut io::stdout().lock())?,
        Some(file) => {
            let named = || format!("write {}", file.display());
            let mut new = NewFile::begin(file, 0o666).map_err(doing(named()))?;
            let left_out = write_all(options, &mut session, cursors, &mut new)?;
            new.keep().map_err(doing(named()))?;
            left_out
        }
    };
    if left_out > 0 {
        return Err(found(format!("{left_out} nodes were left out")));
    }
    Ok(())
}

/// Writes what the cursors go over; answers how many nodes the format could not hold.
fn write_all(
    options: &DumpOptions,
    session: &mut Session,
    cursors: Vec<Cursor>,
    out: &mut dyn Write,
) -> Result<u64> {
    let writer = match options.format {
        Format::Text => Writer::Text,
        Format::Jsonl => Writer::Jsonl,
        Format::Zwr => Writer::Zwr(options.charset.into()),
    };
    let own = Node::new(OWN)?;
    let progress = Progress::of_nodes(&options.db.display().to_string());
    let mut lines = Vec::with_capacity(WRITE_BYTES + (1 << 12));
    let (mut nodes, mut left_out, mut flattened) = (0, 0, 0);
    if let Writer::Zwr(charset) = writer {
        zwr::write_heading(&options.label, charset, &mut lines);
    }
    for mut cursor in cursors {
        while cursor.next(session)? {
            let (node, Some(value)) = (cursor.node_ref()?, cursor.value()?) else { continue };
            if node.encoded().starts_with(own.encoded()) {
                continue;
            }
            if let Err(why) = writer.node(node.encoded(), &value, &mut lines) {
                let text = format!("{node}: the format cannot hold it: {why}");
                if !options.keep_going {
                    progress.end();
                    return Err(found(format!(
                        "{text}; choose another --format, or --keep-going to leave it out"
                    )));
                }
                progress.say(&text);
                left_out += 1;
                continue;
            }
            nodes += 1;
            flattened += u64::from(matches!(writer, Writer::Zwr(_)) && loses_its_type(&value));
            if lines.len() >= WRITE_BYTES {
                if !flush(&mut lines, out)? {
                    return Ok(0);
                }
                progress.at(nodes);
            }
        }
    }
    flush(&mut lines, out)?;
    progress.end();
    if flattened > 0 {
        eprintln!(
            "perilune: {flattened} truth values, nulls, and empty lists and maps were written as the strings \
             1, 0 and \"\": ZWR has only strings"
        );
    }
    Ok(left_out)
}

/// Whether an M program would not know the value again.
fn loses_its_type(value: &ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Null | ValueRef::Bool(_) | ValueRef::EmptyList | ValueRef::EmptyMap)
}

/// Writes what has been gathered; false when nobody reads it any more.
fn flush(lines: &mut Vec<u8>, out: &mut dyn Write) -> Result<bool> {
    match out.write_all(lines).and_then(|()| out.flush()) {
        Ok(()) => {
            lines.clear();
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(doing("write the dump")(error)),
    }
}
