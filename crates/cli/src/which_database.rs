//! Which database a command is for: one rule for all of them.
//!
//! `--db` names it; without that, the first word behind the command does; without words, it is the default database. A
//! database that is named twice is an error, since one of the two would be passed over without a word.
//!
//! Example: `perilune --db shop.db dump ^user` and `perilune dump shop.db ^user` are one command.
//!
//! Invariants
//! - Nothing here makes a database. A command that only reads one asks for it with [`existing`].

use std::path::{Path, PathBuf};

use perilune::{Database, ErrorCode};

use crate::failure::{environment, wrong_use, Result};

/// The database of a command that takes no other words, as it stands in them; None: the default one.
///
/// # Errors
/// Wrong use, if `--db` and a word both name one.
pub(crate) fn only<'a>(word: Option<&'a Path>, flag: Option<&'a Path>) -> Result<Option<&'a Path>> {
    match (word, flag) {
        (Some(word), Some(flag)) => Err(twice(word, flag)),
        (word, flag) => Ok(word.or(flag)),
    }
}

/// Parts the words of a command in the database and the rest, of which there are at most `rest_max`.
///
/// # Errors
/// Wrong use, if there are more words than that, the first of which then names a second database.
pub(crate) fn first<'a>(
    words: &'a [PathBuf],
    flag: Option<&'a Path>,
    rest_max: usize,
) -> Result<(Option<&'a Path>, &'a [PathBuf])> {
    match (flag, words.split_first()) {
        (Some(flag), Some((word, _))) if words.len() > rest_max => Err(twice(word, flag)),
        (None, Some((word, rest))) => Ok((Some(word), rest)),
        _ => Ok((flag, words)),
    }
}

/// That a database is named by a word and by `--db`.
pub(crate) fn twice(word: &Path, flag: &Path) -> crate::failure::Failure {
    wrong_use(format!(
        "the database is named twice, {} and --db {}: leave one out",
        word.display(),
        flag.display()
    ))
}

/// The path of a database that has to be there.
///
/// # Errors
/// Wrong use for the address of a server, environment if there is none.
pub(crate) fn existing(path: Option<&Path>) -> Result<PathBuf> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => Database::default_path()?,
    };
    is_file(&path)?;
    if !path.exists() {
        return Err(environment(format!(
            "{}: no such database; name one with --db PATH or as the first argument",
            path.display()
        )));
    }
    Ok(path)
}

/// Refuses the address of a server, for commands that need the file itself.
fn is_file(path: &Path) -> Result<()> {
    if !Database::is_address(path) {
        return Ok(());
    }
    Err(wrong_use(format!(
        "{}: this command is for a database's file: run it on the server's machine",
        path.display()
    )))
}

/// Refuses to write over a database: that `file` is none.
///
/// # Errors
/// Wrong use, if it is one, or a file that cannot be read.
pub(crate) fn is_none(file: &Path) -> Result<()> {
    if !file.is_file() {
        return Ok(());
    }
    match Database::options().create(false).read_only(true).open(file) {
        Err(error) if error.code() == ErrorCode::NotADatabase => Ok(()),
        _ => Err(wrong_use(format!(
            "{}: is a database or cannot be read: give another path to write to",
            file.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_names_the_database_or_else_the_first_word() {
        let words: Vec<PathBuf> = ["a", "b", "c"].iter().map(PathBuf::from).collect();
        let flag = Path::new("z");
        assert_eq!(first(&words, None, 9).unwrap(), (Some(Path::new("a")), &words[1..]));
        assert_eq!(first(&words, Some(flag), 9).unwrap(), (Some(flag), &words[..]));
        assert_eq!(first(&[], Some(flag), 9).unwrap(), (Some(flag), &[][..]));
        assert_eq!(first(&[], None, 9).unwrap(), (None, &[][..]));
        let text = first(&words, Some(flag), 2).unwrap_err().to_string();
        assert!(text.contains("twice, a and --db z"), "{text}");
        assert!(only(Some(&words[0]), Some(flag)).is_err());
        assert_eq!(only(None, Some(flag)).unwrap(), Some(flag));
    }
}
