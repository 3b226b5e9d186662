//! `graph import`: files of vertices and edges, each read twice.
//!
//! Problem: a file that is wrong at its end would leave what precedes that in the graph, and perhaps a new database around it. Idea:
//! the first time a file is only read; the second time all of it is known to be right. What comes by a pipe is kept in a
//! directory of its own meanwhile.
//!
//! Invariant: nothing is opened for writing before all files have been read to their ends.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use perilune::Session;
use perilune_graph::{import, Error, Graph, GraphOptions, Missing, NewEdge, NewVertex};

use super::options::{ImportFormat, ImportOptions};
use super::place::Place;
use crate::exchange::Progress;
use crate::failure::{doing, environment, found, wrong_use, Failure, Result};
use crate::scratch::Scratch;

/// Bytes read from a file at a time.
const READ_BYTES: usize = 1 << 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Vertices,
    Edges,
}

/// A file that can be read again.
struct Source {
    name: String,
    path: PathBuf,
    what: What,
    format: ImportFormat,
    bytes: u64,
}

/// Imports all files, vertices first.
pub(crate) fn run(options: &ImportOptions, flag: Option<&Path>) -> Result<()> {
    let place = Place::of(&options.words, flag)?;
    let files = options.vertices.iter().map(|file| (file, What::Vertices));
    let files: Vec<_> = files.chain(options.edges.iter().map(|file| (file, What::Edges))).collect();
    if files.is_empty() {
        return Err(wrong_use(
            "name the files by --vertices FILE and --edges FILE; `-` is the standard input",
        ));
    }
    if files.iter().filter(|(file, _)| file.as_os_str() == "-").count() > 1 {
        return Err(wrong_use("the standard input is one file: give `-` once"));
    }
    let mut scratch = None;
    let sources = files
        .into_iter()
        .enumerate()
        .map(|(number, (file, what))| Source::new(file, what, options.format, number, &mut scratch))
        .collect::<Result<Vec<_>>>()?;
    for source in &sources {
        source.check()?;
    }
    let mut session = place.open_to_write()?.session()?;
    let mut graph = graph_at(&place, &mut session, options.weight.as_deref())?;
    for source in &sources {
        source.import(&mut graph, &mut session)?;
    }
    Ok(())
}

/// The graph that is there, or a new one.
fn graph_at(place: &Place, session: &mut Session, weight: Option<&str>) -> Result<Graph> {
    match Graph::open(session, &place.node) {
        Ok(graph) if weight.is_some() && graph.weight() != weight => {
            let has = graph.weight().map_or("no property".to_owned(), |weight| format!("`{weight}`"));
            Err(wrong_use(format!(
                "{}: the graph has {has} as weight already: leave out --weight",
                place.node
            )))
        }
        Ok(graph) => Ok(graph),
        Err(Error::NotAGraph(_)) => {
            let options = GraphOptions { weight: weight.map(str::to_owned) };
            Ok(Graph::create(session, &place.node, &options)?)
        }
        Err(error) => Err(error.into()),
    }
}

