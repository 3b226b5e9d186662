-- perilune.yottadb: the API of lua-yottadb 3.0 over Perilune.
--
-- A program that says `ydb = require 'yottadb'` ports by saying `require 'perilune.yottadb'`. Names, string
-- results, limits and error strings are lua-yottadb's; its defects are not. What differs on purpose and
-- what needs M is in docs/guide/from-lua-yottadb.md; the contract is docs/reference/lua-yottadb.md.
--
-- Nothing here touches the program's globals, and no database is opened before the first call that needs one.

-- Taken now: the names may be the program's own later.
local error, getmetatable, pairs, select, table, tonumber, type, unpack = error, getmetatable, pairs, select, table, tonumber, type, unpack

require 'perilune' -- first: it says where _perilune.yottadb is
local core = require '_perilune.yottadb'
local low = require 'perilune.yottadb.low'
local constants = require 'perilune.yottadb.constants'
local keys = require 'perilune.yottadb.key'
local node = require 'perilune.yottadb.node'
local text = require 'perilune.yottadb.text'
local transactions = require 'perilune.yottadb.transactions'
local tree = require 'perilune.yottadb.tree'

local UNIMPLOP = -150373858

local M = {
  _VERSION = '3.0',
  YDB_CI_PARAM_TYPES = constants.types,
  DELETE = tree.DELETE,
  _node = node,
  _key = keys.key,
  _key_properties = keys.properties,
  get = core.get,
  set = core.set,
  data = core.data,
  incr = core.incr,
  kill = core.kill,
  delete_tree = core.kill,
  lock_incr = core.lock_incr,
  lock_decr = core.lock_decr,
  grab = core.lock_incr,
  release = core.lock_decr,
  node_next = core.node_next,
  node_previous = core.node_previous,
  subscript_next = core.subscript_next,
  subscript_previous = core.subscript_previous,
  str2zwr = low.str2zwr,
  zwr2str = low.zwr2str,
  tp = transactions.tp,
  transaction = transactions.transaction,
  init = low.init,
  block_M_signals = low.block_M_signals,
  ydb_eintr_handler = low.ydb_eintr_handler,
}
for name, value in pairs(constants.constants) do
  M[name] = value
end

-- Deletes the node's value, as set(..., nil); a last true deletes the tree.
function M.delete_node(...)
  core.delete(...)
end

