-- Trees, ranges and comparisons of nodes, for functions that a program sends here to run as a transaction.
-- shipped_environment.lua has the other methods of nodes, shipped.lua runs the functions.
--
-- Each method answers what that of bindings/lua would answer in the program. Invariants
-- - Wrong arguments end the run here (`leave`); the program then runs the function itself and raises the error.
-- - What takes many steps is one level of the transaction: all of it or nothing.
--
-- It does not do: `dump`, the order of nodes (<). A function that uses them runs in the program.
local base, seen, run, query, marks, open_json = ...
local type, next, rawget, rawequal, select, unpack = type, next, rawget, rawequal, select, unpack
local setmetatable, getmetatable, find = setmetatable, getmetatable, string.find
local leave, parts, node_of, with, list_of = seen.leave, seen.parts, seen.node_of, seen.with, seen.list_of
local subscript_at, transaction, plain = seen.subscript_at, seen.transaction, seen.plain
local LEVELS_MAX = 255

local function integer(value, what)
  if type(value) ~= 'number' or value % 1 ~= 0 then leave('x', what .. ' is no integer') end
  return value
end

------------------------------------------------------------------------------------------------- walks

-- The next child: subscript, value, what lies there (as `data`); or nothing.
local function step(list, forward, at, inclusive, bound, to)
  local found = query('step', list, forward, at, inclusive, bound, to)
  if found == nil then return nil end
  return plain(found[1]), plain(found[2]), found[3]
end

local OPTIONS = {reverse = true, from = true, to = true, after = true, before = true}

local function end_of(range, inclusive, exclusive)
  local first, second = range[inclusive], range[exclusive]
  if first ~= nil and second ~= nil then leave('x', 'a range has ' .. inclusive .. ' and ' .. exclusive) end
  local value = second
  if value == nil then value = first end
  if value ~= nil and type(value) ~= 'string' and type(value) ~= 'number' then leave('x', 'a range ends at no subscript') end
  return value, second == nil
end

-- A function that steps through the children of a node: subscript, value, data.
local function steps(node, range)
  local list, forward, at, inclusive, bound, to = list_of(node), true, nil, false, nil, true
  if type(range) == 'boolean' then
    forward = not range
  elseif type(range) == 'table' then
    for key in next, range do
      if not OPTIONS[key] then leave('x', 'a range has an unknown option') end
    end
    forward = not range.reverse
    at, inclusive = end_of(range, 'from', 'after')
    bound, to = end_of(range, 'to', 'before')
  elseif range ~= nil then
    leave('x', 'a walk takes a range')
  end
  local ended = false
  return function()
    if ended then return nil end
    local value, data
    at, value, data = step(list, forward, at, inclusive, bound, to)
    inclusive, ended = false, at == nil
    return at, value, data
  end
end

function base.subscripts(node, range)
  local each = steps(node, range)
  return function() return (each()) end
end

function base.pairs(node, range)
  local each = steps(node, range)
  return function()
    local at, value = each()
    return at, value
  end
end

function base.children(node, range)
  local each, list, class = steps(node, range), list_of(node), parts[node].class
  return function()
    local at, value = each()
    if at ~= nil then return node_of(class, with(list, at)), value, at end
  end
end

function base.ipairs(node, first, last)
  local list = list_of(node)
  local at = first == nil and 1 or integer(first, 'the first of ipairs')
  local by = last ~= nil and integer(last, 'the last of ipairs') < at and -1 or 1
  return function()
    if at == nil or (last ~= nil and (at - last) * by > 0) then return nil end
    local value, number = query('get', with(list, at)), at
    at = value ~= nil and at + by or nil
    if value ~= nil then return number, value end
  end
end

