-- AlchemyDB's names over perilune.graph: nodes of rows, relationships, traversals with option strings.
--
--   local alchemy = require('perilune.graph.alchemy').over(g)
--   alchemy.createNamedNode('cities', 'lo', 10, 'DC')
--   alchemy.addNodeRelationShipByPK('cities', 10, 'PATH', 'cities', 20)
--   alchemy.traverseByPK('BFS', 'cities', 10, 'REPLY.PATH', 'MAX_DEPTH.3')
--
-- A node stands for the row ^table(pk), which must exist, and is the vertex of that name: rows of two tables with one key are
-- two. Depths count from 1. Each change is a transaction, with what its hooks do.
--
-- What differs on purpose: a relation lists edges by their numbers, so that rows with one key do not collide; included and
-- pruned paths are included; costs keep their fractions; PATH_GLOBAL goes by edges, not by names; unknown options are errors.
local graph_part = require 'perilune.graph.relations'

-- Taken now: the names may be the program's own later.
local error, ipairs, pairs, tonumber, tostring, type = error, ipairs, pairs, tonumber, tostring, type
local huge, sqrt = math.huge, math.sqrt

local Direction, Evaluation, Uniqueness = graph_part.Direction, graph_part.Evaluation, graph_part.Uniqueness
local OUT, IN = Direction.OUTGOING, Direction.INCOMING

local KEYWORDS = {__tname = true, __cname = true, __pk = true, __name = true, __dump = true, r = true}
local UNIQUE = {[Uniqueness.NODE_GLOBAL] = 'vertex_global', [Uniqueness.NONE] = 'none', [Uniqueness.PATH_GLOBAL] = 'edge_global'}
local EVALUATED = {'include_and_continue', 'include_and_prune', 'exclude_and_continue', 'exclude_and_prune'}

local M = {}

-- The functions of the option strings, before a program registers its own.
local function registries(this)
  local function leads_back(x, relation)
    local start = this.start(x).w.node
    for _, record in pairs(relation[OUT] or {}) do
      if record.target == start then return true end
    end
    return false
  end
  local function picture(x, rtype, relation) return rtype == 'VIEWED_PIC' and leads_back(x, relation), OUT end
  return {
    ReplyFuncs = {
      NODENAME = function(x) return x.w.node.__name end, PATH = this.getPath,
      NODENAME_AND_PATH = function(x) return {x.w.node.__name, this.getPath(x)} end,
    },
    RelationshipCostFuncs = {WEIGHT = function(record) return tonumber(record.weight) or huge end},
    NodeDeltaFuncs = {GEO = function(a, b) return sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2) end},
    EdgeEvalFuncs = {
      FOF = function(x)
        if x.depth < 4 then return Evaluation.EXCLUDE_AND_CONTINUE end
        return x.depth == 4 and Evaluation.INCLUDE_AND_CONTINUE or Evaluation.INCLUDE_AND_PRUNE
      end,
    },
    ExpanderFuncs = {
      OUTGOING = this.expanderOutgoing, INCOMING = this.expanderIncoming, BOTH = this.expanderBoth,
      DEFAULT = this.expanderOutgoing,
      FOF = function(x, rtype, relation)
        if x.depth < 3 then return rtype == 'KNOWS' and relation[OUT] ~= nil, OUT end
        return picture(x, rtype, relation)
      end,
    },
    AllRelationshipExpanderFuncs = {
      FOF = function(x, relations)
        local relation = relations.VIEWED_PIC
        if not relation or not relation[OUT] then return {} end
        if x.depth >= 3 and not leads_back(x, relation) then return {} end
        return {{rtype = 'VIEWED_PIC', relation = {[OUT] = relation[OUT]}}}
      end,
    },
  }
end

-- Which registry an option's word is looked up in, and which option of a traversal it then is.
local OPTIONS = {
  EXPANDER = {'ExpanderFuncs', 'expander_func'}, ALL_RELATIONSHIP_EXPANDER = {'AllRelationshipExpanderFuncs', 'all_rel_expander_func'},
  EDGE_EVAL = {'EdgeEvalFuncs', 'edge_eval_func'}, RELATIONSHIP_COST = {'RelationshipCostFuncs', 'rel_cost_func'},
  NODE_DELTA = {'NodeDeltaFuncs', 'node_delta_func'}, REPLY = {'ReplyFuncs', 'reply_func'},
}

