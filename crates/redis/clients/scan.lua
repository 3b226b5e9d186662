-- redis-lua, with cursors as numbers, against a server: lua5.1 scan.lua HOST PORT. Lua prints them with 14 digits.
local redis = require 'redis'
local client = redis.connect(arg[1], tonumber(arg[2]))
client:flushall()
for n = 1, 1000 do client:set('name' .. n, 'x') end
local cursor, seen, count = 0, {}, 0
repeat
  local reply = client:scan(cursor, { count = 10 })
  cursor = tonumber(reply[1])
  for _, name in ipairs(reply[2]) do
    if not seen[name] then seen[name], count = true, count + 1 end
  end
until cursor == 0
assert(count == 1000, count .. ' of 1,000 keys')
print('redis-lua: good')
