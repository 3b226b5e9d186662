-- Bad input of every kind raises an error that names what was wrong, and nothing else happens.

return function(spec)
  local function junk(perilune)
    return {true, false, {}, print, coroutine.create(function() end), io.stdout, perilune.null, perilune.empty_map, 0 / 0, 1 / 0,
      -1 / 0}
  end

  spec('subscripts', function(db, t)
    local n = db.node('^a')
    for _, bad in ipairs(junk(t.perilune)) do
      t.equal(pcall(function() return n[bad] end), false)
      t.equal(pcall(function() return n[1][bad] end), false)
      t.equal(pcall(function() return n[1].get[bad] end), false)
      t.equal(pcall(function() return n('x', bad) end), false)
      t.equal(pcall(db.node, '^a', bad), type(bad) == 'table')
      t.equal(pcall(db.get, db, n, bad), false)
    end
    t.fails('finite', function() return n[0 / 0] end)
    t.fails('finite', function() return n[1 / 0] end)
    t.fails('not a boolean', function() return n[true] end)
    t.fails('not nil', function() return n[nil] end)
    t.fails('not nil', function() return n(1, nil, 2) end)
  end)

  spec('values', function(db, t)
    local n = db.node('^a')
    n.x.__ = 1
    for _, bad in ipairs {{}, print, coroutine.create(function() end), io.stdout, 0 / 0, 1 / 0, db, n, n[1]} do
      for _, node in ipairs {n.x, n[1], n[1].get} do
        t.equal(pcall(function() node.__ = bad end), false)
        t.equal(pcall(node.__set, node, bad), false)
        t.equal(pcall(db.set, db, node, bad), false)
      end
    end
    t.fails('settree', function() n.x.__ = {} end)
    t.fails('node.__', function() n.x.__ = n end)
    t.fails('node.__', function() n.x.__ = n[1] end)
    t.fails('function', function() n.x.__ = print end)
    t.fails('assign to its field __', function() n.x = 5 end)
    t.fails('assign to its field __', function() n[1] = 5 end)
    t.fails('assign to its field __', function() n[1].x = 5 end)
    t.fails('subscript', function() n[{}] = 5 end)
    t.equal(n:gettree(), {x = 1})
  end)

  spec('names', function(db, t)
    for _, bad in ipairs {'', '^', '5x', '^5', 'a b', '^a b', '^a\0', 'é', '$x', '^^a', ('x'):rep(300), '^' .. ('x'):rep(300)} do
      t.equal(pcall(db.node, bad), false, bad)
      t.equal(pcall(db.get, db, bad), false, bad)
    end
    for _, good in ipairs {'a', '^a', '^%', '_x', '^a.b', '^Z9', '^' .. ('x'):rep(255)} do
      db.node(good).__ = 1
      t.equal(db.node(good).__, 1, good)
    end
    for _, bad in ipairs(junk(t.perilune)) do t.equal(pcall(db.node, bad), false) end
    t.fails('string', db.node)
    t.fails('string', db.node, nil)
    t.fails('string', db.node, 5)
    t.equal(db.node(db, '^a'), db.node('^a'))
  end)

  spec('methods on what is no node', function(db, t)
    local n = db.node('^a')
    local class = getmetatable(n)
    for name, method in pairs(class) do
      if type(method) == 'function' and name ~= '__tostring' then
        for _, bad in ipairs(junk(t.perilune)) do
          local good = pcall(method, bad, 1, 2)
          t.equal(good and name ~= '__eq', false, name)
        end
        t.equal(pcall(method) and name ~= '__eq', false, name)
      end
    end
    t.equal(pcall(class.__tostring, io.stdout), false)
    t.equal(class.__eq(5, n), false)
  end)

  spec('a class that was emptied, or filled with anything', function(db, t)
    for _, keeps in ipairs {'__index', ''} do
      local make, class = t.perilune.inherit(db.node)
      local before = make('^a', 'x')
      for key in pairs(class) do
        if key ~= keeps then class[key] = nil end
      end
      for _, node in ipairs {before, make '^a', make('^a', 1), make(before)} do
        t.equal(t.perilune.isnode(node), true)
        pcall(function() return node.__, node.y, node.get, node[1].__ end)
      end
    end
    for _, bad in ipairs {false, -1, 2 ^ 40, 'x', {}, print, db} do
      local make, class = t.perilune.inherit(db.node)
      for i = 1, 3 do class[i] = bad end
      make('^a', 'x').__ = 5
      t.equal({make('^a').x.__, make('^a')[1].__, getmetatable(class)}, {5, nil, false})
      t.equal(pcall(setmetatable, class, {}), false)
    end
  end)

  spec('a node whose class has lost everything', function(_, t)
    local other = t.perilune.open(t.path)
    local n = other.node('^a', 'x')
    n.__ = 5
    local class = getmetatable(n)
    local get = class.get
    for i = 1, 3 do class[i] = nil end
    other = nil
    for _ = 1, 3 do collectgarbage() end
    t.equal({n.__, get(n)}, {5, 5})
    for key in pairs(class) do class[key] = nil end
    for _ = 1, 3 do collectgarbage() end
    t.equal(get(n), 5)
  end)

  spec('functions on what is no database', function(db, t)
    for _, name in ipairs {'close', 'path', 'stat', 'verify', 'names', 'transaction', 'get', 'set', 'incr', 'data',
      'get_many', 'set_many', 'set_each', 'post', 'receive', 'follow', 'snapshot', 'checkpoint'} do
      for _, bad in ipairs(junk(t.perilune)) do t.equal(pcall(db[name], bad, 1, 2, 3), false, name) end
      t.equal(pcall(db[name]), false, name)
      -- What looks like a name must not be searched in what is no database.
      for _, bad in ipairs {5, 'x', io.stdout} do t.equal(pcall(db[name], bad, '^name'), false, name) end
    end
  end)

  spec('figures of a database', function(db, t)
    if t.server then return end -- a server's are its INFO
    local before = db:stat()
    db.node('^a').__ = 1
    local after = db:stat()
    t.equal({after.writes - before.writes, after.names, after.processes}, {1, 1, 1})
    t.equal({after.sessions > 0, after.free_bytes < after.file_bytes, (after.version:match '^%d+%.%d+%.%d+')},
      {true, true, after.version})
  end)

  spec('options of open', function(_, t)
    local open = t.perilune.open
    t.fails('a path must be a string, not a number', open, 5)
    t.fails('a path must not contain a zero byte', open, t.path .. '\0.db')
    t.fails('shm_dir must not contain a zero byte', open, t.path, {shm_dir = '/tmp\0'})
    t.fails('path', open, true)
    t.fails('options must be a table, not a number', open, t.path, 5)
    t.fails("unknown option 'creat'", open, t.path, {creat = true})
    t.fails('create', open, t.path, {create = 'yes'})
    t.fails('durability', open, t.path, {durability = 'always'})
    t.fails('max_size', open, t.path, {max_size = -5})
    t.fails('file_mode', open, t.path, {file_mode = 5.5})
    t.fails('accept_lost_commits', open, t.path, {accept_lost_commits = 'yes'})
    t.fails('unknown option', open, t.path, {1})
    t.fails('inherit', t.perilune.inherit, 5)
    t.fails('inherit', t.perilune.inherit, function() return 5 end)
    t.fails('database', t.perilune.use, 5)
  end)

  spec('errors are tables that say what happened', function(db, t)
    local n = db.node('^a')
    local e = t.fails('perilune: ', n.x.incr, n.x, 'abc')
    t.equal(type(e), 'table')
    t.equal(type(e.code), 'string')
    t.equal(type(e.status), 'number')
    t.equal(e.node, '^a("x")')
    t.equal(e.code, 'NOT_A_NUMBER')
    t.equal(t.perilune.is_error(e), true)
    t.equal(t.perilune.is_error('x'), false)
    t.equal(t.perilune.is_error({}), false)
    t.equal(t.fails('', function() n.x.__ = {} end).code, 'INVALID')
    t.equal(t.fails('', db.node, '5').code, 'INVALID_NAME')
    local where = t.fails('arguments_spec.lua:', function() n.x.__ = {} end)
    t.equal(where.message:find('arguments_spec', 1, true), nil)
  end)

  spec('a closed database', function(db, t)
    local other = t.perilune.open(t.file .. '.closed')
    local n = other.node('^a')
    local child, light, method = n.x, n[5], n[5].get
    local w, loop = n:watch(), {n:children()}
    n.x.__ = 1
    other:close()
    other:close()
    for _, node in ipairs {n, child, light, method} do
      t.fails('closed', function() return node.__ end)
      t.fails('closed', function() node.__ = 1 end)
      t.fails('closed', function() return node:get() end)
      t.fails('closed', function() return node:grab() end)
      t.fails('closed', function() return node:pairs() end)
      t.fails('closed', function() return node:settree {1} end)
    end
    -- Comparing raises nothing.
    t.equal({light ~= nil, light == light, light == n, light == 5, n == light}, {true, true, false, false, false})
    t.fails('closed', w.wait, w, 0)
    t.fails('closed', loop[1], loop[2])
    t.fails('closed', other.node, '^a')
    t.fails('closed', other.transaction, other, print)
    t.fails('closed', other.get, other, '^a')
    t.equal(tostring(other), 'perilune.database (closed)')
    t.equal(db.node('^a').x.__, nil)
    os.remove(t.file .. '.closed')
  end)

  spec('the default database', function(db, t)
    t.equal(t.perilune.use(), db)
    t.perilune.node('^d').__ = 5
    t.equal(db.node('^d').__, 5)
    t.equal(t.perilune.node('^d', 1, 'x'), db.node('^d', 1, 'x'))
    -- One that is opened by its name.
    local memory = t.perilune.use 'memory:'
    t.equal({memory:path(), t.perilune.use() == memory, memory == db}, {'memory:', true, false})
    t.equal(t.perilune.node('^d').__, nil)
    t.fails('', t.perilune.use, t.file .. '.nowhere', {create = false})
    t.equal(t.perilune.use(), memory)
    t.perilune.use(db)
    memory:close()
  end)

  spec('two databases are two', function(db, t)
    local other = t.perilune.open(t.file .. '.two')
    db.node('^x').a.__ = 1
    other.node('^x').a.__ = 2
    db.node('^x')[1].__ = 3
    other.node('^x')[1].__ = 4
    for _ = 1, 3 do
      t.equal({db.node('^x').a.__, other.node('^x').a.__}, {1, 2})
      t.equal({db.node('^x')[1].__, other.node('^x')[1].__}, {3, 4})
    end
    t.equal(db.node('^x') == other.node('^x'), false)
    t.equal(db.node('^x')[1] == other.node('^x')[1], false)
    t.fails('one database', db.node('^x').copy, db.node('^x'), other.node('^x'))
    other:close()
    os.remove(t.file .. '.two')
  end)
end
