-- A player in Lua: serves the lines of bench/src/player/mod.rs with the functions of a side.
--
-- A side is a table of functions: set(n, value), get(n), get_step(n), set_step(n, value), raise(steps, highest)
-- (returns reads, updates), records(), take(block), set_batch(first, last, value), account(n, balance),
-- transfer(from, to), balance(n), close(), and operations, a table of functions by the names that traces
-- have, each called with a list of subscripts and the argument. `query` returns a list of subscripts and
-- the value.

local VALUE = 'Chris Munt'
-- Values of random sets, which differ from set to set: some peers write nothing where the new value is the old one.
local VALUES, RIGHT = {}, {}
for index = 0, 99 do
  VALUES[index] = string.format('Chris Mu%02d', index)
  RIGHT[VALUES[index]] = true
end

local function random(seed)
  local state = seed % 2147483646 + 1
  return function(limit)
    state = state * 16807 % 2147483647
    return state % limit + 1
  end
end

local function integer(number) return string.format('%d', number) end

-- 3n+1 as in the paper: reads and updates are counted.
local function solve(side, n)
  local reads, updates, block = 0, 0, math.max(math.floor(n / 100), 1)
  local get_step, set_step, raise = side.get_step, side.set_step, side.raise
  local path = {}
  local function sequence(start)
    local at, highest, steps = start, 0, 0
    reads = reads + 1
    local known = get_step(at)
    while not known and at > 1 do
      steps = steps + 1
      path[steps] = at
      at = at % 2 == 1 and 3 * at + 1 or (at - at % 2) / 2
      if math.type then at = math.tointeger(at) end
      if at > highest then highest = at end
      reads = reads + 1
      known = get_step(at)
    end
    if steps == 0 then return end
    local total = steps
    if at > 1 then
      reads = reads + 1
      total = total + get_step(at)
    end
    local r, u = raise(total, highest)
    reads, updates = reads + r, updates + u
    for index = 1, steps do set_step(path[index], total - index + 1) end
    updates = updates + steps
  end
  for index = 0, math.ceil(n / block) - 1 do
    if side.take(index + 1) == 1 then
      for start = index * block + 1, math.min(index * block + block, n) do sequence(start) end
    end
  end
  return integer(reads) .. ' ' .. integer(updates)
end

local ESCAPES = {['\\\\'] = '\\', ['\\t'] = '\t', ['\\n'] = '\n', ['\\r'] = '\r'}
local function unescaped(text) return (text:gsub('\\.', ESCAPES)) end
local function escaped(text)
  return (text:gsub('[\\\t\n\r]', {['\\'] = '\\\\', ['\t'] = '\\t', ['\n'] = '\\n', ['\r'] = '\\r'}))
end

-- Canonical integers are numbers.
local function subscript(text)
  local number = text:match('^%-?%d+$') and #text < 16 and tonumber(text)
  if number and integer(number) == text then return number end
  return text
end

local function text(value)
  if type(value) == 'number' and value % 1 == 0 then return integer(value) end
  return value == nil and '' or tostring(value)
end

