//! Random changes of a document against a plain tree in memory: after each one the same text, and all links whole.

use std::collections::BTreeMap;

use perilune::{node, Database, Session};
use perilune_dom::{Dom, DomError, DomNode};

/// A node of the plain tree.
#[derive(Clone, Default)]
struct Plain {
    tag: Option<String>,
    text: String,
    attributes: BTreeMap<String, String>,
    parent: Option<DomNode>,
    children: Vec<DomNode>,
}

/// The plain tree: the nodes by their numbers in the database.
#[derive(Default)]
struct Model {
    nodes: BTreeMap<DomNode, Plain>,
}

impl Model {
    fn text(&self, node: DomNode) -> String {
        let plain = &self.nodes[&node];
        let Some(tag) = &plain.tag else { return plain.text.clone() };
        let attributes: String = plain.attributes.iter().map(|(n, v)| format!(" {n}=\"{v}\"")).collect();
        if plain.children.is_empty() {
            return format!("<{tag}{attributes} />");
        }
        let inner: String = plain.children.iter().map(|&child| self.text(child)).collect();
        format!("<{tag}{attributes}>{inner}</{tag}>")
    }

    fn is_below(&self, node: DomNode, above: DomNode) -> bool {
        node == above || self.nodes[&node].parent.is_some_and(|parent| self.is_below(parent, above))
    }

    fn detach(&mut self, node: DomNode) {
        if let Some(parent) = self.nodes.get_mut(&node).unwrap().parent.take() {
            self.nodes.get_mut(&parent).unwrap().children.retain(|&child| child != node);
        }
    }

    fn insert(&mut self, parent: DomNode, new: DomNode, before: Option<DomNode>) {
        self.detach(new);
        let children = &mut self.nodes.get_mut(&parent).unwrap().children;
        let at = before.map_or(children.len(), |b| children.iter().position(|&child| child == b).unwrap());
        children.insert(at, new);
        self.nodes.get_mut(&new).unwrap().parent = Some(parent);
    }

    fn delete(&mut self, node: DomNode) {
        self.detach(node);
        let mut gone = vec![node];
        while let Some(node) = gone.pop() {
            gone.extend(self.nodes.remove(&node).unwrap().children);
        }
    }

    fn owner(&self, id: &str) -> Option<DomNode> {
        let has = |plain: &Plain| plain.attributes.get("id").is_some_and(|known| known == id);
        self.nodes.iter().find(|(_, plain)| has(plain)).map(|(&node, _)| node)
    }

    fn elements(&self) -> Vec<DomNode> {
        self.nodes.iter().filter(|(_, plain)| plain.tag.is_some()).map(|(&node, _)| node).collect()
    }
}

/// Everything that a step works on.
struct Run {
    session: Session,
    dom: Dom,
    model: Model,
    seed: u64,
}

impl Run {
    fn below(&mut self, bound: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % bound
    }

    fn any(&mut self) -> DomNode {
        let at = self.below(self.model.nodes.len());
        *self.model.nodes.keys().nth(at).unwrap()
    }

    fn element(&mut self) -> DomNode {
        let elements = self.model.elements();
        elements[self.below(elements.len())]
    }

    fn create(&mut self) {
        let (dom, session) = (self.dom.clone(), &mut self.session);
        let (node, plain) = if self.seed.is_multiple_of(3) {
            let tag = format!("e{}", self.seed % 5);
            (dom.create_element(session, &tag), Plain { tag: Some(tag), ..Plain::default() })
        } else {
            let text = ["", "one", "two"][self.seed as usize % 3].to_owned();
            (dom.create_text(session, &text), Plain { text, ..Plain::default() })
        };
        self.model.nodes.insert(node.unwrap(), plain);
    }

    fn insert(&mut self, root: DomNode) {
        let (parent, new) = (self.element(), self.any());
        let children = self.model.nodes[&parent].children.clone();
        let before = match self.below(children.len() + 1) {
            at if at < children.len() => Some(children[at]).filter(|&child| child != new),
            _ => None,
        };
        if new == root {
            return;
        }
        let outcome = self.dom.insert_before(&mut self.session, parent, new, before);
        if self.model.is_below(parent, new) {
            assert!(matches!(outcome, Err(DomError::Hierarchy(_))), "{outcome:?}");
        } else {
            outcome.unwrap();
            self.model.insert(parent, new, before);
        }
    }

    fn remove(&mut self, root: DomNode) {
        let node = self.any();
        match self.model.nodes[&node].parent {
            Some(parent) => {
                self.dom.remove_child(&mut self.session, parent, node).unwrap();
                self.model.detach(node);
            }
            None if node != root => {
                self.dom.delete(&mut self.session, node).unwrap();
                self.model.delete(node);
            }
            None => {}
        }
    }

    fn attribute(&mut self) {
        let (element, name) = (self.element(), ["id", "x", "p:y"][self.below(3)]);
        if self.below(3) == 0 {
            let removed = self.dom.remove_attribute(&mut self.session, element, name).unwrap();
            let known = self.model.nodes.get_mut(&element).unwrap().attributes.remove(name);
            assert_eq!(removed, known.is_some());
            return;
        }
        let value = self.below(6).to_string();
        let outcome = self.dom.set_attribute(&mut self.session, element, name, &value);
        if name == "id" && self.model.owner(&value).is_some_and(|owner| owner != element) {
            assert!(matches!(outcome, Err(DomError::IdExists(_))), "{outcome:?}");
        } else {
            outcome.unwrap();
            self.model.nodes.get_mut(&element).unwrap().attributes.insert(name.to_owned(), value);
        }
    }

