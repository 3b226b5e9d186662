//! Statements from texts: prepared once, kept in a cache.
//!
//! Invariant: a statement that runs is not in the cache; one that calls itself gets another copy.

use std::collections::HashSet;
use std::rc::Rc;

use perilune::Session;
use perilune_sqlite::Statement;

use super::known::Known;
use super::viewed::Documents;
use super::Engine;
use crate::computed::ROW_PREFIX;
use crate::conflict::means;
use crate::elements::{with_elements, Named};
use crate::error::{Error, Result, SqlState};
use crate::exact::{casts, with_exact};
use crate::indexed::{with_code_indexes, with_indexes};
use crate::limits::STATEMENTS;
use crate::rewrite::{take_apart, with_limit, Pieces};
use crate::schema::{Table, KEY_COLUMN};
use crate::stage::Frame;
use crate::terms::Touch;
use crate::token::{fold, is_keyword, quote, tokens, Kind, Token};
use crate::value::Value;

/// A prepared statement.
pub(super) struct Prepared {
    /// What the user wrote.
    pub(super) text: String,
    pub(super) statement: Statement<Session>,
    pub(super) columns: Vec<String>,
    pub(super) frame: Frame,
    pub(super) reads: bool,
    /// What it does to which tables, by itself.
    pub(super) touches: Vec<Touch>,
    /// Answers the rows that it has changed.
    pub(super) returning: Option<String>,
    /// How many parameters it has, with those of its pieces.
    pub(super) parameters: usize,
    /// It did not fit into a brief transaction.
    pub(super) is_large: bool,
}

impl Prepared {
    pub(super) fn new(text: &str, statement: Statement<Session>, frame: Frame) -> Prepared {
        let columns = (0..statement.column_count()).map(|at| statement.column_name(at)).collect();
        let (reads, parameters) = (statement.is_reading(), statement.parameter_count());
        let frame = Frame { writes: !reads, ..frame };
        Prepared {
            text: text.to_owned(),
            statement,
            columns,
            frame,
            reads,
            touches: Vec::new(),
            returning: None,
            parameters,
            is_large: false,
        }
    }

    /// Binds parameters, which also its pieces may use.
    pub(super) fn bind(&mut self, parameters: &[Value]) -> Result<()> {
        if parameters.len() != self.parameters {
            let what = format!(
                "the statement has {} parameters, and {} were given",
                self.parameters,
                parameters.len()
            );
            return Err(Error::new(SqlState::PARAMETER, what));
        }
        for (at, parameter) in parameters.iter().enumerate().take(self.statement.parameter_count()) {
            self.statement.bind(at + 1, parameter.as_ref())?;
        }
        if self.returning.is_some() || !self.frame.upserts.is_empty() {
            self.frame.parameters = Rc::new(parameters.to_vec());
        }
        Ok(())
    }
}

impl Engine {
    /// A prepared statement, from the cache or new.
    pub(super) fn take(&self, session: &mut Session, sql: &str) -> Result<Prepared> {
        if let Some((text, mut prepared)) = self.cache.borrow_mut().remove_entry(sql) {
            prepared.text = text;
            return Ok(prepared);
        }
        let named = tokens(sql)?;
        self.declare_named(session, &named)?;
        let documents = self.documents_of_views(&named)?;
        let plain = self.make(session, sql, sql, &documents)?;
        self.through_views(session, plain, documents)
    }

