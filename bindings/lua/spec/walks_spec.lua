-- Going through the tree in order, in ranges, both ways.

local function list(iterator, ...)
  local found = {}
  for a in iterator, ... do found[#found + 1] = a end
  return found
end

return function(spec)
  local function fill(db)
    local n = db.node('^w')
    for _, s in ipairs {3, 1, 20, -5, 1.5, 'b', 'a', 'A', ''} do n[s].__ = 'v' .. tostring(s) end
    n.tree.x.y.__ = 1
    return n
  end

  spec('subscripts in order, both ways', function(db, t)
    local n = fill(db)
    local all = {'', -5, 1, 1.5, 3, 20, 'A', 'a', 'b', 'tree'}
    t.equal(list(n:subscripts()), all)
    local back = {}
    for i = #all, 1, -1 do back[#back + 1] = all[i] end
    t.equal(list(n:subscripts(true)), back)
    t.equal(list(n:subscripts {reverse = true}), back)
    t.equal(list(n[99]:subscripts()), {})
    t.integer(list(n:subscripts())[3])
  end)

  spec('ranges', function(db, t)
    local n = fill(db)
    t.equal(list(n:subscripts {from = 1, to = 'A'}), {1, 1.5, 3, 20, 'A'})
    t.equal(list(n:subscripts {after = 1, before = 'A'}), {1.5, 3, 20})
    t.equal(list(n:subscripts {from = 2}), {3, 20, 'A', 'a', 'b', 'tree'})
    t.equal(list(n:subscripts {to = 2}), {'', -5, 1, 1.5})
    t.equal(list(n:subscripts {from = 'a', to = 3, reverse = true}), {'a', 'A', 20, 3})
    t.equal(list(n:subscripts {after = 'a', before = 3, reverse = true}), {'A', 20})
    t.equal(list(n:subscripts {from = 'x', to = 'y'}), {})
    t.fails('unknown option', n.subscripts, n, {form = 1})
    t.fails('from or after, not both', n.subscripts, n, {from = 1, after = 2})
    t.fails('to or before, not both', n.pairs, n, {to = 1, before = 2})
    t.fails('a subscript must be', n.subscripts, n, {from = {}})
    t.fails('reverse', n.subscripts, n, 5)
  end)

  spec('pairs gives subscript and value, nil where there is only a tree', function(db, t)
    local n = fill(db)
    local found = {}
    for s, v in n:pairs() do found[#found + 1] = tostring(s) .. '=' .. tostring(v) end
    t.equal(table.concat(found, ' '), '=v -5=v-5 1=v1 1.5=v1.5 3=v3 20=v20 A=vA a=va b=vb tree=nil')
    local count = 0
    for _ in n:pairs {from = 3, to = 'a'} do count = count + 1 end
    t.equal(count, 4)
    if (pcall(function() for _ in pairs(n) do break end end)) then
      local again = {}
      for s, v in pairs(n) do again[#again + 1] = tostring(s) .. '=' .. tostring(v) end
      t.equal(again, found)
    end
  end)

  spec('ipairs', function(db, t)
    local n = db.node('^w')
    n:settree {'a', 'b', 'c', [5] = 'e', x = 1}
    local function items(...)
      local found = {}
      for i, v in n:ipairs(...) do found[#found + 1] = i .. v end
      return table.concat(found, ' ')
    end
    t.equal(items(), '1a 2b 3c')
    t.equal(items(2), '2b 3c')
    t.equal(items(1, 2), '1a 2b')
    t.equal(items(3, 1), '3c 2b 1a')
    t.equal(items(4), '')
    t.equal(items(5), '5e')
    t.fails('integers', n.ipairs, n, 'x')
  end)

  spec('children are new nodes', function(db, t)
    local n = db.node('^w')
    for i = 1, 100 do n[i].__ = i * i n.s['k' .. i].__ = i end
    local kept = {}
    for child, value, subscript in n:children() do
      if type(subscript) == 'number' then
        t.equal(child.__, value)
        kept[subscript] = child
      end
    end
    for i = 1, 100 do t.equal(kept[i], n[i]) end
    local strings = {}
    for child, value, subscript in n.s:children(true) do strings[subscript] = {child, value} end
    for i = 1, 100 do
      t.equal(strings['k' .. i][1], n.s['k' .. i])
      t.equal(strings['k' .. i][2], i)
    end
  end)

  spec('nodes goes depth first, the node itself included', function(db, t)
    local n = db.node('^w')
    n:settree {__ = 0, {__ = 1, 11, 12}, 2, x = {y = {z = 3}}}
    local found = {}
    for node, value in n:nodes() do found[#found + 1] = tostring(node) .. '=' .. value end
    t.equal(found, {'^w=0', '^w(1)=1', '^w(1,1)=11', '^w(1,2)=12', '^w(2)=2', '^w("x","y","z")=3'})
    local back = {}
    for node, value in n:nodes(true) do table.insert(back, 1, tostring(node) .. '=' .. value) end
    t.equal(back, found)
  end)

  spec('next and previous, as Lua\'s next', function(db, t)
    local n = fill(db)
    local s, v = n:next(1)
    t.equal({s, v}, {1.5, 'v1.5'})
    t.equal((n:next(2)), 3)
    t.equal((n:next('b')), 'tree')
    t.equal(n:next('tree'), nil)
    t.equal((n:next()), '')
    t.equal((n:previous()), 'tree')
    t.equal((n:previous(1)), -5)
    t.equal(n:previous(''), nil)
    t.equal((n[77]:next()), nil)
  end)

  spec('a loop sees what it writes ahead and misses what it deletes', function(db, t)
    local n = db.node('^w')
    for i = 1, 10 do n[i].__ = i end
    local seen = {}
    for s in n:subscripts() do
      seen[#seen + 1] = s
      if s == 3 then n[4].__ = nil n[5.5].__ = 1 end
    end
    t.equal(seen, {1, 2, 3, 5, 5.5, 6, 7, 8, 9, 10})
  end)

  spec('loops in loops, left early, in coroutines', function(db, t)
    local n = db.node('^w')
    for i = 1, 20 do for j = 1, 5 do n[i][j].__ = i * j end end
    local sum = 0
    for i in n:subscripts() do
      for _, v in n[i]:pairs() do
        sum = sum + v
        if v == 30 then break end
      end
    end
    t.equal(sum > 0, true)
    local walk = coroutine.wrap(function()
      for i in n:subscripts() do coroutine.yield(i) end
    end)
    for i = 1, 20 do t.equal(walk(), i) end
    for _ = 1, 300 do
      for _ in n:subscripts() do break end
    end
  end)

  -- Often enough for LuaJIT to compile the loops.
  spec('a loop over values of every type, in hot loops', function(db, t)
    local n = db.node('^w')
    local null = require 'perilune'.null
    local types = {7, -0.5, 'text', '', true, false, null, 'a\0b', 2 ^ 40}
    for i = 1, 900 do n[i].__ = types[i % 9 + 1] end
    n[450].__ = nil
    n[450].below.__ = 1
    n[451].__ = 2 ^ 53
    n[451]:incr(1)
    local great = n[451].__
    for i = 1, 90 do
      n[i + 0.5].__ = i
      n['k' .. i].__ = i
    end
    for _ = 1, 3 do
      local count, values = 0, 0
      for s, v in n:pairs() do
        count = count + 1
        if type(s) == 'number' and s % 1 == 0 then
          local wanted = types[s % 9 + 1]
          if s == 450 then wanted = nil elseif s == 451 then wanted = great end
          if v ~= wanted then t.equal(v, wanted, s) end
          values = values + 1
        end
      end
      t.equal({count, values}, {1080, 900})
      for s in n:subscripts(true) do
        count = count - 1
        if type(s) == 'string' and s ~= 'k' .. 90 - (1079 - count) and #s < 2 then t.equal(s, 'k...') end
      end
      t.equal(count, 0)
    end
  end)

  spec('a loop stops when its database is closed, or its transaction must run again', function(db, t)
    local n = db.node('^w')
    for i = 1, 500 do n[i].__ = i end
    for _, walk in ipairs {n.subscripts, n.pairs, n.children} do
      local seen, runs = 0, 0
      db:transaction(function()
        runs = runs + 1
        for _ in walk(n) do
          seen = seen + 1
          if seen == 300 then pcall(require 'perilune'.restart) end
        end
      end)
      t.equal({seen, runs}, {800, 2})
    end
    local count = 0
    t.fails('closed', function()
      for _ in n:subscripts() do
        count = count + 1
        if count == 300 then db:close() end
      end
    end)
    t.equal(count, 300)
  end)

  spec('a hook that steps the loop it interrupts', function(db, t)
    local n = db.node('^w')
    for i = 1, 300 do n['a long subscript ' .. i].__ = 'a long value ' .. i end
    local compiler = rawget(_G, 'jit')
    if compiler then compiler.off() compiler.flush() end
    for _, name in ipairs {'subscripts', 'pairs'} do
      local seen, refused, inside, outside = {}, 0, 0, 0
      local function see(s, v)
        seen[s] = true
        if name == 'pairs' then t.equal(v, (s:gsub('subscript', 'value'))) end
      end
      local step, walk, control = n[name](n)
      debug.sethook(function()
        local good, s, v = pcall(step, walk, control)
        if not good then
          refused = refused + 1
        elseif s then
          inside = inside + 1
          see(s, v)
        end
      end, '', 7)
      for s, v in step, walk, control do
        outside = outside + 1
        see(s, v)
      end
      debug.sethook()
      local different = 0
      for _ in pairs(seen) do different = different + 1 end
      t.equal({inside + outside, different}, {300, 300})
      t.equal(inside > 0 and outside > 0, true)
      t.equal(refused > 0, compiler ~= nil)
    end
    if compiler then compiler.on() end
  end)

  spec('a hook that raises in the middle of a step', function(db, t)
    local n = db.node('^w')
    for i = 1, 20 do n['k' .. i].__ = 'v' .. i end
    local compiler = rawget(_G, 'jit')
    if compiler then compiler.off() compiler.flush() end
    local ended = 0
    for after = 1, 60 do
      local step, walk, control = n:pairs()
      local function hook()
        debug.sethook()
        error('enough', 0)
      end
      local good, message = pcall(function()
        debug.sethook(hook, '', after)
        for _ in step, walk, control do end
        debug.sethook()
      end)
      debug.sethook()
      t.equal(good and 'enough' or message, 'enough')
      good, message = pcall(step, walk, control)
      if not good then
        t.equal(tostring(message):find('begin a new loop', 1, true) ~= nil, true)
        ended = ended + 1
      end
      t.equal(#list(n:pairs()), 20)
    end
    t.equal(ended > 0, compiler ~= nil)
    if compiler then compiler.on() end
  end)

  spec('names of the database', function(db, t)
    db.node('^b').__ = 1
    db.node('^a')[1].__ = 1
    db.node('p').__ = 1
    local names = {}
    for name in db:names() do
      if name ~= '^redis' then names[#names + 1] = name end -- a server keeps what it needs there
    end
    t.equal(names, {'^a', '^b'})
    t.equal(list(db:names(true)), {'p'})
  end)

  spec('an iterator is for its own loop', function(db, t)
    local n = fill(db)
    local step = n:children()
    t.fails('iterator', step, 5)
    t.fails('iterator', step)
    t.fails('iterator', step, io.stdout)
  end)
end
