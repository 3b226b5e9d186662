//! The chunk that a function is, around its body.
//!
//! Invariant: all that stands before the body is on its first line, so that errors name the lines of the body.

use perilune_sql::{Function, Shape};

/// Takes the rows of a group, and answers for them.
const FOLD: &str = "
local agg = made()
if type(agg) ~= 'table' or type(agg.step) ~= 'function' or type(agg.final) ~= 'function' then
  error('an aggregate returns {step = function, final = function}', 0)
end
local step, take, unpack, batch = agg.step, sql.take, unpack, sql.take()
while batch do
  for at = 2, batch[1] + 1, width do step(unpack(batch, at, at + width - 1)) end
  batch = take()
end
return agg.final()";

/// Gives the rows that an iterator or a list has.
const YIELD: &str = "
local give, unpack, type, width = sql.give, unpack, type, #columns
local function put(first, ...)
  if type(first) ~= 'table' then return give(first, ...) end
  local row = {}
  for i = 1, width do
    local value = first[i]
    if value == nil then value = first[columns[i]] end
    row[i] = value
  end
  return give(unpack(row, 1, width))
end
local each, state, at = made()
local function step(first, ...)
  if first == nil then return false end
  at = first
  put(first, ...)
  return true
end
if type(each) == 'function' then
  while step(each(state, at)) do end
elseif type(each) == 'table' then
  for i = 1, #each do put(each[i]) end
elseif each ~= nil then
  error('a function of rows returns an iterator, or a list of rows', 0)
end";

/// Calls a trigger for a change of a row, and answers the row where it may have changed it.
const CHANGE: &str = "
local rows = sql.take()
local new, old = rows.new, rows.old
if made(new, old) == false then return false end
if rows.may_change then return new end";

/// AlchemyDB's names for changes of an index that code keeps, of a table with a key of one column.
const INDEX_CALLS: &str = "\
local function entries(index) return '\"' .. index:gsub('\"', '\"\"') .. '\"' end \
local function alchemySetIndexByName(index, key, value) \
return SQL('INSERT OR IGNORE INTO ' .. entries(index) .. '(value, key) VALUES (?, ?)', value, key) end \
local function alchemyDeleteIndexByName(index, key, value) \
return SQL('DELETE FROM ' .. entries(index) .. ' WHERE value = ? AND key = ?', value, key) end \
local function alchemyUpdateIndexByName(index, key, old, new) \
alchemyDeleteIndexByName(index, key, old) return alchemySetIndexByName(index, key, new) end ";

/// The chunk, whose arguments are the parameters; names that the body does not have cost its calls nothing.
pub(super) fn source(function: &Function, names: &[(&str, &str)]) -> String {
    let mut source = String::new();
    let is_named = |name: &str| function.body.contains(name);
    let has_index_calls = is_named("IndexByName");
    if has_index_calls || is_named("SQL") {
        source += "local SQL = sql.run ";
    }
    for (_, statement) in names.iter().filter(|(name, _)| is_named(name)) {
        source += statement;
        source.push(' ');
    }
    if has_index_calls {
        source += INDEX_CALLS;
    }
    let has_arguments = matches!(function.shape, Shape::Value | Shape::Rows(_));
    if has_arguments && !function.parameters.is_empty() {
        source += &format!("local {} = ... ", function.parameters.join(", "));
    }
    let body = &function.body;
    match &function.shape {
        Shape::Value => source + body,
        Shape::Aggregate => {
            let width = function.parameters.len().max(1);
            format!("{source}local width = {width} local function made() {body}\nend{FOLD}")
        }
        Shape::Change => format!("{source}local function made(new, old) {body}\nend{CHANGE}"),
        Shape::Rows(columns) => {
            let columns = columns.join("', '");
            format!("{source}local columns = {{'{columns}'}} local function made() {body}\nend{YIELD}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_begins_on_its_first_line() {
        let mut function = Function {
            is_of_host: false,
            name: "f".into(),
            parameters: vec!["a".into(), "b".into()],
            shape: Shape::Value,
            is_deterministic: false,
            body: "return a".into(),
        };
        let names = [("alchemy", "local alchemy = client")];
        assert_eq!(source(&function, &names), "local a, b = ... return a");
        for shape in [Shape::Aggregate, Shape::Rows(vec!["x".into()])] {
            let chunk = source(&Function { shape, ..function.clone() }, &names);
            assert!(chunk.lines().next().is_some_and(|line| line.ends_with("return a")), "{chunk}");
        }
        function.body = "return SQL(alchemy(a))".into();
        let wanted = "local SQL = sql.run local alchemy = client local a, b = ... return SQL(alchemy(a))";
        assert_eq!(source(&function, &names), wanted);
    }
}
