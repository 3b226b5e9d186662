//! Coming to a row, and answering its columns.
//!
//! Invariant: a node that is no row of the table (without a record, of another depth, a key that does not decode) is passed over.

use perilune::key::{decode_int, decode_subscript};
use perilune::{NodeRef, Record, Session, ValueRef as NodeValue};
use perilune_sqlite::Output;

use super::bounds::parts;
use super::{Scan, Source};
use crate::computed::compute_one;
use crate::error::Result;
use crate::ghost::{is_ghost, miss};
use crate::over;
use crate::row::{component, key_part, of_field, push_suffix, Row};
use crate::schema::{Collation, Index, Key, Table};
use crate::stage::Stage;
use crate::used;
use crate::value::{Value, ValueRef};

impl Scan {
    /// Reads the record of the row that the key names.
    pub(super) fn fetch(&mut self, table: &Table, session: &mut Session) -> Result<bool> {
        self.is_in_cursor = false;
        if table.over.is_some() {
            return over::is_row(session, self.key.as_bytes());
        }
        match session.get_ref(NodeRef::from_encoded(self.key.as_bytes(), false))? {
            Some(NodeValue::Record(fields)) => {
                self.record.clear();
                self.record.extend_from_slice(fields);
                Ok(true)
            }
            value if is_ghost(table, value) => Err(miss(self.key.as_bytes())),
            _ => Ok(false),
        }
    }

    /// Takes the node at which the cursor stands as a row, if it is one.
    pub(super) fn arrive(&mut self, table: &Table) -> Result<bool> {
        let Source::Walk(cursor) = &self.source else { return Ok(false) };
        if !matches!(cursor.value()?, Some(NodeValue::Record(_))) {
            if self.names && is_ghost(table, cursor.value()?) {
                let key = cursor.node_ref()?.encoded();
                if parts(&key[self.root..]) == Some(table.key_columns().len()) {
                    return Err(miss(key));
                }
            }
            return Ok(false);
        }
        self.is_in_cursor = true;
        match &table.key {
            Key::Rowid { .. } => match cursor.integer() {
                Some(rowid) => {
                    self.number = Some(rowid);
                    Ok(true)
                }
                None => Ok(false),
            },
            Key::Columns(columns) => {
                let suffix = cursor.node_ref()?.encoded().get(self.root..).unwrap_or(&[]);
                if parts(suffix) != Some(columns.len()) {
                    return Ok(false);
                }
                self.key.truncate_depth(self.depth);
                push_suffix(&mut self.key, suffix)?;
                Ok(true)
            }
        }
    }

    /// Takes the row that the entry names at which the cursor stands.
    pub(super) fn arrive_by_index(
        &mut self,
        table: &Table,
        index: &Index,
        session: &mut Session,
    ) -> Result<bool> {
        let Source::Walk(cursor) = &self.source else { return Ok(false) };
        let entry = cursor.node_ref()?.encoded();
        let mut rest = entry.get(index.root.len() + 1..).unwrap_or(&[]);
        self.values.clear();
        let wants = self.covering
            || index.columns.iter().any(|(column, _)| table.columns[*column].computed.is_some());
        for (column, _) in &index.columns {
            let (subscript, length) = decode_subscript(rest).map_err(perilune::Error::from)?;
            if wants {
                self.values.push(component(subscript, table.columns[*column].affinity));
            }
            rest = &rest[length..];
        }
        self.key.truncate_depth(self.depth);
        if !rest.is_empty() {
            push_suffix(&mut self.key, rest)?;
        } else {
            match cursor.value()? {
                Some(NodeValue::Int(rowid)) => self.key.push_int(rowid).map_err(perilune::Error::from)?,
                Some(NodeValue::String(suffix)) => push_suffix(&mut self.key, suffix)?,
                _ => return Ok(false),
            }
        }
        if self.covering {
            return Ok(true);
        }
        self.fetch(table, session)
    }

    /// Takes the row of a table over nodes at or below whose node the cursor stands, and has it go on behind that.
    pub(super) fn arrive_over(&mut self, table: &Table) -> Result<bool> {
        let Source::Walk(cursor) = &mut self.source else { return Ok(false) };
        self.is_in_cursor = false;
        if table.has_rowid() {
            let Some(rowid) = cursor.integer() else { return Ok(false) };
            self.set_rowid(rowid)?;
            return Ok(true);
        }
        let codes = cursor.node_ref()?.encoded().get(self.root..).unwrap_or(&[]);
        let Some(suffix) = over::suffix_of(table, codes)? else { return Ok(false) };
        self.key.truncate_depth(self.depth);
        push_suffix(&mut self.key, suffix)?;
        let row = NodeRef::from_encoded(self.key.as_bytes(), false);
        if self.descending {
            cursor.seek(row);
        } else {
            cursor.seek_past(row);
        }
        over::is_key(table, &self.key.as_bytes()[self.root..])
    }

