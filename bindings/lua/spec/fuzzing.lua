-- Calls of every function with arguments of every kind, at random: each succeeds or raises an error that says
-- what was wrong. What fuzz_spec.lua and yottadb_fuzz.lua share.
--
-- The seed is printed; PERILUNE_SEED runs it again, PERILUNE_FUZZ_ROUNDS says how many calls, and with
-- PERILUNE_FUZZ_TRACE each call is written to stderr before it is made.

local perilune = require 'perilune'

local fuzzing = {}
local seed = tonumber(os.getenv 'PERILUNE_SEED') or os.time() % 2147483646 + 1
local state = seed

-- An integer from 1 to n, the same on every Lua.
local function random(n)
  state = state * 16807 % 2147483647
  return math.floor(state / 65536) % n + 1
end

fuzzing.random = random
fuzzing.rounds = tonumber(os.getenv 'PERILUNE_FUZZ_ROUNDS') or 4000

local mine = {}
local function raising() error(mine) end

-- Tables that do not like to be looked at.
local function hostile()
  local cycle = {1}
  cycle.again = cycle
  local deep = {}
  local at = deep
  for _ = 1, 300 do at.x = {} at = at.x end
  local lists = {}
  for _ = 1, 400 do lists = {lists} end
  local shy = setmetatable({}, {__index = raising, __newindex = raising, __len = raising, __pairs = raising, __tostring = raising,
    __call = raising, __eq = raising, __lt = raising, __le = raising, __concat = raising})
  return {cycle, deep, lists, shy, {[1.5] = 1, [true] = 2}, {{}, {}}, {1, nil, 3}, {'a', 'b'}, {x = {y = {__ = 1, z = 0 / 0}}},
    setmetatable({}, {__tostring = function() return nil end}), setmetatable({1, 2}, {__index = function(_, k) return k end}),
    setmetatable({}, {__metatable = false}), setmetatable({}, {__name = 5}), {[cycle] = 1}, {__ = {}}, {__ = 5, {}, 'x'}}
end

