//! What the planner asks a virtual table, whole: constraints, order, columns used; and the plan that answers it.
//!
//! The planner calls with the terms of a WHERE that fall on one table. The table says which of them it takes (they come back as
//! arguments of the cursor's filter, in the order of their numbers), what that costs, and whether its order will do.
//!
//! Invariants
//! - A constraint is taken once, and only if it is usable.
//! - Arguments have no affinity applied: who has SQLite omit its own check converts as SQLite would.

use std::ffi::{c_int, CStr, CString};
use std::marker::PhantomData;
use std::slice;

use libsqlite3_sys as ffi;

use crate::value::{read, ValueRef};

/// What a constraint compares by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`, also of an IN.
    Equal,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `IS`
    Is,
    /// `IS NULL`
    IsNull,
    /// `IS NOT NULL`
    IsNotNull,
    /// `LIMIT`, which has no column.
    Limit,
    /// `OFFSET`, which has no column.
    Offset,
    /// Another one.
    Other(u8),
}

/// A term that falls on the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The column; None: the rowid.
    pub column: Option<usize>,
    /// What it compares by.
    pub operator: Operator,
    /// Whether its right side is known by then.
    pub usable: bool,
}

/// A question of the planner, and its answer.
#[derive(Debug)]
pub struct IndexInfo<'a> {
    raw: *mut ffi::sqlite3_index_info,
    taken: c_int,
    lent: PhantomData<&'a ()>,
}

