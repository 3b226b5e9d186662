//! What SQLite is told of: tables, helpers and views of the catalog, when statements first name them.
//!
//! Invariants
//! - SQLite holds no data: what it knows are virtual tables and views, made here.
//! - What a statement that failed was told of meanwhile SQLite has forgotten, and so has this.

use std::rc::Rc;

use perilune::Session;

use super::Engine;
use crate::catalog;
use crate::computed::ROW_PREFIX;
use crate::error::{Error, Result, SqlState};
use crate::limits::OWN_VIEWS;
use crate::tables::{ROWS, TABLES};
use crate::token::{fold, quote, tokens, Kind, Token};

/// What is known of a name that statements have used.
#[derive(Clone)]
pub(super) enum Known {
    Nothing,
    Table,
    /// A helper of one row for the table of the name behind the prefix.
    Helper,
    /// Its CREATE VIEW, and those of its triggers.
    View(Vec<String>),
}

impl Engine {
    /// Ends the outermost statement: one that failed has taken back what SQLite was told of meanwhile.
    pub(super) fn forget_inside(&self, failed: bool) {
        let inside = self.declared_inside.take();
        if !failed || inside.is_empty() {
            return;
        }
        self.cache.borrow_mut().clear();
        for name in inside {
            self.known.borrow_mut().remove(&name);
            self.stage.tables.borrow_mut().remove(&name);
        }
    }

    /// Whether the tables that SQLite knows are those of the schema.
    pub(super) fn is_current(&self, session: &mut Session) -> Result<bool> {
        Ok(catalog::version(session, &self.version_node)? == self.version.get())
    }

    /// Makes sure, in the transaction that is open, that what is known of tables is what the schema has.
    pub(crate) fn keep_up(&self, session: &mut Session) -> Result<()> {
        if self.is_tentative.get() || !self.is_current(session)? {
            self.refresh(session)?;
        }
        Ok(())
    }

    /// Looks all tables up again that SQLite knows, and has it forget those that have changed.
    pub(crate) fn refresh(&self, session: &mut Session) -> Result<()> {
        let version = catalog::version(session, &self.version_node)?;
        self.cache.borrow_mut().clear();
        self.stage.notes.borrow_mut().clear();
        let known: Vec<(String, Known)> =
            self.known.borrow().iter().map(|(name, known)| (name.clone(), known.clone())).collect();
        let is_view = |known: &(String, Known)| matches!(known.1, Known::View(_));
        let (views, mut others): (Vec<_>, Vec<_>) = known.into_iter().partition(is_view);
        // NB: SQLite may have to make a helper again to drop it, and that takes its table.
        others.sort_by_key(|(_, known)| !matches!(known, Known::Helper));
        let is_other = self.refresh_tables(session, others).and_then(|mut is_other| {
            // A view names others, and tables: where SQLite has forgotten one, it is told again of all views.
            for (name, known) in &views {
                let Known::View(texts) = known else { continue };
                is_other |= self.view(session, name)?.as_ref() != Some(texts);
            }
            Ok(is_other)
        });
        // NB: an error may come between what SQLite has forgotten and what it is still to forget: a conflict, in a transaction.
        if !matches!(is_other, Ok(false)) {
            for (name, _) in views {
                self.declare(session, &format!("DROP VIEW {}", quote(&name)))?;
                self.known.borrow_mut().remove(&name);
            }
        }
        is_other?;
        self.version.set(version);
        if session.depth() == 0 {
            self.is_tentative.set(false);
        }
        Ok(())
    }

    /// Has SQLite forget the tables, helpers and functions that have changed; answers whether there were tables.
    fn refresh_tables(&self, session: &mut Session, known: Vec<(String, Known)>) -> Result<bool> {
        self.refresh_functions(session)?;
        let mut is_other = false;
        for (name, known) in known {
            match &known {
                Known::Nothing | Known::View(_) => {}
                Known::Table => {
                    let now = catalog::table(session, &name)?;
                    let before = self.stage.tables.borrow().get(&name).cloned();
                    if now.is_some() && now.as_ref() == before.as_deref() {
                        continue;
                    }
                    is_other = true;
                    self.declare(session, &format!("DROP TABLE {}", quote(&name)))?;
                    self.stage.tables.borrow_mut().remove(&name);
                }
                Known::Helper => {
                    self.declare(session, &format!("DROP TABLE {}", quote(&name)))?;
                }
            }
            self.known.borrow_mut().remove(&name);
        }
        Ok(is_other)
    }