-- The operations of one phase of a trace.
local function load(side, file, phase)
  local operations = {}
  for line in io.lines(file) do
    if line:sub(1, 1) ~= '#' and (phase == '-' or line:sub(1, #phase + 1) == phase .. '\t') then
      local columns = {}
      for column in (line .. '\t'):gmatch('([^\t]*)\t') do columns[#columns + 1] = column end
      local count, subscripts = tonumber(columns[4]), {}
      for index = 1, count do subscripts[index] = subscript(unescaped(columns[4 + index])) end
      local name, argument = columns[2], unescaped(columns[5 + count])
      if name == 'increment' then argument = tonumber(argument) end
      if name == 'merge' then
        local target = {}
        for part in argument:gmatch('[^,]+') do target[#target + 1] = subscript(part) end
        argument = target
      end
      operations[#operations + 1] =
        {side.operations[name], subscripts, argument, unescaped(columns[6 + count]), name, columns[3]}
    end
  end
  return operations
end

local function answer(name, first, second)
  if name ~= 'query' then return text(first) end
  if not first then return '' end
  local parts = {}
  for index = 1, #first do parts[index] = text(first[index]) end
  return table.concat(parts, ',') .. '=' .. text(second)
end

-- How many of the operations answer otherwise than they should.
local function replay(operations, from, count)
  local wrong = 0
  for index = from + 1, math.min(from + count, #operations) do
    local operation = operations[index]
    local name, expected = operation[5], operation[4]
    local first, second = operation[1](operation[2], operation[3], operation[6])
    if name ~= 'set' and name ~= 'kill' and name ~= 'merge' and answer(name, first, second) ~= expected
      and expected ~= '*' then
      wrong = wrong + 1
    end
  end
  return wrong
end

local function dump(side, file, name)
  local out, count, at = assert(io.open(file, 'w')), 0, {}
  while true do
    local subscripts, value = side.operations.query(at, nil, name)
    if not subscripts then break end
    for index = 1, #subscripts do out:write(escaped(text(subscripts[index])), '\t') end
    out:write(escaped(text(value)), '\n')
    at, count = subscripts, count + 1
  end
  out:close()
  return count
end

-- One line's answer.
local function job(side, state, word, a, b, c)
  local x, y, z = tonumber(a), tonumber(b), tonumber(c)
  if word == 'set' then
    local set = side.set
    for n = x, x + y - 1 do set(n, VALUE) end
    return y
  elseif word == 'get' then
    local get, right = side.get, 0
    for n = x, x + y - 1 do
      local found = get(n)
      if found == VALUE or RIGHT[found] then right = right + 1 end
    end
    return right
  elseif word == 'rset' then
    local set, pick = side.set, random(y)
    for turn = y, y + x - 1 do set(pick(z), VALUES[turn % 100]) end
    return x
  elseif word == 'rget' then
    local get, pick, right = side.get, random(y), 0
    for _ = 1, x do
      local found = get(pick(z))
      if found == VALUE or RIGHT[found] then right = right + 1 end
    end
    return right
  elseif word == 'bset' then
    for first = x, x + y - 1, z do side.set_batch(first, math.min(first + z, x + y) - 1, VALUE) end
    return y
  elseif word == 'accounts' then
    for n = 1, x do side.account(n, 1000) end
    return x
  elseif word == 'bank' then
    local sum = 0
    for n = 1, x do sum = sum + side.balance(n) end
    return sum
  elseif word == 'transfer' then
    local transfer, pick = side.transfer, random(y)
    for _ = 1, x do
      local from = pick(z)
      transfer(from, (from - 1 + pick(z - 1)) % z + 1)
    end
    return x
  elseif word == 'collatz' then
    return solve(side, x)
  elseif word == 'result' then
    local longest, highest = side.records()
    return integer(longest) .. ' ' .. integer(highest)
  elseif word == 'steps' then
    local sum = 0
    for n = 1, x, y do sum = sum + (side.get_step(n) or 0) end
    return sum
  elseif word == 'load' then
    state.operations = load(side, a, b)
    return #state.operations
  elseif word == 'replay' then
    return replay(state.operations, x, y)
  elseif word == 'dump' then
    return dump(side, a, b)
  elseif word == 'close' then
    side.close()
    return ''
  end
  error('no such job: ' .. tostring(word))
end

local player = {text = text, subscript = subscript}

-- Answers one line.
function player.answer(side, state, line)
  local words = {}
  for word in line:gmatch('%S+') do words[#words + 1] = word end
  local done, result = pcall(job, side, state, (table.unpack or unpack)(words))
  if done then return 'ok ' .. text(result) end
  return 'error ' .. tostring(result):gsub('\n', ' ')
end

-- Serves standard input until it ends.
function player.serve(side)
  local state = {}
  io.write('ready\n')
  io.flush()
  for line in io.lines() do
    io.write(player.answer(side, state, line), '\n')
    io.flush()
  end
end

return player
