-- The low-level module `_yottadb`: the functions by name that programs of lua-yottadb call directly.
--
-- Functions that need the M language or its signals raise, or do nothing where that is harmless.

-- Taken now: the names may be the program's own later.
local error, getmetatable, select, type = error, getmetatable, select, type

require 'perilune' -- first: it says where _perilune.yottadb is
local core = require '_perilune.yottadb'
require 'perilune.yottadb.special'
local constants = require 'perilune.yottadb.constants'
local text = require 'perilune.yottadb.text'
local transactions = require 'perilune.yottadb.transactions'
local zwrite = require 'perilune.yottadb.zwrite'

local UNIMPLOP = -150373858

-- A function that explains that it needs M.
local function without_M(what)
  return function()
    core.fail(UNIMPLOP, '%YDB-E-UNIMPLOP, ' .. what
      .. ' needs the M language, which Perilune does not have: rewrite the M routine in Lua')
  end
end

local low = {
  _VERSION = '3.0',
  YDB_CI_PARAM_TYPES = constants.types,
  get = core.get,
  set = core.set,
  delete = core.delete,
  data = core.data,
  incr = core.incr,
  lock = core.lock,
  lock_incr = core.lock_incr,
  lock_decr = core.lock_decr,
  tp = transactions.tp,
  subscript_next = core.subscript_next,
  subscript_previous = core.subscript_previous,
  node_next = core.node_next,
  node_previous = core.node_previous,
  delete_excl = transactions.delete_excl,
  str2zwr = zwrite.str2zwr,
  zwr2str = zwrite.zwr2str,
  message = core.message,
  ci_tab_open = without_M 'ci_tab_open',
  cip = without_M 'cip',
  register_routine = without_M 'register_routine',
  cachearray_depth = core.depth,
  cachearray_setmetatable = core.setclass,
  cachearray_subscript = core.part,
}

-- Perilune uses no signals, so there is nothing to block and nothing that was put off.
function low.block_M_signals() end
function low.ydb_eintr_handler() return 0 end

function low.init(blocker)
  if blocker ~= nil and type(blocker) ~= 'function' then
    error('Parameter #1 to init must be nil or a CFunction', 2)
  end
end

local plain = {__tostring = text.tostring, __eq = core.equal}

function low.cachearray_create(...)
  return core.create(plain, ...)
end

function low.cachearray_append(node, sub, ...)
  node = core.append(node, sub)
  if select('#', ...) == 0 then return node end
  return low.cachearray_append(node, ...)
end

-- NB: nodes never change, so a "mutable" one is a copy and a substitution gives a new node.
function low.cachearray_tomutable(node)
  return core.create(getmetatable(node), node)
end

function low.cachearray_subst(node, sub)
  if core.depth(node) == 0 then
    error('Cannot substitute the last subscript of a node that has none', 2)
  end
  return core.append(core.parent(node), sub)
end

function low.cachearray_flags() return 0 end

-- The first `depth` subscripts of a node, or all, as text; then its name.
function low.cachearray_tostring(node, depth)
  local subs, all = {}, core.depth(node)
  depth = depth or all
  if depth < 0 or depth > all then
    error('Parameter #2 to cachearray_tostring is not a valid node depth in the range 0-' .. all .. ' (got ' .. depth
      .. ')', 0)
  end
  for i = 1, depth do
    subs[i] = core.part(node, i)
  end
  local shown = text.tostring(core.create(plain, '_', subs)):gsub('^_%(?', ''):gsub('%)$', '')
  return shown, core.part(node, 0)
end

for name, value in pairs(constants.constants) do
  low[name] = value
end

return low
