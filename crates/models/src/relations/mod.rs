//! Relations: tables of rows with keys, and the links between the rows of a table and those of the table above it.
//!
//! Problem: rows of one table belong to a row of another, as items to an order. Idea: each row says its row above and has the
//! rows below, so that a join is a walk. All tables lie beside the node of the relations, as globals of their own if that is
//! a global: beside `^DATABASE` the table CUSTOMER is `^CUSTOMER`.
//!
//! Layout, k being the values of the keys that a table has: `T(k,"fields",field) = value`;
//! `T(k,"subTable",child,"key:" and the names of its keys,those of its keys that T has not) = ""`;
//! `T(k,"parentTable",parent,"key:" and the names of its keys,those of its keys that T has not) = ""`. Tables are known by
//! `DATABASE("table",T,"keys",n) = key`, `(...,"parent") = table`; those without one by `DATABASE("subTable",T,"key:...") = ""`.
//!
//! Invariants
//! - A row has a link to the row above exactly if that has one to it; `check` tells where that is not so.
//! - No row is deleted while rows below it are there, unless they go with it.

mod table;

use perilune::{Node, Session};

use self::table::{values, Table};
use crate::error::{change, look};
use crate::fields::{children, exists, fields, identity, merge, shown_subscript, Fields};
use crate::leaf::{name, text};
use crate::{Error, Json, Result};

/// Tables beside a node.
#[derive(Clone, Debug)]
pub struct Relations {
    node: Node,
}

/// A link between a row and the one above, from either side.
struct Link {
    of_child: Node,
    of_parent: Node,
    parent_row: Node,
}

impl Relations {
    /// The relations of `node`, whether or not there are any.
    #[must_use]
    pub fn at(node: Node) -> Relations {
        Relations { node }
    }

    /// Makes a table known, with the names of its keys and the table whose rows its rows belong to.
    ///
    /// # Errors
    /// `Call` without keys, for a parent that is not known, and for a table that is known with others.
    pub fn table(
        &self,
        session: &mut Session,
        table: &str,
        keys: &[&str],
        parent: Option<&str>,
    ) -> Result<()> {
        if keys.is_empty() || keys.iter().any(|key| key.is_empty() || key.contains(',')) {
            return Err(Error::Call(format!("the table {table:?} needs names of keys, without commas")));
        }
        change(session, |session| {
            if let Some(known) = self.find(session, table)? {
                let is_known = known.keys == keys && known.parent.as_deref() == parent;
                return match is_known {
                    true => Ok(()),
                    false => {
                        Err(Error::Call(format!("the table {table:?} is there with other keys or parent")))
                    }
                };
            }
            let definition = self.node.child("table")?.with(table)?;
            for (at, &key) in (1_i64..).zip(keys) {
                session.set(&definition.child("keys")?.with(at)?, key)?;
            }
            match parent {
                Some(parent) => {
                    self.known(session, parent)?;
                    session.set(&definition.child("parent")?, parent)?;
                }
                None => {
                    let master = self.node.child("subTable")?.with(table)?;
                    session.set(&master.with(format!("key:{}", keys.join(",")))?, "")?;
                }
            }
            Ok(())
        })
    }

    /// Adds a row, keys among its fields, and links it to the row above; false if it is there. A row that lacks a key of the
    /// table above belongs to none.
    ///
    /// # Errors
    /// `Call` for an unknown table, a missing key, a field that is no scalar, and if there is no row above with those keys.
    pub fn insert(&self, session: &mut Session, table: &str, row: &Fields) -> Result<bool> {
        change(session, |session| {
            let table = self.known(session, table)?;
            let node = table.row(&values(&table.keys, row)?)?;
            if exists(session, &node)? {
                return Ok(false);
            }
            self.write(session, &table, &node, row)?;
            Ok(true)
        })
    }

    /// Changes fields of a row, null deleting one; the link follows. False if there is no such row.
    ///
    /// # Errors
    /// `Call` for a change of a key; else as [`Relations::insert`].
    pub fn update(
        &self,
        session: &mut Session,
        table: &str,
        keys: &[Json],
        changes: &Fields,
    ) -> Result<bool> {
        change(session, |session| {
            let table = self.known(session, table)?;
            let node = table.row_at(keys)?;
            let Some(mut row) = self.read(session, &table, &node)? else { return Ok(false) };
            if let Some(key) =
                table.keys.iter().find(|&key| changes.get(key).is_some_and(|to| row.get(key) != Some(to)))
            {
                return Err(Error::Call(format!(
                    "{key:?} is a key, which stays: insert a row, and delete this"
                )));
            }
            self.unlink(session, &table, &node, &row)?;
            row.extend(changes.iter().map(|(name, json)| (name.clone(), json.clone())));
            self.write(session, &table, &node, &row)?;
            Ok(true)
        })
    }

