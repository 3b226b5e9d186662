-- The 3n+1 problem by any number of processes that share one database.
--
-- For every n up to N: n is halved when even, else replaced by 3n+1, until it is 1. How many steps does
-- the longest sequence take, and what is the highest number met? Each number's steps are stored, so that
-- no process walks where one has been before.
--
-- The structure is that of the paper "Lua API and benchmark design using 3n+1 sequences": a subclass of
-- nodes counts what is read and written; workers take blocks of numbers by incrementing a node; the
-- locks Trigger and Finished start all of them at one moment and wait for them, asleep.
--
--   lua collatz.lua [--n 100000] [--procs 2] [--block 1000] [--db PATH]
--
-- A program that starts the processes itself loads this file with require or dofile and calls
-- prepare(), worker(), start() and finish() of the table that it returns.

local perilune = require 'perilune'

local collatz = {}

-- The nodes of the problem in database `db`; reads and updates of Step, Longest and Highest are counted.
local function nodes(db)
  local count = {reads = 0, updates = 0}
  local monitored, class, node = perilune.inherit(db.node)

  function class:get(default)
    count.reads = count.reads + 1
    return node.get(self, default)
  end

  function class:set(value)
    count.updates = count.updates + 1
    return node.set(self, value)
  end

  return {
    db = db,
    count = count,
    Step = monitored('^step'), Longest = monitored('^longest'), Highest = monitored('^highest'),
    Blocks = db.node('^blocks'), Trigger = db.node('^trigger'), Queued = db.node('^queued'),
    Finished = db.node('^finished'), Reads = db.node('^reads'), Updates = db.node('^updates'),
  }
end

-- Walks from n until a number whose steps are known, and stores the steps of all numbers on the way.
local function sequence(P, Step, n)
  local steps, highest, path = 0, 0, {}
  while not Step[n].__ and n > 1 do
    path[steps] = n
    if n % 2 > 0 then n = 3 * n + 1 else n = n / 2 end
    if n > highest then highest = n end
    steps = steps + 1
  end
  if steps == 0 then return end
  if n > 1 then steps = steps + Step[n].__ end
  P.db:transaction('batch', P.raise_maxima, steps, highest)
  for i = 0, #path do Step[path[i]].__ = steps - i end
end

-- The body of the transaction: longest and highest only grow.
local function maxima(P)
  local Longest, Highest = P.Longest, P.Highest
  return function(_, steps, highest)
    if steps > Longest:get(0) then Longest:set(steps) end
    if highest > Highest:get(0) then Highest:set(highest) end
  end
end

-- Takes one block after another: block i is the numbers above Blocks[i] up to Blocks[i + 1].
local function take_blocks(P)
  local Blocks, index = P.Blocks, 1
  P.raise_maxima = maxima(P)
  while Blocks[index + 1].__ do
    if Blocks[index].taken:incr() == 1 then
      for n = Blocks[index].__ + 1, Blocks[index + 1].__ do sequence(P, P.Step, n) end
    end
    index = index + 1
  end
end

-- Empties the database for a run and holds the workers back until `start`.
function collatz.prepare(db, n, block, procs)
  local P = nodes(db)
  for _, name in ipairs {'Step', 'Longest', 'Highest', 'Blocks', 'Reads', 'Updates', 'Queued'} do P[name]:kill() end
  local bounds = {}
  for bound = 0, n - 1, block do bounds[#bounds + 1] = bound end
  bounds[#bounds + 1] = n
  P.Blocks:settree(bounds)
  P.Queued.__ = procs
  P.Trigger:grab()
  return P
end

-- What each process runs; `id` differs for each.
function collatz.worker(db, id)
  local P = nodes(db)
  P.Finished[id]:grab()
  P.Queued:incr(-1)
  P.Trigger[id]:grab()
  P.Trigger[id]:release()
  local cpu = os.clock()
  take_blocks(P)
  P.Reads:incr(P.count.reads)
  P.Updates:incr(P.count.updates)
  P.Finished[id]:release()
  return os.clock() - cpu
end

-- Waits until all workers stand at the trigger, then lets them go.
function collatz.start(P)
  local queued = P.Queued.__
  while queued ~= 0 do
    P.Queued:wait(60, queued)
    queued = P.Queued.__
  end
  P.Trigger:release()
end

-- Sleeps until all workers are done; what they found.
function collatz.finish(P)
  P.Finished:grab()
  P.Finished:release()
  return collatz.result(P)
end

function collatz.result(P)
  local node = P.db.node
  return {
    longest = node('^longest').__, highest = node('^highest').__, stored = node('^step'):count(),
    reads = P.Reads.__, updates = P.Updates.__,
  }
end

-- All in this process, for one worker or for a back end that processes do not share.
function collatz.alone(db, n, block)
  local P = collatz.prepare(db, n, block, 0)
  P.Trigger:release()
  local cpu = os.clock()
  take_blocks(P)
  cpu = os.clock() - cpu
  P.Reads:incr(P.count.reads)
  P.Updates:incr(P.count.updates)
  return collatz.result(P), cpu
end

local function options(arguments)
  local given = {n = 100000, procs = 1, block = 1000}
  for i = 1, #arguments, 2 do
    local name = arguments[i]:match '^%-%-(%l+)$'
    if not name or not arguments[i + 1] then error('usage: collatz.lua [--n N] [--procs P] [--block B] [--db PATH]', 0) end
    given[name] = tonumber(arguments[i + 1]) or arguments[i + 1]
  end
  return given
end

-- Starts workers with the shell, since Lua itself has no processes.
local function main(arguments)
  local given = options(arguments)
  local temporary = not given.db and os.tmpname()
  local path = given.db or temporary .. '.db'
  local db = perilune.open(path, {durability = 'none'})
  if given.worker then
    collatz.worker(db, given.worker)
    return
  end
  local found, seconds
  if given.procs == 1 then
    found, seconds = collatz.alone(db, given.n, given.block)
  else
    local P = collatz.prepare(db, given.n, given.block, given.procs)
    local lua = arguments[-1] or 'lua'
    for id = 1, given.procs do
      os.execute(string.format("'%s' '%s' --worker %d --db '%s' &", lua, arguments[0], id, path))
    end
    collatz.start(P)
    found = collatz.finish(P)
  end
  print(string.format('n=%d procs=%d longest=%s highest=%s stored=%s reads=%s updates=%s%s', given.n, given.procs,
    tostring(found.longest), tostring(found.highest), tostring(found.stored), tostring(found.reads),
    tostring(found.updates), seconds and string.format(' seconds=%.3f', seconds) or ''))
  if temporary then
    db:close()
    for _, file in ipairs {temporary, path, path .. '-shm'} do os.remove(file) end
  end
end

if arg and arg[0] and arg[0]:match 'collatz%.lua$' and not ... then
  main(arg)
elseif arg and arg[0] and arg[0]:match 'collatz%.lua$' and (...):match '^%-%-' then
  main(arg)
end

return collatz