-- The entry `i` of the list that lock() gets, as a node: a node, or {varname[, {subs}][, sub...]}.
local function lock_entry(entry, i)
  if core.isaddress(entry) then return entry end
  if type(entry) == 'table' and type(entry[1]) == 'string' then
    return core.create(nil, (table.unpack or unpack)(entry, 1, #entry))
  end
  error("bad argument #1 to 'lock' (table expected, got " .. type(entry) .. ' as entry ' .. i
    .. ' of the table of node specifiers: entries are nodes or tables {varname, subscript...})', 3)
end

-- Releases all locks, then takes those of the list, all or none; `timeout` in seconds. A number alone, a timeout of
-- nothing to wait for, takes none.
function M.lock(nodes, timeout)
  local is_alone = timeout == nil
  if is_alone and (nodes == nil or type(nodes) == 'number') then return core.lock() end
  if type(nodes) ~= 'table' then
    local wanted = is_alone and 'table/number/nil' or 'table'
    error("bad argument #1 to 'lock' (" .. wanted .. ' expected, got ' .. type(nodes) .. ')', 2)
  end
  if not is_alone and type(timeout) ~= 'number' then
    error("bad argument #2 to 'lock' (number expected, got " .. type(timeout) .. ')', 2)
  end
  local list = {}
  for i = 1, #nodes do
    list[i] = lock_entry(nodes[i], i)
  end
  core.lock(list, timeout)
end

-- Goes through the siblings after (before) the node that is given; of a name, through the names.
function M.subscripts(...)
  local count, reverse = select('#', ...), nil
  local listed = type((select(2, ...))) == 'table' and 1 or 0
  local last = count > 1 + listed and select(count, ...) or nil
  local given = count > 1 + listed
  if given and (last == nil or type(last) == 'boolean' or (type(last) == 'number' and not core.isaddress((...)))) then
    reverse, count = last, count - 1
  elseif given and not core.isaddress((...)) then
    error('bad argument #' .. count .. " to 'subscripts' (number/boolean expected, got " .. type(last) .. ')', 2)
  end
  local base = core.create(nil, (table.unpack or unpack)({...}, 1, count))
  local step = reverse and core.subscript_previous or core.subscript_next
  if core.depth(base) == 0 then
    local name = core.part(base, 0)
    return function()
      if name then name = step(name) end
      return name
    end, nil, ''
  end
  local sub = core.part(base, core.depth(base))
  local above = core.parent(base)
  return function()
    if sub then sub = step(above, sub) end
    return sub
  end, nil, ''
end

-- Ends the function of a transaction and runs the outermost one again.
function M.trestart()
  core.doom()
  error('YDB Error: ' .. M.YDB_TP_RESTART .. ': YDB_TP_RESTART', 0)
end

-- Ends the function of a transaction; nothing of it is written.
function M.trollback()
  error('YDB Error: ' .. M.YDB_TP_ROLLBACK .. ': YDB_TP_ROLLBACK', 0)
end

-- The number in an error's text, or nil.
function M.get_error_code(message)
  if type(message) ~= 'string' then
    error("bad argument #1 to 'get_error_code' (string expected, got " .. type(message) .. ')', 2)
  end
  return tonumber(message:match 'YDB Error: (-?%d+):')
end

-- Calling M routines is not possible: there is no M here.
function M.require()
  core.fail(UNIMPLOP, '%YDB-E-UNIMPLOP, yottadb.require imports routines of the M language, which Perilune does '
    .. 'not have: rewrite the M routine in Lua')
end

-- A node by name and subscripts, or from a node or key; always a new object of the class of nodes.
function M.node(first, ...)
  if type(first) ~= 'string' and not core.isaddress(first) then
    error('Parameter 1 must be varname (string) or a key/node object to create new node object from', 2)
  end
  return core.create(node, first, ...)
end

-- Whether `x` is a node, of any class made by inherit; keys are none.
function M.isnode(x)
  return core.isaddress(x) and getmetatable(x) ~= keys.key
end

-- A class made from that of the nodes which `node_func` makes: its function, the class, and that class.
function M.inherit(node_func, class)
  if type(node_func) ~= 'function' then
    error("bad argument #1 to 'inherit' (function expected, got " .. type(node_func) .. ')', 2)
  end
  if class ~= nil and type(class) ~= 'table' then
    error("bad argument #2 to 'inherit' (table/nil expected, got " .. type(class) .. ')', 2)
  end
  local sample = node_func 'tmp'
  if not core.isaddress(sample) then
    error("bad argument #1 to 'inherit' (function that returns a node expected)", 2)
  end
  local super = getmetatable(sample)
  class = class or {}
  for name, member in pairs(super) do
    if class[name] == nil and name ~= '__superclass' then class[name] = member end
  end
  class.__superclass = super
  -- Where the Lua has __pairs, pairs(n) is n:pairs() of this class, too.
  if class.pairs ~= super.pairs and class.__pairs == super.__pairs then class.__pairs = class.pairs end
  return function(...)
    return core.create(class, node_func(...))
  end, class, super
end

-- Deprecated: a key object.
function M.key(varname, subs, ...)
  if type(varname) ~= 'string' then
    error("bad argument #1 to 'key' (string expected, got " .. type(varname) .. ')', 2)
  end
  if subs ~= nil and type(subs) ~= 'table' then
    error("bad argument #2 to 'key' (table/nil expected, got " .. type(subs) .. ')', 2)
  end
  if select('#', ...) > 0 then
    error("bad argument #3 to 'key' (no further arguments expected: subscripts are a table)", 2)
  end
  return core.create(keys.key, varname, subs or {})
end

-- The tree as text: a line for each value, `maxlines` (30) at most.
function M.dump(first, ...)
  local second, third = ...
  if type(second) == 'table' then
    if third ~= nil and type(third) ~= 'number' then
      error("bad argument #3 to 'dump' (number/nil expected, got " .. type(third) .. ')', 2)
    end
    return text.dump(core.create(node, first, second), third, core.isaddress(first) and first or nil)
  end
  return text.dump(core.create(node, first, ...), nil, core.isaddress(first) and first or nil)
end

return M
