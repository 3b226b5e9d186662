-- Graphs: vertices with labels and properties, edges of types between them, walks, searches, algorithms.
--
--   local graph = require 'perilune.graph'
--   local g = graph.create(db.node '^social')
--   g:add_vertex('ada', {'Person'}, {born = 1815}); g:add_vertex('ben', {'Person'})
--   g:add_edge('ada', 'KNOWS', 'ben')
--   for path in g:traversal():max_depth(2):from 'ada' do print(path) end
--
-- Each change is a transaction, or a level of the open one. A vertex is a string, an integer, or a node of the database, which
-- it then stands for. docs/reference/lua.md has all of it.
require 'perilune' -- first: it says where _perilune.graph is
local core = require '_perilune.graph'
local traversal = require 'perilune.traversal'

-- Taken now: the names may be the program's own later.
local error, ipairs, next, pairs, pcall, type = error, ipairs, next, pairs, pcall, type
local huge, setmetatable = math.huge, setmetatable

local json, plain = traversal.json, traversal.plain
local DIRECTIONS = {out = 0, ['in'] = 1, both = 2}

local Graph = {}
Graph.__index = Graph

local function new(made, db) return setmetatable({core = made, db = db}, Graph) end

-- ---------------------------------------------------------------------------------- changes

-- Runs f once if it is one change, and as a transaction if there are more.
local function together(this, properties, f)
  if not properties or next(properties) == nil then return f() end
  return this.db:transaction(f)
end

function Graph:add_vertex(id, labels, properties)
  if core.adds_whole then
    core.add_vertex(self.core, self.db, id, labels, properties)
    return core.vertex(id)
  end
  together(self, properties, function()
    core.add_vertex(self.core, self.db, id, labels)
    for name, value in pairs(properties or {}) do core.set(self.core, self.db, id, name, value) end
  end)
  return core.vertex(id)
end

-- Deletes a vertex; with edges only if told so.
function Graph:delete_vertex(id, with_edges) core.delete_vertex(self.core, self.db, id, with_edges or false) end

function Graph:has_vertex(id) return core.has_vertex(self.core, self.db, id) end
function Graph:add_label(id, label) core.set_label(self.core, self.db, id, label, true) end
function Graph:remove_label(id, label) core.set_label(self.core, self.db, id, label, false) end
function Graph:get(id, name) return core.get(self.core, self.db, id, name) end
function Graph:set(id, name, value) core.set(self.core, self.db, id, name, value) end
function Graph:add_index(label, property) core.set_index(self.core, self.db, label, property, true) end
function Graph:drop_index(label, property) core.set_index(self.core, self.db, label, property, false) end

function Graph:add_edge(source, kind, target, properties)
  if core.adds_whole then return core.add_edge(self.core, self.db, source, kind, target, properties) end
  return together(self, properties, function()
    local edge = core.add_edge(self.core, self.db, source, kind, target)
    for name, value in pairs(properties or {}) do core.set_edge(self.core, self.db, edge, name, value) end
    return edge
  end)
end

function Graph:delete_edge(edge) core.delete_edge(self.core, self.db, edge) end
function Graph:get_edge(edge, name) return core.get_edge(self.core, self.db, edge, name) end
function Graph:set_edge(edge, name, value) core.set_edge(self.core, self.db, edge, name, value) end

-- -------------------------------------------------------------------------------- questions

local function ask(this, question, arguments, options, db)
  return core.ask(this.core, db or this.db, question, arguments, options and json(options) or nil)
end

-- One question over one state; what reads the whole graph takes a snapshot, which waits for nobody.
local function ask_whole(this, question, arguments, options)
  if core.sees_one_state(this.db) then return ask(this, question, arguments, options) end
  local good, snapshot = pcall(this.db.snapshot, this.db)
  if not good then return ask(this, question, arguments, options) end
  local fine, rows = pcall(ask, this, question, arguments, options, snapshot)
  snapshot:close()
  if not fine then error(rows, 0) end
  return rows
end

local function column(rows, name)
  local list = {}
  for i, row in ipairs(rows) do list[i] = row[name] end
  return list
end

local function scores(rows, name)
  local found = {}
  for _, row in ipairs(rows) do found[row.vertex] = row[name] end
  return found
end

local null = require('perilune').null

local function properties(rows)
  local found = {}
  for _, row in ipairs(rows) do
    if row.value == nil then found[row.name] = null else found[row.name] = row.value end
  end
  return found
end

local function edge_of(row)
  return {id = row.edge, source = row.source, type = row.type, target = row.target, weight = row.weight}
end

function Graph:labels(id) return column(ask(self, 'labels', {core.vertex(id)}), 'label') end
function Graph:properties(id) return properties(ask(self, 'properties', {core.vertex(id)})) end
function Graph:edge_properties(edge) return properties(ask(self, 'edge_properties', {edge})) end
function Graph:vertices(label) return column(ask(self, 'vertices', {label}), 'vertex') end
function Graph:find(label, property, value) return column(ask(self, 'find', {label, property, value}), 'vertex') end

-- How many vertices there are, and edges.
function Graph:count()
  local row = ask(self, 'count', {})[1]
  return row.vertices, row.edges
end

-- An edge as a table of id, source, type, target, weight; nil: there is none.
function Graph:edge(edge)
  local row = ask(self, 'edge', {edge})[1]
  return row and edge_of(row)
end

-- The edges of a vertex, or of all: those that leave, unless the options name another direction; of some types.
function Graph:edges(id, options)
  local rows = ask(self, 'edges', {id ~= nil and core.vertex(id) or nil}, options)
  for i, row in ipairs(rows) do rows[i] = edge_of(row) end
  return rows
end

