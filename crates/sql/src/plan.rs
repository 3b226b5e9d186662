//! How rows are found: by the key, by an index, or all of them.
//!
//! SQLite asks with the terms of a WHERE that fall on one table. Candidates are the table's own order and each index; each takes
//! the longest run of `=` from its first column on, then a range; the cheapest wins. What was decided travels to the cursor as a
//! text that EXPLAIN QUERY PLAN shows, a sign for each argument and then the index: `=> city` is "equal, then greater, by city".
//!
//! Invariants
//! - A constraint is taken only if its texts are compared as the index orders them.
//! - Arguments come without affinity. Where an argument's type leaves open how SQLite compares (a number against texts, anything
//!   against a column of no type), the candidate is *loose*: SQLite checks again, and neither order nor LIMIT are promised.
//! - LIMIT and OFFSET are taken only if all else is done, since SQLite offers them with a unique `=`, too.

use perilune_sqlite::{Constraint, IndexInfo, Operator, ValueRef};

use crate::schema::{Collation, Index, Key, Table};
use crate::value::Affinity;

/// A component of a candidate's order.
#[derive(Clone, Copy)]
struct Component {
    /// None: the rowid.
    column: Option<usize>,
    affinity: Affinity,
    collation: Collation,
    /// It is an element of a document, or computed, of which statements ask only with values.
    is_element: bool,
}

/// A way to the rows.
#[derive(Default)]
struct Candidate {
    /// 0: the table itself; else the index behind it.
    number: usize,
    taken: Vec<(usize, char)>,
    equal: usize,
    is_list: bool,
    is_range: bool,
    is_loose: bool,
    is_covering: bool,
    in_order: bool,
    descends: bool,
    is_unique: bool,
    rows: f64,
    cost: f64,
}

/// Signs of arguments, as the cursor reads them.
pub(crate) const EQUAL: char = '=';
pub(crate) const LIST: char = 'i';
pub(crate) const NULL: char = 'n';
pub(crate) const GREATER: char = '>';
pub(crate) const GREATER_EQUAL: char = 'G';
pub(crate) const LESS: char = '<';
pub(crate) const LESS_EQUAL: char = 'L';
/// What a partial index is for: nothing is compared.
pub(crate) const WHERE: char = 'w';
pub(crate) const LIMIT: char = 'l';
pub(crate) const OFFSET: char = 'o';

/// Bits of a plan's number besides the candidate.
pub(crate) const COVERING: i32 = 1 << 16;
pub(crate) const DESCENDING: i32 = 1 << 17;
pub(crate) const LOOSE: i32 = 1 << 18;
/// Bits of a plan's number that are the candidate.
pub(crate) const NUMBER: i32 = COVERING - 1;

/// Answers the planner.
pub(crate) fn best_index(table: &Table, info: &mut IndexInfo<'_>) {
    let constraints = info.constraints();
    let order = info.order();
    // An index that holds some rows only serves a question that is about no others.
    let is_meant = |index: &Index| index.condition.is_none() || meant(index, &constraints).is_some();
    let ready = table.indexes.iter().enumerate().filter(|(_, index)| index.ready && is_meant(index));
    let numbers = std::iter::once(0).chain(ready.map(|(number, _)| number + 1));
    let mut best: Option<Candidate> = None;
    for number in numbers {
        let candidate = consider(table, info, &constraints, &order, number);
        // Another index than the table itself is worth nothing unless it narrows, or orders without fetching.
        let orders = candidate.in_order && (candidate.is_covering || orders_by_computed(table, &order));
        let is_worth = number == 0 || !candidate.taken.is_empty() || orders;
        if is_worth && best.as_ref().is_none_or(|best| candidate.cost < best.cost) {
            best = Some(candidate);
        }
    }
    let best = best.unwrap_or_default();
    answer(table, info, &constraints, !order.is_empty(), &best);
}

/// The term of a statement that says that it wants no rows but those which a partial index holds.
fn meant(index: &Index, constraints: &[Constraint]) -> Option<usize> {
    constraints.iter().position(|it| {
        it.usable && it.operator == Operator::Equal && it.column.is_some() && it.column == index.condition
    })
}

