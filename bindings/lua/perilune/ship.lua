-- Sends a transaction's function to the server of a database, which runs it there in one round trip.
--
-- Invariants
-- - What runs there is what would run here: a function travels as its text with its upvalues, tables with all
--   that they reach, nodes as their subscripts; what cannot travel is named, and nothing is sent.
-- - Afterwards tables and upvalues are as if the function had run here.
-- - It runs once: what it raises there is the error. What is given up there has left nothing and, unless it must
--   run there, runs here instead.
--
-- It does not do: locks and watches inside the function, which the server leaves to the program.
local debug = require 'debug'
local source = require 'perilune.source'

-- Taken now: the names may be the program's own later.
local unpack, type, next, select, pairs, ipairs = source.unpack, type, next, select, pairs, ipairs
local error, pcall, tonumber, tostring = error, pcall, tonumber, tostring
local rawequal, rawget, rawset, setmetatable = rawequal, rawget, rawset, setmetatable
local getfenv, loaded_modules, _G = getfenv, package.loaded, _G -- luacheck: ignore
local format, concat, huge = string.format, table.concat, math.huge
local math_type, tointeger = math.type, math.tointeger
local getinfo, getupvalue, setupvalue, getmeta = debug.getinfo, debug.getupvalue, debug.setupvalue, debug.getmetatable
local upvalueid = debug.upvalueid
local WIDE = math_type ~= nil -- numbers are integers or floats: the server's are doubles
local EXACT = 9007199254740992
local GLOBALS_MAX = 100

-- What the server has by name.
local LIBRARIES = {
  string = 'byte char find format gmatch gsub len lower match rep reverse sub upper',
  table = 'concat insert maxn remove sort unpack',
  math = 'abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min modf pi pow rad '
    .. 'random sin sinh sqrt tan tanh',
  bit = 'arshift band bnot bor bswap bxor lshift rol ror rshift tobit tohex',
}
local PLAIN = 'assert error getmetatable ipairs next pairs pcall rawequal rawget rawset select setmetatable tonumber '
  .. 'tostring type unpack xpcall'

local names = {} -- a function or library -> its name there
for name in PLAIN:gmatch '%a+' do
  if _G[name] then names[_G[name]] = name end
end
for library, fields in pairs(LIBRARIES) do
  local from = _G[library]
  if from then
    names[from] = library
    for field in fields:gmatch '%w+' do
      if type(from[field]) == 'function' and not names[from[field]] then
        names[from[field]] = library .. '.' .. field
      end
    end
  end
end

local perilune -- the module, by `ship`

local WEAK = {__mode = 'k'}
local methods = setmetatable({}, WEAK) -- class of all nodes -> {a function of it -> its name}
local places = setmetatable({}, WEAK) -- a function -> where its text is

local refused = {} -- text's place -> why a function does not run there
local needed = {} -- text's place -> names of globals that it uses

-- One sending.
local function new(ship, db)
  local node = db.node
  local class = ship.class_of(node '^x')
  return {out = {}, count = 0, numbers = {}, objects = {}, cells = {}, ship = ship, db = db, path = {}, class = class,
    names = {[db] = 'db', [perilune] = 'perilune', [node] = 'node', [class] = 'class',
      [perilune.node] = 'perilune.node', [perilune.isnode] = 'perilune.isnode', [perilune.list] = 'perilune.list',
      [perilune.null] = 'perilune.null', [perilune.empty_list] = 'perilune.empty_list',
      [perilune.empty_map] = 'perilune.empty_map', [perilune.DELETE] = 'perilune.DELETE',
      [getmeta(perilune.list {})] = 'mark'}}
end

local CANNOT = {}

local function refuse(this, why)
  error(setmetatable({why = concat(this.path, ', ') .. ' ' .. why .. ' cannot travel to the server'}, CANNOT), 0)
end

local write

