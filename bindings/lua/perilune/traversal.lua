-- Traversals: which paths a walk over a graph finds, in which order, described as Neo4j's framework has it.
--
--   for path in g:traversal():breadth_first():expand{types = 'KNOWS'}:max_depth(2):from(7) do print(path) end
--
-- Invariants
-- - What no function of the program decides runs in the library: a step calls Lua once, for its path.
-- - A function of the program is called between two steps, so that it may raise, and use the database.
-- - A walk sees one state: that of the open transaction, of the snapshot that the graph is of, or of a snapshot of its own.
local core = require '_perilune.graph'

-- Taken now: the names may be the program's own later.
local concat, format, error, getmetatable, ipairs, pairs, pcall = table.concat, string.format, error, getmetatable, ipairs, pairs, pcall
local setmetatable, tostring, type = setmetatable, tostring, type

local M = {}

-- ---------------------------------------------------------------------------------- options

local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return format('\\u%04x', c:byte()) end) .. '"'
end

-- Options as the library reads them. What it does not know it refuses, by name.
function M.json(options)
  local out = {}
  for name, value in pairs(options) do
    local text
    if type(value) == 'table' then
      text = {}
      for i, item in ipairs(value) do text[i] = quoted(tostring(item)) end
      text = '[' .. concat(text, ',') .. ']'
    elseif type(value) == 'number' then
      text = format('%.17g', value)
    else
      text = quoted(tostring(value))
    end
    out[#out + 1] = quoted(tostring(name)) .. ':' .. text
  end
  return '{' .. concat(out, ',') .. '}'
end

-- Options of a call, without those that are Lua's alone.
function M.plain(options, without)
  local plain = {}
  for name, value in pairs(options or {}) do
    if not without[name] then plain[name] = value end
  end
  return plain
end

-- ------------------------------------------------------------------------------------ paths

local Path = {}
Path.__index = Path

-- `A-[KNOWS]->B<-[KNOWS]-C`
function Path.__tostring(path)
  local vertices, out = path.vertices, {tostring(path.vertices[1])}
  for i, edge in ipairs(path.edges) do
    local ahead = edge.source == vertices[i]
    out[#out + 1] = format(ahead and '-[%s]->%s' or '<-[%s]-%s', edge.type, tostring(vertices[i + 1]))
  end
  return concat(out)
end

-- A path of these vertices and edges, each of which costs what it is said to.
function M.path(vertices, edges, cost)
  return setmetatable({vertices = vertices, edges = edges, length = #edges, cost = cost, start = vertices[1],
    vertex = vertices[#vertices]}, Path)
end

-- ------------------------------------------------------------------------------------ views

-- The graph as one state, and whether it is of a snapshot of this call's, whose database is to be closed.
function M.view(graph)
  local db = graph.db
  if core.sees_one_state(db) then return graph, false end
  local good, snapshot = pcall(db.snapshot, db)
  if good then return setmetatable({core = graph.core, db = snapshot}, getmetatable(graph)), true end
  error('a walk sees one state, and there is no snapshot of this database (' .. tostring(snapshot)
    .. '): walk in db:transaction', 0)
end

-- ------------------------------------------------------------------------------- evaluation

local EVALUATIONS = {
  include_and_continue = {true, true}, include_and_prune = {true, false}, exclude_and_continue = {false, true},
  exclude_and_prune = {false, false},
}

-- Whether a path counts and is followed, by all evaluators.
local function judge(evaluators, path, graph)
  local includes, continues = true, true
  for _, evaluator in ipairs(evaluators) do
    local include, continue = evaluator(path, graph)
    if type(include) == 'string' then
      local known = EVALUATIONS[include]
      if not known then error('an evaluator answers two truth values, or one of include_and_continue, include_and_prune, '
        .. 'exclude_and_continue, exclude_and_prune, not ' .. include, 0) end
      include, continue = known[1], known[2]
    elseif continue == nil then
      continue = true
    end
    includes = includes and include
    continues = continues and continue
  end
  return includes, continues
end

-- -------------------------------------------------------------------------------- traversal

local Traversal = {}
Traversal.__index = Traversal

-- A traversal of a graph: breadth first, along edges of all types, each vertex once.
function M.new(graph)
  return setmetatable({graph = graph, options = {}, evaluators = {}, least = 0}, Traversal)
end

-- A copy with an option more: a traversal never changes, so that parts of it can be shared.
local function with(this, name, value)
  local copy = {graph = this.graph, options = M.plain(this.options, {}), evaluators = this.evaluators, least = this.least,
    expander = this.expander, price = this.price, most = this.most}
  if name then copy.options[name] = value end
  return setmetatable(copy, Traversal)
end

function Traversal:breadth_first() return with(self, 'order', 'breadth') end
function Traversal:depth_first() return with(self, 'order', 'depth') end
function Traversal:cheapest_first() return with(self, 'order', 'cheapest') end

-- Where edges lead: a table of `direction` and `types`, or a function of a path, and the graph as the walk sees it, that
-- answers a list of edges.
function Traversal:expand(how)
  local copy = with(self)
  if type(how) == 'function' then
    copy.expander = how
  else
    copy.expander = nil
    for name, value in pairs(how) do
      if name ~= 'direction' and name ~= 'types' then error('an expander has direction and types, not ' .. tostring(name), 2) end
      copy.options[name] = value
    end
  end
  return copy
end

-- Asks a function about each path, besides those asked before.
function Traversal:evaluate(evaluator)
  local copy = with(self)
  copy.evaluators = {}
  for i, known in ipairs(self.evaluators) do copy.evaluators[i] = known end
  copy.evaluators[#copy.evaluators + 1] = evaluator
  return copy
end

-- What is not met again, as 'vertex_global' or 'edge_path'; of the recent ones, how many.
function Traversal:uniqueness(kind, recent)
  local copy = with(self, 'uniqueness', kind)
  copy.options.recent = recent
  return copy
end

function Traversal:min_depth(depth)
  local copy = with(self)
  copy.least = depth
  return copy
end

function Traversal:max_depth(depth)
  local copy = with(self, 'max_depth', depth)
  copy.most = depth
  return copy
end

-- What edges cost: 'weight', 'one', or a function of an edge.
function Traversal:cost(cost)
  if type(cost) ~= 'function' then return with(self, 'cost', cost) end
  local copy = with(self)
  copy.price = cost
  return copy
end

-- Limits: vertices, edges, milliseconds.
function Traversal:limit(limits)
  local copy = with(self)
  for name, value in pairs(limits) do copy.options['max_' .. name] = value end
  return copy
end

-- Has the walk go on from its last path by the edges that the program chooses, or at their prices.
local function lead(this, walk, graph, path)
  local edges
  if this.expander then
    edges = this.expander(path, graph)
  else
    edges = graph:edges(path.vertex, {direction = this.options.direction, types = this.options.types})
  end
  local ids, costs, ranks = {}, {}, {}
  for i, edge in ipairs(edges) do
    if type(edge) ~= 'table' then edge = graph:edge(edge) or {id = edge} end
    ids[i] = edge.id
    costs[i] = this.price and this.price(edge, graph) or (this.options.cost == 'weight' and edge.weight or 1)
    ranks[i] = path.cost + costs[i]
  end
  core.lead(walk, graph.db, ids, costs, ranks)
end

-- The next path that counts.
local function step(this, state)
  local walk, graph = state.walk, state.graph
  while true do
    if state.last then lead(this, walk, graph, state.last) end
    state.last = nil
    local vertex, depth, cost = core.next(walk, graph.db)
    if vertex == nil then return nil end
    local is_wanted = depth >= this.least
    local includes, continues, path = true, true, nil
    local decides = this.expander or this.price
    if is_wanted or decides or this.evaluators[1] then
      local vertices, edges = core.path(walk)
      path = M.path(vertices, edges, cost)
    end
    if this.evaluators[1] then includes, continues = judge(this.evaluators, path, graph) end
    if not continues then
      core.prune(walk)
    elseif decides and not (this.most and depth >= this.most) then
      state.last = path
    end
    if includes and is_wanted then return path end
  end
end

-- Walks from vertices: an iterator of paths, each with `vertices`, `edges`, `length`, `cost`, `start` and `vertex`, its end.
function Traversal:from(...)
  local starts = {...}
  local graph, is_own = M.view(self.graph)
  local state = {graph = graph}
  local function close()
    if state.walk then core.close(state.walk) end
    if is_own and state.graph then graph.db:close() end
    state.walk, state.graph = nil, nil
  end
  local good, walk = pcall(core.walk, graph.core, graph.db, starts, M.json(self.options))
  if not good then
    close()
    error(walk, 0)
  end
  state.walk = walk
  local function next_path()
    if not state.walk then return nil end
    local fine, path = pcall(step, self, state)
    if not fine or path == nil then close() end
    if not fine then error(path, 0) end
    return path
  end
  -- From Lua 5.4 on a loop that is left early ends the walk at once.
  return next_path, nil, nil, setmetatable({}, {__close = close})
end

-- All paths of a walk, as a list.
function Traversal:all(...)
  local found = {}
  for path in self:from(...) do found[#found + 1] = path end
  return found
end

return M
