-- Finalizers and debug hooks that use the same database come between a call and its result: it stays what was read.

return function(spec)
  local LENGTHS = {3, 20, 100, 5000, 20000}

  -- Calls `f` again and again as a finalizer, until it is stopped.
  local function finalizing(f)
    local stopped, count = false, 0
    local function make()
      local function finalizer()
        if stopped then return end
        count = count + 1
        f()
        make()
      end
      local newproxy = rawget(_G, 'newproxy')
      if newproxy then
        getmetatable(newproxy(true)).__gc = finalizer
      else
        setmetatable({}, {__gc = finalizer})
      end
    end
    for _ = 1, 10 do make() end
    return function() stopped = true return count end
  end

  -- Reads in every way there is, and compares with what was stored.
  local function read_all(db, t, length)
    local n = db.node('^n')
    local a, b, c = ('a'):rep(length), ('b'):rep(length), ('c'):rep(length)
    t.equal(n.a.__, a)
    t.equal(n.a:get(), a)
    t.equal(n[1].__, a)
    t.equal(n[1]:get(), a)
    t.equal(n[2].__, 1234567)
    t.equal(n[3].__, 0.1)
    t.equal(db:get(n, 'b'), b)
    t.equal(db:get_many {n.a, n.b, n.c, n[2]}, {a, b, c, 1234567})
    t.equal({n.texts:next()}, {a, 1})
    t.equal({n.texts:next(a)}, {b, 2})
    t.equal({n.texts:previous()}, {c, 3})
    local found = {}
    for k, v in n.texts:pairs() do found[#found + 1] = k .. v end
    for node, v, k in n.texts:children() do found[#found + 1] = node:name() .. k .. v end
    for node, v in n.texts:nodes() do found[#found + 1] = node:name() .. v end
    for k in n.texts:subscripts() do found[#found + 1] = k end
    t.equal(found, {a .. 1, b .. 2, c .. 3, a .. a .. 1, b .. b .. 2, c .. c .. 3, a .. 1, b .. 2, c .. 3, a, b, c})
    t.equal(n.texts:gettree(), {[a] = 1, [b] = 2, [c] = 3})
    t.equal(n.list:gettree(), {a, b, c})
    t.equal(n.list:tojson(), '["' .. a .. '","' .. b .. '","' .. c .. '"]')
    t.equal(tostring(n.texts[a]), '^n("texts","' .. a .. '")')
    t.equal(n.texts[a]:name(), a)
    t.equal(n.list[1]:cas(a, a), true)
  end

  -- All of it with `disturb` called at any moment.
  local function disturbed(db, t, around)
    local n = db.node('^n')
    local compiler = rawget(_G, 'jit')
    if compiler then compiler.off() compiler.flush() end
    local good, e = true, nil
    for _, length in ipairs(LENGTHS) do
      -- Keys have 1,900 bytes.
      local key = math.min(length, 1500)
      local function text(letter) return letter:rep(length) end
      n:kill()
      n.a.__, n.b.__, n.c.__, n[1].__, n[2].__, n[3].__ = text 'a', text 'b', text 'c', text 'a', 1234567, 0.1
      n.list:settree {text 'a', text 'b', text 'c'}
      for i, letter in ipairs {'a', 'b', 'c'} do n.texts[letter:rep(key)].__ = i end
      n.other.__, n[9].__, n.other[('z'):rep(key)].__ = ('?'):rep(length + 50), ('!'):rep(length + 50), 0.7
      local other = n.other
      local function disturb()
        local _ = other.__, n[9].__, other:next(), db:get_many {other, n[9]}, other:gettree(), n[9]:get()
        _ = other:tojson(), tostring(other), other[('z'):rep(key)]:name()
        n[8].__ = 'disturbed'
        for _ in other:pairs() do end
      end
      if length == key then
        good, e = around(disturb, function() read_all(db, t, length) end)
      else
        good, e = around(disturb, function()
          t.equal({n.a.__, n[1].__, n.b:get(), n[1]:get()}, {text 'a', text 'a', text 'b', text 'a'})
          t.equal(db:get_many {n.a, n.b, n[1]}, {text 'a', text 'b', text 'a'})
          t.equal(n.list:gettree(), {text 'a', text 'b', text 'c'})
        end)
      end
      if not good then break end
    end
    if compiler then compiler.on() end
    t.equal(good or e, true)
  end

  spec('finalizers between a call and its result', function(db, t)
    local tried = 0
    disturbed(db, t, function(disturb, work)
      local stop = finalizing(disturb)
      local old = pcall(collectgarbage, 'setpause', 0) -- Lua 5.5 has other names for it
      if old then collectgarbage('setstepmul', 10000) end
      local good, e = pcall(function() for _ = 1, 30 do work() end end)
      if old then
        collectgarbage('setpause', 200)
        collectgarbage('setstepmul', 200)
      end
      collectgarbage()
      tried = tried + stop()
      return good, e
    end)
    t.equal(tried > 20, true, tried .. ' finalizers ran')
    collectgarbage()
  end)

  spec('debug hooks between a call and its result', function(db, t)
    local tried, kept = 0, {debug.gethook()}
    disturbed(db, t, function(disturb, work)
      debug.sethook(function()
        tried = tried + 1
        disturb()
      end, '', 1)
      local good, e = pcall(work)
      debug.sethook()
      return good, e
    end)
    if kept[1] then debug.sethook(kept[1], kept[2], kept[3]) end
    t.equal(tried > 1000, true, tried .. ' hooks ran')
  end)

  spec('a loop that a finalizer goes on with', function(db, t)
    local n = db.node('^n')
    for i = 1, 50 do n[('k'):rep(100) .. i].__ = ('v'):rep(100) .. i end
    for _, way in ipairs {'pairs', 'children'} do
      local step, walk = n[way](n)
      local refused = 0
      local stop = finalizing(function()
        local good, e = pcall(step, walk)
        if not good then
          refused = refused + 1
          t.equal(tostring(e):find('interrupted', 1, true) ~= nil, true)
        end
      end)
      for _ = 1, 60 do
        local good, a, b = pcall(step, walk)
        t.equal(good, true)
        if way == 'pairs' and a then t.equal(b, (a:gsub('k', 'v'))) end
      end
      stop()
    end
    collectgarbage()
  end)
end
