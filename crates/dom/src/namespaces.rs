//! Namespaces, which are not stored: what a prefix stands for follows from the `xmlns` attributes above it.
//!
//! Example: in `<a xmlns:p="urn:x"><p:b/></a>` the namespace of `p:b` is `urn:x`, and changes with the attribute.
//!
//! Invariants
//! - What [`Dom::create_element_ns`] and [`Dom::set_attribute_ns`] make is in the namespace that was asked for: they
//!   declare what is not declared.
//! - No call of this module changes what another name means: a prefix that means something else is an error.
//! - An empty namespace is none, as `xmlns=""` says it.

use perilune::Session;

use crate::characters::{is_name, is_name_start};
use crate::record::text;
use crate::{Dom, DomError, DomNode, NodeKind, Record, Result};

/// What the prefix `xml` stands for, always.
pub const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of the attributes that declare namespaces.
pub const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// Prefix and local name of a qualified name that may be in `namespace`.
fn split<'a>(namespace: Option<&str>, name: &'a str) -> Result<(&'a str, &'a str)> {
    if !is_name(name) {
        return Err(DomError::InvalidCharacter(name.to_owned()));
    }
    let (prefix, local) = name.split_once(':').unwrap_or(("", name));
    let error = |what: &str| Err(DomError::Namespace(format!("{name:?}: {what}")));
    if name.starts_with(':') || local.contains(':') || !local.starts_with(is_name_start) {
        return error("a qualified name is prefix:name");
    }
    if !prefix.is_empty() && namespace.is_none() {
        return error("a name with a prefix needs a namespace");
    }
    if prefix == "xml" && namespace != Some(XML) {
        return error("the prefix xml stands for http://www.w3.org/XML/1998/namespace alone");
    }
    if (prefix == "xmlns" || name == "xmlns") != (namespace == Some(XMLNS)) {
        return error("xmlns and http://www.w3.org/2000/xmlns/ go together");
    }
    Ok((prefix, local))
}

/// The name of the attribute that declares `prefix`.
fn declaration(prefix: &str) -> String {
    if prefix.is_empty() {
        "xmlns".to_owned()
    } else {
        format!("xmlns:{prefix}")
    }
}

impl Dom {
    /// The element at which names of `node` get their meaning.
    fn scope(&self, session: &mut Session, node: DomNode) -> Result<Option<DomNode>> {
        let record = self.record(session, node)?;
        match record.kind {
            NodeKind::Element => Ok(Some(node)),
            NodeKind::Document => self.document_element(session),
            _ => Ok(record.parent),
        }
    }

