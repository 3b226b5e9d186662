//! The edges at a vertex: the scan that every walk is made of.
//!
//! `^g("out",source,type,target,id)` and `^g("in",target,type,source,id)` hold the weight of an edge, or null. Their keys say
//! all else, so a scan below `^g("out",source)` or below one type of it is the expansion of a vertex.
//!
//! Invariant: of a loop only the entry of "out" is told where both directions are asked for.

use std::sync::Arc;

use perilune::key::decode_subscript;
use perilune::{Cursor, Node, Session, Subscript};

use crate::edge::weight_of;
use crate::{Direction, Edge, Error, Graph, Reach, Result, VertexId};

/// What is shown an edge.
pub(crate) type Visit<'v> = dyn FnMut(Edge) -> Result<()> + 'v;

impl Graph {
    /// The edges of `vertex` that `reach` means: those that leave it before those that come, each by type, other end and id.
    /// A vertex that does not exist has none.
    ///
    /// # Errors
    /// The database's.
    pub fn edges(&self, session: &mut Session, vertex: &VertexId, reach: &Reach) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        self.read_edges(session, vertex, reach, &mut |edge| {
            edges.push(edge);
            Ok(())
        })?;
        Ok(edges)
    }

    /// [`Graph::edges`], shown one by one until `visit` answers an error.
    pub(crate) fn read_edges(
        &self,
        session: &mut Session,
        vertex: &VertexId,
        reach: &Reach,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let is_both = reach.direction == Direction::Both;
        if reach.direction.goes_out() {
            self.read_side(session, vertex, &self.out, reach, visit)?;
        }
        if reach.direction.goes_in() {
            self.read_side(session, vertex, &self.inward, reach, &mut |edge| {
                if is_both && edge.source == edge.target {
                    return Ok(());
                }
                visit(edge)
            })?;
        }
        Ok(())
    }

    /// Shows `visit` the other end of each edge of `vertex` that `reach` means, as often as there are edges, until it answers an
    /// error. It reads keys alone: neither weights nor types.
    pub(crate) fn read_neighbours(
        &self,
        session: &mut Session,
        vertex: &VertexId,
        reach: &Reach,
        visit: &mut dyn FnMut(VertexId) -> Result<()>,
    ) -> Result<()> {
        let sides = [(reach.direction.goes_out(), &self.out), (reach.direction.goes_in(), &self.inward)];
        for (_, side) in sides.into_iter().filter(|(is_asked, _)| *is_asked) {
            let place = side.child(vertex)?;
            if reach.kinds.is_empty() {
                read_ends(session, &place, 1, visit)?;
            }
            for kind in &reach.kinds {
                read_ends(session, &place.child(&**kind)?, 0, visit)?;
            }
        }
        Ok(())
    }

    fn read_side(
        &self,
        session: &mut Session,
        vertex: &VertexId,
        side: &Node,
        reach: &Reach,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let place = side.child(vertex)?;
        if reach.kinds.is_empty() {
            return self.read_below(session, vertex, side, &place, &place, visit);
        }
        for kind in &reach.kinds {
            let typed = place.child(&**kind)?;
            self.read_below(session, vertex, side, &place, &typed, visit)?;
        }
        Ok(())
    }

    /// Reads the entries below `from`, which is `place` of the vertex or a type below it.
    fn read_below(
        &self,
        session: &mut Session,
        vertex: &VertexId,
        side: &Node,
        place: &Node,
        from: &Node,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let is_out = *side == self.out;
        let mut cursor = Cursor::subtree(from);
        let mut kind: Arc<str> = Arc::from("");
        while cursor.next(session)? {
            let codes = &cursor.node_ref()?.encoded()[place.encoded().len()..];
            let entry = Entry::read(codes, &mut kind)?;
            let weight = cursor.value()?.and_then(|value| weight_of(&value));
            let (source, target) =
                if is_out { (vertex.clone(), entry.other) } else { (entry.other, vertex.clone()) };
            visit(Edge { id: entry.id, source, kind: kind.clone(), target, weight })?;
        }
        Ok(())
    }
}

/// Shows `visit` the other ends of the entries below a node, whose keys have so many parts between the node and the end.
fn read_ends(
    session: &mut Session,
    from: &Node,
    between: usize,
    visit: &mut dyn FnMut(VertexId) -> Result<()>,
) -> Result<()> {
    let mut cursor = Cursor::subtree(from).without_values();
    let length = from.encoded().len();
    while cursor.next(session)? {
        let mut codes = &cursor.node_ref()?.encoded()[length..];
        for _ in 0..between {
            let (_, length) = decode_subscript(codes).map_err(perilune::Error::from)?;
            codes = &codes[length..];
        }
        let (other, _) = decode_subscript(codes).map_err(perilune::Error::from)?;
        visit(VertexId::from_subscript(&other))?;
    }
    Ok(())
}

/// What the key of an entry says behind the vertex, but for the type.
pub(crate) struct Entry {
    pub(crate) other: VertexId,
    pub(crate) id: i64,
}

impl Entry {
    /// Reads the codes of type, other end and id; the type goes into `kind`, unless that is it already.
    pub(crate) fn read(codes: &[u8], kind: &mut Arc<str>) -> Result<Entry> {
        let (name, length) = decode_subscript(codes).map_err(perilune::Error::from)?;
        match &name {
            Subscript::Bytes(bytes) if bytes.as_ref() == kind.as_bytes() => {}
            name => *kind = String::from_utf8_lossy(&name.to_text()).as_ref().into(),
        }
        let codes = &codes[length..];
        let (other, length) = decode_subscript(codes).map_err(perilune::Error::from)?;
        let (id, end) = decode_subscript(&codes[length..]).map_err(perilune::Error::from)?;
        match id.as_i64() {
            Some(id) if length + end == codes.len() => {
                Ok(Entry { other: VertexId::from_subscript(&other), id })
            }
            _ => Err(Error::Damaged("an entry of an edge has no id".to_owned())),
        }
    }
}
