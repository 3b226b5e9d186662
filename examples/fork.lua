-- Workers forked from one process that has the database open, as servers like nginx do: perilune fork.lua [PATH]
--
-- A child goes on with the parent's `db` and nodes. With its first operation it is a process of its own in the
-- database: it holds none of the parent's locks, is in none of its transactions, and may be killed without harm.
-- Lua has no fork: this takes it from LuaJIT's ffi; in other Luas a module such as luaposix has it.

local ffi = require 'ffi'
local perilune = require 'perilune'

ffi.cdef [[ int fork(void); int getpid(void); int waitpid(int pid, int *status, int options); void _exit(int status); ]]

local WORKERS, REQUESTS = 3, 100
local db = perilune.open((...))
local request, served = db.node('^request'), db.node('^served')

-- Takes the next request until there are no more; every number goes to one worker.
local function work()
  local mine = served[ffi.C.getpid()]
  mine.__ = 0
  while request:incr() <= REQUESTS do mine:incr() end
end

local function start(f)
  local pid = ffi.C.fork()
  if pid < 0 then error('no new process: ulimit -u tells how many there may be') end
  if pid > 0 then return pid end
  -- _exit, not os.exit: the parent's objects are not the child's to close.
  ffi.C._exit(xpcall(f, function(message) io.stderr:write(tostring(message), '\n') end) and 0 or 1)
end

request:kill()
served:kill()
local pids, status = {}, ffi.new 'int[1]'
for i = 1, WORKERS do pids[i] = start(work) end
for _, pid in ipairs(pids) do
  assert(ffi.C.waitpid(pid, status, 0) == pid and status[0] == 0, 'a worker failed')
end

local sum = 0
for _, count in served:pairs() do sum = sum + count end
print('workers', served:count(), 'requests', sum)
request:kill()
served:kill()