    fn replace(&mut self) {
        let (old, new) = (self.any(), self.any());
        let Some(parent) = self.model.nodes[&old].parent else { return };
        if self.model.nodes[&new].tag.as_deref() == Some("root") {
            return;
        }
        let outcome = self.dom.replace_child(&mut self.session, parent, new, old);
        if self.model.is_below(parent, new) {
            assert!(outcome.is_err());
        } else if new != old {
            outcome.unwrap();
            self.model.detach(new);
            self.model.insert(parent, new, Some(old));
            self.model.detach(old);
        }
    }

    fn clone_and_compare(&mut self) {
        let node = self.any();
        let copy = self.dom.clone_node(&mut self.session, node, true).unwrap();
        let mut expected = self.model.text(node);
        for id in 0..6 {
            expected = expected.replace(&format!(" id=\"{id}\""), "");
        }
        assert_eq!(self.dom.node_to_xml(&mut self.session, copy).unwrap(), expected);
        self.dom.delete(&mut self.session, copy).unwrap();
    }

    fn normalize(&mut self, root: DomNode) {
        let text = self.model.text(root);
        self.dom.normalize(&mut self.session, root).unwrap();
        let normal = self.dom.node_to_xml(&mut self.session, root).unwrap();
        // An element whose texts were all empty is written as an empty one.
        let tags = ["root", "e0", "e1", "e2", "e3", "e4"];
        let closed = |text: String, tag: &&str| text.replace(&format!("></{tag}>"), " />");
        assert_eq!(tags.iter().fold(normal, closed), tags.iter().fold(text, closed));
        let gone: Vec<_> = self.model.nodes.keys().copied().collect();
        for node in gone {
            if self.model.nodes[&node].parent.is_none() || !self.model.is_below(node, root) {
                continue;
            }
            if self.dom.record(&mut self.session, node).is_err() {
                self.model.detach(node);
                self.model.nodes.remove(&node);
            } else if self.model.nodes[&node].tag.is_none() {
                self.model.nodes.get_mut(&node).unwrap().text =
                    self.dom.record(&mut self.session, node).unwrap().value;
            }
        }
    }
}

#[test]
fn random_changes_agree_with_a_plain_tree() {
    let seed = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) * 7919 + 17);
    println!("PERILUNE_SEED={seed}");
    let directory = std::env::temp_dir().join(format!("perilune-dom-changes-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let session = Database::open(directory.join("t.db")).unwrap().session().unwrap();
    let mut run = Run { session, dom: Dom::at(node!("^doc").unwrap()), model: Model::default(), seed };
    let document = run.dom.create_document(&mut run.session).unwrap();
    let root = run.dom.create_element(&mut run.session, "root").unwrap();
    run.dom.append_child(&mut run.session, document, root).unwrap();
    run.model.nodes.insert(root, Plain { tag: Some("root".to_owned()), ..Plain::default() });
    for step in 0..1500 {
        match run.below(12) {
            _ if run.model.nodes.len() < 6 => run.create(),
            0 | 1 if run.model.nodes.len() < 40 => run.create(),
            2..=5 => run.insert(root),
            6 => run.remove(root),
            7 | 8 => run.attribute(),
            9 => run.replace(),
            10 => run.clone_and_compare(),
            _ if step % 8 == 0 => run.normalize(root),
            _ => {}
        }
        assert_eq!(run.dom.to_xml(&mut run.session).unwrap(), run.expected(root), "step {step}");
        assert_eq!(run.dom.check(&mut run.session).unwrap(), vec![], "step {step}");
        for id in 0..6 {
            let id = id.to_string();
            assert_eq!(run.dom.get_element_by_id(&mut run.session, &id).unwrap(), run.model.owner(&id));
        }
    }
    drop(run);
    let _ = std::fs::remove_dir_all(&directory);
}

impl Run {
    fn expected(&self, root: DomNode) -> String {
        self.model.text(root)
    }
}

#[test]
fn check_finds_what_is_damaged() {
    let directory = std::env::temp_dir().join(format!("perilune-dom-damage-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut session = Database::open(directory.join("t.db")).unwrap().session().unwrap();
    let dom = Dom::at(node!("^doc").unwrap());
    let xml = r#"<!DOCTYPE a><a id="q" p:x="1"><b/>text<c/></a>"#;
    dom.parse(&mut session, xml, &perilune_dom::ParseOptions::default()).unwrap();
    let optional = ["nodeName", "nodeNo", "nodeValue"];
    for (place, value) in session.get_tree(dom.root()).unwrap() {
        let text = place.to_string();
        if optional.iter().any(|field| text.contains(field)) && !text.contains("index") {
            continue;
        }
        session.delete_value(&place).unwrap();
        let found = dom.check(&mut session);
        assert!(found.as_ref().map_or(true, |faults| !faults.is_empty()), "{place}: {found:?}");
        session.set(&place, &value).unwrap();
        assert_eq!(dom.check(&mut session).unwrap(), vec![]);
    }
    let _ = std::fs::remove_dir_all(&directory);
}
