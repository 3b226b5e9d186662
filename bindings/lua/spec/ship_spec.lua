-- Transactions at the server's end: what travels and comes back, what does not and is said, what runs here
-- instead. With a database in a file all of it runs here, with the same results.

local source = require 'perilune.source'

local older = function() return true end
local function one_line() local f, g = function() return 1 end, function() return 2 end return f, g end
local object = {}
function object:method(a) return self, a end
function object.plain(a, ...) return a, ... end
local wide = math.type ~= nil

return function(spec)
  spec('the text of a function is found', function(_, t)
    local function text(f) return (source.of(f, older)) end
    t.equal(text(object.method), 'function(self, a) return self, a end')
    t.equal(text(object.plain), 'function(a, ...) return a, ... end')
    local nested = function()
      if true then -- end
        local s = 'end [[ function' .. [[ end ]]
        for _ = 1, 2 do repeat s = s .. "\"end" until true end
        while #s > 99 do s = '' end
        return function() return s end
      end
    end
    local found = text(nested)
    t.equal(found:sub(1, 11), 'function()\n')
    t.equal(found:sub(-11), 'end\n    end')
    local where = {}
    local code = 'local a = function() end function b.c:d(e) return function (f) end end'
    for _, each in ipairs(source.functions(code)) do
      where[#where + 1] = code:sub(each.from, each.to) .. (each.method and ' method' or '')
    end
    t.equal(where, {'() end', '(f) end', '(e) return function (f) end end method'})
  end)

  spec('a text that is not certain is refused with the reason', function(_, t)
    local f = one_line()
    t.equal(select(2, source.of(f, older)):match 'several functions', 'several functions')
    t.equal(select(2, source.of(print, older)), 'it is a function of C')
    local compile = loadstring or load -- luacheck: ignore
    t.equal(select(2, source.of(compile('return 1', '=stdin'), older)), 'it is a whole file')
    t.equal(select(2, source.of(compile('return function() end', '=stdin')(), older)):match 'kept nowhere', 'kept nowhere')
    t.equal((source.of(compile('local x return function() return x end')(), older)), 'function() return x end')
    local path = t.file .. '.lua'
    local file = io.open(path, 'w')
    file:write 'return function()\n  return 1\nend\n'
    file:close()
    local loaded = dofile(path)
    t.equal(select(2, source.of(loaded, function() return false end)):match 'has changed', 'has changed')
    os.remove(path)
  end)

  -- Where a transaction runs: nodes are tables at the server.
  local function where(db, options, ...)
    local n = db.node '^where'
    return db:transaction(options, function() return type(n) == 'table' and 'server' or 'client' end, ...)
  end

  spec('runs where it can and where it is told', function(db, t)
    local there = t.server and 'server' or 'client'
    t.equal(where(db), wide and 'client' or there)
    t.equal(where(db, {at = 'server'}), there)
    t.equal(where(db, {at = 'client'}), 'client')
    t.fails("must be 'server' or 'client'", where, db, {at = 'moon'})
    t.fails('unknown option', where, db, {att = 'server'})
    -- What has no place at the server runs here.
    local file = io.stdout
    local n = db.node '^where'
    t.equal(db:transaction(function() return file ~= nil and type(n) end) == 'table', false)
    t.equal(db:transaction(function() return os.time() > 0 and type(n) end) == 'table', false)
    -- Nested ones run where the outermost does.
    t.equal(db:transaction({at = 'client'}, function() return where(db) end), 'client')
  end)

  local there = {at = 'server'}

  spec('arguments, upvalues and results travel', function(db, t)
    local n, number, text, list = db.node '^n', 7, 'te\0xt', {1, 2, {deep = true}}
    list.self = list
    local function double(x) return x * 2 end
    local result = {db:transaction(there, function(tx, a, b, c)
      n.a.__ = number
      n('b', 5).__ = text
      n.c:set(a)
      return n.a.__, n('b', 5).__, tx:level(), double(a), list[3].deep, list.self == list, b == nil, c, nil, n.a, #list
    end, 21, nil, list)}
    t.equal(result[1], 7)
    t.equal(result[2], text)
    t.equal(result[3], 1)
    t.equal(result[4], 42)
    t.equal(result[5], true)
    t.equal(result[6], true)
    t.equal(result[7], true)
    t.equal(rawequal(result[8], list), true)
    t.equal(result[9], nil)
    t.equal(result[10] == n.a, true)
    t.equal(result[11], 3)
    t.equal(n:gettree(), {a = 7, b = {[5] = text}, c = 21})
    t.equal(db:transaction(there, function() return 0.1, -1, 2 ^ 53, 1 / 0 end), 0.1)
    t.equal(select('#', db:transaction(there, function() return nil, nil end)), 2)
  end)

  spec('tables and upvalues are afterwards as if it had run here', function(db, t)
    local count, seen, later, gone = 0, {1}, nil, 'here'
    local function note(x)
      count = count + 1
      seen[#seen + 1] = x
      table.insert(seen, {x})
    end
    local shared = seen
    db:transaction(there, function(_, own)
      note 'a'
      note 'b'
      later, gone = {seen}, nil
      own.x, own.y = nil, 'new'
      shared.key = count
    end, seen)
    t.equal(count, 2)
    t.equal({seen[1], seen[2], seen[3][1], seen[4], seen[5][1]}, {1, 'a', 'a', 'b', 'b'})
    t.equal({seen.key, seen.y}, {2, 'new'})
    t.equal(rawequal(later[1], seen), true)
    t.equal(gone, nil)
    note 'c'
    t.equal(count, 3)
    local class = {}
    class.__index = class
    function class:add(by) self.sum = self.sum + by return self end
    local sum = setmetatable({sum = 1}, class)
    t.equal(rawequal(db:transaction(there, function() return sum:add(2):add(3) end), sum), true)
    t.equal(sum.sum, 6)
  end)

  spec('classes of nodes travel', function(db, t)
    local reads, log = 0, {}
    local monitored, class, super = t.perilune.inherit(db.node)
    function class:get(default)
      reads = reads + 1
      return super.get(self, default)
    end
    function class:set(value)
      log[#log + 1] = value
      return super.set(self, value)
    end
    function class:double() return self.__ * 2 end
    local step = monitored '^step'
    step[5].__ = 6
    t.equal({db:transaction(there, function()
      step.x.__ = 8
      return step[5].__, step[5]:get(), step.none:get(3), step[5]:double(), monitored '^step'.x.__
    end)}, {6, 6, 3, 12, 8})
    t.equal(reads, 5)
    t.equal(log, {6, 8})
    t.equal(step.x.__, 8)
  end)

  spec('nodes do at the server what they do here', function(db, t)
    local n = db.node '^m'
    local function work()
      local out = {}
      local function put(...) for i = 1, select('#', ...) do out[#out + 1] = tostring((select(i, ...))) end end
      for i = 1, 3 do n[i].__ = 'v' .. i end
      n.a.b.__ = true
      n['7'].__ = 0.5
      put(n[7].__, n['7']:name(), n.a:data(), n[1]:data(), n:has_tree(), n:has_value())
      put(n:incr(), n:incr(0.1), n:incr(-1.1), n[1]:delete(), n[1]:delete())
      for k, v in n:pairs() do put(k, v) end
      for k in n:subscripts(true) do put(k) end
      for child, value, key in n:children() do put(child, value, key) end
      put(n:next(2), n:next('zzz'), n:previous(3), n:count(), n:depth(), n.a.b:depth(), n:varname())
      put(n.a.b:parent(), n.a.b == n('a', 'b'), n.a == n, n.a.b:subsarray()[2], n.q:get('none'))
      n.a:kill()
      put(n.a:data(), db:get(n, 2), db:data('^m', 3), db:incr(n, 'c', 5), db:set(n, 'd', 1))
      put(n.__get(n.d), db.node(n, 'd').__)
      return table.concat(out, ' ')
    end
    local far = db:transaction(there, work)
    n:kill()
    t.equal(far, db:transaction({at = 'client'}, work))
  end)

  spec('rollback, restart and nested levels', function(db, t)
    local n = db.node '^t'
    n.__ = 1
    t.equal(db:transaction(there, function(tx) n.__ = 2 tx:rollback('value') end), 'value')
    t.equal(n.__, 1)
    t.equal(db:transaction(there, function(tx)
      n.__ = 3
      pcall(tx.rollback, tx, 'kept')
      return 'lost'
    end), 'kept')
    t.equal(n.__, 1)
    t.equal(db:transaction(there, function(tx)
      n.a.__ = 1
      local inner = tx:transaction(function(tx2, x)
        n.b.__ = x
        if tx2:level() == 2 then tx2:rollback('inner') end
      end, 5)
      local good, why = pcall(tx.transaction, tx, function() n.c.__ = 3 error('x', 0) end)
      db:transaction(function() n.d.__ = 4 end)
      return inner .. tostring(good) .. why .. tx:level()
    end), 'innerfalsex1')
    t.equal(n:gettree(), {__ = 1, a = 1, d = 4})
    t.equal(db:transaction(there, function(tx)
      if tx:restarts() < 2 then n.e.__ = 1 tx:restart() end
      return tx:restarts(), n.e.__
    end), 2)
    t.equal(n.e.__, nil)
  end)

  spec('errors keep their text, place and kind, and nothing is written', function(db, t)
    local n = db.node '^t'
    local good, why = pcall(db.transaction, db, there, function()
      n.__ = 1
      error 'broken'
    end)
    t.equal(good, false)
    t.equal(why:match 'ship_spec.lua:%d+: broken' ~= nil, true)
    t.equal(n.__, nil)
    local object_raised = {kind = 'mine'}
    t.equal(rawequal(select(2, pcall(db.transaction, db, there, function() error(object_raised) end)), object_raised), true)
    n.__ = 'text'
    local code = select(2, pcall(db.transaction, db, there, function() n:incr() end)).code
    t.equal(code, select(2, pcall(db.transaction, db, {at = 'client'}, function() n:incr() end)).code)
    -- Caught there as here, whoever runs it.
    local function caught()
      local ok, e = pcall(n.incr, n)
      return ok, type(e) == 'table' and e.code
    end
    t.equal({db:transaction(there, caught)}, {false, code})
    t.equal({db:transaction(caught)}, {false, code})
    t.fails('read', db.transaction, db, {read_only = true, at = 'server'}, function() n.__ = 2 end)
    t.equal(n.__, 'text')
  end)

  -- What one function does there and here; `n` is emptied between.
  local function both(db, t, n, work, ...)
    n:kill()
    local far = {db:transaction(there, work, ...)}
    n:kill()
    t.equal(far, {db:transaction({at = 'client'}, work, ...)})
    n:kill()
    -- And without being told it runs at the server, if this Lua sends at all.
    local place = db:transaction(function(...)
      work(...)
      return type(n) == 'table' and 'server' or 'client'
    end, ...)
    t.equal(place, t.server and not wide and 'server' or 'client')
  end

  spec('trees of tables are stored and read at the server', function(db, t)
    local n, perilune = db.node '^trees', t.perilune
    local tree = {1, 2, {deep = {x = 'y'}, __ = 'own'}, name = 'n\0m', ['2.5'] = true, empty = {}, list = perilune.list {},
      null = perilune.null, none = perilune.empty_map}
    both(db, t, n, function(_, argument)
      n.gone.__, n.kept.__ = 1, 2
      argument.gone = perilune.DELETE
      n:settree(argument)
      local found, seen = n:gettree(), {}
      n.a:settree({x = 1, y = 2, z = {1, 2}}, function(parent, key, value)
        if key == 'y' then return nil end
        if key == 'x' then return 'w', value + 1 end
        seen[#seen + 1] = tostring(parent) .. tostring(key)
        return key, value
      end)
      table.sort(seen)
      local shown = {}
      local filtered = n.a:gettree(function(node, key, value, into, depth)
        shown[#shown + 1] = tostring(node) .. '|' .. tostring(key) .. '|' .. tostring(value) .. '|' .. tostring(into) .. depth
        return value, key ~= 'z'
      end)
      return found[1], found[2], found[3].__, found[3].deep.x, found.name, found[2.5], found.gone, found.kept,
        next(found.empty) == nil, getmetatable(found.list) ~= nil, found.null == perilune.null, next(found.none) == nil,
        n.none.__ == perilune.empty_map, n.list.__ == perilune.empty_list, n(3):gettree(0), n(3):gettree(1), n.nothing:gettree(),
        n.a:gettree(), filtered, table.concat(seen, ' '), table.concat(shown, ' '), found
    end, tree)
    t.equal(n:tojson() ~= nil, true)
    -- All of it or nothing.
    local long = ('x'):rep(5000)
    n:kill()
    t.equal({db:transaction(there, function()
      return (pcall(n.settree, n, {1, 2, 3, [long] = 1})), n:gettree()
    end)}, {false, nil})
  end)

  spec('walks with a range, comparisons and copies run at the server', function(db, t)
    local n = db.node '^ranges'
    both(db, t, n, function(_)
      local out = {}
      local function put(...) for i = 1, select('#', ...) do out[#out + 1] = tostring((select(i, ...))) end end
      local function list(range)
        put '|'
        for k in n:subscripts(range) do put(k) end
        for k, v in n:pairs(range) do put(k, v) end
        for child, value, key in n:children(range) do put(child, value, key) end
      end
      for i = 1, 5 do n[i].__ = 'v' .. i end
      n.a.b.__, n.b.__ = 1, 2
      for _, range in ipairs {{}, {from = 2}, {after = 2}, {to = 4}, {before = 4}, {from = 2, to = 'a'}, {from = 2.5, before = 'b'},
        {reverse = true, from = 'a', to = 3}, {reverse = true, after = 'a', before = 3}, {from = 4, to = 2}, {from = 9}} do
        list(range)
      end
      for node, value in n:nodes() do put(node, value) end
      for node, value in n:nodes(true) do put(node, value) end
      for node, value in n.a:nodes(true) do put(node, value) end
      for i, v in n:ipairs() do put(i, v) end
      for i, v in n:ipairs(4, 2) do put(i, v) end
      for i, v in n:ipairs(3, 3) do put(i, v) end
      put(n:count(), n:count 'children', n:count 'nodes', n.a:count 'nodes')
      put(n.a.b:parent(0), n.a.b:parent(1), n.a.b:parent(2), n.a.b:parent(3), n:parent(), n.a:contains(n.a.b), n.a.b:contains(n.a))
      put(n['7']:contains(n(7, 'x')), n('7', 'x'):subscript(1), n.a.b:subscript(), n.a.b:subscript(-2), n.a:subscript(5))
      put(n.b:cas(2, 3), n.b:cas(2, 4), n.b:cas('3', 5), n.b:cas(nil, 6), n.c:cas(nil, true), n.c:cas(true, nil), n.c.__, n.b.__)
      put(n.a:copy(n.d), n[1]:merge(n.d), n.d:gettree().b, n.d.__)
      local values = db:get_many {n[1], n.none, n[2]}
      put(values[1], values[2], values[3])
      db:set_many({n[1], n[2]}, {'one', nil})
      db:set_each({n[3], n.e}, {'three', 0.5})
      put(n[1].__, n[2].__, n[3].__, n.e.__)
      for k in n:subscripts() do
        if type(k) == 'number' and k < 20 then n[k + 10].__ = k end -- it sees what it writes ahead of it
        put(k)
      end
      return table.concat(out, ' ')
    end)
  end)

  spec('errors are caught, and JSON is read and written, at the server', function(db, t)
    local n, perilune = db.node '^caught', t.perilune
    both(db, t, n, function()
      n.__ = 'text'
      local found = {}
      local function note(good, e)
        found[#found + 1] = {good, type(e), e.code, e.status, e.message, e.node, perilune.is_error(e)}
      end
      note(pcall(function() n:incr() end))
      note(pcall(n.incr, n))
      note(pcall(n.copy, n, n.below))
      note(pcall(function()
        n[('x'):rep(250)].__ = 'text'
        return n[('x'):rep(250)]:incr()
      end))
      n.after.__ = #found
      return found, n.after.__, select(2, pcall(error, 'mine')), perilune.is_error {}
    end)
    both(db, t, n, function()
      n:fromjson '{"a": [1, -2.5, 1e300, "t\\u00e9\\ud83d\\ude00\\n", null, true], "": {"__": 0.5, "x": {}}, "l": [], "n": 1e2}'
      local text = n:tojson()
      n.double.__, n.third.__, n.text.__ = 1.5e-200, 1 / 3, 'a"\\\1\255'
      n.sum:incr(0.25)
      return text, n:tojson(), n.a:tojson(), n.none:tojson(), n.a[1]:tojson(), n.l:tojson()
    end)
    -- Who looks at the place of an error, or through it, is run here.
    for _, how in ipairs {'where', 'text', 'next', 'raw', 'metatable', 'stored'} do
      n:kill()
      t.equal({db:transaction(function()
        n.__ = 'text'
        local _, e = pcall(function() n:incr() end)
        local seen = true
        if how == 'where' then seen = e.where ~= '' end
        if how == 'text' then seen = #tostring(e) > 30 end
        if how == 'next' then seen = next(e) ~= nil end
        if how == 'raw' then seen = rawget(e, 'code') == 'NOT_A_NUMBER' end
        if how == 'metatable' then seen = type(getmetatable(e)) == 'table' end
        if how == 'stored' then n.e:settree(e) seen = n.e.code.__ == 'NOT_A_NUMBER' end
        return type(n) == 'table', seen
      end)}, {false, true}, how)
    end
    t.equal(db:transaction(function() return (pcall(n.fromjson, n, '[1')) end), false)
  end)

  spec('a function that ends in an error has run once', function(db, t)
    local n, runs, absent = db.node '^once', 0, nil
    local function failing(how)
      runs = 0
      return select(2, pcall(db.transaction, db, function()
        runs = runs + 1
        n.runs:incr()
        if how == 'error' then error('broken ' .. type(n):sub(1, 1)) end
        if how == 'table' then error {code = 'mine', at = type(n)} end
        if how == 'nil' then return absent.field end
        n.__ = 'text'
        n:incr()
      end))
    end
    local far = t.server ~= nil and not wide
    t.equal(failing('error'):gsub('^.*ship_spec', 'ship_spec'):match '^ship_spec.lua:%d+: broken (%a)$', far and 't'
      or type(n):sub(1, 1))
    t.equal(failing('table').at == 'table', far)
    local raised = failing 'nil'
    t.equal(raised:match 'ship_spec.lua:%d+: attempt to index.*nil value' and raised:match "upvalue 'absent'" ~= nil, true)
    local failure = failing 'operation'
    t.equal({failure.code, failure.node, failure.where:match 'ship_spec.lua:%d+: '},
      {'NOT_A_NUMBER', '^once', failure.where:match 'ship_spec.lua:%d+: $'})
    t.equal(tostring(failure):match '^.-ship_spec.lua:%d+: perilune: .- %(at ^once%)$' ~= nil, true, tostring(failure))
    n.__ = 'text'
    t.equal(failure.status, select(2, pcall(n.incr, n)).status)
    t.equal(runs, 1)
    t.equal(n.runs.__, nil)
  end)

  if os.getenv 'PERILUNE_SPEC_SERVER' then
    spec('what cannot travel is named', function(db, t)
      local n = db.node '^t'
      local file, thread, private = io.stdout, coroutine.create(function() end), db.node 'private'
      local deep = {inner = {handle = io.stdout}}
      local function refused(part, f) t.fails(part, db.transaction, db, there, f) end
      refused("upvalue 'file' (a userdata) cannot travel", function() n.__ = 1 return file end)
      refused("upvalue 'thread' (a thread) cannot travel", function() return thread end)
      refused("upvalue 'deep', field \"inner\", field \"handle\" (a userdata)", function() return deep end)
      refused("upvalue 'private' (a node of this program alone, without ^)", function() return private.__ end)
      refused("the global 'print' (a function: it is a function of C)", function() n.__ = 1 print 'x' end)
      t.fails('argument 1 (a userdata)', db.transaction, db, there, function(_, x) return x end, file)
      refused("the method 'grab' of a node works in the program only", function() n:grab() end)
      refused("the global 'made' is set", function() made = 1 end) -- luacheck: ignore
      refused('several functions', one_line())
      refused('made at the server cannot come back', function()
        return function() end
      end)
      t.equal(n.__, nil)
      t.equal(rawget(_G, 'made'), nil)
      -- Without `at = 'server'` such a function runs here.
      t.equal(db:transaction(function() n.__ = 1 return file end), file)
      t.equal(n.__, 1)
    end)

    spec('a long function is stopped at its time limit and has written nothing', function(db, t)
      local n = db.node '^t'
      local good, why = pcall(db.transaction, db, {at = 'server', timeout = 0.2}, function()
        n.__ = 1
        while n.stop.__ ~= 1 do n.count.__ = 1 end
      end)
      t.equal({good, why.code, n:gettree()}, {false, 'TRANSACTION_TIMEOUT', nil})
      t.equal(where(db, there), 'server')
    end)
  end
end
