-- What a function that a program has sent finds here (shipped.lua runs it): nodes, transactions, libraries. Each
-- behaves as in the program (bindings/lua), or ends the run.
--
-- Ending a run is `leave`: nothing of it is stored, and the program, which is told why, may run the function
-- itself.
-- Invariants
-- - A run that would differ from one in the program is ended, whatever the function catches.
-- - Tables that a function can write into are made anew for each run.
local ask, globals, run, marks, where, open_documents, open_json, status_of = ... -- `run` is the state of the run under way
local type, pairs, select, error, pcall, setmetatable = type, pairs, select, error, pcall, setmetatable
local rawequal, rawset, tostring, unpack, sub = rawequal, rawset, tostring, unpack, string.sub

local STOP = {}

-- Gives the run up. `kind`: u for ever, x this time, g a global is needed.
local function leave(kind, why)
  if not run.left then run.left = kind .. why end
  error(STOP, 0)
end

local function check()
  if run.left or run.doomed then error(STOP, 0) end
end

-- What errors of ours are, by what a function catches of them.
local failures = setmetatable({}, {__mode = 'k'})

-- Their place may be another one than in the program, since a tail call leaves no trace here: where all is to be as there,
-- whoever looks at it, or at all that an error has, gives the run up.
local closed = {__metatable = false}
local function look() leave('x', 'the place of an error is looked at') end
closed.__tostring, closed.__newindex = look, look
function closed.__index(e, field)
  if field == 'where' then look() end
  return failures[e][field]
end

local errors = {__name = 'perilune.error', __metatable = false}

function errors.__tostring(e)
  local at = e.node and ' (at ' .. tostring(e.node) .. ')' or ''
  return tostring(e.where or '') .. 'perilune: ' .. tostring(e.message) .. at
end

local MARKS = {['0'] = marks.null, ['1'] = marks.empty_list, ['2'] = marks.empty_map}

-- A value as the host has answered it: what JSON has beside is wrapped.
local function plain(value)
  if type(value) ~= 'table' then return value end
  return MARKS[value.mark]
end

-- Asks the host about a node; its errors are as in the program, or the program is to find them itself: whoever
-- catches one may look at all that it has.
local function query(operation, list, ...)
  if run.left or run.doomed then error(STOP, 0) end
  local count = #list
  local words = {operation, count}
  for i = 1, count do words[i + 2] = list[i] end
  local more = select('#', ...)
  for i = 1, more do words[count + 2 + i] = (select(i, ...)) end
  local good, answer = pcall(ask, unpack(words, 1, count + 2 + more))
  if good then
    if type(answer) == 'table' and answer.mark then return MARKS[answer.mark] end
    return answer
  end
  local code, message = tostring(answer):match '^([A-Z_]+) (.*)$'
  if code == 'LEAVE' then leave('u', message) end
  if code == nil then leave('x', 'an operation failed: ' .. tostring(answer)) end
  local known, node = pcall(ask, 'text', unpack(words, 2, count + 2))
  if not known then node = nil elseif #node >= 1024 then node = 'a node with a long name' end
  if node and #node > 200 then node = sub(node, 1, 200) .. '...' end
  local failure = {code = code, status = status_of(code), message = sub(message, 1, 1023), where = where(), node = node}
  local shown = run.exact and setmetatable({}, closed) or setmetatable(failure, errors)
  failures[shown] = failure
  error(shown, 0)
end

---------------------------------------------------------------------------------------------------- nodes

local parts = setmetatable({}, {__mode = 'k'}) -- node -> {class =, list =}
local base = {} -- the functions of nodes

local function node_of(class, list)
  local node = setmetatable({}, class)
  parts[node] = {class = class, list = list}
  return node
end

local function with(list, ...)
  local longer, count = {}, #list
  for i = 1, count do longer[i] = list[i] end
  for i = 1, select('#', ...) do
    local subscript = select(i, ...)
    local kind = type(subscript)
    if kind ~= 'string' and kind ~= 'number' then leave('x', 'a subscript is ' .. kind) end
    longer[count + i] = subscript
  end
  return longer
end

local function part_of(node)
  local part = parts[node]
  if part == nil then leave('x', 'a node is expected') end
  return part
end

local function list_of(node) return part_of(node).list end

local function index(node, key)
  local part = parts[node]
  if key == '__' then
    local get = part.class.get
    if rawequal(get, base.get) then return query('get', part.list) end
    return get(node)
  end
  if type(key) == 'string' and sub(key, 1, 2) == '__' then return part.class[sub(key, 3)] end
  return node_of(part.class, with(part.list, key))
end

local function newindex(node, key, value)
  if key ~= '__' then leave('x', 'a node has no such field') end
  parts[node].class.set(node, value)
end

