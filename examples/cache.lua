-- Results that are computed once, by whichever process comes first: lua cache.lua [PATH]

local perilune = require 'perilune'
local db = perilune.open((...))
local cache = db.node('^cache')

-- The value for `key`; `compute` runs in one process, and others that ask meanwhile sleep until it is done.
local function cached(key, compute)
  local entry = cache[key]
  local value = entry.__
  if value ~= nil then return value, 'found' end
  entry:grab()
  value = entry.__
  if value == nil then
    value = compute(key)
    entry.__ = value
  end
  entry:release()
  return value, 'computed'
end

cache:kill()
local function square(n) return n * n end
print(cached(12, square))
print(cached(12, square))
cache:kill()