impl Source {
    fn new(
        file: &Path,
        what: What,
        format: Option<ImportFormat>,
        number: usize,
        scratch: &mut Option<Scratch>,
    ) -> Result<Source> {
        let is_input = file.as_os_str() == "-";
        let name = if is_input { "(standard input)".to_owned() } else { file.display().to_string() };
        let metadata =
            if is_input { None } else { Some(file.metadata().map_err(doing(format!("read {name}")))?) };
        if metadata.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            return Err(environment(format!("cannot read {name}: it is a directory")));
        }
        let path = if metadata.as_ref().is_some_and(std::fs::Metadata::is_file) {
            file.to_owned()
        } else {
            let mut reader: Box<dyn Read> = match is_input {
                true => Box::new(io::stdin()),
                false => Box::new(File::open(file).map_err(doing(format!("read {name}")))?),
            };
            let kept = match scratch {
                Some(scratch) => scratch,
                None => scratch.insert(Scratch::new("import")?),
            };
            let path = kept.path().join(number.to_string());
            let mut copy = File::create(&path).map_err(doing(format!("write {}", path.display())))?;
            io::copy(&mut reader, &mut copy).map_err(doing(format!("copy {name} to {}", path.display())))?;
            path
        };
        let opened = File::open(&path).map_err(doing(format!("read {name}")))?;
        let bytes = opened.metadata().map_err(doing(format!("read {name}")))?.len();
        let mut head = Vec::new();
        opened.take(1 << 12).read_to_end(&mut head).map_err(doing(format!("read {name}")))?;
        let is_object = head.trim_ascii_start().first() == Some(&b'{');
        let told = if is_object { ImportFormat::Jsonl } else { ImportFormat::Csv };
        Ok(Source { name, path, what, format: format.unwrap_or(told), bytes })
    }

    /// Its bytes, of which `at` is told.
    fn reader<'a>(&self, at: &'a Cell<u64>) -> Result<impl BufRead + 'a> {
        let file = File::open(&self.path).map_err(doing(format!("read {}", self.name)))?;
        Ok(BufReader::with_capacity(READ_BYTES, Counted { file, at }))
    }

    fn vertices<'a>(
        &self,
        at: &'a Cell<u64>,
    ) -> Result<Box<dyn Iterator<Item = perilune_graph::Result<NewVertex>> + 'a>> {
        let reader = self.reader(at)?;
        Ok(match self.format {
            ImportFormat::Csv => {
                Box::new(import::vertices_from_csv(reader).map_err(|error| self.wrong(error, ""))?)
            }
            ImportFormat::Jsonl => Box::new(import::vertices_from_json_lines(reader)),
        })
    }

    fn edges<'a>(
        &self,
        at: &'a Cell<u64>,
    ) -> Result<Box<dyn Iterator<Item = perilune_graph::Result<NewEdge>> + 'a>> {
        let reader = self.reader(at)?;
        Ok(match self.format {
            ImportFormat::Csv => Box::new(import::from_csv(reader).map_err(|error| self.wrong(error, ""))?),
            ImportFormat::Jsonl => Box::new(import::from_json_lines(reader)),
        })
    }

    /// Reads all of it.
    fn check(&self) -> Result<()> {
        let bar = Progress::of_bytes(&format!("{}: reading", self.name), Some(self.bytes));
        let at = Cell::new(0);
        let told = |error| {
            bar.end();
            self.wrong(error, "; nothing was imported")
        };
        match self.what {
            What::Vertices => self.vertices(&at)?.try_for_each(|vertex| {
                bar.at(at.get());
                vertex.map(drop).map_err(told)
            })?,
            What::Edges => self.edges(&at)?.try_for_each(|edge| {
                bar.at(at.get());
                edge.map(drop).map_err(told)
            })?,
        }
        bar.end();
        Ok(())
    }

    /// Adds all that is in it.
    fn import(&self, graph: &mut Graph, session: &mut Session) -> Result<()> {
        let start = Instant::now();
        let bar = Progress::of_bytes(&self.name, Some(self.bytes));
        let at = Cell::new(0);
        let mut done = 0;
        let mut progress = |count| {
            done = count;
            bar.at(at.get());
        };
        let outcome = match self.what {
            What::Vertices => graph.import_vertices(session, self.vertices(&at)?, &mut progress),
            What::Edges => graph.import(session, self.edges(&at)?, Missing::Create, &mut progress),
        };
        bar.end();
        let what = if self.what == What::Vertices { "vertices" } else { "edges" };
        let count = outcome.map_err(|error| {
            self.wrong(error, &format!("; the first {done} {what} of it are in the graph"))
        })?;
        println!("{}: {count} {what} imported in {:.1} s", self.name, start.elapsed().as_secs_f64());
        Ok(())
    }

    /// What is wrong with it.
    fn wrong(&self, error: Error, behind: &str) -> Failure {
        let failure = match error {
            Error::Invalid(why) => found(why),
            error => error.into(),
        };
        Failure { message: format!("{}: {}{behind}", self.name, failure.message), ..failure }
    }
}

/// A file, and how far it has been read.
struct Counted<'a> {
    file: File,
    at: &'a Cell<u64>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.at.set(self.at.get() + count as u64);
        Ok(count)
    }
}
