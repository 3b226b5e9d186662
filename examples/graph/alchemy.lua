#!lua name=graphs
-- AlchemyDB's graph functions as a library of a server: FUNCTION LOAD, then
--   LUAFUNC createNamedNode users lo 1 ada
--   LUAFUNC addNodeRelationShipByPK users 1 KNOWS users 2
--   LUAFUNC traverseByPK BFS users 1 REPLY.PATH MAX_DEPTH.3
-- or in SQL: SELECT createNamedNode('users', 'lo', pk, name) FROM users. All of them work on the graph below ^graph.
local function alchemy()
  local graph, root = require 'perilune.graph', perilune.node '^graph'
  local g = root:data() == 0 and graph.create(root) or graph.open(root)
  return require('perilune.graph.alchemy').over(g)
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
