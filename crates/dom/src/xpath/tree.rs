//! The document as XPath sees it, read on demand and remembered for one evaluation.
//!
//! XPath has no CDATA sections, document types or XML declarations, and `xmlns` attributes are namespaces. Neighbouring
//! texts are one node: the first stands for all of them.

use std::collections::HashMap;
use std::rc::Rc;

use perilune::Session;

use crate::{Dom, DomError, DomNode, NodeKind, Record, Result, XML};

/// A node, or one of the namespaces of an element by its number in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Item {
    pub(crate) node: DomNode,
    pub(crate) namespace: Option<u32>,
}

impl Item {
    pub(crate) fn of(node: DomNode) -> Item {
        Item { node, namespace: None }
    }
}

pub(crate) struct Tree<'s> {
    pub(crate) session: &'s mut Session,
    pub(crate) dom: &'s Dom,
    records: HashMap<DomNode, Rc<Record>>,
    places: HashMap<DomNode, u32>,
    /// Prefixes and names, by the numbers of items.
    pub(crate) namespaces: Vec<(String, String)>,
    seen: usize,
    nodes_max: usize,
    /// Whether all nodes were read.
    has_all: bool,
    /// The places of the document's nodes in its order, once they are wanted.
    ordinals: HashMap<DomNode, usize>,
}

