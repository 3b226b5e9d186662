//! Runs files of sqllogictest on tables in the tree, and on plain SQLite beside.
//!
//!     cargo run --release -p perilune-sql --example sqllogictest -- [--if-there] [--every N] FILE-OR-DIRECTORY...
//!
//! Files end in `.test` or `.test.gz`. A query passes if its answer is the file's, or plain SQLite's own where that differs from the
//! file; a statement, if it succeeds or fails as the file says, or as SQLite does. `--every N` runs each N-th query only, and all
//! statements. A file of which nothing ran is a failure. `known` lists what is expected to differ, with the reason.
//!
//! Invariant: what is not understood in a file is a failure, not a skip.

mod script;
mod sides;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use script::{Record, Sort};
use sides::{Answer, Ours, Plain, Side};

/// Files with differences that have a reason, and how many there are.
const KNOWN: &[(&str, u64, &str)] = &[];

/// What came of a file.
#[derive(Default)]
struct Tally {
    queries: u64,
    as_sqlite: u64,
    wrong: u64,
    statements: u64,
    statements_wrong: u64,
    ours: Duration,
    plain: Duration,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.queries += other.queries;
        self.as_sqlite += other.as_sqlite;
        self.wrong += other.wrong;
        self.statements += other.statements;
        self.statements_wrong += other.statements_wrong;
        self.ours += other.ours;
        self.plain += other.plain;
    }

    fn line(&self) -> String {
        format!(
            "{} queries as expected, {} as SQLite but not as the file, {} wrong; {} statements as expected, {} wrong; \
             {:.1} s, SQLite in memory {:.1} s",
            self.queries,
            self.as_sqlite,
            self.wrong,
            self.statements,
            self.statements_wrong,
            self.ours.as_secs_f64(),
            self.plain.as_secs_f64()
        )
    }
}

