-- Perilune by its Lua module: perilune_player.lua DIRECTORY DURABILITY, with the place of this file as PERILUNE_BENCH_PLAYERS.

package.path = os.getenv 'PERILUNE_BENCH_PLAYERS' .. '/?.lua;' .. package.path
local player = require 'player'
local perilune = require 'perilune'

local directory, durability = arg[1], arg[2]
local db = perilune.open(directory .. '/bench.db', {durability = durability, any_filesystem = true})
local cm, step, record, taken, bank =
  db.node('^cm'), db.node('^step'), db.node('^record'), db.node('^taken'), db.node('^bank')
local unpack = table.unpack or unpack

local side = {operations = {}}

function side.set(n, value) cm[n].__ = value end
function side.get(n) return cm[n].__ end
function side.get_step(n) return step[n].__ end
function side.set_step(n, value) step[n].__ = value end
function side.take(block) return taken[block]:incr(1) end

local longest, highest = record[1], record[2]
local function raise(_, steps, high)
  local updates = 0
  if steps > (longest.__ or 0) then longest.__ = steps updates = updates + 1 end
  if high > (highest.__ or 0) then highest.__ = high updates = updates + 1 end
  return 2, updates
end
function side.raise(steps, high) return db:transaction(raise, steps, high) end
function side.records() return longest.__, highest.__ end

function side.set_batch(first, last, value)
  local nodes, values = {}, {}
  for n = first, last do
    nodes[#nodes + 1] = cm[n]
    values[#values + 1] = value
  end
  db:set_many(nodes, values)
end

function side.account(n, balance) bank[n].__ = balance end
function side.balance(n) return bank[n].__ end
local function move(_, from, to)
  from.__ = from.__ - 1
  to.__ = to.__ + 1
end
function side.transfer(from, to) db:transaction(move, bank[from], bank[to]) end
function side.close() end

local operations, roots = side.operations, {}
local function root(name)
  local found = roots[name] or db.node('^' .. name)
  roots[name] = found
  return found
end
local function node(subscripts, name)
  local at = root(name)
  for index = 1, #subscripts do at = at(subscripts[index]) end
  return at
end

-- A call with the subscripts as its arguments, as a program writes it.
local function call(method, subscripts, name, ...)
  local at, count, a, b, c, d, e = root(name), #subscripts, unpack(subscripts, 1, 5)
  if count == 3 then return method(db, at, a, b, c, ...) end
  if count == 1 then return method(db, at, a, ...) end
  if count == 4 then return method(db, at, a, b, c, d, ...) end
  if count == 5 then return method(db, at, a, b, c, d, e, ...) end
  if count == 2 then return method(db, at, a, b, ...) end
  return method(db, at, ...)
end
local set, get, data, incr = db.set, db.get, db.data, db.incr
function operations.set(subscripts, value, name) call(set, subscripts, name, value) end
function operations.get(subscripts, _, name) return call(get, subscripts, name) end
function operations.data(subscripts, _, name) return call(data, subscripts, name) end
function operations.increment(subscripts, by, name) return call(incr, subscripts, name, by) end
local function split(subscripts, name)
  local count = #subscripts
  local last = subscripts[count]
  subscripts[count] = nil
  local parent = node(subscripts, name)
  subscripts[count] = last
  if last == '' then return parent, nil end
  return parent, last
end
function operations.next(subscripts, _, name)
  local parent, last = split(subscripts, name)
  return (parent:next(last))
end
function operations.previous(subscripts, _, name)
  local parent, last = split(subscripts, name)
  return (parent:previous(last))
end
function operations.kill(subscripts, _, name) node(subscripts, name):kill() end
function operations.merge(subscripts, target, name) node(subscripts, name):merge(node(target, name)) end

-- Nodes in order from here on; a walk that goes on where the last one stood is kept open.
local walk, walked
function operations.query(subscripts, _, name)
  if walked ~= subscripts or not walk then
    local at = node(subscripts, name)
    walk = coroutine.wrap(function()
      -- Below the node, then below and behind each of its ancestors' later siblings.
      for below, value in at:nodes() do if below ~= at then coroutine.yield(below, value) end end
      for depth = #subscripts, 1, -1 do
        local parent, last = split({unpack(subscripts, 1, depth)}, name)
        for child in parent:children({after = last}) do
          for below, value in child:nodes() do coroutine.yield(below, value) end
        end
      end
    end)
  end
  local found, value = walk()
  if not found then
    walk = nil
    return nil
  end
  walked = found:subsarray()
  return walked, value
end

player.serve(side)