    /// The row with those keys, they among its fields.
    ///
    /// # Errors
    /// `Call` for an unknown table and for another number of keys; else the database's.
    pub fn get(&self, session: &mut Session, table: &str, keys: &[Json]) -> Result<Option<Fields>> {
        look(session, |session| {
            let table = self.known(session, table)?;
            let node = table.row_at(keys)?;
            self.read(session, &table, &node)
        })
    }

    /// All rows of a table whose first keys are those, in the order of keys.
    ///
    /// # Errors
    /// As [`Relations::get`].
    pub fn rows(&self, session: &mut Session, table: &str, keys: &[Json]) -> Result<Vec<Fields>> {
        look(session, |session| {
            let table = self.known(session, table)?;
            let given = table.texts(keys)?;
            self.rows_below(session, &table, &table.row(&given)?, table.keys.len() - given.len())
        })
    }

    /// The rows of the table `child` that belong to a row, in the order of keys.
    ///
    /// # Errors
    /// As [`Relations::get`]; `Call` if `child` is no table below it.
    pub fn children(
        &self,
        session: &mut Session,
        table: &str,
        keys: &[Json],
        child: &str,
    ) -> Result<Vec<Fields>> {
        look(session, |session| {
            let (table, child) = (self.known(session, table)?, self.known(session, child)?);
            if child.parent.as_ref() != Some(&table.name) {
                return Err(Error::Call(format!("the table {:?} is not below {:?}", child.name, table.name)));
            }
            let row = table.row_at(keys)?;
            let mut found = Vec::new();
            for node in self.children_of(session, &table, &row, &child)? {
                found.extend(self.read(session, &child, &node)?);
            }
            Ok(found)
        })
    }

    /// The row that a row belongs to; `None` if there is none.
    ///
    /// # Errors
    /// As [`Relations::get`].
    pub fn parent(&self, session: &mut Session, table: &str, keys: &[Json]) -> Result<Option<Fields>> {
        look(session, |session| {
            let table = self.known(session, table)?;
            let node = table.row_at(keys)?;
            let Some(row) = self.read(session, &table, &node)? else { return Ok(None) };
            let (Some(link), Some(parent)) = (self.link(session, &table, &node, &row)?, &table.parent) else {
                return Ok(None);
            };
            let parent = self.known(session, parent)?;
            self.read(session, &parent, &link.parent_row)
        })
    }

    /// Deletes a row, and if `cascade` the rows below it with theirs; false if there is none.
    ///
    /// # Errors
    /// `Call` if rows are below it and `cascade` is false; else as [`Relations::get`].
    pub fn delete(&self, session: &mut Session, table: &str, keys: &[Json], cascade: bool) -> Result<bool> {
        change(session, |session| {
            let table = self.known(session, table)?;
            let mut rest = vec![(table.row_at(keys)?, table)];
            let is_there = exists(session, &rest[0].0)?;
            while let Some((node, table)) = rest.pop() {
                let Some(row) = self.read(session, &table, &node)? else { continue };
                for child in children(session, &node.child("subTable")?)? {
                    let child = self.known(session, &name(&node, &child)?)?;
                    let below = self.children_of(session, &table, &node, &child)?;
                    if !cascade && !below.is_empty() {
                        return Err(Error::Call(format!(
                            "{node} has rows of {}: delete them first",
                            child.name
                        )));
                    }
                    for node in below {
                        rest.push((node, self.known(session, &child.name)?));
                    }
                }
                self.unlink(session, &table, &node, &row)?;
                session.delete_tree(&node)?;
            }
            Ok(is_there)
        })
    }

    /// Links that lead from one side alone, as texts; none if all agree.
    ///
    /// # Errors
    /// The database's.
    pub fn check(&self, session: &mut Session) -> Result<Vec<String>> {
        look(session, |session| {
            let mut wrong = Vec::new();
            for table in self.tables(session)? {
                for row in self.rows_below(session, &table, &table.node, table.keys.len())? {
                    let node = table.row(&values(&table.keys, &row)?)?;
                    if let Some(link) = self.link(session, &table, &node, &row)? {
                        for end in [&link.of_child, &link.of_parent, &link.parent_row] {
                            if !exists(session, end)? {
                                wrong.push(format!(
                                    "{node} belongs to {}, but {end} is missing",
                                    link.parent_row
                                ));
                            }
                        }
                    }
                    for child in children(session, &node.child("subTable")?)? {
                        let child = self.known(session, &name(&node, &child)?)?;
                        for below in self.children_of(session, &table, &node, &child)? {
                            if !exists(session, &below)? {
                                wrong.push(format!("{node} has {below}, which is missing"));
                            }
                        }
                    }
                }
            }
            Ok(wrong)
        })
    }

    fn find(&self, session: &mut Session, table: &str) -> Result<Option<Table>> {
        let definition = self.node.child("table")?.with(table)?;
        let mut keys = Vec::new();
        for (_, value) in session.get_tree(&definition.child("keys")?)? {
            keys.push(String::from_utf8_lossy(&text(value.as_ref())).into_owned());
        }
        if keys.is_empty() {
            return Ok(None);
        }
        let parent = session.get_ref(&definition.child("parent")?)?.map(text);
        let parent = parent.map(|parent| String::from_utf8_lossy(&parent).into_owned());
        let node = match self.node.parent() {
            Some(above) => above.child(table)?,
            None if self.node.is_local() => Node::new(table)?,
            None => Node::new(&format!("^{table}"))?,
        };
        Ok(Some(Table { name: table.to_owned(), node, keys, parent }))
    }

