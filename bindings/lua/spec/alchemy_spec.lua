-- AlchemyDB's names: the worked cases that its users knew, each with the answer that was published, or the right one where that
-- was wrong.
local graph = require 'perilune.graph'
local alchemy = require 'perilune.graph.alchemy'

-- Nodes of ^users(1) on, named by the words, and KNOWS or other relationships as 'from TYPE to[ weight]' by commas.
local function over(db, names, edges)
  local a, keys = alchemy.over(graph.create(db.node '^g')), {}
  for name in names:gmatch '%S+' do
    keys[#keys + 1] = name
    keys[name] = #keys
    db.node('^users', #keys):set(name)
    a.createNamedNode('users', 'lo', #keys, name)
  end
  for edge in edges:gmatch '[^,]+' do
    local from, rtype, to, weight = edge:match '(%S+)%s+(%S+)%s+(%S+)%s*(%S*)'
    a.addNodeRelationShipByPK('users', keys[from], rtype, 'users', keys[to])
    if weight ~= '' then
      a.addPropertyToRelationshipByPK('users', keys[from], rtype, 'users', keys[to], 'weight', tonumber(weight))
    end
  end
  return a, keys
end

local FOF = 'A KNOWS B,B KNOWS D,D KNOWS G,A KNOWS C,C KNOWS E,C KNOWS F,'
  .. 'A VIEWED_PIC B,B VIEWED_PIC D,D VIEWED_PIC A,F VIEWED_PIC A,E VIEWED_PIC G'

return function(spec)
  spec('38: a traversal goes against relationships, too', function(db, t)
    local a = over(db, 'KEN JACK JILL', 'KEN KNOWS JACK,JILL KNOWS JACK')
    t.equal(a.traverseByPK('BFS', 'users', 1, 'REPLY.NODENAME_AND_PATH', 'EXPANDER.BOTH'),
      {{'KEN', 'KEN'}, {'JACK', 'KEN-[KNOWS]->JACK'}, {'JILL', 'KEN-[KNOWS]->JACK<-[KNOWS]-JILL'}})
  end)

  spec('39: friends of friends who have seen the picture', function(db, t)
    local a = over(db, 'A B C D E F G', FOF)
    for _, order in ipairs {'BFS', 'DFS'} do
      t.equal(a.traverseByPK(order, 'users', 1, 'REPLY.PATH', 'EXPANDER.FOF', 'UNIQUENESS.PATH_GLOBAL', 'EDGE_EVAL.FOF'),
        {'A-[KNOWS]->B-[KNOWS]->D-[VIEWED_PIC]->A', 'A-[KNOWS]->C-[KNOWS]->F-[VIEWED_PIC]->A'}, order)
      t.equal(a.traverseByPK(order, 'users', 1, 'REPLY.PATH', 'ALL_RELATIONSHIP_EXPANDER.FOF', 'UNIQUENESS.PATH_GLOBAL',
        'EDGE_EVAL.FOF'), {'A-[VIEWED_PIC]->B-[VIEWED_PIC]->D-[VIEWED_PIC]->A'}, order)
    end
  end)

  spec('40: rows are found by their relationships, with SQL and by hooks', function(db, t)
    local a = over(db, 'A B C D E F G', '')
    for pk = 10, 30, 10 do
      db.node('^cities', pk):set('city')
      a.createNamedNode('cities', 'lo', pk, 'C' .. pk)
    end
    -- User 10 and city 10 are two nodes.
    db.node('^users', 10):set('J')
    a.createNamedNode('users', 'lo', 10, 'J')
    local index, visits = {}, {[10] = {1, 4, 7, 10}, [20] = {1, 2, 3, 4, 5}}
    local function keep(value)
      return function(iname, from, rtype, to)
        if rtype ~= 'HAS_VISITED' then return end
        index[iname] = index[iname] or {}
        index[iname][to.__id .. ' ' .. from.__name] = value
      end
    end
    for _, pk in ipairs(visits[10]) do a.addNodeRelationShipByPK('users', pk, 'HAS_VISITED', 'cities', 10) end
    a.buildIndex(keep(true), 'lf_users')
    a.hooks_addNodeRelationShip[1] = {func = keep(true), iname = 'lf_users'}
    a.hooks_deleteNodeRelationShip[1] = {func = keep(nil), iname = 'lf_users'}
    for _, pk in ipairs(visits[20]) do a.addNodeRelationShipByPK('users', pk, 'HAS_VISITED', 'cities', 20) end
    db:sql "CREATE TABLE users_by_city(pk INT PRIMARY KEY, name TEXT)"
    for pk, name in ipairs {'A', 'B', 'C', 'D', 'E', 'F', 'G'} do db:sql('INSERT INTO users_by_city VALUES (?, ?)', pk, name) end
    local function visitors(city)
      local names = {}
      for row in db:rows([[SELECT name FROM users_by_city WHERE '^users(' || pk || ')' IN
          (SELECT source FROM graph_in('^g', ?, 'HAS_VISITED')) ORDER BY pk]], '^cities(' .. city .. ')') do
        names[#names + 1] = row.name
      end
      return table.concat(names, ' ')
    end
    t.equal({visitors(10), visitors(20), visitors(30)}, {'A D G', 'A B C D E', ''})
    t.equal({index.lf_users['^cities(10) G'], index.lf_users['^cities(20) E']}, {true, true})
    t.equal(a.deleteNodeRelationShipByPK('users', 7, 'HAS_VISITED', 'cities', 10), 'DELETED RELATIONSHIP')
    t.equal({visitors(10), index.lf_users['^cities(10) G']}, {'A D', nil})
    db:sql 'DROP TABLE users_by_city'
  end)

  spec('41: the cheapest way from Washington to San Francisco', function(db, t)
    local a = over(db, 'DC SF CHI CHE ATL DAL ALB LEX STL KC DEN SLC', 'DC PATH CHI 200,CHI PATH SF 500,CHI PATH CHE 200,'
      .. 'CHE PATH SF 200,DC PATH ATL 100,ATL PATH DAL 100,DAL PATH SF 300,DAL PATH ALB 100,ALB PATH SF 100,DC PATH LEX 50,'
      .. 'LEX PATH STL 50,STL PATH KC 50,KC PATH DEN 50,DEN PATH SLC 50,SLC PATH SF 50')
    t.equal(a.shortestPathByPK('users', 1, 2, 'RELATIONSHIP_COST.WEIGHT'),
      {cost = 300, path = 'DC-[PATH]->LEX-[PATH]->STL-[PATH]->KC-[PATH]->DEN-[PATH]->SLC-[PATH]->SF'})
    t.equal(a.shortestPathByPK('users', 1, 2), {cost = 2, path = 'DC-[PATH]->CHI-[PATH]->SF'})
    t.equal(a.shortestPathByPK('users', 2, 1, 'RELATIONSHIP_COST.WEIGHT'), nil)
    -- What has no weight is not gone.
    a.deletePropertyToRelationshipByPK('users', 1, 'PATH', 'users', 8, 'weight')
    t.equal(a.shortestPathByPK('users', 1, 2, 'RELATIONSHIP_COST.WEIGHT').cost, 400)
  end)

  spec('42: distances keep their fractions', function(db, t)
    local a, keys = over(db, 'A B G H I', 'A PATH G,G PATH H,H PATH B,A PATH I,I PATH B')
    for name, at in pairs {A = {0, 0}, B = {100, 100}, G = {25, 25}, H = {75, 75}, I = {60, 40}} do
      a.addNodePropertyByPK('users', keys[name], 'x', at[1])
      a.addNodePropertyByPK('users', keys[name], 'y', at[2])
    end
    local found = a.shortestPathByPK('users', keys.A, keys.B, 'NODE_DELTA.GEO')
    t.equal(found.path, 'A-[PATH]->G-[PATH]->H-[PATH]->B')
    t.equal(math.abs(found.cost - 141.42135623730951) < 1e-12, true)
  end)

  spec('43: around a circle, and over each edge once', function(db, t)
    local a = over(db, 'X Y Z', 'X KNOWS Y,Y KNOWS Z,Z KNOWS X')
    local around = a.traverseByPK('BFS', 'users', 1, 'REPLY.NODENAME', 'UNIQUENESS.NONE', 'MAX_DEPTH.10')
    t.equal(table.concat(around), 'XYZXYZXYZX')
    db.node('^g'):kill()
    db.node('^users'):kill()
    local b = over(db, 'X Y W Z V U', 'X KNOWS Y,X KNOWS W,Y LIKES Z,W BLOCKS Z,W KNOWS V,Z KNOWS X,Z FRIENDS U,V KNOWS Z,U KNOWS V')
    t.equal(table.concat(b.traverseByPK('BFS', 'users', 1, 'UNIQUENESS.PATH_GLOBAL')), 'XYWZZVXUZV')
  end)

  spec('44: orders and depths of ten friends', function(db, t)
    local a = over(db, 'Joe1 Bill2 Jane3 Ken4 Kate5 Mack6 Lyle7 Bud8 Rick9 Lori9', 'Bill2 KNOWS Joe1,Bill2 KNOWS Jane3,'
      .. 'Jane3 KNOWS Ken4,Ken4 KNOWS Kate5,Bill2 KNOWS Mack6,Mack6 KNOWS Lyle7,Joe1 KNOWS Bud8,Bud8 KNOWS Rick9,'
      .. 'Ken4 KNOWS Lori9,Joe1 LIKES Bill2')
    local function names(...) return table.concat(a.traverseByPK(...), ' ') end
    t.equal(names('BFS', 'users', 2), 'Bill2 Joe1 Jane3 Mack6 Bud8 Ken4 Lyle7 Rick9 Kate5 Lori9')
    t.equal(names('DFS', 'users', 2), 'Bill2 Joe1 Bud8 Rick9 Jane3 Ken4 Kate5 Lori9 Mack6 Lyle7')
    t.equal(names('BFS', 'users', 2, 'MIN_DEPTH.2', 'MAX_DEPTH.3'), 'Joe1 Jane3 Mack6 Bud8 Ken4 Lyle7')
    t.equal(names('DFS', 'users', 2, 'MIN_DEPTH.2', 'MAX_DEPTH.3'), 'Joe1 Bud8 Jane3 Ken4 Mack6 Lyle7')
    -- Included and pruned is included, breadth first, too.
    a.registerFunc('EdgeEvalFuncs', 'NOT_BEHIND_JANE', function(x)
      return x.w.node.__name == 'Jane3' and a.Evaluation.INCLUDE_AND_PRUNE or a.Evaluation.INCLUDE_AND_CONTINUE
    end)
    t.equal(names('BFS', 'users', 2, 'EDGE_EVAL.NOT_BEHIND_JANE'), 'Bill2 Joe1 Jane3 Mack6 Bud8 Lyle7 Rick9')
    a.registerFunc('ExpanderFuncs', 'LIKED', function(_, rtype) return rtype == 'LIKES', a.Direction.INCOMING end)
    t.equal(names('BFS', 'users', 2, 'EXPANDER.LIKED'), 'Bill2 Joe1')
    a.registerFunc('ReplyFuncs', 'DEPTH', function(x) return x.depth end)
    t.equal(names('BFS', 'users', 2, 'REPLY.DEPTH', 'MAX_DEPTH.2'), '1 2 2 2')
  end)

  spec('calls answer as they did, and errors say why', function(db, t)
    local a = over(db, 'A B', 'A KNOWS B')
    db.node('^users', 3):set 'C'
    t.equal(a.createNamedNode('users', 'lo', 3, 'C'), 'CREATED NODE')
    t.fails('Node already exists', a.createNamedNode, 'users', 'lo', 3, 'C')
    t.fails('ROW does not exist', a.createNamedNode, 'users', 'lo', 4, 'D')
    t.fails('Node does not exist', a.addNodePropertyByPK, 'users', 4, 'age', 7)
    t.equal(a.addNodePropertyByPK('users', 1, 'age', 7), 'PROPERTY ADDED')
    t.fails('Property already exists', a.addNodePropertyByPK, 'users', 1, 'age', 8)
    t.fails("'r' is reserved", a.addNodePropertyByPK, 'users', 1, 'r', 8)
    t.equal(a.node('users', 1).age, 7)
    t.equal(a.deleteNodePropertyByPK('users', 1, 'age'), 'PROPERTY DELETED')
    t.fails('Property does not exist', a.deleteNodePropertyByPK, 'users', 1, 'age')
    t.equal(a.addNodeRelationShipByPK('users', 1, 'KNOWS', 'users', 2), 'ADDED RELATIONSHIP')
    t.equal(#a.graph:edges(), 1, 'a repeated relationship takes the place of the first')
    t.fails('Relationship does not exist', a.deleteNodeRelationShipByPK, 'users', 2, 'KNOWS', 'users', 1)
    t.fails('EXPANDER.UP function not found', a.traverseByPK, 'BFS', 'users', 1, 'EXPANDER.UP')
    t.fails('there is no option COLOUR.RED', a.traverseByPK, 'BFS', 'users', 1, 'COLOUR.RED')
    t.fails('there is no registry', a.registerFunc, 'Funcs', 'x', print)
    -- A hook that fails takes its change back.
    a.hooks_addNodeRelationShip[1] = {func = function() error 'no index' end}
    t.fails('no index', a.addNodeRelationShipByPK, 'users', 2, 'KNOWS', 'users', 3)
    t.equal(#a.graph:edges(), 1)
    t.equal(a.deleteNodeByPk('users', 2), 'DELETED NODE')
    t.equal({a.graph:check()}, {true, 2, 0})
  end)
end
