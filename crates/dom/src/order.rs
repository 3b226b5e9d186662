//! Where nodes stand to each other, and lists of elements in the order of the document.
//!
//! Lists by name begin at the index of names, so that a document of a million nodes is not walked for ten of them.

use perilune::Session;

use crate::layout::text_of;
use crate::xpath::tree::{Item, Tree};
use crate::{Dom, DomNode, NodeKind, Result};

/// The bits of [`Dom::compare_document_position`].
pub const DISCONNECTED: u16 = 1;
/// The other node comes before.
pub const PRECEDING: u16 = 2;
/// The other node comes behind.
pub const FOLLOWING: u16 = 4;
/// The other node contains this one.
pub const CONTAINS: u16 = 8;
/// The other node is contained in this one.
pub const CONTAINED_BY: u16 = 16;
/// The order is of numbers, not of the document.
pub const IMPLEMENTATION_SPECIFIC: u16 = 32;

impl Dom {
    /// Where `other` stands seen from `node`, as bits of the DOM; 0 if they are one.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn compare_document_position(
        &self,
        session: &mut Session,
        node: DomNode,
        other: DomNode,
    ) -> Result<u16> {
        self.at_one_moment(session, |session| {
            if node == other {
                self.record(session, node)?;
                return Ok(0);
            }
            let mut tree = Tree::new(session, self, usize::MAX);
            let (here, there) = (tree.path_of(Item::of(node))?, tree.path_of(Item::of(other))?);
            let direction = if there < here { PRECEDING } else { FOLLOWING };
            if here[0] != there[0] {
                return Ok(DISCONNECTED | IMPLEMENTATION_SPECIFIC | direction);
            }
            if here.starts_with(&there) {
                return Ok(CONTAINS | PRECEDING);
            }
            if there.starts_with(&here) {
                return Ok(CONTAINED_BY | FOLLOWING);
            }
            // Two attributes of one element have no order in the document.
            let owner = here.len() == there.len() && here[..here.len() - 1] == there[..there.len() - 1];
            let attributes = tree.record(node)?.kind == NodeKind::Attribute
                && tree.record(other)?.kind == NodeKind::Attribute;
            Ok(if owner && attributes { IMPLEMENTATION_SPECIFIC | direction } else { direction })
        })
    }

    /// Whether `other` is `node` or below it.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn contains(&self, session: &mut Session, node: DomNode, other: DomNode) -> Result<bool> {
        self.at_one_moment(session, |session| {
            self.record(session, node)?;
            let mut at = Some(other);
            while let Some(current) = at {
                if current == node {
                    return Ok(true);
                }
                at = self.record(session, current)?.parent;
            }
            Ok(false)
        })
    }

    /// The elements below `top` with this name, or all for `*`, in document order.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn get_elements_by_tag_name(
        &self,
        session: &mut Session,
        top: DomNode,
        name: &str,
    ) -> Result<Vec<DomNode>> {
        self.at_one_moment(session, |session| {
            if name == "*" {
                return self.elements_below(session, top);
            }
            if name.is_empty() {
                return Ok(Vec::new());
            }
            let found = self.listed(session, &self.by_name(NodeKind::Element, name)?)?;
            self.ordered(session, top, found)
        })
    }

    /// The elements below `top` with this local name in this namespace; `*` stands for any. In document order.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn get_elements_by_tag_name_ns(
        &self,
        session: &mut Session,
        top: DomNode,
        namespace: Option<&str>,
        local: &str,
    ) -> Result<Vec<DomNode>> {
        let namespace = namespace.filter(|uri| !uri.is_empty());
        self.at_one_moment(session, |session| {
            let mut candidates = Vec::new();
            if local == "*" {
                candidates = self.elements_below(session, top)?;
            } else {
                let mut next = session.first_child(&self.names_of(NodeKind::Element)?)?;
                while let Some(place) = next {
                    let name = place.last()?.map_or(String::new(), |name| text_of(&name));
                    if name.split_once(':').map_or(name.as_str(), |(_, local)| local) == local {
                        candidates.extend(self.listed(session, &place)?);
                    }
                    next = session.next(&place)?;
                }
                candidates = self.ordered(session, top, candidates)?;
            }
            let mut found = Vec::new();
            for node in candidates {
                if namespace == Some("*") || self.namespace_uri(session, node)?.as_deref() == namespace {
                    found.push(node);
                }
            }
            Ok(found)
        })
    }

    fn elements_below(&self, session: &mut Session, top: DomNode) -> Result<Vec<DomNode>> {
        let below = self.descendants(session, top)?;
        let elements = below.into_iter().filter(|(node, r)| *node != top && r.kind == NodeKind::Element);
        Ok(elements.map(|(node, _)| node).collect())
    }

    /// Those of `nodes` that are below `top`, in document order.
    fn ordered(&self, session: &mut Session, top: DomNode, nodes: Vec<DomNode>) -> Result<Vec<DomNode>> {
        let mut tree = Tree::new(session, self, usize::MAX);
        tree.record(top)?;
        let mut below = Vec::new();
        for node in nodes {
            let mut at = tree.record(node)?.parent;
            while let Some(current) = at {
                if current == top {
                    below.push(Item::of(node));
                    break;
                }
                at = tree.record(current)?.parent;
            }
        }
        Ok(tree.in_order(below)?.into_iter().map(|item| item.node).collect())
    }
}
