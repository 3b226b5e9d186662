-- 3n+1 in the server over ARGV[2] to ARGV[3], as in Table 1 of the article that clients.rs names. The maxima of
-- part ARGV[1] are its own: between two calls of a script that is not atomic another may have changed shared ones.
local reads, updates = 0, 0
local longest, highest_key = 'longest:' .. ARGV[1], 'highest:' .. ARGV[1]
local function GET(key, default) reads = reads + 1 return redis.call('GET', key) or default end
local function SET(key, value) redis.call('SET', key, value) updates = updates + 1 end
local function HGET(key, field) reads = reads + 1 return redis.call('HGET', key, field) end
local function HSET(key, field, value) updates = updates + 1 redis.call('HSET', key, field, value) end
local function sequence(n)
  local steps, highest, path = 0, 0, {}
  while not HGET('step', n) and n > 1 do
    path[steps] = n
    n = n % 2 > 0 and 3 * n + 1 or n / 2
    if n > highest then highest = n end
    steps = steps + 1
  end
  if steps == 0 then return end
  if n > 1 then steps = steps + HGET('step', n) end
  if steps > tonumber(GET(longest, 0)) then SET(longest, steps) end
  if highest > tonumber(GET(highest_key, 0)) then SET(highest_key, highest) end
  for i = 0, #path do HSET('step', path[i], steps - i) end
end
for n = tonumber(ARGV[2]), tonumber(ARGV[3]) do sequence(n) end
return {redis.call('GET', longest), redis.call('GET', highest_key), reads, updates}
