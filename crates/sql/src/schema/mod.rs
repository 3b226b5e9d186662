//! Tables as the rest of the crate sees them: columns, the key, indexes, constraints.
//!
//! A table is built from its CREATE TABLE (`definition`) and what the catalog adds: where its rows lie, which field of a record is
//! which column, indexes made later. It never changes: a change of the schema makes another one.
//!
//! Invariants
//! - `columns[i].field` is none for columns of the key, and otherwise unique for good: no column ever takes that of a dropped one.
//! - An index's key in the tree is its columns, then the table's key; a unique one without NULLs has the key as its value.

mod coded;
mod hidden;
mod usage;

pub(crate) use self::coded::CodeIndex;
pub(crate) use self::hidden::Computed;
pub(crate) use self::usage::{bucket, Usage, UsageKind};
use crate::decimal::{self, Digits};
use crate::function::Function;
use crate::rewrite::Piece;
use crate::value::{Affinity, Value};
use crate::wide;

/// How texts of a column are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collation {
    Binary,
    /// Letters of ASCII without case.
    NoCase,
    /// Blanks at the end do not count.
    RTrim,
    /// As subscripts of nodes.
    Node,
    /// As numbers of 128 bits.
    Wide,
}

impl Collation {
    /// Its name in SQL.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Collation::Binary => "BINARY",
            Collation::NoCase => "NOCASE",
            Collation::RTrim => "RTRIM",
            Collation::Node => "NODE",
            Collation::Wide => "U128",
        }
    }

    /// By its name.
    pub(crate) fn of(name: &str) -> Option<Collation> {
        let all = [Collation::Binary, Collation::NoCase, Collation::RTrim, Collation::Node, Collation::Wide];
        all.into_iter().find(|collation| collation.name().eq_ignore_ascii_case(name))
    }
}

/// What is done when a constraint does not hold, if the statement does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Resolution {
    #[default]
    Abort,
    Rollback,
    Fail,
    Ignore,
    Replace,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) declared: String,
    pub(crate) affinity: Affinity,
    pub(crate) collation: Collation,
    pub(crate) not_null: Option<Resolution>,
    /// An expression.
    pub(crate) default: Option<String>,
    /// The expression of a generated column.
    pub(crate) generated: Option<String>,
    /// What rows have that are older than the column.
    pub(crate) absent: Value,
    /// Which field of the record; none for a column of the key.
    pub(crate) field: Option<usize>,
    /// Where it stands in the text of its CREATE TABLE.
    pub(crate) span: (usize, usize),
    /// It is JSON that lies as nodes below the row.
    pub(crate) is_document: bool,
    /// It is a DECIMAL of these digits.
    pub(crate) decimal: Option<Digits>,
    /// Nobody sees it: it is what an index of a document's element holds.
    pub(crate) element: Option<Element>,
    /// Nobody sees it, and no row keeps it: it is computed of the row for indexes.
    pub(crate) computed: Option<Computed>,
}

impl Column {
    /// A value as the column stores it.
    pub(crate) fn store(&self, value: Value) -> Value {
        match self.decimal {
            Some(_) => decimal::stored(value),
            None if self.is_wide() => wide::stored(self.affinity.apply(value)),
            None => self.affinity.apply(value),
        }
    }

    /// Whether it is a U128.
    pub(crate) fn is_wide(&self) -> bool {
        wide::is_wide(&self.declared)
    }

    /// Whether the user has not made it.
    pub(crate) fn is_hidden(&self) -> bool {
        self.element.is_some() || self.computed.is_some()
    }

    /// Whether it says how rows are used: a user sees it, but not in `*`.
    pub(crate) fn is_usage(&self) -> bool {
        self.computed == Some(Computed::Usage)
    }
}

/// An element of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// Which column the document is.
    pub(crate) document: usize,
    pub(crate) path: Vec<String>,
}

/// What names a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Key {
    /// A number, perhaps also a column of the table.
    Rowid { column: Option<usize>, autoincrement: bool },
    /// Columns whose values are the subscripts of the row's node.
    Columns(Vec<usize>),
}

