-- Uses an installed module: lua installed.lua PATH [compat]. Its names are all found, and nothing beside the tree.

local path, compat = arg[1], arg[2] == 'compat'
local perilune = require 'perilune'
local yottadb = require 'perilune.yottadb'

local db = perilune.use(perilune.open(path))
assert(perilune.node('^n')[1]:incr(41) == 41 and db:get('^n', 1) == 41)
yottadb.set('^n', {2}, 'x')
assert(yottadb.get('^n', {2}) == 'x')

local good, other = pcall(require, 'yottadb')
assert(good == compat, other)
if compat then
  assert(other == yottadb)
  local native = require '_yottadb'
  native.set('^n', {3}, 'y')
  assert(native.get('^n', {3}) == 'y')
end
print(_VERSION .. (rawget(_G, 'jit') and ' (LuaJIT)' or '') .. ': installed, loaded and used')
