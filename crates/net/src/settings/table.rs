//! The table of a server's settings, and finding a row of it.
//!
//! Invariant: names are in ascending order, and a row stands where its [`Id`] says (`Table::is_in_order`, for a test of who has
//! one).

use std::fmt;

use super::kind::Kind;

/// Names a row of a table.
pub trait Id: Copy + PartialEq + fmt::Debug {
    /// Which row.
    fn place(self) -> usize;
}

/// Whose a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One server's, as it was started.
    Server,
    /// Of all servers that work together: whoever changes it changes it for all.
    Shared,
}

/// One setting.
#[derive(Debug)]
pub struct Setting<N: 'static> {
    /// Its name.
    pub name: &'static str,
    /// Which.
    pub id: N,
    /// Whose.
    pub scope: Scope,
    /// What it takes.
    pub kind: Kind,
    /// What holds when nobody has said anything.
    pub default: &'static str,
    /// One line for whoever sets it.
    pub summary: &'static str,
}

/// All settings of a server.
#[derive(Debug)]
pub struct Table<N: 'static> {
    /// Each of them, by name.
    pub rows: &'static [Setting<N>],
    /// Other names, each with the one that it stands for.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Where all are listed, to be told to who asks for one that there is not.
    pub listed_in: &'static str,
}

/// Why a setting was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(String);

impl SettingError {
    /// `name` does not take that.
    #[must_use]
    pub fn invalid(name: &str, why: &str) -> SettingError {
        SettingError(format!("`{name}`: {why}"))
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingError {}

impl<N: Id> Table<N> {
    /// The setting called `name`, in any case.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static Setting<N>> {
        let lower = name.to_ascii_lowercase();
        let alias = self.aliases.iter().find(|(alias, _)| *alias == lower);
        let name = alias.map_or(&*lower, |(_, name)| name);
        self.rows.iter().find(|setting| setting.name == name)
    }

    /// The setting called `name`.
    ///
    /// # Errors
    /// There is none; the error names the nearest.
    pub fn known(&self, name: &str) -> Result<&'static Setting<N>, SettingError> {
        self.find(name).ok_or_else(|| {
            let near = self.nearest(name).map_or_else(
                || format!("{} lists them", self.listed_in),
                |near| format!("is `{near}` meant?"),
            );
            SettingError(format!("there is no setting `{name}`; {near}"))
        })
    }

    /// Its row.
    #[inline]
    #[must_use]
    pub fn row(&self, id: N) -> &'static Setting<N> {
        &self.rows[id.place()]
    }

    /// The name that is nearest to `wrong`, if any is near.
    #[must_use]
    pub fn nearest(&self, wrong: &str) -> Option<&'static str> {
        let wrong = wrong.to_ascii_lowercase();
        let distances = self.rows.iter().map(|setting| (distance(&wrong, setting.name), setting.name));
        let (near, name) = distances.min()?;
        (near <= 2 + wrong.len() / 4).then_some(name)
    }

    /// Whether it is as its invariant says, and every default is valid and the one text for what it means; else which row
    /// is not.
    ///
    /// # Errors
    /// The name of a row that is out of order, or whose default is not valid.
    pub fn is_in_order(&self) -> Result<(), &'static str> {
        for (place, row) in self.rows.iter().enumerate() {
            let is_behind = place == 0 || self.rows[place - 1].name < row.name;
            let is_valid = row.kind.parse(row.default).is_ok_and(|parsed| parsed.text == row.default);
            if !is_behind || !is_valid || row.id.place() != place {
                return Err(row.name);
            }
        }
        Ok(())
    }
}

/// How many letters must be inserted, removed or replaced to make one word of the other.
fn distance(left: &str, right: &str) -> usize {
    let right = right.as_bytes();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.bytes().take(100).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, other) in right.iter().enumerate() {
            let above = row[column + 1];
            row[column + 1] = (diagonal + usize::from(letter != *other)).min(above + 1).min(row[column] + 1);
            diagonal = above;
        }
    }
    row[right.len()]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two settings and another name.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(crate) enum Name {
        Bind,
        Limit,
    }

    impl Id for Name {
        fn place(self) -> usize {
            self as usize
        }
    }

    const fn row(name: &'static str, id: Name, kind: Kind, default: &'static str) -> Setting<Name> {
        Setting { name, id, scope: Scope::Server, kind, default, summary: "" }
    }

    pub(crate) static TABLE: Table<Name> = Table {
        rows: &[
            row("bind", Name::Bind, Kind::Words, "here there"),
            row("limit", Name::Limit, Kind::Integer { least: 0, most: 9 }, "3"),
        ],
        aliases: &[("max", "limit")],
        listed_in: "the manual",
    };

    #[test]
    fn a_row_is_found_by_its_names_and_the_nearest_is_told() {
        assert_eq!(TABLE.is_in_order(), Ok(()));
        assert_eq!(TABLE.find("MAX").map(|row| row.id), Some(Name::Limit));
        assert_eq!(TABLE.nearest("limti"), Some("limit"));
        let error = TABLE.known("replicaof").unwrap_err().to_string();
        assert_eq!(error, "there is no setting `replicaof`; the manual lists them");
    }

    #[test]
    fn a_table_that_is_out_of_order_is_noticed() {
        static SWAPPED: Table<Name> = Table {
            rows: &[row("limit", Name::Bind, Kind::Text, ""), row("bind", Name::Limit, Kind::Text, "")],
            ..TABLE
        };
        static INVALID: Table<Name> = Table { rows: &[row("bind", Name::Bind, Kind::Yes, "1")], ..TABLE };
        assert_eq!(SWAPPED.is_in_order(), Err("bind"));
        assert_eq!(INVALID.is_in_order(), Err("bind"));
    }
}
