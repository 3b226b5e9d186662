'use strict';
/*
 * Graphs: changes, properties, questions, walks, searches with functions, algorithms, and what is refused.
 */
const assert = require('node:assert');
const {execFileSync} = require('child_process');
const path = require('path');
const {test} = require('node:test');
const {newPath} = require('./support');
const perilune = require('..');
const graphs = require('../graph');

/* The error that a call throws. */
function thrown(work) {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new assert.AssertionError({message: `nothing was thrown by ${work}`});
}

function opened() {
  return perilune.open(newPath(), {durability: 'none'});
}

/* Cities by distance: the cheapest way from DC to SF has six edges, the shortest two. */
const ROADS = [['DC', 'CHI', 200], ['CHI', 'SF', 500], ['CHI', 'CHE', 200], ['CHE', 'SF', 200], ['DC', 'ATL', 100],
  ['ATL', 'DAL', 100], ['DAL', 'SF', 300], ['DAL', 'ALB', 100], ['ALB', 'SF', 100], ['DC', 'LEX', 50], ['LEX', 'STL', 50],
  ['STL', 'KC', 50], ['KC', 'DEN', 50], ['DEN', 'SLC', 50], ['SLC', 'SF', 50]];
const CHEAPEST = 'DC-[ROAD]->LEX-[ROAD]->STL-[ROAD]->KC-[ROAD]->DEN-[ROAD]->SLC-[ROAD]->SF';

function cities(db) {
  const g = graphs.create(db.node('^cities'), {weight: 'miles'});
  for (const name of new Set(ROADS.flatMap(([from, to]) => [from, to]))) g.addVertex(name, ['City']);
  for (const [from, to, miles] of ROADS) g.addEdge(from, 'ROAD', to, {miles});
  return g;
}

test('vertices and edges, their labels and properties', () => {
  const db = opened();
  const g = graphs.create(db.node('^g'));
  assert.strictEqual(g.addVertex('ada', ['Person', 'Writer'], {born: 1815, alive: false, note: null}), 'ada');
  assert.deepStrictEqual([g.addVertex('7'), g.addVertex('07'), g.addVertex(9007199254740993n)], [7, '07', 9007199254740993n]);
  assert.strictEqual(g.addVertex(db.node('^users', 7, 'x')), '^users(7,"x")');
  assert.deepStrictEqual([g.hasVertex(7), g.hasVertex('7'), g.hasVertex(8)], [true, true, false]);
  assert.deepStrictEqual(g.properties('ada'), {alive: false, born: 1815, note: null});
  assert.deepStrictEqual([g.get('ada', 'born'), g.get('ada', 'note'), g.get('ada', 'none')], [1815, null, undefined]);
  g.set('ada', 'born', undefined);
  g.set('ada', 'likes', 'números ✓');
  assert.deepStrictEqual(g.properties('ada'), {alive: false, likes: 'números ✓', note: null});
  g.removeLabel('ada', 'Writer');
  g.addLabel(7, 'Person');
  assert.deepStrictEqual([g.labels('ada'), g.vertices('Person'), g.vertices().length], [['Person'], [7, 'ada'], 5]);
  const edge = g.addEdge('ada', 'KNOWS', 7, {since: 1840});
  assert.deepStrictEqual(g.edge(edge), {id: edge, source: 'ada', type: 'KNOWS', target: 7, weight: undefined});
  g.setEdge(edge, 'since', 1841);
  g.setEdge(edge, 'kind', 'close');
  assert.deepStrictEqual([g.getEdge(edge, 'since'), g.edgeProperties(edge)], [1841, {kind: 'close', since: 1841}]);
  assert.deepStrictEqual([g.degree('ada'), g.degree('ada', 'in'), g.degree(7, 'in', 'KNOWS'), g.degree(7, 'in', 'ELSE')], [1, 0, 1, 0]);
  assert.deepStrictEqual([g.edges().length, g.edges(7).length, g.edges(7, {direction: 'in', types: ['KNOWS']}).length], [1, 0, 1]);
  g.addIndex('Person', 'age');
  g.set(7, 'age', 30);
  assert.deepStrictEqual([g.find('Person', 'age', 30), g.find('Person', 'age', 31)], [[7], []]);
  g.dropIndex('Person', 'age');
  assert.strictEqual(thrown(() => g.deleteVertex(7)).reason, 'HAS_EDGES');
  g.deleteVertex(7, {edges: true});
  assert.deepStrictEqual([g.count(), g.edge(edge), g.check()], [{vertices: 4, edges: 0}, undefined, []]);
  assert.deepStrictEqual(graphs.open(db.node('^g')).count(), {vertices: 4, edges: 0});
  db.close();
});

