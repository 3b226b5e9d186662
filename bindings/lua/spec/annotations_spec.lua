-- The types for editors in perilune.lua name everything that there is at run time, and nothing else.

local here = debug.getinfo(1, 'S').source:match '^@(.*)annotations_spec'

-- The fields of each ---@class in perilune.lua: class -> name -> true.
local function annotated()
  local classes, class = {}, nil
  for line in io.lines(here .. '../perilune.lua') do
    local name = line:match '^%-%-%-@class ([%w._]+)'
    if name then
      class = {}
      classes[name] = class
    end
    local field = line:match '^%-%-%-@field ([%w_]+)'
    if field then class[field] = true end
  end
  return classes
end

-- The names in `found`, except those that a program does not use, as `expected` has them.
local function same(t, what, found, expected, except)
  for name in pairs(found) do
    local plain = type(name) == 'string' and not (name:find '^__' or (except and except[name]))
    if plain then t.equal(expected[name], true, what .. ' has ' .. name .. ' without ---@field') end
  end
  for name in pairs(expected) do t.equal(found[name] ~= nil, true, what .. ' has no ' .. name) end
end

return function(spec)
  spec('every name has its type', function(db, t)
    local types, n = annotated(), db.node('^a')
    types['perilune.Node'].__ = nil
    same(t, 'the module', t.perilune, types.perilune)
    local class = {}
    for name, f in pairs(getmetatable(n)) do
      if type(f) == 'function' then class[name] = f end
    end
    same(t, 'a node', class, types['perilune.Node'])
    local database = types['perilune.Database']
    for name in pairs(types['perilune.Transaction']) do database[name] = true end
    for name in pairs(database) do t.equal(type(db[name]), 'function', 'a database: ' .. name) end
    for _, name in ipairs {'close', 'path', 'stat', 'verify', 'names', 'transaction', 'rollback', 'restart', 'restarts', 'level', 'lock',
      'post', 'receive', 'follow', 'get', 'set', 'incr', 'data', 'get_many', 'set_many', 'set_each', 'node', 'snapshot', 'checkpoint',
      'sql', 'rows'} do
      t.equal(database[name], true, 'a database has ' .. name .. ' without ---@field')
    end
    local watch = n:watch()
    for name in pairs(types['perilune.Watch']) do t.equal(type(watch[name]), 'function', 'a watch: ' .. name) end
    db:transaction(function(tx)
      for name in pairs(types['perilune.Transaction']) do t.equal(type(tx[name]), 'function', 'a transaction: ' .. name) end
    end)
  end)
end
