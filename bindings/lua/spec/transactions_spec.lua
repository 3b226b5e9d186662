-- Transactions in both forms, nesting, rollback, restart, errors, coroutines.

return function(spec)
  spec('commits and returns what the function returns', function(db, t)
    local n = db.node('^t')
    local function f(tx, a, b)
      n.x.__ = a
      t.equal(n.x.__, a)
      t.equal(tx:level(), 1)
      return a, nil, b, nil
    end
    t.equal(select('#', db:transaction(f, 1, 2)), 4)
    t.equal({db:transaction(f, 1, 2)}, {1, nil, 2, nil})
    t.equal(n.x.__, 1)
    t.equal(db:level(), 0)
    t.equal(db:transaction({durability = 'none', timeout = 5}, f, 7), 7)
    t.equal(db:transaction('batch', f, 8), 8)
  end)

  -- The first try is a cheap one, which holds a few writes, no levels and no locks.
  spec('a function that outgrows the first try is not run again for that', function(db, t)
    local n, runs = db.node('^t'), 0
    n.few.__ = 0
    db:transaction(function(tx)
      runs = runs + 1
      t.equal(n.few.__, 0)
      for i = 1, 100 do n.many[i].__ = i end
      tx:transaction(function() n.few:incr() end)
      t.equal(n.few:grab(0), true)
      n.few:release()
      t.equal(n.few.__, 1)
    end)
    t.equal({runs, n.few.__, n.many[100].__, n.many:count()}, {1, 1, 100, 100})
  end)

  spec('the form of lua-yottadb returns a function', function(db, t)
    local n = db.node('^t')
    local f = t.perilune.transaction('batch', function(a) n.x.__ = a return a end)
    t.equal(n.x.__, nil)
    t.equal(f(5), 5)
    t.equal(n.x.__, 5)
    t.equal(t.perilune.transaction(function(...) return ... end)(1, nil, 3), 1)
    local g = t.perilune.transaction(function() n.x.__ = 6 t.perilune.rollback('back') end)
    t.equal(g(), 'back')
    t.equal(n.x.__, 5)
  end)

  spec('rollback gives its value and writes nothing', function(db, t)
    local n = db.node('^t')
    n.__ = 1
    t.equal(db:transaction(function(tx) n.__ = 2 tx:rollback('value') end), 'value')
    t.equal(n.__, 1)
    t.equal(db:transaction(function(tx) n.__ = 2 tx:rollback() end), nil)
    -- A pcall in the function cannot swallow it.
    t.equal(db:transaction(function(tx)
      n.__ = 3
      pcall(tx.rollback, tx, 'kept')
      t.equal(pcall(function() n.__ = 4 end), false)
      return 'lost'
    end), 'kept')
    t.equal(n.__, 1)
  end)

  spec('errors are raised unchanged and nothing is written', function(db, t)
    local n = db.node('^t')
    local object = setmetatable({}, {__tostring = function() return 'object' end})
    local good, found = pcall(db.transaction, db, function() n.__ = 1 error(object) end)
    t.equal({good, rawequal(found, object)}, {false, true})
    t.equal(select(2, pcall(db.transaction, db, function() error() end)), select(2, pcall(error)))
    t.equal(select(2, pcall(db.transaction, db, function() error('text', 0) end)), 'text')
    t.equal(select(2, pcall(db.transaction, db, function() error(false) end)), false)
    t.equal(n.__, nil)
    t.equal(db:level(), 0)
    n.__ = 2
    t.equal(n.__, 2)
  end)

  spec('a nested level rolls back alone', function(db, t)
    local n = db.node('^t')
    db:transaction(function(tx)
      n.a.__ = 1
      t.equal(tx:transaction(function(inner)
        n.b.__ = 2
        t.equal(inner:level(), 2)
        inner:rollback('inner')
      end), 'inner')
      t.equal(n.b.__, nil)
      t.equal(pcall(db.transaction, db, function() n.c.__ = 3 error('x') end), false)
      db:transaction(function() n.d.__ = 4 end)
    end)
    t.equal(n:gettree(), {a = 1, d = 4})
    t.equal(pcall(db.transaction, db, function()
      db:transaction(function() n.e.__ = 5 end)
      error('outer')
    end), false)
    t.equal(n.e.__, nil)
  end)

  spec('restart runs the outermost level again', function(db, t)
    local n = db.node('^t')
    local runs = 0
    t.equal(db:transaction(function(tx)
      runs = runs + 1
      n.__ = runs
      t.equal(tx:restarts(), runs - 1)
      if runs < 4 then tx:restart() end
      return runs
    end), 4)
    t.equal(n.__, 4)
    -- From a nested level, and when the outer function catches the error (D8, D17).
    local outer, inner, after = 0, 0, 0
    db:transaction(function(tx)
      outer = outer + 1
      n.outer.__ = outer
      pcall(tx.transaction, tx, function(deep)
        inner = inner + 1
        if inner < 3 then deep:restart() end
      end)
      if pcall(function() n.after.__ = outer end) then after = after + 1 end
    end)
    t.equal({outer, inner, after}, {3, 3, 1})
    t.equal({n.outer.__, n.after.__}, {3, 3})
  end)

  spec('no call gets past the time limit', function(db, t)
    local n = db.node('^t')
    for _, f in ipairs {function() n.x.__ = 7 end, function() n[7].__ = 7 end, function() n.x.__ = 'text' end, function() return n.x.__ end,
      function() return n[5].__ end, function() return n.x:get() end, function() n.x:incr() end, function() return n.x:data() end} do
      local e = t.fails('time limit', db.transaction, db, {timeout = 0.02}, function()
        local begun, good = os.clock(), true
        while good and os.clock() - begun < 10 do good = pcall(f) end
        for _ = 1, 100 do t.equal(pcall(f), false) end
        f()
      end)
      t.equal({e.code, db:level(), n:data()}, {'TRANSACTION_TIMEOUT', 0, 0})
    end
  end)

  spec('what never runs alone fails instead', function(db, t)
    local runs = 0
    local e = t.fails('', db.transaction, db, {exclusive = 'never'}, function(tx) runs = runs + 1 tx:restart() end)
    t.equal({e.code, runs, db:level()}, {'CONFLICT', 3, 0})
    t.equal(db:transaction({exclusive = 'never'}, function() return 7 end), 7)
    t.fails('exclusive', db.transaction, db, {exclusive = 'x'}, print)
    t.fails('exclusive', db.transaction, db, {exclusive = 1}, print)
    t.equal(db:transaction({exclusive = false}, function() return 8 end), 8)
  end)

  spec('a restart without an end meets the time limit', function(db, t)
    local e = t.fails('', db.transaction, db, {timeout = 0.05}, function(tx) tx:restart() end)
    t.equal(e.code, 'TRANSACTION_TIMEOUT')
    t.equal(db:level(), 0)
    db.node('^t').__ = 1
    t.equal(db:transaction(function() return db.node('^t').__ end), 1)
  end)

  spec('read_only refuses writes', function(db, t)
    local n = db.node('^t')
    n.__ = 1
    t.equal(db:transaction({read_only = true}, function() return n.__ end), 1)
    local e = t.fails('', db.transaction, db, {read_only = true}, function() n.__ = 2 end)
    t.equal(e.code, 'READ_ONLY')
    t.equal(n.__, 1)
  end)

  spec('yielding out of a transaction is a clear error', function(db, t)
    local co = coroutine.wrap(function()
      return pcall(db.transaction, db, function() db.node('^t').__ = 1 coroutine.yield() end)
    end)
    local good, e = co()
    t.equal(good, false)
    t.equal(tostring(e):find('coroutine.yield', 1, true) ~= nil, true)
    t.equal(db:level(), 0)
    t.equal(db.node('^t').__, nil)
    -- Other coroutines may run inside.
    local step = coroutine.wrap(function() for i = 1, 3 do db.node('^t')[i].__ = i coroutine.yield(i) end end)
    db:transaction(function() step() step() end)
    t.equal(db.node('^t'):gettree(), {1, 2})
    step()
    t.equal(db.node('^t'):gettree(), {1, 2, 3})
  end)

  spec('deep nesting, up to the limit', function(db, t)
    local n = db.node('^t')
    local function go(level)
      n[level].__ = level
      if level < 60 then db:transaction(function() go(level + 1) end) end
    end
    db:transaction(function() go(1) end)
    t.equal(n:count(), 60)
    local function forever() db:transaction(forever) end
    t.equal(pcall(forever), false)
    t.equal(db:level(), 0)
  end)

  spec('bad arguments', function(db, t)
    t.fails('function', db.transaction, db)
    t.fails('function', db.transaction, db, 5)
    t.fails('function', db.transaction, db, {}, 5)
    t.fails('durability', db.transaction, db, {durability = 'x'}, print)
    t.fails('timeout', db.transaction, db, {timeout = 'x'}, print)
    t.fails('timeout', db.transaction, db, {timeout = -1}, print)
    t.fails('unknown option', db.transaction, db, {foo = 1}, print)
    t.fails('no transaction', db.rollback, db)
    t.fails('no transaction', db.restart, db)
    t.fails('no transaction', t.perilune.restart)
    t.fails('function', t.perilune.transaction)
    t.fails('id', t.perilune.transaction, 5, print)
    t.fails('database', db.transaction, 5, print)
    t.fails('inside a transaction', db.transaction, db, function() db:close() end)
  end)

  spec('settree and fromjson join an open transaction', function(db, t)
    local n = db.node('^t')
    db:transaction(function(tx)
      n:settree {1, 2}
      n.j:fromjson '[3]'
      tx:rollback()
    end)
    t.equal(n:data(), 0)
  end)
end