-- All nodes with a value, depth first; backwards a node comes behind those below it.
function base.nodes(node, reverse)
  if type(reverse) == 'table' then leave('x', 'nodes takes no range') end
  local class, root, forward = parts[node] and parts[node].class, list_of(node), not reverse
  local levels, begun = {}, false
  local function enter(list, value, data)
    if data >= 10 then levels[#levels + 1] = {list = list, own = data % 10 == 1 and not forward, value = value} end
    if data % 10 == 1 and (forward or data < 10) then return node_of(class, list), value end
  end
  return function()
    if not begun then
      begun = true
      local found, value = enter(root, query('get', root), query('data', root))
      if found ~= nil then return found, value end
    end
    while #levels > 0 do
      local level = levels[#levels]
      local at, value, data = step(level.list, forward, level.at, false, nil, true)
      level.at = at
      local found
      if at ~= nil then
        found, value = enter(with(level.list, at), value, data)
      else
        levels[#levels] = nil
        if level.own then found, value = node_of(class, level.list), level.value end
      end
      if found ~= nil then return found, value end
    end
  end
end

function base.count(node, what)
  if what ~= nil and what ~= 'children' and what ~= 'nodes' then leave('x', "count takes 'children' or 'nodes'") end
  return query('count', list_of(node), what == 'nodes')
end

------------------------------------------------------------------------------------------------- names

function base.subscript(node, index)
  local list = list_of(node)
  index = index == nil and -1 or integer(index, 'the index of a subscript')
  if index < 0 then index = index + #list end
  if index < 1 or index >= #list then return nil end
  return subscript_at(list, index)
end

function base.parent(node, depth)
  local list = list_of(node)
  depth = depth == nil and #list - 2 or integer(depth, 'the depth of an ancestor')
  if depth < 0 or depth >= #list then return nil end
  local shorter = {}
  for i = 1, depth + 1 do shorter[i] = list[i] end
  return node_of(parts[node].class, shorter)
end

function base.contains(node, other)
  local above, below = list_of(node), list_of(other)
  if #above > #below or above[1] ~= below[1] then return false end
  for i = 1, #above - 1 do
    if subscript_at(above, i) ~= subscript_at(below, i) then return false end
  end
  return true
end

------------------------------------------------------------------------------------------------- values

local function comparable(value)
  local kind = type(value)
  if kind ~= 'nil' and kind ~= 'string' and kind ~= 'boolean' and not (kind == 'number' and value - value == 0) then
    leave('x', 'a node is compared with a ' .. kind)
  end
  return value
end

function base.cas(node, ...)
  if select('#', ...) < 2 then leave('x', 'cas takes two values') end
  local expected, desired = ...
  return query('cas', list_of(node), comparable(expected), comparable(desired)) == 1
end

local function graft(operation)
  return function(node, to)
    -- An error of it names the target.
    query(operation, list_of(to), unpack(list_of(node)))
    return to
  end
end

base.copy, base.merge = graft 'copy', graft 'merge'

local function entry_of(nodes, i)
  local node = nodes[i]
  if parts[node] == nil then leave('x', 'a list has something that is no node') end
  return node
end

local many = {}

function many.get_many(_, nodes)
  if type(nodes) ~= 'table' then leave('x', 'a list of nodes is expected') end
  local values = {}
  for i = 1, #nodes do values[i] = query('get', list_of(entry_of(nodes, i))) end
  return values
end

function many.set_many(_, nodes, values)
  if type(nodes) ~= 'table' or type(values) ~= 'table' then leave('x', 'lists of nodes and values are expected') end
  transaction(nil, nil, function()
    for i = 1, #nodes do base.set(entry_of(nodes, i), values[i]) end
  end)
end

many.set_each = many.set_many

-------------------------------------------------------------------------------------------------- JSON

local tojson, fromjson = open_json(query, with, function(what) leave('x', what) end)

function base.tojson(node) return tojson(list_of(node)) end

function base.fromjson(node, text)
  local list = list_of(node)
  if type(text) ~= 'string' then leave('x', 'fromjson takes text') end
  fromjson(list, text, function(f) transaction(nil, nil, f) end)
end

------------------------------------------------------------------------------------------------- trees

local function is_list(t) return rawequal(getmetatable(t), run.own.mark) end

-- Refuses a table with both 1 and '1', which are one subscript.
local function check_twin(tree, list, key)
  if type(key) ~= 'string' or not find(key, '^%-?%.?%d') then return end
  local number = query('subscript', with(list, key))
  if type(number) == 'number' and rawget(tree, number) ~= nil then leave('x', 'a table has a key twice') end
end

local store

-- Stores one value: a table is what lies below.
local function store_value(class, list, value, filter)
  if type(value) == 'table' then
    store(class, list, value, filter)
  elseif value == marks.DELETE then
    query('delete', list)
  elseif value == nil then
    leave('x', 'a tree has no value')
  else
    base.set(node_of(class, list), value)
  end
end

function store(class, list, tree, filter, is_root)
  if seen.failures[tree] then leave('x', 'an error is stored') end
  if next(tree) == nil then
    if not is_root then query(is_list(tree) and 'empty_list' or 'empty_map', list) end
    return
  end
  for key, value in next, tree do
    if filter ~= nil then key, value = filter(node_of(class, list), key, value) end
    if filter ~= nil and (key == nil or value == nil) then
      -- It is left out.
    elseif key == '__' then
      if type(value) == 'table' then leave('x', 'the value at __ is a table') end
      store_value(class, list, value)
    else
      if #list > LEVELS_MAX then leave('x', 'a table is too deep, or contains itself') end
      local below = with(list, key)
      check_twin(tree, list, key)
      store_value(class, below, value, filter)
    end
  end
end

local function check_filter(filter)
  if filter ~= nil and type(filter) ~= 'function' then leave('x', 'a filter is no function') end
end

function base.settree(node, tree, filter)
  local list = list_of(node)
  if type(tree) ~= 'table' then leave('x', 'settree takes a table') end
  check_filter(filter)
  transaction(nil, nil, function() store(parts[node].class, list, tree, filter, true) end)
end

-- The value as it stands in a table; that of an empty list or map, beside children, is none.
local function placed(value, into)
  if value ~= marks.empty_list and value ~= marks.empty_map then return value end
  if into then return nil end
  return value == marks.empty_list and setmetatable({}, run.own.mark) or {}
end

local function read(class, list, tree, level, most, filter)
  local at, value, data
  while true do
    at, value, data = step(list, true, at, false, nil, true)
    if at == nil then return end
    local into = data >= 10 and (most == nil or level < most)
    value = placed(value, into)
    local below = with(list, at)
    if filter ~= nil then
      local recurse
      value, recurse = filter(node_of(class, below), at, value, into, level)
      if recurse ~= nil then into = into and recurse and true end
    end
    if into then
      local branch = {}
      if value ~= nil then branch.__ = value end
      read(class, below, branch, level + 1, most, filter)
      tree[at] = branch
    elseif value ~= nil then
      tree[at] = value
    end
  end
end

function base.gettree(node, depth, filter)
  if type(depth) == 'function' and filter == nil then depth, filter = nil, depth end
  local list, class = list_of(node), parts[node].class
  if depth ~= nil and integer(depth, 'the depth of gettree') < 0 then leave('x', 'the depth of gettree is below 0') end
  check_filter(filter)
  local data = query('data', list)
  if data == 0 then return nil end
  local stored, tree = query('get', list), {}
  local value = placed(stored, true)
  if filter ~= nil then value = (filter(node, '', value, data >= 10, 0)) end
  if stored == marks.empty_list and data == 1 then setmetatable(tree, run.own.mark) end
  if value ~= nil then tree.__ = value end
  if data >= 10 and depth ~= 0 then read(class, list, tree, 1, depth, filter) end
  return tree
end

return many
