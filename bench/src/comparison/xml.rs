//! The published trace of an XML parser's calls (data/xml_trace.tsv.gz): unpacked, checked by its hash, and split
//! by phase (delete, parse, output) and by kind of call (get, data, next, set, increment).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::Path as FilePath;

use sha2::{Digest, Sha256};

use crate::globals::{Keys, Path, Sub};
use crate::player::replay::unescaped;
use crate::subject::Result;

/// Operations in each phase of the XML trace.
pub(crate) const XML_PHASES: [(&str, u64); 3] = [("delete", 4), ("parse", 225_827), ("output", 61_773)];
/// What the XML trace leaves behind: its nodes, one a line, hashed.
pub(crate) const XML_DIGEST: &str = "4414f6bd0832fa7ef6b56ea27402198abc4aa0b7419056377bd413469660d653";
const XML_BODY: &str = "b88c0d530c827c4cf2cc6165a58b1ce7c26b116f3abd43d2379c54dcca2ebea7";

/// The kinds of calls that are measured by themselves, and how many there are: reads of the output, writes of
/// the parse. Reads come first, while all is as the trace has left it.
pub(crate) const XML_KINDS: [(&str, u64); 5] =
    [("get", 26_455), ("data", 33_049), ("next", 2_269), ("set", 29_416), ("increment", 3_471)];

/// Writes the XML trace, unpacked, to `xml.tsv`, and its calls by kind to `kinds.tsv`.
///
/// # Errors
/// It is not what was packed; a file cannot be written.
pub(crate) fn write_xml(directory: &FilePath) -> Result<()> {
    let packed: &[u8] = include_bytes!("../../data/xml_trace.tsv.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text)?;
    let body: String =
        text.lines().filter(|line| !line.starts_with('#')).fold(String::new(), |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        });
    if hex(body.as_bytes()) != XML_BODY {
        return Err("the XML trace of this build is damaged".into());
    }
    std::fs::write(directory.join("kinds.tsv"), kinds(&body))?;
    Ok(std::fs::write(directory.join("xml.tsv"), body)?)
}

/// The calls of [`XML_KINDS`], kind after kind in their order, the kind as their phase. What an increment answers is
/// not known any more: counters are where the trace has left them, and counted on.
fn kinds(body: &str) -> String {
    let mut text = String::new();
    for (kind, _) in XML_KINDS {
        let phase = if matches!(kind, "get" | "data" | "next") { "output" } else { "parse" };
        let start = format!("{phase}\t{kind}\t");
        for line in body.lines().filter(|line| line.starts_with(&start)) {
            let call = &line[phase.len() + 1..];
            let (call, answer) = call.rsplit_once('\t').unwrap_or((call, ""));
            let answer = if kind == "increment" { "*" } else { answer };
            // Writing to a string does not fail.
            let _ = writeln!(text, "{kind}\t{call}\t{answer}");
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The digest of what a player has dumped, in the order of globals whatever the peer's is.
///
/// # Errors
/// The file cannot be read, or holds nodes that cannot be.
pub(crate) fn digest(file: &FilePath) -> Result<String> {
    let text = std::fs::read_to_string(file)?;
    let mut keys = Keys::default();
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        let mut columns: Vec<&str> = line.split('\t').collect();
        columns.pop();
        let subs = columns.iter().map(|column| Sub::read(&unescaped(column))).collect();
        let node = keys.node(&Path { name: "dump".into(), subs })?;
        lines.insert(node.encoded().to_vec(), line);
    }
    let sorted = lines.values().fold(String::new(), |all, line| all + line + "\n");
    Ok(hex(sorted.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_xml_trace_is_whole() {
        let directory = std::env::temp_dir().join(format!("bench-xml-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        write_xml(&directory).unwrap();
        let read = |name| std::fs::read_to_string(directory.join(name)).unwrap();
        let (text, kinds) = (read("xml.tsv"), read("kinds.tsv"));
        std::fs::remove_dir_all(&directory).unwrap();
        let count =
            |text: &str, phase| text.lines().filter(|line| line.split('\t').next() == Some(phase)).count();
        for (phase, calls) in XML_PHASES {
            assert_eq!(count(&text, phase) as u64, calls, "{phase}");
        }
        for (kind, calls) in XML_KINDS {
            assert_eq!(count(&kinds, kind) as u64, calls, "{kind}");
        }
        // One after the other, so that a part of what is loaded is a kind.
        let mut found: Vec<_> = kinds.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(found.len() as u64, XML_KINDS.iter().map(|(_, calls)| calls).sum::<u64>());
        found.dedup();
        assert_eq!(found, XML_KINDS.map(|(kind, _)| kind));
    }
}
