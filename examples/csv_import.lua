-- Reads comma-separated text into a tree, in transactions of 1,000 lines: lua csv_import.lua [PATH [FILE]]

local perilune = require 'perilune'
local path, file = ...
local db = perilune.open(path)
local rows = db.node('^csv')

-- The end of the quoted text that begins at `at`: a quote that no other follows.
local function closing(line, at)
  local close = line:find('"', at, true)
  while close and line:sub(close + 1, close + 1) == '"' do close = line:find('"', close + 2, true) end
  return assert(close, 'a quote without an end: ' .. line)
end

local function fields(line)
  local list, at = {}, 1
  line = line:gsub('\r$', '') .. ','
  while at <= #line do
    local text
    if line:sub(at, at) == '"' then
      local close = closing(line, at + 1)
      text = line:sub(at + 1, close - 1):gsub('""', '"')
      at = close + 2
    else
      text, at = line:match('^([^,]*),()', at)
    end
    list[#list + 1] = text
  end
  return list
end

local function import(lines)
  local names, batch, count = fields(lines()), {}, 0
  local function store()
    rows:settree(batch)
    batch = {}
  end
  for line in lines do
    count = count + 1
    local row = {}
    for i, text in ipairs(fields(line)) do row[names[i] or i] = tonumber(text) or text end
    batch[count] = row
    if count % 1000 == 0 then store() end
  end
  store()
  return count
end

rows:kill()
local text = 'name,age,town\nAda,36,London\nGrace,85,"Arlington, ""VA"""\n'
print('rows', import(file and io.lines(file) or text:gmatch '([^\n]+)'))
for i, _, _ in rows:children() do print(i:name(), i.name.__, i.age.__, i.town.__) end
rows:kill()
