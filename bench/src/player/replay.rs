//! Traces: operations on globals with the answers they must get, one a line, columns apart by tabs:
//! phase, operation, global, number of subscripts, the subscripts, argument, expected answer.
//!
//! `\\`, `\t`, `\n` and `\r` are written so; an expected `*` is any answer. `query` expects the
//! subscripts that were found, apart by commas, `=` and the value; `merge` has as its argument the
//! subscripts of the target, apart by commas.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use crate::globals::{Globals, Path, Sub};
use crate::subject::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Set,
    Get,
    Data,
    Next,
    Previous,
    Query,
    Increment,
    Kill,
    Merge,
}

struct Operation {
    kind: Kind,
    path: Path,
    argument: Arc<str>,
    expected: Arc<str>,
    /// The target of a merge, the step of an increment.
    target: Path,
    by: i64,
}

/// The operations of a phase.
#[derive(Default)]
pub(super) struct Replay {
    operations: Vec<Operation>,
    value: Vec<u8>,
}

/// What stands for itself in a trace, and back.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                _ => '\\',
            },
            other => other,
        });
    }
    out
}

/// A text as a trace has it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

/// The texts of a trace, each once: a program has names and results in few places, whereas a copy for each
/// operation would have the player wait for memory that no program would touch.
#[derive(Default)]
struct Texts(HashSet<Arc<str>>);

impl Texts {
    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let text = Arc::from(text);
        self.0.insert(Arc::clone(&text));
        text
    }

    fn sub(&mut self, text: &str) -> Sub {
        match Sub::read(text) {
            Sub::Text(_) => Sub::Text(self.share(text)),
            number => number,
        }
    }
}

impl Operation {
    fn read(line: &str, texts: &mut Texts) -> Result<Operation> {
        let columns: Vec<&str> = line.split('\t').collect();
        let short = || format!("the trace has a line that is too short: {line}");
        let count: usize = columns.get(3).ok_or_else(short)?.parse()?;
        let subs = columns.get(4..4 + count).ok_or_else(short)?;
        let kind = match columns[1] {
            "set" => Kind::Set,
            "get" => Kind::Get,
            "data" => Kind::Data,
            "next" => Kind::Next,
            "previous" => Kind::Previous,
            "query" => Kind::Query,
            "increment" => Kind::Increment,
            "kill" => Kind::Kill,
            "merge" => Kind::Merge,
            other => return Err(format!("a trace has no operation {other}").into()),
        };
        let subs = subs.iter().map(|text| texts.sub(&unescaped(text))).collect();
        let argument = texts.share(&unescaped(columns.get(4 + count).ok_or_else(short)?));
        let expected = texts.share(&unescaped(columns.get(5 + count).ok_or_else(short)?));
        let name = texts.share(columns[2]);
        let target = Path { name: name.clone(), subs: argument.split(',').map(Sub::read).collect() };
        let by = argument.parse().unwrap_or(0);
        Ok(Operation { kind, path: Path { name, subs }, argument, expected, target, by })
    }

    /// Does it; is the answer as expected?
    fn run(&self, globals: &mut dyn Globals, value: &mut Vec<u8>) -> Result<bool> {
        let expected = &*self.expected;
        let sub = |found: Option<Sub>| match found {
            Some(Sub::Text(text)) => *expected == *text,
            Some(Sub::Integer(number)) => expected.parse() == Ok(number),
            None => expected.is_empty(),
        };
        let right = match self.kind {
            Kind::Set => {
                globals.set(&self.path, self.argument.as_bytes())?;
                true
            }
            Kind::Get => {
                globals.get(&self.path, value)?;
                value == expected.as_bytes()
            }
            Kind::Data => expected.parse() == Ok(globals.data(&self.path)?),
            Kind::Next => sub(globals.next(&self.path)?),
            Kind::Previous => sub(globals.previous(&self.path)?),
            Kind::Query => match globals.query(&self.path, value)? {
                None => expected.is_empty(),
                Some(subs) => {
                    let subs: Vec<String> = subs.iter().map(ToString::to_string).collect();
                    expected == format!("{}={}", subs.join(","), String::from_utf8_lossy(value))
                }
            },
            Kind::Increment => expected.parse() == Ok(globals.increment(&self.path, self.by)?),
            Kind::Kill => {
                globals.kill(&self.path)?;
                true
            }
            Kind::Merge => {
                globals.merge(&self.path, &self.target)?;
                true
            }
        };
        Ok(right || expected == "*")
    }
}

impl Replay {
    /// Reads the operations of a phase, or all.
    pub(super) fn load(file: &str, phase: &str) -> Result<Replay> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let wanted =
            |line: &&str| !line.starts_with('#') && (phase == "-" || line.split('\t').next() == Some(phase));
        let mut texts = Texts::default();
        let read = |line| Operation::read(line, &mut texts);
        let operations = text.lines().filter(wanted).map(read).collect::<Result<_>>()?;
        Ok(Replay { operations, value: Vec::new() })
    }

    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }

    /// Replays `count` operations from `from` on; how many answered wrong.
    pub(super) fn run(&mut self, globals: &mut dyn Globals, from: usize, count: usize) -> Result<u64> {
        let mut wrong = 0;
        for operation in self.operations.iter().skip(from).take(count) {
            wrong += u64::from(!operation.run(globals, &mut self.value)?);
        }
        Ok(wrong)
    }
}

/// Writes the nodes of a global to a file, as a trace would.
pub(super) fn dump(globals: &mut dyn Globals, file: &str, name: &str) -> Result<u64> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    let (mut at, mut value, mut count) = (Path { name: name.into(), subs: Vec::new() }, Vec::new(), 0);
    while let Some(subs) = globals.query(&at, &mut value)? {
        for sub in &subs {
            write!(out, "{}\t", escaped(&sub.to_string()))?;
        }
        writeln!(out, "{}", escaped(&String::from_utf8_lossy(&value)))?;
        at.subs = subs;
        count += 1;
    }
    out.flush()?;
    Ok(count)
}
