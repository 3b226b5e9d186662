-- The class of nodes: immutable addresses, whose values and children are read by index.
--
-- n.__ is the value, n.sub the child, n:name() a method (n.name is the child "name"; n:__name() is the
-- same method, faster), n('a', 'b') a descendant. The metamethods of indexing and calling are in C.

-- Taken now: the names may be the program's own later.
local error, type = error, type

local core = require '_perilune.yottadb'
local text = require 'perilune.yottadb.text'
local tree = require 'perilune.yottadb.tree'

local node = {
  __index = core.index_node,
  __newindex = core.assign_node,
  __call = core.call_node,
  __eq = core.equal,
  __tostring = text.tostring,
  __repr = text.repr,
  get = core.value_or_default,
  set = core.assign,
  subsarray = text.subsarray,
  settree = tree.settree,
  gettree = tree.gettree,
}

local function check(name, wanted, x)
  if not (' ' .. wanted .. ' '):gsub('/', ' '):find(' ' .. type(x) .. ' ', 1, true) then
    error("bad argument #1 to ':" .. name .. "' (" .. wanted .. ' expected, got ' .. type(x) .. ')', 3)
  end
end

function node.incr(self, by)
  check('incr', 'string/nil/number', by)
  return core.incr(self, by == nil and 1 or by)
end

function node.kill(self) core.kill(self) end
node.delete_tree = node.kill

function node.data(self) return core.data(self) end
function node.has_value(self) return core.data(self) % 2 == 1 end
function node.has_tree(self) return core.data(self) >= 10 end

function node.lock_incr(self, timeout) core.lock_incr(self, timeout) end
function node.lock_decr(self) core.lock_decr(self) end
function node.lock(self, timeout) core.lock({self}, timeout) end
node.grab, node.release = node.lock_incr, node.lock_decr

function node.varname(self) return core.part(self, 0) end
function node.name(self) return core.part(self, core.depth(self)) end
function node.depth(self) return core.depth(self) end
-- Nodes never change, those of loops neither.
function node.ismutable() return false end

-- Goes through the subscripts of the children.
function node.subscripts(self, reverse)
  check('subscripts', 'nil/boolean/number', reverse)
  return core.iterate(self, reverse, 0), nil, ''
end

-- Goes through the children: node, value or nil, subscript.
function node.pairs(self, reverse)
  check('pairs', 'nil/boolean/number', reverse)
  return core.iterate(self, reverse, 1), nil, ''
end
node.__pairs = node.pairs

function node.dump(self, maxlines)
  check('dump', 'nil/number', maxlines)
  return text.dump(self, maxlines, self)
end

-- What to add for a subtraction of `v`, by M's rules: text counts as the number it begins with.
local function negated(v)
  if type(v) == 'number' then return '-' .. core.numbertext(v) end
  return '-' .. (v == '' and '1' or v)
end

local function operands(name, self, v)
  if not core.isaddress(self) then
    error("bad argument #1 to '" .. name .. "' (the node must stand on the left: node " .. (name == 'add' and '+' or '-')
      .. ' number)', 3)
  end
  if type(v) ~= 'string' and type(v) ~= 'number' then
    error("bad argument #1 to '" .. name .. "' (string/number expected, got " .. type(v) .. ')', 3)
  end
end

-- n + v and n - v change the database and are the node itself, for `n = n + 1`.
function node.__add(self, v)
  operands('add', self, v)
  core.incr(self, v)
  return self
end

function node.__sub(self, v)
  operands('sub', self, v)
  core.incr(self, negated(v))
  return self
end

return node
