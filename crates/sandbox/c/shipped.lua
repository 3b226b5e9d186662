-- Runs functions that a program sends, here as a transaction (bindings/lua/perilune/ship.lua sends them).
--
-- A request holds values, tables, nodes, and functions as text with their upvalues. They are rebuilt, the function
-- runs, and the reply holds its results and the program's tables and upvalues as the function has left them.
--
-- Invariants
-- - A request is not trusted: a malformed one gets an answer that says so.
-- - Only compiled text is kept after a run. Its globals are set anew for each function that is made of it.
--
-- It does not do: locks, watches, messages. A function that uses them runs in the program.
local compile, setfenv, globals, run, seen = ...
local type, pairs, next, select, error, pcall, setmetatable = type, pairs, next, select, error, pcall, setmetatable
local rawget, rawset, rawequal, tonumber, tostring, unpack = rawget, rawset, rawequal, tonumber, tostring, unpack
local concat, format, sub, find, byte = table.concat, string.format, string.sub, string.find, string.byte
local getmetatable, ipairs = getmetatable, ipairs
local STOP, leave, parts, base, node_of, class_of = seen.STOP, seen.leave, seen.parts, seen.base, seen.node_of, seen.class_of
local maker, failures, known, own_meta, global = seen.maker, seen.failures, seen.known, seen.own_meta, seen.global
local LIBRARIES = seen.LIBRARIES

local COMPILED_MAX = 500
local chunks, chunk_count = {}, 0
local NOTHING = {}

-- What a function sees outside itself: its upvalues, by their names, then globals.
local function environment(cells)
  return setmetatable({}, {
    __index = function(_, name)
      local cell = cells[name]
      if cell ~= nil then return cell.value end
      return global(name)
    end,
    __newindex = function(_, name, value)
      local cell = cells[name]
      if cell == nil then leave('u', "the global '" .. tostring(name) .. "' is set") end
      cell.value = value
    end,
    __metatable = false,
  })
end

local function function_of(name, line, source, cells)
  local key = name .. '\0' .. line .. '\0' .. source
  local chunk = chunks[key]
  if chunk == nil then
    local why
    chunk, why = compile(('\n'):rep(line - 1) .. 'return ' .. source, name)
    if chunk == nil then leave('u', 'the Lua of the server, LuaJIT, cannot compile it: ' .. tostring(why)) end
    if chunk_count >= COMPILED_MAX then chunks, chunk_count = {}, 0 end
    chunks[key], chunk_count = chunk, chunk_count + 1
  end
  setfenv(chunk, environment(cells))
  local f = chunk()
  setfenv(chunk, NOTHING)
  return f
end

---------------------------------------------------------------------------------------------- the request

local function named(name)
  local library, field = name:match '^(%w+)%.([%w_]+)$'
  if library == 'class' then return base[field] end
  if library == 'db' or library == 'perilune' then return run.own[library][field] end
  if library then return LIBRARIES[library][field] end
  local own = run.own[name]
  if own ~= nil then return own end
  return global(name)
end

local packet, position
local read -- reads one value

local function word()
  local stop = find(packet, ';', position, true)
  local found = sub(packet, position, stop - 1)
  position = stop + 1
  return found
end

local function bytes()
  local length = tonumber(word())
  position = position + length
  return sub(packet, position - length, position - 1)
end

local function define(value)
  run.count = run.count + 1
  run.objects[run.count] = value
  run.numbers[value] = run.count
  return value
end

-- Reads pairs into `target`, and again into what it is compared with.
local function fill(target)
  local former = {}
  while byte(packet, position) ~= 101 do -- e
    local key = read()
    local value = read()
    rawset(target, key, value)
    former[key] = value
  end
  position = position + 1
  run.formers[target] = former
  return target
end

local readers = {
  n = function() return nil end,
  t = function() return true end,
  f = function() return false end,
  d = function() return tonumber(word()) end,
  h = function() return word() == '-' and -math.huge or math.huge end,
  q = function() return 0 / 0 end,
  s = bytes,
  r = function() return run.objects[tonumber(word())] end,
  L = function() return named(bytes()) end,
  M = function() return globals.require(bytes()) end,
}

function readers.T()
  local target = define {}
  local meta = read()
  fill(target)
  if meta ~= nil then setmetatable(target, meta) end
  return target
end

-- A class of nodes: its parent and what it has beside it.
function readers.C()
  local class, meta = class_of()
  define(class)
  meta.__index = read()
  rawset(class, '__superclass', meta.__index)
  fill(class)
  local former = run.formers[class]
  for key, value in next, class do former[key] = value end
  return class
end

function readers.O()
  local class, list = read(), {}
  for i = 1, tonumber(word()) do list[i] = read() end
  return node_of(class, list)
end

-- The function that makes nodes of a class.
function readers.K()
  local holder = define {}
  local class = read()
  local make = maker(class)
  run.objects[run.numbers[holder]] = make
  run.numbers[make] = run.numbers[holder]
  return make
end

