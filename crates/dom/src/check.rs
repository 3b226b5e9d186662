//! Is a document whole? Every link is looked at from both ends, and every index against the nodes.

use std::collections::{BTreeSet, HashMap};

use perilune::Session;

use crate::layout::{text_of, DOCUMENT_ELEMENT, DOCUMENT_NODE, DOCUMENT_TYPE, NEXT_NODE_NO};
use crate::record::text;
use crate::{Dom, DomNode, NodeKind, Record, Result};

/// Something that contradicts the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The node it is about; `None` for indices and pointers.
    pub node: Option<DomNode>,
    /// What is wrong.
    pub what: String,
}

impl Dom {
    /// Looks at all that is stored of the document, as of one moment; an empty answer means that it is whole.
    ///
    /// # Errors
    /// `Damaged` if a link is no number; the database's.
    pub fn check(&self, session: &mut Session) -> Result<Vec<Fault>> {
        self.at_one_moment(session, |session| {
            let nodes: HashMap<_, _> = self.whole(session)?.into_records().into_iter().collect();
            let mut faults = Vec::new();
            for (&node, record) in &nodes {
                check_links(&nodes, node, record, &mut faults);
            }
            self.check_indices(session, &nodes, &mut faults)?;
            self.check_pointers(session, &nodes, &mut faults)?;
            faults.sort_by_key(|fault| fault.node);
            Ok(faults)
        })
    }

    fn check_indices(
        &self,
        session: &mut Session,
        nodes: &HashMap<DomNode, Record>,
        faults: &mut Vec<Fault>,
    ) -> Result<()> {
        let mut expected = BTreeSet::new();
        let mut ids = HashMap::new();
        for (node, record) in nodes {
            let (number, kind) = (node.0.to_string(), record.kind.number().to_string());
            expected.insert(format!("by_nodeType {kind} {number}"));
            expected.insert(format!("by_nodeName {kind} {} {number}", record.name));
            if let Some((prefix, _)) = record.name.split_once(':') {
                expected.insert(format!("by_LocalName {kind} {prefix} {number}"));
            }
            if let (NodeKind::Attribute, "id", false, Some(element)) =
                (record.kind, record.name.as_str(), record.value.is_empty(), record.parent)
            {
                ids.entry(record.value.clone()).or_insert_with(BTreeSet::new).insert(element.0.to_string());
            }
        }
        let index = self.root().child("index")?;
        for (entry, value) in session.get_tree(&index)? {
            let below: Vec<_> = entry.subscripts()?[index.depth()..].iter().map(text_of).collect();
            let known = match below.as_slice() {
                [name, id] if name == "by_id" => {
                    ids.remove(id).is_some_and(|elements| elements.contains(&text(&value)))
                }
                _ => expected.remove(&below.join(" ")),
            };
            if !known {
                faults.push(Fault { node: None, what: format!("{entry} names what is not there") });
            }
        }
        faults
            .extend(expected.into_iter().map(|what| Fault { node: None, what: format!("no entry {what}") }));
        faults.extend(ids.into_keys().map(|id| Fault { node: None, what: format!("no entry by_id {id}") }));
        Ok(())
    }

    fn check_pointers(
        &self,
        session: &mut Session,
        nodes: &HashMap<DomNode, Record>,
        faults: &mut Vec<Fault>,
    ) -> Result<()> {
        let document = self.document_node(session)?;
        let found = |kind: NodeKind| {
            let mut of_kind = nodes.iter().filter(|(_, record)| record.kind == kind);
            of_kind
                .find(|(_, record)| kind == NodeKind::Document || record.parent == document)
                .map(|(n, _)| *n)
        };
        let pointers = [
            (DOCUMENT_NODE, document, NodeKind::Document),
            (DOCUMENT_ELEMENT, self.document_element(session)?, NodeKind::Element),
            (DOCUMENT_TYPE, self.document_type(session)?, NodeKind::DocumentType),
        ];
        for (name, stored, kind) in pointers {
            if (document.is_some() || !nodes.is_empty()) && stored != found(kind) {
                faults.push(Fault {
                    node: stored,
                    what: format!("{name} does not name the node that it should"),
                });
            }
        }
        let counter = session.get(&self.pointer(NEXT_NODE_NO)?)?.map_or(String::new(), |value| text(&value));
        let highest = nodes.keys().max().map_or(0, |node| node.0);
        if highest > counter.parse().unwrap_or(0) {
            faults.push(Fault { node: None, what: format!("{NEXT_NODE_NO} is below node {highest}") });
        }
        Ok(())
    }
}

fn check_links(nodes: &HashMap<DomNode, Record>, node: DomNode, record: &Record, faults: &mut Vec<Fault>) {
    let mut fault = |what: &str| faults.push(Fault { node: Some(node), what: what.to_owned() });
    let at = |link: Option<DomNode>| link.and_then(|link| nodes.get(&link));
    if record.kind == NodeKind::Attribute {
        if record.parent.is_some()
            && at(record.parent).and_then(|element| element.attribute(&record.name)) != Some(node)
        {
            fault("its element does not name this attribute");
        }
        return;
    }
    if record.parent.is_some() && at(record.parent).is_none() {
        fault("its parent does not exist");
    }
    let (first, last) = match at(record.parent) {
        Some(parent) => (parent.first_child, parent.last_child),
        None => (Some(node), Some(node)),
    };
    let previous = at(record.previous_sibling);
    if previous.is_none() != (first == Some(node))
        || previous.is_some_and(|p| p.next_sibling != Some(node) || p.parent != record.parent)
    {
        fault("the link before it is not answered");
    }
    let next = at(record.next_sibling);
    if next.is_none() != (last == Some(node))
        || next.is_some_and(|n| n.previous_sibling != Some(node) || n.parent != record.parent)
    {
        fault("the link behind it is not answered");
    }
    for child in [record.first_child, record.last_child] {
        if child.is_some() && at(child).and_then(|child| child.parent) != Some(node) {
            fault("its child has another parent");
        }
    }
    if record.first_child.is_some() != record.last_child.is_some() {
        fault("it has a first child or a last one only");
    }
    for (name, attribute) in &record.attributes {
        if at(Some(*attribute)).is_none_or(|a| a.parent != Some(node) || &a.name != name) {
            fault("its attribute has another element or name");
        }
    }
}
