-- str2zwr and zwr2str: strings in the form of M's ZWRITE, "abc"_$C(0,1)_"d".
--
-- As YottaDB, it works in one of two modes, which $ydb_chset names when the module is loaded. In M mode, the default, a
-- character is a byte: 32 to 126 and 160 to 254 stay, others become $C(n). In UTF-8 mode, valid characters stay, control
-- characters become $C(n), and bytes that are no character $ZCH(n).

-- Taken now: the names may be the program's own later.
local error, select, string, table, tonumber, type = error, select, string, table, tonumber, type

local core = require '_perilune.yottadb'

local INVSTRLEN, MAX = -150375522, 1048576

-- The size of the character at `at` in M mode; nil if it has to be written as a number.
local function printable_in_M(s, at)
  local b = s:byte(at)
  return b >= 32 and b ~= 255 and (b < 127 or b >= 160) and 1 or nil
end

-- The size of the UTF-8 sequence at `at`, 1 for printable ASCII; nil if it has to be written as a number.
local function printable_in_UTF_8(s, at)
  local b = s:byte(at)
  if b < 32 or b == 127 then return nil end
  if b < 127 then return 1 end
  local size = b >= 0xC2 and b < 0xE0 and 2 or b >= 0xE0 and b < 0xF0 and 3 or b >= 0xF0 and b < 0xF5 and 4
  if not size or #s < at + size - 1 then return nil end
  for i = at + 1, at + size - 1 do
    local c = s:byte(i)
    if c < 0x80 or c > 0xBF then return nil end
  end
  local second = s:byte(at + 1)
  if (b == 0xC2 and second < 0xA0) or (b == 0xE0 and second < 0xA0) or (b == 0xED and second > 0x9F)
      or (b == 0xF0 and second < 0x90) or (b == 0xF4 and second > 0x8F) then
    return nil
  end
  return size
end

-- The number at `at` that has to be written, its function, and how many bytes it takes.
local function number_in_UTF_8(s, at)
  local b, c = s:byte(at, at + 1)
  if b < 128 then return b, '$C', 1 end
  -- C1 control characters.
  if b == 0xC2 and c and c >= 0x80 and c < 0xA0 then return c, '$C', 2 end
  return b, '$ZCH', 1
end

local function number_in_M(s, at)
  return s:byte(at), '$C', 1
end

local MODES = {
  M = {printable = printable_in_M, number = number_in_M},
  ['UTF-8'] = {printable = printable_in_UTF_8, number = number_in_UTF_8},
}

local function str2zwr(mode, s)
  local printable = mode.printable
  if type(s) ~= 'string' then
    error("bad argument #1 to 'str2zwr' (string expected, got " .. type(s) .. ')', 3)
  end
  local parts, at = {}, 1
  while at <= #s do
    local from, last = at, nil
    -- A run of plain ASCII at once, then what needs a look.
    while at <= #s do
      last = select(2, s:find('^[ -~]+', at))
      local size = not last and printable(s, at)
      if not last and not size then break end
      at = (last or at + size - 1) + 1
    end
    if at > from then parts[#parts + 1] = '"' .. s:sub(from, at - 1):gsub('"', '""') .. '"' end
    local numbers, of = {}, nil
    while at <= #s and not printable(s, at) do
      local number, name, size = mode.number(s, at)
      if of and of ~= name then break end
      of = name
      numbers[#numbers + 1] = number
      at = at + size
    end
    if of then parts[#parts + 1] = of .. '(' .. table.concat(numbers, ',') .. ')' end
  end
  local result = #parts == 0 and '""' or table.concat(parts, '_')
  if #result > MAX then core.fail(INVSTRLEN) end
  return result
end

local function byte(number)
  return number < 256 and string.char(number) or nil
end

-- The character with that number in UTF-8; nil if there is none.
local function encoded(number)
  if number < 0x80 then return string.char(number) end
  if number > 0x10FFFF or (number >= 0xD800 and number < 0xE000) then return nil end
  local tail, lead = '', 0xC0
  local room = 0x20
  repeat
    tail = string.char(0x80 + number % 64) .. tail
    number = (number - number % 64) / 64
    if number < room then return string.char(lead + number) .. tail end
    lead, room = lead + room, room / 2
  until false
end

-- The part of ZWRITE text at `at`: its bytes and the position behind it; nil if it is malformed.
local function part(mode, text, at)
  if text:sub(at, at) == '"' then
    local from = at + 1
    repeat
      local close = text:find('"', from, true)
      if not close then return nil end
      from = close + 2
    until text:sub(close + 1, close + 1) ~= '"'
    return (text:sub(at + 1, from - 3):gsub('""', '"')), from - 1
  end
  local name, list, after = text:match('^%$([A-Za-z]+)%(([%d,]*)%)()', at)
  name = name and name:upper()
  if not name or not (name == 'C' or name == 'CHAR' or name == 'ZCH' or name == 'ZCHAR') then return nil end
  if not ((',' .. list):match '^[,%d]*%d$') or list:find(',,', 1, true) or list:sub(1, 1) == ',' then return nil end
  local bytes = {}
  local is_character = mode == MODES['UTF-8'] and name:sub(1, 1) == 'C'
  for digits in list:gmatch '%d+' do
    local character = is_character and encoded(tonumber(digits)) or not is_character and byte(tonumber(digits))
    if not character then return nil end
    bytes[#bytes + 1] = character
  end
  return table.concat(bytes), after
end

local function zwr2str(mode, text)
  if type(text) ~= 'string' then
    error("bad argument #1 to 'zwr2str' (string expected, got " .. type(text) .. ')', 3)
  end
  local parts, at = {}, 1
  while true do
    local bytes, after = part(mode, text, at)
    if not bytes then return '' end
    parts[#parts + 1] = bytes
    if after > #text then break end
    if text:sub(after, after) ~= '_' then return '' end
    at = after + 1
  end
  local result = table.concat(parts)
  if #result > MAX then core.fail(INVSTRLEN) end
  return result
end

-- The two functions in a mode, 'M' or 'UTF-8'.
local function functions(name)
  local mode = MODES[name]
  return {
    -- In brackets: no tail calls, so that an error names the caller.
    str2zwr = function(s) return (str2zwr(mode, s)) end,
    zwr2str = function(text) return (zwr2str(mode, text)) end,
  }
end

local is_UTF_8 = (os.getenv 'ydb_chset' or os.getenv 'gtm_chset' or ''):upper() == 'UTF-8'
local name = is_UTF_8 and 'UTF-8' or 'M'
local ours = functions(name)
ours.functions, ours.mode = functions, name
return ours
