-- The deprecated class of keys: properties (k.value, k.data), fields of the program, and methods.
--
-- k('sub') is the sub-key; k.sub is not. Fields are kept in weak tables, so they go with their key.

-- Taken now: the names may be the program's own later.
local error, type = error, type

local core = require '_perilune.yottadb'
local node = require 'perilune.yottadb.node'
local text = require 'perilune.yottadb.text'

local fields = setmetatable({}, {__mode = 'k'})    -- key -> its fields
local positions = setmetatable({}, {__mode = 'k'}) -- key -> where subscript_next is

local key = {}
for name, member in pairs(node) do
  key[name] = member
end

local properties = {
  name = function(self) return core.part(self, core.depth(self)) end,
  data = function(self) return core.data(self) end,
  has_value = function(self) return core.data(self) % 2 == 1 end,
  has_tree = function(self) return core.data(self) >= 10 end,
  value = function(self) return core.get(self) end,
  __varname = function(self) return core.part(self, 0) end,
  __subsarray = text.subsarray,
}

function key.__index(self, name)
  local own = fields[self]
  if own and own[name] ~= nil then return own[name] end
  if properties[name] then return properties[name](self) end
  if name == '__' then return core.get(self) end
  local member = key[name]
  if member == nil and type(name) == 'string' and name:sub(1, 2) == '__' then member = key[name:sub(3)] end
  return member
end

function key.__newindex(self, name, value)
  if name == 'value' or name == '__' then
    core.set(self, value)
  elseif properties[name] then
    error("cannot set '" .. name .. "': it is a read-only property", 2)
  else
    local own = fields[self]
    if not own then
      own = {}
      fields[self] = own
    end
    own[name] = value
  end
end

function key.__call(self, ...)
  return core.create(key, self, ...)
end

function key.delete_node(self) core.set(self, nil) end

-- The siblings of this key's subscript; of a key without subscripts, its first level.
local function around(self)
  return core.depth(self) == 0 and self or core.parent(self)
end

-- Behind the last one it stays there.
local function step(self, reset, f)
  local at = not reset and positions[self] or ''
  local sub = f(around(self), at)
  positions[self] = sub or at
  return sub
end

function key.subscript_next(self, reset, reverse)
  return step(self, reset, reverse and core.subscript_previous or core.subscript_next)
end

function key.subscript_previous(self, reset)
  return step(self, reset, core.subscript_previous)
end

function key.subscripts(self, reverse)
  local f = reverse and core.subscript_previous or core.subscript_next
  local base = around(self)
  local sub = core.depth(self) == 0 and '' or core.part(self, core.depth(self))
  return function()
    if sub then sub = f(base, sub) end
    return sub
  end, nil, ''
end

return {key = key, properties = properties}
