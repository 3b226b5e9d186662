-- Values: types that come back, counters, compare and set, batches.

return function(spec)
  spec('every type comes back as it went in', function(db, t)
    local n = db.node('^v').x
    for _, value in ipairs {'', 'text', '5', 'a\0b', 0, 1, -7, 2 ^ 53, 1.5, -0.25, 1e300, 1e-300, true, false,
      ('x'):rep(100000), t.perilune.null, t.perilune.empty_list, t.perilune.empty_map, '1e5', '007'} do
      n.__ = value
      t.equal(n.__, value)
      t.equal(type(n.__), type(value))
      t.equal(n:get(), value)
      n:set(nil)
      t.equal(n.__, nil)
      t.equal(n:set(value), value)
      db.node('^v')[5].__ = value
      t.equal(db.node('^v')[5].__, value)
      t.equal(db.node('^v')[5]:get('no'), value)
    end
  end)

  spec('floats with an integral value are integers', function(db, t)
    local n = db.node('^v')
    n[10 / 2].__ = 10 / 2
    t.integer(n[5].__)
    t.equal(n[5].__, 5)
    n.x.__ = -0.0
    t.equal(tostring(n.x.__), '0')
    n.y.__ = 2 ^ 62
    t.equal(tonumber(n.y.__), 2 ^ 62)
  end)

  spec('64-bit integers are exact', function(db, t)
    local n = db.node('^v').x
    n:fromjson('9223372036854775807')
    if math.type then
      t.equal(n.__, math.maxinteger)
      n.__ = math.mininteger
      t.equal(n.__, math.mininteger)
      n[math.maxinteger].__ = 1
      t.equal(n:next(), math.maxinteger)
      db.node('^v')[math.mininteger].__ = 2
      t.equal(db.node('^v'):next(), math.mininteger)
    else
      t.equal(n.__, '9223372036854775807')
      n[n.__].__ = 1
      t.equal(n:next(), '9223372036854775807')
      t.equal(n['9223372036854775807'].__, 1)
    end
  end)

  -- What string.sub gives; compiled, that of LuaJIT 2.1.0-beta3 gives another piece for some positions before the first.
  local function part(text, first, last)
    local size = #text
    if first < 0 then first = math.max(size + first + 1, 1) elseif first == 0 then first = 1 end
    if last < 0 then last = size + last + 1 elseif last > size then last = size end
    return first > last and '' or text:sub(first, last)
  end

  spec('pieces of strings are as string.sub counts them', function(db, t)
    for _, name in ipairs {'^v', 'v'} do
      local n = db.node(name).x
      t.equal(select('#', n:getpiece()), 0)
      for _, text in ipairs {'', 'a', 'a\0bcdef', ('0123456789'):rep(3000)} do
        n.__ = text
        for first = -9, 9 do
          local piece, length = n:getpiece(first)
          t.equal(piece, part(text, first, -1))
          t.equal(length, #text)
          t.integer(length)
          for last = -9, 9 do t.equal((n:getpiece(first, last)), part(text, first, last)) end
        end
        t.equal((n:getpiece()), text)
        t.equal((n:getpiece(nil, 3)), text:sub(1, 3))
        t.equal((n:getpiece(2 ^ 40, 2 ^ 50)), '')
      end
      t.equal((n:getpiece(29998, 2 ^ 53)), '789')
      t.equal((db:get(n)), n:getpiece())
    end
  end)

  spec('pieces are written where they lie', function(db, t)
    for _, name in ipairs {'^v', 'v'} do
      local n = db.node(name)[5]
      t.equal(n:setpiece(3, 'cd'), 4)
      t.equal(n.__, '\0\0cd')
      t.equal(n:setpiece(1, 'ab'), 4)
      t.equal(n:setpiece(4, 'DEF'), 6)
      t.equal(n.__, 'abcDEF')
      t.equal(n:setpiece(2, ''), 6)
      n.__ = ('x'):rep(100000)
      t.equal(n:setpiece(50001, 'here'), 100000)
      t.equal(n:setpiece(100003, 'end'), 100005)
      t.equal(n.__, ('x'):rep(50000) .. 'here' .. ('x'):rep(49996) .. '\0\0end')
      t.equal((n:getpiece(-3)), 'end')
      -- A piece belongs to the transaction that it is written in.
      local done = pcall(db.transaction, db, function(tx)
        n:setpiece(50001, 'HERE')
        t.equal((n:getpiece(50000, 50005)), 'xHEREx')
        error('no', 0)
      end)
      t.equal(done, false)
      if name == '^v' then t.equal((n:getpiece(50000, 50005)), 'xherex') end
    end
    -- Methods of nodes are no names: a subscript may be called so.
    local n = db.node('^v')
    n.getpiece.__ = 1
    t.equal(n.getpiece.__, 1)
  end)

  spec('only strings have pieces, and positions are integers', function(db, t)
    local n = db.node('^v').x
    for _, value in ipairs {5, 1.5, true, t.perilune.null, t.perilune.empty_map} do
      n.__ = value
      t.fails('no string', n.getpiece, n)
      t.fails('no string', n.getpiece, n, -1)
      t.fails('no string', n.setpiece, n, 1, 'x')
      t.equal(n.__, value)
    end
    n.__ = 'text'
    for _, wrong in ipairs {0, -1, 1.5, 'a', {}, true} do t.fails('posit', n.setpiece, n, wrong, 'x') end
    for _, wrong in ipairs {1.5, 'a', {}, true} do
      t.fails('position', n.getpiece, n, wrong)
      t.fails('position', n.getpiece, n, 1, wrong)
    end
    t.fails('position', n.setpiece, n)
    t.fails('a piece must be a string, not a number', n.setpiece, n, 1, 5)
    t.fails('a piece must be a string', n.setpiece, n, 1)
    t.equal(n.__, 'text')
  end)

  spec('counters are decimal and exact', function(db, t)
    local n = db.node('^c')
    t.equal(n:incr(), 1)
    t.integer(n.__)
    t.equal(n:incr(-3), -2)
    t.equal(n:incr(0.5), -1.5)
    t.equal(n:incr('0.25'), -1.25)
    n.a.__ = 0.1
    t.equal(n.a:incr(0.2), 0.3)
    t.equal(n.a.__, 0.3)
    t.equal(n[7]:incr(5), 5)
    t.equal(n[7]:incr(), 6)
    n.t.__ = '12'
    t.equal(n.t:incr(), 13)
    t.equal(db:incr(n, 'deep', 3, 2), 2)
    t.equal(n.deep[3].__, 2)
    t.equal(db:incr('^c', 'deep', 3, nil), 3)
    n.bad.__ = 'abc'
    t.fails('number', n.bad.incr, n.bad)
    t.equal(n.bad.__, 'abc')
    t.fails('number', function() n:incr('abc') end)
    t.fails('increment must be', function() n:incr(true) end)
    t.fails('increment must be', function() n:incr({}) end)
  end)

  spec('compare and set', function(db, t)
    local n = db.node('^c').x
    t.equal(n:cas(nil, 1), true)
    t.equal(n:cas(nil, 2), false)
    t.equal(n:cas(1, 'two'), true)
    t.equal(n:cas(1, 3), false)
    t.equal(n:cas('two', nil), true)
    t.equal(n.__, nil)
    t.fails('two values', function() n:cas(1) end)
  end)

  spec('data, delete, kill', function(db, t)
    local n = db.node('^d')
    t.equal(n:data(), 0)
    n.a.__ = 1
    n.a.b.__ = 2
    t.equal({n:data(), n.a:data(), n.a.b:data()}, {10, 11, 1})
    t.equal({n:has_value(), n:has_tree(), n.a:has_value(), n.a.b:has_tree()}, {false, true, true, false})
    t.equal(n.a:delete(), true)
    t.equal(n.a:delete(), false)
    t.equal(n.a:data(), 10)
    n.a.c.__ = 3
    n.a:kill()
    t.equal(n:data(), 0)
    n.x.__ = 1
    n.x.__ = nil
    t.equal(n:data(), 0)
  end)

  spec('default of get is given back as it is', function(db, t)
    local n = db.node('^d')
    local default = {}
    t.equal(n:get(), nil)
    t.equal(rawequal(n:get(default), default), true)
    t.equal(n[3]:get(false), false)
    t.equal(n.x:get(0), 0)
    n.x.__ = false
    t.equal(n.x:get(5), false)
    t.equal(n.x.__, false)
  end)

  spec('addresses without nodes', function(db, t)
    db:set('^a', 1, 'x', 'value')
    t.equal(db:get('^a', 1, 'x'), 'value')
    t.equal(db:get(db.node('^a'), 1, 'x'), 'value')
    t.equal(db:get(db.node('^a')[1], 'x'), 'value')
    t.equal(db:get('^a'), nil)
    t.equal(db:data('^a', 1), 10)
    db:set('^a', 1, 'x', nil)
    t.equal(db:data('^a'), 0)
    t.fails('subscript', db.get, db, '^a', {})
    t.fails('subscript', db.get, db, '^a', nil)
    t.fails('argument 2', db.get, db, 5)
  end)

  spec('batches', function(db, t)
    local n = db.node('^b')
    db:set_many({n.a, n[2], n.c}, {1, 'two', 3})
    t.equal(db:get_many {n.a, n[2], n.none, n.c}, {1, 'two', nil, 3})
    db:set_many({n.a, n[2]}, {[2] = 'zwei'})
    t.equal({n.a:data(), n[2].__}, {0, 'zwei'})
    db:set_each({n.a, n[2], n.c, n.a}, {1, 'deux', true, 'again'})
    t.equal(db:get_many {n.a, n[2], n.c}, {'again', 'deux', true})
    t.equal(pcall(db.set_each, db, {n.a, n.d}, {7}), false)
    t.equal({n.a.__, n.d:data()}, {'again', 0})
    t.equal(pcall(db.set_each, db, {db.node('private')}, {7}), false)
    db:set_each({}, {})
    t.equal(db:get_many {}, {})
    t.fails('entry 2', db.get_many, db, {n, 5})
    t.fails('list of nodes', db.get_many, db, 5)
    t.fails('value 1', db.set_many, db, {n}, {print})
    local other = t.perilune.open(t.file .. '2')
    t.fails('entry 1', db.get_many, db, {other.node('^b')})
    other:close()
    os.remove(t.file .. '2')
  end)

  spec('copy, merge, count', function(db, t)
    local a, b = db.node('^a'), db.node('^b')
    a:settree {x = 1, y = {1, 2, 3}}
    b.old.__ = 1
    t.equal(a:copy(b.new), b.new)
    t.equal(b.new:gettree(), {x = 1, y = {1, 2, 3}})
    a:copy(b)
    t.equal(b.old.__, nil)
    b.y[2].__ = 'mine'
    b.z.__ = 1
    a:merge(b)
    t.equal({b.y[2].__, b.z.__}, {2, 1})
    t.equal(a:count(), 2)
    t.equal(a:count('nodes'), 4)
    t.equal(a[77]:count(), 0)
    t.fails('children', a.count, a, 'x')
    t.fails('', a.copy, a, a.x)
  end)

  spec('integers beyond 2^53 keep every digit', function(db, t)
    local n = db.node('^big')
    -- Often enough that LuaJIT compiles it.
    for _ = 1, 200 do
      for _, text in ipairs {'9007199254740993', '-9007199254740993', '9223372036854775807', '-9223372036854775807'} do
        for _, node in ipairs {n[5], n.x, n[5].x} do
          node:fromjson(text)
          t.equal({tostring(node.__), tostring(node:get()), node:tojson()}, {text, text, text})
        end
      end
      n[6].__, n.y.__ = 2 ^ 53, -2 ^ 53
      t.equal({n[6].__, n.y.__, n[6]:get()}, {2 ^ 53, -2 ^ 53, 2 ^ 53})
    end
  end)
end
