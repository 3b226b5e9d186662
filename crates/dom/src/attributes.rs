//! Attributes of elements, and the index of ids.
//!
//! Invariant: `by_id` names an element for each id that is in the document.

use perilune::Session;

use crate::characters::{check_name, check_text};
use crate::record::link;
use crate::{Dom, DomError, DomNode, NodeKind, Record, Result};

impl Dom {
    /// Sets an attribute of an element, new or not.
    ///
    /// # Errors
    /// `InvalidCharacter`; `IdExists` if `name` is `id` and another element has this one; `Hierarchy` if `element` is
    /// none; the database's.
    pub fn set_attribute(
        &self,
        session: &mut Session,
        element: DomNode,
        name: &str,
        value: &str,
    ) -> Result<()> {
        check_name(name)?;
        check_text(value, None)?;
        self.atomically(session, |session| {
            let record = self.record(session, element)?;
            if record.kind != NodeKind::Element {
                return Err(DomError::Hierarchy("only elements have attributes"));
            }
            if name == "id" && !value.is_empty() {
                match self.get_element_by_id(session, value)? {
                    Some(other) if other != element => return Err(DomError::IdExists(value.to_owned())),
                    _ => {}
                }
            }
            if let Some(attribute) = record.attribute(name) {
                if name == "id" {
                    self.forget_id(session, element, attribute)?;
                }
                session.set(&self.field(attribute, "nodeValue")?, value)?;
            } else {
                let new = Record { parent: Some(element), ..Record::new(NodeKind::Attribute, name, value) };
                let attribute = self.create(session, &new)?;
                session.set(&self.attribute(element, name)?, attribute.0)?;
            }
            if name == "id" && !value.is_empty() {
                session.set(&self.by_id(value)?, element.0)?;
            }
            Ok(())
        })
    }

    /// Removes an attribute; false if there was none.
    ///
    /// # Errors
    /// `NotFound`, the database's.
    pub fn remove_attribute(&self, session: &mut Session, element: DomNode, name: &str) -> Result<bool> {
        self.atomically(session, |session| {
            let Some(attribute) = self.record(session, element)?.attribute(name) else { return Ok(false) };
            self.erase_attribute(session, element, name, attribute)?;
            Ok(true)
        })
    }

    /// Whether an element has the attribute `name`.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn has_attribute(&self, session: &mut Session, element: DomNode, name: &str) -> Result<bool> {
        Ok(self.get_attribute_node(session, element, name)?.is_some())
    }

    /// The attribute `name` as a node.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn get_attribute_node(
        &self,
        session: &mut Session,
        element: DomNode,
        name: &str,
    ) -> Result<Option<DomNode>> {
        if name.is_empty() {
            return Ok(None);
        }
        match session.get(&self.attribute(element, name)?)? {
            Some(value) => link(&value),
            None => self.record(session, element).map(|_| None),
        }
    }

    /// Gives `attribute`, which belongs to no element, to `element`. An attribute of the same name is taken from it, as
    /// [`Dom::remove_attribute_node`] does, and returned.
    ///
    /// # Errors
    /// `InUse` if it is another element's; `IdExists`; `Hierarchy` for nodes of other kinds; the database's.
    pub fn set_attribute_node(
        &self,
        session: &mut Session,
        element: DomNode,
        attribute: DomNode,
    ) -> Result<Option<DomNode>> {
        self.atomically(session, |session| {
            let new = self.record(session, attribute)?;
            if new.kind != NodeKind::Attribute || self.record(session, element)?.kind != NodeKind::Element {
                return Err(DomError::Hierarchy("an attribute is set on an element"));
            }
            match new.parent {
                Some(owner) if owner == element => return Ok(None),
                Some(_) => return Err(DomError::InUse(attribute)),
                None => {}
            }
            let old = self.get_attribute_node(session, element, &new.name)?;
            if let Some(old) = old {
                self.remove_attribute_node(session, element, old)?;
            }
            let is_id = new.name == "id" && !new.value.is_empty();
            if is_id && self.get_element_by_id(session, &new.value)?.is_some() {
                return Err(DomError::IdExists(new.value));
            }
            session.set(&self.attribute(element, &new.name)?, attribute.0)?;
            session.set(&self.field(attribute, "parent")?, element.0)?;
            if is_id {
                session.set(&self.by_id(&new.value)?, element.0)?;
            }
            Ok(old)
        })
    }

    /// Takes `attribute` from `element`. It stays stored, to be set again; [`Dom::delete`] removes it for good.
    ///
    /// # Errors
    /// `NotFound` if it is no attribute of `element`; the database's.
    pub fn remove_attribute_node(
        &self,
        session: &mut Session,
        element: DomNode,
        attribute: DomNode,
    ) -> Result<()> {
        self.atomically(session, |session| {
            let record = self.record(session, attribute)?;
            if record.kind != NodeKind::Attribute || record.parent != Some(element) {
                return Err(DomError::NotFound(attribute));
            }
            if record.name == "id" {
                self.forget_id(session, element, attribute)?;
            }
            session.delete_value(&self.attribute(element, &record.name)?)?;
            session.delete_value(&self.field(attribute, "parent")?)?;
            Ok(())
        })
    }

    pub(crate) fn erase_attribute(
        &self,
        session: &mut Session,
        element: DomNode,
        name: &str,
        attribute: DomNode,
    ) -> Result<()> {
        if name == "id" {
            self.forget_id(session, element, attribute)?;
        }
        session.delete_value(&self.attribute(element, name)?)?;
        self.unindex(session, attribute, NodeKind::Attribute, name)?;
        Ok(session.delete_tree(&self.node(attribute)?)?)
    }

    /// Takes an id from the index; another element with the same one (a parsed text may have it twice) takes over.
    fn forget_id(&self, session: &mut Session, element: DomNode, attribute: DomNode) -> Result<()> {
        let id = self.record(session, attribute)?.value;
        if id.is_empty() || self.get_element_by_id(session, &id)? != Some(element) {
            return Ok(());
        }
        session.delete_value(&self.by_id(&id)?)?;
        for other in self.listed(session, &self.by_name(NodeKind::Attribute, "id")?)? {
            if other == attribute {
                continue;
            }
            let record = self.record(session, other)?;
            if let (true, Some(parent)) = (record.value == id, record.parent) {
                session.set(&self.by_id(&id)?, parent.0)?;
                break;
            }
        }
        Ok(())
    }
}