    /// Prepares what is run for what a user has written, with the rights that this needs.
    pub(super) fn make(
        &self,
        session: &mut Session,
        written: &str,
        sql: &str,
        documents: &[Documents],
    ) -> Result<Prepared> {
        let coded = self.with_code_indexes(session, sql)?;
        let sql = coded.as_deref().unwrap_or(sql);
        let indexed = self.with_indexes(session, sql)?;
        let sql = indexed.as_deref().unwrap_or(sql);
        let elements = self.elements(sql, documents)?;
        let sql = elements.as_deref().unwrap_or(sql);
        let exact = self.exact(sql)?;
        let sql = exact.as_deref().unwrap_or(sql);
        let tokens = tokens(sql)?;
        let pieces = take_apart(sql, &tokens)?;
        let plain = pieces.as_ref().map_or(sql, |pieces| &pieces.sql);
        let limited = self.limited(plain)?;
        let plain = limited.as_deref().unwrap_or(plain);
        self.touches.take();
        let prepared = self.prepare(session, plain);
        let touches = self.touches.take();
        let (statement, end) = prepared.map_err(|error| located(self.of_code_index(error), &tokens))?;
        let Some(statement) = statement else {
            return Err(Error::new(SqlState::SYNTAX, "there is no statement"));
        };
        let end = if pieces.is_some() || limited.is_some() { sql.len() } else { end };
        if let Some(other) = tokens.iter().find(|token| token.at >= end && !token.is_sign(";")) {
            let what = "another statement follows: run one at a time, or all as a script";
            return Err(Error::new(SqlState::SYNTAX, what).at(other.at));
        }
        let frame = Frame { omitted: Rc::new(self.omitted(&tokens)), ..Frame::default() };
        let mut prepared = Prepared::new(written, statement, frame);
        prepared.touches = touches;
        if let Some(mut pieces) = pieces {
            self.check_targets(written, &mut pieces)?;
            prepared.parameters = prepared.parameters.max(pieces.parameters);
            prepared.frame.upserts = Rc::new(pieces.upserts);
            let target = self.target(&tokens)?;
            if crate::graphs::has(&target) {
                let what = format!(
                    "{target} has no RETURNING and no ON CONFLICT: use last_insert_rowid(), OR REPLACE"
                );
                return Err(Error::new(SqlState::REFUSED, what));
            }
            prepared.returning = pieces.returning.map(|list| {
                let helper = quote(&helper(&fold(&target)));
                format!("SELECT {list} FROM {helper} AS {}", quote(&target))
            });
        }
        Ok(prepared)
    }

    /// The statement with conditions on indexes that code keeps as searches of their entries, if it has any.
    pub(super) fn with_code_indexes(&self, session: &mut Session, sql: &str) -> Result<Option<String>> {
        let has_any = |table: &Rc<Table>| !table.code_indexes.is_empty();
        let asks_for_place = sql.as_bytes().windows(4).any(|word| word.eq_ignore_ascii_case(b".pos"));
        if !asks_for_place && !self.stage.tables.borrow().values().any(has_any) {
            return Ok(None);
        }
        let mut tables = self.stage.tables.borrow().clone();
        for (name, view) in self.choices(&tokens(sql)?)? {
            tables.entry(name).or_insert(view.table);
        }
        let coded = with_code_indexes(sql, &tables)?;
        if let Some(sql) = &coded {
            self.declare_named(session, &tokens(sql)?)?;
        }
        Ok(coded)
    }

    /// The error, with what to do, if it is about a function that stands for an index which code keeps.
    fn of_code_index(&self, error: Error) -> Error {
        let Some(name) = error.message().strip_prefix("no such function: ") else { return error };
        let tables = self.stage.tables.borrow();
        let with_index = |table: &Rc<Table>| {
            let index =
                table.code_indexes.iter().find(|index| index.function.eq_ignore_ascii_case(name))?.clone();
            Some((Rc::clone(table), index))
        };
        let Some((table, index)) = tables.values().find_map(with_index) else { return error };
        let key = table.primary_key();
        let key: Vec<&str> = key.iter().map(|at| &table.columns[*at].name[..]).collect();
        let what = format!(
            "{}: it stands for index {} in a WHERE or ON, of {} or of a view that chooses rows of it and shows {}",
            error.message(),
            index.name,
            table.name,
            key.join(", ")
        );
        Error::new(error.state(), what)
    }

    /// The statement with the columns of indexes on expressions, and of partial ones, if it can use any.
    fn with_indexes(&self, session: &mut Session, sql: &str) -> Result<Option<String>> {
        let has_any = |table: &Rc<Table>| table.has_computed();
        if !self.stage.tables.borrow().values().any(has_any) {
            return Ok(None);
        }
        let tokens = tokens(sql)?;
        // An index is on what the schema has by a name, which is not what the statement means.
        if self.call_own_functions(&tokens) {
            return Ok(None);
        }
        let tables = self.stage.tables.borrow().clone();
        let Some(indexed) = with_indexes(sql, &tokens, &tables)? else { return Ok(None) };
        for table in &indexed.computing {
            // Where no entry is at hand, the expression is computed: what for that is made now, and not while rows are read.
            self.declare_name(session, &helper(table))?;
        }
        Ok(Some(indexed.sql))
    }

