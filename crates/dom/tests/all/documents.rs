//! Documents: parsed as another parser reads them, changed as a plain tree is, whole after every step.

use std::collections::BTreeMap;

use perilune::{node, Database, Session};
use perilune_dom::{Dom, DomError, DomNode, NodeKind, ParseOptions, Parsed, Whitespace};

/// A database of its own, removed at the end.
struct Scratch {
    directory: std::path::PathBuf,
}

impl Scratch {
    fn new(name: &str) -> (Scratch, Session, Dom) {
        let directory = std::env::temp_dir().join(format!("perilune-dom-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let session = Database::open(directory.join("t.db")).unwrap().session().unwrap();
        (Scratch { directory }, session, Dom::at(node!("^doc", "x").unwrap()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Small numbers by chance, the same for one seed.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        let given = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from(std::process::id()) * 7919 + 17);
        println!("PERILUNE_SEED={seed}");
        Chance(seed)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

fn parse(session: &mut Session, dom: &Dom, xml: &str) -> Result<DomNode, DomError> {
    dom.parse(session, xml, &ParseOptions { replace: true, ..ParseOptions::default() })
}

fn assert_whole(session: &mut Session, dom: &Dom) {
    assert_eq!(dom.check(session).unwrap(), vec![]);
}

#[test]
fn the_layout_is_that_of_jsdb() {
    let (_scratch, mut session, dom) = Scratch::new("layout");
    parse(&mut session, &dom, r#"<foo id="top"/>"#).unwrap();
    let stored = session.get_tree(dom.root()).unwrap();
    assert_eq!(stored.len(), 25);
    for (place, value) in [
        (r#"^doc("x","documentNode")"#, 1),
        (r#"^doc("x","documentElement")"#, 2),
        (r#"^doc("x","nextNodeNo")"#, 3),
        (r#"^doc("x","node",2,"attr","id")"#, 3),
        (r#"^doc("x","node",3,"parent")"#, 2),
        (r#"^doc("x","index","by_id","top")"#, 2),
    ] {
        assert_eq!(session.get_int(&perilune::Node::parse(place).unwrap()).unwrap(), Some(value), "{place}");
    }
    assert_eq!(dom.to_xml(&mut session).unwrap(), r#"<foo id="top" />"#);
    assert_whole(&mut session, &dom);
}

#[test]
fn links_that_jsdb_left_empty_are_none() {
    let (_scratch, mut session, dom) = Scratch::new("empty-links");
    parse(&mut session, &dom, "<a/>").unwrap();
    let place = dom.root().child("node").unwrap().with(2).unwrap().with("nextSibling").unwrap();
    session.set(&place, "").unwrap();
    assert_eq!(dom.record(&mut session, DomNode::from_number(2)).unwrap().next_sibling, None);
    assert_whole(&mut session, &dom);
}

#[test]
fn what_must_be_refused_is_and_nothing_is_written() {
    let (_scratch, mut session, dom) = Scratch::new("refused");
    let laughs = r#"<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><l>&b;</l>"#;
    let refused = |session: &mut Session, xml: &str| parse(session, &dom, xml).unwrap_err();
    assert!(matches!(refused(&mut session, laughs), DomError::Dtd { internal: true, .. }));
    let external = r#"<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>"#;
    assert!(matches!(refused(&mut session, external), DomError::Dtd { internal: false, .. }));
    assert!(matches!(refused(&mut session, "<a>&nbsp;</a>"), DomError::Entity { position: 3, .. }));
    assert!(matches!(refused(&mut session, r#"<a b="&x;"/>"#), DomError::Entity { .. }));
    for xml in [
        "",
        "text",
        "<a>",
        "</a>",
        "<a></b>",
        "<a/><b/>",
        "<a/>text",
        "text<a/>",
        "<a b='1' b='2'/>",
        "<a b=1/>",
        "<a b/>",
        "<1/>",
        "<a>&#0;</a>",
        "<a>&#xD800;</a>",
        "<a>&</a>",
        "<a b='<'/>",
        "<a>]]></a>",
        "<a>\u{1}</a>",
        "<a><!-- -- --></a>",
        "<a><?xml version='1.0'?></a>",
        " <?xml version='1.0'?><a/>",
        "< a/>",
        "<![CDATA[x]]><a/>",
        "<a/><!DOCTYPE a>",
        "<a><!--",
        "<a><![CDATA[",
        "<a b='",
        "<a>&#+65;</a>",
        "<a b='1'c='2'/>",
        "<?xml version='<1.0'?><a/>",
        "<?xml version='2.0'?><a/>",
        "<?xml encoding='utf-8'?><a/>",
        "<?xml encoding='utf-8' version='1.0'?><a/>",
        "<?xml version='1.0' standalone='perhaps'?><a/>",
        "<?xml version='1.0' colour='red'?><a/>",
    ] {
        let error = parse(&mut session, &dom, xml).unwrap_err();
        assert!(matches!(error, DomError::Syntax { .. }), "{xml}: {error:?}");
    }
    let latin = "<?xml version='1.0' encoding='ISO-8859-1'?><a/>";
    assert!(matches!(refused(&mut session, latin), DomError::Encoding(_)));
    assert!(matches!(
        Parsed::read_bytes(b"<a>\xFF</a>", &ParseOptions::default()).map(|_| ()),
        Err(DomError::Encoding(_))
    ));
    assert_eq!(session.get_tree(dom.root()).unwrap(), vec![]);

    let keep = ParseOptions { keep_external_dtd: true, ..ParseOptions::default() };
    dom.parse(&mut session, external, &keep).unwrap();
    assert_eq!(dom.to_xml(&mut session).unwrap(), r#"<!DOCTYPE a SYSTEM "file:///etc/passwd"><a />"#);
    assert!(matches!(dom.parse(&mut session, "<a/>", &keep), Err(DomError::DocumentExists)));
    assert_whole(&mut session, &dom);
}

#[test]
fn white_space_is_kept_or_trimmed_and_text_is_escaped() {
    let (_scratch, mut session, dom) = Scratch::new("space");
    let xml = "<a x=\"1&#10;&lt;\"> one\r\n<b/> &amp;&#65;<![CDATA[<]]> </a>";
    parse(&mut session, &dom, xml).unwrap();
    let written = "<a x=\"1&#10;&lt;\"> one\n<b /> &amp;A<![CDATA[<]]> </a>";
    assert_eq!(dom.to_xml(&mut session).unwrap(), written);
    let trim = ParseOptions { whitespace: Whitespace::Trim, replace: true, ..ParseOptions::default() };
    dom.parse(&mut session, xml, &trim).unwrap();
    assert_eq!(dom.to_xml(&mut session).unwrap(), "<a x=\"1&#10;&lt;\">one<b />&amp;A<![CDATA[<]]></a>");
    assert_whole(&mut session, &dom);
}

/// Appends a random element with all that an element may hold.
fn random_element(chance: &mut Chance, depth: usize, out: &mut String) {
    let name = ["a", "b", "ns:c", "é", "long-name.1"][chance.below(5)];
    out.push_str(&format!("<{name}"));
    if depth == 0 {
        out.push_str(" xmlns:ns='urn:n'");
    }
    for attribute in ["id", "x", "ns:y"] {
        if chance.below(3) == 0 {
            out.push_str(&format!(" {attribute}='{}&quot;&#x20AC; {}'", chance.below(4), chance.below(9)));
        }
    }
    out.push('>');
    for _ in 0..chance.below(if depth > 5 { 1 } else { 5 }) {
        match chance.below(6) {
            0 => out.push_str("text &lt; &amp;\r\n more"),
            1 => out.push_str("<!-- note - -->"),
            2 => out.push_str("<?target some data?>"),
            3 => out.push_str("\t "),
            _ => random_element(chance, depth + 1, out),
        }
    }
    out.push_str(&format!("</{name}>"));
}

/// The document as a list of lines, as `roxmltree` reads it.
fn other_reading(node: roxmltree::Node<'_, '_>, lines: &mut Vec<String>) {
    for child in node.children() {
        match child.node_type() {
            roxmltree::NodeType::Element => {
                let attributes: BTreeMap<_, _> = child.attributes().map(|a| (a.name(), a.value())).collect();
                lines.push(format!("{} {attributes:?}", child.tag_name().name()));
            }
            roxmltree::NodeType::Text => lines.push(format!("text {:?}", child.text())),
            // It leaves line ends there as they are; XML has one line feed for each.
            roxmltree::NodeType::Comment => {
                lines.push(format!("comment {:?}", child.text().map(|text| text.replace("\r\n", "\n"))));
            }
            roxmltree::NodeType::PI => {
                let pi = child.pi().map(|pi| (pi.target, pi.value.map(|data| data.replace("\r\n", "\n"))));
                lines.push(format!("pi {pi:?}"));
            }
            roxmltree::NodeType::Root => {}
        }
        other_reading(child, lines);
        lines.push("end".to_owned());
    }
}

/// The document as the same lines, from the database.
fn our_reading(session: &mut Session, dom: &Dom, node: DomNode, lines: &mut Vec<String>) {
    let local = |name: &str| name.rsplit(':').next().unwrap().to_owned();
    for child in dom.children(session, node).unwrap() {
        let record = dom.record(session, child).unwrap();
        let value = Some(record.value.as_str());
        match record.kind {
            NodeKind::Element => {
                let mut attributes = BTreeMap::new();
                for (name, attribute) in &record.attributes {
                    if name != "xmlns" && !name.starts_with("xmlns:") {
                        attributes.insert(local(name), dom.record(session, *attribute).unwrap().value);
                    }
                }
                lines.push(format!("{} {attributes:?}", local(&record.name)));
            }
            NodeKind::Comment => lines.push(format!("comment {value:?}")),
            NodeKind::ProcessingInstruction => {
                let data = value.filter(|data| !data.is_empty());
                lines.push(format!("pi {:?}", Some((record.name.as_str(), data))));
            }
            _ => lines.push(format!("text {value:?}")),
        }
        our_reading(session, dom, child, lines);
        lines.push("end".to_owned());
    }
}

#[test]
fn documents_are_read_as_another_parser_reads_them() {
    let (_scratch, mut session, dom) = Scratch::new("other");
    let mut chance = Chance::new();
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..300 {
        let mut xml = String::new();
        random_element(&mut chance, 0, &mut xml);
        if round % 2 == 1 {
            let mut bytes = xml.into_bytes();
            let at = chance.below(bytes.len());
            bytes[at] = b"<>&;'\"/ a:="[chance.below(11)];
            let Ok(text) = String::from_utf8(bytes) else { continue };
            xml = text;
        }
        let other = roxmltree::Document::parse(&xml);
        match (parse(&mut session, &dom, &xml), other) {
            (Ok(root), Ok(other)) => {
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                our_reading(&mut session, &dom, root, &mut ours);
                other_reading(other.root(), &mut theirs);
                assert_eq!(ours, theirs, "{xml}");
                let written = dom.to_xml(&mut session).unwrap();
                let again = parse(&mut session, &dom, &written).unwrap();
                let mut read_again = Vec::new();
                our_reading(&mut session, &dom, again, &mut read_again);
                assert_eq!(ours, read_again, "{xml}");
                assert_whole(&mut session, &dom);
                accepted += 1;
            }
            (Err(_), Err(_)) => refused += 1,
            // The other one knows namespaces; a prefix without one is well-formed all the same.
            (Ok(_), Err(error)) => assert!(is_about_namespaces(&error), "{xml}: {error}"),
            // The other one takes a target that goes on behind its name.
            (Err(error), Ok(_)) => {
                assert!(error.to_string().contains("an instruction begins"), "{xml}: {error}")
            }
        }
    }
    assert!(accepted > 100 && refused > 20, "{accepted} accepted, {refused} refused");
}

fn is_about_namespaces(error: &roxmltree::Error) -> bool {
    use roxmltree::Error::{DuplicatedAttribute, DuplicatedNamespace, InvalidName, UnknownNamespace};
    use roxmltree::Error::{InvalidElementNamePrefix, UnexpectedXmlUri, UnexpectedXmlnsUri};
    matches!(
        error,
        UnknownNamespace(..)
            | DuplicatedAttribute(..)
            | DuplicatedNamespace(..)
            | InvalidElementNamePrefix(..)
            | UnexpectedXmlUri(..)
            | UnexpectedXmlnsUri(..)
            | InvalidName(..)
    )
}

/// Documents with a few bytes changed: what the other parser refuses is refused here, and what both accept reads alike.
#[test]
fn damaged_documents_are_refused_as_another_parser_refuses_them() {
    const WHOLE: &str = concat!(
        "<!--c--><a b='1' c=\"x &lt; y\"><d/>text &amp; more<e>&#65;<![CDATA[<raw>]]></e>",
        "<f g='1'></f></a><!--end-->"
    );
    // No instructions: the other parser takes "<?>" for one.
    const PIECES: [&str; 12] =
        ["<", ">", "&", "/", "'", "\"", "]]>", "<!--", "-->", "&#x1F;", "<a>", "\u{1}"];
    let mut chance = Chance::new();
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..4000 {
        let mut xml: Vec<char> = WHOLE.chars().collect();
        for _ in 0..=chance.below(2) {
            let at = chance.below(xml.len());
            match chance.below(3) {
                0 => {
                    xml.remove(at);
                }
                1 => {
                    let other = xml[chance.below(xml.len())];
                    xml[at] = other;
                }
                _ => {
                    xml.splice(at..at, PIECES[chance.below(PIECES.len())].chars());
                }
            }
        }
        let xml: String = xml.into_iter().collect();
        let here = Parsed::read(&xml, &ParseOptions::default());
        match (&here, roxmltree::Document::parse(&xml)) {
            (Ok(_), Ok(_)) => accepted += 1,
            (Err(_), Err(_)) => refused += 1,
            (here, there) => panic!("{xml:?}: here {:?}, there {:?}", here.as_ref().err(), there.err()),
        }
    }
    assert!(accepted > 200 && refused > 200, "{accepted} accepted, {refused} refused");
}
