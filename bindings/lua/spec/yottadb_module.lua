-- perilune.yottadb beyond lua-yottadb's own suite: its tables, bad input, special variables, collation,
-- arithmetic's limits, locks in transactions, and one database shared with the native module.

local low = require 'perilune.yottadb.low'
local perilune = require 'perilune'
local portable = require 'portable'
local ydb = require 'perilune.yottadb'

local code_of = portable.code_of

-- Every value of Lua that is neither string, number nor nil.
local strange = {true, false, {}, print, coroutine.create(function() end), io.stdout, perilune.null, perilune.DELETE}

-- The order of subscripts: "" first (never shown), numbers by value, then bytes.
local ordered = {'-1' .. ('0'):rep(46), '-1', '-.5', '0', '.' .. ('0'):rep(42) .. '1', '.5', '1', '2', '10', '123456789012345678',
  '999999999999999999', '1234567890123456780', '1' .. ('0'):rep(20), '1' .. ('0'):rep(46), '\0', '\1', ' ', '+1', '-0',
  '.' .. ('0'):rep(43) .. '1', '0.5', '00', '1.0', '1' .. ('0'):rep(47), '1234567890123456789',
  '12345678901234567890', '1E3', '1e3', '9999999999999999999', 'A', '_', 'a', 'a\0b', 'a\1', 'ab', '~', 'é', '\255'}

