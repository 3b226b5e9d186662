-- What AlchemyDB's callbacks see of a graph: nodes, relations, the state of a traversal.
--
-- A state is x = {w = {node, rtype, relation}, parent = x, depth}, the start's depth being 1. A relation is a map from directions to
-- maps from numbers of edges to records {target = node, property = value, ...}.
--
-- Invariant: a node is one table as long as a program holds it, so == compares nodes.

-- Taken now: the names may be the program's own later.
local concat, error, ipairs, pairs, rawget, setmetatable, sort = table.concat, error, ipairs, pairs, rawget, setmetatable, table.sort
local tostring = tostring

local M = {
  Direction = {BOTH = 0, INCOMING = 1, OUTGOING = 2},
  Uniqueness = {NODE_GLOBAL = 1, NONE = 2, PATH_GLOBAL = 3},
  Evaluation = {INCLUDE_AND_CONTINUE = 1, INCLUDE_AND_PRUNE = 2, EXCLUDE_AND_CONTINUE = 3, EXCLUDE_AND_PRUNE = 4},
}
local BOTH, IN, OUT = M.Direction.BOTH, M.Direction.INCOMING, M.Direction.OUTGOING

-- Nodes: tables whose fields are the properties of their vertices, __name, __tname and __pk among them.
function M.add_nodes(this, g)
  local known = setmetatable({}, {__mode = 'v'})
  local class = {
    __index = function(node, name) return g:get(rawget(node, '__id'), name) end,
    __tostring = function(node) return tostring(node.__name) end,
  }

  function this.id(tname, pk) return tostring(g.db.node('^' .. tname, pk)) end

  -- The node of a vertex.
  function this.of(id)
    local node = known[id]
    if not node then
      node = setmetatable({__id = id}, class)
      known[id] = node
    end
    return node
  end

  -- The node of a row.
  function this.node(tname, pk)
    local id = this.id(tname, pk)
    if not g:has_vertex(id) then error('Node does not exist: ' .. id, 0) end
    return this.of(id)
  end

  function this.start(x)
    while x.parent do x = x.parent end
    return x
  end

  -- `A-[KNOWS]->B<-[KNOWS]-C`
  function this.getPath(x)
    local parts = {}
    while x do
      local name = tostring(x.w.node.__name)
      if x.parent then
        local ahead = x.w.relation[OUT] ~= nil
        parts[#parts + 1] = name
        parts[#parts + 1] = (ahead and '-[%s]->' or '<-[%s]-'):format(x.w.rtype)
      else
        parts[#parts + 1] = name
      end
      x = x.parent
    end
    for i = 1, #parts / 2 do parts[i], parts[#parts + 1 - i] = parts[#parts + 1 - i], parts[i] end
    return concat(parts)
  end

  local function has(relation, direction) return relation[direction] ~= nil end
  function this.expanderOutgoing(_, _, relation) return has(relation, OUT), OUT end
  function this.expanderIncoming(_, _, relation) return has(relation, IN), IN end
  function this.expanderBoth(_, _, relation) return has(relation, OUT) or has(relation, IN), BOTH end
end

-- Relations of nodes, and states of traversals.
function M.over(this, g)
  local R = {}

  -- The record of an edge, seen from one of its ends.
  function R.record(edge, target)
    local record = g:edge_properties(edge.id)
    record.target = target
    return record
  end

  -- All relations of a node, by type.
  local function relations_of(node)
    local found = {}
    for _, side in ipairs {{OUT, 'out', 'target'}, {IN, 'in', 'source'}} do
      for _, edge in ipairs(g:edges(node.__id, {direction = side[2]})) do
        local relation = found[edge.type] or {}
        found[edge.type] = relation
        relation[side[1]] = relation[side[1]] or {}
        relation[side[1]][edge.id] = R.record(edge, this.of(edge[side[3]]))
      end
    end
    return found
  end

  -- The state that a path is.
  function R.state(path)
    local x = {w = {node = this.of(path.vertices[1])}, depth = 1}
    for i, edge in ipairs(path.edges) do
      local node = this.of(path.vertices[i + 1])
      local direction = edge.source == path.vertices[i] and OUT or IN
      x = {w = {node = node, rtype = edge.type, relation = {[direction] = {[edge.id] = R.record(edge, node)}}}, parent = x, depth = i + 1}
    end
    return x
  end

  -- The edges of a relation in a direction.
  local function add_edges(edges, relation, direction)
    for side, records in pairs(relation) do
      if direction == BOTH or side == direction then
        for edge in pairs(records) do edges[#edges + 1] = edge end
      end
    end
  end

  -- In the order in which they were made; a loop once.
  local function in_order(edges)
    sort(edges)
    local once = {}
    for _, edge in ipairs(edges) do
      if once[#once] ~= edge then once[#once + 1] = edge end
    end
    return once
  end

  -- The edges that an expander follows, asked for each type.
  function R.expand(x, expander)
    local all, edges = relations_of(x.w.node), {}
    for rtype, relation in pairs(all) do
      local follows, direction = expander(x, rtype, relation, all)
      if follows then add_edges(edges, relation, direction or OUT) end
    end
    return in_order(edges)
  end

  -- The edges of the relations that an expander answers.
  function R.expand_all(x, expander)
    local edges = {}
    for _, item in ipairs(expander(x, relations_of(x.w.node))) do add_edges(edges, item.relation, BOTH) end
    return in_order(edges)
  end

  return R
end

return M
