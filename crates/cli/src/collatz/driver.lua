-- The two sides of a measured run of collatz.lua: what starts and waits, and what each process runs.

local collatz = require 'collatz'
local perilune = require 'perilune'

local driver = {}

-- Prepares the database at `path`, has `spawn` start the processes, and measures from the moment when
-- all are let go until the last is done.
function driver.control(path, durability, n, block, procs, spawn, clock)
  local db = perilune.open(path, {durability = durability})
  local P = collatz.prepare(db, n, block, procs)
  spawn()
  collatz.start(P)
  local started = clock()
  P.Finished:grab()
  local seconds = clock() - started
  P.Finished:release()
  local found = collatz.result(P)
  found.seconds = seconds
  db:close()
  return found
end

-- Works, then says on the standard output in which Lua and how many seconds of CPU it took.
function driver.work(path, durability, id)
  local db = perilune.open(path, {durability = durability})
  local cpu = collatz.worker(db, id)
  db:close()
  local lua = rawget(_G, 'jit') and jit.version or _VERSION
  io.write(string.format('%.6f %s\n', cpu, lua))
end

return driver
