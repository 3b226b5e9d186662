-- The documented behaviour of lua-yottadb's functions, read once more function by function and held against this module
-- (issue 23): each case is what had differed.

local low = require 'perilune.yottadb.low'
local ydb = require 'perilune.yottadb'

-- What a program says whose environment has `setting`, in a Lua of its own with the module. A file, since not each
-- interpreter has -e.
local function said(setting, code)
  local path = os.tmpname()
  local file = assert(io.open(path, 'w'))
  file:write(code)
  file:close()
  local program = os.getenv 'LUA_PROGRAM' or arg[-1]
  local pipe = io.popen('env ' .. setting .. ' PERILUNE_DB=memory: ' .. program .. ' ' .. path .. ' 2>&1')
  local text = pipe:read '*a'
  pipe:close()
  os.remove(path)
  return text
end

return function(spec)
  local function case(name, f)
    spec(name, function(_, t)
      low.delete_excl {}
      f(t)
    end)
  end

  case('an error code stands before a colon', function(t)
    t.equal(ydb.get_error_code 'YDB Error: -150374122: %YDB-E-ZGBLDIRACC, Cannot access', -150374122)
    t.equal({ydb.get_error_code 'YDB Error: 5 of them', ydb.get_error_code 'YDB Error: '}, {})
  end)

  case('restarts and rollbacks are errors without a position', function(t)
    local back = ydb.transaction(function() ydb.trollback() end)
    t.equal({pcall(back)}, {false, 'YDB Error: 2147483645: YDB_TP_ROLLBACK'})
    local seen
    ydb.tp(function()
      if not seen then
        seen = {pcall(ydb.trestart)}
        return ydb.YDB_TP_RESTART
      end
    end)
    t.equal(seen, {false, 'YDB Error: 2147483646: YDB_TP_RESTART'})
  end)

  case('lock takes a list, or releases all', function(t)
    ydb.grab('^a', 0)
    ydb.lock(5)
    t.equal({pcall(ydb.lock_decr, '^a')}, {true})
    t.fails("bad argument #1 to 'lock' (table expected, got nil)", ydb.lock, nil, 1)
    t.fails("bad argument #1 to 'lock' (table/number/nil expected, got string)", ydb.lock, '^a')
    t.fails("bad argument #2 to 'lock' (number expected, got string)", ydb.lock, {{'^a'}}, '1')
  end)

  case('a filter of gettree decides what is gone into', function(t)
    local n = ydb.node '^oaks'
    n:settree {__ = 'treedata', {shadow = 10, angle = 30}, ['2'] = 'leaf'}
    local function always(_, _, value) return value, true end
    local function never(_, _, value) return value, false end
    local all = {__ = 'treedata', ['1'] = {shadow = {__ = '10'}, angle = {__ = '30'}}, ['2'] = {__ = 'leaf'}}
    t.equal(n:gettree(nil, always), all)
    t.equal(n:gettree(0, always), all)
    t.equal(n:gettree(nil, never), {__ = 'treedata', ['2'] = 'leaf'})
    t.equal(n:gettree(nil, function(_, _, value) return value end),
      {__ = 'treedata', ['1'] = {shadow = '10', angle = '30'}, ['2'] = 'leaf'})
  end)

  case('subscript_next of a key stays behind the last one', function(t)
    ydb.set('^k', 'a', 1)
    ydb.set('^k', 'b', 2)
    local key = ydb.key '^k'
    t.equal({key:subscript_next(), key:subscript_next()}, {'a', 'b'})
    t.equal({key:subscript_next(), key:subscript_next()}, {})
    t.equal({key:subscript_previous(), key:subscript_next(), key:subscript_next(true)}, {'a', 'b', 'a'})
  end)

  case('cachearray_tostring also says the name, and takes a depth; cachearray_append takes several', function(t)
    local node = low.cachearray_append(low.cachearray_create('^v', {'person'}), 3, 'male')
    t.equal({low.cachearray_tostring(node)}, {'"person",3,"male"', '^v'})
    t.equal({low.cachearray_tostring(node, 2), (low.cachearray_tostring(node, 0))}, {'"person",3', ''})
    for _, depth in ipairs {-1, 4} do
      t.fails('is not a valid node depth in the range 0-3 (got ' .. depth .. ')', low.cachearray_tostring, node, depth)
    end
  end)

  case('$ZCHSET is the mode of str2zwr', function(t)
    local code = "local low = require 'perilune.yottadb.low' "
      .. "print(low.get('$ZCHSET'), low.str2zwr(string.char(194, 133)))"
    t.equal(said('ydb_chset=UTF-8', code), 'UTF-8\t$C(133)\n')
    for _, setting in ipairs {'ydb_chset=M', 'ydb_chset=', 'ydb_chset=other'} do
      t.equal(said(setting, code), 'M\t"\194"_$C(133)\n', setting)
    end
  end)

  case('globals of a program may be called as those of Lua', function(t)
    local code = "local out = io.write local ydb = require 'perilune.yottadb' error, getmetatable, pairs, ipairs, select, "
      .. 'table, tonumber, tostring, type, unpack, math, os, string, pcall, rawget = nil '
      .. "local n = ydb.node('^v') n:settree {__ = 1, a = {b = 2}} ydb.tp({'*'}, function() n.a.b:incr(3) end) "
      .. "ydb.lock {n, {'^w', 'x'}} ydb.lock() ydb.key('^v'):subscript_next() ydb.str2zwr 'x' ydb.get('$H') "
      .. "out(n:gettree().a.b, '\\t', ydb.dump('^v', 'a'), '\\n')"
    t.equal(said('x=', code), '5\t^v("a")\n^v("a","b")=5\n')
  end)

  case('under the name of yottadb old Luas get what it gives them', function(t)
    local code = "local pack = table.unpack local f = string.format require 'NAME' "
      .. "print(table.unpack {1, 2}, string.format('%s %d%% %5s', nil, 3, true)) "
      .. "print(pcall(string.format, '%d', {})) print(f == string.format)"
    for _, name in ipairs {'yottadb', '_yottadb'} do
      local lines = said('x=', (code:gsub('NAME', name)))
      t.equal(lines:match '^[^\n]*', '1\tnil 3%  true')
      t.equal(lines:find('number expected, got table', 1, true) ~= nil, true, lines)
      t.equal(lines:match '(%a+)\n$', tostring(pcall(string.format, '%s', {}) or _VERSION ~= 'Lua 5.1'), lines)
    end
    local native = "local f, u = string.format, table.unpack require 'perilune.yottadb' "
      .. 'print(f == string.format, u == table.unpack)'
    t.equal(said('x=', native), 'true\ttrue\n')
  end)
end