/// Whether sorting takes computing something for each row.
fn orders_by_computed(table: &Table, order: &[(Option<usize>, bool)]) -> bool {
    let is_computed = |column: usize| table.columns.get(column).is_some_and(|it| it.computed.is_some());
    order.iter().any(|(column, _)| column.is_some_and(is_computed))
}

/// What the order of a candidate is made of.
fn components(table: &Table, number: usize) -> Vec<Component> {
    let rowid = Component {
        column: None,
        affinity: Affinity::Integer,
        collation: Collation::Binary,
        is_element: false,
    };
    let own = |column: &usize| {
        let it = &table.columns[*column];
        let (affinity, collation, is_element) = (it.affinity, it.collation, it.is_hidden());
        Component { column: Some(*column), affinity, collation, is_element }
    };
    let key: Vec<Component> = match &table.key {
        Key::Rowid { .. } => vec![rowid],
        Key::Columns(columns) => columns.iter().map(own).collect(),
    };
    let Some(index) = number.checked_sub(1).map(|index| &table.indexes[index]) else { return key };
    let of_index =
        |(column, collation): &(usize, Collation)| Component { collation: *collation, ..own(column) };
    let indexed = index.columns.iter().map(of_index);
    // NB: entries of a unique index end in the row's key only if they have a NULL, so the key orders nothing there.
    if index.unique {
        indexed.collect()
    } else {
        indexed.chain(key).collect()
    }
}

/// Whether a column of a constraint or an order is the component's.
fn is_same(table: &Table, component: &Component, column: Option<usize>) -> bool {
    let own = |column: Option<usize>| match (&table.key, column) {
        (Key::Rowid { column: Some(key), .. }, Some(column)) if *key == column => None,
        (_, column) => column,
    };
    own(component.column) == own(column)
}

fn consider(
    table: &Table,
    info: &IndexInfo<'_>,
    constraints: &[Constraint],
    order: &[(Option<usize>, bool)],
    number: usize,
) -> Candidate {
    let components = components(table, number);
    let mut candidate = Candidate { number, ..Candidate::default() };
    for (position, component) in components.iter().enumerate() {
        if !take_equal(table, info, constraints, component, position, &mut candidate) {
            take_range(table, info, constraints, component, &mut candidate);
            break;
        }
        if candidate.is_list {
            break;
        }
    }
    let key = table.key_columns().len().max(1);
    let index = number.checked_sub(1).map(|index| &table.indexes[index]);
    if let Some(constraint) = index.and_then(|index| meant(index, constraints)) {
        candidate.taken.push((constraint, WHERE));
    }
    let columns = index.map_or(key, |index| index.columns.len());
    let is_unique = index.is_none_or(|index| index.unique) && candidate.equal >= columns;
    let has_null = candidate.taken.iter().any(|(_, sign)| *sign == NULL);
    candidate.is_unique = is_unique && !candidate.is_list && !candidate.is_loose && !has_null;
    candidate.is_covering = index.is_none_or(|index| covers(table, index, info.columns_used()));
    candidate.rows = rows(table, index, &candidate, is_unique);
    set_order(table, &components, order, &mut candidate);
    let each = match (number, candidate.is_covering) {
        (0, _) => 1.0,
        (_, true) => 1.2,
        _ => 2.5,
    };
    let sorting = if order.is_empty() || candidate.in_order {
        0.0
    } else {
        candidate.rows * (candidate.rows + 2.0).log2() * 0.3
    };
    let computing = if sorting > 0.0 && orders_by_computed(table, order) { 20.0 } else { 0.0 };
    candidate.cost = 1.0 + candidate.rows * (each + computing) + sorting;
    candidate
}

/// Whether texts of a constraint are compared as the component orders them.
fn is_comparable(info: &IndexInfo<'_>, constraint: usize, component: &Component) -> bool {
    component.column.is_none()
        || component.affinity.is_numeric() && component.collation == Collation::Binary
        || info.collation(constraint).eq_ignore_ascii_case(component.collation.name())
}