/// An index, or what keeps a UNIQUE.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Index {
    pub(crate) name: String,
    /// The name of its global, without `^`.
    pub(crate) root: String,
    pub(crate) columns: Vec<(usize, Collation)>,
    /// The column that says which rows it holds; none: all.
    pub(crate) condition: Option<usize>,
    pub(crate) unique: bool,
    pub(crate) resolution: Resolution,
    /// Whether it holds all rows, so that queries may use it.
    pub(crate) ready: bool,
    /// Rows for each value of the first column, of the first two, and so on, if ANALYZE has looked.
    pub(crate) rows_each: Vec<f64>,
}

impl Index {
    /// Whether it has an entry of a row whose computed columns are known.
    pub(crate) fn holds(&self, row: &[Value]) -> bool {
        self.condition.is_none_or(|condition| row[condition] == Value::Integer(1))
    }
}

/// What happens to rows that refer to one that goes or changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Referential {
    #[default]
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// A REFERENCES.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ForeignKey {
    pub(crate) columns: Vec<usize>,
    pub(crate) parent: String,
    /// Columns of the parent; none: its primary key.
    pub(crate) parent_columns: Vec<String>,
    pub(crate) on_delete: Referential,
    pub(crate) on_update: Referential,
}

/// A CHECK.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Check {
    /// As SQLite names it in an error: its name, or else its text.
    pub(crate) name: String,
    pub(crate) expression: String,
}

/// When a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    Before,
    After,
    /// On a view, where SQLite runs it.
    Instead,
}

/// What a trigger fires at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Insert,
    Update,
    Delete,
}

/// A trigger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trigger {
    pub(crate) name: String,
    pub(crate) timing: Timing,
    pub(crate) event: Event,
    /// Of UPDATE OF, in lower case; none: any.
    pub(crate) columns: Vec<String>,
    pub(crate) condition: Option<Piece>,
    /// Statements; none of one in another language.
    pub(crate) body: Vec<Piece>,
    /// What is called instead.
    pub(crate) script: Option<Function>,
}

/// Where a column of a table over nodes lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is a subscript of the row.
    Key,
    /// Below the row by these codes of subscripts; none: at the row itself.
    Below(Vec<u8>),
}

/// What a table over nodes knows besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Over {
    /// The codes of the subscripts that all rows have, behind the name of the global.
    pub(crate) prefix: Vec<u8>,
    /// By column.
    pub(crate) places: Vec<Place>,
    pub(crate) read_only: bool,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// The name of its global, without `^`.
    pub(crate) root: String,
    pub(crate) columns: Vec<Column>,
    /// The column of each field of a record; none for one that was dropped.
    pub(crate) fields: Vec<Option<usize>>,
    pub(crate) key: Key,
    /// What is done about a second row of a key.
    pub(crate) key_resolution: Resolution,
    pub(crate) indexes: Vec<Index>,
    pub(crate) checks: Vec<Check>,
    pub(crate) foreign_keys: Vec<ForeignKey>,
    /// Its indexes that are kept by code.
    pub(crate) code_indexes: Vec<CodeIndex>,
    /// It holds the entries of such an index of this table.
    pub(crate) entries_of: Option<String>,
    /// Tables that refer to it.
    pub(crate) children: Vec<String>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) strict: bool,
    /// How its rows are used, as far as indexes hold that.
    pub(crate) usage: Vec<Usage>,
    /// An INSERT may name columns that it has not, which it then gets.
    pub(crate) is_hashable: bool,
    /// It is a cache: rows may be evicted.
    pub(crate) evicts: bool,
    /// It lies over nodes that programs have made; none: its rows are records.
    pub(crate) over: Option<Over>,
    /// Its CREATE TABLE.
    pub(crate) sql: String,
    /// Pieces of that which SQLite does not know, by their places.
    pub(crate) cuts: Vec<(usize, usize)>,
    /// How many rows the planner takes it to have.
    pub(crate) rows: f64,
}

/// The hidden column that holds the key of a table without a rowid.
pub(crate) const KEY_COLUMN: &str = "%key";

