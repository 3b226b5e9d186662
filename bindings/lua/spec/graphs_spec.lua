-- Graphs: changes, questions, walks by functions of the program, searches, and that all of it is one state.
local graph = require 'perilune.graph'

-- Cities on roads: DC to SF is 4440 by Chicago and Denver, 4540 at once.
local function cities(db)
  local g = graph.create(db.node '^roads', {weight = 'km'})
  for name, at in pairs {DC = 0, Chicago = 956, Denver = 2430, SF = 4440} do g:add_vertex(name, {'City'}, {at = at}) end
  g:add_edge('DC', 'ROAD', 'Chicago', {km = 956})
  g:add_edge('Chicago', 'ROAD', 'Denver', {km = 1474})
  g:add_edge('Denver', 'ROAD', 'SF', {km = 2010})
  g:add_edge('DC', 'ROAD', 'SF', {km = 4540})
  return g
end

-- A tree: a - b - d, a - c - e and f.
local function tree(db)
  local g = graph.create(db.node '^tree')
  for name in ('abcdef'):gmatch '.' do g:add_vertex(name) end
  for from, to in ('ab ac bd ce cf'):gmatch '(%a)(%a)' do g:add_edge(from, 'R', to) end
  return g
end

local function ends(t)
  local out = {}
  for i, path in ipairs(t) do out[i] = path.vertex end
  return table.concat(out, ' ')
end