fn main() -> ExitCode {
    let (mut paths, mut every, mut if_there) = (Vec::new(), 1, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &argument[..] {
            "--if-there" => if_there = true,
            "--every" => every = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1).max(1),
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    let files: Vec<PathBuf> = paths.iter().flat_map(|path| files(path)).collect();
    if files.is_empty() {
        eprintln!("no files of sqllogictest in {paths:?}");
        return if if_there { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let (mut sum, mut failed) = (Tally::default(), false);
    for file in &files {
        let name = name_of(file);
        let tally = match run_file(file, &name, every) {
            Ok(tally) => tally,
            Err(error) => {
                println!("{name}: {error}");
                failed = true;
                continue;
            }
        };
        println!("{name}: {}", tally.line());
        let wrong = tally.wrong + tally.statements_wrong;
        let known = KNOWN.iter().find(|known| known.0 == name);
        match known {
            Some((_, count, why)) if wrong <= *count => println!("{name}: {wrong} are known: {why}"),
            _ => failed |= wrong > 0,
        }
        if tally.queries + tally.as_sqlite + tally.statements == 0 {
            println!("{name}: nothing ran");
            failed |= known.is_none();
        }
        sum.add(&tally);
    }
    println!("all {} files: {}", files.len(), sum.line());
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// The files that a path is or holds, in order.
fn files(path: &Path) -> Vec<PathBuf> {
    let is_test = |path: &Path| {
        let name = path.to_string_lossy();
        name.ends_with(".test") || name.ends_with(".test.gz")
    };
    if is_test(path) {
        return vec![path.to_path_buf()];
    }
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    inside.sort();
    inside
        .iter()
        .flat_map(|path| if path.is_dir() || is_test(path) { files(path) } else { Vec::new() })
        .collect()
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(".gz").trim_end_matches(".test").to_owned()
}

fn read(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let bytes = if path.extension().is_some_and(|extension| extension == "gz") {
        Command::new("gzip").arg("-dc").arg(path).output().map_err(failed)?.stdout
    } else {
        std::fs::read(path).map_err(failed)?
    };
    Ok(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
}

fn run_file(path: &Path, name: &str, every: usize) -> Result<Tally, String> {
    let records = script::parse(&read(path)?)?;
    let (mut ours, mut plain) = (Ours::new(name), Plain::new());
    let mut tally = Tally::default();
    let (mut threshold, mut shown, mut number) = (0, 0, 0_usize);
    let mut labels = std::collections::HashMap::new();
    for record in records {
        let mut complaint = None;
        match record {
            Record::HashThreshold(values) => threshold = values,
            Record::Statement { line, sql, succeeds } => {
                let own = timed(&mut tally.ours, || ours.run(&sql));
                let beside = timed(&mut tally.plain, || plain.run(&sql));
                if own.is_ok() == succeeds || own.is_ok() == beside.is_ok() {
                    tally.statements += 1;
                } else {
                    tally.statements_wrong += 1;
                    complaint = Some(format!("line {line}: {sql}: {:?}", own.err()));
                }
            }
            Record::Query { line, sql, types, sort, label, expected } => {
                number += 1;
                if (number - 1) % every != 0 {
                    continue;
                }
                let own = timed(&mut tally.ours, || ours.run(&sql));
                let beside = timed(&mut tally.plain, || plain.run(&sql));
                let own_values = own.as_ref().map(|answer| arrange(answer, &types, sort));
                let own_lines = own_values.as_ref().ok().map(|values| lines(values, threshold, &expected));
                let plain_lines =
                    beside.ok().map(|answer| lines(&arrange(&answer, &types, sort), threshold, &expected));
                if own_lines.as_deref() == Some(&expected[..]) {
                    tally.queries += 1;
                } else if own_lines.is_some() == plain_lines.is_some() && own_lines == plain_lines {
                    tally.as_sqlite += 1;
                } else {
                    tally.wrong += 1;
                    complaint = Some(format!(
                        "line {line}: {sql}: wanted {:?}, is {:?} {:?}",
                        &expected[..expected.len().min(5)],
                        own_lines.map(|lines| lines[..lines.len().min(5)].to_vec()),
                        own.as_ref().err()
                    ));
                }
                if let (Some(label), Ok(values)) = (label, own_values) {
                    let hash = script::hash(&values);
                    if *labels.entry(label).or_insert_with(|| hash.clone()) != hash {
                        tally.wrong += 1;
                        complaint =
                            Some(format!("line {line}: {sql}: another answer than the one of its label"));
                    }
                }
            }
        }
        if let Some(complaint) = complaint {
            shown += 1;
            if shown <= 5 {
                println!("{name}: {complaint}");
            }
        }
    }
    Ok(tally)
}

fn timed<R>(sum: &mut Duration, body: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = body();
    *sum += start.elapsed();
    result
}

/// The values of an answer as texts, in the order that the file compares.
fn arrange(answer: &Answer, types: &str, sort: Sort) -> Vec<String> {
    let types = types.as_bytes();
    let row = |row: &Vec<perilune_sql::Value>| {
        let field = |(at, value)| script::format(value, types.get(at).copied().unwrap_or(b'T'));
        row.iter().enumerate().map(field).collect::<Vec<String>>()
    };
    let mut rows: Vec<Vec<String>> = answer.iter().map(row).collect();
    if sort == Sort::Rows {
        rows.sort();
    }
    let mut values: Vec<String> = rows.into_iter().flatten().collect();
    if sort == Sort::Values {
        values.sort();
    }
    values
}

/// The lines that a file would hold of these values.
fn lines(values: &[String], threshold: usize, expected: &[String]) -> Vec<String> {
    let is_hashed = expected.len() == 1 && expected[0].contains(" values hashing to ");
    if is_hashed || threshold > 0 && values.len() > threshold {
        let mut line = String::new();
        let _ = write!(line, "{} values hashing to {}", values.len(), script::hash(values));
        return vec![line];
    }
    values.to_vec()
}
