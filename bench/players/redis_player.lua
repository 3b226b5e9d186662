-- 3n+1 through Redis's client for Lua, as the paper ran it: redis_player.lua DIRECTORY; PERILUNE_BENCH_PLAYERS says where this file is.
-- Each command is a round trip; the records are raised under WATCH.

package.path = os.getenv 'PERILUNE_BENCH_PLAYERS' .. '/?.lua;' .. package.path
local player = require 'player'
local db = require('redis').connect{scheme = 'unix', path = arg[1] .. '/socket'}

-- All digits, on every Lua.
local function integer(n) return string.format('%.0f', n) end

local side = {operations = {}}
function side.get_step(n) return tonumber(db:hget('step', integer(n))) end
function side.set_step(n, value) db:hset('step', integer(n), integer(value)) end
function side.take(block) return tonumber(db:hincrby('taken', integer(block), 1)) end
function side.raise(steps, high)
  local reads, updates = 0, 0
  local function raised(t)
    reads = reads + 2
    local longest, highest = tonumber(t:get 'longest' or 0), tonumber(t:get 'highest' or 0)
    updates = 0
    t:multi()
    if steps > longest then
      t:set('longest', integer(steps))
      updates = updates + 1
    end
    if high > highest then
      t:set('highest', integer(high))
      updates = updates + 1
    end
  end
  -- The client tries again itself when another has changed what is watched.
  db:transaction({watch = {'longest', 'highest'}, cas = true, retry = 1000}, raised)
  return reads, updates
end
function side.records() return tonumber(db:get 'longest'), tonumber(db:get 'highest') end
function side.close() end

player.serve(side)
