-- Runs spec files: lua run.lua FILE...; ends in one line of totals, and exits with 1 on a failure.
--
-- A spec file returns a function that gets `spec`; spec(name, f) is a test, and f gets a new database and
-- the table of checks below.

local perilune = require 'perilune'

local passed, failed = 0, 0
local checks = {perilune = perilune}

local function show(x)
  if type(x) == 'string' then return string.format('%q', x) end
  return tostring(x) .. ' (' .. type(x) .. ')'
end

local function same(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end
  for k, v in pairs(a) do
    if not same(v, b[k]) then return false end
  end
  for k in pairs(b) do
    if a[k] == nil then return false end
  end
  return true
end

-- The two are equal; tables by content.
function checks.equal(found, expected, what)
  if not same(found, expected) then
    error((what and what .. ': ' or '') .. 'found ' .. show(found) .. ', expected ' .. show(expected), 2)
  end
end

-- f(...) raises an error whose text contains `part`.
function checks.fails(part, f, ...)
  local good, message = pcall(f, ...)
  if good then error('no error, expected one with ' .. show(part), 2) end
  if not tostring(message):find(part, 1, true) then
    error('the error ' .. show(tostring(message)) .. ' does not contain ' .. show(part), 2)
  end
  return message
end

-- The number is an integer in the sense of this Lua.
function checks.integer(x)
  if type(x) ~= 'number' or (math.type and math.type(x) ~= 'integer') then
    error('not an integer: ' .. show(x), 2)
  end
end

-- All files of the specs lie in one directory, which a shell removes when this process ends, however it does: then the
-- shell's input ends. Its signals from the terminal are not for it.
local made = assert(io.popen 'mktemp -d "${TMPDIR:-/tmp}/perilune-specs-XXXXXX"')
local place = assert(made:read '*l', 'mktemp makes a directory')
made:close()
local remover = assert(io.popen("trap '' INT; cat >/dev/null; rm -rf -- '" .. place .. "'", 'w'))
local files = 0

-- A path in it that nobody else has.
function checks.new_path()
  files = files + 1
  return place .. '/' .. files
end

-- With $PERILUNE_SPEC_SERVER, the address of a server: its database, emptied, in place of a new file.
local server = os.getenv 'PERILUNE_SPEC_SERVER'
checks.server = server

local function empty(db)
  local names = {}
  for name in db:names() do
    if name ~= '^redis' then names[#names + 1] = name end -- the server's own
  end
  for _, name in ipairs(names) do db.node(name):kill() end
end

-- A new database, what it is opened by again, and a path for files of the test.
local function new_database()
  local file = checks.new_path() .. '.db'
  if server then
    local db = perilune.open(server)
    empty(db)
    return db, server, file
  end
  return perilune.open(file, {durability = 'none'}), file, file
end

local function run(name, f)
  local db, path, file = new_database()
  perilune.use(db)
  checks.file = file
  checks.path = path
  local good, message = xpcall(function() f(db, checks) end, function(e)
    return tostring(e) .. '\n' .. debug.traceback('', 2)
  end)
  pcall(db.close, db)
  os.execute("rm -rf -- '" .. file .. "'*")
  if good then
    passed = passed + 1
  else
    failed = failed + 1
    io.write('FAILED ', name, '\n    ', (tostring(message):gsub('\n', '\n    ')), '\n')
  end
end

-- `arg` of the interpreter, or of a program that runs this file.
for _, file in ipairs(arg) do
  local short = file:match '([^/]+)_spec%.lua$' or file
  dofile(file)(function(name, f) run(short .. ': ' .. name, f) end)
end

local version = rawget(_G, 'jit') and jit.version or _VERSION
io.write(version, ': ', passed, ' passed, ', failed, ' failed\n')
remover:close()
-- The state is closed, so that what is not freed then is a leak (test-asan).
os.exit(failed == 0 and passed > 0 and 0 or 1, true)
