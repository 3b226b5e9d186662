-- Addresses: making nodes, text, comparison, classes, methods by name.

return function(spec)
  spec('all notations make the same node', function(db, t)
    local n = db.node('^person')
    t.equal(tostring(n[21].age), '^person(21,"age")')
    t.equal(n[21].age, n(21, 'age'))
    t.equal(n[21].age, db.node('^person', 21, 'age'))
    t.equal(n[21].age, db.node('^person', {21, 'age'}))
    t.equal(n[21].age, db.node(n, 21, 'age'))
    t.equal(n[21], n['21'])
    t.equal(n[21], n[21.0])
    t.equal(n[10 / 2], n[5])
    t.equal(n[21] == n[22], false)
    t.equal(n.a == n.b, false)
    t.equal(n() == n, true)
    t.equal(n == 5, false)
    t.equal(n[5] == 5, false)
    t.equal(n[5] == n[5].x, false)
    t.equal(n[5].get == n[5].get, true)
  end)

  spec('a node with 255 subscripts, and not one more', function(db, t)
    local n = db.node('^deep')
    for i = 1, 255 do n = n[i % 3] end
    t.equal(n:depth(), 255)
    n.__ = 1
    t.equal(n.__, 1)
    t.equal({n:get(), n:data(), n:incr()}, {1, 1, 2})
    t.fails('255', function() return n.x end)
    t.fails('too many subscripts', function() return n.get.__ end)
    t.fails('too many subscripts', function() return n.get.x end)
    local monitored, class = t.perilune.inherit(db.node)
    function class:get() return 'mine' end
    t.equal(monitored(n):get(), 'mine')
    local long = db.node('^k', ('x'):rep(1880))
    long.__ = 1
    t.equal(long:get(), 1)
    t.fails('', function() return long[('y'):rep(100)] end)
    t.fails('', function() return db.node('^k', ('x'):rep(3000)) end)
  end)

  spec('text of every kind of subscript', function(db, t)
    local n = db.node('^n')
    t.equal(tostring(n['a"b']), '^n("a""b")')
    t.equal(tostring(n[-5]), '^n(-5)')
    t.equal(tostring(n[1.5]), '^n(1.5)')
    t.equal(tostring(n['007']), '^n("007")')
    t.equal(tostring(n['']), '^n("")')
    t.equal(n['a\0b']:name(), 'a\0b')
    t.equal(n[('x'):rep(300)]:name(), ('x'):rep(300))
  end)

  spec('order is that of the tree', function(db, t)
    local n = db.node('^n')
    t.equal(n[2] < n[10], true)
    t.equal(n[2] <= n[2], true)
    t.equal(n.a < n.b, true)
    t.equal(n < n.a, true)
    t.equal(n[-1] < n[0], true)
    local compare = t.perilune.compare
    t.equal({compare(n[10], n.a), compare(n.a, n[10]), compare(n[1], n[1])}, {-1, 1, 0})
    -- Lua 5.1 compares only values of one of its types, and a node in a word is of another.
    if _VERSION ~= 'Lua 5.1' or rawget(_G, 'jit') then
      t.equal(n[10] < n.a, true)
      t.equal(n.a > n[99], true)
    end
  end)

  spec('subscripts come back as numbers', function(db, t)
    local n = db.node('^n', 1, '2', 2.5, 'x')
    t.equal(n:subsarray(), {1, 2, 2.5, 'x'})
    t.integer(n:subscript(1))
    t.integer(n:subscript(2))
    t.equal(n:subscript(), 'x')
    t.equal(n:subscript(-2), 2.5)
    t.equal(n:subscript(5), nil)
    t.equal(n:name(), 'x')
    t.equal(db.node('^n'):name(), '^n')
    t.equal(n:varname(), '^n')
    t.equal(n:parent(), db.node('^n', 1, 2, 2.5))
    t.equal(n:parent(1), db.node('^n')[1])
    t.equal(n:parent(0), db.node('^n'))
    t.equal(db.node('^n'):parent(), nil)
    t.equal(n:parent(1):contains(n), true)
    t.equal(n:contains(n:parent()), false)
  end)

  spec('integers of every size as subscripts', function(db, t)
    local n = db.node('^n')
    for _, i in ipairs {0, 1, -1, 255, 256, 2 ^ 31, 2 ^ 37 - 1, 2 ^ 37, -2 ^ 37, -2 ^ 37 - 1, 2 ^ 44, 2 ^ 53 - 1} do
      n[i].__ = i
      n[i].x.__ = i
      t.equal(n[i].__, i)
      t.equal(n[i].x.__, i)
      t.equal(db.node('^n', i), n[i])
      t.equal(n[i]:name(), i)
      t.equal(n[i].get.x:parent():parent(), n[i])
    end
    t.equal(n:count(), 12)
  end)

  spec('names of methods are subscripts, too', function(db, t)
    local n = db.node('^n')
    for _, name in ipairs {'get', 'set', 'kill', 'data', 'pairs', 'lock', 'wait', 'node', 'transaction'} do
      n[name].__ = name
      n[7][name].__ = name .. 7
      n.deep[name].__ = name
    end
    t.equal(n.get:get(), 'get')
    t.equal(n.kill.__, 'kill')
    t.equal(n[7].kill.__, 'kill7')
    t.equal(n[7].get:get(), 'get7')
    t.equal(tostring(n[7].get), '^n(7,"get")')
    t.equal(n[7].get, db.node('^n', 7, 'get'))
    t.equal(n[7].get.set.x:depth(), 4)
    t.equal(n:count(), 11)
    t.equal(n.__get(n.get), 'get')
    t.equal(n.__nosuch, nil)
  end)

  spec('subclasses count, as in Hoyt\'s program', function(db, t)
    local reads, updates = 0, 0
    local monitored, class, super = t.perilune.inherit(db.node)
    function class:get(default)
      reads = reads + 1
      return super.get(self, default)
    end
    function class:set(value)
      updates = updates + 1
      return super.set(self, value)
    end
    function class:double() return self.__ * 2 end
    local step = monitored('^step')
    step[5].__ = 6
    step.a.b.__ = 7
    step[5].x.__ = 8
    t.equal(updates, 3)
    t.equal(step[5].__, 6)
    t.equal(step[5]:get(), 6)
    t.equal(step.a.b.__, 7)
    t.equal(step.nothing:get(3), 3)
    t.equal(step[99]:get(4), 4)
    t.equal(reads, 5)
    t.equal(step[5]:double(), 12)
    t.equal(step.a.b:double(), 14)
    t.equal(reads, 7)
    t.equal(db.node('^step')[5].__, 6)
    t.equal(reads, 7)
    t.equal(t.perilune.isnode(step), true)
    t.equal(t.perilune.isnode(step[5]), true)
    t.equal(db.node('^step')[5].double.__, nil)
    t.fails("no method 'double'", function() db.node('^step').x:double() end)
    t.fails("no method 'double'", function() db.node('^step')[5]:double() end)
    t.equal(step[5]:incr(), 7)
    t.equal(step[5]:data(), 11)
  end)

  spec('a class of a class keeps what its parent overrides', function(db, t)
    local log = {}
    local first, one, node = t.perilune.inherit(db.node)
    function one:get(default) log[#log + 1] = 'one' return node.get(self, default) end
    local second, two, parent = t.perilune.inherit(first)
    t.equal(parent, one)
    function two:set(value) log[#log + 1] = 'two' return node.set(self, value) end
    local n = second('^n')
    n.a.__ = 1
    t.equal(n.a.__, 1)
    t.equal(n[3]:get(9), 9)
    t.equal(log, {'two', 'one', 'one'})
    local plain = db.node(n.a)
    t.equal(plain.__, 1)
    t.equal(#log, 3)
    t.equal(tostring(second(plain, 'x')), '^n("a","x")')
  end)

  spec('isnode', function(db, t)
    local isnode = t.perilune.isnode
    t.equal(isnode(db.node('^n')), true)
    t.equal(isnode(db.node('^n')[1]), true)
    for _, x in ipairs {5, 'x', {}, print, io.stdout, true, t.perilune.null, t.perilune.empty_map, db} do
      t.equal(isnode(x), false)
    end
    t.equal(isnode(nil), false)
    t.equal(isnode(), false)
  end)

  spec('private names are a tree of their own', function(db, t)
    local n, m = db.node('n'), db.node('^n')
    n[1].a.__ = 'private'
    t.equal(m[1].a.__, nil)
    t.equal(n[1].a.__, 'private')
    t.equal(n[1] == m[1], false)
    t.equal(tostring(n[1].a), 'n(1,"a")')
    local long = n[('k'):rep(100000)]
    long.__ = 'long'
    t.equal(long.__, 'long')
    t.equal(tostring(long):len(), 100005)
  end)

  spec('light userdata of others stay what they are', function(_, t)
    local null = t.perilune.null
    t.equal(type(null), rawget(_G, 'jit') and 'userdata' or 'userdata')
    t.equal(tostring(null):match '^userdata: ' ~= nil, true)
    t.equal(pcall(function() return null.x end), false)
    t.equal(pcall(function() null.x = 1 end), false)
    t.equal(pcall(function() return null() end), false)
    t.equal(pcall(function() return null < null end), false)
    t.equal(null == t.perilune.null, true)
  end)
end
