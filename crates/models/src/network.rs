//! Networks: nodes and edges with properties, in the layout of the literature on globals. `perilune.graph` has another one,
//! with walks, paths and SQL; this is for data that lies so already.
//!
//! Layout: `G("node",id,"properties",p) = value`; `G("node",id,"edge_to",edge) = ""` of edges that leave it, `"edge_from"` of
//! those that come in; `G("edge",id,"from_node" | "to_node" | "type")`, `("properties",p)`; `G("edge_type",type,edge) = ""`;
//! `G("node_counter")`, `G("edge_counter")`.
//!
//! Invariants
//! - An edge, its two nodes and its type name each other after every call; `check` tells where they do not.

use perilune::{Node, Session};

use crate::error::{change, look};
use crate::fields::{children, exists, field, fields, fresh, identity, merge, names, raise, Fields};
use crate::{Error, Json, Result};

/// A network below a node.
#[derive(Clone, Debug)]
pub struct Network {
    node: Node,
}

/// An edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// Its type.
    pub kind: String,
    /// The node that it leaves.
    pub from: Json,
    /// The node that it comes to.
    pub to: Json,
    /// Its properties.
    pub properties: Fields,
}

/// Which edges of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Those that leave it.
    Out,
    /// Those that come in.
    In,
    /// All.
    Both,
}

impl Network {
    /// The network below `node`, whether or not there is one.
    #[must_use]
    pub fn at(node: Node) -> Network {
        Network { node }
    }

    /// Adds a node under that id, or under the next number; its id.
    ///
    /// # Errors
    /// `Call` for an id that is taken and for a property that is no scalar; else the database's.
    pub fn add_node(&self, session: &mut Session, properties: &Fields, id: Option<&Json>) -> Result<Json> {
        change(session, |session| {
            let id = self.new_id(session, "node", id)?;
            merge(session, &self.part("node", &id)?.with("properties")?, properties)?;
            Ok(id)
        })
    }

    /// Adds an edge under that id, or under the next number; its id.
    ///
    /// # Errors
    /// `Call` if one of its nodes is not there; else as [`Network::add_node`].
    pub fn add_edge(&self, session: &mut Session, edge: &Edge, id: Option<&Json>) -> Result<Json> {
        change(session, |session| {
            let (from, to) = (self.existing(session, &edge.from)?, self.existing(session, &edge.to)?);
            let id = self.new_id(session, "edge", id)?;
            let text = identity("id", &id)?;
            let node = self.part("edge", &id)?;
            session.set(&node.child("from_node")?, &subscript_value(&from)?)?;
            session.set(&node.child("to_node")?, &subscript_value(&to)?)?;
            session.set(&node.child("type")?, edge.kind.as_str())?;
            if !edge.properties.is_empty() {
                merge(session, &node.child("properties")?, &edge.properties)?;
            }
            session.set(&from.child("edge_to")?.with(&text)?, "")?;
            session.set(&to.child("edge_from")?.with(&text)?, "")?;
            let kind = identity("type", &Json::from(edge.kind.as_str()))?;
            session.set(&self.node.child("edge_type")?.with(&kind)?.with(&text)?, "")?;
            Ok(id)
        })
    }

    /// The properties of a node; `None` if it is not there.
    ///
    /// # Errors
    /// The database's.
    pub fn get_node(&self, session: &mut Session, id: &Json) -> Result<Option<Fields>> {
        let node = self.part("node", id)?;
        look(session, |session| match exists(session, &node)? {
            true => Ok(Some(fields(session, &node.child("properties")?)?.unwrap_or_default())),
            false => Ok(None),
        })
    }

    /// An edge; `None` if it is not there.
    ///
    /// # Errors
    /// The database's.
    pub fn get_edge(&self, session: &mut Session, id: &Json) -> Result<Option<Edge>> {
        look(session, |session| self.read_edge(session, id))
    }

    /// Changes properties of a node, null deleting one; false if it is not there.
    ///
    /// # Errors
    /// `Call` for a property that is no scalar; else the database's.
    pub fn edit_node(&self, session: &mut Session, id: &Json, changes: &Fields) -> Result<bool> {
        self.edit(session, "node", id, changes)
    }

