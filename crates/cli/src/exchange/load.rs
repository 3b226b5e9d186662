//! `load`: lines of a file become nodes, a batch at a time.
//!
//! A batch's last node is the file's mark (`resume`): how far the file is loaded. If the program is killed, the
//! nodes of earlier batches are set and perhaps some of the current one; `--resume` goes on at the mark. Setting a
//! node once more changes nothing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueHint};
use perilune::{Batch, Database, ErrorCode, Session};

use crate::exchange::format::{recognise, CharsetName, Format, Parser, Wrong};
use crate::exchange::progress::Progress;
use crate::exchange::resume::{At, Mark};
use crate::failure::{doing, environment, found, wrong_use, Failure, Result};
use crate::which_database;

/// Nodes and bytes set at a time at most: enough to fill many leaves, little to do again.
const BATCH_NODES: usize = 16_384;
const BATCH_BYTES: usize = 1 << 20;
/// The longest line: a value of 512 MiB, every byte of which is written as a number.
const LINE_MAX: u64 = 3 << 30;
/// Bytes read from a file at a time.
const READ_BYTES: usize = 1 << 18;
/// How often a bar is told of the place.
const LINES_A_LOOK: u64 = 1 << 12;

/// What to load, and how.
#[derive(Args, Debug)]
pub(crate) struct LoadOptions {
    /// The database, instead of --db, made if it is missing; then the files, one after the other [default: the
    /// standard input, also named -]
    #[arg(value_names = ["DB", "FILES"], num_args = 0.., value_hint = ValueHint::FilePath)]
    words: Vec<PathBuf>,
    /// How the files are written [default: told by their first lines]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The character set of ZWR extracts [default: told by their first lines]
    #[arg(long, value_enum)]
    charset: Option<CharsetName>,
    /// Goes on where an interrupted load of the same file has come to
    #[arg(long)]
    resume: bool,
    /// Leaves wrong lines out, tells each, and goes on
    #[arg(long)]
    keep_going: bool,
}

/// What is being read.
struct Source {
    name: String,
    reader: Box<dyn BufRead>,
    at: At,
    /// Bytes of it all, if that is known.
    bytes: Option<u64>,
    /// For files that can be read from any place.
    mark: Option<Mark>,
}

/// Loads all files.
pub(crate) fn load(options: &LoadOptions, flag: Option<&Path>) -> Result<()> {
    let (database, files) = which_database::first(&options.words, flag, usize::MAX)?;
    let standard = [PathBuf::from("-")];
    if files.is_empty() && io::stdin().is_terminal() {
        return Err(wrong_use("name the files to load; `-` reads what you type"));
    }
    let files = if files.is_empty() { &standard[..] } else { files };
    let mut sources = Vec::new();
    for file in files {
        sources.push(open(file)?);
        if options.resume && sources.last().is_some_and(|source| source.mark.is_none()) {
            return Err(wrong_use(format!("{}: only a regular file can be resumed", file.display())));
        }
    }
    let mut session = open_database(database, files)?.session()?;
    let mut wrong = 0;
    for source in sources {
        wrong += Load::new(options, source, &mut session)?.run(options.resume)?;
    }
    match wrong {
        0 => Ok(()),
        1 => Err(found("one line was wrong and left out")),
        _ => Err(found(format!("{wrong} lines were wrong and left out"))),
    }
}

/// Opens or makes the database. What is no database may be a file to load whose database was not named.
fn open_database(path: Option<&Path>, files: &[PathBuf]) -> Result<Database> {
    let Some(path) = path else { return Ok(Database::open_default()?) };
    Database::open(path).map_err(|error| {
        let is_other = error.code() == ErrorCode::NotADatabase && files == [PathBuf::from("-")];
        let mut failure = Failure::from(error);
        if is_other {
            let hint = format!("; to load it: perilune --db DB load {}", path.display());
            failure.message.push_str(&hint);
        }
        failure
    })
}

fn open(path: &Path) -> Result<Source> {
    let name = path.display().to_string();
    if path == Path::new("-") {
        let reader = Box::new(BufReader::with_capacity(READ_BYTES, io::stdin()));
        return Ok(Source {
            name: "(standard input)".into(),
            reader,
            at: At::default(),
            bytes: None,
            mark: None,
        });
    }
    let file = File::open(path).map_err(doing(format!("read {name}")))?;
    let metadata = file.metadata().map_err(doing(format!("read {name}")))?;
    if metadata.is_dir() {
        return Err(environment(format!("cannot read {name}: it is a directory")));
    }
    let mark = if metadata.is_file() { Some(Mark::new(path, &file)?) } else { None };
    let bytes = metadata.is_file().then_some(metadata.len());
    let reader = Box::new(BufReader::with_capacity(READ_BYTES, file));
    Ok(Source { name, reader, at: At::default(), bytes, mark })
}

/// One file on its way into the database.
struct Load<'l> {
    options: &'l LoadOptions,
    session: &'l mut Session,
    source: Source,
    progress: Progress,
    batch: Batch,
    /// Where the first line of the batch stands.
    batch_from: u64,
    line: Vec<u8>,
    /// Bytes of the line with its end.
    line_bytes: u64,
    nodes: u64,
    wrong: u64,
}