test('walks', () => {
  const db = opened();
  const g = cities(db);
  const walk = g.traversal().maxDepth(2).minDepth(1);
  assert.deepStrictEqual(walk.all('SLC').map(String), ['SLC-[ROAD]->SF']);
  assert.deepStrictEqual(walk.expand({direction: 'in'}).all('CHE').map(String), ['CHE<-[ROAD]-CHI', 'CHE<-[ROAD]-CHI<-[ROAD]-DC']);
  assert.strictEqual(walk.depthFirst().all('DC').length, walk.all('DC').length);
  const ends = walk.expand({types: ['NONE']}).all('DC');
  assert.deepStrictEqual(ends, []);
  const [first] = g.traversal().cheapestFirst().cost('weight').uniqueness('none').evaluate((found) => found.vertex === 'SF').from('DC');
  assert.deepStrictEqual([String(first), first.cost, first.length, first.start, first.vertex], [CHEAPEST, 300, 6, 'DC', 'SF']);
  assert.deepStrictEqual(first.edges[0], {id: first.edges[0].id, source: 'DC', type: 'ROAD', target: 'LEX', weight: 50});
  const pruned = g.traversal().evaluate((found) => (found.vertex === 'DC' ? 'exclude_and_continue' : 'include_and_prune')).all('DC');
  assert.deepStrictEqual(pruned.map((found) => found.vertex).sort(), ['ATL', 'CHI', 'LEX']);
  const narrow = g.traversal().expand((found, seen) => seen.edges(found.vertex).filter((edge) => edge.weight <= 50)).maxDepth(6).all('DC');
  assert.strictEqual(String(narrow.at(-1)), CHEAPEST);
  const byNumber = g.traversal().expand((found, seen) => seen.edges(found.vertex).map((edge) => edge.id)).cost((edge) => edge.weight / 10)
    .cheapestFirst().evaluate((found) => found.vertex === 'SF').all('DC');
  assert.strictEqual(byNumber[0].cost, 30);
  db.close();
});

test('a walk sees one state, and may be left', () => {
  const db = opened();
  const g = cities(db);
  const seen = [];
  for (const found of g.traversal().from('DC')) {
    if (seen.length === 0) g.deleteVertex('SF', {edges: true});
    seen.push(found.vertex);
  }
  assert.ok(seen.includes('SF') && !g.hasVertex('SF'));
  for (const found of g.traversal().from('DC')) {
    assert.strictEqual(found.vertex, 'DC');
    break;
  }
  db.transaction(() => {
    g.addVertex('SF');
    g.addEdge('DC', 'ROAD', 'SF', {miles: 1});
    assert.strictEqual(g.dijkstra('DC', 'SF').cost, 1);
    assert.ok(g.traversal().all('DC').some((found) => found.vertex === 'SF'));
  });
  const walk = db.transaction(() => g.traversal().from('DC'));
  assert.ok(walk.next().value, 'it begins where it is first asked');
  const half = db.transaction(() => {
    const begun = g.traversal().from('DC');
    begun.next();
    return begun;
  });
  assert.strictEqual(thrown(() => half.next()).code, 'TRANSACTION_STATE');
  walk.return();
  const snapshot = db.snapshot();
  g.deleteVertex('SF', {edges: true});
  const before = g.in(snapshot);
  assert.deepStrictEqual([before.hasVertex('SF'), before.shortestPath('DC', 'SF').length, g.hasVertex('SF')], [true, 1, false]);
  assert.strictEqual(thrown(() => before.addVertex('x')).code, 'READ_ONLY');
  snapshot.close();
  const open = g.traversal().from('DC');
  open.next();
  db.close();
  assert.strictEqual(thrown(() => g.count()).code, 'CLOSED');
});

