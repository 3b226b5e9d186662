//! DOM level 3, call by call: namespaces, attribute nodes, character data, copies, positions, user data.

use perilune::{node, Database, Session};
use perilune_dom::{Dom, DomError, DomNode, NodeKind, ParseOptions, Whitespace, XML, XMLNS};
use perilune_dom::{CONTAINED_BY, CONTAINS, DISCONNECTED, FOLLOWING, IMPLEMENTATION_SPECIFIC, PRECEDING};

struct Scratch {
    directory: std::path::PathBuf,
    session: Session,
    dom: Dom,
}

impl Scratch {
    fn new(name: &str, xml: &str) -> Scratch {
        let directory =
            std::env::temp_dir().join(format!("perilune-dom-level3-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut session = Database::open(directory.join("t.db")).unwrap().session().unwrap();
        let dom = Dom::at(node!("^doc").unwrap());
        dom.parse(&mut session, xml, &ParseOptions::default()).unwrap();
        Scratch { directory, session, dom }
    }

    /// The first node that an expression gives.
    fn at(&mut self, xpath: &str) -> DomNode {
        self.dom.select(&mut self.session, xpath).unwrap()[0]
    }

    fn root(&mut self) -> DomNode {
        self.dom.document_element(&mut self.session).unwrap().unwrap()
    }

    /// The whole document, which must be whole.
    fn text(&mut self) -> String {
        assert_eq!(self.dom.check(&mut self.session).unwrap(), vec![]);
        self.dom.to_xml(&mut self.session).unwrap()
    }

    /// An expected failure leaves all as it was.
    fn refused<T: std::fmt::Debug>(
        &mut self,
        call: impl FnOnce(&Dom, &mut Session) -> Result<T, DomError>,
    ) -> DomError {
        let before = self.session.get_tree(self.dom.root()).unwrap();
        let error = call(&self.dom, &mut self.session).unwrap_err();
        assert_eq!(self.session.get_tree(self.dom.root()).unwrap(), before, "{error}");
        error
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn namespaces_follow_from_declarations() {
    let mut s = Scratch::new(
        "ns",
        r#"<a xmlns="urn:d" xmlns:p="urn:p" p:x="1" y="2"><p:b xmlns:q="urn:p" /><c xmlns="" xmlns:p="urn:other"><p:d /></c><u:n /></a>"#,
    );
    let (dom, a) = (s.dom.clone(), s.root());
    let below = dom.children(&mut s.session, a).unwrap();
    let d = dom.children(&mut s.session, below[1]).unwrap()[0];
    for (node, expected) in [
        (a, Some("urn:d")),
        (below[0], Some("urn:p")),
        (below[1], None),
        (d, Some("urn:other")),
        (below[2], None),
    ] {
        assert_eq!(dom.namespace_uri(&mut s.session, node).unwrap().as_deref(), expected, "{node:?}");
    }
    let record = dom.record(&mut s.session, below[0]).unwrap();
    assert_eq!((record.prefix(), record.local_name()), ("p", "b"));
    for (name, expected) in
        [("p:x", Some("urn:p")), ("y", None), ("xmlns", Some(XMLNS)), ("xmlns:p", Some(XMLNS))]
    {
        let node = dom.get_attribute_node(&mut s.session, a, name).unwrap().unwrap();
        assert_eq!(dom.namespace_uri(&mut s.session, node).unwrap().as_deref(), expected, "{name}");
    }
    let lookup =
        |s: &mut Scratch, node, prefix: &str| dom.lookup_namespace_uri(&mut s.session, node, prefix).unwrap();
    assert_eq!(lookup(&mut s, d, "p").as_deref(), Some("urn:other"));
    assert_eq!(lookup(&mut s, d, ""), None);
    assert_eq!(lookup(&mut s, below[0], "").as_deref(), Some("urn:d"));
    assert_eq!(lookup(&mut s, a, "xml").as_deref(), Some(XML));
    assert_eq!(
        lookup(&mut s, DomNode::from_number(1), "p").as_deref(),
        Some("urn:p"),
        "of the document: of its element"
    );
    let prefix = |s: &mut Scratch, node, uri: &str| dom.lookup_prefix(&mut s.session, node, uri).unwrap();
    assert_eq!(prefix(&mut s, below[0], "urn:p").as_deref(), Some("q"));
    assert_eq!(prefix(&mut s, a, "urn:p").as_deref(), Some("p"));
    assert_eq!(prefix(&mut s, d, "urn:p"), None, "p means something else there");
    assert_eq!(prefix(&mut s, a, "urn:d"), None, "the default namespace has no prefix");
    assert!(dom.is_default_namespace(&mut s.session, a, "urn:d").unwrap());
    assert!(dom.is_default_namespace(&mut s.session, d, "").unwrap());
    for (uri, local, count) in [
        (Some("urn:d"), "*", 0),
        (Some("urn:p"), "b", 1),
        (Some("*"), "d", 1),
        (Some("urn:other"), "d", 1),
        (None, "c", 1),
        (Some("*"), "*", 4),
        (Some("urn:p"), "d", 0),
    ] {
        let found = dom.get_elements_by_tag_name_ns(&mut s.session, a, uri, local).unwrap();
        assert_eq!(found.len(), count, "{uri:?} {local}");
    }
}

#[test]
fn names_are_made_in_the_namespace_that_was_asked_for() {
    let mut s = Scratch::new("make-ns", r#"<a xmlns:p="urn:p" p:x="1" />"#);
    let (dom, a) = (s.dom.clone(), s.root());
    let b = dom.create_element_ns(&mut s.session, Some("urn:b"), "q:b").unwrap();
    dom.append_child(&mut s.session, a, b).unwrap();
    assert_eq!(dom.namespace_uri(&mut s.session, b).unwrap().as_deref(), Some("urn:b"));
    let c = dom.create_element_ns(&mut s.session, Some("urn:c"), "c").unwrap();
    dom.append_child(&mut s.session, b, c).unwrap();
    dom.set_attribute_ns(&mut s.session, c, Some("urn:new"), "n:y", "2").unwrap();
    dom.set_attribute_ns(&mut s.session, c, Some("urn:p"), "p:z", "3").unwrap();
    dom.set_attribute_ns(&mut s.session, c, Some(XML), "xml:lang", "de").unwrap();
    dom.set_attribute_ns(&mut s.session, c, None, "plain", "4").unwrap();
    let whole = concat!(
        r#"<a p:x="1" xmlns:p="urn:p"><q:b xmlns:q="urn:b"><c n:y="2" p:z="3" plain="4" xml:lang="de" xmlns="urn:c" "#,
        r#"xmlns:n="urn:new" /></q:b></a>"#
    );
    assert_eq!(s.text(), whole);
    let get =
        |s: &mut Scratch, uri, local: &str| dom.get_attribute_ns(&mut s.session, c, uri, local).unwrap();
    assert_eq!(get(&mut s, Some("urn:new"), "y").as_deref(), Some("2"));
    assert_eq!(get(&mut s, Some("urn:p"), "y"), None);
    assert_eq!(get(&mut s, None, "plain").as_deref(), Some("4"));
    // One attribute whatever its prefix.
    dom.set_attribute(&mut s.session, c, "xmlns:m", "urn:new").unwrap();
    dom.set_attribute_ns(&mut s.session, c, Some("urn:new"), "m:y", "5").unwrap();
    assert_eq!(dom.get_attribute(&mut s.session, c, "n:y").unwrap(), None);
    assert_eq!(get(&mut s, Some("urn:new"), "y").as_deref(), Some("5"));
    assert!(dom.remove_attribute_ns(&mut s.session, c, Some("urn:new"), "y").unwrap());
    assert!(!dom.remove_attribute_ns(&mut s.session, c, Some("urn:new"), "y").unwrap());
    for (uri, name) in [
        (None, "p:b"),
        (Some("urn:x"), "xml:b"),
        (Some("urn:x"), "xmlns:b"),
        (Some(XMLNS), "b"),
        (Some("urn:x"), "a:b:c"),
        (Some("urn:x"), "a:1"),
        (Some("urn:x"), "p:b"),
        (Some("urn:x"), "b"),
    ] {
        let error = s.refused(|dom, session| dom.set_attribute_ns(session, c, uri, name, "v"));
        assert!(matches!(error, DomError::Namespace(_)), "{uri:?} {name}: {error}");
    }
    assert!(s
        .refused(|dom, session| dom.create_element_ns(session, Some(XMLNS), "xmlns"))
        .to_string()
        .contains("xmlns"));
    assert!(matches!(
        s.refused(|dom, session| dom.create_element_ns(session, Some("urn:x"), "1")),
        DomError::InvalidCharacter(_)
    ));
}

#[test]
fn attributes_are_nodes_that_move() {
    let mut s = Scratch::new("attributes", r#"<a><b id="1" x="old" /><c /></a>"#);
    let dom = s.dom.clone();
    let (b, c) = (s.at("//b"), s.at("//c"));
    let new = dom.create_attribute(&mut s.session, "x", "new").unwrap();
    assert_eq!(s.text(), r#"<a><b id="1" x="old" /><c /></a>"#, "it belongs to nobody yet");
    let old = dom.set_attribute_node(&mut s.session, b, new).unwrap().unwrap();
    assert_eq!(dom.record(&mut s.session, old).unwrap().value, "old");
    assert!(matches!(s.refused(|dom, session| dom.set_attribute_node(session, c, new)), DomError::InUse(_)));
    dom.set_attribute_node(&mut s.session, c, old).unwrap();
    assert_eq!(s.text(), r#"<a><b id="1" x="new" /><c x="old" /></a>"#);
    let id = dom.get_attribute_node(&mut s.session, b, "id").unwrap().unwrap();
    dom.remove_attribute_node(&mut s.session, b, id).unwrap();
    assert_eq!(dom.get_element_by_id(&mut s.session, "1").unwrap(), None);
    assert!(matches!(
        s.refused(|dom, session| dom.remove_attribute_node(session, b, id)),
        DomError::NotFound(_)
    ));
    dom.set_value(&mut s.session, id, "2").unwrap();
    dom.set_attribute_node(&mut s.session, c, id).unwrap();
    assert_eq!(dom.get_element_by_id(&mut s.session, "2").unwrap(), Some(c));
    let twice = dom.create_attribute(&mut s.session, "id", "2").unwrap();
    assert!(matches!(
        s.refused(|dom, session| dom.set_attribute_node(session, b, twice)),
        DomError::IdExists(_)
    ));
    dom.delete(&mut s.session, twice).unwrap();
    assert!(dom.record(&mut s.session, twice).is_err());
    assert!(dom.has_attribute(&mut s.session, c, "id").unwrap());
    let attributes = dom.get_attributes(&mut s.session, c).unwrap();
    assert_eq!(attributes, [("id".to_owned(), "2".to_owned()), ("x".to_owned(), "old".to_owned())]);
    assert_eq!(s.text(), r#"<a><b x="new" /><c id="2" x="old" /></a>"#);
}

#[test]
fn character_data_is_changed_in_parts() {
    let mut s = Scratch::new("data", "<a>one &#x1D11E;two<!--c--></a>");
    let dom = s.dom.clone();
    let (text, comment) = (s.at("//text()"), s.at("//comment()"));
    assert_eq!(dom.data_length(&mut s.session, text).unwrap(), 9);
    assert_eq!(dom.substring_data(&mut s.session, text, 4, 3).unwrap(), "\u{1D11E}t");
    dom.replace_data(&mut s.session, text, 0, 3, "ein").unwrap();
    dom.replace_data(&mut s.session, text, 6, 0, "<zwei> ").unwrap();
    dom.replace_data(&mut s.session, text, 13, 99, "").unwrap();
    dom.append_data(&mut s.session, comment, "d").unwrap();
    assert_eq!(s.text(), "<a>ein \u{1D11E}&lt;zwei&gt; <!--cd--></a>");
    let half = s.refused(|dom, session| dom.replace_data(session, text, 5, 0, "x"));
    assert!(matches!(half, DomError::IndexSize { offset: 5, length: 13 }), "{half}");
    s.refused(|dom, session| dom.append_data(session, comment, "-"));
    let second = dom.split_text(&mut s.session, text, 4).unwrap();
    assert_eq!(dom.record(&mut s.session, text).unwrap().next_sibling, Some(second));
    assert_eq!(dom.whole_text(&mut s.session, second).unwrap(), "ein \u{1D11E}<zwei> ");
    assert_eq!(s.text(), "<a>ein \u{1D11E}&lt;zwei&gt; <!--cd--></a>");
    let root = s.root();
    s.refused(|dom, session| dom.data_length(session, root));
    s.refused(|dom, session| dom.split_text(session, comment, 1));
}

#[test]
fn copies_go_between_documents() {
    let mut s = Scratch::new("copies", r#"<a><b id="1">t<c x="y"/></b><b id="2">t<c x="y"/></b></a>"#);
    let dom = s.dom.clone();
    let other = Dom::at(node!("^other").unwrap());
    other.parse(&mut s.session, "<o/>", &ParseOptions::default()).unwrap();
    let (b, o) = (s.at("//b"), other.document_element(&mut s.session).unwrap().unwrap());
    let copy = other.import_node(&mut s.session, &dom, b, true).unwrap();
    other.append_child(&mut s.session, o, copy).unwrap();
    assert_eq!(other.to_xml(&mut s.session).unwrap(), r#"<o><b id="1">t<c x="y" /></b></o>"#);
    assert!(matches!(other.import_node(&mut s.session, &dom, b, true), Err(DomError::IdExists(_))));
    let second = s.at("//b[2]");
    let shallow = other.import_node(&mut s.session, &dom, second, false).unwrap();
    assert_eq!(other.node_to_xml(&mut s.session, shallow).unwrap(), r#"<b id="2" />"#);
    other.delete(&mut s.session, shallow).unwrap();
    let moved = other.adopt_node(&mut s.session, &dom, second).unwrap();
    other.append_child(&mut s.session, o, moved).unwrap();
    assert_eq!(other.check(&mut s.session).unwrap(), vec![]);
    assert_eq!(s.text(), r#"<a><b id="1">t<c x="y" /></b></a>"#);
    let here = dom.adopt_node(&mut s.session, &dom, b).unwrap();
    assert_eq!((here, s.text()), (b, "<a />".to_owned()));
    let pair = other.children(&mut s.session, o).unwrap();
    assert!(!other.is_equal_node(&mut s.session, pair[0], pair[1]).unwrap(), "their ids differ");
    other.remove_attribute(&mut s.session, pair[0], "id").unwrap();
    let twin = other.clone_node(&mut s.session, pair[1], true).unwrap();
    assert!(other.is_equal_node(&mut s.session, pair[0], twin).unwrap());
    let c = other.select(&mut s.session, "//c").unwrap()[0];
    other.set_attribute(&mut s.session, c, "x", "z").unwrap();
    assert!(!other.is_equal_node(&mut s.session, pair[0], twin).unwrap());
}

#[test]
fn positions_and_lists_are_of_the_document() {
    let mut s = Scratch::new("order", r#"<a p="1" q="2"><b><c/></b><d/></a>"#);
    let dom = s.dom.clone();
    let [a, b, c, d] = ["/a", "//b", "//c", "//d"].map(|path| s.at(path));
    let [p, q] = ["/a/@p", "/a/@q"].map(|path| s.at(path));
    let loose = dom.create_element(&mut s.session, "e").unwrap();
    for (one, other, expected) in [
        (a, a, 0),
        (b, d, FOLLOWING),
        (d, c, PRECEDING),
        (c, a, CONTAINS | PRECEDING),
        (a, c, CONTAINED_BY | FOLLOWING),
        (p, a, CONTAINS | PRECEDING),
        (p, b, FOLLOWING),
        (p, q, IMPLEMENTATION_SPECIFIC | FOLLOWING),
        (a, loose, DISCONNECTED | IMPLEMENTATION_SPECIFIC | FOLLOWING),
    ] {
        assert_eq!(dom.compare_document_position(&mut s.session, one, other).unwrap(), expected);
    }
    assert!(dom.contains(&mut s.session, a, c).unwrap() && dom.contains(&mut s.session, c, c).unwrap());
    assert!(!dom.contains(&mut s.session, b, d).unwrap());
    // An element that was made last and stands first; one that stands nowhere.
    let first = dom.create_element(&mut s.session, "d").unwrap();
    dom.insert_before(&mut s.session, a, first, Some(b)).unwrap();
    dom.create_element(&mut s.session, "d").unwrap();
    assert_eq!(
        dom.get_elements_by_tag_name(&mut s.session, DomNode::from_number(1), "d").unwrap(),
        [first, d]
    );
    assert_eq!(dom.get_elements_by_tag_name(&mut s.session, a, "*").unwrap(), [first, b, c, d]);
    assert_eq!(dom.get_elements_by_tag_name(&mut s.session, b, "d").unwrap(), []);
    assert_eq!(dom.get_elements_by_tag_name(&mut s.session, b, "c").unwrap(), [c]);
}

#[test]
fn what_jsdb_has_besides() {
    let mut s = Scratch::new("besides", "<a><b>one</b>two</a>");
    let (dom, a) = (s.dom.clone(), s.root());
    let w = dom.create_element(&mut s.session, "w").unwrap();
    dom.insert_before_children(&mut s.session, a, w).unwrap();
    assert_eq!(s.text(), "<a><w><b>one</b>two</w></a>");
    dom.remove_as_parent(&mut s.session, w).unwrap();
    assert_eq!(s.text(), "<a><b>one</b>two</a>");
    assert!(matches!(s.refused(|dom, session| dom.remove_as_parent(session, a)), DomError::Hierarchy(_)));
    let e = dom.append_element(&mut s.session, a, "e", &[("k", "v")], "t").unwrap();
    s.refused(|dom, session| dom.append_element(session, a, "e", &[("1", "v")], "t"));
    dom.create_document_type(&mut s.session, "a", None, Some("a.dtd")).unwrap();
    dom.create_xml_declaration(&mut s.session, "1.0", "utf-8").unwrap();
    let whole = r#"<?xml version="1.0" encoding="utf-8"?><!DOCTYPE a SYSTEM "a.dtd"><a><b>one</b>two<e k="v">t</e></a>"#;
    assert_eq!(s.text(), whole);
    s.refused(|dom, session| dom.create_xml_declaration(session, "1.0", "utf-8"));
    s.refused(|dom, session| dom.create_xml_declaration(session, "1.0\"", "utf-8"));
    s.refused(|dom, session| dom.create_document_type(session, "b", None, None));
    let indented = dom.node_to_xml_indented(&mut s.session, a, 2).unwrap();
    let lines = ["<a>", "  <b>", "    one", "  </b>", "  two", r#"  <e k="v">"#, "    t", "  </e>", "</a>"];
    assert_eq!(indented, lines.join("\r\n"));
    dom.set_user_data(&mut s.session, e, "seen", 7).unwrap();
    dom.set_user_data(&mut s.session, e, "by", "Ada").unwrap();
    assert_eq!(dom.user_data_keys(&mut s.session, e).unwrap(), ["by", "seen"]);
    assert_eq!(dom.get_user_data(&mut s.session, e, "seen").unwrap(), Some(perilune::Value::Int(7)));
    assert!(dom.delete_user_data(&mut s.session, e, "by").unwrap());
    assert!(!dom.delete_user_data(&mut s.session, e, "by").unwrap());
    s.refused(|dom, session| dom.set_user_data(session, DomNode::from_number(99), "k", 1));
    assert_eq!(s.text(), whole, "no output shows them");
    dom.delete(&mut s.session, e).unwrap();
    assert_eq!(dom.user_data_keys(&mut s.session, e).unwrap(), Vec::<String>::new());
}

#[test]
fn short_names_of_types_know_their_identifiers() {
    let mut s = Scratch::new("types", "<html/>");
    let dom = s.dom.clone();
    let doctype = dom.create_document_type(&mut s.session, "html4_strict", None, None).unwrap();
    let record = dom.record(&mut s.session, doctype).unwrap();
    assert_eq!((record.kind, record.name.as_str()), (NodeKind::DocumentType, "HTML"));
    assert_eq!(record.public_id.as_deref(), Some("\"-//W3C//DTD HTML 4.01//EN\""));
    assert_eq!(dom.document_type(&mut s.session).unwrap(), Some(doctype));
}

#[test]
fn white_space_that_xml_space_preserves_is_kept() {
    let options = ParseOptions { whitespace: Whitespace::Trim, replace: true, ..ParseOptions::default() };
    let mut s = Scratch::new("space", "<a/>");
    let xml = "<a> x <b xml:space=\"preserve\"> y <c> z </c><d xml:space=\"default\"> q </d></b> </a>";
    s.dom.parse(&mut s.session, xml, &options).unwrap();
    let kept = "<a>x<b xml:space=\"preserve\"> y <c> z </c><d xml:space=\"default\">q</d></b></a>";
    assert_eq!(s.text(), kept);
}
