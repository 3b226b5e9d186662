//! The traces that are made here, by running operations on a model and writing down what it answered. The
//! published one is in `xml`.
//!
//! Invariants
//! - The same seed makes the same trace.
//! - What is written into a record of the mixed workloads depends on the record alone, so that answers are
//!   known however many players write.

use std::fmt::Write as _;

use crate::globals::mapped::Mapped;
use crate::globals::{Globals, Path, Sub};
use crate::peers::subjects::example::Example;
use crate::player::replay::escaped;
use crate::player::Random;
use crate::subject::Result;

/// Writes down operations with the answers of a model.
struct Recorder {
    model: Mapped<Example>,
    name: &'static str,
    phase: String,
    text: String,
}

fn text(found: Option<Sub>) -> String {
    found.map_or(String::new(), |sub| sub.to_string())
}

fn joined(subs: &[Sub]) -> String {
    subs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl Recorder {
    fn new(name: &'static str) -> Recorder {
        Recorder { model: Mapped::new(Example::default()), name, phase: String::new(), text: String::new() }
    }

    fn phase(&mut self, name: &str) {
        self.phase = name.to_owned();
    }

    /// Runs one operation on the model and writes it down.
    fn record(&mut self, operation: &str, subs: Vec<Sub>, argument: &str) -> Result<String> {
        let path = Path { name: self.name.into(), subs };
        let (model, mut value) = (&mut self.model, Vec::new());
        let expected = match operation {
            "set" => model.set(&path, argument.as_bytes()).map(|()| String::new())?,
            "get" => {
                model.get(&path, &mut value)?;
                String::from_utf8(value)?
            }
            "data" => model.data(&path)?.to_string(),
            "next" => text(model.next(&path)?),
            "previous" => text(model.previous(&path)?),
            "query" => match model.query(&path, &mut value)? {
                Some(subs) => format!("{}={}", joined(&subs), String::from_utf8(value)?),
                None => String::new(),
            },
            "increment" => model.increment(&path, argument.parse()?)?.to_string(),
            "kill" => model.kill(&path).map(|()| String::new())?,
            "merge" => {
                let subs = argument.split(',').map(Sub::read).collect();
                model.merge(&path, &Path { name: self.name.into(), subs })?;
                String::new()
            }
            other => return Err(format!("the model has no {other}").into()),
        };
        self.write_down(operation, &path, argument, &expected);
        Ok(expected)
    }

    /// Writes down a read that any answer is right for.
    fn record_any(&mut self, operation: &str, subs: Vec<Sub>) {
        self.write_down(operation, &Path { name: self.name.into(), subs }, "", "*");
    }

    fn write_down(&mut self, operation: &str, path: &Path, argument: &str, expected: &str) {
        let _ = write!(self.text, "{}\t{operation}\t{}\t{}", self.phase, self.name, path.subs.len());
        for sub in &path.subs {
            let _ = write!(self.text, "\t{}", escaped(&sub.to_string()));
        }
        let _ = writeln!(self.text, "\t{}\t{}", escaped(argument), escaped(expected));
    }
}

fn ints<const N: usize>(numbers: [u64; N]) -> Vec<Sub> {
    numbers.iter().map(|number| Sub::Integer(*number as i64)).collect()
}

/// Random operations of all kinds on few nodes: what each best mapping must answer right.
///
/// # Errors
/// The model's.
pub(crate) fn correctness(count: u64) -> Result<String> {
    let mut random = Random::new(20_261_122);
    let mut recorder = Recorder::new("check");
    recorder.phase("check");
    let any = [
        Sub::Integer(0),
        Sub::Integer(7),
        Sub::Integer(10),
        Sub::Integer(300),
        Sub::Text("B".into()),
        Sub::Text("a".into()),
        Sub::Text("a b".into()),
        Sub::Text("\u{e9}t\u{e9}".into()),
    ];
    for _ in 0..count {
        let depth = random.upto(3);
        let mut subs = vec![Sub::Text("tree".into())];
        subs.extend((0..depth).map(|_| any[random.upto(any.len() as u64) as usize - 1].clone()));
        match random.upto(20) {
            1..=7 => {
                let value = ["x", "", "two words", "tab\there"][random.upto(4) as usize - 1];
                recorder.record("set", subs, value)?;
            }
            8..=9 => drop(recorder.record("get", subs, "")?),
            10..=11 => drop(recorder.record("data", subs, "")?),
            12 => {
                *subs.last_mut().ok_or("no subscript")? = Sub::Text("".into());
                recorder.record("next", subs, "")?;
            }
            13..=14 => drop(recorder.record("next", subs, "")?),
            15..=16 => drop(recorder.record("previous", subs, "")?),
            17 => drop(recorder.record("query", subs, "")?),
            18 => {
                let by = random.upto(9) as i64 - 4;
                let counter = vec![Sub::Text("counter".into()), Sub::Integer(depth as i64)];
                recorder.record("increment", counter, &by.to_string())?;
            }
            19 => drop(recorder.record("merge", subs, &format!("copy,{}", random.upto(3)))?),
            _ => drop(recorder.record("kill", subs, "")?),
        }
    }
    Ok(recorder.text)
}

/// Phases of the operations trace: its name, and what one of its operations is.
pub(crate) const OPERATIONS: [&str; 7] = ["next", "previous", "query", "data", "increment", "merge", "kill"];

/// A tree of `wide` times 100 nodes and each kind of operation on it.
///
/// # Errors
/// The model's.
pub(crate) fn operations(wide: u64) -> Result<String> {
    const DEEP: u64 = 100;
    let mut random = Random::new(3);
    let mut recorder = Recorder::new("ops");
    recorder.phase("fill");
    for (first, second) in (1..=wide).flat_map(|first| (1..=DEEP).map(move |second| (first, second))) {
        recorder.record("set", ints([first, second]), "small")?;
    }
    for phase in ["next", "previous", "query"] {
        recorder.phase(phase);
        for first in 1..=wide {
            let mut subs = vec![Sub::Integer(first as i64), Sub::Text("".into())];
            if phase == "query" {
                subs.pop();
            }
            for _ in 0..DEEP {
                let found = recorder.record(phase, subs.clone(), "")?;
                let second = found.split(['=', ',']).nth(usize::from(phase == "query")).unwrap_or("");
                subs = vec![Sub::Integer(first as i64), Sub::read(second)];
            }
        }
    }
    for phase in ["data", "increment"] {
        recorder.phase(phase);
        for _ in 0..wide * DEEP {
            let first = random.upto(wide);
            match phase {
                "data" if first.is_multiple_of(4) => recorder.record("data", ints([first]), "")?,
                "data" => recorder.record("data", ints([first, random.upto(2 * DEEP)]), "")?,
                _ => recorder.record("increment", ints([wide + 1, first]), "1")?,
            };
        }
    }
    recorder.phase("merge");
    for first in 1..=wide {
        recorder.record("merge", ints([first]), &(2 * wide + first).to_string())?;
    }
    recorder.phase("kill");
    for first in 1..=wide {
        recorder.record("kill", ints([first]), "")?;
    }
    Ok(recorder.text)
}

/// The mixes of YCSB: A half updates, B 5 % updates, C reads, D 5 % inserts and reads of the latest,
/// E short walks, F read, modify, write. Letters with `z` take records by Zipf's law, others all alike.
pub(crate) const MIXES: [&str; 12] = ["A", "B", "C", "D", "E", "F", "Az", "Bz", "Cz", "Dz", "Ez", "Fz"];

/// Steps of the longest walk of E.
const LONGEST_WALK: u64 = 20;

/// Records of 100 bytes, and `count` operations of each mix.
///
/// # Errors
/// The model's.
pub(crate) fn mixes(records: u64, count: u64) -> Result<String> {
    let mut recorder = Recorder::new("usertable");
    let content = |record: u64| format!("{record:>0100}");
    recorder.phase("fill");
    for record in 1..=records {
        recorder.record("set", ints([record]), &content(record))?;
    }
    // Zipf with exponent 0.99, as YCSB has it, by its sums.
    let mut sums = vec![0.0];
    for rank in 1..=records {
        sums.push(sums[rank as usize - 1] + 1.0 / (rank as f64).powf(0.99));
    }
    for mix in MIXES {
        recorder.phase(mix);
        // Each mix inserts the same: whoever was late in the one before is right in this one.
        let mut next_record = records;
        let (kind, zipf) = (&mix[..1], mix.len() == 2);
        let mut random = Random::new(6);
        let mut pick = |latest: u64| {
            if !zipf && kind != "D" {
                return random.upto(records);
            }
            let point = random.upto(1 << 30) as f64 / f64::from(1 << 30) * sums[records as usize];
            let rank = sums.partition_point(|sum| *sum < point).clamp(1, records as usize) as u64;
            // The most wanted records are spread over all; with D they are the latest.
            if kind == "D" {
                latest + 1 - rank
            } else {
                rank * 7_368_787 % records + 1
            }
        };
        let mut chance = Random::new(7);
        let mut done = 0;
        while done < count {
            let (record, percent) = (pick(next_record), chance.upto(100));
            let write = match kind {
                "A" => percent <= 50,
                "B" | "D" | "E" => percent <= 5,
                "F" => percent <= 50,
                _ => false,
            };
            match (kind, write) {
                ("D" | "E", true) => {
                    next_record += 1;
                    recorder.record("set", ints([next_record]), &content(next_record))?;
                }
                ("E", false) => {
                    // Walks end among the records that are there from the beginning.
                    let mut at = ints([record.min(records - LONGEST_WALK)]);
                    for _ in 0..chance.upto(LONGEST_WALK) {
                        at = vec![Sub::read(&recorder.record("next", at, "")?)];
                        done += 1;
                    }
                }
                (_, true) => {
                    if kind == "F" {
                        recorder.record("get", ints([record]), "")?;
                    }
                    recorder.record("set", ints([record]), &content(record))?;
                }
                // Another player may read it before this one has inserted it.
                _ if record > records => recorder.record_any("get", ints([record])),
                _ => drop(recorder.record("get", ints([record]), "")?),
            }
            done += 1;
        }
    }
    Ok(recorder.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_the_same_each_time_and_have_their_phases() {
        assert_eq!(correctness(200).unwrap(), correctness(200).unwrap());
        let text = operations(3).unwrap();
        for phase in OPERATIONS {
            assert!(text.lines().any(|line| line.starts_with(&format!("{phase}\t{phase}\tops"))), "{phase}");
        }
        let text = mixes(100, 50).unwrap();
        assert!(MIXES.iter().all(|mix| text.contains(&format!("\n{mix}\t"))));
    }
}
