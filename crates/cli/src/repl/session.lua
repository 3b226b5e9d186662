-- What the interactive session does in Lua: opens the database, shows results as they are stored, and
-- lists the words that can be completed.

local perilune = require 'perilune'

local DEPTH_MAX, ITEMS_MAX = 8, 200
local names, db_names = {}, {}

-- Letters stay; bytes that are none become \ddd.
local function letters(run)
  local rest = run:gsub('[\194-\223][\128-\191]', ''):gsub('[\224-\239][\128-\191][\128-\191]', '')
    :gsub('[\240-\244][\128-\191][\128-\191][\128-\191]', '')
  return rest ~= '' and run:gsub('.', function(c) return '\\' .. c:byte() end) or run
end

local function quoted(text)
  text = text:gsub('["\\]', '\\%0'):gsub('\n', '\\n'):gsub('%c', function(c) return string.format('\\%03d', c:byte()) end)
  text = text:gsub('[\128-\255]+', letters)
  return '"' .. text .. '"'
end

local function scalar(value)
  return type(value) == 'string' and quoted(value) or tostring(value)
end

-- Subscripts in the order of the database: numbers, then text, then what the database does not take.
local RANK = {number = 1, string = 2}
local function before(a, b)
  local rank_a, rank_b = RANK[type(a)] or 3, RANK[type(b)] or 3
  if rank_a ~= rank_b then return rank_a < rank_b end
  if rank_a == 3 then return tostring(a) < tostring(b) end
  return a < b
end

local function show_table(value, indent, open)
  if next(value) == nil then return '{}' end
  if open[value] then return '{...}' end
  if #indent >= 2 * DEPTH_MAX then return '{...}' end
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, before)
  open[value] = true
  local lines, inner = {'{'}, indent .. '  '
  for i, key in ipairs(keys) do
    if i > ITEMS_MAX then
      lines[#lines + 1] = inner .. string.format('... %d more', #keys - ITEMS_MAX)
      break
    end
    local name = type(key) == 'string' and key:match '^[%a_][%w_]*$' and key or '[' .. scalar(key) .. ']'
    local item = value[key]
    local plain = type(item) == 'table' and not (debug.getmetatable(item) or {}).__tostring
    lines[#lines + 1] = inner .. name .. ' = ' .. (plain and show_table(item, inner, open) or scalar(item)) .. ','
  end
  open[value] = nil
  lines[#lines + 1] = indent .. '}'
  return table.concat(lines, '\n')
end

local function list_methods(methods, list)
  for name, method in pairs(methods) do
    if type(name) == 'string' and type(method) == 'function' and not name:match '^__' then list[#list + 1] = name end
  end
  table.sort(list)
end

local session = {}

function session.open()
  local db = perilune.use()
  perilune.use(db)
  rawset(_G, 'perilune', perilune)
  rawset(_G, 'db', db)
  rawset(_G, 'node', db.node)
  local _, _, methods = perilune.inherit(db.node)
  list_methods(methods, names)
  list_methods(debug.getmetatable(db).methods, db_names)
  return db:path()
end

-- The text for a line's results; nil if there are none.
function session.show(...)
  local lines = {}
  for i = 1, select('#', ...) do
    local value = select(i, ...)
    if perilune.isnode(value) then
      local tree = value:dump()
      lines[i] = tree ~= '' and tree:gsub('\n$', '') or tostring(value) .. ' has no value and no children'
    elseif type(value) == 'table' and not (debug.getmetatable(value) or {}).__tostring then
      lines[i] = show_table(value, '', {})
    else
      lines[i] = scalar(value)
    end
  end
  return lines[1] and table.concat(lines, '\n')
end

-- Words to complete: those of nodes, of global variables and their fields, of methods of nodes, of those of db.
function session.words()
  local nodes, globals = {}, {}
  local db = rawget(_G, 'db')
  if db and perilune.use() == db then
    for name in db:names() do
      nodes[#nodes + 1] = name
      if #nodes == 1000 then break end
    end
  end
  for name, value in pairs(_G) do
    if type(name) == 'string' then
      globals[#globals + 1] = name
      if type(value) == 'table' and value ~= _G and not debug.getmetatable(value) then
        for field in pairs(value) do
          if type(field) == 'string' then globals[#globals + 1] = name .. '.' .. field end
        end
      end
    end
  end
  table.sort(globals)
  return nodes, globals, names, db_names
end

return session
