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

  spec('names of the database', function(db, t)
    db.node('^b').__ = 1
    db.node('^a')[1].__ = 1
    db.node('p').__ = 1
    t.equal(list(db:names()), {'^a', '^b'})
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