function readers.F()
  local name, line, source, cells = bytes(), tonumber(word()), bytes(), {}
  local f = define(function_of(name, line, source, cells))
  for _ = 1, tonumber(word()) do
    local upvalue, number = bytes(), tonumber(word())
    local cell = run.cells[number]
    if cell == nil then
      cell = {}
      run.cells[number] = cell
      cells[upvalue] = cell
      run.upvalues[upvalue] = true
      cell.value = read()
      cell.former = cell.value
    end
    cells[upvalue] = cell
  end
  return f
end

function read()
  local tag = sub(packet, position, position)
  position = position + 1
  return readers[tag]()
end

------------------------------------------------------------------------------------------------ the answer

local out

local function put(...)
  for i = 1, select('#', ...) do out[#out + 1] = (select(i, ...)) end
end

local write

local function put_pairs(from)
  for key, value in next, from do
    write(key)
    write(value)
  end
  put 'e'
end

local writers = {
  ['nil'] = function() put 'n' end,
  boolean = function(value) put(value and 't' or 'f') end,
  string = function(value) put('s', #value, ';', value) end,
  number = function(value)
    if value ~= value then
      put 'q'
    elseif value - value ~= 0 then
      put('h', value < 0 and '-' or '+', ';')
    else
      put('d', format('%.17g', value), ';')
    end
  end,
}

function writers.table(value)
  local part = parts[value]
  if part then
    put 'O'
    write(part.class)
    put(#part.list, ';')
    for i = 1, #part.list do write(part.list[i]) end
    return
  end
  local meta = getmetatable(value)
  if meta ~= nil and run.numbers[meta] == nil and run.names[meta] == nil then
    leave('u', 'a table with a metatable of its own comes back')
  end
  define(value)
  put 'T'
  write(meta)
  put_pairs(value)
end

function write(value)
  local kind = type(value)
  local is_object = kind == 'table' or kind == 'function' or kind == 'userdata'
  local number = is_object and run.numbers[value]
  if number then
    put('r', number, ';')
  elseif is_object and (run.names[value] or known[value]) then
    local name = run.names[value] or known[value]
    put('L', #name, ';', name)
  elseif writers[kind] then
    writers[kind](value)
  else
    leave('u', 'a ' .. kind .. ' made at the server cannot come back')
  end
end

local function is_changed(target, former)
  for key, value in next, target do
    if not rawequal(former[key], value) and value == value then return true end
  end
  for key in next, former do
    if rawget(target, key) == nil then return true end
  end
  return false
end

-- What has become of the tables and upvalues of the program.
local function put_changes()
  local targets = {}
  for target in pairs(run.formers) do targets[#targets + 1] = target end
  for i = 1, #targets do
    local target = targets[i]
    if is_changed(target, run.formers[target]) then
      put('c', run.numbers[target], ';')
      put_pairs(target)
    end
  end
  for number, cell in pairs(run.cells) do
    if not rawequal(cell.value, cell.former) and (cell.value == cell.value or cell.former == cell.former) then
      put('v', number, ';')
      write(cell.value)
    end
  end
  put '.'
end

local function put_results(count, ...)
  put(count, ';')
  for i = 1, count do write((select(i, ...))) end
  put_changes()
end

-- An error of Lua itself names a variable of a function's surroundings as a global one.
local function as_there(failure)
  if type(failure) ~= 'string' then return failure end
  return (failure:gsub("global ('([%a_][%w_]*)' %(an? %a+ value%))$", function(rest, name)
    return run.upvalues[name] and 'upvalue ' .. rest
  end))
end

local function finish(good, ...)
  if run.left then error(STOP, 0) end
  out = {}
  if run.doomed then
    put 'b'
    put_results(1, run.value)
  elseif good then
    put 'd'
    put_results(select('#', ...), ...)
  else
    put 'e'
    local failure = (...)
    local ours = failure ~= nil and failures[failure]
    if ours then
      for _, field in ipairs {'code', 'message', 'where', 'node'} do write(ours[field]) end
    else
      put 'n'
      write(as_there(failure))
    end
    put_changes()
  end
end

local function serve()
  run.exact = read()
  run.own = setmetatable({}, own_meta)
  for _ = 1, tonumber(word()) do
    local name = bytes()
    run.globals[name] = {}
    run.globals[name].value = read()
  end
  local f = read()
  local count = tonumber(word())
  local arguments = {}
  for i = 1, count do arguments[i] = read() end
  finish(pcall(f, unpack(arguments, 1, count)))
end

local EMPTIED = {'objects', 'numbers', 'formers', 'cells', 'globals', 'libraries', 'names', 'upvalues'}

return function(request)
  packet, position = request, 1
  run.level, run.count, run.left, run.doomed, run.value = 1, 0, nil, nil, nil
  for i = 1, #EMPTIED do run[EMPTIED[i]] = {} end
  local good, why = pcall(serve)
  local left = run.left
  for i = 1, #EMPTIED do run[EMPTIED[i]] = nil end
  run.own, run.value, packet = nil, nil, nil
  if left then return left end
  if not good then return 'xthe request is none: ' .. tostring(why) end
  local reply = concat(out)
  out = nil
  return reply
end
