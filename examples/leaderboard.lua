-- The best of many players, always in order: lua leaderboard.lua [PATH]
--
-- ^score(player) is the score, ^rank(score, player) its place in order: both change in one transaction.

local perilune = require 'perilune'
local db = perilune.open((...))
local score, rank = db.node('^score'), db.node('^rank')

local function add(player, points)
  return db:transaction(function()
    local old = score[player].__
    if old then rank[old][player].__ = nil end
    local new = (old or 0) + points
    score[player].__ = new
    rank[new][player].__ = true
    return new
  end)
end

local function best(count)
  local list = {}
  for points in rank:subscripts(true) do
    for player in rank[points]:subscripts() do
      list[#list + 1] = player .. ' ' .. points
      if #list == count then return list end
    end
  end
  return list
end

score:kill()
rank:kill()
for i = 1, 100 do add('player' .. i % 10, i) end
print(table.concat(best(3), ', '))
score:kill()
rank:kill()
