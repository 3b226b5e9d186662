-- perilune.node inside scripts: the node objects of bindings/lua, as far as a transaction needs them.
--
-- A node is a table of its subscripts; operations go to the host with all of them. Local names (without ^)
-- belong to the server's session and are refused.
local ask, open_json = ...
local methods, metatable = {}, {}
local parts = setmetatable({}, {__mode = 'k'})
local unpack, select, type, next, rawequal, error, ceil = unpack, select, type, next, rawequal, error, math.ceil

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

-- A value, nil where there is none; an empty list or map is an empty table.
local function plain(value)
  if type(value) == 'table' then return nil end
  return value
end

-- Fills `tree` with what lies below the node, which is `level` levels below the one that was asked.
local function read(list, tree, level, most, filter)
  local at = run('next', list)
  while at ~= nil do
    local below = with(list, at)
    local data, value = run('data', below), run('value', below)
    local into = data >= 10 and (most == nil or level + 1 < most)
    local kept = plain(value)
    if kept == nil and not into and value ~= nil then kept = {} end
    if filter ~= nil then
      local recurse
      kept, recurse = filter(node_of(below), at, kept, into, level + 1)
      if recurse ~= nil then into = into and recurse and true end
    end
    if into then
      local child = {}
      if kept ~= nil then child.__ = kept end
      tree[at] = child
      read(below, child, level + 1, most, filter)
    else
      tree[at] = kept
    end
    at = run('next', list, at)
  end
end

function methods.gettree(node, depth, filter)
  if type(depth) == 'function' and filter == nil then depth, filter = nil, depth end
  if depth ~= nil and (type(depth) ~= 'number' or depth < 0 or depth % 1 ~= 0) then
    error("gettree's depth must be an integer from 0, or nil for all", 2)
  end
  local list = list_of(node)
  local data = run('data', list)
  if data == 0 then return nil end
  local tree, value = {}, plain(run('value', list))
  if filter ~= nil then value = (filter(node, '', value, data >= 10, 0)) end
  if value ~= nil then tree.__ = value end
  if data >= 10 and depth ~= 0 then read(list, tree, 0, depth, filter) end
  return tree
end

local function store(list, tree, filter, level)
  if level > 255 then error('the table is deeper than 255 levels, or contains itself', 0) end
  if next(tree) == nil then
    if level > 0 then run('empty_map', list) end
    return
  end
  for key, value in next, tree do
    local wanted = true
    if filter ~= nil then
      key, value = filter(node_of(list), key, value)
      wanted = key ~= nil and value ~= nil
    end
    if not wanted then
      -- It is left out.
    elseif key == '__' then
      if type(value) == 'table' then error('the value at __ must not be a table', 0) end
      run('set', list, value)
    elseif type(key) ~= 'string' and type(key) ~= 'number' then
      error('a subscript is a string or a number', 0)
    elseif type(value) == 'table' then
      store(with(list, key), value, filter, level + 1)
    else
      run('set', with(list, key), value)
    end
  end
end

function methods.settree(node, tree, filter)
  if type(tree) ~= 'table' then error('settree takes a table', 2) end
  store(list_of(node), tree, filter, 0)
end

function methods.count(node)
  local count = 0
  for _ in methods.subscripts(node) do count = count + 1 end
  return count
end

function methods.ipairs(node, first, last)
  local list, at = list_of(node), (first or 1) - 1
  local step = last ~= nil and last < at + 1 and -1 or 1
  if step < 0 then at = at + 2 end
  return function()
    at = at + step
    if last ~= nil and (at - last) * step > 0 then return nil end
    local value = run('get', with(list, at))
    if value ~= nil then return at, value end
  end
end

function methods.copy(node, to)
  run('copy', list_of(node), unpack(list_of(to)))
  return to
end

function methods.merge(node, to)
  run('merge', list_of(node), unpack(list_of(to)))
  return to
end

local tojson, fromjson = open_json(run, with, function(what) error(what, 0) end)

function methods.tojson(node) return tojson(list_of(node)) end

function methods.fromjson(node, text)
  if type(text) ~= 'string' then error('fromjson takes text', 2) end
  fromjson(list_of(node), text, function(f) f() end)
end

-- Waits in slices, so that the script can be stopped between them. Locks are released when the script has ended.
local SLICE = 20

local function grab(list, timeout)
  if timeout ~= nil and not (type(timeout) == 'number' and timeout >= 0) then
    error('a timeout must be 0 or more seconds (nil: no limit)', 3)
  end
  local left = timeout and ceil(timeout * 1000)
  while true do
    local slice = (left == nil or left > SLICE) and SLICE or left
    if run('grab', list, slice) == 1 then return true end
    if left ~= nil then
      left = left - slice
      if left <= 0 then return false end
    end
  end
end

function methods.grab(node, timeout) return grab(list_of(node), timeout) end
function methods.release(node) return run('release', list_of(node)) == 1 end
function methods.lock_count(node) return run('lock_count', list_of(node)) end
methods.lock_incr, methods.lock_decr = methods.grab, methods.release

function methods.lock(node, timeout)
  run('release_all', list_of(node))
  return grab(list_of(node), timeout)
end

local function node(name, ...)
  if type(name) ~= 'string' then error('a name is a string, as ^person', 2) end
  return node_of({name, ...})
end

return {node = node, isnode = function(value) return parts[value] ~= nil end}
