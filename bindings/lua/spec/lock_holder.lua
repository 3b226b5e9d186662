-- A second process for tests of locks: lua lock_holder.lua NAME [SUBSCRIPT] takes the lock, tells so in
-- ^holder, and holds it until its input ends. The database is $ydb_gbldir.

local ydb = require 'perilune.yottadb'

local good, message = pcall(ydb.lock_incr, arg[1], {arg[2]}, 0)
ydb.set('^holder', good and 'Locked' or message)
io.read('*a')
if good then ydb.lock_decr(arg[1], {arg[2]}) end
