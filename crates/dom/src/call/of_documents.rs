//! Calls on a document: parsing, new nodes, lists, XPath.

use perilune::{Node, Session, Value};

use super::given::Argument;
use super::{done, Answer, Found, Given};
use crate::{
    Dom, DomError, DomNode, ParseOptions, Result, Surroundings, Whitespace, XPath, XPathItem, XPathValue,
};

pub(super) fn calls(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    match given.name {
        "documentNode" | "documentElement" | "doctype" => {
            given.end()?;
            done(match given.name {
                "documentNode" => dom.document_node(session)?,
                "documentElement" => dom.document_element(session)?,
                _ => dom.document_type(session)?,
            })
        }
        "getElementById" => {
            let id = given.text()?;
            given.end()?;
            done(dom.get_element_by_id(session, id)?)
        }
        "getElementsByTagName" => {
            let (top, name) = (given.node()?, given.text()?);
            given.end()?;
            done(dom.get_elements_by_tag_name(session, top, name)?)
        }
        "getElementsByTagNameNS" => {
            let (top, namespace, local) = (given.node()?, given.optional_text()?, given.text()?);
            given.end()?;
            done(dom.get_elements_by_tag_name_ns(session, top, namespace, local)?)
        }
        "evaluate" => evaluate(dom, session, given),
        "parse" => parse(dom, session, given),
        "check" => {
            given.end()?;
            let faults = dom.check(session)?.into_iter().map(|fault| match fault.node {
                Some(node) => format!("node {}: {}", node.number(), fault.what),
                None => fault.what,
            });
            done(faults.collect::<Vec<_>>())
        }
        "parseJSON" => {
            let json = given.text()?;
            given.end()?;
            done(dom.parse_json(session, json)?)
        }
        "outputAsJSON" => {
            let element = given.optional_node()?;
            given.end()?;
            done(dom.to_json(session, element)?)
        }
        "createDocument" | "removeDocument" => {
            given.end()?;
            match given.name {
                "createDocument" => done(dom.create_document(session)?),
                _ => done(dom.remove_document(session)?),
            }
        }
        "importNode" | "adoptNode" => {
            let (from, node) = (Dom::at(Node::parse(given.text()?)?), given.node()?);
            let deep = given.name == "importNode" && given.truth()?;
            given.end()?;
            done(match given.name {
                "importNode" => dom.import_node(session, &from, node, deep)?,
                _ => dom.adopt_node(session, &from, node)?,
            })
        }
        _ => create(dom, session, given),
    }
}

fn create(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    match given.name {
        "createElement" | "createTextNode" | "createComment" | "createCDATASection" => {
            let text = given.text()?;
            given.end()?;
            done(match given.name {
                "createElement" => dom.create_element(session, text)?,
                "createTextNode" => dom.create_text(session, text)?,
                "createComment" => dom.create_comment(session, text)?,
                _ => dom.create_cdata(session, text)?,
            })
        }
        "createAttribute" | "createProcessingInstruction" => {
            let (name, value) = (given.text()?, given.optional_text()?.unwrap_or_default());
            given.end()?;
            done(match given.name {
                "createAttribute" => dom.create_attribute(session, name, value)?,
                _ => dom.create_processing_instruction(session, name, value)?,
            })
        }
        "createElementNS" => {
            let (namespace, name) = (given.optional_text()?, given.text()?);
            given.end()?;
            done(dom.create_element_ns(session, namespace, name)?)
        }
        "createXMLDeclaration" => {
            let version = given.optional_text()?.unwrap_or("1.0");
            let encoding = given.optional_text()?.unwrap_or("utf-8");
            given.end()?;
            done(dom.create_xml_declaration(session, version, encoding)?)
        }
        "createDocumentType" => {
            let (name, public, system) = (given.text()?, given.optional_text()?, given.optional_text()?);
            given.end()?;
            done(dom.create_document_type(session, name, public, system)?)
        }
        _ => Ok(None),
    }
}

/// `parse(xml, option...)`: the options by their names.
fn parse(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    let xml = given.text()?;
    let mut options = ParseOptions::default();
    while !given.is_empty() {
        match given.optional_text()? {
            None => {}
            Some("trim") => options.whitespace = Whitespace::Trim,
            Some("replace") => options.replace = true,
            Some("keepExternalDtd") => options.keep_external_dtd = true,
            Some(other) => {
                let known = "trim, replace, keepExternalDtd";
                return Err(DomError::Call(format!("parse has no option {other:?}; it has {known}")));
            }
        }
    }
    done(dom.parse(session, xml, &options)?)
}

/// `evaluate(node, expression, (what, name, value)...)`: what is `namespace`, `variable` or `limit`.
fn evaluate(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    let (node, xpath) = (given.node()?, XPath::parse(given.text()?)?);
    let mut around = Surroundings::default();
    while !given.is_empty() {
        let (what, name) = (given.text()?, given.text()?);
        match what {
            "namespace" => {
                around.namespaces.insert(name.to_owned(), given.text()?.to_owned());
            }
            "variable" => {
                around.variables.insert(name.to_owned(), variable(given.any())?);
            }
            "limit" if name == "nodes" => around.nodes_max = given.size()?,
            _ => {
                let known = "namespace, variable, and limit of nodes";
                return Err(DomError::Call(format!("evaluate knows {known}, not {what:?} {name:?}")));
            }
        }
    }
    done(match dom.evaluate(session, &xpath, node, &around)? {
        XPathValue::Number(number) => Answer::Value(Value::Double(number)),
        XPathValue::Text(text) => Answer::from(text),
        XPathValue::Boolean(truth) => Answer::from(truth),
        XPathValue::Nodes(items) => Answer::Nodes(items.into_iter().filter_map(stored).collect()),
    })
}

/// The node of an item; namespaces are not stored.
fn stored(item: XPathItem) -> Option<DomNode> {
    match item {
        XPathItem::Node(node) => Some(node),
        XPathItem::Namespace { .. } => None,
    }
}

fn variable(given: Argument<'_>) -> Result<XPathValue> {
    Ok(match given {
        Argument::Text(text) => XPathValue::Text(text.to_owned()),
        Argument::Int(number) => XPathValue::Number(number as f64),
        Argument::Double(number) => XPathValue::Number(number),
        Argument::Bool(truth) => XPathValue::Boolean(truth),
        Argument::Nothing => return Err(DomError::Call("evaluate: a variable needs a value".to_owned())),
    })
}
