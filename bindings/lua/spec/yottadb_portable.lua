-- The portable cases of lua-yottadb's test suite, written anew from their descriptions: 62 of 65.
--
-- Not here: test_callin (needs M), test_signals (YottaDB's signal handlers), test_cachearray (internals).
-- Each case has the name of the one that it stands for.

local low = require 'perilune.yottadb.low'
local ydb = require 'perilune.yottadb'

local MIB = 1048576
local CASES = 62

local portable = require 'portable'
local code_of, hold, increments = portable.code_of, portable.hold, portable.increments
local simple_data, validate = portable.simple_data, portable.validate
local validate_names, validate_subscripts = portable.validate_names, portable.validate_subscripts

return function(spec)
  local count = 0

  local function case(name, f)
    count = count + 1
    spec(name, function(db, t)
      low.delete_excl {}
      f(t, db)
    end)
  end

  case('test_get', function(t)
    simple_data()
    t.equal(low.get('^test1'), 'test1value')
    t.equal(low.get('^test2', {'sub1'}), 'test2value')
    t.equal(low.get('^test3', 'sub1', 'sub2'), 'test3value3')
    t.equal(low.get('^test3', {'sub1'}, 'sub2'), 'test3value3')
    t.equal(low.get('test3', {'sub1'}), 'test3value2')
    t.equal({low.get('undefined'), low.get('^undefined', {'a'}), low.get('^test2')}, {})
    low.set('long', ('a'):rep(MIB))
    t.equal(#low.get('long'), MIB)
    validate(t, low.get)
  end)

  case('test_set', function(t)
    t.equal(low.set('test4', 'test4value'), 'test4value')
    t.equal(low.get('test4'), 'test4value')
    low.set('^test4', {'a', 'b'}, 'x')
    low.set('^test4', 'a', 'c', 'y')
    t.equal({low.get('^test4', 'a', 'b'), low.get('^test4', {'a', 'c'})}, {'x', 'y'})
    for _, value in ipairs {'', 'z\0z', '你好世界', ('\255'):rep(300)} do
      low.set('^test4', {value .. 's'}, value)
      t.equal(low.get('^test4', {value .. 's'}), value)
    end
    t.fails('string expected', low.set, 'test4', {'a'}, true)
    t.fails('string expected', low.set, 'test4', {'a'}, {})
    t.fails('string expected', low.set, 'test4')
    low.set('test4', ('b'):rep(MIB))
    t.equal(#low.get('test4'), MIB)
    t.equal(code_of(low.set, 'test4', ('b'):rep(MIB + 1)), ydb.YDB_ERR_INVSTRLEN)
    validate_names(t, function(name) low.set(name, 'v') end)
    validate_subscripts(t, function(subs) low.set('test', subs, 'v') end)
  end)

  case('test_delete', function(t)
    local function fill()
      low.set('test8', 'v')
      low.set('test8', {'sub1'}, 'w')
    end
    for _, remove in ipairs {
      function() low.delete('test8') end, function() low.delete('test8', nil) end,
      function() low.delete('test8', false) end, function() low.delete('test8', {}, low.YDB_DEL_NODE) end,
      function() low.set('test8', nil) end, function() low.set('test8', {}, nil) end,
      function() ydb.node('test8'):set(nil) end,
    } do
      fill()
      remove()
      t.equal({low.data('test8'), low.get('test8', {'sub1'})}, {10, 'w'})
    end
    fill()
    low.delete('test8', {'sub1'}, true)
    t.equal(low.data('test8'), 1)
    fill()
    low.delete('test8', true)
    t.equal(low.data('test8'), 0)
    low.set('^test8', 'a', 'b', 'x')
    low.delete('^test8', 'a', 'b')
    t.equal(low.data('^test8'), 0)
    t.fails('expected', low.delete, 'test8', {}, 'x', {})
    validate(t, low.delete)
  end)

  case('test_delete_excl', function(t)
    for _, name in ipairs {'a', 'b', 'c', '%d'} do low.set(name, {'x'}, '1') end
    low.set('^keep', '1')
    low.delete_excl {'a', '%d'}
    t.equal({low.data('a'), low.data('b'), low.data('c'), low.data('%d')}, {10, 0, 0, 10})
    low.delete_excl {}
    t.equal({low.data('a'), low.data('%d'), low.get('^keep')}, {0, 0, '1'})
    t.fails('table of varnames expected', low.delete_excl)
    t.fails('table of varnames expected', low.delete_excl, 'a')
    t.fails('varnames must be strings', low.delete_excl, {true})
    local names = {}
    for i = 1, 35 do names[i] = 'n' .. i end
    low.delete_excl(names)
    names[36] = 'n36'
    t.equal(code_of(low.delete_excl, names), ydb.YDB_ERR_NAMECOUNT2HI)
    low.delete_excl {('a'):rep(31)}
    t.equal(code_of(low.delete_excl, {('a'):rep(32)}), ydb.YDB_ERR_VARNAME2LONG)
    t.equal(code_of(low.delete_excl, {'\128'}), ydb.YDB_ERR_INVVARNAME)
  end)

  case('test_data', function(t)
    simple_data()
    t.equal({low.data('^nothing'), low.data('^test1'), low.data('^test2'), low.data('^test3')}, {0, 1, 10, 11})
    t.equal({low.data('test3', {'sub1'}), low.data('test3', 'sub1', 'sub2'), low.data('test3', 'x')}, {11, 1, 0})
    t.equal({ydb.YDB_DATA_UNDEF, ydb.YDB_DATA_VALUE_NODESC, ydb.YDB_DATA_NOVALUE_DESC, ydb.YDB_DATA_VALUE_DESC},
      {0, 1, 10, 11})
    validate(t, low.data)
  end)

  case('test_lock_incr', function(t, db)
    low.lock_incr('test1')
    low.lock_decr('test1')
    low.lock_incr('test2', {'sub1'}, 0)
    low.lock_decr('test2', {'sub1'})
    local release = hold(db, t, '^test1', 'a')
    t.equal(code_of(low.lock_incr, '^test1', {'a'}, 0), ydb.YDB_LOCK_TIMEOUT)
    t.equal(code_of(low.lock_incr, '^test1', {'a'}, 0.05), ydb.YDB_LOCK_TIMEOUT)
    t.equal(code_of(low.lock_incr, '^test1', 0), ydb.YDB_LOCK_TIMEOUT)
    t.equal(code_of(low.lock_incr, '^test1', 'a', 'b', 0), ydb.YDB_LOCK_TIMEOUT)
    t.equal(code_of(low.lock, {low.cachearray_create('^test1')}, 0), ydb.YDB_LOCK_TIMEOUT)
    low.lock_incr('^test1', {'b'}, 0)
    low.lock_decr('^test1', {'b'})
    release()
    low.lock_incr('^test1', {'a'}, 10)
    low.lock()
    hold(db, t, '^test1', 'a')()
    t.fails('number expected', low.lock_incr, 'test1', {'sub1'}, true)
    t.fails('number expected', low.lock_incr, 'test1', 'x')
    validate_names(t, function(name) low.lock_incr(name) end)
    validate_subscripts(t, function(subs) low.lock_incr('test1', subs, 0) end)
    low.lock()
  end)

  case('test_lock', function(t)
    low.lock()
    low.lock {low.cachearray_create('test1')}
    low.lock({low.cachearray_create('^test2', {'a'}), low.cachearray_create('^test3')}, 1)
    low.lock {}
    t.fails('table of', low.lock, true)
    t.fails('node specifiers expected', low.lock, 'x')
    t.fails('must all be cachearrays', low.lock, {true})
    t.fails('must all be cachearrays', low.lock, {{'test1'}})
    t.fails('number expected', low.lock, {}, true)
    local bad = low.cachearray_create('\128')
    t.equal(code_of(low.lock, {bad}), ydb.YDB_ERR_INVVARNAME)
    t.fails('name length exceeds', low.lock, {low.cachearray_create(('a'):rep(32))})
    local subs = {}
    for i = 1, 31 do subs[i] = i end
    low.lock {low.cachearray_create('test', subs)}
    t.equal(code_of(low.lock, {low.cachearray_create('test', {('x'):rep(256)})}), ydb.YDB_ERR_LOCKSUB2LONG)
    low.lock()
  end)

  -- Writes `name` in a transaction that ends with `answer`, in one level or two.
  local function ends_with(nested, name, answer)
    local function inner()
      low.set(name, '2')
      if type(answer) == 'function' then return answer() end
      return answer
    end
    if not nested then return function() low.tp(inner) end end
    return function()
      low.tp(function()
        low.set(name, '1')
        low.tp(inner)
      end)
    end
  end

  for _, nested in ipairs {false, true} do
    local prefix = nested and 'test_tp_nested_' or 'test_tp_'

    case(prefix .. 'return_YDB_OK', function(t)
      ends_with(nested, '^a', nil)()
      t.equal(low.get('^a'), '2')
      ends_with(nested, '^b', low.YDB_OK)()
      ends_with(nested, '^c', '0')()
      t.equal({low.get('^b'), low.get('^c')}, {'2', '2'})
    end)

    case(prefix .. 'return_YDB_TP_ROLLBACK', function(t)
      t.equal(code_of(ends_with(nested, '^a', low.YDB_TP_ROLLBACK)), ydb.YDB_TP_ROLLBACK)
      t.equal(low.data('^a'), 0)
    end)

    case(prefix .. 'return_YDB_TP_RESTART', function(t)
      low.set('tracker', '0')
      ends_with(nested, '^a', function()
        if low.incr('tracker') == '1' then
          low.set('^first', 'x')
          return low.YDB_TP_RESTART
        end
      end)()
      t.equal({low.get('tracker'), low.get('^a'), low.data('^first')}, {'2', '2', 0})
    end)

    case(prefix .. 'return_YDB_ERR_TPTIMEOUT', function(t)
      t.equal(code_of(ends_with(nested, '^a', low.YDB_ERR_TPTIMEOUT)), ydb.YDB_ERR_TPTIMEOUT)
      t.equal(low.data('^a'), 0)
    end)

    case(prefix .. 'raise_error', function(t)
      t.equal(code_of(ends_with(nested, '^a', function() low.get('\128') end)), ydb.YDB_ERR_INVVARNAME)
      t.equal(low.data('^a'), 0)
    end)

    case(prefix .. 'raise_lua_error', function(t)
      local good, message = pcall(ends_with(nested, '^a', function() error('lua error', 0) end))
      t.equal({good, message}, {false, 'lua error'})
      t.equal(low.data('^a'), 0)
    end)
  end

  case('test_tp_return_YDB_TP_RESTART_reset_all', function(t)
    local runs, stop = 0, os.time() + 1
    low.set('a', '0')
    low.tp({'*'}, function()
      runs = runs + 1
      low.incr('a')
      low.set('b', 'new')
      if os.time() < stop then return low.YDB_TP_RESTART end
    end)
    t.equal(runs > 1, true)
    t.equal({low.get('a'), low.get('b')}, {'1', 'new'})
  end)

  case('test_tp_return_YDB_OK_to_depth', function(t)
    local function descend(level)
      return function()
        low.set('^depth', {level}, 'x')
        if level < 126 then low.tp(descend(level + 1)) end
      end
    end
    low.tp(descend(1))
    t.equal({low.get('^depth', 1), low.get('^depth', 126)}, {'x', 'x'})
    local function forever() low.tp(forever) end
    t.equal(code_of(low.tp, forever), -150376106)
    t.equal(ydb.get '$TLEVEL', '0')
  end)

  case('test_tp_bank_transfer', function(t)
    local function transfer(from, to, amount)
      low.incr('^account', {from, 'balance'}, '-' .. amount)
      low.incr('^account', {to, 'balance'}, amount)
      if tonumber(low.get('^account', {from, 'balance'})) < 0 then return low.YDB_TP_ROLLBACK end
    end
    low.set('^account', {'acc1', 'balance'}, '1000')
    low.set('^account', {'acc2', 'balance'}, '0')
    low.tp(transfer, 'acc1', 'acc2', '400')
    t.equal({low.get('^account', 'acc1', 'balance'), low.get('^account', 'acc2', 'balance')}, {'600', '400'})
    t.equal(code_of(low.tp, transfer, 'acc1', 'acc2', '601'), ydb.YDB_TP_ROLLBACK)
    t.equal({low.get('^account', 'acc1', 'balance'), low.get('^account', 'acc2', 'balance')}, {'600', '400'})
  end)

  case('test_tp_reset_some', function(t)
    low.set('resetvalue', '0')
    low.set('keepvalue', '0')
    local runs = 0
    low.tp({'resetvalue'}, function()
      runs = runs + 1
      low.incr('resetvalue')
      low.incr('keepvalue')
      if runs == 1 then return low.YDB_TP_RESTART end
    end)
    t.equal({low.get('resetvalue'), low.get('keepvalue')}, {'1', '2'})
  end)

  case('test_tp', function(t)
    local function nothing() end
    t.fails('function expected', low.tp)
    t.fails('function expected', low.tp, true)
    t.fails('function expected', low.tp, 'id', {}, 'x')
    t.fails('table of varnames', low.tp, 'id', true)
    t.fails('varnames must be strings', low.tp, {true}, nothing)
    t.equal(code_of(low.tp, function() return true end), ydb.YDB_ERR_TPCALLBACKINVRETVAL)
    t.equal(code_of(low.tp, function() return 'x' end), ydb.YDB_ERR_TPCALLBACKINVRETVAL)
    local names = {}
    for i = 1, 35 do names[i] = 'n' .. i end
    low.tp('id', names, nothing)
    names[36] = 'n36'
    t.equal(code_of(low.tp, names, nothing), ydb.YDB_ERR_NAMECOUNT2HI)
    low.tp({('a'):rep(31)}, nothing)
    t.equal(code_of(low.tp, {('a'):rep(32)}, nothing), ydb.YDB_ERR_VARNAME2LONG)
    t.equal(code_of(low.tp, {'^a'}, nothing), -151028074)
    low.tp('batch', function() low.set('^batch', '1') end)
    t.equal(low.get('^batch'), '1')
  end)

  case('test_subscript_next', function(t)
    simple_data()
    local before = t.server and '^redis' or '^%' -- the server's own
    t.equal({low.subscript_next(before), low.subscript_next('^test1'), low.subscript_next('^test7')}, {'^test1', '^test2'})
    t.equal(low.subscript_next('test1'), 'test2')
    t.equal({low.subscript_next('^test4', {''}), low.subscript_next('^test4', 'sub1'), low.subscript_next('^test4', 'sub3')},
      {'sub1', 'sub2'})
    t.equal({low.subscript_next('^test3', 'sub1', ''), low.subscript_next('^test3', 'sub1', 'sub2')}, {'sub2'})
    t.equal({low.subscript_next('^test7', {''}), low.subscript_next('^test7', {'sub1\128'})}, {'sub1\128'})
    validate(t, low.subscript_next)
  end)

  case('test_subscript_previous', function(t)
    simple_data()
    -- NB: a server has a name of its own, ^redis, before these.
    t.equal({low.subscript_previous('^z'), low.subscript_previous('^test2'), low.subscript_previous('^test1')},
      {'^test7', '^test1', t.server and '^redis'})
    t.equal({low.subscript_previous('^test4', {''}), low.subscript_previous('^test4', 'sub2')}, {'sub3', 'sub1'})
    t.equal(low.subscript_previous('^test4', 'sub1'), nil)
    t.equal(low.subscript_previous('^test3', 'sub1', ''), 'sub2')
    t.equal(low.subscript_previous('^test7', {''}), 'sub1\128')
    validate(t, low.subscript_previous)
  end)

  case('test_subscript_next_long', function(t)
    local long = ('a'):rep(MIB)
    low.set('long', {long}, '1')
    t.equal(low.subscript_next('long', {''}) == long, true)
    t.equal(low.subscript_next('long', {long}), nil)
    t.equal(code_of(low.set, 'long', {long .. 'a'}, '1'), ydb.YDB_ERR_INVSTRLEN)
  end)

  case('test_subscript_previous_long', function(t)
    local long = ('a'):rep(MIB)
    low.set('long', {long}, '1')
    t.equal(low.subscript_previous('long', {''}) == long, true)
    t.equal(low.subscript_previous('long', {long}), nil)
  end)

  case('test_subscript_next_i18n', function(t)
    low.set('testchinese', {'你好世界'}, '你好世界')
    t.equal(low.subscript_next('testchinese', {''}), '你好世界')
    t.equal(low.get('testchinese', '你好世界'), '你好世界')
  end)

  case('test_node_next', function(t)
    simple_data()
    t.equal(low.node_next('^test3'), {'sub1'})
    t.equal(low.node_next('^test3', {'sub1'}), {'sub1', 'sub2'})
    t.equal(low.node_next('^test3', 'sub1', 'sub2'), nil)
    t.equal(low.node_next('^test6'), {'sub6', 'subsub6'})
    t.equal(low.node_next('^nothing'), nil)
    validate(t, low.node_next)
  end)

  case('test_node_next_many_subscripts', function(t)
    local subs = {'sub1', 'sub2', 'sub3', 'sub4', 'sub5', 'sub6'}
    low.set('many', subs, '123')
    t.equal(low.node_next('many'), subs)
  end)

  case('test_node_next_long_subscripts', function(t)
    local subs = {('a'):rep(1025), ('b'):rep(1026)}
    low.set('long', subs, '123')
    t.equal(low.node_next('long'), subs)
  end)

  case('test_node_previous', function(t)
    simple_data()
    t.equal(low.node_previous('^test3', {'sub1', 'sub2'}), {'sub1'})
    t.equal(low.node_previous('^test3', {'sub1'}), {})
    t.equal(low.node_previous('^test3'), nil)
    t.equal(low.node_previous('^test4', {'sub9'}), {'sub3'})
    t.equal(low.node_previous('^nothing'), nil)
    validate(t, low.node_previous)
  end)

  case('test_node_previous_long_subscripts', function(t)
    local subs = {('a'):rep(1025), ('b'):rep(1026)}
    low.set('long', subs, '123')
    t.equal(low.node_previous('long', {('a'):rep(1025), ('c'):rep(2)}), subs)
  end)

  case('test_incr', function(t)
    t.equal(#increments, 57)
    for _, row in ipairs(increments) do
      for _, name in ipairs {'test', '^test'} do
        for _, subs in ipairs {{}, {'sub'}} do
          low.set(name, subs, row[1])
          local what = row[1] .. ' + ' .. tostring(row[2])
          t.equal(low.incr(name, subs, row[2]), row[3], what)
          t.equal(low.get(name, subs), row[3], what)
        end
      end
    end
    low.delete('test', true)
    t.equal({low.incr('test'), low.incr('test', {}), low.incr('test', 'a', '5'), low.incr('test', {'a'})}, {'1', '2', '5', '6'})
    t.equal({low.incr('test', {'b'}, nil), low.incr('test', {'b'}, '')}, {'1', '2'})
    t.fails('string expected', low.incr, 'test', {'a'}, true)
    t.equal(code_of(low.incr, 'test', {'a'}, ('1'):rep(MIB + 1)), ydb.YDB_ERR_NUMOFLOW)
    validate(t, low.incr)
  end)

  case('test_incr_errors', function(t)
    for _, by in ipairs {'1E47', '-1E47', '1E100', 1e47, -1e300} do
      low.set('^n', '0')
      t.equal(code_of(low.incr, '^n', {}, by), ydb.YDB_ERR_NUMOFLOW, tostring(by))
      t.equal(low.get('^n'), '0')
    end
    low.set('^n', '9' .. ('0'):rep(46))
    t.equal(code_of(low.incr, '^n', {}, '1' .. ('0'):rep(46)), ydb.YDB_ERR_NUMOFLOW)
  end)

  case('test_str2zwr', function(t)
    t.equal(low.str2zwr('X\0ABC'), '"X"_$C(0)_"ABC"')
    local M, utf8 = require 'perilune.yottadb.zwrite'.functions 'M', require 'perilune.yottadb.zwrite'.functions 'UTF-8'
    t.equal(low.str2zwr '你', M.str2zwr '你', 'M mode, unless $ydb_chset says UTF-8')
    t.equal(M.str2zwr '你好世界', '"\228\189\160\229\165\189\228\184"_$C(150)_"\231"_$C(149,140)')
    t.equal(utf8.str2zwr '你好世界\127\194\133\255\1', '"你好世界"_$C(127,133)_$ZCH(255)_$C(1)')
    t.equal({low.str2zwr '', low.str2zwr 'a"b', low.str2zwr '\1\2', low.str2zwr '\255'}, {'""', '"a""b"', '$C(1,2)', '$C(255)'})
    t.fails('string expected', low.str2zwr, true)
    t.fails('string expected', low.str2zwr, 5)
    t.equal(code_of(low.str2zwr, ('b'):rep(MIB - 1)), ydb.YDB_ERR_INVSTRLEN)
  end)

  case('test_zwr2str', function(t)
    t.equal({low.zwr2str '"X"_$C(0)_"ABC"', low.zwr2str '$ZCH(255)_"a""b"', low.zwr2str '""'}, {'X\0ABC', '\255a"b', ''})
    for i = 0, 255 do
      local s = 'a' .. string.char(i) .. '"é\0' .. string.char(i)
      t.equal(low.zwr2str(low.str2zwr(s)), s)
    end
    for _, bad in ipairs {'x', '"a', '$C()', '$C(256)', '"a"_', '"a""', '$X(1)', '$C(1,)', '$C(1)$C(2)', ''} do
      t.equal(low.zwr2str(bad), '', bad)
    end
    local utf8 = require 'perilune.yottadb.zwrite'.functions 'UTF-8'
    t.equal(utf8.zwr2str '$C(233,20320,128512)_$ZCH(255)_$C(65)', 'é你😀\255A')
    t.equal({utf8.zwr2str '$C(55296)', utf8.zwr2str '$C(1114112)', utf8.zwr2str '$ZCH(256)'}, {'', '', ''})
    for _, s in ipairs {'é\0\255', '\194\133x', '你"'} do
      t.equal(utf8.zwr2str(utf8.str2zwr(s)), s)
    end
    t.fails('string expected', low.zwr2str, nil)
  end)

  case('test_get_error_code', function(t)
    t.equal(ydb.get_error_code('not an error'), nil)
    t.equal(ydb.get_error_code('x: YDB Error: -150377322: text'), ydb.YDB_ERR_TPTIMEOUT)
    t.fails('string expected', ydb.get_error_code, nil)
    t.fails('string expected', ydb.get_error_code, {})
  end)

  case('test_module_node_next', function(t)
    local subs = {'sub1', 'sub2', 'sub3', 'sub4', 'sub5'}
    for i = 0, 5 do ydb.set('chain', {(table.unpack or unpack)(subs, 1, i)}, i) end
    local at = {}
    for i = 1, 5 do
      at = ydb.node_next('chain', at)
      t.equal(#at, i)
    end
    t.equal(ydb.node_next('chain', at), nil)
    t.equal(ydb.node_next(ydb.node('chain', 'sub1')), {'sub1', 'sub2'})
  end)

  case('test_module_node_previous', function(t)
    local subs = {'sub1', 'sub2', 'sub3', 'sub4', 'sub5'}
    for i = 0, 5 do ydb.set('chain', {(table.unpack or unpack)(subs, 1, i)}, i) end
    local at = subs
    for i = 4, 0, -1 do
      at = ydb.node_previous('chain', at)
      t.equal(#at, i)
    end
    t.equal(ydb.node_previous('chain', at), nil)
  end)

  case('test_module_subscript_next', function(t)
    simple_data()
    t.equal({ydb.subscript_next('^test4', ''), ydb.subscript_next('^test4', {'sub1'})}, {'sub1', 'sub2'})
    t.equal(ydb.subscript_next(ydb.node('^test4').sub2), 'sub3')
    t.equal({ydb.subscript_next('^test1'), ydb.subscript_next('test4')}, {'^test2'})
  end)

  case('test_module_subscript_previous', function(t)
    simple_data()
    t.equal({ydb.subscript_previous('^test4', ''), ydb.subscript_previous('^test4', {'sub2'})}, {'sub3', 'sub1'})
    t.equal(ydb.subscript_previous(ydb.node('^test4').sub2), 'sub1')
    t.equal(ydb.subscript_previous('test2'), 'test1')
  end)

  local function collect(...)
    local found = {}
    for sub in ... do found[#found + 1] = sub end
    return found
  end

  case('test_module_subscripts', function(t)
    simple_data()
    t.equal(collect(ydb.subscripts('^test4', {''})), {'sub1', 'sub2', 'sub3'})
    t.equal(collect(ydb.subscripts('^test4', '', true)), {'sub3', 'sub2', 'sub1'})
    t.equal(collect(ydb.subscripts('^test4', {'sub1'})), {'sub2', 'sub3'})
    t.equal(collect(ydb.subscripts('^test4', {'sub3'}, true)), {'sub2', 'sub1'})
    t.equal(collect(ydb.subscripts(ydb.node('^test4').sub2)), {'sub3'})
    t.equal(collect(ydb.subscripts('^test3')), {'^test4', '^test6', '^test7'})
    t.equal(collect(ydb.subscripts('test3', true)), {'test2', 'test1'})
    t.fails('number/boolean expected', ydb.subscripts, 'test3', 'a')
    local iterator = ydb.subscripts('\128')
    t.equal(code_of(iterator), ydb.YDB_ERR_INVVARNAME)
    t.fails('name length exceeds', (ydb.subscripts(('a'):rep(32))))
  end)

  case('test_module_lock', function(t)
    ydb.lock {ydb.node('^a'), {'^b', {'x'}}, {'^c', 'y', 'z'}}
    ydb.lock()
    for _, word in ipairs {'table', 'number', 'nil', ' expected'} do t.fails(word, ydb.lock, true) end
    t.fails('expected', ydb.lock, {true})
    t.fails('expected', ydb.lock, {{}})
    t.fails('expected', ydb.lock, nil, 5)
  end)

  case('test_key', function(t)
    simple_data()
    local k = ydb.key('^test3')
    t.equal({k.value, k.data, k.has_value, k.has_tree, k.name, k.__varname}, {'test3value1', 11, true, true, '^test3', '^test3'})
    local sub = k('sub1')
    t.equal({sub.value, sub.name, sub('sub2').value, sub:get()}, {'test3value2', 'sub1', 'test3value3', 'test3value2'})
    t.equal(sub('sub2').__subsarray, {'sub1', 'sub2'})
    t.equal({tostring(k), tostring(sub('sub2'))}, {'^test3', '^test3("sub1","sub2")'})
    t.equal({k == ydb.key('^test3'), k == sub, sub == ydb.key('^test3', {'sub1'})}, {true, false, true})
    t.fails('read-only property', function() k.data = 1 end)
    t.fails('read-only property', function() k.name = 1 end)
    k.field = {1}
    t.equal({k.field, sub.field, k.nothing}, {{1}})
    local n = ydb.key('n')
    t.equal({n:incr(), n:incr(2), n:incr('-1')}, {'1', '3', '2'})
    n = n + 4
    n = n - '1'
    t.equal(n.value, '5')
    t.fails('string/nil/number expected', n.incr, n, true)
    t.fails('string/number expected', function() return n + {} end)
    t.fails('string expected', ydb.key, 1)
    t.fails('table/nil expected', ydb.key, 'a', 'b')
    local four = ydb.key('^test4')('sub1')
    t.equal({four:subscript_next(), four:subscript_next(), four:subscript_next()}, {'sub1', 'sub2', 'sub3'})
    t.equal({four:subscript_next(), four:subscript_next()}, {}, 'it stays behind the last one')
    t.equal(four:subscript_next(true), 'sub1')
    t.equal({four:subscript_previous(true), four:subscript_previous()}, {'sub3', 'sub2'})
    t.equal(ydb.key('^test4'):subscript_next(), 'sub1')
    t.equal(collect(ydb.key('^test4'):subscripts()), {'sub1', 'sub2', 'sub3'})
    t.equal(collect(four:subscripts()), {'sub2', 'sub3'})
    t.equal(collect(ydb.key('^test4'):subscripts(true)), {'sub3', 'sub2', 'sub1'})
  end)

  case('test_key_set', function(t)
    local k = ydb.key('^k')('a')
    k.value = 'v'
    t.equal({k.value, ydb.get('^k', 'a')}, {'v', 'v'})
    k:set('w')
    t.equal({k:get(), k.value}, {'w', 'w'})
    t.equal(ydb.key('^nothing'):get('default'), 'default')
  end)

  case('test_key_delete', function(t)
    simple_data()
    local k = ydb.key('^test3')('sub1')
    k:delete_node()
    t.equal({k.value, k.data}, {nil, 10})
    ydb.key('^test3'):delete_tree()
    t.equal(ydb.key('^test3').data, 0)
  end)

  case('test_key_lock', function(t)
    local k = ydb.key('^k', {'a'})
    k:lock_incr(0)
    k:lock_incr()
    k:lock_decr()
    k:lock_decr()
    k:lock_decr()
    t.fails('number expected', k.lock_incr, k, true)
  end)

  case('test_integer_subscripts', function(t)
    t.equal(ydb.node('n', 1) == ydb.node('n', '1'), true)
    t.equal(ydb.node('n')[1] == ydb.node('n')['1'], true)
    t.equal(ydb.node('n', 1) == ydb.node('n', '01'), false)
    ydb.node('n')[1].__ = 'x'
    t.equal(ydb.get('n', '1'), 'x')
  end)

  case('test_node_features', function(t)
    local wanted = ydb.node('^v', 'a', 'b', 'c')
    for _, n in ipairs {ydb.node('^v', {'a', 'b', 'c'}), ydb.node('^v', {'a'}, 'b', 'c'), ydb.node('^v').a.b.c,
      ydb.node('^v')('a', 'b')('c'), ydb.node('^v')['a']['b'].c, ydb.node(ydb.node('^v', 'a'), 'b', 'c')} do
      t.equal({n == wanted, tostring(n)}, {true, '^v("a","b","c")'})
    end
  end)

  case('test_node', function(t)
    simple_data()
    local n = ydb.node('^test3')
    t.equal({n.__, n:get(), n:__get(), n.sub1.__, n.sub1.sub2:get()},
      {'test3value1', 'test3value1', 'test3value1', 'test3value2', 'test3value3'})
    t.equal({n:data(), n:has_value(), n:has_tree(), n.sub1.sub2:data(), n.none:has_value()}, {11, true, true, 1, false})
    t.equal({n:name(), n:varname(), n:depth(), n.sub1.sub2:name(), n.sub1.sub2:depth()}, {'^test3', '^test3', 0, 'sub2', 2})
    t.equal(n.sub1.sub2:subsarray(), {'sub1', 'sub2'})
    t.equal({n.none:get('d'), n.none:get(false), n.none:get(), n.none.__}, {'d', false})
    t.equal({ydb.isnode(n.get), ydb.isnode(n.value), ydb.isnode(n.data), n.__nosuch}, {true, true, true})
    t.equal({n:ismutable(), ydb.isnode(n), ydb.isnode(ydb.key('a')), ydb.isnode(5)}, {false, true, false, false})
    local c = ydb.node('c')
    c.__ = 10
    t.equal({c:incr(), c:incr(5), c:incr('.5'), c.__}, {'11', '16', '16.5', '16.5'})
    c = c + 1
    c = c - 2.5
    t.equal({c.__, c == ydb.node('c'), c == ydb.node('d')}, {'15', true, false})
    t.fails('string/nil/number expected', function() c:incr(true) end)
    t.fails('string/number expected', function() return c + true end)
    t.fails('Did you mean to set c("x").__ instead?', function() c.x = 5 end)
    t.fails("could not find node method 'nosuch' on node c", function() c:nosuch() end)
    t.equal(tostring(ydb.node('^v', 'a', 3, 'x"y', '-1', '1.5', 'new\nline')), '^v("a",3,"x\\"y",-1,"1.5","new\\\nline")')
    for _, word in ipairs {'must be', 'string'} do t.fails(word, ydb.node, 1) end
    t.equal(c() == c, true)
  end)

  case('test_node_set', function(t)
    local n = ydb.node('^v').a
    n.__ = 'x'
    t.equal({n.__, n:set('y'), n.__, n:__set(5), n.__}, {'x', 'y', 'y', '5', '5'})
    n.b.__ = 'below'
    n.__ = nil
    t.equal({n:data(), n.b.__}, {10, 'below'})
    t.fails('string expected', function() n.__ = true end)
  end)

  case('test_node_delete', function(t)
    local n = ydb.node('^v').a
    n.__, n.b.__ = 'x', 'y'
    n:set(nil)
    t.equal({n.__, n.b.__}, {nil, 'y'})
    n:kill()
    t.equal(n:data(), 0)
    n.__, n.b.__ = 'x', 'y'
    n:delete_tree()
    t.equal(ydb.data('^v'), 0)
  end)

  -- The lock that `take` takes keeps another process out, and `give` lets it in.
  local function between_processes(t, db, take, give)
    local n = ydb.node('^locked').a
    take(n, 1)
    give(n)
    local release = hold(db, t, '^locked', 'a')
    t.equal(code_of(take, n, 0), ydb.YDB_LOCK_TIMEOUT)
    t.equal(code_of(take, n, 0.1), ydb.YDB_LOCK_TIMEOUT)
    t.equal(code_of(take, ydb.node('^locked'), 0), ydb.YDB_LOCK_TIMEOUT)
    release()
    take(n, 10)
    take(n, 0)
    give(n)
    give(n)
    hold(db, t, '^locked', 'a')()
  end

  case('test_node_lock', function(t, db)
    between_processes(t, db, ydb.lock_incr, ydb.lock_decr)
    between_processes(t, db, function(n, timeout) n:lock_incr(timeout) end, function(n) n:lock_decr() end)
  end)

  case('test_node_grab', function(t, db)
    between_processes(t, db, ydb.grab, ydb.release)
    between_processes(t, db, function(n, timeout) n:grab(timeout) end, function(n) n:release() end)
  end)

  case('test_module_transactions', function(t)
    local run = ydb.transaction(function(what)
      ydb.set('^tx', what)
      if what == 'error' then ydb.get('\128') end
      if what == 'code' then return ydb.YDB_ERR_TPTIMEOUT end
      if what == 'rollback' then ydb.trollback() end
      if what == 'false' then return false end
      if what == 'restart' and ydb.get('$TRESTART') == '0' then ydb.trestart() end
    end)
    t.equal(select('#', run('commit')), 0)
    t.equal(ydb.get('^tx'), 'commit')
    t.equal(code_of(run, 'error'), ydb.YDB_ERR_INVVARNAME)
    t.equal(code_of(run, 'code'), ydb.YDB_ERR_TPTIMEOUT)
    t.equal(code_of(run, 'rollback'), ydb.YDB_TP_ROLLBACK)
    t.equal(ydb.get('^tx'), 'commit')
    run('false')
    t.equal(ydb.get('^tx'), 'false')
    run('restart')
    t.equal(ydb.get('^tx'), 'restart')
    ydb.transaction('batch', {'*'}, function()
      ydb.set('^outer', 1)
      run('nested')
      t.equal({ydb.get('$TLEVEL'), code_of(run, 'rollback')}, {'1', ydb.YDB_TP_ROLLBACK})
    end)()
    t.equal({ydb.get('^outer'), ydb.get('^tx')}, {'1', 'nested'})
  end)

  case('test_pairs', function(t)
    local n = ydb.node('^p')
    n.a.__, n.b.x.__, n.c.__, n[10].__, n[9].__ = 1, 2, 3, 4, 5
    local seen = {}
    for child, value, sub in n:pairs() do
      t.equal(child, n[sub])
      seen[#seen + 1] = sub .. '=' .. tostring(value)
    end
    t.equal(seen, {'9=5', '10=4', 'a=1', 'b=nil', 'c=3'})
    seen = {}
    for _, _, sub in n:pairs(true) do seen[#seen + 1] = sub end
    t.equal(seen, {'c', 'b', 'a', '10', '9'})
    for _ in n.none:pairs() do error 'a child of nothing' end
    ydb.set('loc', 'a', 'b', 1)
    for child, value in ydb.node('loc'):pairs() do t.equal({tostring(child), value}, {'loc("a")'}) end
    if ydb._node.__pairs and pcall(function() for _ in pairs(setmetatable({}, {__pairs = error})) do return end end) == false then
      seen = {}
      for child in pairs(n) do seen[#seen + 1] = child:name() end
      t.equal(seen, {'9', '10', 'a', 'b', 'c'})
    end
  end)

  case('test_settree', function(t)
    local n = ydb.node('^oak')
    n:settree {__ = 'berkley', shadow = {angle = 30, __ = '10'}, ['1'] = 'one', [2] = 'two', leaf = '.5'}
    local text = n:dump():gsub(' %(cachearray 0x%x+%)', '')
    t.equal(text, table.concat({'^oak', '^oak="berkley"', '^oak(1)="one"', '^oak(2)="two"', '^oak("leaf")=".5"',
      '^oak("shadow")=10', '^oak("shadow","angle")=30'}, '\n'))
    t.equal(n:gettree(), {__ = 'berkley', shadow = {angle = '30', __ = '10'}, ['1'] = 'one', ['2'] = 'two', leaf = '.5'})
    t.equal(n:gettree(0), {__ = 'berkley', shadow = '10', ['1'] = 'one', ['2'] = 'two', leaf = '.5'})
    t.equal(n:gettree(nil, function(_, sub, value, _, depth)
      if sub == 'leaf' then return nil end
      if sub == 'shadow' then return value .. depth, false end
      return value and value .. depth
    end), {__ = 'berkley0', shadow = '101', ['1'] = 'one1', ['2'] = 'two1'})
    n:settree({shadow = 'no', leaf = 1, x = 2}, function(_, k, v)
      if k == 'shadow' then return nil end
      if k == 'leaf' then return k, ydb.DELETE end
      return k .. 'y', v + 1
    end)
    t.equal({n.shadow.__, n.leaf.__, n.xy.__}, {'10', nil, '3'})
    n:settree {shadow = ydb.DELETE}
    t.equal({n.shadow.__, n.shadow.angle.__}, {nil, '30'})
    t.fails('subscript of type boolean: must be string/number', function() n:settree {[true] = 1} end)
    t.fails('to type boolean', function() n:settree {a = true} end)
    t.fails('Node already updated', function() n:settree {[1] = 1, ['1'] = 2} end)
    t.fails('table expected', function() n:settree('x') end)
  end)

  case('test_deprecated_readme', function(t)
    local hello = ydb.key('^hello')
    hello.value = 'Hello World'
    t.equal({hello.data, hello.value}, {1, 'Hello World'})
    local people = ydb.key('people')
    people('1')('name').value = 'Joe'
    people('2')('name').value = 'Ann'
    local names = {}
    for sub in people('').subscripts(people('')) do names[#names + 1] = people(sub)('name').value end
    t.equal(names, {'Joe', 'Ann'})
    people:delete_tree()
    t.equal(people.data, 0)
  end)

  case('test_cachearray_garbage', function(t)
    local function chain()
      local n = ydb.node('a')
      for letter in ('bcdefghijklmnopqrstuvwxyz'):gmatch '.' do n = n[letter] end
      return n
    end
    chain()
    collectgarbage()
    collectgarbage()
    local before = collectgarbage 'count'
    for _ = 1, 10 do chain() end
    collectgarbage()
    collectgarbage()
    t.equal(collectgarbage 'count' - before < 1, true, 'nodes left behind')
  end)

  case('test_inheritance', function(t)
    local first, class1, super1 = ydb.inherit(ydb.node)
    local second, class2, super2 = ydb.inherit(first)
    t.equal({super1 == ydb._node, super2 == class1, getmetatable(second 'x') == class2}, {true, true, true})
    for _, make in ipairs {ydb.node, first, second} do
      t.equal({ydb.isnode(make 'x'), ydb.isnode(make('x').y)}, {true, true})
    end
    for i, make in ipairs {first, second} do
      local n = make('^inherited', i)
      n.__ = 1
      n.a.__ = n:incr(4)
      n = n + 1
      t.equal({n.__, n:get(), n.a.__, n.a:get(), n:has_tree(), getmetatable(n.a) == getmetatable(n)},
        {'6', '6', '5', '5', true, true})
      t.equal(n:gettree(), {__ = '6', a = '5'})
      n:lock_incr(0)
      n:lock_decr()
      t.equal({tostring(n.a), n == ydb.node('^inherited', i)}, {'^inherited(' .. i .. ',"a")', true})
    end
  end)

  spec('all portable cases are here', function(_, t)
    t.equal(count, CASES)
  end)
end