/// Whether what the constraint compares with may be compared otherwise than by the component's order.
fn is_open(info: &IndexInfo<'_>, constraint: usize, component: &Component) -> bool {
    match component.affinity {
        _ if component.is_element => false,
        Affinity::Integer | Affinity::Real | Affinity::Numeric => false,
        Affinity::Text => !matches!(info.right_side(constraint), Some(ValueRef::Text(_))),
        Affinity::Blob => info.right_side(constraint).is_none(),
    }
}

/// Takes an `=`, an IN or an IS NULL on the next component, if there is one.
fn take_equal(
    table: &Table,
    info: &IndexInfo<'_>,
    constraints: &[Constraint],
    component: &Component,
    position: usize,
    candidate: &mut Candidate,
) -> bool {
    for (index, constraint) in constraints.iter().enumerate() {
        let is_here = constraint.usable && is_same(table, component, constraint.column);
        let sign = match constraint.operator {
            Operator::Equal => EQUAL,
            Operator::IsNull => NULL,
            _ => continue,
        };
        if !is_here || !is_comparable(info, index, component) {
            continue;
        }
        // A whole list is taken where it alone decides: then rows come in the order of the key, each once.
        let is_list = sign == EQUAL && position == 0 && info.is_list(index);
        // In an index SQLite asks for each value by itself, where it is sure how values are compared.
        let is_whole = is_list && candidate.number == 0 && table.has_rowid();
        if is_list && !is_whole && (candidate.number == 0 || !component.is_element) {
            continue;
        }
        candidate.is_list |= is_list;
        candidate.is_loose |= sign == EQUAL && is_open(info, index, component);
        candidate.taken.push((index, if is_whole { LIST } else { sign }));
        candidate.equal += 1;
        return true;
    }
    false
}

/// Takes one bound of each side on a component.
fn take_range(
    table: &Table,
    info: &IndexInfo<'_>,
    constraints: &[Constraint],
    component: &Component,
    candidate: &mut Candidate,
) {
    let (mut low, mut high) = (false, false);
    for (index, constraint) in constraints.iter().enumerate() {
        if !constraint.usable || !is_same(table, component, constraint.column) {
            continue;
        }
        let (sign, side) = match constraint.operator {
            Operator::Greater => (GREATER, &mut low),
            Operator::GreaterEqual => (GREATER_EQUAL, &mut low),
            Operator::Less => (LESS, &mut high),
            Operator::LessEqual => (LESS_EQUAL, &mut high),
            _ => continue,
        };
        // NB: folded texts are equal where the collation says so, and in its order, too.
        if *side || !is_comparable(info, index, component) || is_open(info, index, component) {
            continue;
        }
        *side = true;
        candidate.is_range = true;
        candidate.taken.push((index, sign));
    }
}

/// Whether an entry of the index holds all columns that are asked for, as they are.
fn covers(table: &Table, index: &Index, used: u64) -> bool {
    (0..=table.columns.len()).filter(|column| used & 1 << (*column).min(63) != 0).all(|column| {
        if column == table.columns.len() {
            // `%key`, or a column from 63 on that is not there.
            return true;
        }
        if table.key_columns().contains(&column) {
            return !index.unique;
        }
        if index.condition == Some(column) {
            return true;
        }
        let it = &table.columns[column];
        // A computed column is compared and sorted by, never answered.
        let is_kept = it.affinity != Affinity::Blob || it.computed.is_some();
        is_kept && index.columns.contains(&(column, Collation::Binary)) && !index.unique
    })
}

fn rows(table: &Table, index: Option<&Index>, candidate: &Candidate, is_unique: bool) -> f64 {
    if candidate.is_list && index.is_none() {
        return 10.0;
    }
    let values = if candidate.is_list { 3.0 } else { 1.0 };
    if is_unique {
        return values;
    }
    let known = index.and_then(|index| index.rows_each.get(candidate.equal.checked_sub(1)?)).copied();
    let guess = || match candidate.equal {
        0 => table.rows,
        equal => table.rows / 1000.0 / 10_f64.powi(equal as i32 - 1),
    };
    let rows = known.unwrap_or_else(guess);
    let rows = values * if candidate.is_range { rows / 4.0 } else { rows };
    let is_partial = index.is_some_and(|index| index.condition.is_some());
    (if is_partial { rows / 10.0 } else { rows }).max(1.0)
}