impl<'l> Load<'l> {
    fn new(options: &'l LoadOptions, source: Source, session: &'l mut Session) -> Result<Load<'l>> {
        let progress = Progress::of_bytes(&source.name, source.bytes);
        Ok(Load {
            options,
            session,
            source,
            progress,
            batch: Batch::new(),
            batch_from: 1,
            line: Vec::new(),
            line_bytes: 0,
            nodes: 0,
            wrong: 0,
        })
    }

    /// Loads the file; answers how many lines were left out.
    fn run(mut self, resume: bool) -> Result<u64> {
        let start = Instant::now();
        let mark_found = match &self.source.mark {
            Some(mark) if resume => mark.found(self.session, &self.source.name)?,
            _ => None,
        };
        if !self.next_line()? {
            return self.end(start);
        }
        let format = self.options.format.unwrap_or_else(|| recognise(&self.line));
        if self.options.charset.is_some() && format != Format::Zwr {
            return Err(found(format!("{} is no extract: leave out --charset", self.source.name)));
        }
        let mut parser = Parser::new(format, self.options.charset.map(Into::into));
        if let Some(at) = mark_found {
            self.skip(&mut parser, at)?;
            if !self.next_line()? {
                return self.end(start);
            }
        }
        loop {
            if let Err(wrong) = parser.line(&self.line, &mut self.batch) {
                self.refuse(&wrong)?;
            }
            if self.batch.len() >= BATCH_NODES || self.batch.bytes() >= BATCH_BYTES {
                self.flush()?;
            }
            if self.source.at.lines.is_multiple_of(LINES_A_LOOK) {
                self.progress.at(self.source.at.byte);
            }
            if !self.next_line()? {
                if let Err(wrong) = parser.end() {
                    self.line_bytes = 0;
                    self.refuse(&wrong)?;
                }
                return self.end(start);
            }
        }
    }

    /// Reads the next line, without its end; false at the end of the file.
    fn next_line(&mut self) -> Result<bool> {
        self.line.clear();
        let mut bounded = (&mut self.source.reader).take(LINE_MAX);
        let count = bounded
            .read_until(b'\n', &mut self.line)
            .map_err(|error| doing(format!("read {}", self.source.name))(error))? as u64;
        if count == 0 {
            return Ok(false);
        }
        self.line_bytes = count;
        self.source.at.byte += count;
        self.source.at.lines += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            if self.line.last() == Some(&b'\r') {
                self.line.pop();
            }
        } else if count == LINE_MAX {
            let at = self.source.at.lines;
            return Err(found(format!("{}:{at}: the line is longer than 3 GiB", self.source.name)));
        }
        Ok(true)
    }

    /// Goes to where an earlier load has come to; the first line has been read.
    fn skip(&mut self, parser: &mut Parser, to: At) -> Result<()> {
        for _ in 0..parser.heading_lines() {
            let heading = self.line.first() != Some(&b'^') && self.source.at.lines <= to.lines;
            if !heading || parser.line(&self.line, &mut self.batch).is_err() || !self.next_line()? {
                break;
            }
        }
        self.batch.clear();
        let file = match &self.source.mark {
            Some(mark) => mark.reopened().map_err(doing(format!("read {}", self.source.name)))?,
            None => return Ok(()),
        };
        let mut reader = BufReader::with_capacity(READ_BYTES, file);
        reader.seek(SeekFrom::Start(to.byte)).map_err(doing(format!("read {}", self.source.name)))?;
        self.source.reader = Box::new(reader);
        self.source.at = to;
        self.batch_from = to.lines + 1;
        self.progress.say(&format!("{}: going on behind line {}", self.source.name, to.lines));
        Ok(())
    }

    /// Sets what has been gathered, then notes the place.
    fn flush(&mut self) -> Result<()> {
        let (nodes, name) = (self.batch.len() as u64, &self.source.name);
        self.batch.sort();
        let mut set = Ok(());
        if let Some(mark) = &self.source.mark {
            set = mark.push(self.source.at, &mut self.batch);
        }
        let set = set.and_then(|()| Ok(self.session.set_each(&self.batch)?));
        set.map_err(|Failure { kind, message }| Failure {
            kind,
            message: format!("{name}: lines {} to {}: {message}", self.batch_from, self.source.at.lines),
        })?;
        self.nodes += nodes;
        self.batch.clear();
        self.batch_from = self.source.at.lines + 1;
        Ok(())
    }

    /// A wrong line ends the load, or is told and left out.
    fn refuse(&mut self, wrong: &Wrong) -> Result<()> {
        let (name, line) = (&self.source.name, self.source.at.lines);
        let text = format!("{name}:{line}:{}: {}", wrong.at + 1, wrong.what);
        if self.options.keep_going {
            self.progress.say(&text);
            self.wrong += 1;
            return Ok(());
        }
        // What precedes the line is set, and the mark stands before it: mended, the file can be resumed.
        self.source.at.byte -= self.line_bytes;
        self.source.at.lines -= 1;
        self.flush()?;
        self.progress.end();
        let resume = if self.source.mark.is_some() { ", then load it again with --resume" } else { "" };
        Err(found(format!(
            "{text}\n  {} nodes before it are loaded; mend the line{resume}, or leave wrong lines out by --keep-going",
            self.nodes
        )))
    }

    fn end(mut self, start: Instant) -> Result<u64> {
        if !self.batch.is_empty() {
            self.flush()?;
        }
        if let Some(mark) = &self.source.mark {
            mark.remove(self.session)?;
        }
        self.progress.end();
        let seconds = start.elapsed().as_secs_f64();
        println!("{}: {} nodes loaded in {seconds:.1} s", self.source.name, self.nodes);
        Ok(self.wrong)
    }
}
