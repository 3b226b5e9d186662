//! Calls that read the links of nodes, and those that change them.

use perilune::Session;

use super::{done, Found, Given};
use crate::record::{link, text};
use crate::{Dom, DomNode, NodeKind, Result};

/// A link as it is stored; `None` where there is none.
fn linked(dom: &Dom, session: &mut Session, node: DomNode, field: &str) -> Result<Option<DomNode>> {
    match session.get(&dom.field(node, field)?)? {
        Some(value) => link(&value),
        None => Ok(None),
    }
}

fn field(dom: &Dom, session: &mut Session, node: DomNode, field: &str) -> Result<Option<String>> {
    Ok(session.get(&dom.field(node, field)?)?.map(|value| text(&value)))
}

fn kind(dom: &Dom, session: &mut Session, node: DomNode) -> Result<Option<NodeKind>> {
    let number = field(dom, session, node, "nodeType")?;
    Ok(number.and_then(|number| NodeKind::from_number(number.parse().ok()?)))
}

pub(super) fn links(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    match given.name {
        "firstChild" | "lastChild" | "previousSibling" | "nextSibling" => {
            let node = given.node()?;
            given.end()?;
            done(linked(dom, session, node, given.name)?)
        }
        "nodeName" | "nodeValue" | "publicId" | "systemId" => {
            let node = given.node()?;
            given.end()?;
            done(field(dom, session, node, given.name)?)
        }
        "nodeType" => {
            let node = given.node()?;
            given.end()?;
            done(kind(dom, session, node)?.map(NodeKind::number))
        }
        "parentNode" | "ownerElement" => {
            let node = given.node()?;
            given.end()?;
            dom.at_one_moment(session, |session| {
                let above = linked(dom, session, node, "parent")?;
                let is_attribute = kind(dom, session, node)? == Some(NodeKind::Attribute);
                done(above.filter(|_| is_attribute == (given.name == "ownerElement")))
            })
        }
        "childNodes" => {
            let node = given.node()?;
            given.end()?;
            done(dom.at_one_moment(session, |session| dom.children(session, node))?)
        }
        "textContent" => {
            let node = given.node()?;
            given.end()?;
            done(dom.at_one_moment(session, |session| dom.text_content(session, node))?)
        }
        "output" => {
            let node = given.optional_node()?;
            let indent = given.optional_size()?;
            given.end()?;
            let node = match node {
                Some(node) => node,
                None => match dom.document_node(session)? {
                    Some(node) => node,
                    None => return done(String::new()),
                },
            };
            done(match indent {
                Some(indent) => dom.node_to_xml_indented(session, node, indent)?,
                None => dom.node_to_xml(session, node)?,
            })
        }
        "contains" | "isEqualNode" | "compareDocumentPosition" => {
            let (node, other) = (given.node()?, given.node()?);
            given.end()?;
            match given.name {
                "contains" => done(dom.contains(session, node, other)?),
                "isEqualNode" => done(dom.is_equal_node(session, node, other)?),
                _ => done(i64::from(dom.compare_document_position(session, node, other)?)),
            }
        }
        _ => Ok(None),
    }
}

pub(super) fn changes(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    match given.name {
        "appendChild" | "insertBeforeChildren" => {
            let (parent, child) = (given.node()?, given.node()?);
            given.end()?;
            match given.name {
                "appendChild" => dom.append_child(session, parent, child)?,
                _ => dom.insert_before_children(session, parent, child)?,
            }
            done(child)
        }
        "removeChild" => {
            let (parent, child, for_good) = (given.node()?, given.node()?, given.truth()?);
            given.end()?;
            dom.atomically(session, |session| {
                dom.remove_child(session, parent, child)?;
                gone(dom, session, child, for_good)
            })
        }
        "insertBefore" => {
            let (parent, new, before) = (given.node()?, given.node()?, given.optional_node()?);
            given.end()?;
            dom.insert_before(session, parent, new, before)?;
            done(new)
        }
        "replaceChild" => {
            let (parent, new, old) = (given.node()?, given.node()?, given.node()?);
            given.end()?;
            dom.replace_child(session, parent, new, old)?;
            done(old)
        }
        "removeAsParent" => {
            let (node, for_good) = (given.node()?, given.truth()?);
            given.end()?;
            dom.atomically(session, |session| {
                dom.remove_as_parent(session, node)?;
                gone(dom, session, node, for_good)
            })
        }
        "delete" => {
            let node = given.node()?;
            given.end()?;
            done(dom.delete(session, node)?)
        }
        "cloneNode" => {
            let (node, deep) = (given.node()?, given.truth()?);
            given.end()?;
            done(dom.clone_node(session, node, deep)?)
        }
        "normalize" => {
            let node = given.node()?;
            given.end()?;
            done(dom.normalize(session, node)?)
        }
        "setNodeValue" | "setTextContent" => {
            let (node, text) = (given.node()?, given.text()?);
            given.end()?;
            match given.name {
                "setNodeValue" => done(dom.set_value(session, node, text)?),
                _ => done(dom.set_text_content(session, node, text)?),
            }
        }
        _ => Ok(None),
    }
}

/// The node that was taken from its parent; nothing if it is removed for good.
fn gone(dom: &Dom, session: &mut Session, node: DomNode, for_good: bool) -> Found {
    if for_good {
        return done(dom.delete(session, node)?);
    }
    done(node)
}
