-- Nodes and trees as text: tostring of nodes, and dump.
--
-- Strings are quoted in one way on every Lua, as Lua 5.4's %q does.

-- Taken now: the names may be the program's own later.
local getmetatable, ipairs, string, table, tonumber, tostring = getmetatable, ipairs, string, table, tonumber, tostring

local core = require '_perilune.yottadb'

local escapes = {['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\\n'}

local function quote(s)
  s = s:gsub('["\\\n]', escapes)
  -- NB: a pattern cannot hold a zero byte in 5.1; %z is its class there and %c has it in all.
  s = s:gsub('(%c)(%d?)', function(c, digit)
    if c == '\n' then return nil end
    return string.format(digit ~= '' and '\\%03d' or '\\%d', c:byte()) .. digit
  end)
  return '"' .. s .. '"'
end

-- A subscript that is an integer is written bare.
local function bare(sub)
  return #sub <= 18 and (sub == '0' or sub:match '^%-?[1-9]%d*$' ~= nil)
end

local function text(name, subs)
  if #subs == 0 then return name end
  local shown = {}
  for i, sub in ipairs(subs) do
    shown[i] = bare(sub) and sub or quote(sub)
  end
  return name .. '(' .. table.concat(shown, ',') .. ')'
end

local function subsarray(node)
  local subs = {}
  for i = 1, core.depth(node) do
    subs[i] = core.part(node, i)
  end
  return subs
end

local function tostring_node(node)
  return text(core.part(node, 0), subsarray(node))
end

local function shown_value(value)
  local number = tonumber(value)
  if number and tostring(number) == value then return value end
  return quote(value)
end

-- An address in memory, as tostring shows it for a table.
local function repr(node)
  local class = getmetatable(node)
  local saved = class.__tostring
  class.__tostring = nil
  local name = tostring(node)
  class.__tostring = saved
  return name:match '0x%x+' or name
end

-- The tree at `node`, a line for each value, `maxlines` at most; `of_node` adds where the node lies.
local function dump(node, maxlines, of_node)
  maxlines = maxlines or 30
  local name, above = core.part(node, 0), subsarray(node)
  local lines = {text(name, above) .. (of_node and ' (cachearray ' .. repr(of_node) .. ')' or '')}
  core.data(node)
  local subs = above
  local value = core.get(node)
  while subs do
    for i = 1, #above do
      if subs[i] ~= above[i] then return table.concat(lines, '\n') end
    end
    if value then
      if #lines >= maxlines then
        lines[#lines + 1] = '...etc.   -- stopped at ' .. maxlines
          .. ' lines; to show more use yottadb.dump(node, subscripts, maxlines)'
        break
      end
      lines[#lines + 1] = text(name, subs) .. '=' .. shown_value(value)
    end
    subs = core.node_next(name, subs)
    value = subs and core.get(name, subs)
  end
  return table.concat(lines, '\n')
end

core.hooks.tostring = tostring_node

return {tostring = tostring_node, subsarray = subsarray, dump = dump, repr = repr}
