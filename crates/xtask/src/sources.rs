//! The files of the project in memory: what every tidy rule looks at.
//!
//! Invariants: paths are relative to the root, with `/`, sorted. Build output (`target`, `build`)
//! and hidden directories other than `.ci` and `.cargo` are not part of the project.
//!
//! Rules never touch the disk, so that their tests can show them a bad sample.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// Suffixes of the files whose text the rules read.
const TEXT_SUFFIXES: &[&str] =
    &["rs", "c", "h", "cc", "lua", "md", "toml", "txt", "sh", "py", "supp", "rockspec", "js", "mjs", "ts"];
/// Files without a telling suffix that are text all the same.
const TEXT_NAMES: &[&str] = &["Makefile", "LICENSE-MIT", "LICENSE-APACHE", "run"];
/// Directories of build output.
const OUTPUT: &[&str] = &["target", "build", "node_modules"];

/// Paths and texts of the project.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// Text of every text file by path.
    texts: BTreeMap<String, Vec<u8>>,
    /// Every path, directories too.
    paths: BTreeSet<String>,
    /// Bytes of every file.
    sizes: BTreeMap<String, u64>,
}

impl Sources {
    /// Reads the project under `root`.
    ///
    /// # Errors
    /// A directory or file that cannot be read.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut sources = Self::default();
        sources.walk(root, "")?;
        Ok(sources)
    }

    /// Puts one file in, as tests do.
    pub(crate) fn insert(&mut self, path: &str, text: impl Into<Vec<u8>>) {
        let parents = path.match_indices('/').map(|(at, _)| path[..at].to_string());
        self.paths.extend(parents);
        self.paths.insert(path.to_string());
        let text = text.into();
        self.sizes.insert(path.to_string(), text.len() as u64);
        if is_text(path) {
            self.texts.insert(path.to_string(), text);
        }
    }

    /// Is there a file or directory of that path?
    pub(crate) fn exists(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    /// Every path, directories too.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Every file with its bytes.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.sizes.iter().map(|(path, bytes)| (path.as_str(), *bytes))
    }

    /// Raw bytes of every text file.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_slice()))
    }

    /// Every text with one of these suffixes. What is not UTF-8 is left to the rule on encoding.
    pub(crate) fn texts<'a>(&'a self, suffixes: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.bytes().filter_map(move |(path, text)| {
            let wanted = suffixes.contains(&suffix(path));
            wanted.then(|| std::str::from_utf8(text).ok()).flatten().map(|text| (path, text))
        })
    }

    /// One text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.texts.get(path)?).ok()
    }

    fn walk(&mut self, root: &Path, dir: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(root.join(dir))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let hidden = name.starts_with('.') && name != ".ci" && name != ".cargo";
            if hidden {
                continue;
            }
            let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !OUTPUT.contains(&name.as_str()) {
                    self.paths.insert(path.clone());
                    self.walk(root, &path)?;
                }
            } else if is_text(&path) && kind.is_file() {
                let text = std::fs::read(root.join(&path))?;
                self.insert(&path, text);
            } else {
                self.sizes.insert(path.clone(), entry.metadata()?.len());
                self.paths.insert(path);
            }
        }
        Ok(())
    }
}

/// The part of a file name after its last dot.
pub(crate) fn suffix(path: &str) -> &str {
    name(path).rsplit_once('.').map_or("", |(_, suffix)| suffix)
}

/// The last part of a path.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn is_text(path: &str) -> bool {
    TEXT_SUFFIXES.contains(&suffix(path)) || TEXT_NAMES.contains(&name(path))
}
