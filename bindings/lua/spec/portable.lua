-- What the tests of perilune.yottadb share: a second process that holds a lock, what every function has
-- to refuse, some data, and sums by M's rules.

local low = require 'perilune.yottadb.low'
local ydb = require 'perilune.yottadb'

-- A process that holds the lock name(subscript) until the function that is returned is called, or with
-- `go` until ^go is set.
local function hold(db, t, name, subscript, go)
  local program = os.getenv 'LUA_PROGRAM' or arg[-1]
  local file = arg[0]:gsub('[^/]*$', '') .. 'lock_holder.lua'
  local ready = db.node('^holder')
  ready:kill()
  local pipe = io.popen("PERILUNE_DB= ydb_gbldir='" .. t.path .. "' " .. program .. " '" .. file .. "' '" .. name
    .. "' " .. (subscript and "'" .. subscript .. "' " or '') .. (go and 'go' or ''), 'w')
  t.equal(ready:wait(20, nil), true, 'the second process has started')
  t.equal(ready.__, 'Locked')
  return function() pipe:close() end
end

local function code_of(f, ...)
  local good, message = pcall(f, ...)
  if good then error('no error', 2) end
  return type(message) == 'string' and ydb.get_error_code(message) or message
end

-- What every function with a name as its first argument has to refuse.
local function validate_names(t, f)
  t.fails('expected', f, true)
  t.fails('name length exceeds', f, ('a'):rep(32))
  t.equal(pcall(f, ('a'):rep(31)), true)
  t.equal(code_of(f, '\128'), ydb.YDB_ERR_INVVARNAME)
  for _, bad in ipairs {'', '^', '1a', 'a_b', '^a.b', 'a b', 'a\0', '^^a'} do
    t.equal(code_of(f, bad), ydb.YDB_ERR_INVVARNAME, bad)
  end
end

-- What every function has to refuse whose only argument is a table of subscripts.
local function validate_subscripts(t, f)
  local subs = {}
  for i = 1, 31 do subs[i] = 'x' .. i end
  t.equal(pcall(f, subs), true)
  subs[32] = 'x'
  t.fails('number of subscripts exceeded', f, subs)
  t.fails('expected', f, {true})
  t.fails('expected', f, {{}})
  t.equal(pcall(f, {('b'):rep(31)}), true)
end

local function validate(t, f)
  validate_names(t, f)
  validate_subscripts(t, function(subs) return f('test', subs) end)
end

-- A few locals and globals that most cases begin with.
local function simple_data()
  for _, prefix in ipairs {'', '^'} do
    low.set(prefix .. 'test1', 'test1value')
    low.set(prefix .. 'test2', {'sub1'}, 'test2value')
    low.set(prefix .. 'test3', 'test3value1')
    low.set(prefix .. 'test3', {'sub1'}, 'test3value2')
    low.set(prefix .. 'test3', {'sub1', 'sub2'}, 'test3value3')
    low.set(prefix .. 'test4', {'sub1'}, 'a')
    low.set(prefix .. 'test4', {'sub2'}, 'b')
    low.set(prefix .. 'test4', {'sub3'}, 'c')
  end
  low.set('^test6', {'sub6', 'subsub6'}, 'test6value')
  low.set('^test7', {'sub1\128'}, 'test7value')
end

-- Increments: what is there, what is added, what comes out.
local increments = {
  {'0', '0', '0'}, {'0', '1', '1'}, {'0', '-1', '-1'}, {'0', '1.0', '1'}, {'0', '.5', '.5'}, {'0', '-.5', '-.5'},
  {'0', '0.5', '.5'}, {'0', '1E3', '1000'}, {'0', '1e3', '1'}, {'0', '1E-3', '.001'}, {'0', '2.50', '2.5'},
  {'0', '007', '7'}, {'0', '--5', '5'}, {'0', '+-+5', '-5'}, {'0', '-', '0'}, {'0', 'abc', '0'},
  {'0', '12abc', '12'}, {'0', '0x10', '0'}, {'0', '1E2x', '100'}, {'0', ' 5', '0'}, {'0', '1.2.3', '1.2'},
  {'1', '1', '2'}, {'1', '-1', '0'}, {'1', '-2', '-1'}, {'-1', '.5', '-.5'}, {'.1', '.2', '.3'},
  {'1.5', '1.5', '3'}, {'1.25', '.5', '1.75'}, {'9', '1', '10'}, {'99999', '1', '100000'},
  {'-99999', '-1', '-100000'}, {'1E10', '1', '10000000001'}, {'1E20', '1E20', '200000000000000000000'},
  {'.000001', '.000001', '.000002'}, {'1', '1E-17', '1.00000000000000001'}, {'1', '1E-18', '1'},
  {'999999999999999999', '1', '1000000000000000000'}, {'9999999999999999999', '1', '9999999999999999990'},
  {'123456789012345678', '.5', '123456789012345678'}, {'1000000000000000000', '1', '1000000000000000000'},
  {'abc', '1', '1'}, {'12abc', '1', '13'}, {'', '1', '1'}, {'-5x', '1', '-4'}, {'1E5', '1E5', '200000'},
  {'0', 0, '0'}, {'0', 1, '1'}, {'0', -1, '-1'}, {'0', 1.5, '1.5'}, {'0', 2.0, '2'}, {'0', 1e15, '1000000000000000'},
  {'0', 2 ^ 53, '9007199254740992'}, {'10', -0.5, '9.5'}, {'1E46', '1E45', '11' .. ('0'):rep(45)},
  {'0', 1e-5, '.00001'}, {'0', 123456.789, '123456.789'}, {'5', 0.25, '5.25'},
}

return {hold = hold, code_of = code_of, validate = validate, validate_names = validate_names,
  validate_subscripts = validate_subscripts, simple_data = simple_data, increments = increments}
