-- What perilune.documents, perilune.lists and perilune.keyvalue share: the way of tables to the calls of
-- docs/reference/models.md and back.
--
-- A table travels as JSON by way of a private node of the session, so that settree, tojson, fromjson and gettree say
-- what it means. An object is a node and the options that its calls take; it holds nothing of what is stored.

-- Taken now: the names may be the program's own later.
local error, pairs, select, setmetatable, tostring, type = error, pairs, select, setmetatable, tostring, type
local perilune = require 'perilune'
local call, database = perilune.__models, perilune.__database

local OPTIONS = {first = 'number', typed = 'boolean', replace = 'boolean'}

local calls = {}

local function checked(options)
  if options ~= nil and type(options) ~= 'table' then error('perilune: options are a table', 3) end
  for name, value in pairs(options or {}) do
    if type(value) ~= OPTIONS[name] then
      error('perilune: the options are first (a number), typed and replace (true or false), not ' .. tostring(name), 3)
    end
  end
  return options or {}
end

-- A value as JSON.
local function encoded(self, value)
  if value == nil then error('perilune: a document is a table or a value, not nil', 3) end
  local way = self.way
  way:kill()
  way:settree {document = value}
  local text = way('document'):tojson()
  way:kill()
  return text
end

-- What a text of JSON says; nil for nil.
local function decoded(self, text)
  if text == nil then return nil end
  if text == '[]' or text == '{}' then return {} end
  local way = self.way
  way:fromjson(text)
  local value
  if way:data() == 1 then value = way:get() else value = way:gettree() end
  way:kill()
  return value
end

-- first and typed, those of the call before those of the object.
local function shape(self, options)
  options = checked(options)
  local first, typed = options.first, options.typed
  if first == nil then first = self.options.first end
  if typed == nil then typed = self.options.typed end
  return first, typed
end

-- The function `at(node[, options])` of a library, whose objects have `methods`.
function calls.maker(methods)
  local class = {__index = methods}
  return function(node, options)
    local way = database(node).node('periluneWay')
    return setmetatable({node = node, options = checked(options), way = way}, class)
  end
end

calls.call, calls.database, calls.encoded, calls.decoded, calls.shape = call, database, encoded, decoded, shape

-- A method that passes its arguments on as they are.
function calls.plain(name)
  return function(self, ...)
    local answer = call(self.node, name, ...)
    return answer
  end
end

-- A method whose answer is JSON; `count` arguments come before the options.
function calls.reading(name, count)
  return function(self, ...)
    local arguments = {...}
    local first, typed = shape(self, (select(count + 1, ...)))
    arguments[count + 1], arguments[count + 2] = first, typed
    local answer = decoded(self, call(self.node, name, calls.unpack(arguments, 1, count + 2)))
    return answer
  end
end

-- A method whose argument number `count` is a document, with options behind it.
function calls.writing(name, count)
  return function(self, ...)
    local arguments = {...}
    local first, typed = shape(self, (select(count + 1, ...)))
    arguments[count] = encoded(self, arguments[count])
    arguments[count + 1], arguments[count + 2] = first, typed
    local answer = call(self.node, name, calls.unpack(arguments, 1, count + 2))
    return answer
  end
end

calls.unpack = table.unpack or unpack -- luacheck: ignore

return calls
