//! All nodes of a document, read in one walk: for whoever will look at most of them.
//!
//! Problem: a search for each of a hundred thousand nodes costs several times what it takes to read them where they lie. Idea:
//! they lie side by side, by number, so one cursor meets the fields of all of them.

use perilune::{Cursor, Session};

use crate::record::Reading;
use crate::{Dom, DomError, DomNode, Record, Result};

/// All nodes of a document, ascending.
pub(crate) struct Whole {
    records: Vec<(DomNode, Record)>,
}

impl Whole {
    /// What is stored of `node`.
    pub(crate) fn record(&self, node: DomNode) -> Result<&Record> {
        // A document that nobody has deleted from has node n at place n - 1.
        let guess = usize::try_from(node.0 - 1).ok().and_then(|place| self.records.get(place));
        if let Some((_, record)) = guess.filter(|(known, _)| *known == node) {
            return Ok(record);
        }
        match self.records.binary_search_by_key(&node, |(known, _)| *known) {
            Ok(place) => Ok(&self.records[place].1),
            Err(_) => Err(DomError::NotFound(node)),
        }
    }

    /// All of them.
    pub(crate) fn into_records(self) -> Vec<(DomNode, Record)> {
        self.records
    }
}

impl Dom {
    /// Reads all nodes. Whoever needs them of one moment calls it inside a transaction.
    pub(crate) fn whole(&self, session: &mut Session) -> Result<Whole> {
        let nodes = self.nodes()?;
        let above = nodes.encoded().len();
        let mut cursor = Cursor::subtree(&nodes);
        let mut records = Vec::new();
        let mut reading: Option<(DomNode, Reading)> = None;
        let mut end = |reading: Option<(DomNode, Reading)>| -> Result<()> {
            let Some((node, reading)) = reading else { return Ok(()) };
            let found = reading.end();
            let record =
                found.ok_or_else(|| DomError::Damaged(format!("node {} has no nodeType", node.0)))?;
            records.push((node, record));
            Ok(())
        };
        while cursor.next(session)? {
            let entry = cursor.node_ref()?;
            let rest = entry.encoded().get(above..).unwrap_or_default();
            if rest.is_empty() {
                continue;
            }
            let (number, length) = perilune::key::decode_subscript(rest).map_err(perilune::Error::from)?;
            let number = number.as_i64();
            let node =
                DomNode(number.ok_or_else(|| {
                    DomError::Damaged(format!("{} has a node without a number", self.root()))
                })?);
            if reading.as_ref().is_none_or(|(known, _)| *known != node) {
                end(reading.replace((node, Reading::default())))?;
            }
            if let (Some((_, reading)), Some(value)) = (&mut reading, cursor.value()?) {
                reading.take(&rest[length..], value)?;
            }
        }
        end(reading)?;
        Ok(Whole { records })
    }
}