    /// The statement with exact arithmetic on its decimals, if it has any.
    pub(super) fn exact(&self, sql: &str) -> Result<Option<String>> {
        let has_decimals = |table: &Rc<Table>| table.columns.iter().any(|column| column.decimal.is_some());
        let is_any = self.stage.tables.borrow().values().any(has_decimals);
        let tokens = tokens(sql)?;
        let casts = casts(&tokens);
        if !is_any && !casts {
            return Ok(None);
        }
        let names = self.decimals(&tokens, &mut HashSet::new())?;
        if names.is_empty() && !casts {
            return Ok(None);
        }
        Ok(Some(with_exact(sql, &tokens, names)?.sql))
    }

    /// The names of the columns of decimals of the tables and views that these tokens name; views are `seen` once.
    fn decimals(&self, named: &[Token<'_>], seen: &mut HashSet<String>) -> Result<HashSet<String>> {
        let mut names = HashSet::new();
        for token in named {
            let Some(name) = token.name().map(|name| fold(&name)) else { continue };
            let table = name.strip_prefix(ROW_PREFIX).unwrap_or(&name);
            if let Some(table) = self.stage.tables.borrow().get(table) {
                let decimals = table.columns.iter().filter(|column| column.decimal.is_some());
                names.extend(decimals.map(|column| fold(&column.name)));
            }
            let known = self.known.borrow().get(&name).cloned();
            if let Some((Known::View(texts), true)) = known.map(|known| (known, seen.insert(name))) {
                let text = texts.first().map_or("", |text| &text[..]);
                let tokens = tokens(text)?;
                let of_view = self.decimals(&tokens, seen)?;
                if !of_view.is_empty() {
                    names.extend(with_exact(text, &tokens, of_view)?.names);
                }
            }
        }
        Ok(names)
    }

    /// The statement with elements of documents as SQLite takes them, if it has any.
    pub(super) fn elements(&self, sql: &str, views: &[Documents]) -> Result<Option<String>> {
        let tokens = tokens(sql)?;
        let tables = self.stage.tables.borrow();
        // NB: those of views come first: a name that may be of either is then called by no index, which only the table has.
        let of_views = views.iter().map(|(table, names)| Named { table, names: names.clone() });
        let mut named: Vec<Named<'_>> = of_views.collect();
        for (at, token) in tokens.iter().enumerate() {
            let Some(name) = token.name().filter(|_| token.kind != Kind::Text) else { continue };
            let name = fold(&name);
            let Some(table) = tables.get(name.strip_prefix(ROW_PREFIX).unwrap_or(&name)) else { continue };
            if at > 0 && tokens[at - 1].is_sign(".") || !table.has_documents() && named.is_empty() {
                continue;
            }
            named.push(Named { table, names: names_of(&tokens, at) });
        }
        Ok(with_elements(sql, &tokens, &named))
    }

    /// The statement with the rows of its LIMIT chosen by a query, if it changes rows and has one.
    fn limited(&self, sql: &str) -> Result<Option<String>> {
        let tokens = tokens(sql)?;
        let changes = |token: &Token<'_>| token.is("update") || token.is("delete");
        if !tokens.iter().any(changes) || !tokens.iter().any(|token| token.is("limit")) {
            return Ok(None);
        }
        let Ok(target) = self.target(&tokens) else { return Ok(None) };
        let table = self.stage.tables.borrow().get(&fold(&target)).cloned();
        let Some(table) = table else { return Ok(None) };
        let key = if table.has_rowid() { "rowid".to_owned() } else { quote(KEY_COLUMN) };
        Ok(with_limit(sql, &tokens, &key))
    }

    /// Takes what the ON CONFLICTs of a statement are about as the user has written it, and fails where that is no constraint.
    fn check_targets(&self, written: &str, pieces: &mut Pieces) -> Result<()> {
        if pieces.upserts.is_empty() {
            return Ok(());
        }
        let tokens = tokens(written)?;
        let own = take_apart(written, &tokens)?.map(|own| own.upserts).unwrap_or_default();
        let table = self.stage.tables.borrow().get(&fold(&self.target(&tokens)?)).cloned();
        for (upsert, own) in pieces.upserts.iter_mut().zip(own) {
            upsert.target = own.target;
            let (Some(target), Some(table)) = (&upsert.target, &table) else { continue };
            let mut is_any = means(target, table, None)?;
            for index in table.indexes.iter().filter(|index| index.unique) {
                is_any |= means(target, table, Some(index))?;
            }
            if !is_any {
                let what = "ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint";
                return Err(Error::new(SqlState::DEFINITION, what));
            }
        }
        Ok(())
    }

    /// The name of the table that a statement changes.
    fn target(&self, tokens: &[Token<'_>]) -> Result<String> {
        let verb = tokens.iter().position(|token| token.is("into") || token.is("update") || token.is("from"));
        let mut at = verb.map_or(0, |verb| verb + 1);
        if tokens.get(at).is_some_and(|token| token.is("or")) {
            at += 2;
        }
        if tokens.get(at + 1).is_some_and(|token| token.is_sign(".")) {
            at += 2;
        }
        let name = tokens.get(at).and_then(Token::name);
        name.ok_or_else(|| Error::new(SqlState::SYNTAX, "expected the name of a table"))
    }

    fn prepare(&self, session: &mut Session, sql: &str) -> Result<(Option<Statement<Session>>, usize)> {
        let prepared = self.sqlite.prepare(session, sql);
        prepared.map_err(|error| self.stage.take_error().unwrap_or_else(|| Error::of_sqlite(error)))
    }

    pub(super) fn put(&self, mut prepared: Prepared) {
        let mut cache = self.cache.borrow_mut();
        if cache.len() >= STATEMENTS {
            // Any will do: what is used often comes back at once.
            if let Some(other) = cache.keys().next().cloned() {
                cache.remove(&other);
            }
        }
        cache.insert(std::mem::take(&mut prepared.text), prepared);
    }

    /// The columns that an INSERT does not name.
    fn omitted(&self, tokens: &[Token<'_>]) -> Vec<usize> {
        let into = tokens
            .windows(2)
            .position(|two| two[0].is("into") && matches!(two[1].kind, Kind::Word | Kind::Name));
        let Some(mut at) = into.map(|into| into + 1) else { return Vec::new() };
        if tokens.get(at + 1).is_some_and(|token| token.is_sign(".")) {
            at += 2;
        }
        let Some(name) = tokens.get(at).and_then(Token::name) else { return Vec::new() };
        let Some(table) = self.stage.tables.borrow().get(&fold(&name)).cloned() else { return Vec::new() };
        at += 1;
        if tokens.get(at).is_some_and(|token| token.is("as")) {
            at += 2;
        }
        let all = 0..table.columns.len();
        if tokens.get(at).is_some_and(|token| token.is("default")) {
            return all.collect();
        }
        if !tokens.get(at).is_some_and(|token| token.is_sign("(")) {
            return Vec::new();
        }
        let named = tokens[at + 1..].iter().take_while(|token| !token.is_sign(")")).filter_map(Token::name);
        let named: Vec<String> = named.map(|name| fold(&name)).collect();
        all.filter(|column| !named.contains(&fold(&table.columns[*column].name))).collect()
    }
}

/// What a table or a view, whose name this token is, may be called: so, and by an alias.
pub(super) fn names_of(tokens: &[Token<'_>], at: usize) -> Vec<String> {
    let has_as = tokens.get(at + 1).is_some_and(|next| next.is("as"));
    let alias = tokens.get(at + 1 + usize::from(has_as));
    let is_alias =
        |token: &&Token<'_>| matches!(token.kind, Kind::Word | Kind::Name) && (has_as || !is_keyword(token));
    let alias = alias.filter(is_alias).and_then(Token::name);
    tokens[at].name().into_iter().chain(alias).map(|name| fold(&name)).collect()
}

/// The error, with the place of the name that it ends in, if SQLite has told none.
fn located(error: Error, tokens: &[Token<'_>]) -> Error {
    let said = error.message().strip_prefix("no such function: ").and_then(|rest| rest.split(':').next());
    let name = said.or_else(|| error.message().rsplit(": ").next()).unwrap_or("");
    let is_it = |token: &&Token<'_>| token.name().is_some_and(|other| other.eq_ignore_ascii_case(name));
    match tokens.iter().find(is_it).map(|token| token.at) {
        Some(at) if error.position().is_none() => error.at(at),
        _ => error,
    }
}

fn helper(name: &str) -> String {
    format!("{ROW_PREFIX}{name}")
}