local function put(this, ...)
  local out = this.out
  for i = 1, select('#', ...) do out[#out + 1] = (select(i, ...)) end
end

local function put_text(this, text) put(this, #text, ';', text) end

local function define(this, value)
  this.count = this.count + 1
  this.numbers[value] = this.count
  this.objects[this.count] = value
end

-- Writes `value`, which messages call `what`.
local function write_as(this, what, value)
  local path = this.path
  path[#path + 1] = what
  write(this, value)
  path[#path] = nil
end

local function shown(key)
  return type(key) == 'string' and format('field %q', key) or 'field ' .. tostring(key)
end

local function write_number(this, value)
  if value ~= value then
    put(this, 'q')
  elseif value - value ~= 0 then
    put(this, value < 0 and 'h-;' or 'h+;')
  elseif WIDE and math_type(value) == 'integer' then
    if value > EXACT or value < -EXACT then refuse(this, '(an integer beyond 2^53)') end
    put(this, format('d%d;', value))
  else
    put(this, format('d%.17g;', value))
  end
end

local function write_pairs(this, value)
  for key, field in next, value do
    write_as(this, 'key', key)
    write_as(this, shown(key), field)
  end
  put(this, 'e')
end

local function write_table(this, value)
  local meta = getmeta(value)
  if meta ~= nil and type(meta) == 'table' and rawget(meta, '__metatable') ~= nil then
    refuse(this, '(a table with a protected metatable)')
  end
  define(this, value)
  put(this, 'T')
  write_as(this, 'its metatable', meta)
  write_pairs(this, value)
end

local function is_ours(f)
  local info = getinfo(f, 'S')
  return info.what == 'C' or info.source:find('perilune[/.]ffi') ~= nil
end

-- A class that inherits from that of all nodes.
local function write_class(this, class)
  define(this, class)
  put(this, 'C')
  write_as(this, 'its class', rawget(class, '__superclass'))
  for key, field in next, class do
    if type(key) ~= 'string' or key:sub(1, 2) ~= '__' then
      write_as(this, 'key', key)
      write_as(this, shown(key), field)
    elseif type(field) == 'function' and not is_ours(field) then
      refuse(this, '(a class with ' .. key .. ')')
    end
  end
  put(this, 'e')
end

local function is_class(this, value)
  return value == this.class or rawget(value, '__name') == 'perilune.node'
end

local function write_node(this, value)
  local class = this.ship.class_of(value)
  if not this.ship.same_database(this.db, value) then refuse(this, '(a node of another database)') end
  local name = this.class.varname(value)
  if name:sub(1, 1) ~= '^' then refuse(this, '(a node of this program alone, without ^)') end
  put(this, 'O')
  write_as(this, 'its class', class)
  local subscripts = this.class.subsarray(value)
  put(this, #subscripts + 1, ';s')
  put_text(this, name)
  for _, subscript in ipairs(subscripts) do write_as(this, 'a subscript', subscript) end
end

-- The number of the variable that upvalue `index` of `f` is; true if it is new.
local function cell_of(this, f, index, name, value)
  local id
  if upvalueid then
    id = upvalueid(f, index)
    if this.cells[id] then return this.cells[id], false end
  else
    -- Lua 5.1: the same variable is what changes with it.
    for _, cell in ipairs(this.cells) do
      if cell.name == name and rawequal(select(2, getupvalue(cell.f, cell.index)), value) then
        local mark = {}
        setupvalue(f, index, mark)
        local same = select(2, getupvalue(cell.f, cell.index)) == mark
        setupvalue(f, index, value)
        if same then return cell, false end
      end
    end
  end
  local cell = {number = #this.cells + 1, f = f, index = index, name = name}
  this.cells[cell.number] = cell
  if id then this.cells[id] = cell end
  return cell, true
end

local function write_function(this, f)
  local text, name, line = source.of(f, this.ship.is_older)
  if text == nil then refuse(this, '(a function: ' .. name .. ')') end
  if getfenv and getfenv(f) ~= _G then refuse(this, '(a function with an environment of its own)') end
  define(this, f)
  put(this, 'F')
  put_text(this, name)
  put(this, line, ';')
  put_text(this, text)
  local upvalues, index = {}, 1
  while true do
    local upvalue, value = getupvalue(f, index)
    if upvalue == nil then break end
    if upvalue ~= '_ENV' then
      upvalues[#upvalues + 1] = {upvalue, value, index}
    elseif value ~= _G then
      refuse(this, '(a function with an environment of its own)')
    end
    index = index + 1
  end
  put(this, #upvalues, ';')
  for _, each in ipairs(upvalues) do
    local cell, is_new = cell_of(this, f, each[3], each[1], each[2])
    put_text(this, each[1])
    put(this, cell.number, ';')
    if is_new then write_as(this, "upvalue '" .. each[1] .. "'", each[2]) end
  end
end

local function write_object(this, value)
  local kind = type(value)
  local number = this.numbers[value]
  local name = this.names[value] or names[value]
  if number then return put(this, 'r', number, ';') end
  if name then
    put(this, 'L')
    return put_text(this, name)
  end
  if kind == 'function' then
    local class = this.ship.class_made(value)
    local method = this.methods[value]
    if method then
      put(this, 'L')
      return put_text(this, 'class.' .. method)
    elseif class then
      define(this, value)
      put(this, 'K')
      return write_as(this, 'its class', class)
    end
    return write_function(this, value)
  end
  if is_class(this, value) then return write_class(this, value) end
  local loaded = this.modules and this.modules[value]
  if loaded then
    define(this, value)
    put(this, 'M')
    return put_text(this, loaded)
  end
  write_table(this, value)
end

function write(this, value)
  local kind = type(value)
  if value == nil then
    put(this, 'n')
  elseif kind == 'boolean' then
    put(this, value and 't' or 'f')
  elseif kind == 'string' then
    put(this, 's')
    put_text(this, value)
  elseif kind == 'number' then
    write_number(this, value)
  elseif this.ship.class_of(value) then
    write_node(this, value)
  elseif kind == 'table' or kind == 'function' or this.names[value] then
    write_object(this, value)
  else
    refuse(this, '(a ' .. kind .. ')')
  end
end

------------------------------------------------------------------------------------------------ the answer

local function reader(this, text)
  local position, read = 2, nil
  local readers = {n = function() return nil end, t = function() return true end, f = function() return false end,
    q = function() return 0 / 0 end}
  local function word()
    local stop = text:find(';', position, true)
    local found = text:sub(position, stop - 1)
    position = stop + 1
    return found
  end
  function readers.d()
    local number = tonumber(word())
    return WIDE and tointeger(number) or number
  end
  function readers.h() return word() == '-' and -huge or huge end
  function readers.s()
    local length = tonumber(word())
    position = position + length
    return text:sub(position - length, position - 1)
  end
  function readers.r() return this.objects[tonumber(word())] end
  function readers.L()
    local name = readers.s()
    for value, known in pairs(this.names) do
      if known == name then return value end
    end
    for value, known in pairs(names) do
      if known == name then return value end
    end
    if name == 'tx' then return this.tx end
  end
  local function fill(target)
    while text:sub(position, position) ~= 'e' do
      local key = read()
      target[#target + 1] = {key, read()}
    end
    position = position + 1
  end
  local function set(target, fields)
    for _, field in ipairs(fields) do rawset(target, field[1], field[2]) end
    return target
  end
  function readers.T()
    local target, fields = {}, {}
    define(this, target)
    local meta = read()
    fill(fields)
    return setmetatable(set(target, fields), meta)
  end
  function readers.O()
    local class, list = read(), {}
    for i = 1, tonumber(word()) do list[i] = read() end
    return this.ship.node_of(class, this.db.node(unpack(list)))
  end
  function read()
    local tag = text:sub(position, position)
    position = position + 1
    return readers[tag]()
  end
  -- What has become of tables and upvalues.
  local function changes()
    while true do
      local tag = text:sub(position, position)
      position = position + 1
      if tag == '.' then return end
      local number = tonumber(word())
      if tag == 'c' then
        local target, fields = this.objects[number], {}
        fill(fields)
        local key = next(target)
        while key ~= nil do
          rawset(target, key, nil)
          key = next(target)
        end
        set(target, fields)
      else
        local cell = this.cells[number]
        setupvalue(cell.f, cell.index, (read()))
      end
    end
  end
  return read, word, changes
end

local function results(this, text)
  local read, word, changes = reader(this, text)
  local count, values = tonumber(word()), {}
  for i = 1, count do values[i] = read() end
  changes()
  return true, unpack(values, 1, count)
end

-- Raises the error that the function ended in at the server.
local function fail(this, text)
  local read, _, changes = reader(this, text)
  local code, failure, where, node = read(), read(), nil, nil
  if code then where, node = read(), read() end
  changes()
  if code then this.ship.fail(code, failure, where, node) end
  error(failure, 0)
end

local function place_of(f)
  local place = places[f]
  if place == nil then
    local info = getinfo(f, 'S')
    place = info.source .. ':' .. info.linedefined
    places[f] = place
  end
  return place
end

-- The request, or nil and why the function cannot travel.
local function request(this, f, with_tx, count, arguments, must)
  write(this, not must)
  local globals = needed[place_of(f)] or WEAK
  put(this, #globals, ';')
  for _, name in ipairs(globals) do
    put_text(this, name)
    write_as(this, "the global '" .. name .. "'", _G[name])
  end
  write_as(this, 'the function', f)
  put(this, count + (with_tx and 1 or 0), ';')
  if with_tx then
    this.names[this.tx] = 'tx'
    write(this, this.tx)
  end
  for i = 1, count do write_as(this, 'argument ' .. i, arguments[i]) end
  return concat(this.out)
end

local function methods_of(class)
  local found = {}
  for key, field in next, class do
    if type(field) == 'function' and is_ours(field) and key:sub(1, 2) ~= '__' then found[field] = key end
  end
  methods[class] = found
  return found
end

local function start(ship, db, tx, must)
  local this = new(ship, db)
  this.tx, this.methods = tx, methods[this.class] or methods_of(this.class)
  if must then
    this.modules = {}
    for name, module in pairs(loaded_modules) do
      if type(module) == 'table' and not names[module] and module ~= perilune then this.modules[module] = name end
    end
    this.modules[_G] = nil
  end
  return this
end

local function why_not(failure)
  if type(failure) == 'table' and getmeta(failure) == CANNOT then return failure.why end
  return nil
end

-- The function did not run at the server: here it will, or, where it must run there, the error says why.
local function leave_it(ship, must, place, why, for_ever)
  if must then ship.fail('INVALID', 'the function cannot run at the server: ' .. why) end
  if for_ever then refused[place] = why end
  return false
end

-- Whether a global that the server asks for is to be sent with the next try.
local function learn(place, name)
  local list = needed[place] or {}
  if list[name] or #list >= GLOBALS_MAX or (WIDE and rawget(_G, name) == nil) then return false end
  list[#list + 1], list[name] = name, true
  needed[place] = list
  return true
end

-- Runs `f` at the server: true and its results; or, unless it must run there, false.
return function(ship, module, db, options, tx, must, with_tx, f, count, ...)
  perilune = module
  local place = place_of(f)
  if not must and (WIDE or refused[place]) then return false end
  local arguments = {...}
  while true do
    local this = start(ship, db, tx, must)
    local good, text = pcall(request, this, f, with_tx, count, arguments, must)
    if not good then return leave_it(ship, must, place, why_not(text) or tostring(text), true) end
    local answer = ship.run(db, options, must, text)
    if not answer then return false end
    local kind, why = answer:sub(1, 1), answer:sub(2)
    if kind == 'd' or kind == 'b' then return results(this, answer) end
    if kind == 'e' then fail(this, answer) end
    if kind ~= 'g' then return leave_it(ship, must, place, why, kind == 'u') end
    if not learn(place, why) then
      local unknown = "the name '" .. why .. "' is nil, or a <const> outside the function, or one of too many globals"
      return leave_it(ship, must, place, unknown, true)
    end
  end
end
