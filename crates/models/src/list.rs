//! Lists: documents that are linked in an order.
//!
//! Invariants
//! - Numbers of elements come from `nextNodeNo` and are used once while the list lives; with its last element all of it goes.
//! - `firstNode`, `lastNode`, the links of both directions and `count` agree after every call. `check` tells where they do not:
//!   JSdb's own `insert_before` and `ltrim` leave such places, which these calls read over where they can.

use perilune::{Node, Session};

use crate::error::{change, look};
use crate::leaf::integer;
use crate::{Document, Error, Json, Result, Shape};

/// A list of documents below a node.
#[derive(Clone, Debug)]
pub struct List {
    node: Node,
    shape: Shape,
}

impl List {
    /// The list below `node`, whether or not there is one.
    #[must_use]
    pub fn at(node: Node, shape: Shape) -> List {
        List { node, shape }
    }

    /// Appends a document; answers its number.
    ///
    /// # Errors
    /// `NotAList` if something else lies there; else the database's.
    pub fn push_back(&self, session: &mut Session, json: &Json) -> Result<i64> {
        change(session, |session| {
            let last = self.link(session, "lastNode")?;
            self.insert(session, json, last, None)
        })
    }

    /// Puts a document before all others; answers its number.
    ///
    /// # Errors
    /// As [`List::push_back`].
    pub fn push_front(&self, session: &mut Session, json: &Json) -> Result<i64> {
        change(session, |session| {
            let first = self.link(session, "firstNode")?;
            self.insert(session, json, None, first)
        })
    }

    /// Puts a document before the one at `position`, counted from 0, or from -1 at the end; `None` if there is none.
    ///
    /// # Errors
    /// As [`List::push_back`].
    pub fn insert_before(&self, session: &mut Session, position: i64, json: &Json) -> Result<Option<i64>> {
        change(session, |session| {
            let Some(number) = self.number_at(session, position)? else { return Ok(None) };
            let before = self.previous(session, number)?;
            self.insert(session, json, before, Some(number)).map(Some)
        })
    }

    /// Takes the last document away; `None` if there is none.
    ///
    /// # Errors
    /// The database's, and those of reading it.
    pub fn pop_back(&self, session: &mut Session) -> Result<Option<Json>> {
        self.pop(session, "lastNode")
    }

    /// Takes the first document away; `None` if there is none.
    ///
    /// # Errors
    /// As [`List::pop_back`].
    pub fn pop_front(&self, session: &mut Session) -> Result<Option<Json>> {
        self.pop(session, "firstNode")
    }

    /// How many documents it has; 0 if there is no list.
    ///
    /// # Errors
    /// The database's.
    pub fn count(&self, session: &mut Session) -> Result<i64> {
        Ok(self.link(session, "count")?.unwrap_or(0))
    }

    /// The documents from `from` to `to`, which is included, both counted from 0, or from -1 at the end.
    ///
    /// # Errors
    /// The database's, and those of reading them.
    pub fn range(&self, session: &mut Session, from: i64, to: i64) -> Result<Vec<Json>> {
        look(session, |session| {
            let numbers = self.numbers(session)?;
            let mut found = Vec::new();
            for &number in &numbers[within(numbers.len(), from, to)] {
                found.push(self.content(session, number)?);
            }
            Ok(found)
        })
    }

    /// Keeps the documents from `from` to `to`, as [`List::range`] counts them; false if there is no list.
    ///
    /// # Errors
    /// The database's.
    pub fn trim(&self, session: &mut Session, from: i64, to: i64) -> Result<bool> {
        change(session, |session| {
            let numbers = self.numbers(session)?;
            if numbers.is_empty() {
                return Ok(false);
            }
            let range = within(numbers.len(), from, to);
            let kept = &numbers[range.clone()];
            let (Some(&first), Some(&last)) = (kept.first(), kept.last()) else {
                session.delete_tree(&self.node)?;
                return Ok(true);
            };
            for &number in numbers[..range.start].iter().chain(&numbers[range.end..]) {
                session.delete_tree(&self.element(number)?)?;
            }
            session.delete_value(&self.element(first)?.with("previousNode")?)?;
            session.delete_value(&self.element(last)?.with("nextNode")?)?;
            session.set(&self.node.child("firstNode")?, first)?;
            session.set(&self.node.child("lastNode")?, last)?;
            session.set(&self.node.child("count")?, kept.len())?;
            Ok(true)
        })
    }

    /// The number of the document at `position`, counted from 0, or from -1 at the end.
    ///
    /// # Errors
    /// The database's.
    pub fn find(&self, session: &mut Session, position: i64) -> Result<Option<i64>> {
        look(session, |session| self.number_at(session, position))
    }

    /// What contradicts the layout, as texts; none if the list is whole.
    ///
    /// # Errors
    /// The database's.
    pub fn check(&self, session: &mut Session) -> Result<Vec<String>> {
        look(session, |session| {
            let mut wrong = Vec::new();
            if !session.data(&self.node)?.has_descendants() {
                return Ok(wrong);
            }
            let numbers = match self.numbers(session) {
                Err(Error::Damaged(what)) => return Ok(vec![what]),
                other => other?,
            };
            let mut before = None;
            for &number in &numbers {
                let previous = self.link_of(session, number, "previousNode")?;
                if previous != before {
                    wrong.push(format!("element {number} has previousNode {previous:?}, not {before:?}"));
                }
                before = Some(number);
            }
            let (last, count) = (self.link(session, "lastNode")?, self.link(session, "count")?);
            let stored = session.count_children(&self.node.child("node")?)?;
            let next = self.link(session, "nextNodeNo")?.unwrap_or(0);
            if last != before {
                wrong.push(format!("lastNode is {last:?}, not {before:?}"));
            }
            if count != i64::try_from(numbers.len()).ok() || stored != numbers.len() as u64 {
                wrong.push(format!("count is {count:?}, {stored} are stored, {} linked", numbers.len()));
            }
            if numbers.iter().any(|&number| number > next) {
                wrong.push(format!("nextNodeNo {next} is below the number of an element"));
            }
            Ok(wrong)
        })
    }

