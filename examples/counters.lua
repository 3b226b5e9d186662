-- Visits to pages, counted by many processes: lua counters.lua [PATH]

local perilune = require 'perilune'
local db = perilune.open((...))
local visits = db.node('^visits')

local function visit(page, day)
  visits[page]:incr()
  visits[page][day]:incr()
end

visits:kill()
for i = 1, 30 do visit(i % 3 == 0 and '/about' or '/', '2026-01-' .. string.format('%02d', i % 2 + 1)) end
for page, total in visits:pairs() do
  local days = {}
  for day, count in visits[page]:pairs() do days[#days + 1] = day .. '=' .. count end
  print(page, total, table.concat(days, ' '))
end
visits:kill()
