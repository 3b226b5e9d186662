//! Columns: cells that lie by column, found by row and by value.
//!
//! Layout: `T("cells",column,row) = value`; `T("by_row",row,column) = ""`; `T("by_value",column,value,row) = ""`.
//!
//! Invariants
//! - After every call the three agree; `check` tells where they do not. An empty value has no entry by value.

use std::collections::BTreeSet;
use std::ops::Bound;

use perilune::{Cursor, Node, Session};

use crate::error::{change, look};
use crate::fields::{children, field, identity, key, names, scalar, shown_subscript, Fields};
use crate::leaf::{name, text};
use crate::{Error, Json, Result};

/// A table that is stored by column.
#[derive(Clone, Debug)]
pub struct Columns {
    node: Node,
}

impl Columns {
    /// The table below `node`, whether or not there is one.
    #[must_use]
    pub fn at(node: Node) -> Columns {
        Columns { node }
    }

    /// Sets cells of a row, null deleting one.
    ///
    /// # Errors
    /// `Call` for an empty row and for a cell that is no scalar; the database's, also for a value longer than a subscript.
    pub fn put(&self, session: &mut Session, row: &Json, cells: &Fields) -> Result<()> {
        let row = identity("row", row)?;
        change(session, |session| {
            for (column, json) in cells {
                self.remove_cell(session, &row, column)?;
                if json.is_null() {
                    continue;
                }
                let value = scalar(column, json)?;
                session.set(&self.cell(&row, column)?, &value)?;
                session.set(&self.node.child("by_row")?.with(&row)?.with(column)?, "")?;
                if let Some(entry) = self.entry(&row, column, text(value.as_ref()))? {
                    session.set(&entry, "")?;
                }
            }
            Ok(())
        })
    }

    /// The cells of a row; `None` if it has none.
    ///
    /// # Errors
    /// The database's.
    pub fn row(&self, session: &mut Session, row: &Json) -> Result<Option<Fields>> {
        let row = identity("row", row)?;
        look(session, |session| {
            let by_row = self.node.child("by_row")?.with(&row)?;
            let mut cells = Fields::new();
            for column in children(session, &by_row)? {
                let column = name(&by_row, &column)?;
                if let Some(value) = field(session, &self.cell(&row, &column)?)? {
                    cells.insert(column, value);
                }
            }
            Ok(Some(cells).filter(|cells| !cells.is_empty()))
        })
    }

    /// The rows of a column with their values, in the order of rows.
    ///
    /// # Errors
    /// The database's.
    pub fn column(&self, session: &mut Session, column: &str) -> Result<Vec<(Json, Json)>> {
        let cells = self.node.child("cells")?.with(column)?;
        look(session, |session| {
            let mut found = Vec::new();
            for row in children(session, &cells)? {
                if let Some(value) = field(session, &cells.child(&row)?)? {
                    found.push((shown_subscript(&cells, &row)?, value));
                }
            }
            Ok(found)
        })
    }

    /// The rows whose cell in a column has that value, in order.
    ///
    /// # Errors
    /// The database's.
    pub fn find(&self, session: &mut Session, column: &str, value: &Json) -> Result<Vec<Json>> {
        match self.entry(b"x", column, key(column, value)?)?.and_then(|entry| entry.parent()) {
            Some(entries) => names(session, &entries),
            None => Ok(Vec::new()),
        }
    }

    /// The rows whose cell in a column lies between two values, both included, in the order of values.
    ///
    /// # Errors
    /// The database's.
    pub fn range(
        &self,
        session: &mut Session,
        column: &str,
        from: Option<&Json>,
        to: Option<&Json>,
    ) -> Result<Vec<Json>> {
        let entries = self.node.child("by_value")?.with(column)?;
        let bound = |given: Option<&Json>| match given {
            Some(value) => Ok(Bound::Included(identity("a bound", value)?)),
            None => Ok::<_, Error>(Bound::Unbounded),
        };
        let (from, to) = (bound(from)?, bound(to)?);
        look(session, |session| {
            let cursor = Cursor::children(&entries).without_empty().without_values();
            let mut cursor = cursor.between(from.as_ref(), to.as_ref())?;
            let mut found = Vec::new();
            while cursor.next(session)? {
                let value = entries.child(&cursor.subscript()?)?;
                found.extend(names(session, &value)?);
            }
            Ok(found)
        })
    }

    /// Deletes a row; false if it has no cell.
    ///
    /// # Errors
    /// The database's.
    pub fn delete(&self, session: &mut Session, row: &Json) -> Result<bool> {
        let row = identity("row", row)?;
        change(session, |session| {
            let by_row = self.node.child("by_row")?.with(&row)?;
            let columns = children(session, &by_row)?;
            for column in &columns {
                self.remove_cell(session, &row, &name(&by_row, column)?)?;
            }
            Ok(!columns.is_empty())
        })
    }

    /// All rows, in order.
    ///
    /// # Errors
    /// The database's.
    pub fn rows(&self, session: &mut Session) -> Result<Vec<Json>> {
        names(session, &self.node.child("by_row")?)
    }

    /// The names of all columns, in order.
    ///
    /// # Errors
    /// The database's.
    pub fn columns(&self, session: &mut Session) -> Result<Vec<Json>> {
        names(session, &self.node.child("cells")?)
    }

    /// Which entries are missing or too many, as texts; none if all agree.
    ///
    /// # Errors
    /// The database's.
    pub fn check(&self, session: &mut Session) -> Result<Vec<String>> {
        look(session, |session| {
            let cells = self.node.child("cells")?;
            let mut wanted = BTreeSet::new();
            for (cell, value) in session.get_tree(&cells)? {
                let path = cell.subscripts()?.split_off(cells.depth());
                let [column, row] = path.as_slice() else { return Ok(vec![format!("{cell} is no cell")]) };
                let (column, row) = (name(&cell, column)?, row.to_text());
                wanted.insert(self.node.child("by_row")?.with(row.as_ref())?.with(&column)?.to_string());
                let entry = self.entry(&row, &column, text(value.as_ref()))?;
                wanted.extend(entry.map(|entry| entry.to_string()));
            }
            let mut wrong = Vec::new();
            for index in ["by_row", "by_value"] {
                for (entry, _) in session.get_tree(&self.node.child(index)?)? {
                    let entry = entry.to_string();
                    if !wanted.remove(&entry) {
                        wrong.push(format!("{entry} is an entry of no cell"));
                    }
                }
            }
            wrong.extend(wanted.into_iter().map(|entry| format!("{entry} is missing")));
            Ok(wrong)
        })
    }

    fn cell(&self, row: &[u8], column: &str) -> Result<Node> {
        Ok(self.node.child("cells")?.with(column)?.with(row)?)
    }

    /// The entry by value of a cell; `None` for an empty value.
    fn entry(&self, row: &[u8], column: &str, value: Vec<u8>) -> Result<Option<Node>> {
        if value.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.node.child("by_value")?.with(column)?.with(&value)?.with(row)?))
    }

    fn remove_cell(&self, session: &mut Session, row: &[u8], column: &str) -> Result<()> {
        let cell = self.cell(row, column)?;
        let Some(value) = session.get_ref(&cell)?.map(text) else { return Ok(()) };
        if let Some(entry) = self.entry(row, column, value)? {
            session.delete_value(&entry)?;
        }
        session.delete_tree(&self.node.child("by_row")?.with(row)?.with(column)?)?;
        session.delete_tree(&cell)?;
        Ok(())
    }
}