    /// What `prefix` stands for at `node`; the empty prefix asks for the default namespace.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn lookup_namespace_uri(
        &self,
        session: &mut Session,
        node: DomNode,
        prefix: &str,
    ) -> Result<Option<String>> {
        match prefix {
            "xml" => return Ok(Some(XML.to_owned())),
            "xmlns" => return Ok(Some(XMLNS.to_owned())),
            _ => {}
        }
        let name = declaration(prefix);
        let mut at = self.scope(session, node)?;
        while let Some(element) = at {
            if let Some(attribute) = self.get_attribute_node(session, element, &name)? {
                let uri = session.get(&self.field(attribute, "nodeValue")?)?;
                return Ok(uri.map(|uri| text(&uri)).filter(|uri| !uri.is_empty()));
            }
            at = self.record(session, element)?.parent;
        }
        Ok(None)
    }

    /// A prefix that stands for `namespace` at `node`, not the empty one.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn lookup_prefix(
        &self,
        session: &mut Session,
        node: DomNode,
        namespace: &str,
    ) -> Result<Option<String>> {
        let mut at = self.scope(session, node)?;
        while let Some(element) = at.filter(|_| !namespace.is_empty()) {
            let record = self.record(session, element)?;
            for (name, _) in &record.attributes {
                let Some(prefix) = name.strip_prefix("xmlns:") else { continue };
                if self.lookup_namespace_uri(session, node, prefix)?.as_deref() == Some(namespace) {
                    return Ok(Some(prefix.to_owned()));
                }
            }
            at = record.parent;
        }
        Ok(None)
    }

    /// Whether names without a prefix are in `namespace` at `node`; the empty one is none.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn is_default_namespace(
        &self,
        session: &mut Session,
        node: DomNode,
        namespace: &str,
    ) -> Result<bool> {
        Ok(self.lookup_namespace_uri(session, node, "")?.unwrap_or_default() == namespace)
    }

    /// The namespace of an element or attribute. `None` for other nodes, and for a prefix that nothing declares.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn namespace_uri(&self, session: &mut Session, node: DomNode) -> Result<Option<String>> {
        let record = self.record(session, node)?;
        match (record.kind, record.prefix()) {
            (NodeKind::Attribute, "") if record.name == "xmlns" => Ok(Some(XMLNS.to_owned())),
            (NodeKind::Attribute, "") => Ok(None),
            (NodeKind::Element | NodeKind::Attribute, prefix) => {
                self.lookup_namespace_uri(session, node, prefix)
            }
            _ => Ok(None),
        }
    }

    /// Makes an element in `namespace`, which it declares by an attribute of its own. Without a namespace it takes the
    /// default one of where it is inserted, as [`Dom::create_element`]'s do.
    ///
    /// # Errors
    /// As [`Dom::create_element`]; `Namespace` if name and namespace do not go together.
    pub fn create_element_ns(
        &self,
        session: &mut Session,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<DomNode> {
        let namespace = namespace.filter(|uri| !uri.is_empty());
        let (prefix, _) = split(namespace, name)?;
        if namespace == Some(XMLNS) {
            return Err(DomError::Namespace("xmlns is for attributes".to_owned()));
        }
        self.atomically(session, |session| {
            let element = self.create_element(session, name)?;
            if let Some(uri) = namespace.filter(|_| prefix != "xml") {
                self.set_attribute(session, element, &declaration(prefix), uri)?;
            }
            Ok(element)
        })
    }

    /// The attribute with this local name in this namespace, as a node.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn get_attribute_node_ns(
        &self,
        session: &mut Session,
        element: DomNode,
        namespace: Option<&str>,
        local: &str,
    ) -> Result<Option<DomNode>> {
        let namespace = namespace.filter(|uri| !uri.is_empty());
        for (name, attribute) in self.record(session, element)?.attributes {
            let known = Record::new(NodeKind::Attribute, &name, "");
            if known.local_name() == local && self.namespace_uri(session, attribute)?.as_deref() == namespace
            {
                return Ok(Some(attribute));
            }
        }
        Ok(None)
    }

    /// The value of that attribute; `None` if there is none.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn get_attribute_ns(
        &self,
        session: &mut Session,
        element: DomNode,
        namespace: Option<&str>,
        local: &str,
    ) -> Result<Option<String>> {
        match self.get_attribute_node_ns(session, element, namespace, local)? {
            Some(attribute) => Ok(Some(self.record(session, attribute)?.value)),
            None => Ok(None),
        }
    }

    /// Sets an attribute in `namespace`, whatever prefix it had. A prefix that nothing declares is declared at `element`.
    ///
    /// # Errors
    /// As [`Dom::set_attribute`]; `Namespace` if name and namespace do not go together, the prefix stands for another one
    /// there, or there is none, without which an attribute is in no namespace.
    pub fn set_attribute_ns(
        &self,
        session: &mut Session,
        element: DomNode,
        namespace: Option<&str>,
        name: &str,
        value: &str,
    ) -> Result<()> {
        let namespace = namespace.filter(|uri| !uri.is_empty());
        let (prefix, local) = split(namespace, name)?;
        self.atomically(session, |session| {
            if let Some(uri) = namespace.filter(|uri| *uri != XMLNS) {
                if prefix.is_empty() {
                    let what = format!("{name:?}: an attribute is in a namespace by its prefix, give it one");
                    return Err(DomError::Namespace(what));
                }
                match self.lookup_namespace_uri(session, element, prefix)? {
                    None => self.set_attribute(session, element, &declaration(prefix), uri)?,
                    Some(known) if known == uri => {}
                    Some(known) => {
                        let what = format!("{prefix} stands for {known} here: choose another prefix");
                        return Err(DomError::Namespace(what));
                    }
                }
            }
            if let Some(old) = self.get_attribute_node_ns(session, element, namespace, local)? {
                let old = self.record(session, old)?.name;
                if old != name {
                    self.remove_attribute(session, element, &old)?;
                }
            }
            self.set_attribute(session, element, name, value)
        })
    }

    /// Removes the attribute with this local name in this namespace; false if there was none.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn remove_attribute_ns(
        &self,
        session: &mut Session,
        element: DomNode,
        namespace: Option<&str>,
        local: &str,
    ) -> Result<bool> {
        self.atomically(session, |session| {
            let found = self.get_attribute_node_ns(session, element, namespace, local)?;
            let Some(attribute) = found else { return Ok(false) };
            let name = self.record(session, attribute)?.name;
            self.remove_attribute(session, element, &name)
        })
    }
}
