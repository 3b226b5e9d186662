//! The axes: which nodes are reached from one, nearest first.

use super::expression::Axis;
use super::tree::{Item, Tree};
use crate::{DomNode, NodeKind, Result};

impl Tree<'_> {
    pub(super) fn axis(&mut self, item: Item, axis: Axis) -> Result<Vec<Item>> {
        let node = item.node;
        if item.namespace.is_some() {
            return self.axis_of_namespace(item, axis);
        }
        let is_attribute = self.record(node)?.kind == NodeKind::Attribute;
        let nodes = match axis {
            Axis::Itself => vec![node],
            Axis::Parent => self.record(node)?.parent.into_iter().collect(),
            Axis::Ancestor => self.ancestors(node)?,
            Axis::AncestorOrSelf => with_itself(node, self.ancestors(node)?),
            Axis::Child if !is_attribute => self.children(node)?,
            Axis::Descendant if !is_attribute => self.descendants(node)?,
            Axis::DescendantOrSelf => match is_attribute {
                true => vec![node],
                false => with_itself(node, self.descendants(node)?),
            },
            Axis::FollowingSibling if !is_attribute => self.siblings(node)?.1,
            Axis::PrecedingSibling if !is_attribute => {
                let mut before = self.siblings(node)?.0;
                before.reverse();
                before
            }
            Axis::Following => self.following(node)?,
            Axis::Preceding => self.preceding(node)?,
            Axis::Attribute => self.attributes(node)?,
            Axis::Namespace => {
                return match self.record(node)?.kind {
                    NodeKind::Element => self.namespaces_of(node),
                    _ => Ok(Vec::new()),
                };
            }
            _ => Vec::new(),
        };
        Ok(nodes.into_iter().map(Item::of).collect())
    }

    /// A namespace stands at its element as an attribute does.
    fn axis_of_namespace(&mut self, item: Item, axis: Axis) -> Result<Vec<Item>> {
        let above = |nodes: Vec<DomNode>| nodes.into_iter().map(Item::of).collect::<Vec<_>>();
        Ok(match axis {
            Axis::Itself | Axis::DescendantOrSelf => vec![item],
            Axis::Parent => vec![Item::of(item.node)],
            Axis::Ancestor => above(with_itself(item.node, self.ancestors(item.node)?)),
            Axis::AncestorOrSelf => {
                let mut items = vec![item];
                items.extend(above(with_itself(item.node, self.ancestors(item.node)?)));
                items
            }
            Axis::Following => {
                let mut nodes = self.descendants(item.node)?;
                nodes.extend(self.following(item.node)?);
                above(nodes)
            }
            Axis::Preceding => above(self.preceding(item.node)?),
            _ => Vec::new(),
        })
    }

    fn ancestors(&mut self, node: DomNode) -> Result<Vec<DomNode>> {
        let mut found = Vec::new();
        let mut at = node;
        while let Some(parent) = self.record(at)?.parent {
            found.push(parent);
            at = parent;
        }
        Ok(found)
    }

    /// The siblings before and behind, both in document order.
    fn siblings(&mut self, node: DomNode) -> Result<(Vec<DomNode>, Vec<DomNode>)> {
        let Some(parent) = self.record(node)?.parent else { return Ok((Vec::new(), Vec::new())) };
        let children = self.children(parent)?;
        let Some(at) = children.iter().position(|&child| child == node) else {
            return Ok((Vec::new(), Vec::new()));
        };
        Ok((children[..at].to_vec(), children[at + 1..].to_vec()))
    }

    fn following(&mut self, node: DomNode) -> Result<Vec<DomNode>> {
        let mut found = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at {
            let record = self.record(node)?;
            if record.kind == NodeKind::Attribute {
                if let Some(element) = record.parent {
                    found.extend(self.descendants(element)?);
                }
            } else {
                for sibling in self.siblings(node)?.1 {
                    found.push(sibling);
                    found.extend(self.descendants(sibling)?);
                }
            }
            at = record.parent;
        }
        Ok(found)
    }

    fn preceding(&mut self, node: DomNode) -> Result<Vec<DomNode>> {
        let mut found = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at {
            let record = self.record(node)?;
            if record.kind != NodeKind::Attribute {
                for sibling in self.siblings(node)?.0.into_iter().rev() {
                    found.extend(self.descendants(sibling)?.into_iter().rev());
                    found.push(sibling);
                }
            }
            at = record.parent;
        }
        Ok(found)
    }
}

fn with_itself(node: DomNode, others: Vec<DomNode>) -> Vec<DomNode> {
    let mut all = vec![node];
    all.extend(others);
    all
}
