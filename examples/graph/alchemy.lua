#!lua name=graphs
-- AlchemyDB's graph functions as a library of a server: FUNCTION LOAD, then
--   LUAFUNC createNamedNode users lo 1 ada
--   LUAFUNC addNodeRelationShipByPK users 1 KNOWS users 2
--   LUAFUNC traverseByPK BFS users 1 REPLY.PATH MAX_DEPTH.3
-- or in SQL: SELECT createNamedNode('users', 'lo', pk, name) FROM users. All of them work on the graph below ^graph.
--
-- Indexes of rows by what their nodes are linked with, for WHERE relindx() = 10, are kept in the transaction of each change:
--   CREATE INDEX visited ON users (relindx()) LONG constructUserGraphHooks destructUserGraphHooks

-- What an index of a kind holds of a node (the other ends of edges, as vertices), and of which nodes an edge changes that.
local function ends(g, vertex, rtype, direction)
  local found = {}
  for _, edge in ipairs(g:edges(vertex, {types = rtype, direction = direction})) do
    found[#found + 1] = direction == 'in' and edge.source or edge.target
  end
  return found
end

local KINDS = {
  -- A user: the cities that he has visited.
  visited = {
    values = function(g, user) return ends(g, user, 'HAS_VISITED', 'out') end,
    changed = function(_, from) return {from} end,
  },
  -- A city: who has visited it.
  visitors = {
    values = function(g, city) return ends(g, city, 'HAS_VISITED', 'in') end,
    changed = function(_, _, to) return {to} end,
  },
  -- A user: the cities that those have visited whom he knows.
  heard_of = {
    values = function(g, user)
      local found = {}
      for _, friend in ipairs(ends(g, user, 'KNOWS', 'out')) do
        for _, city in ipairs(ends(g, friend, 'HAS_VISITED', 'out')) do found[#found + 1] = city end
      end
      return found
    end,
    changed = function(g, from)
      local users = ends(g, from, 'KNOWS', 'in')
      users[#users + 1] = from
      return users
    end,
  },
}

-- Which indexes there are: ^graph_hooks(index) is the kind, ^graph_hooks(index, "table") whose rows it has.
local function hooks() return perilune.node '^graph_hooks' end

-- Writes the entries of a node anew.
local function keep(g, index, kind, vertex)
  local name, key = '"' .. index:gsub('"', '""') .. '"', g:get(vertex, '__pk')
  redis.call('SQL', 'DELETE FROM ' .. name .. ' WHERE key = ?', key)
  for _, other in ipairs(KINDS[kind].values(g, vertex)) do
    redis.call('SQL', 'INSERT OR IGNORE INTO ' .. name .. '(value, key) VALUES (?, ?)', g:get(other, '__pk'), key)
  end
end

local function alchemy()
  local graph, root = require 'perilune.graph', perilune.node '^graph'
  local g = root:data() == 0 and graph.create(root) or graph.open(root)
  local this = require('perilune.graph.alchemy').over(g)
  for index in hooks():subscripts() do
    local kind, tname = hooks()[index]:get(), hooks()[index]['table']:get()
    local function changed(_, from, _, to)
      for _, vertex in ipairs(KINDS[kind].changed(g, from.__id, to.__id)) do
        if g:get(vertex, '__tname') == tname then keep(g, index, kind, vertex) end
      end
    end
    local hook = {func = changed, iname = index}
    table.insert(this.hooks_addNodeRelationShip, hook)
    table.insert(this.hooks_deleteNodeRelationShip, hook)
  end
  return this
end

for _, name in ipairs {
  'createNamedNode', 'addNodePropertyByPK', 'deleteNodePropertyByPK', 'addNodeRelationShipByPK', 'deleteNodeRelationShipByPK',
  'addPropertyToRelationshipByPK', 'deletePropertyToRelationshipByPK', 'traverseByPK',
} do
  redis.register_function(name, function(...) return alchemy()[name](...) end)
end

redis.register_function('deleteNodeByPK', function(...) return alchemy().deleteNodeByPk(...) end)

-- The cost as text, since a reply has no fractions; nothing if there is no path.
redis.register_function('shortestPathByPK', function(...)
  local found = alchemy().shortestPathByPK(...)
  return found and {('%.17g'):format(found.cost), found.path}
end)

-- Constructors of indexes: what the graph has already comes in, the hooks do the rest.
for name, kind in pairs {
  constructUserGraphHooks = 'visited', constructCityGraphHooks = 'visitors', constructFriendGraphHooks = 'heard_of',
} do
  redis.register_function(name, function(tname, index)
    hooks()[index]:set(kind)
    hooks()[index]['table']:set(tname)
    local g = alchemy().graph
    for _, vertex in ipairs(g:vertices(tname)) do keep(g, index, kind, vertex) end
  end)
end

redis.register_function('destructUserGraphHooks', function(_, index) hooks()[index]:kill() end)
