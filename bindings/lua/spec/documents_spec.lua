-- The Lua of the documents runs, each page as one program, and prints what its comments `--> text` say.
--
-- What a line prints is compared with the comment at its end: values of one print are separated by a space, several
-- prints by a comma. A line of a page is the same line of the program, so an error names it.

local root = debug.getinfo(1, 'S').source:match '^@(.*)documents_spec' .. '../../../'

local function read(path)
  local file = assert(io.open(root .. path))
  local text = file:read '*a'
  file:close()
  return text
end

-- The page with every line that is not in a block of Lua emptied, what its lines shall print, and how many blocks.
local function program_of(path)
  local lines, expected, inside, blocks = {}, {}, false, 0
  for given in read(path):gmatch '([^\n]*)\n' do
    local line = given
    if line:match '^```' then
      inside = line == '```lua'
      blocks = blocks + (inside and 1 or 0)
      line = ''
    end
    lines[#lines + 1] = inside and not line:match '^#!' and line or ''
    expected[#lines] = inside and line:match '%-%-> (.*)$' or nil
  end
  return table.concat(lines, '\n'), expected, blocks
end

-- What each line of the program prints.
local function run(program, name)
  local printed, old, arguments = {}, print, arg
  print = function(...)
    local words, line = {}, debug.getinfo(2, 'l').currentline
    for i = 1, select('#', ...) do words[i] = tostring((select(i, ...))) end
    printed[line] = (printed[line] and printed[line] .. ', ' or '') .. table.concat(words, ' ')
  end
  arg = {}
  local good, message = pcall(function() assert((loadstring or load)(program, '@' .. name))() end)
  print, arg = old, arguments
  if not good then error(message, 0) end
  return printed
end

return function(spec)
  -- Page: how many of its lines say what they print, and what is put for a path or a time that no test can have.
  local pages = {
    {'README.md', 3, {["'people%.db'"] = 'path'}},
    {'docs/guide/lua.md', 18, {["'people%.db'"] = 'path', ['wait%(10%)'] = 'wait(0)'}},
    {'docs/guide/cookbook.md', 14, {}},
    {'docs/guide/program.md', 1, {}},
    {'docs/guide/xml.md', 8, {["'pubs%.db'"] = 'path'}},
    {'docs/guide/documents.md', 6, {["'people%.db'"] = 'path'}},
    {'docs/guide/from-lua-yottadb.md', 2, {}},
  }
  for _, page in ipairs(pages) do
    local name = page[1]
    spec(name, function(db, t)
      local program, expected, blocks = program_of(name)
      local values = {path = t.file .. '.page'}
      for pattern, key in pairs(page[3]) do
        local count
        program, count = program:gsub(pattern, function(found)
          return values[key] and string.format('%q', values[key]) or key
        end)
        t.equal(count > 0, true, pattern)
      end
      local good, printed = pcall(run, program, name)
      for _, path in pairs(values) do
        for _, suffix in ipairs {'', '-shm'} do os.remove(path .. suffix) end
      end
      if not good then error(printed, 0) end
      local count = 0
      for line, text in pairs(expected) do
        count = count + 1
        t.equal(printed[line] or '(nothing)', text, name .. ':' .. line)
      end
      t.equal({blocks > 0, count >= page[2]}, {true, true}, name .. ' has ' .. count .. ' lines with what they print')
    end)
  end
end
