//! XPath 1.0 by cases of its specification, and by laws that hold of any document.

use perilune::{node, Database, Session};
use perilune_dom::{Dom, DomError, DomNode, ParseOptions, Surroundings, XPath, XPathItem, XPathValue};

struct Scratch {
    directory: std::path::PathBuf,
    session: Session,
    dom: Dom,
}

impl Scratch {
    fn new(name: &str, xml: &str) -> Scratch {
        let directory =
            std::env::temp_dir().join(format!("perilune-dom-xpath-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let session = Database::open(directory.join("t.db")).unwrap().session().unwrap();
        let mut scratch = Scratch { directory, session, dom: Dom::at(node!("^doc").unwrap()) };
        scratch.parse(xml);
        scratch
    }

    fn parse(&mut self, xml: &str) {
        let options = ParseOptions { replace: true, ..ParseOptions::default() };
        self.dom.parse(&mut self.session, xml, &options).unwrap();
    }

    fn try_value(&mut self, xpath: &str) -> Result<XPathValue, DomError> {
        let mut surroundings = Surroundings::default();
        surroundings.namespaces.insert("q".to_owned(), "urn:n".to_owned());
        surroundings.variables.insert("two".to_owned(), XPathValue::Number(2.0));
        let document = self.dom.document_node(&mut self.session)?.unwrap();
        self.dom.evaluate(&mut self.session, &XPath::parse(xpath)?, document, &surroundings)
    }

    /// The value as text; nodes as the numbers of their count and the names.
    fn shown(&mut self, xpath: &str) -> String {
        match self.try_value(xpath).unwrap_or_else(|error| panic!("{xpath}: {error}")) {
            XPathValue::Number(number) => format!("{number}"),
            XPathValue::Text(text) => format!("'{text}'"),
            XPathValue::Boolean(truth) => truth.to_string(),
            XPathValue::Nodes(items) => {
                let mut names = Vec::new();
                for item in items {
                    names.push(match item {
                        XPathItem::Node(node) => self.label(node),
                        XPathItem::Namespace { prefix, uri, .. } => format!("{prefix}={uri}"),
                    });
                }
                names.join(" ")
            }
        }
    }

    fn label(&mut self, node: DomNode) -> String {
        let record = self.dom.record(&mut self.session, node).unwrap();
        match self.dom.get_attribute(&mut self.session, node, "id").unwrap() {
            Some(id) => id,
            None if record.value.is_empty() => record.name,
            None => record.value,
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

const BOOKS: &str = concat!(
    r#"<?xml version="1.0"?><!--head--><lib id="L" xml:lang="en"><book id="1" n="3"><title id="t1">One</title></book>"#,
    r#"<book id="2" n="1"><title id="t2">Two <![CDATA[&]]> half</title><note id="x">n</note></book><?go there?>"#,
    r#"<shelf id="s" xml:lang="de-AT"><book id="3" n="2" /></shelf><p:q xmlns:p="urn:n" id="pq" p:a="v" /></lib>"#
);

#[test]
fn paths_axes_and_predicates() {
    let mut scratch = Scratch::new("paths", BOOKS);
    for (xpath, expected) in [
        ("/", "#document"),
        ("/lib", "L"),
        ("lib/book", "1 2"),
        ("//book", "1 2 3"),
        ("//book[1]", "1 3"),
        ("(//book)[1]", "1"),
        ("(//book)[last()]", "3"),
        ("//book[position() = last()]", "2 3"),
        ("/descendant::book[$two]", "2"),
        ("//book[@n > 1]", "1 3"),
        ("//book[title]", "1 2"),
        ("//book[not(title)]", "3"),
        ("//book/@n", "3 1 2"),
        ("//@n[. = 2]/..", "3"),
        ("//*[@id='s']/preceding-sibling::*", "1 2"),
        ("//*[@id='s']/preceding-sibling::*[1]", "2"),
        ("//*[@id='s']/preceding-sibling::node()[1]", "there"),
        ("//book[@id='1']/following::*", "2 t2 x s 3 pq"),
        ("//book[@id='3']/preceding::*[1]", "x"),
        ("//book[@id='3']/ancestor::*", "L s"),
        ("//book[@id='3']/ancestor::*[1]", "s"),
        ("//book[@id='3']/ancestor-or-self::node()", "#document L s 3"),
        ("//title/parent::*", "1 2"),
        ("//title/..//title", "t1 t2"),
        ("//note | //title | //note", "t1 t2 x"),
        ("//book/self::book[@n=1]", "2"),
        ("//text()", "One Two  n"),
        ("//comment()", "head"),
        ("//processing-instruction()", "there"),
        ("//processing-instruction('go')", "there"),
        ("//processing-instruction('no')", ""),
        ("id('2 3 2')", "2 3"),
        ("id(//book[1]/@id)/title", "t1"),
        ("//q:q", "pq"),
        ("//q:*", "pq"),
        ("//@q:a", "v"),
        ("//q", ""),
        ("//q:q/namespace::*", "p=urn:n xml=http://www.w3.org/XML/1998/namespace"),
        ("//q:q/namespace::p/..", "pq"),
        ("//*[lang('de')]", "s 3"),
        ("/lib/*[self::shelf or self::book][3]", "s"),
        ("//book[@n mod 2 = 1]", "1 2"),
        ("//div", ""),
        ("/lib/shelf/book/../../book[2]", "2"),
        ("//@n/following::title", "t1 t2"),
    ] {
        assert_eq!(scratch.shown(xpath), expected, "{xpath}");
    }
}

#[test]
fn values_and_functions() {
    let mut scratch = Scratch::new("values", BOOKS);
    for (xpath, expected) in [
        ("count(//book)", "3"),
        ("sum(//@n)", "6"),
        ("string(//title[2])", "''"),
        ("string((//title)[2])", "'Two & half'"),
        ("string(/)", "'OneTwo & halfn'"),
        ("name(//q:q)", "'p:q'"),
        ("local-name(//q:q)", "'q'"),
        ("namespace-uri(//q:q)", "'urn:n'"),
        ("name(/)", "''"),
        ("1 + 2 * 3 - 4 div 2", "5"),
        ("10 - 3 - 2", "5"),
        ("10 - (3 - 2)", "9"),
        ("- - 2", "2"),
        ("5 mod 2", "1"),
        ("-5 mod 2", "-1"),
        ("1.5 mod 0.5", "0"),
        ("5 mod -2", "1"),
        ("string(1 div 0)", "'Infinity'"),
        ("string(-1 div 0)", "'-Infinity'"),
        ("string(0 div 0)", "'NaN'"),
        ("string(-0)", "'0'"),
        ("string(1000000000000000000000)", "'1000000000000000000000'"),
        ("string(.5)", "'0.5'"),
        ("string(5.)", "'5'"),
        ("number(' -12.50 ')", "-12.5"),
        ("string(number('1e3'))", "'NaN'"),
        ("string(number('+1'))", "'NaN'"),
        ("string(number(''))", "'NaN'"),
        ("number(true())", "1"),
        ("boolean(//none)", "false"),
        ("boolean('false')", "true"),
        ("boolean(0 div 0)", "false"),
        ("0 div 0 = 0 div 0", "false"),
        ("0 div 0 != 0 div 0", "true"),
        ("//book/@n = 2", "true"),
        ("//book/@n != 2", "true"),
        ("//none = //none", "false"),
        ("//none = false()", "true"),
        ("//book/@n > //none", "false"),
        ("'a' = 'a'", "true"),
        ("'1' = 1", "true"),
        ("'x' = true()", "true"),
        ("1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3", "true"),
        ("3 > 2 > 1", "false"),
        ("true() or unknown-variable", "true"),
    ] {
        assert_eq!(scratch.shown(xpath), expected, "{xpath}");
    }
}

#[test]
fn texts_roundings_and_names_that_are_operators() {
    let mut scratch = Scratch::new("texts", BOOKS);
    for (xpath, expected) in [
        ("substring('12345', 2, 3)", "'234'"),
        ("substring('12345', 2)", "'2345'"),
        ("substring('12345', 1.5, 2.6)", "'234'"),
        ("substring('12345', 0, 3)", "'12'"),
        ("substring('12345', 0 div 0, 3)", "''"),
        ("substring('12345', 1, 0 div 0)", "''"),
        ("substring('12345', -42, 1 div 0)", "'12345'"),
        ("substring('12345', -1 div 0, 1 div 0)", "''"),
        ("substring-before('1999/04/01', '/')", "'1999'"),
        ("substring-after('1999/04/01', '/')", "'04/01'"),
        ("translate('bar', 'abc', 'AB')", "'BAr'"),
        ("translate('--aaa--', 'abc-', 'ABC')", "'AAA'"),
        ("normalize-space('  a \n b ')", "'a b'"),
        ("string-length('é€')", "2"),
        ("concat('a', 1, true())", "'a1true'"),
        ("contains('abc', '')", "true"),
        ("starts-with('abc', 'ab')", "true"),
        ("floor(-1.5)", "-2"),
        ("ceiling(-1.5)", "-1"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-2"),
        ("string(round(-0.2))", "'0'"),
        ("1 div round(-0.2)", "-inf"),
        ("round(0.49999999999999994)", "0"),
        ("div div div", "NaN"),
        ("* * *", "NaN"),
    ] {
        assert_eq!(scratch.shown(xpath), expected, "{xpath}");
    }
}

#[test]
fn what_cannot_be_read_or_evaluated_is_an_error() {
    let mut scratch = Scratch::new("errors", BOOKS);
    for xpath in [
        "",
        "//",
        "a b",
        "a[",
        "a]",
        "(a",
        "'a",
        "a/",
        "$",
        "nowhere::a",
        "f(",
        "a | ",
        "1 +",
        "@",
        "..a",
        "a/f()",
        "::a",
        "!",
        "a:",
        "#",
    ] {
        let outcome = scratch.try_value(xpath);
        assert!(matches!(outcome, Err(DomError::Expression { .. })), "{xpath}: {outcome:?}");
    }
    for xpath in
        ["f()", "$x", "x:a", "count(1)", "count()", "1 | 2", "'a'/b", "not()", "substring('a')", "1[1]"]
    {
        let outcome = scratch.try_value(xpath);
        assert!(matches!(outcome, Err(DomError::Evaluation(_))), "{xpath}: {outcome:?}");
    }
    for (open, close) in [("(", ")"), ("a[", "]"), ("-", ""), ("not(", ")"), ("(a[", "])")] {
        let deep = |n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
        let outcome = scratch.try_value(&deep(10_000));
        assert!(matches!(outcome, Err(DomError::Expression { .. })), "{open}: {outcome:?}");
        scratch.try_value(&deep(if open == "(a[" { 99 } else { 199 })).unwrap();
    }
    // Operators of one rank are a list, however many.
    assert_eq!(scratch.shown(&format!("1{}", " + 1".repeat(20_000))), "20001");
    let steps = "/..".repeat(20_000);
    assert_eq!(scratch.shown(&format!("count(.{steps})")), "0");
    let document = scratch.dom.document_node(&mut scratch.session).unwrap().unwrap();
    let few = Surroundings { nodes_max: 10, ..Surroundings::default() };
    let all = XPath::parse("//*").unwrap();
    let outcome = scratch.dom.evaluate(&mut scratch.session, &all, document, &few);
    assert!(matches!(outcome, Err(DomError::TooManyNodes(10))));
}

/// Appends an element with elements in it.
fn random_element(seed: &mut u64, depth: usize, out: &mut String) {
    let mut below = |bound: u64| {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % bound
    };
    let (name, number, count) = (["a", "b", "c"][below(3) as usize], below(4), below(4));
    out.push_str(&format!("<{name} n='{number}'>t"));
    for _ in 0..count {
        if depth < 4 {
            random_element(seed, depth + 1, out);
        }
    }
    out.push_str(&format!("</{name}>"));
}

#[test]
fn laws_of_axes_and_indices_hold() {
    let seed = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut seed = seed.unwrap_or_else(|| u64::from(std::process::id()) * 7919 + 17);
    println!("PERILUNE_SEED={seed}");
    let mut scratch = Scratch::new("laws", "<a/>");
    for _ in 0..30 {
        let mut xml = String::new();
        random_element(&mut seed, 0, &mut xml);
        scratch.parse(&xml);
        // Moving a node makes numbers differ from the order of the document.
        let elements = scratch.dom.select(&mut scratch.session, "/*/*").unwrap();
        if let (Some(&first), Some(root)) =
            (elements.first(), scratch.dom.document_element(&mut scratch.session).unwrap())
        {
            scratch.dom.append_child(&mut scratch.session, root, first).unwrap();
        }
        // The index gives what a walk gives; [true()] keeps the walk from the index.
        for tail in
            ["a", "b[1]", "b[last()]", "c[@n > 1][2]", "@n", "@n[. = 2]", "a[b]/c", "a/ancestor::b[1]"]
        {
            let walk = format!("/descendant-or-self::node()[true()]/{tail}");
            let indexed = scratch.try_value(&format!("//{tail}")).unwrap();
            assert_eq!(indexed, scratch.try_value(&walk).unwrap(), "{tail} in {xml}");
        }
        // Each node is an ancestor, a descendant, before, behind, or the node itself, and never two of them.
        let all = scratch.dom.select(&mut scratch.session, "//node() | /").unwrap();
        for &node in &all {
            let mut parts = Vec::new();
            for axis in ["ancestor", "descendant", "preceding", "following", "self"] {
                let xpath = XPath::parse(&format!("{axis}::node()")).unwrap();
                let value =
                    scratch.dom.evaluate(&mut scratch.session, &xpath, node, &Surroundings::default());
                let XPathValue::Nodes(items) = value.unwrap() else { panic!("no nodes") };
                parts.extend(items.into_iter().map(|item| match item {
                    XPathItem::Node(node) => node,
                    XPathItem::Namespace { .. } => panic!("a namespace"),
                }));
            }
            parts.sort();
            let mut sorted = all.clone();
            sorted.sort();
            assert_eq!(parts, sorted, "{xml}");
        }
    }
}

/// Sorting by paths took as many looks at each node as it is deep: 20,000 deep was more than an evaluation may take.
#[test]
fn a_deep_document_is_sorted_by_one_walk() {
    let deep = 5_000;
    let mut scratch = Scratch::new("deep", &format!("{}{}", "<a>".repeat(deep), "</a>".repeat(deep)));
    let document = DomNode::from_number(1);
    let few = Surroundings { nodes_max: 60 * deep, ..Surroundings::default() };
    let xpath = XPath::parse("count(//*[not(@x)])").unwrap();
    let count = scratch.dom.evaluate(&mut scratch.session, &xpath, document, &few).unwrap();
    assert_eq!(count, XPathValue::Number(deep as f64));
}
