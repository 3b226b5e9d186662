-- Tarantool: tarantool_player.lua serve DIRECTORY CLASS is the server, in which the player's functions are; with play DIRECTORY it
-- hands that server the lines, one call each, so that the work is done by Lua in the server.

package.path = os.getenv 'PERILUNE_BENCH_PLAYERS' .. '/?.lua;' .. package.path
local player = require 'player'
local role, directory, class = arg[1], arg[2], arg[3]
local socket = 'unix/:' .. directory .. '/socket'

if role == 'play' then
  local connection = require('net.box').connect(socket)
  assert(connection:ping(), 'no server')
  io.write('ready\n')
  io.flush()
  for line in io.lines() do
    io.write(connection:call('answer', {line}), '\n')
    io.flush()
  end
  os.exit(0)
end

box.cfg{
  wal_dir = directory, memtx_dir = directory, vinyl_dir = directory, log_level = 2,
  memtx_memory = 2 * 1024 * 1024 * 1024, wal_mode = ({D1 = 'fsync', D3 = 'write', D4 = 'none'})[class],
  checkpoint_interval = 0,
}
box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})

local function space(name, kind, index)
  local made = box.schema.space.create(name, {if_not_exists = true})
  made:create_index('primary', {type = index, parts = {1, kind}, if_not_exists = true})
  return made
end
local cm, step, record, taken, bank =
  space('cm', 'unsigned', 'hash'), space('step', 'unsigned', 'hash'), space('record', 'unsigned', 'hash'),
  space('taken', 'unsigned', 'hash'), space('bank', 'unsigned', 'hash')

local side = {operations = {}}
local function value_of(tuple) return tuple and tuple[2] end

function side.set(n, value) cm:replace{n, value} end
function side.get(n) return value_of(cm:get(n)) end
function side.get_step(n) return value_of(step:get(n)) end
function side.set_step(n, value) step:replace{n, value} end
function side.take(block)
  -- One transaction: where a write waits for the log, others would be let in before the count is read.
  box.begin()
  taken:upsert({block, 1}, {{'+', 2, 1}})
  local count = taken:get(block)[2]
  box.commit()
  return count
end
function side.raise(steps, high)
  box.begin()
  local longest, highest, updates = value_of(record:get(1)) or 0, value_of(record:get(2)) or 0, 0
  if steps > longest then record:replace{1, steps} updates = updates + 1 end
  if high > highest then record:replace{2, high} updates = updates + 1 end
  box.commit()
  return 2, updates
end
function side.records() return record:get(1)[2], record:get(2)[2] end
function side.set_batch(first, last, value)
  box.begin()
  for n = first, last do cm:replace{n, value} end
  box.commit()
end
function side.account(n, balance) bank:replace{n, balance} end
function side.balance(n) return bank:get(n)[2] end
function side.transfer(from, to)
  box.begin()
  local debit, credit = bank:get(from)[2], bank:get(to)[2]
  bank:replace{from, debit - 1}
  bank:replace{to, credit + 1}
  box.commit()
end
function side.close() if class ~= 'D4' then box.snapshot() end end

-- Globals: one space a global, a string as key that sorts as subscripts do, the list of them beside it.
local char, floor = string.char, math.floor
local function code(subscript)
  if type(subscript) == 'number' then
    local shifted, bytes = subscript + 2 ^ 47, {}
    for index = 6, 1, -1 do
      bytes[index] = char(shifted % 256)
      shifted = floor(shifted / 256)
    end
    return '\2' .. table.concat(bytes)
  end
  return '\3' .. subscript .. '\0'
end
local function key(subscripts)
  local parts = {}
  for index = 1, #subscripts do parts[index] = code(subscripts[index]) end
  return table.concat(parts)
end
local globals = {}
local function index(name)
  local found = globals[name]
  if not found then
    found = space('global_' .. name, 'string', 'tree')
    globals[name] = found
  end
  return found.index.primary, found
end

local operations = side.operations
function operations.set(subscripts, value, name)
  local _, made = index(name)
  made:replace{key(subscripts), value, subscripts}
end
function operations.get(subscripts, _, name) return value_of(index(name):get(key(subscripts))) end
local function first(name, iterator, at) return index(name):select(at, {iterator = iterator, limit = 1})[1] end
local function below(tuple, prefix) return tuple and tuple[1]:sub(1, #prefix) == prefix end
function operations.data(subscripts, _, name)
  local at = key(subscripts)
  local two = index(name):select(at, {iterator = 'GE', limit = 2})
  if not below(two[1], at) then return 0 end
  if #two[1][1] > #at then return 10 end
  return below(two[2], at) and 11 or 1
end
local function sibling(subscripts, name, back)
  local count, last = #subscripts, subscripts[#subscripts]
  subscripts[count] = nil
  local parent = key(subscripts)
  subscripts[count] = last
  local tuple
  if back then
    tuple = first(name, 'LT', last == '' and parent .. '\255' or key(subscripts))
  else
    tuple = first(name, 'GE', last == '' and parent .. '\1' or key(subscripts) .. '\255')
  end
  if below(tuple, parent) and #tuple[1] > #parent then return tuple[3][count] end
end
function operations.next(subscripts, _, name) return sibling(subscripts, name, false) end
function operations.previous(subscripts, _, name) return sibling(subscripts, name, true) end
function operations.query(subscripts, _, name)
  local tuple = first(name, 'GT', key(subscripts))
  if tuple then return tuple[3], tuple[2] end
end
function operations.increment(subscripts, by, name)
  box.begin()
  local sum = (tonumber(operations.get(subscripts, nil, name)) or 0) + by
  operations.set(subscripts, player.text(sum), name)
  box.commit()
  return sum
end
local function subtree(subscripts, name)
  local at, found = key(subscripts), {}
  for _, tuple in index(name):pairs(at, {iterator = 'GE'}) do
    if not below(tuple, at) then break end
    found[#found + 1] = tuple
  end
  return found
end
function operations.kill(subscripts, _, name)
  local _, made = index(name)
  local found = subtree(subscripts, name)
  box.begin()
  for _, tuple in ipairs(found) do made:delete(tuple[1]) end
  box.commit()
end
function operations.merge(subscripts, target, name)
  local found, depth = subtree(subscripts, name), #subscripts
  box.begin()
  for _, tuple in ipairs(found) do
    local to = {}
    for position = 1, #target do to[position] = target[position] end
    for position = depth + 1, #tuple[3] do to[#to + 1] = tuple[3][position] end
    operations.set(to, tuple[2], name)
  end
  box.commit()
end

-- The compiler of this Tarantool's LuaJIT crashes the server in traces through these; what they spend is in C.
for _, operation in pairs(operations) do jit.off(operation, true) end
for _, part in ipairs{code, key, first, below, sibling, subtree} do jit.off(part, true) end

local states = {}
function answer(line)
  local session = box.session.id()
  states[session] = states[session] or {}
  return player.answer(side, states[session], line)
end

-- Now that all is there, and not before.
box.cfg{listen = socket}
