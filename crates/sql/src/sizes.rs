//! Bytes of tables and indexes: what RETURN SIZE and DESC answer.
//!
//! Bytes are those of keys and values as the tree has them, as `perilune stat` counts them: of a table all that lies in its global,
//! with documents; of an index its entries, and what is kept beside them.
//!
//! Invariant: bytes are counted, or none: of more nodes than [`MEASURED_NODES`] nobody waits for the sum.

use perilune::key::KeyBuf;
use perilune::{Cursor, NodeRef, Session, TreeSize, ValueRef as NodeValue};

use crate::error::Result;
use crate::ghost::is_ghost;
use crate::limits::MEASURED_NODES;
use crate::over::table_key;
use crate::row::{names_row, root_key};
use crate::schema::{Index, Table};

/// What a table takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Of its rows together; none: they are too many.
    pub(crate) table: Option<u64>,
    /// Of each index.
    pub(crate) indexes: Vec<Option<u64>>,
    pub(crate) rows: Option<u64>,
    /// How many rows are evicted.
    pub(crate) evicted: Option<u64>,
}

/// A number, or NULL.
pub(crate) fn literal(number: Option<u64>) -> String {
    number.map_or_else(|| "NULL".to_owned(), |number| number.to_string())
}

/// Counts what a table takes.
pub(crate) fn measure(session: &mut Session, table: &Table) -> Result<Sizes> {
    let mut left = MEASURED_NODES;
    let root = table_key(table)?;
    let mut sizes = Sizes { table: counted(session, &root, &mut left)?, ..Sizes::default() };
    for index in &table.indexes {
        sizes.indexes.push(index_bytes(session, table, index, &mut left)?);
    }
    if sizes.table.is_some() && table.over.is_none() {
        count_rows(session, table, &root, &mut sizes)?;
    }
    Ok(sizes)
}

fn index_bytes(session: &mut Session, table: &Table, index: &Index, left: &mut u64) -> Result<Option<u64>> {
    let mut bytes = counted(session, &root_key(&index.root)?, left)?;
    for usage in table.usage.iter().filter(|usage| index.columns.iter().any(|(it, _)| *it == usage.column)) {
        let kept = counted(session, &root_key(&usage.root)?, left)?;
        bytes = bytes.zip(kept).map(|(bytes, kept)| bytes + kept);
    }
    Ok(bytes)
}

/// The bytes of all that lies at this key and below, unless that are too many nodes.
fn counted(session: &mut Session, root: &KeyBuf, left: &mut u64) -> Result<Option<u64>> {
    let node = NodeRef::from_encoded(root.as_bytes(), false);
    let nodes = session.count_valued(node)?;
    if nodes > *left {
        return Ok(None);
    }
    *left -= nodes;
    Ok(Some(bytes_of(session.tree_size(node)?)))
}

/// Counts rows, and those that are evicted.
fn count_rows(session: &mut Session, table: &Table, root: &KeyBuf, sizes: &mut Sizes) -> Result<()> {
    let (mut rows, mut evicted) = (0, 0);
    let mut cursor = Cursor::subtree(NodeRef::from_encoded(root.as_bytes(), false));
    while cursor.next(session)? {
        let value = cursor.value()?;
        if !names_row(table, &cursor.node_ref()?.encoded()[root.as_bytes().len()..]) {
            continue;
        }
        rows += u64::from(matches!(value, Some(NodeValue::Record(_))));
        evicted += u64::from(is_ghost(table, value));
    }
    sizes.rows = Some(rows);
    sizes.evicted = table.evicts.then_some(evicted);
    Ok(())
}

/// The bytes of keys and values.
pub(crate) fn bytes_of(size: TreeSize) -> u64 {
    size.key_bytes + size.value_bytes
}