test('searches', () => {
  const db = opened();
  const g = cities(db);
  assert.strictEqual(String(g.shortestPath('DC', 'SF')), 'DC-[ROAD]->CHI-[ROAD]->SF');
  assert.strictEqual(g.shortestPaths('DC', 'SF').length, 1);
  assert.deepStrictEqual([String(g.dijkstra('DC', 'SF')), g.dijkstra('DC', 'SF').cost], [CHEAPEST, 300]);
  assert.deepStrictEqual(g.cheapestPaths('DC', 'SF', 3).map((found) => found.cost), [300, 400, 500]);
  assert.deepStrictEqual([g.shortestPath('SF', 'DC'), g.dijkstra('SF', 'DC'), g.aStar('SF', 'DC')], [undefined, undefined, undefined]);
  const fewest = g.dijkstra('DC', 'SF', {cost: (edge, seen) => (seen.degree(edge.target) > 0 ? 1 : undefined)});
  assert.strictEqual(fewest.length, 2);
  let asked = 0;
  const found = g.aStar('DC', 'SF', {estimate: (vertex) => {
    asked++;
    return vertex === 'SF' ? 0 : 50;
  }});
  assert.deepStrictEqual([String(found), found.cost], [CHEAPEST, 300]);
  assert.ok(asked > 5);
  // Fractions and equal costs: AlchemyDB answered 140.
  const plane = graphs.create(db.node('^plane'));
  const places = {A: [0, 0], B: [0, 100], C: [100, 0], D: [100, 100]};
  for (const [name, [x, y]] of Object.entries(places)) plane.addVertex(name, [], {x, y});
  for (const [from, to] of [['A', 'B'], ['A', 'C'], ['B', 'D'], ['C', 'D'], ['A', 'D']]) plane.addEdge(from, 'WAY', to);
  const apart = ({source, target}, seen, axis) => seen.get(source, axis) - seen.get(target, axis);
  const distance = (edge, seen) => Math.hypot(apart(edge, seen, 'x'), apart(edge, seen, 'y'));
  assert.strictEqual(plane.dijkstra('A', 'D', {cost: distance}).cost, Math.hypot(100, 100));
  db.close();
});

test('algorithms', () => {
  const db = opened();
  const g = cities(db);
  g.addVertex('alone');
  assert.deepStrictEqual(g.components().map((one) => one.length), [12, 1]);
  const ranks = g.pageRank({rounds: 10});
  assert.ok(Math.abs([...ranks.values()].reduce((a, b) => a + b, 0) - 1) < 1e-9 && ranks.get('SF') > ranks.get('DC'));
  assert.strictEqual(g.betweenness().get('alone'), 0);
  assert.strictEqual(g.triangles(), 2);
  assert.strictEqual(g.cycle(), undefined);
  const order = g.topologicalOrder();
  for (const [from, to] of ROADS) assert.ok(order.indexOf(from) < order.indexOf(to), `${from} ${to}`);
  g.addEdge('SF', 'ROAD', 'DC');
  assert.ok(g.cycle().includes('SF'));
  assert.match(thrown(() => g.topologicalOrder()).message, /cycle/);
  db.close();
});

