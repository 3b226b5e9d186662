-- The defects of lua-yottadb 3.0 that perilune.yottadb does not have: a test for each of D1 to D19.
--
-- The name of a test says what the defect was; docs/guide/from-lua-yottadb.md lists what differs by it.

local portable = require 'portable'
local ydb = require 'perilune.yottadb'

local code_of = portable.code_of

local function garbage()
  for _ = 1, 4 do collectgarbage() end
  return collectgarbage 'count'
end

return function(spec)
  local function defect(name, f)
    spec(name, function(db, t)
      ydb.kill '^v'
      require('perilune.yottadb.low').delete_excl {}
      f(t, db)
    end)
  end

  defect('D1: a node that is held began to address another', function(t)
    local r = ydb.node('^r')
    local bal = r.balance.usd
    local h = r.balance
    local x = h.history
    t.equal({tostring(bal), tostring(x)}, {'^r("balance","usd")', '^r("balance","history")'})
    bal.__ = 999
    t.equal({r.balance.usd.__, r.balance.history.__}, {'999'})
    local c, p = r.b.c, r.b
    t.equal({p.z.__, p:name(), tostring(c), tostring(c.x), c:depth()}, {nil, 'b', '^r("b","c")', '^r("b","c","x")', 2})
    local held = {}
    for i = 1, 300 do held[i] = r.b['s' .. i % 30].deep[i] end
    for i = 1, 300 do t.equal(held[i], ydb.node('^r', 'b', 's' .. i % 30, 'deep', i)) end
    for child in r:pairs() do held[#held + 1] = child end
    t.equal({tostring(held[301]), held[302]}, {'^r("balance")'})
  end)

  defect('D2: kill by name killed the parent', function(t)
    local function fill()
      ydb.kill '^v'
      ydb.set('^v', 1)
      ydb.set('^v', 'a', 2)
      ydb.set('^v', 'a', 'b', 3)
      ydb.set('^v', 'a', 'b', 'c', 4)
    end
    for _, f in ipairs {ydb.kill, ydb.delete_tree} do
      fill()
      f('^v', 'a', 'b')
      t.equal({ydb.data '^v', ydb.data('^v', 'a'), ydb.data('^v', 'a', 'b')}, {11, 1, 0})
      fill()
      f('^v', {'a'}, 'b')
      t.equal({ydb.data('^v', 'a'), ydb.data('^v', 'a', 'b')}, {1, 0})
      fill()
      f(ydb.node('^v', 'a'), 'b')
      t.equal(ydb.data('^v', 'a'), 1)
      fill()
      f '^v'
      t.equal(ydb.data '^v', 0)
    end
  end)

  defect('D3: lock with entries and node:lock raised', function(t, db)
    local other = ydb.node('^other')
    other:grab()
    ydb.lock({{'^v', 'a'}, {'^v', {'b', 'c'}}, ydb.node('^w', 1)}, 1)
    t.equal({db.node('^v', 'a'):lock_count(), db.node('^v', 'b', 'c'):lock_count(), db.node('^w', 1):lock_count(),
      db.node('^other'):lock_count()}, {1, 1, 1, 0})
    other:lock(1)
    t.equal({db.node('^v', 'a'):lock_count(), db.node('^other'):lock_count()}, {0, 1})
    ydb.lock()
    t.equal(db.node('^other'):lock_count(), 0)
  end)

  defect('D4: lock_incr with a table and no timeout tried once', function(t, db)
    local ended = portable.hold(db, t, '^v', 'a', true)
    t.equal(code_of(ydb.lock_incr, '^v', {'a'}, 0), ydb.YDB_LOCK_TIMEOUT)
    ydb.set('^go', 1)
    ydb.lock_incr('^v', {'a'})
    t.equal(db.node('^v', 'a'):lock_count(), 1)
    ended()
    ydb.lock()
  end)

  defect('D5: subscripts after a node were ignored', function(t)
    local n = ydb.node('^v')
    n.__ = 'own'
    ydb.set(n, 'x', 'value')
    ydb.set(n, {'x'}, 'y', 'deep')
    t.equal({n.__, ydb.get(n, 'x'), ydb.get(n, {'x', 'y'}), ydb.data(n, 'x')}, {'own', 'value', 'deep', 11})
    t.equal({ydb.incr(n, 'i', 3), n.i.__, n.__}, {'3', '3', 'own'})
    ydb.delete_node(n, 'x')
    t.equal({ydb.data(n, 'x'), n.__}, {10, 'own'})
    t.equal({ydb.subscript_next(n, 'i'), ydb.node_next(n, 'i')[1], ydb.subscript_previous(n, '')}, {'x', 'x', 'x'})
    ydb.lock_incr(n, 'x', 0)
    ydb.lock_decr(n, 'x')
  end)

  defect('D6: an error that is no string crashed the process', function(t)
    local object = setmetatable({}, {__tostring = function() return 'object' end})
    for _, value in ipairs {object, 5, true} do
      for _, run in ipairs {ydb.tp, function(f) ydb.transaction(f)() end} do
        local good, message = pcall(run, function()
          ydb.set('^v', 1)
          error(value, 0)
        end)
        t.equal({good, message == value, ydb.get('^v')}, {false, true})
      end
    end
    t.equal(select('#', pcall(ydb.tp, function() error() end)), 2)
    t.equal(pcall(ydb.tp, function() error() end), false)
  end)

  defect('D7: Lua numbers went through tostring', function(t)
    local n = ydb.node('^v')
    t.equal({n[1.0] == n[1], n[10 / 2] == n['5'], n(2.0) == n[2], ydb.node('^v', 7 / 7) == n[1]}, {true, true, true, true})
    t.equal({tostring(n[0.5]), tostring(n[1e15]), tostring(n[-0.0]), tostring(n[2 ^ 53])},
      {'^v(".5")', '^v(1000000000000000)', '^v(0)', '^v(9007199254740992)'})
    t.equal(ydb.incr(n, 1e15), '1000000000000000')
    local texts = {{2 ^ 53, '9007199254740992'}, {-0.0, '0'}, {1e20, '100000000000000000000'}, {0.1, '.1'}, {-1.25, '-1.25'},
      {1e-7, '.0000001'}, {1 / 3, '.3333333333333333'}, {123456789012, '123456789012'}}
    for _, row in ipairs(texts) do
      t.equal({ydb.set('^v', row[1]), ydb.get '^v'}, {row[2], row[2]})
      ydb.set('^v', {row[1]}, 'x')
      t.equal(ydb.get('^v', row[2]), 'x')
    end
    for _, bad in ipairs {1 / 0, -1 / 0, 0 / 0} do
      t.fails('finite number', ydb.set, '^v', bad)
      t.fails('finite number', ydb.get, '^v', bad)
      t.fails('finite number', ydb.incr, '^v', bad)
      t.fails('finite number', function() return n[bad] end)
    end
    t.equal({code_of(ydb.set, '^v', 1e300), code_of(ydb.incr, '^v', 1e47)}, {ydb.YDB_ERR_NUMOFLOW, ydb.YDB_ERR_NUMOFLOW})
    if math.type then
      local big = math.maxinteger
      t.equal({ydb.set('^v', big), n[big] == n[string.format('%d', big)]}, {'9223372036854775807', true})
    end
  end)

  defect('D8: a restart in a nested transaction was swallowed', function(t)
    for _, again in ipairs {function() return ydb.YDB_TP_RESTART end, ydb.trestart} do
      for _, inner in ipairs {ydb.tp, function(f) ydb.transaction(f)() end} do
        ydb.kill '^v'
        local outer_runs, after = 0, 0
        ydb.tp(function()
          outer_runs = outer_runs + 1
          ydb.incr('^v', 'before', 1)
          inner(function()
            ydb.set('^v', 'inner', outer_runs)
            if outer_runs < 3 then return again() end
          end)
          after = after + 1
          ydb.set('^v', 'after', outer_runs)
        end)
        t.equal({outer_runs, after}, {3, 1})
        t.equal({ydb.get('^v', 'before'), ydb.get('^v', 'inner'), ydb.get('^v', 'after')}, {'1', '3', '3'})
      end
    end
  end)

  defect('D9: subscripts of a node with children raised', function(t)
    ydb.set('^v', 'a', 1)
    ydb.set('^v', 'b', 1)
    local n = ydb.node('^v', 'a')
    local child, found = n.x, {}
    for sub in ydb.subscripts(n) do found[#found + 1] = sub end
    t.equal({found[1], found[2], tostring(n), tostring(child)}, {'b', nil, '^v("a")', '^v("a","x")'})
    local key = ydb.key('^v', {'a'})
    child = key 'x'
    t.equal({key:subscript_next(), key:subscript_next(), tostring(child)}, {'a', 'b', '^v("a","x")'})
  end)

  defect('D10: node(node, {subs}, sub) raised', function(t)
    local n = ydb.node('^v', 'a')
    t.equal({tostring(ydb.node(n, {'x'}, 'y')), tostring(ydb.node(n, {'x', 'z'})), tostring(n)},
      {'^v("a","x","y")', '^v("a","x","z")', '^v("a")'})
    t.equal({rawget(_G, 'subsarray'), rawget(_G, 'string_pack'), rawget(_G, 'key_properties')}, {})
  end)

  defect('D11: node(key) changed the class of the original', function(t)
    local key = ydb.key('^v', {'a'})
    key.value = 5
    local n = ydb.node(key)
    t.equal({n.__, key.value, ydb.isnode(n), ydb.isnode(key), n == key}, {'5', '5', true, false, true})
    local make = ydb.inherit(ydb.node)
    local derived = make '^v'
    local class = getmetatable(derived)
    t.equal({getmetatable(ydb.node(derived)) == ydb._node, getmetatable(derived) == class}, {true, true})
  end)

  defect('D12: dump(node, sub) ignored the subscript', function(t)
    ydb.set('^v', 'a', 1)
    ydb.set('^v', 'x', 2)
    ydb.set('^v', 'x', 'y', '.5')
    ydb.set('^v', 'xx', 3)
    local text = ydb.dump(ydb.node '^v', 'x'):gsub(' %(cachearray 0x%x+%)', '')
    t.equal(text, '^v("x")\n^v("x")=2\n^v("x","y")=".5"')
    t.equal(ydb.dump('^v', 'x'), '^v("x")\n^v("x")=2\n^v("x","y")=".5"')
    t.equal(select(2, ydb.dump('^v', {}, 2):gsub('\n', '')), 2)
    t.equal(ydb.dump('^v', {}, 2):match 'stopped at 2 lines' ~= nil, true)
  end)

  defect('D13: the class of a class lost what its parent overrode', function(t)
    local first, class1 = ydb.inherit(ydb.node)
    function class1:get(default) return 'got ' .. tostring(ydb._node.get(self, default)) end
    function class1:set(value) return ydb._node.set(self, value .. '!') end
    function class1:shout() return 'hey ' .. self:name() end
    local second, class2 = ydb.inherit(first)
    for _, make in ipairs {first, second} do
      local n = make '^v'
      n.a.__ = 1
      t.equal({n.a.__, n.a:get(), n.a:__get(), n.b:get 'd', n.a:shout(), n.a:__shout()},
        {'got 1!', 'got 1!', 'got 1!', 'got d', 'hey a', 'hey a'})
    end
    function class2:get() return 'second ' .. class1.get(self) end
    t.equal({second('^v').a.__, first('^v').a.__, ydb.node('^v').a.__}, {'second got 1!', 'got 1!', '1!'})
  end)

  defect('D14: local variables are restored on restart, not on rollback', function(t)
    ydb.set('l', 'start')
    t.equal(code_of(ydb.tp, {'l'}, function()
      ydb.set('l', 'changed')
      return ydb.YDB_TP_ROLLBACK
    end), ydb.YDB_TP_ROLLBACK)
    t.equal(ydb.get 'l', 'changed')
    local runs, seen = 0, {}
    ydb.tp({'l', 'm'}, function()
      runs = runs + 1
      seen[runs] = ydb.get('l') .. tostring(ydb.get('m', 'x')) .. tostring(ydb.get 'kept')
      ydb.set('l', 'again')
      ydb.set('m', 'x', runs)
      ydb.set('kept', runs)
      if runs == 1 then ydb.trestart() end
    end)
    t.equal(seen, {'changednilnil', 'changednil1'})
    t.equal({ydb.get 'l', ydb.get('m', 'x')}, {'again', '2'})
    -- What was kept of them is gone and was never to be seen.
    local names, name = {}, ydb.subscript_next '%'
    while name do
      names[#names + 1], name = name, ydb.subscript_next(name)
    end
    t.equal(names, {'kept', 'l', 'm'})
  end)

  defect('D15: set and incr with a bad address leaked', function(t)
    local function bad()
      for _ = 1, 500 do
        pcall(ydb.set, '\128', 'value')
        pcall(ydb.incr, '\128', 'x')
        pcall(ydb.set, '^v', {true}, 'value')
        pcall(ydb.incr, '^v', {true}, 'x')
        pcall(ydb.set, '^v', ('k'):rep(3000), 'value')
      end
    end
    bad()
    local before = garbage()
    bad()
    t.equal(garbage() - before < 8, true)
  end)

  defect('D16: keys were never collected', function(t)
    local seen = setmetatable({}, {__mode = 'kv'})
    local function keys()
      for i = 1, 200 do
        local key, field = ydb.key('^v', {i}), {}
        key.field = field
        key:subscript_next()
        seen[i], seen[-i] = key, field
      end
    end
    keys()
    garbage()
    garbage()
    t.equal(next(seen), nil)
  end)

  defect('D17: pcall swallowed a restart', function(t)
    local runs, calls = 0, {}
    ydb.tp(function()
      runs = runs + 1
      ydb.set('^v', runs)
      if runs == 1 then
        pcall(ydb.trestart)
        calls = {code_of(ydb.get, '^v'), code_of(ydb.set, '^w', 1), code_of(ydb.tp, function() end),
          code_of(ydb.lock_incr, '^v', 0)}
      end
    end)
    t.equal(calls, {ydb.YDB_TP_RESTART, ydb.YDB_TP_RESTART, ydb.YDB_TP_RESTART, ydb.YDB_TP_RESTART})
    t.equal({runs, ydb.get '^v', ydb.get '^w'}, {2, '2'})
    t.equal({pcall(ydb.trestart)}, {false, select(2, pcall(ydb.trestart))})
    t.equal(ydb.get '^v', '2')
  end)

  defect('D18: n - text raised and n + text did not', function(t)
    local n = ydb.node('^v')
    n.__ = 10
    n = n + 'abc'
    n = n - 'abc'
    t.equal(n.__, '10')
    n = n - '2x'
    n = n + '3x'
    n = n - '-1'
    n = n - 1.5
    t.equal(n.__, '10.5')
    n = n + ''
    n = n - ''
    t.equal(n.__, '10.5')
    t.fails('left', function() return 1 + n end)
    t.fails('left', function() return 1 - n end)
    t.fails('string/number expected', function() return n - {} end)
    t.fails('string/number expected', function() return n + n end)
    t.equal(n.__, '10.5')
  end)

  defect('D19: what functions return', function(t)
    local function results(...) return select('#', ...) end
    t.equal({results(ydb.lock()), results(ydb.lock_incr('^v', 0)), results(ydb.lock_decr '^v'), results(ydb.kill '^v'),
      results(ydb.delete_node '^v'), results(ydb.tp(function() end))}, {0, 0, 0, 0, 0, 0})
    t.equal({ydb.set('^v', 5), ydb.set('^v', 'x'), ydb.node('^v'):set(1.5), ydb.incr '^w'}, {'5', 'x', '1.5', '1'})
    t.equal({results(ydb.set('^v', nil)), (ydb.set('^v', nil))}, {1})
  end)
end