    /// Changes properties of an edge, null deleting one; false if it is not there.
    ///
    /// # Errors
    /// As [`Network::edit_node`].
    pub fn edit_edge(&self, session: &mut Session, id: &Json, changes: &Fields) -> Result<bool> {
        self.edit(session, "edge", id, changes)
    }

    /// Deletes a node with its edges; false if it is not there.
    ///
    /// # Errors
    /// The database's.
    pub fn delete_node(&self, session: &mut Session, id: &Json) -> Result<bool> {
        let node = self.part("node", id)?;
        change(session, |session| {
            if !exists(session, &node)? {
                return Ok(false);
            }
            for edge in self.edges_at(session, id, Direction::Both)? {
                self.remove_edge(session, &edge)?;
            }
            session.delete_tree(&node)?;
            Ok(true)
        })
    }

    /// Deletes an edge; false if it is not there.
    ///
    /// # Errors
    /// The database's.
    pub fn delete_edge(&self, session: &mut Session, id: &Json) -> Result<bool> {
        change(session, |session| self.remove_edge(session, id))
    }

    /// The edges of a type, in order.
    ///
    /// # Errors
    /// The database's.
    pub fn edges(&self, session: &mut Session, kind: &str) -> Result<Vec<Json>> {
        let kind = identity("type", &Json::from(kind))?;
        names(session, &self.node.child("edge_type")?.with(&kind)?)
    }

    /// The edges of a node, of one type or all.
    ///
    /// # Errors
    /// The database's.
    pub fn edges_of(
        &self,
        session: &mut Session,
        id: &Json,
        direction: Direction,
        kind: Option<&str>,
    ) -> Result<Vec<Json>> {
        look(session, |session| {
            let mut edges = self.edges_at(session, id, direction)?;
            let Some(kind) = kind else { return Ok(edges) };
            let mut kept = Vec::new();
            for edge in edges.drain(..) {
                if self.read_edge(session, &edge)?.is_some_and(|edge| edge.kind == kind) {
                    kept.push(edge);
                }
            }
            Ok(kept)
        })
    }

    /// The nodes at the other ends of those edges, each once, in the order of the edges.
    ///
    /// # Errors
    /// The database's.
    pub fn neighbours(
        &self,
        session: &mut Session,
        id: &Json,
        direction: Direction,
        kind: Option<&str>,
    ) -> Result<Vec<Json>> {
        let own = identity("id", id)?;
        look(session, |session| {
            let mut seen = std::collections::HashSet::new();
            let mut found = Vec::new();
            for edge in self.edges_at(session, id, direction)? {
                let Some(edge) = self.read_edge(session, &edge)? else { continue };
                let is_out = identity("from_node", &edge.from)? == own && direction != Direction::In;
                let other = if is_out { edge.to } else { edge.from };
                if kind.is_none_or(|kind| kind == edge.kind) && seen.insert(other.to_string()) {
                    found.push(other);
                }
            }
            Ok(found)
        })
    }

    /// Edges that are not named on all sides, as texts; none if all agree.
    ///
    /// # Errors
    /// The database's.
    pub fn check(&self, session: &mut Session) -> Result<Vec<String>> {
        look(session, |session| {
            let mut wrong = Vec::new();
            let mut named = 0_usize;
            let edges = names(session, &self.node.child("edge")?)?;
            for id in &edges {
                let Some(edge) = self.read_edge(session, id)? else {
                    wrong.push(format!("edge {id} lacks a node or its type"));
                    continue;
                };
                for entry in self.entries(id, &edge)? {
                    match exists(session, &entry)? {
                        true => named += 1,
                        false => wrong.push(format!("{entry} is missing")),
                    }
                }
            }
            let mut stored = 0;
            for id in children(session, &self.node.child("node")?)? {
                let node = self.node.child("node")?.with(&id)?;
                stored += session.count_children(&node.child("edge_to")?)?;
                stored += session.count_children(&node.child("edge_from")?)?;
            }
            for kind in children(session, &self.node.child("edge_type")?)? {
                stored += session.count_children(&self.node.child("edge_type")?.with(&kind)?)?;
            }
            if stored != named as u64 {
                wrong.push(format!("{stored} entries name edges, of which {named} are right"));
            }
            Ok(wrong)
        })
    }

