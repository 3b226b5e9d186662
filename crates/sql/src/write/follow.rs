//! What else a change of a row does: triggers, and what an INSERT does instead with ON CONFLICT.
//!
//! Both run statements inside the one that runs, in its transaction, with columns of the row as parameters.
//!
//! Invariant: triggers of one kind fire in the order of their names, whatever they are written in.

use perilune::Session;

use super::{New, Writer};
use crate::conflict::means;
use crate::error::{Error, Result, SqlState};
use crate::exact::with_exact_rows;
use crate::function::{Change, Function};
use crate::over::read_row;
use crate::rewrite::{with_rows, Piece, Version};
use crate::row::{index_key, root_key, Row};
use crate::schema::{Event, Index, Timing, Trigger};
use crate::stage::Host;
use crate::token::{quote, tokens};
use crate::value::Value;

impl Writer<'_> {
    /// Fires the triggers of a kind.
    pub(super) fn fire(
        &self,
        session: &mut Session,
        timing: Timing,
        event: Event,
        old: Option<&Row>,
        mut new: New<'_>,
        touched: &[usize],
    ) -> Result<()> {
        for trigger in &self.table.triggers {
            let is_meant = trigger.columns.is_empty()
                || touched.iter().any(|at| {
                    trigger
                        .columns
                        .iter()
                        .any(|name| name.eq_ignore_ascii_case(&self.table.columns[*at].name))
                });
            if trigger.timing == timing && trigger.event == event && is_meant {
                self.run_trigger(session, trigger, old, &mut new)?;
            }
        }
        Ok(())
    }

    fn run_trigger(
        &self,
        session: &mut Session,
        trigger: &Trigger,
        old: Option<&Row>,
        new: &mut New<'_>,
    ) -> Result<()> {
        let host = self.stage.host()?;
        if let Some(condition) = &trigger.condition {
            let parameters = self.parameters(condition, old, new.row())?;
            let rows = host.run(session, &format!("SELECT 1 WHERE ({})", condition.sql), &parameters)?;
            if rows.is_empty() {
                return Ok(());
            }
        }
        if let Some(script) = &trigger.script {
            return self.run_script(session, script, old, new);
        }
        for statement in &trigger.body {
            let parameters = self.parameters(statement, old, new.row())?;
            host.run(session, &statement.sql, &parameters)?;
        }
        Ok(())
    }

    /// Runs a trigger in another language, and takes over what it has made of the row.
    fn run_script(
        &self,
        session: &mut Session,
        script: &Function,
        old: Option<&Row>,
        new: &mut New<'_>,
    ) -> Result<()> {
        // NB: what indexes hold besides stands behind all columns.
        let seen = self.table.columns.iter().take_while(|column| !column.is_hidden());
        let columns: Vec<&str> = seen.map(|column| &column.name[..]).collect();
        let change = Change {
            columns: &columns,
            old: old.map(|row| &row[..columns.len()]),
            new: new.row().map(|row| &row[..columns.len()]),
            may_change: matches!(new, New::Open(_)),
        };
        let changed = self.stage.host()?.change(session, script, &change)?;
        let Some(changed) = changed else { return Err(Error::left_out()) };
        if let New::Open(row) = new {
            for (at, value) in changed {
                row[at] = self.table.columns[at].store(value);
            }
        }
        Ok(())
    }

    /// The values of the columns that a piece names.
    fn parameters(&self, piece: &Piece, old: Option<&Row>, new: Option<&Row>) -> Result<Vec<Value>> {
        let value = |(version, column): &(Version, String)| {
            let row = match version {
                Version::New => new,
                Version::Old => old,
            };
            let at = self.table.column(column).or_else(|| {
                let key = self.table.key_columns().first().copied();
                key.filter(|_| self.table.has_rowid() && ["rowid", "oid", "_rowid_"].contains(&&column[..]))
            });
            match (row, at) {
                (Some(row), Some(at)) => Ok(row[at].clone()),
                _ => {
                    let word = if *version == Version::New { "new" } else { "old" };
                    Err(Error::new(SqlState::NO_COLUMN, format!("no such column: {word}.{column}")))
                }
            }
        };
        piece.columns.iter().map(value).collect()
    }

    /// Does what ON CONFLICT says, if a row is in the way of a new one; answers the number of that row.
    pub(super) fn upsert(&self, session: &mut Session, fresh: &super::Fresh) -> Result<Option<i64>> {
        let frame = self.stage.frame();
        if frame.upserts.is_empty() {
            return Ok(None);
        }
        let found = self.in_the_way(session, fresh)?;
        let Some((index, _)) = found.first() else { return Ok(None) };
        // As SQLite: the clauses in their order, whatever else is in the way.
        let mut meant = None;
        for upsert in frame.upserts.iter() {
            for (index, suffix) in &found {
                let is_it = match &upsert.target {
                    None => true,
                    Some(target) => means(target, self.table, *index)?,
                };
                meant = meant.or_else(|| is_it.then_some((upsert, suffix)));
            }
        }
        let Some((upsert, suffix)) = meant else {
            let names = index.map_or_else(|| self.key_name(), |index| self.names_of(index));
            return Err(Error::new(SqlState::UNIQUE, format!("UNIQUE constraint failed: {names}")));
        };
        let Some((sets, condition)) = &upsert.update else { return Err(Error::left_out()) };
        let host = self.stage.host()?;
        self.update_instead(&*host, session, fresh, suffix, (sets, condition.as_deref()), &frame.parameters)?;
        Ok(Some(perilune::key::decode_int(suffix).unwrap_or(0)))
    }

    /// The index of each constraint that a new row breaks, none for the key, and the key of the row that is there.
    fn in_the_way(
        &self,
        session: &mut Session,
        fresh: &super::Fresh,
    ) -> Result<Vec<(Option<&Index>, Vec<u8>)>> {
        let (mut found, mut other) = (Vec::new(), Row::new());
        if !fresh.is_free && read_row(session, self.table, fresh.key.as_bytes(), fresh.root, &mut other)? {
            found.push((None, fresh.suffix().to_vec()));
        }
        for index in self.table.indexes.iter().filter(|index| index.unique && index.holds(&fresh.row)) {
            let mut entry = root_key(&index.root)?;
            if !index_key(index, &fresh.row, fresh.suffix(), &mut entry)? {
                continue;
            }
            if let Some(suffix) = self.entry_of(session, entry.as_bytes())? {
                found.push((Some(index), suffix));
            }
        }
        Ok(found)
    }

    /// Updates the row that is there, where `excluded` is the one that was to come.
    fn update_instead(
        &self,
        host: &dyn Host,
        session: &mut Session,
        fresh: &super::Fresh,
        suffix: &[u8],
        (sets, condition): (&str, Option<&str>),
        given: &[Value],
    ) -> Result<()> {
        let mut parameters = given.to_vec();
        let (key, root) = self.key_of(suffix)?;
        let mut old = Row::new();
        read_row(session, self.table, key.as_bytes(), root, &mut old)?;
        let mut terms = Vec::new();
        if self.table.has_rowid() {
            parameters.push(Value::Integer(perilune::key::decode_int(suffix).unwrap_or(0)));
            terms.push(format!("rowid = ?{}", parameters.len()));
        }
        for column in self.table.key_columns().iter().filter(|_| !self.table.has_rowid()) {
            parameters.push(old[*column].clone());
            terms.push(format!("{} = ?{}", quote(&self.table.columns[*column].name), parameters.len()));
        }
        terms.extend(condition.map(|condition| format!("({condition})")));
        let sql = format!("UPDATE {} SET {sets} WHERE {}", quote(&self.table.name), terms.join(" AND "));
        let versions = [("excluded", Version::New)];
        let piece = with_rows(&sql, &tokens(&sql)?, &versions, parameters.len() + 1);
        let exact = with_exact_rows(&piece, self.table, parameters.len() + 1)?;
        parameters.extend(self.parameters(&piece, None, Some(&fresh.row))?);
        host.run_for_user(session, exact.as_deref().unwrap_or(&piece.sql), &parameters)?;
        if self.stage.frame().noted.is_some() {
            let mut row = Row::new();
            if read_row(session, self.table, key.as_bytes(), root, &mut row)? && row != old {
                self.note(perilune::key::decode_int(suffix).unwrap_or(0), &row);
            }
        }
        Ok(())
    }
}