/// Finds out whether rows come in the order asked for.
fn set_order(
    table: &Table,
    components: &[Component],
    order: &[(Option<usize>, bool)],
    candidate: &mut Candidate,
) {
    let Some((_, descends)) = order.first() else { return };
    candidate.descends = *descends;
    if candidate.is_unique {
        candidate.in_order = true;
        return;
    }
    let has_null_tail = candidate.number > 0 && table.indexes[candidate.number - 1].unique;
    let mut at = candidate.equal;
    candidate.in_order = !candidate.is_list && !candidate.is_loose;
    for (column, descends) in order {
        let is_fixed = components[..candidate.equal].iter().any(|it| is_same(table, it, *column));
        if is_fixed {
            continue;
        }
        let is_next = components.get(at).is_some_and(|component| {
            // SQLite asks for an order by the column's own collation.
            let collation = column.map_or(Collation::Binary, |column| table.columns[column].collation);
            let is_alike = component.collation == collation || component.affinity.is_numeric();
            is_same(table, component, *column) && is_alike
        });
        if !is_next || *descends != candidate.descends {
            candidate.in_order = false;
            return;
        }
        at += 1;
        if at == components.len() && !has_null_tail {
            // All of the key: no two rows are alike any more.
            return;
        }
    }
}

fn answer(
    table: &Table,
    info: &mut IndexInfo<'_>,
    constraints: &[Constraint],
    is_ordered: bool,
    best: &Candidate,
) {
    let mut text = String::new();
    for (constraint, sign) in &best.taken {
        let affinity = constraints[*constraint].column.and_then(|column| table.columns.get(column));
        // NB: behind a loose component nothing is narrowed.
        let is_exact = !best.is_loose && affinity.is_none_or(|column| column.affinity.is_numeric());
        if *sign == LIST {
            info.take_whole_list(*constraint, true);
        }
        info.take(*constraint, is_exact);
        text.push(*sign);
    }
    let is_bound =
        |constraint: &Constraint| matches!(constraint.operator, Operator::Limit | Operator::Offset);
    let is_taken = |index: usize| best.taken.iter().any(|(taken, _)| *taken == index);
    let all_done = constraints.iter().enumerate().all(|(index, it)| is_bound(it) || is_taken(index));
    let is_exact = !best.is_loose
        && !best.taken.iter().any(|(index, _)| {
            let column = constraints[*index].column.and_then(|column| table.columns.get(column));
            column.is_some_and(|column| !column.affinity.is_numeric())
        });
    let all_usable = constraints.iter().all(|constraint| constraint.usable || !is_bound(constraint));
    let is_in_parts = best.is_list && best.number > 0;
    if all_done
        && all_usable
        && is_exact
        && !is_in_parts
        && (!is_ordered || best.in_order)
        && info.distinct() == 0
    {
        for (index, constraint) in constraints.iter().enumerate() {
            let sign = match constraint.operator {
                Operator::Limit => LIMIT,
                Operator::Offset => OFFSET,
                _ => continue,
            };
            info.take(index, sign == OFFSET);
            text.push(sign);
        }
    }
    let covering = if best.number > 0 && best.is_covering { COVERING } else { 0 };
    let descending = if best.in_order && best.descends { DESCENDING } else { 0 };
    let loose = if best.is_loose { LOOSE } else { 0 };
    let name = best.number.checked_sub(1).map_or("PRIMARY KEY", |index| &table.indexes[index].name);
    let text = if text.is_empty() && best.number == 0 { String::new() } else { format!("{text} {name}") };
    info.plan(best.number as i32 | covering | descending | loose, &text);
    info.cost(best.cost, best.rows as i64, best.is_unique);
    info.is_in_order(is_ordered && best.in_order);
}