    fn known(&self, session: &mut Session, table: &str) -> Result<Table> {
        let unknown = || Error::Call(format!("there is no table {table:?}: relations.table makes one known"));
        self.find(session, table)?.ok_or_else(unknown)
    }

    fn tables(&self, session: &mut Session) -> Result<Vec<Table>> {
        let node = self.node.child("table")?;
        let mut tables = Vec::new();
        for table in children(session, &node)? {
            tables.push(self.known(session, &name(&node, &table)?)?);
        }
        Ok(tables)
    }

    /// A row with its keys; `None` if it is not there.
    fn read(&self, session: &mut Session, table: &Table, node: &Node) -> Result<Option<Fields>> {
        let Some(mut row) = fields(session, &node.child("fields")?)? else { return Ok(None) };
        let path = node.subscripts()?.split_off(table.node.depth());
        for (key, value) in table.keys.iter().zip(&path) {
            row.insert(key.clone(), shown_subscript(node, value)?);
        }
        Ok(Some(row))
    }

    /// Stores the fields of a row that are no keys, and links it.
    fn write(&self, session: &mut Session, table: &Table, node: &Node, row: &Fields) -> Result<()> {
        let own = |(name, _): &(&String, &Json)| !table.keys.contains(*name);
        let stored = row.iter().filter(own).map(|(name, json)| (name.clone(), json.clone())).collect();
        merge(session, &node.child("fields")?, &stored)?;
        if let Some(link) = self.link(session, table, node, row)? {
            if !exists(session, &link.parent_row.child("fields")?)? {
                return Err(Error::Call(format!("there is no row {}: insert it first", link.parent_row)));
            }
            session.set(&link.of_child, "")?;
            session.set(&link.of_parent, "")?;
        }
        Ok(())
    }

    fn unlink(&self, session: &mut Session, table: &Table, node: &Node, row: &Fields) -> Result<()> {
        if let Some(link) = self.link(session, table, node, row)? {
            session.delete_value(&link.of_child)?;
            session.delete_value(&link.of_parent)?;
        }
        Ok(())
    }

    /// Where a row and the one above say that they belong together; `None` if the row belongs to none.
    fn link(&self, session: &mut Session, table: &Table, node: &Node, row: &Fields) -> Result<Option<Link>> {
        let Some(parent) = &table.parent else { return Ok(None) };
        let parent = self.known(session, parent)?;
        if parent.keys.iter().any(|key| row.get(key).is_none_or(Json::is_null)) {
            return Ok(None);
        }
        let parent_row = parent.row(&values(&parent.keys, row)?)?;
        let mut of_parent = parent_row.child("subTable")?.with(&table.name)?.with(table.label())?;
        for key in table.keys.iter().filter(|key| !parent.keys.contains(key)) {
            of_parent.push(&identity(key, &row[key])?)?;
        }
        let mut of_child = node.child("parentTable")?.with(&parent.name)?.with(parent.label())?;
        for key in parent.keys.iter().filter(|key| !table.keys.contains(key)) {
            of_child.push(&identity(key, &row[key])?)?;
        }
        Ok(Some(Link { of_child, of_parent, parent_row }))
    }

    /// The nodes of the rows of `child` that belong to `row`.
    fn children_of(
        &self,
        session: &mut Session,
        table: &Table,
        row: &Node,
        child: &Table,
    ) -> Result<Vec<Node>> {
        let links = row.child("subTable")?.with(&child.name)?.with(child.label())?;
        let above = row.subscripts()?.split_off(table.node.depth());
        let mut found = Vec::new();
        for (link, _) in session.get_tree(&links)? {
            let mut own = link.subscripts()?.split_off(links.depth()).into_iter();
            let mut node = child.node.clone();
            for key in &child.keys {
                match table.keys.iter().position(|other| other == key) {
                    Some(at) => node.push(&above[at])?,
                    None => match own.next() {
                        Some(subscript) => node.push(&subscript)?,
                        None => return Err(Error::Damaged(format!("{link} has too few subscripts"))),
                    },
                }
            }
            found.push(node);
        }
        Ok(found)
    }

    fn rows_below(
        &self,
        session: &mut Session,
        table: &Table,
        at: &Node,
        levels: usize,
    ) -> Result<Vec<Fields>> {
        if levels == 0 {
            return Ok(self.read(session, table, at)?.into_iter().collect());
        }
        let mut rows = Vec::new();
        for key in children(session, at)? {
            rows.extend(self.rows_below(session, table, &at.child(&key)?, levels - 1)?);
        }
        Ok(rows)
    }
}