return function(spec)
  spec('vertices and edges are made, found and deleted', function(db, t)
    local g = cities(db)
    t.equal({g:count()}, {4, 4})
    t.equal(g:has_vertex 'DC', true)
    t.equal(g:get('DC', 'at'), 0)
    g:set('DC', 'people', 700000)
    g:set('DC', 'nothing', t.perilune.null)
    t.equal(g:properties 'DC', {at = 0, people = 700000, nothing = t.perilune.null})
    g:set('DC', 'people', nil)
    t.equal(g:get('DC', 'people'), nil)
    g:add_label('DC', 'Capital')
    t.equal(g:labels 'DC', {'Capital', 'City'})
    t.equal(g:vertices 'Capital', {'DC'})
    g:remove_label('DC', 'Capital')
    g:add_index('City', 'at')
    t.equal(g:find('City', 'at', 2430), {'Denver'})
    g:drop_index('City', 'at')
    t.equal(g:find('City', 'at', 2430), {'Denver'})
    t.equal(g:edge(1), {id = 1, source = 'DC', type = 'ROAD', target = 'Chicago', weight = 956})
    t.equal(g:edge(99), nil)
    t.equal(g:edge_properties(1), {km = 956})
    g:set_edge(1, 'toll', true)
    t.equal(g:get_edge(1, 'toll'), true)
    t.equal(g:edges('SF', {direction = 'in'})[1].source, 'DC')
    t.equal({g:degree('SF'), g:degree('SF', 'out'), g:degree('DC', 'out', 'ROAD')}, {2, 0, 2})
    g:delete_edge(4)
    t.equal(#g:edges(), 3)
    t.fails('HAS_EDGES', g.delete_vertex, g, 'SF')
    g:delete_vertex('SF', true)
    t.equal(g:vertices(), {'Chicago', 'DC', 'Denver'})
    t.equal({g:check()}, {true, 3, 2})
    t.equal(graph.open(db.node '^roads'):get('DC', 'at'), 0)
  end)

  spec('what a graph refuses says why, and where', function(db, t)
    local g = cities(db)
    local e = t.fails('NO_VERTEX', g.add_edge, g, 'DC', 'ROAD', 'Rome')
    t.equal(e.code, 'GRAPH')
    t.equal(e.where:find 'graphs_spec.lua:' ~= nil or e.where == '', true)
    t.fails('NOT_A_GRAPH', graph.open, db.node '^nowhere')
    t.fails('NOT_EMPTY', graph.create, db.node '^roads')
    t.fails('VERTEX_EXISTS', g.add_vertex, g, 'DC')
    t.fails('must be a string, an integer or a node, not nil', g.add_vertex, g)
    t.fails('must be a node', graph.open, 7)
    t.fails('there is no option colour', function() for _ in g:traversal():expand{types = 'x'}:limit{}:from 'DC' do
      g:edges('DC', {colour = 'red'}) end end)
    t.fails("a direction is 'out'", g.degree, g, 'DC', 'up')
    t.fails('an expander has direction and types', function() g:traversal():expand {type = 'R'} end)
  end)

  spec('integers, texts of numbers and nodes are vertices', function(db, t)
    local g = graph.create(db.node('^g', 1))
    t.equal(g:add_vertex(7), 7)
    t.fails('VERTEX_EXISTS', g.add_vertex, g, '7')
    local user = db.node('^users')[7]
    t.equal(g:add_vertex(user), '^users(7)')
    g:add_edge(7, 'IS', user)
    t.equal(g:edges(user, {direction = 'in'})[1].source, 7)
    t.equal(tostring(g:shortest_path('7', user)), '7-[IS]->^users(7)')
  end)

  spec('walks go in the order and to the depth asked for', function(db, t)
    local g = tree(db)
    local walk = g:traversal()
    t.equal(ends(walk:all 'a'), 'a b c d e f')
    t.equal(ends(walk:depth_first():all 'a'), 'a b d c e f')
    t.equal(ends(walk:min_depth(1):max_depth(1):all 'a'), 'b c')
    t.equal(ends(walk:expand{direction = 'in'}:all 'd'), 'd b a')
    t.equal(ends(walk:expand{types = {'S', 'R'}}:all('b', 'c')), 'b c d e f')
    t.equal(ends(walk:expand{types = 'S'}:all 'a'), 'a')
    t.equal(ends(walk:all 'a'), 'a b c d e f', 'a traversal does not change')
    local path = walk:all('a')[4]
    t.equal({path.length, path.cost, path.start, path.vertex}, {2, 2, 'a', 'd'})
    t.equal(path.vertices, {'a', 'b', 'd'})
    t.equal(path.edges[2].type, 'R')
    t.equal(tostring(path), 'a-[R]->b-[R]->d')
    local around = walk:expand{direction = 'both'}:uniqueness 'none':min_depth(2):max_depth(2)
    t.equal(tostring(around:all('d')[1]), 'd<-[R]-b-[R]->d')
    t.equal(ends(walk:uniqueness('vertex_recent', 2):max_depth(1):all 'a'), 'a b c')
    t.fails('NO_VERTEX', walk.all, walk, 'z')
    t.fails('limit of 3 edges', walk.all, walk:limit{edges = 3}, 'a')
  end)

  spec('evaluators include and prune, in both orders', function(db, t)
    local g = tree(db)
    for evaluation, expected in pairs {
      include_and_continue = {'a b c d e f', 'a b d c e f'}, include_and_prune = {'a b c d', 'a b d c'},
      exclude_and_continue = {'a b d e f', 'a b d e f'}, exclude_and_prune = {'a b d', 'a b d'},
    } do
      local walk = g:traversal():evaluate(function(path) return path.vertex == 'c' and evaluation or 'include_and_continue' end)
      t.equal(ends(walk:all 'a'), expected[1], evaluation)
      t.equal(ends(walk:depth_first():all 'a'), expected[2], evaluation)
      t.equal(ends(walk:evaluate(function() return true, true end):all 'a'), expected[1], evaluation)
    end
    local asked = {}
    local deep = g:traversal():min_depth(2):evaluate(function(path) asked[#asked + 1] = path.vertex; return true end)
    t.equal(ends(deep:all 'a'), 'd e f')
    t.equal(table.concat(asked), 'abcdef')
    t.fails('not maybe', function() g:traversal():evaluate(function() return 'maybe' end):all 'a' end)
    t.fails('my own error', function() g:traversal():evaluate(function() error 'my own error' end):all 'a' end)
  end)

  spec('functions expand, and say what edges cost', function(db, t)
    local g = tree(db)
    -- Against all edges but at the start.
    local walk = g:traversal():uniqueness 'edge_path':expand(function(path)
      return g:edges(path.vertex, {direction = path.length == 0 and 'out' or 'both'})
    end)
    t.equal(ends(walk:all 'a'), 'a b c d e f')
    t.equal(ends(walk:max_depth(1):all 'a'), 'a b c')
    local numbers = g:traversal():expand(function(path) return path.length < 1 and {2} or {} end)
    t.equal(ends(numbers:all 'a'), 'a c')
    t.fails('NO_EDGE', function() g:traversal():expand(function() return {{id = 99}} end):all 'a' end)
    t.fails('an end at the path', function() g:traversal():expand(function() return {5} end):all 'a' end)
    local prices = {1, 5, 1, 1, 1}
    local cheap = g:traversal():cheapest_first():cost(function(edge) return prices[edge.id] end)
    t.equal(ends(cheap:all 'a'), 'a b d c e f')
    t.equal(cheap:all('a')[6].cost, 6)
    t.fails('COST', function() g:traversal():cost(function() return -1 end):all 'a' end)
    local roads = cities(db)
    t.equal(ends(roads:traversal():cheapest_first():cost 'weight':all 'DC'), 'DC Chicago Denver SF')
  end)

  spec('searches find the shortest, the cheapest and others', function(db, t)
    local g = cities(db)
    t.equal(tostring(g:shortest_path('DC', 'SF')), 'DC-[ROAD]->SF')
    t.equal(g:shortest_path('SF', 'DC'), nil)
    t.equal(g:shortest_path('SF', 'DC', {direction = 'both'}).length, 1)
    t.equal(#g:shortest_paths('DC', 'SF'), 1)
    local way = 'DC-[ROAD]->Chicago-[ROAD]->Denver-[ROAD]->SF'
    local path = g:dijkstra('DC', 'SF')
    t.equal({tostring(path), path.cost, path.length}, {way, 4440, 3})
    t.equal(tostring(g:dijkstra('DC', 'SF', {cost = function(edge) return edge.weight end})), way)
    t.equal(g:dijkstra('DC', 'SF', {cost = function(edge) return edge.id == 4 and 1 or 2 end}).length, 1)
    local asked = {}
    path = g:a_star('DC', 'SF', {estimate = function(city)
      asked[#asked + 1] = city
      return 4440 - g:get(city, 'at')
    end})
    t.equal({tostring(path), path.cost}, {way, 4440})
    t.equal(asked[1] ~= nil, true)
    t.equal(g:a_star('SF', 'DC'), nil)
    t.fails('NO_VERTEX', g.a_star, g, 'DC', 'Rome')
    t.fails('NO_VERTEX', g.dijkstra, g, 'Rome', 'DC')
    t.fails('COST', g.dijkstra, g, 'DC', 'SF', {cost = function() return 0 / 0 end})
    local paths = g:cheapest_paths('DC', 'SF', 5)
    t.equal({#paths, paths[1].cost, paths[2].cost}, {2, 4440, 4540})
    -- Fractions count: the way over two sides of a triangle is longer than the third.
    local flat = graph.create(db.node '^flat', {weight = 'w'})
    for i = 1, 3 do flat:add_vertex(i) end
    flat:add_edge(1, 'R', 2, {w = 100}); flat:add_edge(2, 'R', 3, {w = 41.5}); flat:add_edge(1, 'R', 3, {w = 141.42135623730951})
    t.equal(flat:dijkstra(1, 3).cost, 141.42135623730951)
  end)

  spec('algorithms look at the whole graph', function(db, t)
    local g = tree(db)
    g:add_vertex 'z'
    t.equal(g:components(), {{'a', 'b', 'c', 'd', 'e', 'f'}, {'z'}})
    t.equal(g:triangles(), 0)
    t.equal(g:cycle(), nil)
    t.equal(#g:topological_order(), 7)
    t.equal(g:betweenness().c, 2)
    local sum = 0
    for _, rank in pairs(g:page_rank {rounds = 5}) do sum = sum + rank end
    t.equal(math.abs(sum - 1) < 1e-9, true)
    g:add_edge('d', 'R', 'a')
    t.equal(#g:cycle(), 3)
    t.fails('has a cycle', g.topological_order, g)
    t.equal(g:triangles(), 1)
    t.fails('limit of 2 edges', g.components, g, {max_edges = 2})
  end)

  spec('check finds what programs have broken', function(db, t)
    local g = tree(db)
    t.equal({g:check()}, {true, 6, 5})
    db.node('^tree')['in'].b:kill()
    local good, faults = g:check()
    t.equal(good, false)
    t.equal(#faults > 0 and type(faults[1]), 'string')
  end)

  spec('a walk sees one state', function(db, t)
    local g = tree(db)
    -- Outside of transactions: a snapshot of its own, while the graph changes under the walk.
    local seen = {}
    for path in g:traversal():from 'a' do
      seen[#seen + 1] = path.vertex
      if path.vertex == 'a' then g:delete_vertex('c', true) end
    end
    t.equal(table.concat(seen, ' '), 'a b c d e f')
    t.equal(ends(g:traversal():all 'a'), 'a b d')
    -- Functions of the program get the graph as the walk sees it.
    local other = g:add_vertex 'y'
    local neighbours = {}
    for path in g:traversal():evaluate(function(path, as_seen)
      if path.vertex == 'a' then g:add_edge('d', 'R', other) end
      neighbours[path.vertex] = #as_seen:edges(path.vertex)
      return true, true
    end):from 'a' do t.equal(path.vertex ~= 'y', true) end
    t.equal({neighbours.a, neighbours.d, #g:edges 'd'}, {1, 0, 1})
    g:delete_vertex('y', true)
    -- In one: with what it has written; and no longer than it lasts.
    local walk
    db:transaction(function()
      g:add_edge('d', 'R', 'e')
      t.equal(ends(g:traversal():all 'a'), 'a b d e')
      walk = g:traversal():from 'a'
      t.equal(walk().vertex, 'a')
    end)
    t.fails('a walk goes on in the transaction', walk)
    t.equal(walk(), nil)
    -- Of a snapshot.
    local snapshot = db:snapshot()
    g:delete_edge(g:edges('d')[1].id)
    local before = graph.open(snapshot.node '^tree')
    t.equal({ends(before:traversal():all 'a'), ends(g:traversal():all 'a')}, {'a b d e', 'a b d'})
    t.equal({before:check()}, {true, 5, 3})
    t.fails('read', before.add_vertex, before, 'x')
    snapshot:close()
    -- A loop that is left early, and a walk that nobody ends.
    for i = 1, 300 do
      for path in g:traversal():from 'a' do
        if path.vertex == 'b' then break end
      end
      if i % 50 == 0 then collectgarbage() end
    end
    collectgarbage()
  end)

  spec('a rolled back transaction leaves no part of a change', function(db, t)
    local g = tree(db)
    local ok = pcall(db.transaction, db, function()
      g:add_vertex('x', {'New'}, {n = 1})
      g:add_edge('x', 'R', 'a', {since = 5})
      error 'no'
    end)
    t.equal({ok, g:has_vertex 'x', g:degree('a', 'in')}, {false, false, 0})
    t.equal({g:check()}, {true, 6, 5})
  end)
end