local function call(node, first, ...)
  local part = parts[node]
  if parts[first] ~= nil then
    local name = part.list[#part.list]
    local method = parts[first].class[name]
    if method == nil then leave('x', 'a node has no method ' .. tostring(name)) end
    return method(first, ...)
  end
  return node_of(part.class, with(part.list, first, ...))
end

local function text(node) return query('text', list_of(node)) end

local function equal(left, right)
  return parts[left] ~= nil and parts[right] ~= nil and parts[left].class == parts[right].class
    and text(left) == text(right)
end

local function unordered() leave('u', 'nodes are compared') end

-- A class of nodes, and its metatable, whose __index is the parent.
local function class_of()
  local class = {__index = index, __newindex = newindex, __call = call, __tostring = text, __eq = equal,
    __lt = unordered, __le = unordered}
  local meta = {__index = base, __metatable = false}
  return setmetatable(class, meta), meta
end

-- A method that the program has and this has not.
setmetatable(base, {__index = function(_, name)
  return function() leave('u', "the method '" .. tostring(name) .. "' of a node works in the program only") end
end, __metatable = false})

local function number_or_text(by)
  if type(by) ~= 'number' then leave('x', 'a node is increased by a ' .. type(by)) end
  return by
end

function base.get(node, default)
  local value = query('get', list_of(node))
  if value == nil then return default end
  return value
end

local SETS = {[marks.null] = 'null', [marks.empty_list] = 'empty_list', [marks.empty_map] = 'empty_map'}

function base.set(node, value)
  local kind = type(value)
  if value == nil then
    query('delete', list_of(node))
  elseif kind == 'string' or kind == 'boolean' or (kind == 'number' and value - value == 0) then
    query('set', list_of(node), value)
  elseif SETS[value] then
    query(SETS[value], list_of(node))
  else
    leave('x', 'a node is set to a ' .. kind)
  end
  return value
end

function base.incr(node, by) return query('incr', list_of(node), number_or_text(by == nil and 1 or by)) end
function base.data(node) return query('data', list_of(node)) end
function base.has_value(node) return query('data', list_of(node)) % 10 == 1 end
function base.has_tree(node) return query('data', list_of(node)) >= 10 end
function base.delete(node) return query('delete', list_of(node)) == 1 end
function base.kill(node) query('kill', list_of(node)) end

-- The subscript and the value behind or before `at`, or nothing.
local function step(operation, list, at)
  local found = query(operation, list, at)
  if found == nil then return nil end
  return plain(found[1]), plain(found[2])
end

function base.next(node, after) return step('after', list_of(node), after) end
function base.previous(node, before) return step('before', list_of(node), before) end

function base.varname(node) return list_of(node)[1] end
function base.depth(node) return #list_of(node) - 1 end

-- The subscript as the database has it: the text of a number is the number.
local function subscript_at(list, at) return query('subscript', {unpack(list, 1, at + 1)}) end

function base.name(node)
  local list = list_of(node)
  if #list == 1 then return list[1] end
  return subscript_at(list, #list - 1)
end

function base.subsarray(node)
  local list, subscripts = list_of(node), {}
  for i = 1, #list - 1 do subscripts[i] = subscript_at(list, i) end
  return subscripts
end

local function maker(class)
  return function(name, ...)
    if parts[name] ~= nil then return node_of(class, with(parts[name].list, ...)) end
    if type(name) ~= 'string' then leave('x', 'a name is a ' .. type(name)) end
    if sub(name, 1, 1) ~= '^' then leave('u', "the name '" .. name .. "' is private to the program") end
    return node_of(class, with({name}, ...))
  end
end

--------------------------------------------------------------------------------------------- transactions

-- Whether the level that ends is the one that is to be rolled back; its value.
local function settle(level, good, ...)
  run.level = level
  if run.left then error(STOP, 0) end
  if run.doomed then
    ask('rollback', 1, '^level')
    if run.doomed ~= level + 1 then error(STOP, 0) end
    run.doomed = nil
    return run.value
  end
  if not good then
    ask('rollback', 1, '^level')
    error((...), 0)
  end
  ask('commit', 1, '^level')
  return ...
end

local function transaction(_, options, f, ...)
  check()
  if type(options) == 'function' then return transaction(_, nil, options, f, ...) end
  if options ~= nil and type(options) ~= 'string' then leave('u', 'a nested transaction has options') end
  if type(f) ~= 'function' then leave('x', 'a transaction takes a function') end
  ask('begin', 1, '^level')
  run.level = run.level + 1
  return settle(run.level - 1, pcall(f, run.own.tx, ...))
end

local function rollback(_, value)
  check()
  run.doomed, run.value = run.level, value
  error(STOP, 0)
end

-- NB: a run begins with the variables as they were sent, so a function that counts its tries would not end.
local function restart()
  check()
  if run.exact then leave('u', 'it restarts itself') end
  ask('restart', 1, '^level') -- it ends the run
  error(STOP, 0)
end

local many = open_documents(base, {leave = leave, parts = parts, node_of = node_of, with = with, list_of = list_of,
  subscript_at = subscript_at, transaction = transaction, plain = plain, failures = failures}, run, query, marks, open_json)

local of_transactions = {transaction = transaction, rollback = rollback, restart = restart,
  restarts = function() return query('restarts', {'^level'}) end, level = function() return run.level end}

local function absent(what)
  return {__metatable = false, __newindex = function(_, key) leave('u', what .. tostring(key) .. ' is set') end,
    __index = function(_, key) leave('u', what .. tostring(key) .. ' is not there at the server') end}
end

local function fields(from, what, more)
  local copy = {}
  for key, value in pairs(from) do copy[key] = value end
  for key, value in pairs(more or {}) do copy[key] = value end
  return setmetatable(copy, absent(what))
end

-- What db, tx and perilune are in a run: made when they are asked for, and anew, since functions may write into tables.
local made = {}

function made.class() return (class_of()) end

function made.node(own) return maker(own.class) end

function made.db(own)
  local function at(node, ...)
    return parts[node] ~= nil and with(parts[node].list, ...) or list_of(own.node(node, ...))
  end
  local function last(_, ...)
    local count = select('#', ...)
    local words = {...}
    return node_of(own.class, at(unpack(words, 1, count - 1))), words[count]
  end
  return fields(of_transactions, 'the function db.', {
    node = own.node,
    get = function(_, ...) return query('get', at(...)) end,
    data = function(_, ...) return query('data', at(...)) end,
    set = function(...) return base.set(last(...)) end,
    incr = function(...) return base.incr(last(...)) end,
    get_many = many.get_many, set_many = many.set_many, set_each = many.set_each,
  })
end

function made.tx(own)
  return setmetatable({db = own.db}, {__index = of_transactions, __metatable = false,
    __newindex = function() leave('u', 'a transaction is written into') end})
end

-- What marks a table as a list.
function made.mark() return {__name = 'perilune.list'} end

function made.perilune(own)
  return fields(marks, 'perilune.', {node = own.node, isnode = function(x) return parts[x] ~= nil end,
    is_error = function(x) return failures[x] ~= nil end,
    rollback = function(value) rollback(nil, value) end, restart = restart,
    list = function(t)
      if type(t) ~= 'table' then leave('x', 'perilune.list takes a table') end
      return setmetatable(t, own.mark)
    end,
    use = function(other) if other ~= nil then leave('u', 'perilune.use sets a database') end return own.db end})
end

local own_meta = {__index = function(own, name)
  local make = made[name]
  if make == nil then return nil end
  local value = make(own)
  rawset(own, name, value)
  run.names[value] = name
  return value
end}

---------------------------------------------------------------------------------------------- globals

local LIBRARIES = {string = {}, table = {unpack = unpack}, math = {}, bit = {}}
local PLAIN = {}
for name in ('assert error getmetatable ipairs next pairs rawequal rawget rawset select setmetatable tonumber tostring '
  .. 'type unpack'):gmatch '%a+' do PLAIN[name] = globals[name] end
local NAMES = {
  string = 'byte char find format gmatch gsub len lower match rep reverse sub upper',
  table = 'concat insert maxn remove sort',
  math = 'abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min modf pi pow rad '
    .. 'random sin sinh sqrt tan tanh',
  bit = 'arshift band bnot bor bswap bxor lshift rol ror rshift tobit tohex',
}
for library, names in pairs(NAMES) do
  for name in names:gmatch '%w+' do LIBRARIES[library][name] = globals[library][name] end
end

-- What it has by name, by what it is.
local known = {}
for name, value in pairs(PLAIN) do known[value] = name end
for library, functions in pairs(LIBRARIES) do
  for name, value in pairs(functions) do
    if type(value) == 'function' then known[value] = library .. '.' .. name end
  end
end

for name, mark in pairs(marks) do known[mark] = 'perilune.' .. name end

-- What a function catches is not what ends a run.
local function caught(good, ...)
  check()
  return good, ...
end

function PLAIN.pcall(...) return caught(pcall(...)) end

known[PLAIN.pcall] = 'pcall'

local xpcall = globals.xpcall
function PLAIN.xpcall(...) return caught(xpcall(...)) end

known[PLAIN.xpcall] = 'xpcall'

-- These look at all that a table has.
for name in ('getmetatable next pairs rawget rawset setmetatable'):gmatch '%a+' do
  local plain = PLAIN[name]
  PLAIN[name] = function(t, ...)
    if run.exact and failures[t] then look() end
    return plain(t, ...)
  end
  known[PLAIN[name]] = name
end

local function global(name)
  local given = run.globals[name]
  if given ~= nil then return given.value end
  local plain = PLAIN[name]
  if plain ~= nil then return plain end
  local made = run.libraries[name]
  if made == nil and LIBRARIES[name] ~= nil then
    made = fields(LIBRARIES[name], name .. '.')
    run.libraries[name] = made
  end
  if made == nil and name == '_G' then leave('u', '_G is used') end
  if made == nil and name == 'require' and not run.exact then made = globals.require end
  if made == nil then leave('g', tostring(name)) end
  return made
end

return {STOP = STOP, leave = leave, parts = parts, base = base, node_of = node_of, class_of = class_of, maker = maker,
  failures = failures, known = known, own_meta = own_meta, global = global, LIBRARIES = LIBRARIES}
