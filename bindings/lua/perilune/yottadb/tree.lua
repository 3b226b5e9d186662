-- settree and gettree: Lua tables to trees and back.
--
-- A node's own value is under the key '__'. settree is not one step: a transaction around it makes it so.

-- Taken now: the names may be the program's own later.
local error, pairs, type = error, pairs, type

local core = require '_perilune.yottadb'
local text = require 'perilune.yottadb.text'

local DELETE = {} -- as a value in a table: deletes the value of that node

-- The child of `node` that the key `k` means, and its subscript's text.
local function target(node, k, done)
  if type(k) ~= 'string' and type(k) ~= 'number' then
    error('Cannot set ' .. text.tostring(node) .. ' subscript of type ' .. type(k) .. ': must be string/number', 0)
  end
  local sub = type(k) == 'number' and core.numbertext(k) or k
  local child = sub == '__' and node or core.append(node, sub)
  if done[sub] then
    error('Node already updated (when trying to set node ' .. text.tostring(child) .. ')', 0)
  end
  done[sub] = true
  return child, sub
end

local function store(node, tbl, filter, inside)
  if inside[tbl] then
    error('Cannot set node ' .. text.tostring(node) .. ' to a table that contains itself', 0)
  end
  inside[tbl] = true
  local done = {}
  for key, member in pairs(tbl) do
    local k, v = key, member
    if filter then k, v = filter(node, k, v) end
    if k ~= nil and v ~= nil then
      local child, sub = target(node, k, done)
      local kind = type(v)
      if v == DELETE then
        core.set(child, nil)
      elseif kind == 'table' and sub ~= '__' then
        store(child, v, filter, inside)
      elseif kind == 'string' or kind == 'number' then
        core.set(child, v)
      else
        error('Cannot set node ' .. text.tostring(child) .. ' to type ' .. kind, 0)
      end
    end
  end
  inside[tbl] = nil
end

local function settree(node, tbl, filter)
  if type(tbl) ~= 'table' then
    error("bad argument #1 to ':settree' (table expected, got " .. type(tbl) .. ')', 2)
  end
  if filter ~= nil and type(filter) ~= 'function' then
    error("bad argument #2 to ':settree' (function/nil expected, got " .. type(filter) .. ')', 2)
  end
  store(node, tbl, filter, {})
end

local function load_tree(node, depth, maxdepth, filter)
  local tbl = {}
  for child, own, found, data in core.iterate(node, false, 2) do
    local value = own
    local recurse = data >= 10 and (not maxdepth or depth <= maxdepth)
    if filter then
      local more
      value, more = filter(child, found, value, recurse, depth)
      -- True goes deeper than maxdepth, and makes a table of a leaf, too.
      if more ~= nil then recurse = more end
    end
    if recurse then
      local below = load_tree(child, depth + 1, maxdepth, filter)
      below.__ = value
      tbl[found] = below
    else
      tbl[found] = value
    end
  end
  return tbl
end

local function gettree(node, maxdepth, filter)
  if type(maxdepth) == 'function' then maxdepth, filter = nil, maxdepth end
  if maxdepth ~= nil and type(maxdepth) ~= 'number' then
    error("bad argument #1 to ':gettree' (number/nil expected, got " .. type(maxdepth) .. ')', 2)
  end
  if filter ~= nil and type(filter) ~= 'function' then
    error("bad argument #2 to ':gettree' (function/nil expected, got " .. type(filter) .. ')', 2)
  end
  core.data(node)
  local value = node.__
  if filter then value = filter(node, '', value, true, 0) end
  local tbl = load_tree(node, 1, maxdepth, filter)
  tbl.__ = value
  return tbl
end

return {settree = settree, gettree = gettree, DELETE = DELETE}