-- Values that no function asks for, or every function.
function fuzzing.values()
  local values = {0, 1, 2, -1, 5, 255, 256, 2 ^ 31, 2 ^ 53, 2 ^ 63, -2 ^ 63, 2 ^ 64, 1e300, 1e-300, 0.5, -0.0, 1 / 0, -1 / 0, 0 / 0,
    '', 'x', '1', '01', '-5', '1e5', '.5', '\0', 'a\0b', '^a', '^b', 'name', '$x', '^', '__', 'get', '\255\254', ('k'):rep(300),
    ('v'):rep(3000), ('^'):rep(50), ('x'):rep(2000), ('big'):rep(40000), '{"a":[1,{"b":null}]}', '{"a":', ('['):rep(5000), 'children',
    'nodes', 'subtree', 'node', 'batch', 'none', true, false, type, tostring, raising, io.stdout, math.pi,
    coroutine.create(function() end), coroutine.wrap(function() coroutine.yield() end), perilune.null, perilune.empty_list,
    perilune.empty_map, perilune.DELETE, perilune.list {}, perilune.list {1}, coroutine.yield,
    function() coroutine.yield(1) end, function() error() end, function() error 'mine' end, function(...) return ... end,
    function() return 1, 2, 3 end, function() collectgarbage() end}
  for _, t in ipairs(hostile()) do values[#values + 1] = t end
  return values
end

-- Why the error is none that a call may raise, or nil.
local function odd(e)
  if perilune.is_error(e) then
    if e.code == 'INTERNAL' or e.code == 'CORRUPT' or e.code == 'IO' then return 'code ' .. e.code end
    if type(e.message) ~= 'string' or #e.message < 10 then return 'no message' end
    if not tostring(e):find('perilune: ', 1, true) then return 'no text' end
    return nil
  end
  if e == mine or e == nil or type(e) == 'table' then return nil end
  if type(e) ~= 'string' then return 'a ' .. type(e) end
  for _, part in ipairs {'bad argument', 'attempt to', 'mine', 'yield', 'YDB Error: ', 'expected', 'Parameter', 'Cannot ', 'cannot ',
    'tostring', 'subscript', 'not a', 'invalid', 'must ', 'too long', 'exceeded', 'outside',
    'perilune: ', 'Did you mean', 'index is ', 'could not find', 'already updated', 'no error object'} do
    if e:find(part, 1, true) then return nil end
  end
  return 'a text that names nothing'
end

local function show(x)
  if type(x) == 'string' then return string.format('%q', #x > 160 and x:sub(1, 160) .. '...' or x) end
  local good, text = pcall(tostring, x)
  return good and type(text) == 'string' and text or type(x)
end

local function describe(name, arguments)
  local words = {}
  for i = 1, arguments.n do words[i] = show(arguments[i]) end
  return name .. '(' .. table.concat(words, ', ') .. ')'
end

local trace = os.getenv 'PERILUNE_FUZZ_TRACE'
local unpack = table.unpack or unpack

-- Calls `f` with the arguments, sometimes in another coroutine, and follows what comes back. Returns the results.
local function call(name, f, arguments)
  if trace then io.stderr:write(describe(name, arguments), '\n') end
  local run = f
  if random(5) == 1 then
    run = function(...)
      local thread = coroutine.create(f)
      local results = {coroutine.resume(thread, ...)}
      if not results[1] then error(results[2], 0) end
      return unpack(results, 2, 5)
    end
  end
  local results = {pcall(run, unpack(arguments, 1, arguments.n))}
  if not results[1] then
    local why = odd(results[2])
    if why then
      error('seed ' .. seed .. ': ' .. describe(name, arguments) .. ' raised ' .. show(results[2]) .. ': ' .. why, 0)
    end
    return {}
  end
  -- Iterators are run for a while.
  if type(results[2]) == 'function' and type(f) == 'function' then
    local step, s, at = results[2], results[3], results[4]
    for _ = 1, random(6) do
      local good, first = pcall(step, s, at)
      if not good then
        local why = odd(first)
        if why then error('seed ' .. seed .. ': a step of ' .. describe(name, arguments) .. ' raised ' .. show(first) .. ': ' .. why, 0) end
        break
      end
      at = first
      if at == nil then break end
    end
  end
  return results
end

-- Calls the functions of `functions` (name -> function) at random: `first(name)` gives the argument that they are
-- methods of (or nil), `fixed[name]` replaces arguments, and `values` is where the others come from; what a call
-- returns may be an argument of the next. `between()` is called now and then.
function fuzzing.run(functions, first, fixed, values, between)
  io.write('    seed ', seed, '\n')
  local names = {}
  for name in pairs(functions) do names[#names + 1] = name end
  table.sort(names)
  local kept = {}
  local most = math.ceil(fuzzing.rounds / #names)
  for round = 1, most do
    for _, name in ipairs(names) do
      local arguments = {n = random(6) - 1}
      for i = 1, arguments.n do
        if random(4) == 1 and #kept > 0 then
          arguments[i] = kept[random(#kept)]
        else
          arguments[i] = values[random(#values)]
        end
      end
      local self = first(name)
      if self ~= nil and random(12) > 1 then
        arguments[1] = self
        arguments.n = math.max(arguments.n, 1)
      end
      if fixed[name] then fixed[name](arguments) end
      local results = call(name, functions[name], arguments)
      for i = 2, 4 do
        local kind = type(results[i])
        if kind == 'userdata' or kind == 'cdata' or kind == 'table' then kept[random(40)] = results[i] end
      end
      for i = 1, 40 do if kept[i] == nil then kept[i] = i end end
    end
    if round % 5 == 0 then between() end
    if round % 40 == 0 then collectgarbage() end
  end
end

-- A time that a waiting function is given: short, or none at all.
function fuzzing.timeout()
  local times = {0, 0, 0.0001, -1, 0 / 0, 'x', {}, true}
  return times[random(#times)]
end

return fuzzing
