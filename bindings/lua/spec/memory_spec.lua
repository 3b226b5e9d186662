-- What nodes cost in memory: nothing where promised, nothing for ever, and the collector at any moment.

return function(spec)
  -- Bytes that `times` calls of `f` allocate: the least of some tries, since LuaJIT's compiler allocates, too,
  -- when it thinks fit.
  local function grown(f, times)
    local least = math.huge
    for _ = 1, 10 do f() end
    for _ = 1, 4 do
      collectgarbage()
      collectgarbage()
      collectgarbage 'stop'
      local before = collectgarbage 'count'
      for _ = 1, times do f() end
      least = math.min(least, (collectgarbage 'count' - before) * 1024)
      collectgarbage 'restart'
    end
    return least
  end

  spec('repeated dot notation with constant names allocates nothing', function(db, t)
    local r = db.node('^r')
    r.name.first.__ = 1
    local n = r.name
    -- Less than a small object in each of 5,000 rounds; LuaJIT's compiler uses some for itself.
    local compiler = rawget(_G, 'jit')
    local most = compiler and 60000 or 4000
    local function visits(what, f, limit)
      if compiler then compiler.flush() end
      local bytes = grown(f, 5000)
      t.equal(bytes < limit, true, what .. ' took bytes: ' .. bytes)
    end
    visits('names', function() return r.name.first end, most)
    visits('a value', function() return r.name.first.__ end, most)
    visits('eight names', function() return db.node('^r').a.b.c.d.e.f.g.h end, most)
    visits('methods', function() return n:get(), n:data(), n:incr(1) end, most * 10)
    visits('a write', function() n.x.__ = 5 end, most)
  end)

  spec('a child with an integer of a name allocates nothing', function(db, t)
    local step = db.node('^step')
    local compiler = rawget(_G, 'jit')
    if compiler then compiler.flush() end
    local function visit()
      local x
      for i = 1, 10000 do x = step[i].__ end
      return x
    end
    local function method()
      local x
      for i = 1, 10000 do x = step[i]:get() end
      return x
    end
    -- LuaJIT's compiler needs a moment, and some memory for what it compiles.
    for _, f in ipairs {visit, method} do
      local bytes = grown(f, 3)
      t.equal(bytes < (compiler and 100000 or 4000), true, 'bytes: ' .. bytes)
    end
  end)

  spec('nodes of many names leave nothing behind', function(db, t)
    local r = db.node('^r')
    local function round()
      for i = 1, 3000 do
        local x = r['k' .. i].deep[i].__
        x = r[i]['k' .. i]:get(x)
      end
      collectgarbage()
      collectgarbage()
    end
    round()
    round()
    local before = collectgarbage 'count'
    for _ = 1, 5 do round() end
    local after = collectgarbage 'count'
    t.equal(after - before < 100, true, (after - before) .. ' KiB more')
  end)

  spec('a held node is never another one', function(db, t)
    -- D1 of lua-yottadb: children of a parent made again wrote over the subscripts of others.
    local r = db.node('^r')
    local balance = r.balance.usd
    local again = r.balance
    local history = again.history
    local _ = again:name()
    balance.__ = 999
    t.equal(tostring(balance), '^r("balance","usd")')
    t.equal(history.__, nil)
    t.equal(r:gettree(), {balance = {usd = 999}})
    local kept = {}
    for round = 1, 3 do
      for i = 1, 2000 do
        local key = 'k' .. (i * 7 + round) % 2000
        kept[key] = kept[key] or {}
        table.insert(kept[key], r[key].x)
        table.insert(kept[key], r[i].y)
        kept[key][2] = r[key].x
        if i % 500 == 0 then collectgarbage() end
      end
    end
    for key, nodes in pairs(kept) do
      t.equal(tostring(nodes[1]), '^r("' .. key .. '","x")')
      t.equal(nodes[1], nodes[2])
    end
  end)

  spec('the collector at every step', function(db, t)
    local n = db.node('^g')
    local monitored, class, super = t.perilune.inherit(db.node)
    function class:get(d) collectgarbage() return super.get(self, d) end
    local m = monitored('^g')
    local old = pcall(collectgarbage, 'setpause', 0) -- Lua 5.5 has other names for it
    if old then collectgarbage('setstepmul', 100000) end
    for i = 1, 60 do
      collectgarbage()
      n[i].a['b' .. i].__ = 'v' .. i
      collectgarbage()
      t.equal(m[i].a['b' .. i].__, 'v' .. i)
      t.equal(m[i].a['b' .. i]:get(), 'v' .. i)
      collectgarbage()
      t.equal(tostring(n[i].a), '^g(' .. i .. ',"a")')
      n.tree:settree {i, {x = 'y' .. i}, [('k'):rep(i)] = {}}
      collectgarbage()
      t.equal(n.tree:gettree(nil, function(_, _, v) collectgarbage() return v end)[1], i)
      n.j:fromjson('{"a' .. i .. '":["\\u0041",{"b":' .. i .. '}]}')
      t.equal(n.j:tojson(), '{"a' .. i .. '":["A",{"b":' .. i .. '}]}')
      for child, value in n[i].a:children() do
        collectgarbage()
        t.equal(child.__, value)
      end
      db:transaction(function(tx) collectgarbage() n.t.__ = i pcall(function() n.t.__ = {} end) if i % 2 == 0 then tx:rollback(i) end end)
      pcall(n.incr, n, 'x' .. i)
      db:get_many {n[i].a, n.tree, n[i]}
      db:lock {n[i], n.a}
      db:lock()
    end
    if old then
      collectgarbage('setpause', 200)
      collectgarbage('setstepmul', 200)
    end
    t.equal(n:count(), 63)
  end)

  -- What every public function does, with good arguments: name -> function.
  local function everything(db, t)
    local perilune, n, i = t.perilune, db.node('^e'), 0
    local class = getmetatable(n)
    local monitored = perilune.inherit(db.node)
    local other = db.node('^f')
    local all = {}
    -- Methods: what they are called with, if with anything.
    local arguments = {get = {5}, set = {'text of a value'}, incr = {0.5}, cas = {nil, 'x'}, subscript = {1}, parent = {0},
      contains = {n.x}, copy = {other.copy_of}, merge = {other.merged}, count = {'nodes'},
      settree = {{1, 'b', x = {y = 'z'}}, function(_, k, v) return k, v end},
      gettree = {function(_, _, v, recurse) return v, recurse end}, fromjson = {'{"a":[1,"x",null,{}],"b":1.5e3}'}, dump = {5}, grab = {0},
      lock = {0}, lock_incr = {0}, wait = {0}, watch = {'subtree'}, next = {'a'}, previous = {'z'}, ipairs = {1, 2},
      pairs = {{from = 'a', reverse = true}}}
    for name, method in pairs(class) do
      if type(method) == 'function' and not name:find '^__' and name ~= 'incr' and not name:find 'piece$' then
        local given = arguments[name] or {}
        all['node:' .. name] = function()
          i = i + 1
          local target = ({n, n.x, n[5], n['k' .. i % 50]})[i % 4 + 1]
          local results = {method(target, given[1], given[2])}
          if type(results[1]) == 'function' then
            local left = 3
            for _ in results[1], results[2], results[3] do
              left = left - 1
              if left == 0 then break end
            end
          end
          if name == 'grab' or name == 'lock_incr' then target:release() end
        end
      end
    end
    -- Only strings have pieces.
    all['node:getpiece'] = function() return db.node('^pieces').x:getpiece(2, -2) end
    all['node:setpiece'] = function() return db.node('^pieces').x:setpiece(1, 'piece') end
    all['node:incr'] = function() db.node('^i').x:incr(1) db.node('^i')[1]:incr(0.5) end
    all.index = function() i = i + 1 return n[i % 90]['k' .. i % 70].x.__, n[i % 90].__, n.x.y.z, n('a', i % 9) end
    all.assign = function() i = i + 1 n['k' .. i % 70].__ = 'v' .. i % 9 n[i % 20].__ = i end
    all.operators = function() return n[1] == n[2], n.a < n.b, n[2] <= n[1], tostring(n.a[1]), tostring(n[1]) end
    all['db.node'] = function() return db.node('^e', 1, 'x', {2, 'y'}), db.node(n.x, 'z') end
    all['db:get'] = function()
      db:set(n, 'q', 1, 'text')
      db:incr('^i', 'q', 1)
      return db:get(n, 'q', 1), db:get('^e', 'q'), db:data(n, 'q')
    end
    all['db:get_many'] = function() db:set_many({n.a, n[1], n.c}, {'x', nil, 5}) return db:get_many {n.a, n[1], n.c} end
    all['db:set_each'] = function() db:set_each({n.a, n[1], n.c}, {'x', 2.5, 5}) end
    all['db:transaction'] = function()
      db:transaction(function(tx)
        n.t.__ = tx:level()
        db:transaction({timeout = 5}, function(inner) n.u.__ = inner:restarts() inner:rollback {1} end)
        if tx:restarts() == 0 then tx:restart() end
      end)
    end
    all['an error in a transaction'] = function() pcall(db.transaction, db, function() n.t.__ = 1 error {} end) end
    all['perilune.transaction'] = function() return perilune.transaction('batch', function(a) n.t.__ = a return a end)('x') end
    all['perilune.rollback'] = function() perilune.transaction(function() perilune.rollback(5) end)() end
    all['perilune.restart'] = function()
      local again = true
      perilune.transaction(function() if again then again = false perilune.restart() end end)()
    end
    all['db:lock'] = function() db:lock({n.a, n[1]}, 0) perilune.lock() end
    all['db:names'] = function() for _ in db:names() do end for _ in db:names(true) do end end
    all['db:post'] = function() local k = db:post('c', 'message') db:follow('c', k - 1, 0) db:receive('c', 0) end
    all['db:stat'] = function() return db:stat(), db:path(), tostring(db), perilune.use() end
    all['db:verify'] = function() i = i + 1 if i % 16 == 0 then t.equal(db:verify(), true) end end
    all.watch = function()
      local w = n:watch 'node'
      n.__ = i
      w:wait(0)
      w:descriptor()
      w:close()
    end
    all.inherit = function() i = i + 1 return monitored('^e')[i % 9].x.__, monitored('^e'):get() end
    all.module = function()
      return perilune.isnode(n), perilune.is_error(n), perilune.compare(n.a, n[1]), perilune.list {}, perilune.node('^e', i % 7)
    end
    all['perilune.open'] = function()
      i = i + 1
      if i % 16 == 0 then
        local opened = perilune.open(t.file .. '.gc', {max_size = 2 ^ 30})
        opened.node('^x')[1].y.__ = i
        opened:close()
      end
    end
    all.errors = function()
      for _, bad in ipairs {{}, print, 0 / 0, false} do
        pcall(n.incr, n, bad)
        pcall(n.settree, n, {[true] = bad})
        pcall(n.fromjson, n, '{"a":[')
        pcall(db.get, db, bad)
        pcall(perilune.open, bad)
        pcall(function() return n[bad] end)
      end
    end
    return all
  end

  spec('nothing that any function does is left behind', function(db, t)
    local all = everything(db, t)
    local function size()
      for _ = 1, 4 do collectgarbage() end
      return collectgarbage 'count' * 1024
    end
    local compiler = rawget(_G, 'jit')
    if compiler then compiler.off() compiler.flush() end
    for name, f in pairs(all) do
      for _ = 1, 200 do f() end
      local least = math.huge
      -- Caches and the tables that they lie in grow at times; a leak, each time.
      for _ = 1, 12 do
        local before = size()
        for _ = 1, 200 do f() end
        least = math.min(least, size() - before)
        if least < 200 * 16 then break end
      end
      -- The smallest object of any Lua has 16 bytes.
      t.equal(least < 200 * 16, true, name .. ' leaves ' .. least .. ' bytes behind in 200 calls')
    end
    if compiler then compiler.on() end
    os.remove(t.file .. '.gc')
  end)

  spec('a full collection at every step of every function', function(db, t)
    local all = everything(db, t)
    local compiler = rawget(_G, 'jit')
    if compiler then compiler.off() compiler.flush() end
    local steps = 0
    local function collect()
      steps = steps + 1
      collectgarbage()
    end
    for name, f in pairs(all) do
      debug.sethook(collect, '', 1)
      local good, e = pcall(function() f() f() f() end)
      debug.sethook()
      t.equal(good or name .. ': ' .. tostring(e), true)
    end
    if compiler then compiler.on() end
    t.equal(steps > 500, true)
    t.equal(db:verify(), true)
    os.remove(t.file .. '.gc')
  end)

  spec('loops that are left early give back their cursors', function(db, t)
    local n = db.node('^c')
    for i = 1, 10 do n[i].__ = i end
    for i = 1, 5000 do
      for _ in n:children() do break end
      for _ in n:pairs() do break end
      if i % 100 == 0 then collectgarbage() end
    end
    t.equal(n:count(), 10)
  end)

  spec('databases, classes and watches are collected', function(_, t)
    for i = 1, 20 do
      local other = t.perilune.open(t.file .. '.gc')
      other.node('^x').y.__ = i
      local w = other.node('^x'):watch()
      t.equal(w:wait(0), false)
      if i % 2 == 0 then other:close() end
    end
    collectgarbage()
    collectgarbage()
    os.remove(t.file .. '.gc')
  end)
end
