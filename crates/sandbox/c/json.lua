-- JSON of trees of nodes, for scripts (nodes.lua) and for functions that programs send (documents.lua).
--
-- The text is what tojson writes and fromjson reads in bindings/lua. The host writes single values and reads
-- numbers, so that no digit is lost. Invariants
-- - It is Lua and not C, so that a long run of it can be stopped, and its memory is counted.
-- - Nothing is stored before the whole text has been read.
local query, with, fault = ... -- fault(text) raises
local find, sub, byte, char, concat = string.find, string.sub, string.byte, string.char, table.concat
local tonumber, type, floor = tonumber, type, math.floor
local LEVELS_MAX = 255

------------------------------------------------------------------------------------------------ writing

-- The children of a node, which there are, and its own value beside them, if any.
local function write(list, own)
  local keys, values, count, is_list, at = {}, {}, 0, own == nil, nil
  while true do
    local found = query('json', list, at)
    if found == nil then break end
    at = found[1]
    count = count + 1
    is_list = is_list and at == count
    keys[count] = found[2]
    values[count] = found[3] < 10 and found[4] or write(with(list, at), found[4])
  end
  if is_list then return '[' .. concat(values, ',') .. ']' end
  for i = 1, count do values[i] = keys[i] .. ':' .. values[i] end
  return '{' .. (own and '"__":' .. own .. ',' or '') .. concat(values, ',') .. '}'
end

local function tojson(list)
  local found = query('json_own', list)
  if found[1] == 0 then return nil end
  if found[1] < 10 then return found[2] end
  return write(list, found[2])
end

------------------------------------------------------------------------------------------------ reading

local text, position, storing

local function fail(what)
  fault('fromjson: ' .. what .. ' at byte ' .. position .. ' of the text')
end

local function blanks()
  position = find(text, '[^ \t\n\r]', position) or #text + 1
end

local function store(operation, list, value)
  if storing then query(operation, list, value) end
end

local function hex4()
  local _, stop = find(text, '^%x%x%x%x', position)
  if stop == nil then fail 'an escape \\u without four digits' end
  local code = tonumber(sub(text, position, stop), 16)
  position = stop + 1
  return code
end

local function utf8(code)
  local function tail(shift) return 128 + floor(code / 2 ^ shift) % 64 end
  if code < 0x80 then return char(code) end
  if code < 0x800 then return char(192 + floor(code / 64), tail(0)) end
  if code < 0x10000 then return char(224 + floor(code / 4096), tail(6), tail(0)) end
  return char(240 + floor(code / 262144), tail(12), tail(6), tail(0))
end

local ESCAPES = {['"'] = '"', ['\\'] = '\\', ['/'] = '/', b = '\b', f = '\f', n = '\n', r = '\r', t = '\t'}

local function escape()
  local mark = sub(text, position, position)
  if mark == '' then fail 'a string without an end' end
  position = position + 1
  if ESCAPES[mark] then return ESCAPES[mark] end
  if mark ~= 'u' then fail 'an unknown escape' end
  local code = hex4()
  if code >= 0xD800 and code < 0xDC00 and sub(text, position, position + 1) == '\\u' then
    position = position + 2
    local low = hex4()
    if low < 0xDC00 or low > 0xDFFF then fail 'half of a surrogate pair' end
    return utf8(0x10000 + (code - 0xD800) * 1024 + low - 0xDC00)
  end
  if code >= 0xD800 and code < 0xE000 then fail 'half of a surrogate pair' end
  return utf8(code)
end

local function string_value()
  local from, parts = position + 1, {}
  position = from
  while true do
    local stop = find(text, '[%z\1-\31"\\]', position)
    if stop == nil then fail 'a string without an end' end
    local mark = byte(text, stop)
    parts[#parts + 1] = sub(text, from, stop - 1)
    position = stop + 1
    if mark == 34 then return concat(parts) end
    if mark ~= 92 then
      position = stop
      fail 'a control character in a string'
    end
    parts[#parts + 1] = escape()
    from = position
  end
end

-- Behind the digits that must begin at `from`.
local function digits(from)
  local _, stop = find(text, '^%d+', from)
  if stop == nil then
    position = from
    fail 'a number without digits'
  end
  return stop + 1
end

local function number(list)
  local from, at = position, position
  if sub(text, at, at) == '-' then at = at + 1 end
  at = sub(text, at, at) == '0' and at + 1 or digits(at)
  if sub(text, at, at) == '.' then at = digits(at + 1) end
  local _, sign = find(text, '^[eE][+-]?', at)
  if sign then at = digits(sign + 1) end
  position = at
  if query(storing and 'number' or 'is_number', list, sub(text, from, at - 1)) == 0 then
    position = from
    fail 'a number that is too large'
  end
end

local value

local function in_brackets(list, close)
  local index, is_list = 0, close == ']'
  position = position + 1
  blanks()
  if sub(text, position, position) == close then
    position = position + 1
    return store(is_list and 'empty_list' or 'empty_map', list)
  end
  if #list > LEVELS_MAX then fail 'more than 255 levels' end
  while true do
    index = index + 1
    local key = index
    if not is_list then
      if sub(text, position, position) ~= '"' then fail 'no key where one is expected' end
      key = string_value()
      blanks()
      if sub(text, position, position) ~= ':' then fail 'no colon after a key' end
      position = position + 1
      blanks()
    end
    if key == '__' and find(text, '^[{%[]', position) then fail 'an object or a list as the value of "__"' end
    value(key == '__' and list or with(list, key))
    blanks()
    local mark = sub(text, position, position)
    position = position + 1
    if mark == close then return end
    if mark ~= ',' then
      position = position - 1
      fail(mark == '' and 'no end of a list or object' or 'no comma where one is expected')
    end
    blanks()
  end
end

local WORDS = {
  ['true'] = function(list) store('set', list, true) end,
  ['false'] = function(list) store('set', list, false) end,
  ['null'] = function(list) store('null', list) end,
}

function value(list)
  local mark = sub(text, position, position)
  if mark == '{' then return in_brackets(list, '}') end
  if mark == '[' then return in_brackets(list, ']') end
  if mark == '"' then return store('set', list, string_value()) end
  local _, stop = find(text, '^%l+', position)
  if stop then
    local word = WORDS[sub(text, position, stop)]
    if word == nil then fail 'an unknown word' end
    position = stop + 1
    return word(list)
  end
  if not find(mark, '^[-%d]') then fail 'no value' end
  return number(list)
end

local function read(list, given, is_storing)
  text, position, storing = given, 1, is_storing
  blanks()
  value(list)
  blanks()
  if position <= #text then fail 'something after the value' end
end

-- `together(f)` runs f, whose changes are one.
local function fromjson(list, given, together)
  read(list, given, false)
  together(function()
    query('kill', list)
    read(list, given, true)
  end)
end

return tojson, fromjson
