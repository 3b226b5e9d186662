-- Every function of perilune.yottadb with arguments of every kind: nothing crashes, and errors say what is wrong.

local fuzzing = require 'fuzzing'
local low = require 'perilune.yottadb.low'
local perilune = require 'perilune'
local ydb = require 'perilune.yottadb'

return function(spec)
  spec('every function of the module, of nodes, keys and _yottadb', function()
    local random = fuzzing.random
    local nodes = {ydb.node('^a'), ydb.node('^a', 'x', 5), ydb.node('name'), ydb.node('name', {'a', 'b'}), ydb.key('^a'),
      ydb.key('^a', {'x'}), ydb.node('^' .. ('n'):rep(30)), perilune.node('^a')}
    local values = fuzzing.values()
    for _, list in ipairs {nodes, nodes, {ydb.DELETE, '$job', '$ZTIMEOUT', '*', {'*'}, {'name'}, {{'^a', 'x'}, {'^b'}},
      {nodes[1], nodes[2]},
      function() return ydb.YDB_TP_ROLLBACK end, function() ydb.trollback() end, function() return ydb.tp(function() error 'mine' end) end,
      function() nodes[random(#nodes)]:set(random(9)) end}} do
      for _, x in ipairs(list) do values[#values + 1] = x end
    end
    local node = function() return nodes[random(#nodes)] end
    local functions, selves = {}, {}
    local function add(prefix, list, self)
      for name, f in pairs(list) do
        if type(f) == 'function' and not name:find '^__' then functions[prefix .. name], selves[prefix .. name] = f, self end
      end
    end
    add('ydb.', ydb, function() end)
    add('low.', low, function() return ({'^a', 'name', '$x', nodes[1], 5})[random(5)] end)
    add('node:', ydb._node, node)
    add('key:', ydb._key, function() return ({nodes[5], nodes[6]})[random(2)] end)
    functions['index'] = function(x, k) return node()[k], x end
    functions['assign'] = function(x) node().__ = x end
    functions['call'] = function(...) return node()(...) end
    functions['run later'] = function(f, ...) return ydb.transaction(f)(...) end
    -- A restart that never stops is not tried.
    for _, prefix in ipairs {'ydb.', 'low.'} do functions[prefix .. 'trestart'] = nil end
    local fixed = {}
    local function between()
      ydb.lock()
      low.delete_excl {}
      for _, name in ipairs {'^a', '^b', '^' .. ('n'):rep(30)} do ydb.kill(name, {}) end
      ydb.set('^sane', 'x', 'yes')
      assert(ydb.get('^sane', 'x') == 'yes')
    end
    fuzzing.run(functions, function(name) return selves[name] and selves[name]() end, fixed, values, between)
  end)
end
