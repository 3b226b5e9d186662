//! Calls by name: what the reference lists is there and nothing else; types of arguments and answers.

use std::collections::BTreeSet;

use perilune::{node, Database, Session, Value};
use perilune_dom::{Answer, Argument, Dom, DomError, DomNode};

use Argument::{Bool, Int, Nothing, Text};

struct Scratch {
    directory: std::path::PathBuf,
    session: Session,
    dom: Dom,
}

impl Scratch {
    fn new(name: &str) -> Scratch {
        let directory =
            std::env::temp_dir().join(format!("perilune-dom-calls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let session = Database::open(directory.join("t.db")).unwrap().session().unwrap();
        Scratch { directory, session, dom: Dom::at(node!("^doc").unwrap()) }
    }

    fn call(&mut self, name: &str, arguments: &[Argument<'_>]) -> Result<Answer, DomError> {
        self.dom.call(&mut self.session, name, arguments)
    }

    fn node(&mut self, name: &str, arguments: &[Argument<'_>]) -> i64 {
        match self.call(name, arguments).unwrap_or_else(|error| panic!("{name}: {error}")) {
            Answer::Node(node) => node.number(),
            other => panic!("{name}: {other:?}"),
        }
    }

    fn text(&mut self, name: &str, arguments: &[Argument<'_>]) -> String {
        match self.call(name, arguments).unwrap_or_else(|error| panic!("{name}: {error}")) {
            Answer::Value(Value::String(bytes)) => String::from_utf8(bytes).unwrap(),
            other => panic!("{name}: {other:?}"),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The names behind a back quote that a bracket follows.
fn listed(reference: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for part in reference.split('`').skip(1).step_by(2) {
        if let Some((name, _)) = part.split_once('(').filter(|(name, _)| !name.starts_with('^')) {
            names.insert(name.to_owned());
        }
    }
    names
}

/// The words in quotes that a pattern has in the sources of the calls.
fn known(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in source.lines().map(str::trim).filter(|line| line.starts_with('"') && line.ends_with("=> {")) {
        names.extend(line.split('"').skip(1).step_by(2).map(str::to_owned));
    }
    names
}

#[test]
fn the_reference_lists_every_call() {
    let home = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let reference = std::fs::read_to_string(home.join("../../docs/reference/dom.md")).unwrap();
    let listed = listed(&reference.replace("`perilune_dom_call`", ""));
    let mut there = BTreeSet::new();
    for file in ["of_documents", "of_elements", "of_nodes", "of_texts"] {
        there.extend(known(&std::fs::read_to_string(home.join(format!("src/call/{file}.rs"))).unwrap()));
    }
    // Whole lines of their own, which are no blocks.
    there.extend(["evaluate", "parse", "appendElement"].map(str::to_owned));
    there.remove("variable");
    there.remove("namespace");
    assert_eq!(listed, there);
    let mut scratch = Scratch::new("reference");
    for name in listed {
        if let Err(DomError::Call(what)) = scratch.call(&name, &[Bool(true); 9]) {
            assert!(!what.contains("no call"), "{what}");
        }
    }
}

#[test]
fn arguments_have_types_and_an_end() {
    let mut s = Scratch::new("types");
    for (name, arguments, expected) in [
        ("nonsense", vec![], "no call \"nonsense\""),
        ("createElement", vec![], "createElement: argument 1 must be a text"),
        ("createElement", vec![Int(1)], "argument 1 must be a text"),
        ("createElement", vec![Text("a"), Text("b")], "createElement takes 1 arguments at most"),
        ("appendChild", vec![Int(1), Text("b")], "argument 2 must be a node's number"),
        ("parse", vec![Text("<a/>"), Text("quick")], "no option \"quick\""),
        ("evaluate", vec![Int(1), Text("1"), Text("limit"), Text("time"), Int(1)], "evaluate knows"),
        ("substringData", vec![Int(1), Int(-1), Int(1)], "argument 2 must be a whole number from 0"),
    ] {
        match s.call(name, &arguments) {
            Err(DomError::Call(what)) => assert!(what.contains(expected), "{what}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(s.session.get_tree(s.dom.root()).unwrap().is_empty(), "nothing has happened");
}

#[test]
fn a_document_is_made_read_and_searched_by_calls() {
    let mut s = Scratch::new("made");
    let document = s.node("createDocument", &[]);
    let root = s.node("createElement", &[Text("pubs")]);
    assert_eq!(s.node("appendChild", &[Int(document), Int(root)]), root);
    let pub_arguments = [Int(root), Text("pub"), Text("open"), Text("name"), Text("Grogan's")];
    let first = s.node("appendElement", &pub_arguments);
    let second = s.node("cloneNode", &[Int(first), Bool(true)]);
    s.node("insertBefore", &[Int(root), Int(second), Int(first)]);
    assert_eq!(
        s.call("setAttribute", &[Int(second), Text("name"), Text("Kehoe's")]).unwrap(),
        Answer::Nothing
    );
    let both = r#"<pubs><pub name="Kehoe's">open</pub><pub name="Grogan's">open</pub></pubs>"#;
    assert_eq!(s.text("output", &[]), both);
    assert_eq!(s.node("documentElement", &[]), root);
    assert_eq!(s.node("parentNode", &[Int(first)]), root);
    assert_eq!(s.call("ownerElement", &[Int(first)]).unwrap(), Answer::Nothing);
    let nodes = |numbers: &[i64]| Answer::Nodes(numbers.iter().map(|&n| DomNode::from_number(n)).collect());
    assert_eq!(s.call("childNodes", &[Int(root)]).unwrap(), nodes(&[second, first]));
    assert_eq!(
        s.call("getElementsByTagName", &[Int(document), Text("pub")]).unwrap(),
        nodes(&[second, first])
    );
    let xpath = [Int(document), Text("//pub[@name=$n]"), Text("variable"), Text("n"), Text("Grogan's")];
    assert_eq!(s.call("evaluate", &xpath).unwrap(), nodes(&[first]));
    let count = s.call("evaluate", &[Int(root), Text("count(pub)")]).unwrap();
    assert_eq!(count, Answer::Value(Value::Double(2.0)));
    assert_eq!(s.call("getAttribute", &[Int(first), Text("none")]).unwrap(), Answer::Nothing);
    assert_eq!(s.call("nodeType", &[Int(first)]).unwrap(), Answer::Value(Value::Int(1)));
    assert_eq!(s.call("nodeType", &[Int(999)]).unwrap(), Answer::Nothing);
    assert_eq!(s.text("output", &[Int(root), Nothing]), both);
    assert_eq!(s.call("check", &[]).unwrap(), Answer::Values(vec![]));
    let refused = s.call("appendChild", &[Int(first), Int(root)]).unwrap_err();
    assert_eq!(refused.dom_name(), Some("HierarchyRequestError"));
}
