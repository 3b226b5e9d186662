-- Every function of the module with arguments of every kind: nothing crashes, and errors say what is wrong.

local fuzzing = require 'fuzzing'

return function(spec)
  spec('every function of databases, nodes, transactions and watches', function(db, t)
    local perilune, random = t.perilune, fuzzing.random
    local other = perilune.open(t.file .. '.other')
    local closed = perilune.open(t.file .. '.closed')
    local of_closed = {closed.node('^a'), closed.node('^a')[5], closed.node('^a').x, closed.node('^a'):watch()}
    closed:close()
    local monitored = perilune.inherit(db.node)
    local n = db.node('^a')
    local nodes = {n, n.x, n[5], n[5].get, n('x', 1.5, ''), db.node('local'), db.node('local')[1], monitored('^m'), monitored('^m')[3],
      n[('k'):rep(1000)], other.node('^a'), other.node('^a')[1], of_closed[1], of_closed[2], of_closed[3], n.get, n.next.__get}
    local databases = {db, db, db, other, closed}
    local watches = {n:watch(), n.x:watch 'node', of_closed[4]}
    local values = fuzzing.values()
    for _, list in ipairs {nodes, nodes, databases, watches} do
      for _, x in ipairs(list) do values[#values + 1] = x end
    end
    local node = function() return nodes[random(#nodes)] end
    -- Functions for transactions, filters and loops that do forbidden things.
    local callbacks = {
      function() db:close() end, function() node().__ = random(9) end, function() other:close() end,
      function(tx) tx:rollback(random(5)) end, function(tx) if tx:restarts() < 2 then tx:restart() end end,
      function() return db:transaction(function() node():kill() error 'mine' end) end,
      function() pcall(db.close, db) for k in n:pairs() do n[k]:kill() end end,
      function() for child in n:children() do child:kill() break end end,
      function() node():settree {1, {x = 2}} return node():gettree() end,
      function() pcall(function() n.x:incr 'no' end) n.y.__ = 1 end,
    }
    for _, f in ipairs(callbacks) do values[#values + 1] = f end

    local functions, selves = {}, {}
    local function add(prefix, list, self)
      for name, f in pairs(list) do
        if type(f) == 'function' then
          functions[prefix .. name] = f
          selves[prefix .. name] = self
        end
      end
    end
    add('perilune.', perilune, function() end)
    functions['perilune.open'], functions['perilune.transaction'] = nil, nil
    -- A text would be the path of a database that it makes.
    functions['perilune.use'] = function(x) if type(x) ~= 'string' then return perilune.use(x) end end
    add('node:', getmetatable(n), node)
    local methods = {}
    for name in ('close path stat verify names transaction rollback restart restarts level lock post receive follow get set incr data '
      .. 'get_many set_many set_each node'):gmatch '%S+' do methods[name] = db[name] end
    add('db:', methods, function() return databases[random(#databases)] end)
    add('watch:', {wait = watches[1].wait, descriptor = watches[1].descriptor, close = watches[1].close},
      function() return watches[random(#watches)] end)
    functions['index'] = function(x, k) return node()[k], x end
    functions['assign'] = function(x) node().__ = x end
    functions['call'] = function(...) return node()(...) end
    functions['sort'] = function(a, b) return node() < node(), node() == a, node() <= b end
    functions['run later'] = function(id, f, ...) return perilune.transaction(id, f)(...) end
    functions['options'] = function(name, value)
      return perilune.open(t.file .. '.options', type(name) == 'string' and {[name] = value} or name)
    end

    local function timed(at)
      return function(arguments)
        arguments[at] = fuzzing.timeout()
        arguments.n = math.max(arguments.n, at)
      end
    end
    local fixed = {['node:wait'] = timed(2), ['watch:wait'] = timed(2), ['db:receive'] = timed(3), ['db:follow'] = timed(4),
      ['node:__wait'] = timed(2)}
    -- What one transaction does stays small: these would grow what they copy.
    local function between()
      if tostring(db):find('closed', 1, true) then
        db = perilune.open(t.path)
        n = db.node('^a')
        databases[1], databases[2], databases[3] = db, db, db
        nodes[1], nodes[2], nodes[3], nodes[4], nodes[5] = n, n.x, n[5], n[5].get, n('x', 1.5)
        watches[1] = n:watch()
      end
      if tostring(other):find('closed', 1, true) then
        other = perilune.open(t.file .. '.other')
        databases[4] = other
        nodes[6] = other.node('^a')
      end
      perilune.use(db)
      db:lock()
      for name in db:names() do db.node(name):kill() end
      for name in db:names(true) do db.node(name):kill() end
      db.node('^sane').x.__ = random(1000)
      t.equal(db.node('^sane'):count(), 1)
      watches[2] = watches[2] or n:watch()
    end
    fuzzing.run(functions, function(name) return selves[name] and selves[name]() end, fixed, values, between)
    between()
    if not t.server then t.equal(db:verify(), true) end
    db:close()
    other:close()
    for _, suffix in ipairs {'.other', '.closed', '.options'} do os.remove(t.file .. suffix) end
  end)

  -- Not under LuaJIT: there a hook may come between an FFI call and the reading of its result
  -- (docs/reference/lua.md).
  if rawget(_G, 'jit') then return end
  spec('a hook that uses the database inside every function', function(db, t)
    local n, hooked = db.node('^h'), 0
    n.counter.__ = 0
    local function hook()
      hooked = hooked + 1
      n.counter:incr()
      for _ in n:pairs() do break end
      db.node('^h')[hooked % 7].__ = hooked
      if hooked % 50 == 0 then collectgarbage() end
    end
    local function work()
      for i = 1, 40 do
        n.tree:settree({1, {x = i}}, function(_, k, v) return k, v end)
        t.equal(n.tree:gettree(nil, function(_, _, v) return v end)[2], {x = i})
        for k, v in n.tree:pairs() do t.equal(k == 1 and v or nil, k == 1 and 1 or nil) end
        n.json:fromjson '{"a":[1,2]}'
        t.equal(n.json:tojson(), '{"a":[1,2]}')
        db:transaction(function() n.t.__ = i n.u.__ = n.t.__ end)
        t.equal(n.u.__, i)
      end
    end
    debug.sethook(hook, '', 13)
    local good, e = pcall(work)
    debug.sethook()
    t.equal(good and 'good' or tostring(e), 'good')
    t.equal(hooked > 100, true)
    t.equal(n.counter.__, hooked)
  end)
end
