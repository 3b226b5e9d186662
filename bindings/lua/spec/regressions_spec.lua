-- Defects of lua-yottadb 3.0 (D1 to D19) that the native module could have had, too.

return function(spec)
  spec('D2: kill takes exactly the node', function(db, t)
    local v = db.node('^v')
    v.a.b.__ = 1
    v.a.c.__ = 2
    db.node('^v', 'a', 'b'):kill()
    t.equal(v:gettree(), {a = {c = 2}})
  end)

  spec('D3, D4: locks take a list, and wait when no time is given', function(db, t)
    t.equal(db:lock {db.node('^v', 'a')}, true)
    t.equal(db.node('^v').b:lock(), true)
    t.equal(db.node('^v').c:grab(), true)
  end)

  spec('D5: subscripts after a node count', function(db, t)
    local n = db.node('^v').a
    db:set(n, 'x', 5)
    t.equal({db:get(n, 'x'), n.__}, {5, nil})
    t.equal(db:incr(n, 'x', 3), 8)
    t.equal(db:data(n, 'x'), 1)
  end)

  spec('D6: an error that is no string leaves a transaction', function(db, t)
    local thrown = {}
    local good, caught = pcall(db.transaction, db, function() error(thrown) end)
    t.equal({good, rawequal(caught, thrown)}, {false, true})
    t.equal(pcall(t.perilune.transaction(function() error() end)), false)
    t.equal(pcall(t.perilune.transaction(function() error(nil) end)), false)
  end)

  spec('D7: numbers are numbers', function(db, t)
    local n = db.node('^v')
    n[1.0].__ = 'one'
    t.equal(n[1].__, 'one')
    n[10 / 2].__ = 'five'
    t.equal(n[5].__, 'five')
    t.equal(n.c:incr(1e15), 1e15)
    n.big.__ = 2 ^ 53
    t.equal(n.big.__, 2 ^ 53)
    t.equal(n.big:incr(-1), 2 ^ 53 - 1)
    n.zero.__ = -0.0
    t.equal(n.zero:tojson(), '0')
    t.fails('infinity', function() n.x.__ = 1 / 0 end)
    t.fails('NaN', function() n.x.__ = 0 / 0 end)
    t.fails('', n.c.incr, n.c, 1 / 0)
  end)

  spec('D9: siblings of a node that has children', function(db, t)
    local n = db.node('^v').a
    local _ = n.x
    n.x.__, n.y.__ = 1, 2
    local found = {}
    for s in n:subscripts() do found[#found + 1] = s end
    t.equal(found, {'x', 'y'})
  end)

  spec('D10, D11: a node of a node is a new one with its own class', function(db, t)
    local monitored, class, super = t.perilune.inherit(db.node)
    function class:get() return 'mine' end
    local n = monitored('^v')
    local plain = db.node(n)
    t.equal(n.__, 'mine')
    t.equal(plain.__, nil)
    t.equal(tostring(db.node(n, {'x'}, 'y')), '^v("x","y")')
    t.equal(super.get(n), nil)
  end)

  spec('D15, D16: errors leave nothing in the registry', function(db, t)
    local n = db.node('^v')
    local registry = debug.getregistry()
    local function size()
      local count = 0
      for _ in pairs(registry) do count = count + 1 end
      return count
    end
    pcall(n.incr, n, {})
    local before = size()
    for _ = 1, 200 do
      pcall(n.incr, n, {})
      pcall(n.set, n, print)
      pcall(db.transaction, db, function() error('x') end)
      pcall(n.settree, n, {[true] = 1})
    end
    t.equal(size() <= before + 2, true)
  end)

  spec('D18: nodes do no arithmetic that writes', function(db, t)
    local n = db.node('^v')
    n.__ = 1
    t.equal(pcall(function() return n + 1 end), false)
    t.equal(pcall(function() return 1 - n[5] end), false)
    t.equal(n.__, 1)
  end)

  spec('D19: what set, grab and release return', function(db, t)
    local n = db.node('^v').x
    t.equal({n:set(5), n:set('x'), n:set(false)}, {5, 'x', false})
    t.equal(n:set(nil), nil)
    t.equal({n:grab(), n:release(), n:release()}, {true, true, false})
  end)

  spec('nothing is left in the globals or changed in the libraries', function(_, t)
    for _, name in ipairs {'perilune', '_perilune', 'string_pack', 'subsarray', 'key_properties'} do
      t.equal(rawget(_G, name), nil)
    end
    t.equal(string.format('%d', 3), '3')
  end)

  spec('Hoyt\'s program, with n/2, has the exact counts', function(db, t)
    local collatz = dofile(debug.getinfo(1, 'S').source:match '^@(.*)regressions_spec' .. '../../../examples/collatz.lua')
    for _, row in ipairs {{2, 1, 1, 1, 5, 3}, {10, 19, 52, 21, 45, 29}, {100, 118, 9232, 250, 478, 266},
      {1000, 178, 250504, 2227, 4522, 2255}, {10000, 261, 27114424, 21663, 44640, 21701}} do
      for _, block in ipairs {7, 1000} do
        local found = collatz.alone(db, row[1], block)
        t.equal({found.longest, found.highest, found.stored, found.reads, found.updates},
          {row[2], row[3], row[4], row[5], row[6]}, 'n = ' .. row[1])
      end
    end
  end)
end