test('what is refused names what is wrong, and changes nothing', () => {
  const db = opened();
  const g = cities(db);
  const before = g.count();
  for (const bad of [undefined, null, NaN, Infinity, 1.5, {}, [], () => 1, Symbol('s'), true]) {
    const error = thrown(() => g.addVertex(bad));
    assert.ok(error instanceof TypeError && /vertex/.test(error.message), String(bad));
    assert.ok(thrown(() => g.addEdge('DC', 'ROAD', bad)) instanceof TypeError);
    assert.ok(thrown(() => g.addEdge('DC', bad, 'SF')) instanceof TypeError);
    assert.ok(thrown(() => g.deleteEdge(typeof bad === 'number' || bad === true ? 'x' : bad)) instanceof TypeError);
    if (bad !== undefined && bad !== null && bad !== true && bad !== 1.5) {
      assert.ok(thrown(() => g.addVertex('new', [], {a: bad})) instanceof TypeError, String(bad));
      assert.ok(thrown(() => g.addEdge('DC', 'ROAD', 'SF', {a: bad})) instanceof TypeError, String(bad));
    }
  }
  assert.deepStrictEqual(g.count(), before);
  const reasons = [[() => g.addEdge('DC', 'ROAD', 'nobody'), 'NO_VERTEX'], [() => g.addVertex('DC'), 'VERTEX_EXISTS'],
    [() => g.deleteEdge(999), 'NO_EDGE'], [() => graphs.open(db.node('^none')), 'NOT_A_GRAPH'],
    [() => graphs.create(db.node('^cities')), 'NOT_EMPTY'], [() => g.traversal().all('nobody'), 'NO_VERTEX'],
    [() => g.shortestPath('DC', 'nobody'), 'NO_VERTEX'],
    [() => g.dijkstra('DC', 'SF', {cost: () => -1}), 'COST']];
  for (const [work, reason] of reasons) {
    const error = thrown(work);
    assert.deepStrictEqual([error.code, error.reason], ['GRAPH', reason], String(work));
  }
  assert.strictEqual(thrown(() => g.traversal().limit({edges: 2}).all('DC')).code, 'LIMIT_REACHED');
  assert.ok(thrown(() => g.shortestPath('DC', 'SF', {nothing: 1})).message.includes('nothing'));
  assert.ok(thrown(() => g.degree('DC', 'up')) instanceof TypeError);
  assert.ok(thrown(() => g.traversal().expand({depth: 1})) instanceof TypeError);
  assert.ok(thrown(() => g.traversal().evaluate(() => 'maybe').all('DC')) instanceof TypeError);
  assert.throws(() => g.traversal().evaluate(() => {
    throw new RangeError('mine');
  }).all('DC'), RangeError);
  assert.ok(thrown(() => graphs.create('^x')) instanceof TypeError);
  assert.deepStrictEqual([g.count(), g.check()], [before, []]);
  db.close();
});

test('a walk that was left is ended when it is collected', () => {
  const program = `const g = require(${JSON.stringify(path.join(__dirname, '../graph'))});
    const db = require(${JSON.stringify(path.join(__dirname, '..'))}).open(${JSON.stringify(newPath())});
    const graph = g.create(db.node('^g'));
    graph.addVertex(1);
    // More than the snapshots that may be open at once. What is collected is told in a turn of its own.
    let begun = 0;
    function begin(left) {
      if (left === 0) return console.log(begun > 100 ? 'done' : begun);
      try {
        graph.traversal().from(1).next();
        begun++;
      } catch (error) {
        if (error.code !== 'LIMIT_REACHED') throw error;
        gc();
      }
      setImmediate(begin, left - 1);
    }
    begin(300);`;
  const printed = execFileSync(process.execPath, ['--expose-gc', '-e', program], {encoding: 'utf8', timeout: 120000});
  assert.strictEqual(printed.trim(), 'done');
});

test('a graph of one process is walked by another', () => {
  const file = newPath();
  const db = perilune.open(file, {durability: 'none'});
  cities(db);
  const program = `const g = require(${JSON.stringify(path.join(__dirname, '../graph'))});
    const db = require(${JSON.stringify(path.join(__dirname, '..'))}).open(${JSON.stringify(file)});
    for (let i = 0; i < 20000; i++) for (const found of g.open(db.node('^cities')).traversal().from('DC')) break;
    console.log(String(g.open(db.node('^cities')).dijkstra('DC', 'SF')));`;
  assert.strictEqual(execFileSync(process.execPath, ['-e', program], {encoding: 'utf8', timeout: 120000}).trim(), CHEAPEST);
  db.close();
});