impl<'s> Tree<'s> {
    pub(crate) fn new(session: &'s mut Session, dom: &'s Dom, nodes_max: usize) -> Tree<'s> {
        let (records, places) = (HashMap::new(), HashMap::new());
        Tree {
            session,
            dom,
            records,
            places,
            namespaces: Vec::new(),
            seen: 0,
            nodes_max,
            has_all: false,
            ordinals: HashMap::new(),
        }
    }

    pub(crate) fn record(&mut self, node: DomNode) -> Result<Rc<Record>> {
        self.seen += 1;
        if self.seen > self.nodes_max {
            return Err(DomError::TooManyNodes(self.nodes_max));
        }
        if let Some(record) = self.records.get(&node) {
            return Ok(record.clone());
        }
        let record = Rc::new(self.dom.record(self.session, node)?);
        self.records.insert(node, record.clone());
        Ok(record)
    }

    /// The children that XPath has.
    pub(crate) fn children(&mut self, node: DomNode) -> Result<Vec<DomNode>> {
        let mut children = Vec::new();
        let mut in_text = false;
        let mut next = self.record(node)?.first_child;
        while let Some(child) = next {
            let record = self.record(child)?;
            let hidden = match record.kind {
                NodeKind::DocumentType => true,
                NodeKind::ProcessingInstruction => record.name == "xml",
                NodeKind::Text | NodeKind::CData => in_text || self.text_run(child)?.is_empty(),
                _ => false,
            };
            in_text = record.is_text() && (in_text || !hidden);
            if !hidden {
                children.push(child);
            }
            next = record.next_sibling;
        }
        Ok(children)
    }

    /// The text of `node` and of the texts right behind it.
    fn text_run(&mut self, node: DomNode) -> Result<String> {
        let mut text = String::new();
        let mut next = Some(node);
        while let Some(node) = next {
            let record = self.record(node)?;
            if !record.is_text() {
                break;
            }
            text.push_str(&record.value);
            next = record.next_sibling;
        }
        Ok(text)
    }

    /// Reads all nodes at once where a walk is going to reach them all. Not more than may be looked at, so that a limit ends
    /// a walk before it costs much.
    fn expect_all(&mut self, node: DomNode) -> Result<()> {
        if self.has_all || self.record(node)?.kind != NodeKind::Document {
            return Ok(());
        }
        let highest = self.dom.highest(self.session)?;
        if usize::try_from(highest).is_ok_and(|highest| highest <= self.nodes_max) {
            for (node, record) in self.dom.whole(self.session)?.into_records() {
                self.records.entry(node).or_insert_with(|| Rc::new(record));
            }
            self.has_all = true;
        }
        Ok(())
    }

    /// All below `node` in document order, without itself.
    pub(crate) fn descendants(&mut self, node: DomNode) -> Result<Vec<DomNode>> {
        self.expect_all(node)?;
        let mut found = Vec::new();
        let mut open: Vec<DomNode> = self.children(node)?.into_iter().rev().collect();
        while let Some(node) = open.pop() {
            found.push(node);
            if self.record(node)?.first_child.is_some() {
                open.extend(self.children(node)?.into_iter().rev());
            }
        }
        Ok(found)
    }

    /// The topmost node above `node`.
    pub(crate) fn top(&mut self, node: DomNode) -> Result<DomNode> {
        let mut top = node;
        while let Some(parent) = self.record(top)?.parent {
            top = parent;
        }
        Ok(top)
    }

    /// The attributes that are no namespaces.
    pub(crate) fn attributes(&mut self, node: DomNode) -> Result<Vec<DomNode>> {
        let record = self.record(node)?;
        let real = record.attributes.iter().filter(|(name, _)| !is_declaration(name));
        Ok(real.map(|&(_, attribute)| attribute).collect())
    }

    /// The namespaces in force at an element.
    pub(crate) fn namespaces_of(&mut self, element: DomNode) -> Result<Vec<Item>> {
        let mut found: Vec<(String, String)> = vec![("xml".to_owned(), XML.to_owned())];
        let mut at = Some(element);
        while let Some(node) = at {
            let record = self.record(node)?;
            for (name, attribute) in record.attributes.iter().filter(|(name, _)| is_declaration(name)) {
                let prefix = name.strip_prefix("xmlns:").unwrap_or("").to_owned();
                if !found.iter().any(|(known, _)| *known == prefix) {
                    found.push((prefix, self.record(*attribute)?.value.clone()));
                }
            }
            at = record.parent;
        }
        found.retain(|(_, uri)| !uri.is_empty());
        found.sort();
        Ok(found.into_iter().map(|pair| self.item_of(element, pair)).collect())
    }

    fn item_of(&mut self, element: DomNode, pair: (String, String)) -> Item {
        let known = self.namespaces.iter().position(|known| *known == pair);
        let number = known.unwrap_or_else(|| {
            self.namespaces.push(pair);
            self.namespaces.len() - 1
        });
        Item { node: element, namespace: Some(number as u32) }
    }

    /// Namespace and local name of an element or attribute.
    pub(crate) fn expanded(&mut self, node: DomNode) -> Result<(String, String)> {
        let record = self.record(node)?;
        let (prefix, local) = match record.name.split_once(':') {
            Some((prefix, local)) => (prefix, local),
            None => ("", record.name.as_str()),
        };
        let none = (String::new(), local.to_owned());
        match (record.kind, prefix) {
            (NodeKind::Attribute, "") => return Ok(none),
            (NodeKind::Element | NodeKind::Attribute, "xml") => {
                return Ok((XML.to_owned(), local.to_owned()))
            }
            (NodeKind::Element | NodeKind::Attribute, _) => {}
            _ => return Ok((String::new(), record.name.clone())),
        }
        let declaration = if prefix.is_empty() { "xmlns".to_owned() } else { format!("xmlns:{prefix}") };
        let mut at =
            Some(if record.kind == NodeKind::Element { node } else { record.parent.unwrap_or(node) });
        while let Some(element) = at {
            let above = self.record(element)?;
            if let Some(attribute) = above.attribute(&declaration) {
                return Ok((self.record(attribute)?.value.clone(), local.to_owned()));
            }
            at = above.parent;
        }
        // A prefix that nothing declares is a part of the name.
        Ok(if prefix.is_empty() { none } else { (String::new(), record.name.clone()) })
    }

    pub(crate) fn string_of(&mut self, item: Item) -> Result<String> {
        if let Some(number) = item.namespace {
            return Ok(self.namespaces[number as usize].1.clone());
        }
        let record = self.record(item.node)?;
        match record.kind {
            NodeKind::Text | NodeKind::CData => self.text_run(item.node),
            NodeKind::Element | NodeKind::Document => {
                let mut text = String::new();
                for node in self.descendants(item.node)? {
                    if self.record(node)?.is_text() {
                        text.push_str(&self.text_run(node)?);
                    }
                }
                Ok(text)
            }
            _ => Ok(record.value.clone()),
        }
    }

    /// Document order, each node once.
    pub(crate) fn in_order(&mut self, items: Vec<Item>) -> Result<Vec<Item>> {
        if items.len() < 2 {
            return Ok(items);
        }
        if let Some(sorted) = self.by_ordinals(&items)? {
            return Ok(sorted);
        }
        let mut keyed = Vec::with_capacity(items.len());
        for item in items {
            keyed.push((self.path_of(item)?, item));
        }
        keyed.sort_by(|a, b| a.0.cmp(&b.0));
        keyed.dedup_by(|a, b| a.1 == b.1);
        Ok(keyed.into_iter().map(|(_, item)| item).collect())
    }

    /// Document order by the numbers of one walk, where all nodes were read and all items are stored in the document: paths
    /// would take as many looks at each node as it is deep.
    fn by_ordinals(&mut self, items: &[Item]) -> Result<Option<Vec<Item>>> {
        if !self.has_all {
            return Ok(None);
        }
        if self.ordinals.is_empty() {
            self.number_all()?;
        }
        let mut keyed = Vec::with_capacity(items.len());
        for &item in items {
            match self.ordinals.get(&item.node) {
                Some(&ordinal) if item.namespace.is_none() => keyed.push((ordinal, item)),
                _ => return Ok(None),
            }
        }
        keyed.sort_unstable_by_key(|&(ordinal, _)| ordinal);
        keyed.dedup_by_key(|&mut (ordinal, _)| ordinal);
        Ok(Some(keyed.into_iter().map(|(_, item)| item).collect()))
    }

    /// Numbers the nodes of the document in its order, attributes right behind their element.
    fn number_all(&mut self) -> Result<()> {
        let mut open: Vec<DomNode> = self.dom.document_node(self.session)?.into_iter().collect();
        while let Some(node) = open.pop() {
            let record = self.record(node)?;
            for &node in
                std::iter::once(&node).chain(record.attributes.iter().map(|(_, attribute)| attribute))
            {
                self.ordinals.insert(node, self.ordinals.len());
            }
            let begun = open.len();
            let mut next = record.first_child;
            while let Some(child) = next {
                open.push(child);
                next = self.record(child)?.next_sibling;
            }
            open[begun..].reverse();
        }
        Ok(())
    }

    /// Where a node is: its places among siblings, from the top. Namespaces come first, then attributes, then children.
    pub(crate) fn path_of(&mut self, item: Item) -> Result<Vec<(u8, i64)>> {
        let mut path = Vec::new();
        if let Some(number) = item.namespace {
            path.push((0, i64::from(number)));
        }
        let mut at = item.node;
        loop {
            let record = self.record(at)?;
            let Some(parent) = record.parent else {
                path.push((0, at.number()));
                path.reverse();
                return Ok(path);
            };
            if record.kind == NodeKind::Attribute {
                let above = self.record(parent)?;
                let place = above.attributes.iter().position(|&(_, node)| node == at);
                path.push((1, place.unwrap_or(0) as i64));
            } else {
                path.push((2, self.place_of(at, parent)?));
            }
            at = parent;
        }
    }

    fn place_of(&mut self, node: DomNode, parent: DomNode) -> Result<i64> {
        if !self.places.contains_key(&node) {
            let mut next = self.record(parent)?.first_child;
            let mut place = 0;
            while let Some(child) = next {
                self.places.insert(child, place);
                place += 1;
                next = self.record(child)?.next_sibling;
            }
        }
        let place = self.places.get(&node).copied();
        place.map(i64::from).ok_or_else(|| DomError::Damaged(format!("{} is no child", node.number())))
    }
}

fn is_declaration(name: &str) -> bool {
    name == "xmlns" || name.starts_with("xmlns:")
}
