-- Sessions of a web application that end after a time: lua sessions.lua [PATH]
--
-- ^session(id) holds the data; ^session_end(time, id) orders them by when they end.

local perilune = require 'perilune'
local db = perilune.open((...))
local sessions, ends = db.node('^session'), db.node('^session_end')

local function touch(id, now, seconds)
  db:transaction(function()
    local old = sessions[id].ends.__
    if old then ends[old][id].__ = nil end
    sessions[id].ends.__ = now + seconds
    ends[now + seconds][id].__ = true
  end)
end

local function expire(now)
  local count = 0
  for time in ends:subscripts {to = now} do
    db:transaction(function()
      for id in ends[time]:subscripts() do sessions[id]:kill() end
      count = count + ends[time]:count()
      ends[time]:kill()
    end)
  end
  return count
end

sessions:kill()
ends:kill()
for i = 1, 5 do
  sessions['id' .. i].user.__ = 'user' .. i
  touch('id' .. i, 1000, 10 * i)
end
touch('id1', 1000, 100)
print('expired', expire(1030))
for id in sessions:subscripts() do print(id, sessions[id].user.__, sessions[id].ends.__) end
sessions:kill()
ends:kill()