    fn part(&self, which: &str, id: &Json) -> Result<Node> {
        Ok(self.node.child(which)?.with(&identity("id", id)?)?)
    }

    fn existing(&self, session: &mut Session, id: &Json) -> Result<Node> {
        let node = self.part("node", id)?;
        match exists(session, &node)? {
            true => Ok(node),
            false => Err(Error::Call(format!("there is no node {id}: add it before its edges"))),
        }
    }

    fn new_id(&self, session: &mut Session, which: &str, id: Option<&Json>) -> Result<Json> {
        let counter = self.node.child(format!("{which}_counter"))?;
        let Some(id) = id else {
            return fresh(session, &counter, &self.node.child(which)?).map(Json::from);
        };
        if exists(session, &self.part(which, id)?)? {
            return Err(Error::Call(format!("there is a {which} {id} already")));
        }
        raise(session, &counter, &identity("id", id)?)?;
        Ok(id.clone())
    }

    fn read_edge(&self, session: &mut Session, id: &Json) -> Result<Option<Edge>> {
        let node = self.part("edge", id)?;
        let (from, to) =
            (field(session, &node.child("from_node")?)?, field(session, &node.child("to_node")?)?);
        let kind = session.get_ref(&node.child("type")?)?.map(crate::leaf::text);
        let (Some(from), Some(to), Some(kind)) = (from, to, kind) else { return Ok(None) };
        let properties = fields(session, &node.child("properties")?)?.unwrap_or_default();
        Ok(Some(Edge { kind: String::from_utf8_lossy(&kind).into_owned(), from, to, properties }))
    }

    /// The three places that name an edge.
    fn entries(&self, id: &Json, edge: &Edge) -> Result<[Node; 3]> {
        let text = identity("id", id)?;
        let kind = identity("type", &Json::from(edge.kind.as_str()))?;
        Ok([
            self.part("node", &edge.from)?.with("edge_to")?.with(&text)?,
            self.part("node", &edge.to)?.with("edge_from")?.with(&text)?,
            self.node.child("edge_type")?.with(&kind)?.with(&text)?,
        ])
    }

    fn remove_edge(&self, session: &mut Session, id: &Json) -> Result<bool> {
        let node = self.part("edge", id)?;
        if let Some(edge) = self.read_edge(session, id)? {
            for entry in self.entries(id, &edge)? {
                session.delete_value(&entry)?;
            }
        }
        let is_there = exists(session, &node)?;
        session.delete_tree(&node)?;
        Ok(is_there)
    }

    fn edges_at(&self, session: &mut Session, id: &Json, direction: Direction) -> Result<Vec<Json>> {
        let node = self.part("node", id)?;
        let mut edges = Vec::new();
        if direction != Direction::In {
            edges.extend(names(session, &node.child("edge_to")?)?);
        }
        if direction != Direction::Out {
            edges.extend(names(session, &node.child("edge_from")?)?);
        }
        Ok(edges)
    }

    fn edit(&self, session: &mut Session, which: &str, id: &Json, changes: &Fields) -> Result<bool> {
        let node = self.part(which, id)?;
        change(session, |session| {
            if !exists(session, &node)? {
                return Ok(false);
            }
            merge(session, &node.child("properties")?, changes)?;
            Ok(true)
        })
    }
}

/// The last subscript of a node as a value.
fn subscript_value(node: &Node) -> Result<perilune::Value> {
    let subscript = node.last()?.ok_or_else(|| Error::Damaged(format!("{node} has no subscript")))?;
    Ok(match subscript.as_i64() {
        Some(integer) => perilune::Value::Int(integer),
        None => perilune::Value::String(subscript.to_text().into_owned()),
    })
}
