//! Calls on elements: attributes by name, as nodes, and in namespaces.

use perilune::Session;

use super::{done, Found, Given};
use crate::{Dom, DomNode, NodeKind, Result};

pub(super) fn calls(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    match given.name {
        "getAttribute" | "hasAttribute" | "removeAttribute" | "getAttributeNode" => {
            let (element, name) = (given.node()?, given.text()?);
            given.end()?;
            match given.name {
                "getAttribute" => done(dom.at_one_moment(session, |session| {
                    let attribute = dom.get_attribute_node(session, element, name)?;
                    attribute.map(|node| Ok(dom.record(session, node)?.value)).transpose()
                })?),
                "hasAttribute" => done(dom.has_attribute(session, element, name)?),
                "removeAttribute" => done(dom.remove_attribute(session, element, name)?),
                _ => done(dom.get_attribute_node(session, element, name)?),
            }
        }
        "setAttribute" => {
            let (element, name, value) = (given.node()?, given.text()?, given.text()?);
            given.end()?;
            done(dom.set_attribute(session, element, name, value)?)
        }
        "setAttributeNode" | "removeAttributeNode" => {
            let (element, attribute) = (given.node()?, given.node()?);
            given.end()?;
            match given.name {
                "setAttributeNode" => done(dom.set_attribute_node(session, element, attribute)?),
                _ => {
                    dom.remove_attribute_node(session, element, attribute)?;
                    done(attribute)
                }
            }
        }
        "attributes" => {
            let element = given.node()?;
            given.end()?;
            let attributes = dom.record(session, element)?.attributes;
            done(attributes.into_iter().map(|(_, attribute)| attribute).collect::<Vec<_>>())
        }
        "getAttributes" => {
            let element = given.node()?;
            given.end()?;
            let pairs = dom.at_one_moment(session, |session| dom.get_attributes(session, element))?;
            done(pairs.into_iter().flat_map(|(name, value)| [name, value]).collect::<Vec<_>>())
        }
        "appendElement" => append_element(dom, session, given),
        _ => in_namespaces(dom, session, given),
    }
}

/// `appendElement(parent, tag, text, (name, value)...)`.
fn append_element(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    let (parent, tag) = (given.node()?, given.text()?);
    let text = given.optional_text()?.unwrap_or_default();
    let mut attributes = Vec::new();
    while !given.is_empty() {
        attributes.push((given.text()?, given.text()?));
    }
    done(dom.append_element(session, parent, tag, &attributes, text)?)
}

fn in_namespaces(dom: &Dom, session: &mut Session, given: &mut Given<'_>) -> Found {
    match given.name {
        "getAttributeNS" | "hasAttributeNS" | "removeAttributeNS" | "getAttributeNodeNS" => {
            let (element, namespace, local) = (given.node()?, given.optional_text()?, given.text()?);
            given.end()?;
            match given.name {
                "getAttributeNS" => done(dom.at_one_moment(session, |session| {
                    dom.get_attribute_ns(session, element, namespace, local)
                })?),
                "removeAttributeNS" => done(dom.remove_attribute_ns(session, element, namespace, local)?),
                name => {
                    let found = dom.at_one_moment(session, |session| {
                        dom.get_attribute_node_ns(session, element, namespace, local)
                    })?;
                    match name {
                        "hasAttributeNS" => done(found.is_some()),
                        _ => done(found),
                    }
                }
            }
        }
        "setAttributeNS" => {
            let (element, namespace) = (given.node()?, given.optional_text()?);
            let (name, value) = (given.text()?, given.text()?);
            given.end()?;
            done(dom.set_attribute_ns(session, element, namespace, name, value)?)
        }
        "lookupNamespaceURI" | "lookupPrefix" | "isDefaultNamespace" => {
            let (node, text) = (given.node()?, given.optional_text()?.unwrap_or_default());
            given.end()?;
            dom.at_one_moment(session, |session| match given.name {
                "lookupNamespaceURI" => done(dom.lookup_namespace_uri(session, node, text)?),
                "lookupPrefix" => done(dom.lookup_prefix(session, node, text)?),
                _ => done(dom.is_default_namespace(session, node, text)?),
            })
        }
        "namespaceURI" => {
            let node = given.node()?;
            given.end()?;
            done(dom.at_one_moment(session, |session| dom.namespace_uri(session, node))?)
        }
        "prefix" | "localName" => {
            let node = given.node()?;
            given.end()?;
            part_of_name(dom, session, node, given.name)
        }
        _ => Ok(None),
    }
}

fn part_of_name(dom: &Dom, session: &mut Session, node: DomNode, part: &str) -> Found {
    let record = dom.record(session, node)?;
    let named = matches!(record.kind, NodeKind::Element | NodeKind::Attribute);
    let part = if part == "prefix" { record.prefix() } else { record.local_name() };
    let result: Result<Option<String>> = Ok(Some(part.to_owned()).filter(|part| named && !part.is_empty()));
    done(result?)
}