return function(spec)
  local function case(name, f)
    spec(name, function(db, t)
      low.delete_excl {}
      f(t, db)
    end)
  end

  case('the module has what lua-yottadb has', function(t)
    local names = [[block_M_signals data delete_node delete_tree dump get get_error_code grab incr inherit init isnode
      key kill lock lock_decr lock_incr node node_next node_previous release require set str2zwr subscript_next
      subscript_previous subscripts tp transaction trestart trollback ydb_eintr_handler zwr2str]]
    local count = 0
    for name in names:gmatch '%S+' do
      count = count + 1
      t.equal(type(ydb[name]), 'function', name)
    end
    t.equal(count, 33)
    t.equal({type(ydb._node), type(ydb._key), type(ydb._key_properties), type(ydb.DELETE)}, {'table', 'table', 'table', 'table'})
    t.equal({ydb._VERSION, type(ydb.YDB_CI_PARAM_TYPES), tonumber(ydb._VERSION) >= 1.2}, {'3.0', 'table', true})
    local constants = 0
    for name, value in pairs(ydb) do
      if name:match '^YDB_' and type(value) ~= 'table' then
        constants = constants + 1
        t.equal(low[name], value, name)
      end
    end
    t.equal(constants, 26)
    t.equal({require 'yottadb' == ydb, require '_yottadb' == low}, {true, true})
  end)

  case('calls that need M say so', function(t)
    t.fails('M language', ydb.require, 'x: void f^g()')
    t.fails('M language', low.cip)
    t.fails('M language', low.ci_tab_open, 'x')
    t.equal(code_of(ydb.require, 'x'), -150373858)
    ydb.init()
    ydb.init(print)
    ydb.init(ydb.block_M_signals)
    ydb.block_M_signals(true)
    t.equal(ydb.ydb_eintr_handler(), 0)
    t.fails('must be nil or a CFunction', ydb.init, 5)
  end)

  case('bad input raises and names the argument', function(t)
    local n = ydb.node('^v')
    for _, x in ipairs(strange) do
      for _, name in ipairs {'get', 'set', 'data', 'kill', 'delete_node', 'incr', 'lock_incr', 'lock_decr', 'node_next',
        'node_previous', 'subscript_next', 'subscript_previous', 'subscripts', 'dump', 'key'} do
        t.equal(pcall(ydb[name], x, 'v'), false, name)
        t.equal(pcall(ydb[name], x), false, name)
      end
      for _, f in ipairs {ydb.get, ydb.data, ydb.kill, ydb.node_next, ydb.subscript_next, ydb.node, n} do
        t.fails('string/number expected', f, f == n and 'a' or '^v', {'a', x})
        if x then t.equal(pcall(f, '^v', 'b', x), false) end
      end
      t.equal(pcall(ydb.set, '^v', {'a'}, x), false)
      if type(x) ~= 'table' then t.equal(pcall(ydb.incr, '^v', {'a'}, x), false) end
      t.equal(pcall(ydb.lock_incr, '^v', {'a'}, x), false)
      t.fails('string/number expected', function() return n[x] end)
      t.equal(pcall(function() n.__ = x end), false)
      t.equal(pcall(n.__settree, n, x == strange[3] and {x} or x), x == strange[3])
      for _, name in ipairs {'str2zwr', 'zwr2str', 'get_error_code', 'node', 'inherit'} do
        if not (name == 'inherit' and type(x) == 'function') then t.equal(pcall(ydb[name], x), false, name) end
      end
      for _, method in pairs(ydb._node) do
        if type(method) == 'function' and method ~= ydb._node.ismutable then pcall(method, x, x, x) end
      end
    end
    t.fails('got nil', ydb.get, '^v', nil)
    t.fails('got nil', ydb.get, '^v', {'a'}, nil, 'x')
    t.fails('32 would exceed maximum number of subscripts (31)', function()
      local deep = n
      for i = 1, 32 do deep = deep[i] end
    end)
    t.fails('maximum 31 number of subscripts exceeded (got 32)', function() ydb.node('^v', (table.unpack or unpack)(ordered, 1, 32)) end)
    local cyclic = {a = {}}
    cyclic.a.b = cyclic
    t.fails('contains itself', n.__settree, n, cyclic)
    t.equal(code_of(ydb.set, '^v', {('x'):rep(2000)}, 1), -150372986)
    t.equal(code_of(ydb.lock_incr, '^v', -1), -151027834)
    t.equal(code_of(ydb.lock_incr, '^v', 1e7), -151027834)
    t.equal(code_of(ydb.lock_incr, '^v', 0 / 0), -151027834)
  end)

  case('subscripts are ordered as in M', function(t)
    for _, name in ipairs {'l', '^g'} do
      for i = #ordered, 1, -1 do ydb.set(name, ordered[i], i) end
      ydb.set(name, '', 'null')
      local found = {}
      for sub in ydb.node(name):subscripts() do found[#found + 1] = sub end
      t.equal(found, ordered)
      found = {}
      for _, value in ydb.node(name):pairs(true) do found[#found + 1] = tonumber(value) end
      t.equal({#found, found[1], found[#found]}, {38, 38, 1})
      t.equal({ydb.node_next(name), ydb.node_next(name, '')[1], ydb.subscript_previous(name, ordered[1])}, {{''}, ordered[1]})
    end
  end)

  case('special variables', function(t, db)
    t.equal(ydb.get('$ZYRELEASE'):match '[A-Za-z]+ r([0-9]+[.][0-9]+)' ~= nil, true)
    t.equal({ydb.get '$TLEVEL', ydb.get '$tl', ydb.get '$TRESTART', ydb.get '$ZMAXTPTIME', ydb.get '$ZCHSET'}, {'0', '0', '0', '0', 'M'})
    t.equal(ydb.get('$HOROLOG'):match '^%d+,%d+$' ~= nil, true)
    t.equal(ydb.get('$ZHOROLOG'):match '^%d+,%d+,%d+,%-?%d+$' ~= nil, true)
    t.equal({#ydb.get '$ZUT', ydb.get('$JOB'):match '^%d+$' ~= nil}, {16, true})
    local days = tonumber(ydb.get('$H'):match '%d+')
    t.equal(math.abs(os.time() / 86400 + 47117 - days) < 2, true)
    t.equal(code_of(ydb.get, '$NOSUCH'), -150373074)
    t.equal(code_of(ydb.set, '$TEST', 1), -150373074)
    t.equal(code_of(ydb.set, '$JOB', 1), -150373770)
    t.equal(code_of(ydb.data, '$JOB'), -151028066)
    t.equal(code_of(ydb.get, '$JOB', 'a'), -151028082)
    t.equal(ydb.node('$X'):set(7), '7')
    t.equal({ydb.get '$X', ydb.node('$X').__}, {'7', '7'})
    code_of(ydb.get, '\128')
    t.equal(ydb.get('$ZSTATUS'):match '^(%d+),%(SimpleAPI%),%%YDB%-E%-(%u+)', '151027762')
    ydb.set('$ZMAXTPTIME', 5)
    t.equal(ydb.get '$ZMAXTPTIME', '5')
    ydb.set('$ZMAXTPTIME', 0)
    ydb.tp(function()
      ydb.tp(function() t.equal({ydb.get '$TLEVEL', ydb.get '$TRESTART'}, {'2', '0'}) end)
      t.fails('inside a transaction', ydb.set, '$ZGBLDIR', t.file .. '.2')
    end)
    ydb.set('^here', 1)
    ydb.set('local', 'stays')
    t.equal(ydb.get '$ZGBLDIR', t.path)
    ydb.set('$ZGBLDIR', t.file .. '.2')
    t.equal({ydb.get '$ZGBLDIR', ydb.get '^here', ydb.get 'local'}, {t.file .. '.2', nil, 'stays'})
    perilune.use():close()
    for _, ending in ipairs {'', '-shm', '-wal.1'} do os.remove(t.file .. '.2' .. ending) end
    perilune.use(db)
    t.equal(ydb.get '^here', '1')
  end)

  case('the native module sees the same', function(t, db)
    ydb.set('^v', 'a', 1, 5)
    ydb.set('^v', 'b', '5')
    t.equal({db.node('^v').a[1].__, db.node('^v').b.__}, {5, '5'})
    db.node('^v').c.__, db.node('^v').d.__, db.node('^v').e.__ = 1.5, true, 2 ^ 60
    t.equal({ydb.get('^v', 'c'), ydb.get('^v', 'd'), ydb.get('^v', 'e')}, {'1.5', 'true', '1152921504606846976'})
    ydb.tp(function()
      ydb.set('^v', 'x', 1)
      t.equal({db.node('^v').x.__, db:level()}, {1, 1})
    end)
    local runs = 0
    db:transaction(function()
      runs = runs + 1
      ydb.incr('^v', {'runs'})
      if runs == 1 then ydb.trestart() end
    end)
    t.equal({runs, ydb.get('^v', 'runs')}, {2, '1'})
    db:transaction(function(tx)
      ydb.set('^v', 'x', 2)
      tx:rollback()
    end)
    t.equal(ydb.get('^v', 'x'), '1')
  end)

  case('locks and transactions', function(t, db)
    local before, inside = ydb.node '^before', ydb.node '^inside'
    before:grab()
    ydb.tp(function()
      inside:grab()
      inside:grab()
      inside:release()
      before:grab()
      before:release()
      t.equal(code_of(before.__release, before), -150376074)
      t.equal(code_of(ydb.lock), -150376074)
    end)
    t.equal({db.node('^before'):lock_count(), db.node('^inside'):lock_count()}, {1, 1})
    t.equal(code_of(ydb.tp, function()
      inside:grab()
      inside.x:grab()
      return ydb.YDB_TP_ROLLBACK
    end), ydb.YDB_TP_ROLLBACK)
    t.equal({db.node('^inside'):lock_count(), db.node('^inside').x:lock_count()}, {1, 0})
    ydb.tp(function()
      ydb.tp(function() inside.x:grab() end)
      inside.x:release()
      pcall(ydb.tp, function() inside.y:grab() error 'x' end)
      t.equal(db.node('^inside').y:lock_count(), 0)
    end)
    ydb.lock()
    for _ = 1, 511 do before:grab() end
    t.equal(code_of(before.__grab, before), -150382818)
    ydb.lock()
    t.equal(code_of(ydb.lock_incr, '^v', {('s'):rep(256)}, 0), -150382618)
  end)

  case('a transaction cannot be left by yield, and times out', function(t)
    local good, message = coroutine.resume(coroutine.create(function() ydb.tp(function() coroutine.yield() end) end))
    t.equal({good, tostring(message):match 'coroutine.yield' or message}, {false, 'coroutine.yield'})
    t.equal(ydb.get '$TLEVEL', '0')
    local inner = coroutine.wrap(function() for i = 1, 3 do ydb.set('^v', i, i) coroutine.yield() end end)
    ydb.tp(function() inner() inner() end)
    t.equal({ydb.get('^v', 1), ydb.get('^v', 2), ydb.get('^v', 3)}, {'1', '2'})
    ydb.set('$ZMAXTPTIME', '.2')
    t.equal(code_of(ydb.tp, function() return ydb.YDB_TP_RESTART end), ydb.YDB_ERR_TPTIMEOUT)
    ydb.set('$ZMAXTPTIME', 0)
  end)

  case('what another session writes in between runs it again', function(t)
    local other = perilune.open(t.path)
    for _, nested in ipairs {false, true} do
      ydb.set('^v', 1)
      ydb.set('l', 0)
      local runs, restarts = 0, {}
      ydb.tp({'l'}, function()
        runs = runs + 1
        restarts[runs] = ydb.get '$TRESTART'
        local value = ydb.get '^v'
        ydb.incr('l')
        if runs == 1 then other.node('^v').__ = 10 end
        local function write() ydb.set('^v', value + 1) end
        if nested then pcall(ydb.tp, write) else write() end
      end)
      t.equal({runs, restarts[1], restarts[2], ydb.get '^v', ydb.get 'l'}, {2, '0', '1', '11', '1'})
      -- An error that came of such a state is not the caller's.
      runs = 0
      local good = pcall(ydb.tp, function()
        runs = runs + 1
        local value = ydb.get '^v'
        if runs == 1 then
          other.node('^v').__ = 20
          error('saw ' .. value)
        end
      end)
      t.equal({good, runs}, {true, 2})
    end
    other:close()
  end)

  case('loops see what they write', function(t)
    local n, seen = ydb.node '^v', {}
    for i = 1, 5 do n[i].__ = i end
    for child, value, sub in n:pairs() do
      seen[#seen + 1] = sub
      if sub == '2' then n[3]:kill() n['4.5'].__ = 1 end
      if value then child.copy.__ = value end
    end
    t.equal(seen, {'1', '2', '4', '4.5', '5'})
    t.equal({n[1].copy.__, n['4.5'].copy.__}, {'1', '1'})
  end)

  case('loops go on across transactions and databases', function(t, db)
    local n, seen = ydb.node '^v', {}
    for i = 1, 8 do n[i].__ = i end
    local step = n:pairs()
    local function go()
      local _, _, sub = step()
      seen[#seen + 1] = sub
    end
    go()
    ydb.tp(function() go() ydb.tp(go) go() n['4.5'].__ = 1 end)
    pcall(ydb.tp, function() n['4.7'].__ = 1 go() go() error 'x' end)
    perilune.use(perilune.open(t.file .. '.2'))
    ydb.set('^v', 6, 1)
    go()
    perilune.use():close()
    for _, ending in ipairs {'', '-shm', '-wal.1'} do os.remove(t.file .. '.2' .. ending) end
    perilune.use(db)
    go()
    go()
    go()
    t.equal(seen, {'1', '2', '3', '4', '4.5', '4.7', '6', '7', '8'})
    t.equal({step(), step()}, {})
    local again = n:subscripts(true)
    t.equal({again(), again()}, {'8', '7'})
    ydb.tp(function()
      for sub in n:subscripts() do
        pcall(ydb.tp, function() ydb.set('^v', sub, 'x', 1) error 'x' end)
      end
    end)
    t.equal({again(), ydb.data('^v', 1)}, {'6', 1})
    for _ = 1, 200 do
      for _ in n:pairs() do break end
    end
    collectgarbage()
  end)

  case('large local keys and values', function(t)
    local long = ('k'):rep(500000)
    local n = ydb.node('big', long, 'x')
    n.__ = ('v'):rep(900000)
    n.y.__ = 1
    t.equal({#n.__, #n:name(), #n:subsarray()[1], n.y.__}, {900000, 1, 500000, '1'})
    for child in ydb.node('big'):pairs() do t.equal(child:name() == long, true) end
    t.equal(ydb.node_next('big')[1] == long, true)
    t.equal(ydb.node('big'):gettree()[long].x.y, '1')
    n:kill()
    t.equal(ydb.data 'big', 0)
  end)

  case('garbage collection at any time', function(t)
    local n = ydb.node('^gc')
    for i = 1, 50 do
      n.a[i].b.__ = i
      collectgarbage()
      t.equal(n:gettree().a[tostring(i)].b, tostring(i))
      ydb.tp({'*'}, function() ydb.incr('^gc', 'sum', i) collectgarbage() end)
      for child in n.a:pairs() do
        collectgarbage()
        if child:name() == '3' then break end
      end
    end
    t.equal(n.sum.__, '1275')
  end)
end
