//! `dump`: nodes of a database as lines of text, in the order of the tree.
//!
//! A file named by `-o` appears when it is complete: until then it is a new file beside it, under another name
//! (`perilune_redis::files`).
//!
//! Invariants
//! - A dump is of one moment: it reads a snapshot. Exception: a user who may only read the database can take no
//!   snapshot, and is told that others' writes may be in the dump in part.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueHint};
use perilune::{Cursor, ErrorCode, Node, Session, ValueRef};
use perilune_redis::files::NewFile;

use crate::exchange::format::{CharsetName, Format, Writer};
use crate::exchange::progress::Progress;
use crate::exchange::{zwr, OWN};
use crate::failure::{doing, found, wrong_use, Failure, Result};
use crate::{inspect, which_database};

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 1 << 18;

/// What to dump, and how.
#[derive(Args, Debug)]
pub(crate) struct DumpOptions {
    /// The database, instead of --db; then what to write: globals and nodes with all below them, ^name or
    /// ^name(1,"x") [default: everything]
    #[arg(value_names = ["DB", "NODES"], num_args = 0.., value_hint = ValueHint::FilePath)]
    words: Vec<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The character set of a ZWR extract: that of the system which will load it [default: utf-8]
    #[arg(long, value_enum)]
    charset: Option<CharsetName>,
    /// The first line of a ZWR extract [default: Perilune dump]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Leaves out what the format cannot hold, tells it, and goes on
    #[arg(long)]
    keep_going: bool,
    /// Writes to FILE instead of the standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Dumps a database.
pub(crate) fn dump(options: &DumpOptions, flag: Option<&Path>) -> Result<()> {
    let extract_only = [("--charset", options.charset.is_some()), ("--label", options.label.is_some())];
    if let Some((option, _)) =
        extract_only.iter().find(|(_, is_given)| *is_given && options.format != Format::Zwr)
    {
        return Err(wrong_use(format!("{option} is for extracts: add --format zwr")));
    }
    let (database, words) = which_database::first(&options.words, flag, usize::MAX)?;
    let path = which_database::existing(database)?;
    let nodes = words.iter().map(|word| node_of(word, flag)).collect::<Result<Vec<Node>>>()?;
    if let Some(file) = &options.output {
        which_database::is_none(file)?;
    }
    let mut session = of_one_moment(&path)?;
    let start = Instant::now();
    let name = path.display().to_string();
    let mut cursors = Vec::new();
    for (node, word) in nodes.iter().zip(words) {
        let data = session.data(node)?;
        if !data.has_value() && !data.has_descendants() {
            return Err(missing(&name, node, word));
        }
        cursors.push(Cursor::subtree(node));
    }
    if cursors.is_empty() {
        // The least of all names.
        cursors.push(Cursor::range(Node::new("^%")?..)?);
    }
    let (_, left_out) = match &options.output {
        None => write_all(options, &name, &mut session, cursors, &mut io::stdout().lock())?,
        Some(file) => {
            let named = || format!("write {}", file.display());
            let mut new = NewFile::begin(file, 0o666).map_err(doing(named()))?;
            let counts = write_all(options, &name, &mut session, cursors, &mut new)?;
            new.keep().map_err(doing(named()))?;
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("{name}: {} nodes dumped to {} in {seconds:.1} s", counts.0, file.display());
            counts
        }
    };
    if left_out > 0 {
        return Err(found(format!("{left_out} nodes were left out")));
    }
    Ok(())
}

/// The node that a word names; the `^` may be left out.
fn node_of(word: &Path, flag: Option<&Path>) -> Result<Node> {
    if let Some(flag) = flag.filter(|_| word.is_file()) {
        return Err(which_database::twice(word, flag));
    }
    let text = word.to_str().ok_or_else(|| wrong_use(format!("{}: not UTF-8", word.display())))?;
    if text.starts_with('^') {
        return Node::parse(text).map_err(|error| wrong_use(format!("{text}: {error}")));
    }
    Node::parse(&format!("^{text}"))
        .map_err(|error| wrong_use(format!("^{text}: {error}; to write to a file: -o {text}")))
}

/// That there is nothing to dump at a node. A word without `^` may have been meant as the file to write.
fn missing(database: &str, node: &Node, word: &Path) -> Failure {
    let names = format!("`perilune stat {database}` lists its names");
    if word.to_str().is_some_and(|text| text.starts_with('^')) {
        return found(format!("{database} has no node {node}: {names}"));
    }
    wrong_use(format!("{database} has no node {node}: to write to a file: -o {}; {names}", word.display()))
}

/// A session that reads a snapshot. Who may only read the database can take none: he reads what is there meanwhile.
fn of_one_moment(path: &Path) -> Result<Session> {
    let database = inspect::open_to_read(path)?;
    match database.snapshot() {
        Err(error) if error.code() == ErrorCode::ReadOnly => {
            eprintln!("perilune: read only: what others write meanwhile may be in the dump in part");
            Ok(database.session()?)
        }
        session => Ok(session?),
    }
}

/// Writes what the cursors go over; answers how many nodes were written, and how many the format could not hold.
fn write_all(
    options: &DumpOptions,
    name: &str,
    session: &mut Session,
    cursors: Vec<Cursor>,
    out: &mut dyn Write,
) -> Result<(u64, u64)> {
    let writer = match options.format {
        Format::Text => Writer::Text,
        Format::Jsonl => Writer::Jsonl,
        Format::Zwr => Writer::Zwr(options.charset.unwrap_or(CharsetName::Utf8).into()),
    };
    let own = Node::new(OWN)?;
    let progress = Progress::of_nodes(name);
    let mut lines = Vec::with_capacity(WRITE_BYTES + (1 << 12));
    let (mut nodes, mut left_out, mut flattened) = (0, 0, 0);
    if let Writer::Zwr(charset) = writer {
        zwr::write_heading(options.label.as_deref().unwrap_or("Perilune dump"), charset, &mut lines);
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
                    return Ok((nodes, 0));
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
    Ok((nodes, left_out))
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
