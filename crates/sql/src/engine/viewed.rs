//! Statements over views: which of them are choices of rows, and how such a statement finds the indexes of their tables.
//!
//! Invariant: a statement needs the rights that it needs as it was written, and its columns have the names that they have so: a
//! view shows what its maker may see.

use std::collections::HashMap;
use std::rc::Rc;

use perilune::Session;

use super::known::Known;
use super::prepared::{names_of, Prepared};
use super::Engine;
use crate::error::Result;
use crate::indexed::{with_views, Choice, Source};
use crate::limits::VIEWS_DEEP;
use crate::schema::Table;
use crate::token::{fold, tokens, Kind, Token};

/// A view as a table, and what it is called in a statement.
pub(super) type Documents = (Rc<Table>, Vec<String>);

impl Engine {
    /// The statement as it finds indexes through views, if it can, else as it is.
    pub(super) fn through_views(
        &self,
        session: &mut Session,
        plain: Prepared,
        mut documents: Vec<Documents>,
    ) -> Result<Prepared> {
        let tokens = tokens(&plain.text)?;
        let has_hidden = |table: &Rc<Table>| table.columns.iter().any(|column| column.is_hidden());
        let has_any = self.stage.tables.borrow().values().any(has_hidden);
        if !has_any || self.call_own_functions(&tokens) {
            return Ok(plain);
        }
        let views = self.choices(&tokens)?;
        if views.is_empty() {
            return Ok(plain);
        }
        // NB: what is in the place of a view has the view's name, and none of its indexes.
        let coded = self.with_code_indexes(session, &plain.text)?;
        let Some(viewed) = with_views(coded.as_ref().unwrap_or(&plain.text), &views)? else {
            return Ok(plain);
        };
        documents.extend(viewed.names.into_iter().map(|(table, name)| (table, vec![name])));
        match self.make(session, &plain.text, &viewed.sql, &documents) {
            Ok(found) if found.columns.len() == plain.columns.len() => Ok(Prepared {
                columns: plain.columns,
                touches: plain.touches,
                parameters: plain.parameters,
                ..found
            }),
            Err(error) if error.engine().is_some() => Err(error),
            _ => Ok(plain),
        }
    }

    /// Views of documents that the tokens name, as tables, and what they are called there.
    pub(super) fn documents_of_views(&self, named: &[Token<'_>]) -> Result<Vec<Documents>> {
        if !self.stage.tables.borrow().values().any(|table| table.has_documents()) {
            return Ok(Vec::new());
        }
        let views = self.choices(named)?;
        let mut found = Vec::new();
        for (at, token) in named.iter().enumerate() {
            let Some(name) = token.name().filter(|_| token.kind != Kind::Text) else { continue };
            let is_column = at > 0 && named[at - 1].is_sign(".");
            let view = views.get(&fold(&name)).filter(|view| !is_column && view.table.has_documents());
            found.extend(view.map(|view| (Rc::clone(&view.table), names_of(named, at))));
        }
        Ok(found)
    }

    /// The views among these names that are choices of rows, with those that they lie over.
    pub(super) fn choices(&self, named: &[Token<'_>]) -> Result<HashMap<String, Choice>> {
        let mut found = HashMap::new();
        for token in named.iter().filter(|token| token.kind != Kind::Text) {
            if let Some(name) = token.name() {
                self.choice(&fold(&name), &mut found, VIEWS_DEEP)?;
            }
        }
        Ok(found)
    }

    /// Looks at a view, and before that at the one that it lies over.
    fn choice(&self, name: &str, found: &mut HashMap<String, Choice>, deep: usize) -> Result<()> {
        let text = match self.known.borrow().get(name) {
            Some(Known::View(texts)) if deep > 0 && !found.contains_key(name) => texts.first().cloned(),
            _ => None,
        };
        let Some(text) = text else { return Ok(()) };
        for token in tokens(&text)? {
            if let Some(inner) = token.name().map(|inner| fold(&inner)).filter(|inner| inner != name) {
                self.choice(&inner, found, deep - 1)?;
            }
        }
        let source = |of: &str| match self.stage.tables.borrow().get(of) {
            Some(table) => Source::of(table).map(Some),
            None => Ok(found.get(of).map(Choice::source)),
        };
        if let Some(choice) = Choice::read(&text, &source)? {
            found.insert(name.to_owned(), choice);
        }
        Ok(())
    }
}
