-- str2zwr and zwr2str: strings in the form of M's ZWRITE, "abc"_$C(0,1)_"d".
--
-- Valid UTF-8 stays as it is; other bytes from 127 on and control characters are written as $C(n).

local core = require '_perilune.yottadb'

local INVSTRLEN, MAX = -150375522, 1048576

-- The size of the UTF-8 sequence at `at`, 1 for printable ASCII; nil if it has to be written as a number.
local function printable(s, at)
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

local function str2zwr(s)
  if type(s) ~= 'string' then
    error("bad argument #1 to 'str2zwr' (string expected, got " .. type(s) .. ')', 2)
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
    local numbers = {}
    while at <= #s and not printable(s, at) do
      numbers[#numbers + 1] = s:byte(at)
      at = at + 1
    end
    if #numbers > 0 then parts[#parts + 1] = '$C(' .. table.concat(numbers, ',') .. ')' end
  end
  local result = #parts == 0 and '""' or table.concat(parts, '_')
  if #result > MAX then core.fail(INVSTRLEN) end
  return result
end

-- The part of ZWRITE text at `at`: its bytes and the position behind it; nil if it is malformed.
local function part(text, at)
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
  for digits in list:gmatch '%d+' do
    local number = tonumber(digits)
    if number > 255 then return nil end
    bytes[#bytes + 1] = string.char(number)
  end
  return table.concat(bytes), after
end

local function zwr2str(text)
  if type(text) ~= 'string' then
    error("bad argument #1 to 'zwr2str' (string expected, got " .. type(text) .. ')', 2)
  end
  local parts, at = {}, 1
  while true do
    local bytes, after = part(text, at)
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

return {str2zwr = str2zwr, zwr2str = zwr2str}