    pub(super) fn declare(&self, session: &mut Session, sql: &str) -> Result<()> {
        let before = self.is_declaring.replace(true);
        let result = self.sqlite.execute(session, sql);
        self.is_declaring.set(before);
        result.map_err(|error| self.stage.take_error().unwrap_or_else(|| Error::of_sqlite(error)))
    }

    /// Tells SQLite of all tables, views and functions that the tokens name.
    pub(super) fn declare_named(&self, session: &mut Session, tokens: &[Token<'_>]) -> Result<()> {
        for token in tokens {
            if !matches!(token.kind, Kind::Word | Kind::Name | Kind::Text) || token.text.len() > 300 {
                continue;
            }
            if let Some(name) = token.name() {
                self.declare_name(session, &fold(&name))?;
            }
        }
        self.declare_functions(session, tokens)
    }

    pub(super) fn declare_name(&self, session: &mut Session, name: &str) -> Result<()> {
        if name.is_empty() || self.known.borrow().contains_key(name) {
            return Ok(());
        }
        let known = if let Some(table) = name.strip_prefix(ROW_PREFIX) {
            self.declare_name(session, table)?;
            self.declare(session, &format!("CREATE VIRTUAL TABLE {} USING {ROWS}", quote(name)))?;
            Known::Helper
        } else if let Some(table) = catalog::table(session, name)? {
            self.stage.tables.borrow_mut().insert(name.to_owned(), Rc::new(table));
            self.declare(session, &format!("CREATE VIRTUAL TABLE {} USING {TABLES}", quote(name)))?;
            Known::Table
        } else if let Some(texts) = self.view(session, name)? {
            // NB: before its own tables, lest two views that name each other go on for ever.
            self.known.borrow_mut().insert(name.to_owned(), Known::View(texts.clone()));
            for (at, sql) in texts.iter().enumerate() {
                self.declare_named(session, &tokens(sql)?)?;
                let sql = match at {
                    0 => sql.clone(),
                    _ => self.text_of_trigger(session, name, sql)?,
                };
                let coded = self.with_code_indexes(session, &sql)?;
                let sql = coded.unwrap_or(sql);
                let elements =
                    self.elements(&sql, &self.documents_of_views(&tokens(&sql)?)?)?.filter(|_| at == 0);
                let sql = elements.unwrap_or(sql);
                let exact = self.exact(&sql)?;
                self.declare(session, exact.as_deref().unwrap_or(&sql))?;
            }
            Known::View(texts)
        } else {
            Known::Nothing
        };
        if self.stage.is_running() && !matches!(known, Known::Nothing) {
            self.declared_inside.borrow_mut().push(name.to_owned());
        }
        self.known.borrow_mut().insert(name.to_owned(), known);
        Ok(())
    }

    /// Whether there is a temporary view of this name.
    pub(crate) fn has_own_view(&self, name: &str) -> bool {
        self.own_views.borrow().contains_key(&fold(name))
    }

    /// Keeps a temporary view.
    ///
    /// # Errors
    /// `LIMIT`, if there are many.
    pub(crate) fn add_own_view(&self, name: &str, sql: &str) -> Result<()> {
        let mut views = self.own_views.borrow_mut();
        if views.len() >= OWN_VIEWS {
            let what = format!("a connection has {OWN_VIEWS} temporary views at most: drop some");
            return Err(Error::new(SqlState::LIMIT, what));
        }
        views.insert(fold(name), sql.to_owned());
        Ok(())
    }

    /// Forgets a temporary view; false: there is none.
    pub(crate) fn drop_own_view(&self, name: &str) -> bool {
        self.own_views.borrow_mut().remove(&fold(name)).is_some()
    }

    /// The texts of a view and its triggers.
    fn view(&self, session: &mut Session, name: &str) -> Result<Option<Vec<String>>> {
        if let Some(sql) = self.own_views.borrow().get(name) {
            return Ok(Some(vec![sql.clone()]));
        }
        let Some(sql) = catalog::view(session, name)? else { return Ok(None) };
        let mut texts = vec![sql];
        texts.extend(catalog::view_triggers(session, name)?);
        Ok(Some(texts))
    }
}