    /// Puts a document between two neighbours.
    fn insert(
        &self,
        session: &mut Session,
        json: &Json,
        before: Option<i64>,
        after: Option<i64>,
    ) -> Result<i64> {
        if before.is_none() && after.is_none() && session.data(&self.node)?.has_descendants() {
            return Err(Error::NotAList(self.node.to_string()));
        }
        let counter = session.increment(&self.node.child("nextNodeNo")?, 1)?;
        let number =
            counter.as_i64().ok_or_else(|| Error::Damaged("nextNodeNo is no whole number".to_owned()))?;
        session.increment(&self.node.child("count")?, 1)?;
        let element = self.element(number)?;
        Document::at(element.child("content")?, self.shape).replace(session, json)?;
        match before {
            Some(before) => {
                session.set(&element.child("previousNode")?, before)?;
                session.set(&self.element(before)?.with("nextNode")?, number)?;
            }
            None => session.set(&self.node.child("firstNode")?, number)?,
        }
        match after {
            Some(after) => {
                session.set(&element.child("nextNode")?, after)?;
                session.set(&self.element(after)?.with("previousNode")?, number)?;
            }
            None => session.set(&self.node.child("lastNode")?, number)?,
        }
        Ok(number)
    }

    fn pop(&self, session: &mut Session, end: &str) -> Result<Option<Json>> {
        change(session, |session| {
            let Some(number) = self.link(session, end)? else { return Ok(None) };
            let content = self.content(session, number)?;
            let is_last = end == "lastNode";
            let neighbour = match is_last {
                true => self.previous(session, number)?,
                false => self.link_of(session, number, "nextNode")?,
            };
            match neighbour {
                None => session.delete_tree(&self.node)?,
                Some(neighbour) => {
                    session.delete_tree(&self.element(number)?)?;
                    let link = if is_last { "nextNode" } else { "previousNode" };
                    session.delete_value(&self.element(neighbour)?.with(link)?)?;
                    session.set(&self.node.child(end)?, neighbour)?;
                    session.increment(&self.node.child("count")?, -1)?;
                }
            }
            Ok(Some(content))
        })
    }

    /// The element before `number`. What JSdb has inserted lacks that link: then it is looked for from the beginning.
    fn previous(&self, session: &mut Session, number: i64) -> Result<Option<i64>> {
        if let Some(previous) = self.link_of(session, number, "previousNode")? {
            return Ok(Some(previous));
        }
        if self.link(session, "firstNode")? == Some(number) {
            return Ok(None);
        }
        let numbers = self.numbers(session)?;
        let at = numbers.iter().position(|&other| other == number);
        Ok(at.and_then(|at| at.checked_sub(1)).map(|before| numbers[before]))
    }

    fn number_at(&self, session: &mut Session, position: i64) -> Result<Option<i64>> {
        let numbers = self.numbers(session)?;
        let index = if position < 0 { position + numbers.len() as i64 } else { position };
        Ok(usize::try_from(index).ok().and_then(|index| numbers.get(index).copied()))
    }

    /// The numbers of all elements, in order.
    fn numbers(&self, session: &mut Session) -> Result<Vec<i64>> {
        let mut numbers = Vec::new();
        let most = session.count_children(&self.node.child("node")?)?;
        let last = self.link(session, "lastNode")?;
        let mut at = self.link(session, "firstNode")?;
        while let Some(number) = at {
            if numbers.len() as u64 >= most {
                return Err(Error::Damaged(format!("the links of the list {} lead in a circle", self.node)));
            }
            numbers.push(number);
            at = match last == Some(number) {
                true => None,
                false => self.link_of(session, number, "nextNode")?,
            };
        }
        Ok(numbers)
    }

    fn content(&self, session: &mut Session, number: i64) -> Result<Json> {
        let content = Document::at(self.element(number)?.with("content")?, self.shape).fetch(session)?;
        Ok(content.unwrap_or_else(|| Json::Object(serde_json::Map::new())))
    }

    fn element(&self, number: i64) -> Result<Node> {
        Ok(self.node.child("node")?.with(number)?)
    }

    fn link_of(&self, session: &mut Session, number: i64, which: &str) -> Result<Option<i64>> {
        read_link(session, &self.element(number)?.with(which)?)
    }

    fn link(&self, session: &mut Session, which: &str) -> Result<Option<i64>> {
        read_link(session, &self.node.child(which)?)
    }
}

fn read_link(session: &mut Session, node: &Node) -> Result<Option<i64>> {
    match session.get_ref(node)? {
        None => Ok(None),
        Some(value) => match integer(value) {
            Some(number) => Ok(Some(number)),
            None if crate::leaf::text(value).is_empty() => Ok(None),
            None => Err(Error::Damaged(format!("{node} is no whole number"))),
        },
    }
}

/// The indices from `from` to `to`, as Redis counts them.
fn within(count: usize, from: i64, to: i64) -> std::ops::Range<usize> {
    let count = count as i64;
    let index = |position: i64| if position < 0 { position.saturating_add(count) } else { position };
    let from = index(from).clamp(0, count);
    let end = index(to).saturating_add(1).clamp(from, count);
    from as usize..end as usize
}
