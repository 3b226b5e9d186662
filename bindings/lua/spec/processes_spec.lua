-- Several processes with one database: counters, conflicts, locks and their end, watches, fork, 3n+1.

local here = debug.getinfo(1, 'S').source:match '^@(.*)processes_spec'

-- The interpreter that runs this.
local function interpreter()
  local first = 0
  while arg[first - 1] do first = first - 1 end
  return arg[first]
end

return function(spec)
  -- Starts a process with its number in FILE.pid, and does not wait for it.
  local function start(t, what, id)
    os.execute(string.format("sh -c 'echo $$ >%s.pid%s; exec %s %schild.lua %s %s %s %s../../../examples/collatz.lua' &",
      t.file, id, interpreter(), here, t.path, what, id, here))
  end

  local function wait_for(node)
    while not node.__ do assert(node:wait(60, nil), 'a process did not answer') end
  end

  local function finish(db, path, count)
    for id = 1, count do
      wait_for(db.node('^done')[id])
      os.remove(path .. '.pid' .. id)
    end
  end

  spec('increments and transactions of four processes', function(db, t)
    for id = 1, 4 do start(t, 'count', id) end
    finish(db, t.file, 4)
    t.equal(db.node('^counter').__, 2000)
    local sum = 0
    for _, v in db.node('^step'):pairs() do sum = sum + v end
    t.equal(sum, 2000)
  end)

  spec('locks exclude, above and below, until their process lets go', function(db, t)
    start(t, 'hold', 1)
    wait_for(db.node('^ready'))
    local lock = db.node('^lock')
    t.equal({lock.a:grab(0), lock:grab(0), lock.a.b:grab(0), lock.b:grab(0)}, {false, false, false, true})
    t.equal(lock.a:grab(0.01), false)
    db.node('^go').__ = true
    t.equal(lock.a:grab(60), true)
    finish(db, t.file, 1)
  end)

  spec('a process that is killed leaves no lock', function(db, t)
    start(t, 'hold', 1)
    wait_for(db.node('^ready'))
    t.equal(db.node('^lock').a:grab(0), false)
    local file = assert(io.open(t.file .. '.pid1'))
    os.execute('kill -9 ' .. file:read '*l')
    file:close()
    t.equal(db.node('^lock').a:grab(60), true)
    os.remove(t.file .. '.pid1')
  end)

  spec('a watch sees what another process writes', function(db, t)
    local told = db.node('^told')
    local w = told:watch()
    start(t, 'write', 1)
    t.equal(w:wait(60), true)
    wait_for(told[1])
    t.equal(told[1].__, 'by the child')
    finish(db, t.file, 1)
  end)

  spec('3n+1 by three processes finds what one does', function(db, t)
    local collatz = dofile(here .. '../../../examples/collatz.lua')
    local P = collatz.prepare(db, 10000, 100, 3)
    for id = 1, 3 do start(t, 'collatz', id) end
    collatz.start(P)
    local found = collatz.finish(P)
    finish(db, t.file, 3)
    t.equal({found.longest, found.highest, found.stored}, {261, 27114424, 21663})
    -- How often is a matter of their order.
    t.equal(found.reads > 21663 + 10000 and found.updates >= 21663, true)
  end)

  if rawget(_G, 'jit') then
    spec('after fork the child has a session of its own', function(db, t)
      local ffi = require 'ffi'
      ffi.cdef 'int fork(void); int waitpid(int, int *, int); void _exit(int);'
      local n = db.node('^fork')
      n.parent.__ = 1
      n.lock:grab()
      local child = ffi.C.fork()
      if child == 0 then
        local good = pcall(function()
          assert(n.parent.__ == 1 and n[5]:get(7) == 7)
          n.child.__ = 2
          n[5].__ = 3
          assert(not n.lock:grab(0))
          db:transaction(function() n.child:incr() end)
        end)
        ffi.C._exit(good and 0 or 1)
      end
      local status = ffi.new 'int[1]'
      ffi.C.waitpid(child, status, 0)
      t.equal(status[0], 0)
      t.equal({n.child.__, n[5].__, n.lock:lock_count()}, {3, 3, 1})
    end)
  end
end
