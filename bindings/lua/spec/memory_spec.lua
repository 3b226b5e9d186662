-- What nodes cost in memory: nothing where promised, nothing for ever, and the collector at any moment.

return function(spec)
  local function grown(f, times)
    for _ = 1, 10 do f() end
    collectgarbage()
    collectgarbage()
    collectgarbage 'stop'
    local before = collectgarbage 'count'
    for _ = 1, times do f() end
    local after = collectgarbage 'count'
    collectgarbage 'restart'
    return (after - before) * 1024
  end

  spec('repeated dot notation with constant names allocates nothing', function(db, t)
    local r = db.node('^r')
    r.name.first.__ = 1
    local n = r.name
    -- Less than a small object in each of 5,000 rounds; LuaJIT's compiler uses some for itself.
    local most = rawget(_G, 'jit') and 60000 or 4000
    t.equal(grown(function() return r.name.first end, 5000) < most, true)
    t.equal(grown(function() return r.name.first.__ end, 5000) < most, true)
    t.equal(grown(function() return db.node('^r').a.b.c.d.e.f.g.h end, 5000) < most, true)
    t.equal(grown(function() return n:get(), n:data(), n:incr(1) end, 5000) < most * 10, true)
    t.equal(grown(function() n.x.__ = 5 end, 5000) < most, true)
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
      local other = t.perilune.open(t.path .. '.gc')
      other.node('^x').y.__ = i
      local w = other.node('^x'):watch()
      t.equal(w:wait(0), false)
      if i % 2 == 0 then other:close() end
    end
    collectgarbage()
    collectgarbage()
    os.remove(t.path .. '.gc')
  end)
end