impl IndexInfo<'_> {
    /// # Safety
    /// `raw` is the question that xBestIndex was given, for as long as this lives.
    pub(crate) unsafe fn new(raw: *mut ffi::sqlite3_index_info) -> Self {
        IndexInfo { raw, taken: 0, lent: PhantomData }
    }

    fn info(&self) -> &ffi::sqlite3_index_info {
        // SAFETY: by `new`; nobody else writes while the callback runs.
        unsafe { &*self.raw }
    }

    fn info_mut(&mut self) -> &mut ffi::sqlite3_index_info {
        // SAFETY: by `new`.
        unsafe { &mut *self.raw }
    }

    /// The terms.
    #[must_use]
    pub fn constraints(&self) -> Vec<Constraint> {
        let count = usize::try_from(self.info().nConstraint).unwrap_or(0);
        if count == 0 {
            return Vec::new();
        }
        // SAFETY: SQLite gives that many.
        let terms = unsafe { slice::from_raw_parts(self.info().aConstraint, count) };
        let constraint = |term: &ffi::sqlite3_index_constraint| Constraint {
            column: usize::try_from(term.iColumn).ok(),
            operator: operator(term.op),
            usable: term.usable != 0,
        };
        terms.iter().map(constraint).collect()
    }

    /// The collation by which a constraint compares texts.
    #[must_use]
    pub fn collation(&self, constraint: usize) -> String {
        // SAFETY: the callback runs; SQLite checks the number. The name is copied.
        unsafe {
            let name = ffi::sqlite3_vtab_collation(self.raw, number(constraint));
            if name.is_null() {
                "BINARY".to_owned()
            } else {
                CStr::from_ptr(name).to_string_lossy().into_owned()
            }
        }
    }

    /// The right side of a constraint, if it is known when planning.
    #[must_use]
    pub fn right_side(&self, constraint: usize) -> Option<ValueRef<'_>> {
        let mut value = std::ptr::null_mut();
        // SAFETY: the callback runs; the value is lent until it ends.
        unsafe {
            let code = ffi::sqlite3_vtab_rhs_value(self.raw, number(constraint), &mut value);
            (code == ffi::SQLITE_OK && !value.is_null()).then(|| read(value))
        }
    }

    /// Whether a constraint `=` is an IN whose list can be had as a whole.
    #[must_use]
    pub fn is_list(&self, constraint: usize) -> bool {
        // SAFETY: the callback runs; -1 only asks.
        unsafe { ffi::sqlite3_vtab_in(self.raw, number(constraint), -1) != 0 }
    }

    /// Asks for the list of an IN as one argument ([`crate::Argument::list`]), or for one call for each of its values.
    pub fn take_whole_list(&mut self, constraint: usize, whole: bool) {
        // SAFETY: the callback runs.
        unsafe { ffi::sqlite3_vtab_in(self.raw, number(constraint), c_int::from(whole)) };
    }

    /// The order asked for: columns (None: the rowid), and whether it descends.
    #[must_use]
    pub fn order(&self) -> Vec<(Option<usize>, bool)> {
        let count = usize::try_from(self.info().nOrderBy).unwrap_or(0);
        if count == 0 {
            return Vec::new();
        }
        // SAFETY: SQLite gives that many.
        let terms = unsafe { slice::from_raw_parts(self.info().aOrderBy, count) };
        terms.iter().map(|term| (usize::try_from(term.iColumn).ok(), term.desc != 0)).collect()
    }

    /// What the order is for: 0 for rows in order, 1 for groups side by side, 2 for one row of each, 3 for that in order.
    #[must_use]
    pub fn distinct(&self) -> i32 {
        // SAFETY: the callback runs.
        unsafe { ffi::sqlite3_vtab_distinct(self.raw) }
    }

    /// The columns that the statement reads: a bit each, the highest for all from 63 on.
    #[must_use]
    pub fn columns_used(&self) -> u64 {
        self.info().colUsed
    }

    /// Takes a constraint: its right side is the next argument of the filter. `omit`: SQLite need not check it again.
    pub fn take(&mut self, constraint: usize, omit: bool) {
        let count = usize::try_from(self.info().nConstraint).unwrap_or(0);
        assert!(constraint < count, "there is no constraint {constraint}");
        self.taken += 1;
        let taken = self.taken;
        // SAFETY: SQLite gives a usage for each constraint.
        let usage = unsafe { &mut *self.info_mut().aConstraintUsage.add(constraint) };
        usage.argvIndex = taken;
        usage.omit = u8::from(omit);
    }

    /// Says what the cursor's filter is to be told, besides the arguments.
    pub fn plan(&mut self, number: i32, text: &str) {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        // SAFETY: SQLite copies the text and frees the copy, as told.
        unsafe {
            let copy = ffi::sqlite3_mprintf(c"%s".as_ptr(), text.as_ptr());
            let info = self.info_mut();
            info.idxNum = number;
            info.idxStr = copy;
            info.needToFreeIdxStr = c_int::from(!copy.is_null());
        }
    }

    /// Says what it costs, in units of about a row read, and how many rows come.
    pub fn cost(&mut self, cost: f64, rows: i64, is_unique: bool) {
        let info = self.info_mut();
        info.estimatedCost = cost;
        info.estimatedRows = rows;
        info.idxFlags = if is_unique { ffi::SQLITE_INDEX_SCAN_UNIQUE } else { 0 };
    }

    /// Says that the rows come in the order asked for.
    pub fn is_in_order(&mut self, is_in_order: bool) {
        self.info_mut().orderByConsumed = c_int::from(is_in_order);
    }
}

fn number(constraint: usize) -> c_int {
    c_int::try_from(constraint).unwrap_or(c_int::MAX)
}

fn operator(code: u8) -> Operator {
    match c_int::from(code) {
        ffi::SQLITE_INDEX_CONSTRAINT_EQ => Operator::Equal,
        ffi::SQLITE_INDEX_CONSTRAINT_GT => Operator::Greater,
        ffi::SQLITE_INDEX_CONSTRAINT_GE => Operator::GreaterEqual,
        ffi::SQLITE_INDEX_CONSTRAINT_LT => Operator::Less,
        ffi::SQLITE_INDEX_CONSTRAINT_LE => Operator::LessEqual,
        ffi::SQLITE_INDEX_CONSTRAINT_IS => Operator::Is,
        ffi::SQLITE_INDEX_CONSTRAINT_ISNULL => Operator::IsNull,
        ffi::SQLITE_INDEX_CONSTRAINT_ISNOTNULL => Operator::IsNotNull,
        ffi::SQLITE_INDEX_CONSTRAINT_LIMIT => Operator::Limit,
        ffi::SQLITE_INDEX_CONSTRAINT_OFFSET => Operator::Offset,
        _ => Operator::Other(code),
    }
}