-- How many edges a vertex has; nothing is walked.
function Graph:degree(id, direction, kind)
  local number = DIRECTIONS[direction or 'both']
  if not number then error("a direction is 'out', 'in' or 'both'", 2) end
  return core.degree(self.core, self.db, id, number, kind)
end

-- True, or false and what is wrong; and how many vertices and edges there are.
function Graph:check()
  local rows = ask_whole(self, 'check', {})
  local faults = column(rows, 'fault')
  if #faults == 0 then return true, rows[1].vertices, rows[1].edges end
  return false, faults
end

-- --------------------------------------------------------------------------- walks, searches

function Graph:traversal() return traversal.new(self) end

-- Rows of steps as paths.
local function paths_of(rows)
  local paths, vertices, edges, number, cost = {}, nil, nil, nil, nil
  local function finish()
    if vertices then paths[#paths + 1] = traversal.path(vertices, edges, cost) end
  end
  for _, row in ipairs(rows) do
    if row.path ~= number then
      finish()
      vertices, edges, number = {}, {}, row.path
    end
    vertices[#vertices + 1] = row.vertex
    if row.edge then edges[#edges + 1] = edge_of(row) end
    cost = row.cost
  end
  finish()
  return paths
end

local OURS = {cost = true, estimate = true}

-- A search whose costs are functions of the program: a walk by cost and estimate, which passes over what has become cheaper.
local function search(this, from, to, options)
  local price, estimate = options.cost, options.estimate or function() return 0 end
  local walks = plain(options, OURS)
  walks.order, walks.uniqueness = 'cheapest', 'none'
  local reach = {direction = options.direction, types = options.types}
  local goal, graph, is_own = core.vertex(to), traversal.view(this)
  local db = graph.db
  local function run()
    if not graph:has_vertex(goal) then ask(graph, 'shortest_path', {goal, goal}) end
    local best = {}
    local walk = core.walk(graph.core, db, {from}, json(walks))
    while true do
      local vertex, depth, cost = core.next(walk, db)
      if vertex == nil then return nil end
      if depth == 0 then best[vertex] = 0 end
      if vertex == goal then
        local vertices, edges = core.path(walk)
        return traversal.path(vertices, edges, cost)
      end
      if cost > (best[vertex] or huge) then
        core.prune(walk)
      else
        local ids, costs, ranks = {}, {}, {}
        for _, edge in ipairs(graph:edges(vertex, reach)) do
          local other = edge.source == vertex and edge.target or edge.source
          local one = edge.weight or huge
          if price then one = price(edge, graph) end
          local all = cost + (one or 0)
          -- What is no cost is for the walk to refuse.
          if one and (all < (best[other] or huge) or one - one ~= 0 or one < 0) then
            best[other] = all
            ids[#ids + 1], costs[#costs + 1], ranks[#ranks + 1] = edge.id, one, all + estimate(other, graph)
          end
        end
        core.lead(walk, db, ids, costs, ranks)
      end
    end
  end
  local good, path = pcall(run)
  if is_own then db:close() end
  if not good then error(path, 0) end
  return path
end

-- The path of the fewest edges; nil: there is none.
function Graph:shortest_path(from, to, options)
  return paths_of(ask_whole(self, 'shortest_path', {core.vertex(from), core.vertex(to)}, options))[1]
end

-- All of them, at most as many as the option count says.
function Graph:shortest_paths(from, to, options)
  return paths_of(ask_whole(self, 'shortest_paths', {core.vertex(from), core.vertex(to)}, options))
end

-- The cheapest path by weight, or by the function `cost` of an edge.
function Graph:dijkstra(from, to, options)
  if type((options or {}).cost) == 'function' then return search(self, from, to, plain(options, {estimate = true})) end
  return paths_of(ask_whole(self, 'cheapest_path', {core.vertex(from), core.vertex(to)}, options))[1]
end

-- The cheapest path, found sooner by `estimate`, a function of a vertex that never says more than what is left from there.
function Graph:a_star(from, to, options) return search(self, from, to, options or {}) end

-- The `count` cheapest paths that meet no vertex twice.
function Graph:cheapest_paths(from, to, count, options)
  local asked = plain(options, {})
  asked.count = count
  return paths_of(ask_whole(self, 'cheapest_paths', {core.vertex(from), core.vertex(to)}, asked))
end

-- ------------------------------------------------------------------------------- algorithms

-- Lists of vertices that hang together, the largest first.
function Graph:components(options)
  local found = {}
  for _, row in ipairs(ask_whole(self, 'components', {}, options)) do
    local members = found[row.component] or {}
    found[row.component] = members
    members[#members + 1] = row.vertex
  end
  return found
end

local RANKING = {damping = true, rounds = true}

-- Rank by vertex; the options damping and rounds besides.
function Graph:page_rank(options)
  options = options or {}
  local rows = ask_whole(self, 'page_rank', {options.damping or 0.85, options.rounds or 20}, plain(options, RANKING))
  return scores(rows, 'rank')
end

function Graph:betweenness(options) return scores(ask_whole(self, 'betweenness', {}, options), 'betweenness') end
function Graph:triangles(options) return ask_whole(self, 'triangles', {}, options)[1].triangles end

-- The vertices of a cycle; nil: there is none.
function Graph:cycle(options)
  local found = column(ask_whole(self, 'cycle', {}, options), 'vertex')
  return found[1] ~= nil and found or nil
end

function Graph:topological_order(options) return column(ask_whole(self, 'topological_order', {}, options), 'vertex') end

-- ----------------------------------------------------------------------------------- module

local M = {}

-- Makes a graph below a node without children. The option `weight` is the property of edges that is their weight.
function M.create(node, options)
  return new(core.create(node, options and options.weight))
end

-- Opens the graph below a node; of a node of a snapshot, as it was then.
function M.open(node) return new(core.open(node)) end

return M