-- Option strings, as `EXPANDER.BOTH`, as a table.
local function options_of(registry, ...)
  local options = {}
  for _, text in ipairs {...} do
    local prefix, word = tostring(text):match '^([%u_]+)%.(.+)$'
    local known = OPTIONS[prefix]
    if known then
      options[known[2]] = registry[known[1]][word] or error(prefix .. '.' .. word .. ' function not found', 0)
    elseif prefix == 'UNIQUENESS' then
      options.uniqueness = Uniqueness[word] or error('UNIQUENESS is NODE_GLOBAL, NONE or PATH_GLOBAL, not ' .. word, 0)
    elseif prefix == 'MIN_DEPTH' or prefix == 'MAX_DEPTH' then
      options[prefix:lower()] = tonumber(word) or error(prefix .. ' is a number, not ' .. word, 0)
    else
      error('there is no option ' .. tostring(text), 0)
    end
  end
  return options
end

-- Properties, relationships and their hooks.
local function add_changes(this, g)
  local db = g.db

  local function once(f) return db:transaction(f) end

  function this.createNamedNode(tname, cname, pk, name)
    return once(function()
      if db.node('^' .. tname, pk):data() == 0 then error(tname .. ' ' .. tostring(pk) .. ' ROW does not exist', 0) end
      local id = this.id(tname, pk)
      if g:has_vertex(id) then error('Node already exists', 0) end
      g:add_vertex(id, {tname}, {__tname = tname, __cname = cname, __pk = pk, __name = name})
      return 'CREATED NODE'
    end)
  end

  function this.deleteNodeByPk(tname, pk)
    g:delete_vertex(this.node(tname, pk).__id, true)
    return 'DELETED NODE'
  end

  function this.addNodeProperty(node, key, value)
    if KEYWORDS[key] then error("Keyword violation: '" .. key .. "' is reserved", 0) end
    return once(function()
      if g:get(node.__id, key) ~= nil then error('Property already exists', 0) end
      g:set(node.__id, key, value)
      return 'PROPERTY ADDED'
    end)
  end

  function this.deleteNodeProperty(node, key)
    return once(function()
      if KEYWORDS[key] or g:get(node.__id, key) == nil then error('Property does not exist', 0) end
      g:set(node.__id, key, nil)
      return 'PROPERTY DELETED'
    end)
  end

  -- The edge of a type from one node to another.
  local function between(from, rtype, to)
    for _, edge in ipairs(g:edges(from.__id, {types = rtype})) do
      if edge.target == to.__id then return edge.id end
    end
  end

  local function edge_of(from, rtype, to) return between(from, rtype, to) or error('Relationship does not exist', 0) end

  local function run(hooks, from, rtype, to)
    for _, hook in ipairs(hooks) do hook.func(hook.iname, from, rtype, to) end
  end

  function this.addNodeRelationShip(from, rtype, to)
    return once(function()
      local old = between(from, rtype, to)
      if old then g:delete_edge(old) end
      g:add_edge(from.__id, rtype, to.__id)
      run(this.hooks_addNodeRelationShip, from, rtype, to)
      return 'ADDED RELATIONSHIP'
    end)
  end

  function this.deleteNodeRelationShip(from, rtype, to)
    return once(function()
      g:delete_edge(edge_of(from, rtype, to))
      run(this.hooks_deleteNodeRelationShip, from, rtype, to)
      return 'DELETED RELATIONSHIP'
    end)
  end

  function this.addPropertyToRelationship(from, rtype, to, key, value)
    return once(function()
      g:set_edge(edge_of(from, rtype, to), key, value)
      return 'PROPERTY ADDED TO RELATION'
    end)
  end

  function this.deletePropertyToRelationship(from, rtype, to, key)
    return once(function()
      g:set_edge(edge_of(from, rtype, to), key, nil)
      return 'PROPERTY DELETED TO RELATION'
    end)
  end

  -- The same by table and key.
  for _, name in ipairs {'addNodeProperty', 'deleteNodeProperty'} do
    this[name .. 'ByPK'] = function(tname, pk, ...) return this[name](this.node(tname, pk), ...) end
  end
  for _, name in ipairs {'addNodeRelationShip', 'deleteNodeRelationShip', 'addPropertyToRelationship', 'deletePropertyToRelationship'} do
    this[name .. 'ByPK'] = function(tname, pk, rtype, other, other_pk, ...)
      return this[name](this.node(tname, pk), rtype, this.node(other, other_pk), ...)
    end
  end

  -- Shows `add` every edge, to fill an index; from then on its hooks keep it.
  function this.buildIndex(add, iname)
    once(function()
      for _, edge in ipairs(g:edges()) do add(iname, this.of(edge.source), edge.type, this.of(edge.target)) end
    end)
  end
