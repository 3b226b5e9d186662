-- perilune.node inside scripts: the node objects of bindings/lua, as far as a transaction needs them.
--
-- A node is a table of its subscripts; operations go to the host with all of them. Local names (without ^)
-- belong to the server's session and are refused.
local ask = ...
local methods, metatable = {}, {}
local parts = setmetatable({}, {__mode = 'k'})
local unpack, select, type, next, rawequal, error = unpack, select, type, next, rawequal, error

local function node_of(list, parent)
  local node = setmetatable({}, metatable)
  parts[node] = {list = list, parent = parent}
  return node
end

local function with(list, ...)
  local longer, count = {}, #list
  for i = 1, count do longer[i] = list[i] end
  for i = 1, select('#', ...) do longer[count + i] = (select(i, ...)) end
  return longer
end

local function list_of(node)
  local part = parts[node]
  if part == nil then error('a node is expected: call its methods as node:get()', 3) end
  return part.list
end

local function run(operation, list, ...)
  return ask(operation, #list, unpack(with(list, ...)))
end

function metatable.__index(node, key)
  if key == '__' then return run('get', list_of(node)) end
  return node_of(with(list_of(node), key), node)
end

function metatable.__newindex(node, key, value)
  if key ~= '__' then error('set node.name.__ or call node.name:set(value)', 2) end
  if value == nil then run('delete', list_of(node)) else run('set', list_of(node), value) end
end

-- node.get(node, ...) is a method; node(...) is a descendant.
function metatable.__call(node, first, ...)
  local part = parts[node]
  if part.parent ~= nil and rawequal(first, part.parent) then
    local name = part.list[#part.list]
    local method = methods[name]
    if method == nil then error("a node has no method '" .. tostring(name) .. "'", 2) end
    return method(first, ...)
  end
  return node_of(with(part.list, first, ...))
end

function metatable.__tostring(node)
  return run('text', list_of(node))
end

function metatable.__eq(left, right)
  return tostring(left) == tostring(right)
end

metatable.__metatable = false

function methods.get(node, default)
  local value = run('get', list_of(node))
  if value == nil then return default end
  return value
end

function methods.set(node, value)
  if value == nil then run('delete', list_of(node)) else run('set', list_of(node), value) end
  return value
end

function methods.incr(node, by) return run('incr', list_of(node), by or 1) end
function methods.data(node) return run('data', list_of(node)) end
function methods.has_value(node) return run('data', list_of(node)) % 10 == 1 end
function methods.has_tree(node) return run('data', list_of(node)) >= 10 end
function methods.delete(node) return run('delete', list_of(node)) == 1 end
function methods.kill(node) run('kill', list_of(node)) end
function methods.next(node, after) return run('next', list_of(node), after) end
function methods.previous(node, before) return run('previous', list_of(node), before) end
function methods.name(node) local list = list_of(node) return list[#list] end
function methods.varname(node) return list_of(node)[1] end
function methods.depth(node) return #list_of(node) - 1 end
function methods.parent(node)
  local list = list_of(node)
  if #list == 1 then return nil end
  return node_of({unpack(list, 1, #list - 1)})
end

function methods.subscripts(node, reverse)
  local list, at = list_of(node), nil
  return function()
    at = run(reverse and 'previous' or 'next', list, at)
    return at
  end
end

function methods.pairs(node, reverse)
  local each = methods.subscripts(node, reverse)
  return function()
    local at = each()
    if at ~= nil then return at, run('get', with(list_of(node), at)) end
  end
end

function methods.children(node, reverse)
  local each = methods.subscripts(node, reverse)
  return function()
    local at = each()
    if at ~= nil then return node_of(with(list_of(node), at)), run('get', with(list_of(node), at)) end
  end
end

local function node(name, ...)
  if type(name) ~= 'string' then error('a name is a string, as ^person', 2) end
  return node_of({name, ...})
end

return {node = node, isnode = function(value) return parts[value] ~= nil end}