impl Table {
    /// Which column has this name.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// Which column is what an index of this name of an element holds, `info.address.city`; it comes into being.
    pub(crate) fn add_element(&mut self, name: &str) -> Option<usize> {
        let mut parts = name.split('.').map(str::to_owned);
        let document = self.column(&parts.next()?).filter(|column| self.columns[*column].is_document)?;
        let path: Vec<String> = parts.collect();
        if path.is_empty() || path.iter().any(String::is_empty) {
            return None;
        }
        let name = format!("{}.{}", self.columns[document].name.to_ascii_lowercase(), path.join("."));
        let known = self.columns.iter().position(|column| column.name == name);
        Some(known.unwrap_or_else(|| {
            let element = Some(Element { document, path });
            let of = &self.columns[document];
            let column = Column {
                name,
                declared: String::new(),
                not_null: None,
                default: None,
                field: None,
                is_document: false,
                decimal: None,
                element,
                computed: None,
                ..of.clone()
            };
            self.columns.push(column);
            self.columns.len() - 1
        }))
    }

    /// Whether rows have documents.
    pub(crate) fn has_documents(&self) -> bool {
        self.columns.iter().any(|column| column.is_document)
    }

    /// The columns of the key.
    pub(crate) fn key_columns(&self) -> &[usize] {
        match &self.key {
            Key::Rowid { column, .. } => column.as_slice(),
            Key::Columns(columns) => columns,
        }
    }

    /// The columns of the PRIMARY KEY, which may be kept by an index; without one those of the first UNIQUE.
    pub(crate) fn primary_key(&self) -> Vec<usize> {
        let key = self.key_columns();
        let unique = self.indexes.first().filter(|index| key.is_empty() && index.unique);
        unique.map_or(key.to_vec(), |index| index.columns.iter().map(|(column, _)| *column).collect())
    }

    /// Whether rows are named by a number.
    pub(crate) fn has_rowid(&self) -> bool {
        matches!(self.key, Key::Rowid { .. })
    }

    /// Its CREATE TABLE without what SQLite does not know.
    pub(crate) fn plain_sql(&self) -> String {
        let (mut out, mut end) = (String::new(), 0);
        for (from, to) in &self.cuts {
            out.push_str(&self.sql[end..*from]);
            end = *to;
        }
        out.push_str(&self.sql[end..]);
        out
    }

    /// What SQLite is told of it.
    pub(crate) fn declaration(&self) -> String {
        let mut columns: Vec<String> = self.columns.iter().map(declaration).collect();
        let tail = if self.has_rowid() {
            ")".to_owned()
        } else {
            columns.push(format!("\"{KEY_COLUMN}\" BLOB HIDDEN"));
            format!(", PRIMARY KEY(\"{KEY_COLUMN}\")) WITHOUT ROWID")
        };
        format!("CREATE TABLE x({}{tail}", columns.join(", "))
    }
}

fn declaration(column: &Column) -> String {
    let collation = match column.collation {
        Collation::Binary => String::new(),
        other => format!(" COLLATE {}", other.name()),
    };
    // NB: the word HIDDEN in a type hides a column.
    let declared = column.declared.split_whitespace().filter(|word| !word.eq_ignore_ascii_case("hidden"));
    let declared = declared.collect::<Vec<_>>().join(" ");
    // NB: SQLite takes JSON for a number's type.
    let declared = match (column.is_document, &column.element) {
        (true, _) => "",
        // Nothing is converted: of no type it would be a number's.
        (_, Some(_)) => "BLOB HIDDEN",
        _ if column.computed.is_some() => match column.affinity {
            Affinity::Integer => "INT HIDDEN",
            Affinity::Real => "REAL HIDDEN",
            Affinity::Numeric => "NUM HIDDEN",
            Affinity::Text => "TEXT HIDDEN",
            Affinity::Blob => "BLOB HIDDEN",
        },
        // Of a type that it does not know SQLite would make numbers.
        _ if column.is_wide() => "U128 TEXT",
        _ => &declared,
    };
    format!("{} {declared}{collation}", crate::token::quote(&column.name))
}