end

-- Traversals and shortest paths.
local function add_walks(this, g, registry)
  local relations = graph_part.over(this, g)

  -- Callbacks read the graph, too: all of it is one state, of a transaction, which may run again.
  local function once(f) return g.db:transaction({read_only = true}, f) end

  local function traverse(order, node, reply, options)
    local walk = g:traversal()
    if order == 'DFS' then walk = walk:depth_first() end
    walk = walk:uniqueness(UNIQUE[options.uniqueness or Uniqueness.NODE_GLOBAL] or error('no such uniqueness', 0))
    if options.min_depth then walk = walk:min_depth(options.min_depth - 1) end
    if options.max_depth then walk = walk:max_depth(options.max_depth - 1) end
    local evaluate = options.edge_eval_func
    if evaluate then walk = walk:evaluate(function(path) return EVALUATED[evaluate(relations.state(path))] end) end
    walk = walk:expand(function(path)
      local x = relations.state(path)
      if options.all_rel_expander_func then return relations.expand_all(x, options.all_rel_expander_func) end
      return relations.expand(x, options.expander_func or this.expanderOutgoing)
    end)
    return once(function()
      local replies = {}
      for path in walk:from(node.__id) do replies[#replies + 1] = reply(relations.state(path)) end
      return replies
    end)
  end

  function this.traverse_bfs(node, reply, options) return traverse('BFS', node, reply, options or {}) end
  function this.traverse_dfs(node, reply, options) return traverse('DFS', node, reply, options or {}) end

  function this.traverseByPK(order, tname, pk, ...)
    if order ~= 'BFS' and order ~= 'DFS' then error('a traversal is BFS or DFS, not ' .. tostring(order), 0) end
    local options = options_of(registry, ...)
    return traverse(order, this.node(tname, pk), options.reply_func or registry.ReplyFuncs.NODENAME, options)
  end

  function this.findShortestPath(from, to, options)
    options = options or {}
    local of_relation, of_nodes = options.rel_cost_func, options.node_delta_func
    local function cost(edge)
      local one = 1
      if of_relation then
        one = of_relation(relations.record(edge, this.of(edge.target)))
      elseif of_nodes then
        one = of_nodes(this.of(edge.source), this.of(edge.target))
      end
      -- What costs for ever is not gone.
      return one ~= huge and one or nil
    end
    return once(function()
      local path = g:dijkstra(from.__id, to.__id, {cost = cost})
      return path and {cost = path.cost, path = this.getPath(relations.state(path))} or nil
    end)
  end

  function this.shortestPathByPK(tname, pk, other, ...)
    return this.findShortestPath(this.node(tname, pk), this.node(tname, other), options_of(registry, ...))
  end
end

-- AlchemyDB's functions over a graph.
function M.over(g)
  local this = {graph = g, hooks_addNodeRelationShip = {}, hooks_deleteNodeRelationShip = {}, Direction = Direction,
    Evaluation = Evaluation, Uniqueness = Uniqueness}
  graph_part.add_nodes(this, g)
  local registry = registries(this)
  add_changes(this, g)
  add_walks(this, g, registry)

  function this.registerFunc(name, key, func)
    local known = registry[name] or error('there is no registry ' .. tostring(name), 0)
    if type(func) ~= 'function' then error('a function is registered, not a ' .. type(func), 0) end
    known[key] = func
  end

  return this
end

return M
