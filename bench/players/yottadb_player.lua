-- YottaDB by lua-yottadb: yottadb_player.lua DIRECTORY; the environment names the global directory.

package.path = os.getenv 'PERILUNE_BENCH_PLAYERS' .. '/?.lua;' .. package.path
local player = require 'player'
local yottadb = require(os.getenv 'PERILUNE_BENCH_YOTTADB' or 'yottadb')

local cm, step, record, taken, bank = yottadb.node '^cm', yottadb.node '^step', yottadb.node '^record',
  yottadb.node '^taken', yottadb.node '^bank'
local side = {operations = {}}

function side.set(n, value) cm[n].__ = value end
function side.get(n) return cm[n].__ end
function side.get_step(n) return tonumber(step[n].__) end
function side.set_step(n, value) step[n].__ = value end
function side.take(block) return tonumber(taken[block]:incr(1)) end
local raise = yottadb.transaction(function(found)
  local longest, highest = tonumber(record[1].__) or 0, tonumber(record[2].__) or 0
  found.updates = 0
  if found.steps > longest then record[1].__ = found.steps found.updates = found.updates + 1 end
  if found.high > highest then record[2].__ = found.high found.updates = found.updates + 1 end
end)
function side.raise(steps, high)
  local found = {steps = steps, high = high}
  raise(found)
  return 2, found.updates
end
function side.records() return tonumber(record[1].__), tonumber(record[2].__) end
side.set_batch = yottadb.transaction(function(first, last, value)
  for n = first, last do cm[n].__ = value end
end)
function side.account(n, balance) bank[n].__ = balance end
function side.balance(n) return tonumber(bank[n].__) end
side.transfer = yottadb.transaction(function(from, to)
  bank[from].__ = tonumber(bank[from].__) - 1
  bank[to].__ = tonumber(bank[to].__) + 1
end)
function side.close() end

local operations = side.operations
local function texts(subscripts)
  local list = {}
  for index = 1, #subscripts do list[index] = player.text(subscripts[index]) end
  return list
end
function operations.set(subscripts, value, name) yottadb.set('^' .. name, texts(subscripts), value) end
function operations.get(subscripts, _, name) return yottadb.get('^' .. name, texts(subscripts)) end
function operations.data(subscripts, _, name) return yottadb.data('^' .. name, texts(subscripts)) end
function operations.increment(subscripts, by, name) return tonumber(yottadb.incr('^' .. name, texts(subscripts), by)) end
function operations.next(subscripts, _, name) return yottadb.subscript_next('^' .. name, texts(subscripts)) end
function operations.previous(subscripts, _, name) return yottadb.subscript_previous('^' .. name, texts(subscripts)) end
function operations.kill(subscripts, _, name) yottadb.delete_tree('^' .. name, texts(subscripts)) end

player.serve(side)
