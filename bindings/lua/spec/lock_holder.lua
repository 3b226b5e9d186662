-- A second process for tests of locks: lua lock_holder.lua NAME [SUBSCRIPT [go]] takes the lock, tells so in
-- ^holder, and holds it until its input ends, or with `go` until ^go is set. The database is $ydb_gbldir.

local ydb = require 'perilune.yottadb'

local good, message = pcall(ydb.lock_incr, arg[1], {arg[2]}, 0)
ydb.set('^holder', good and 'Locked' or message)
if arg[3] == 'go' then
  require('perilune').node('^go'):wait(20, nil)
else
  io.read('*a')
end
if good then ydb.lock_decr(arg[1], {arg[2]}) end