    /// The key of the node of the row at which it stands, and where what names the row begins; none, if it only walks past.
    pub(crate) fn found(&mut self) -> Result<Option<(&[u8], usize)>> {
        if !self.finds || self.is_at_end {
            return Ok(None);
        }
        // NB: whoever asks for the number is answered by the key, too.
        self.name_row()?;
        Ok(Some((self.key.as_bytes(), self.root)))
    }

    /// Answers a column of the row.
    pub(crate) fn column(
        &mut self,
        table: &Table,
        stage: &Stage,
        session: &mut Session,
        column: usize,
        output: &mut Output<'_>,
    ) -> Result<()> {
        if table.columns.get(column).is_some_and(|it| it.computed.is_some()) {
            return self.computed(table, stage, session, column, output);
        }
        if self.number.is_some() && (table.has_documents() || table.over.is_some()) {
            self.name_row()?;
        }
        let suffix = &self.key.as_bytes()[self.root..];
        let Some(it) = table.columns.get(column) else {
            output.set(ValueRef::Blob(suffix));
            return Ok(());
        };
        if it.is_document || it.element.is_some() {
            if !output.is_unchanged() {
                let value = over::read_document(session, table, self.key.as_bytes(), column)?;
                output.set(value.as_ref());
            }
            return Ok(());
        }
        let Some(field) = it.field else {
            match &table.key {
                Key::Rowid { .. } => {
                    let number = self.number.or_else(|| decode_int(suffix));
                    output.set(number.map_or(ValueRef::Null, ValueRef::Integer));
                }
                Key::Columns(columns) => {
                    let mut rest = suffix;
                    for other in columns {
                        let (subscript, length) = decode_subscript(rest).map_err(perilune::Error::from)?;
                        if *other == column {
                            output.set(key_part(it, subscript).as_ref());
                        }
                        rest = &rest[length..];
                    }
                }
            }
            return Ok(());
        };
        if output.is_unchanged() {
            return Ok(());
        }
        if let Some(over) = &table.over {
            output.set(over::read(session, table, over, self.key.as_bytes(), column)?.as_ref());
            return Ok(());
        }
        if let (true, Some(index)) = (self.covering, self.index) {
            let place = table.indexes[index].columns.iter().position(|(other, _)| *other == column);
            let value = place.and_then(|place| self.values.get(place));
            output.set(value.map_or(ValueRef::Null, Value::as_ref));
            return Ok(());
        }
        let fields = match (&self.source, self.is_in_cursor) {
            (Source::Walk(cursor), true) => match cursor.value()? {
                Some(NodeValue::Record(fields)) => fields,
                _ => &[],
            },
            _ => &self.record[..],
        };
        let field = Record::new(fields).field(field).map_err(perilune::Error::from)?;
        output.set(of_field(field, it));
        Ok(())
    }

    /// Answers what is computed of the row: what the entry has, or by computing it.
    fn computed(
        &mut self,
        table: &Table,
        stage: &Stage,
        session: &mut Session,
        column: usize,
        output: &mut Output<'_>,
    ) -> Result<()> {
        if output.is_unchanged() {
            return Ok(());
        }
        let index = self.index.map(|index| &table.indexes[index]);
        let has_values = index.is_some_and(|index| self.values.len() == index.columns.len());
        let place = index
            .filter(|_| has_values)
            .and_then(|index| index.columns.iter().position(|it| *it == (column, Collation::Binary)));
        if let Some(value) = place.and_then(|place| self.values.get(place)) {
            output.set(value.as_ref());
            return Ok(());
        }
        self.name_row()?;
        if table.columns[column].is_usage() {
            let suffix = &self.key.as_bytes()[self.root..];
            output.set(used::value(session, table, column, suffix)?.as_ref());
            return Ok(());
        }
        let mut row = Row::new();
        over::read_row(session, table, self.key.as_bytes(), self.root, &mut row)?;
        output.set(compute_one(stage, session, table, &row, column)?.as_ref());
        Ok(())
    }

    /// The number of the row.
    pub(crate) fn rowid(&self) -> i64 {
        self.number.or_else(|| decode_int(&self.key.as_bytes()[self.root..])).unwrap_or(0)
    }
}
