'use strict';
/*
 * Graphs: vertices with labels and properties, edges of types between them, walks, searches, algorithms.
 *
 * A graph lies below a node (docs/format/graph.md); the object holds the addon's handle and nothing of what is stored. Each
 * change is one transaction, or a part of the one that is open. What reads the whole graph reads a snapshot, unless it is in
 * a transaction or of a snapshot already.
 */
const native = require('../addon');
const {STATUS, errorOf} = require('../errors');
const {Node, GRAPH_CALL} = require('../perilune/node');
const {shown} = require('../perilune/values');
const {Path, edgeOf, pathsOf, vertexOf} = require('./path');
const {Traversal, Walk} = require('./traversal');

const DIRECTIONS = {out: 0, in: 1, both: 2};

function refused(what) {
  return errorOf(STATUS.TYPE, what);
}

/* Rows as objects by the names of their columns. */
function objects([columns, ...rows]) {
  return rows.map((row) => Object.fromEntries(row.map((value, i) => [columns[i], shown(value)])));
}

/* The values of a column. */
function column(rows, name) {
  return rows.map((row) => row[name]);
}

function byVertex(rows, name) {
  return new Map(rows.map((row) => [row.vertex, row[name]]));
}

function byName(rows) {
  return Object.fromEntries(rows.map((row) => [row.name, row.value]));
}

class Graph {
  #place;
  #handle;

  constructor(place, handle) {
    this.#place = place;
    this.#handle = handle;
  }

  /* The node of the database below which it lies. */
  get place() {
    return this.#place;
  }

  /* The same graph as another database object has it: a snapshot of its database. */
  in(db) {
    return new Graph(db.node(this.#place.name, ...this.#place.subscripts), this.#handle);
  }

  /* Makes a call of the addon; for this folder. */
  call(what, work, given) {
    return this.#place[GRAPH_CALL](what, work, [this.#handle, ...given]);
  }

  /* The graph as one state, and what ends it; for this folder. */
  view() {
    const {db} = this.#place;
    if (db.isSnapshot || native.level(db.handle) > 0) return [this, () => {}];
    const snapshot = db.snapshot();
    return [this.in(snapshot), () => snapshot.close()];
  }

  #ask(question, given, options) {
    return objects(this.call(question, native.graphAsk, [question, options ? JSON.stringify(options) : '', ...given]));
  }

  #askWhole(question, given, options) {
    const [graph, end] = this.view();
    try {
      return graph.#ask(question, given, options);
    } finally {
      end();
    }
  }

  /* Runs `f`, and as a transaction if there are properties to be set with it. */
  #together(properties, f) {
    return Object.keys(properties).length === 0 ? f() : this.#place.db.transaction(f);
  }

  /* ------------------------------------------------------------------------------- vertices --- */

  /* Adds a vertex; its id. */
  addVertex(id, labels = [], properties = {}) {
    const vertex = vertexOf(id);
    this.#together(properties, () => {
      this.call('addVertex', native.graphAddVertex, [vertex, ...labels]);
      for (const [name, value] of Object.entries(properties)) this.set(vertex, name, value);
    });
    return vertex;
  }

  /* Deletes a vertex; with its edges if told so. */
  deleteVertex(id, {edges = false} = {}) {
    this.call('deleteVertex', native.graphDeleteVertex, [vertexOf(id), Boolean(edges)]);
  }

  hasVertex(id) {
    return this.call('hasVertex', native.graphHasVertex, [vertexOf(id)]) === 1;
  }

  addLabel(id, label) {
    this.call('addLabel', native.graphLabel, [vertexOf(id), label, true]);
  }

  removeLabel(id, label) {
    this.call('removeLabel', native.graphLabel, [vertexOf(id), label, false]);
  }

  labels(id) {
    return column(this.#ask('labels', [vertexOf(id)]), 'label');
  }

  /* A property; undefined if there is none. */
  get(id, name) {
    return shown(this.call('get', native.graphGet, [false, vertexOf(id), name]));
  }

  /* Sets a property, or with undefined deletes it. */
  set(id, name, value) {
    this.#setOf('set', false, vertexOf(id), name, value);
  }

  #setOf(what, isEdge, owner, name, value) {
    if (value === undefined) this.call(what, native.graphUnset, [isEdge, owner, name]);
    else this.call(what, native.graphSet, [isEdge, owner, name, value]);
  }

  properties(id) {
    return byName(this.#ask('properties', [vertexOf(id)]));
  }

  /* The vertices, or those with a label. */
  vertices(label) {
    return column(this.#ask('vertices', label === undefined ? [] : [label]), 'vertex');
  }

  /* The vertices with a label whose property has this value. */
  find(label, property, value) {
    return column(this.#ask('find', [label, property, value]), 'vertex');
  }

  addIndex(label, property) {
    this.call('addIndex', native.graphIndex, [label, property, true]);
  }

  dropIndex(label, property) {
    this.call('dropIndex', native.graphIndex, [label, property, false]);
  }

  /* ---------------------------------------------------------------------------------- edges --- */

  /* Adds an edge; its number. */
  addEdge(source, type, target, properties = {}) {
    const [from, to] = [vertexOf(source), vertexOf(target)];
    return this.#together(properties, () => {
      const edge = this.call('addEdge', native.graphAddEdge, [from, type, to]);
      for (const [name, value] of Object.entries(properties)) this.setEdge(edge, name, value);
      return edge;
    });
  }

  deleteEdge(edge) {
    this.call('deleteEdge', native.graphDeleteEdge, [edge]);
  }

  getEdge(edge, name) {
    return shown(this.call('getEdge', native.graphGet, [true, edge, name]));
  }

  setEdge(edge, name, value) {
    this.#setOf('setEdge', true, edge, name, value);
  }

  edgeProperties(edge) {
    return byName(this.#ask('edge_properties', [edge]));
  }

  /* {id, source, type, target, weight}; undefined if there is none. */
  edge(edge) {
    const [row] = this.#ask('edge', [edge]);
    return row && edgeOf(row);
  }

  /* The edges of a vertex, or of all: those that leave, unless the options name another direction. */
  edges(id, options) {
    return this.#ask('edges', id === undefined ? [] : [vertexOf(id)], options).map(edgeOf);
  }

  /* How many edges a vertex has; nothing is walked. */
  degree(id, direction = 'both', type = null) {
    if (!Object.prototype.hasOwnProperty.call(DIRECTIONS, direction)) throw refused('a direction is \'out\', \'in\' or \'both\'');
    return this.call('degree', native.graphDegree, [vertexOf(id), DIRECTIONS[direction], type]);
  }

  count() {
    return this.#ask('count', [])[0];
  }

  /* What contradicts the layout, as texts; none if the graph is whole. */
  check() {
    return column(this.#askWhole('check', []), 'fault').filter((fault) => fault !== null);
  }

  /* ------------------------------------------------------------------------ walks, searches --- */

  traversal() {
    return new Traversal(this);
  }

  /* The path of the fewest edges; undefined if there is none. */
  shortestPath(from, to, options) {
    return pathsOf(this.#askWhole('shortest_path', [vertexOf(from), vertexOf(to)], options))[0];
  }

  /* All of them, at most `count`. */
  shortestPaths(from, to, options) {
    return pathsOf(this.#askWhole('shortest_paths', [vertexOf(from), vertexOf(to)], options));
  }

  /* The cheapest path by weight, or by the function `cost` of an edge. */
  dijkstra(from, to, options = {}) {
    if (typeof options.cost === 'function') return this.#search(from, to, {...options, estimate: undefined});
    return pathsOf(this.#askWhole('cheapest_path', [vertexOf(from), vertexOf(to)], options))[0];
  }

  /* The cheapest path, found sooner by `estimate`, a function of a vertex that never says more than is left from there. */
  aStar(from, to, options = {}) {
    return this.#search(from, to, options);
  }

  /* The `count` cheapest paths that meet no vertex twice. */
  cheapestPaths(from, to, count, options) {
    return pathsOf(this.#askWhole('cheapest_paths', [vertexOf(from), vertexOf(to)], {...options, count}));
  }

  /* A search whose costs are functions of the program: a walk by cost and estimate, which passes over what became cheaper. */
  #search(from, to, {cost, estimate = () => 0, ...options}) {
    const goal = vertexOf(to);
    const [graph, end] = this.view();
    let walk;
    try {
      if (!graph.hasVertex(goal)) graph.#ask('shortest_path', [goal, goal]);
      walk = new Walk(graph, [from], {...options, order: 'cheapest', uniqueness: 'none'});
      const best = new Map();
      const reach = {direction: options.direction, types: options.types};
      for (let found = walk.next(); found !== null; found = walk.next()) {
        const [vertex, depth, spent] = found;
        if (depth === 0) best.set(vertex, 0);
        if (vertex === goal) return walk.path(spent);
        if (spent > best.get(vertex)) walk.prune();
        else walk.lead(graph.#leads(vertex, spent, reach, {best, cost, estimate}));
      }
      return undefined;
    } finally {
      if (walk) walk.close();
      end();
    }
  }

  /* The edges of a search from a vertex that lead somewhere cheaper than before: [edge, cost, rank]. */
  #leads(vertex, spent, reach, {best, cost, estimate}) {
    const leads = [];
    for (const edge of this.edges(vertex, reach)) {
      const other = edge.source === vertex ? edge.target : edge.source;
      const one = cost ? cost(edge, this) : edge.weight === undefined ? Infinity : edge.weight;
      if (one === undefined || one === null) continue;
      const all = spent + one;
      // What is no cost is for the walk to refuse.
      if (Number.isFinite(one) && one >= 0 && best.has(other) && all >= best.get(other)) continue;
      best.set(other, all);
      leads.push([edge.id, one, all + estimate(other, this)]);
    }
    return leads;
  }

  /* ----------------------------------------------------------------------------- algorithms --- */

  /* Arrays of vertices that hang together, the largest first. */
  components(options) {
    const found = [];
    for (const {component, vertex} of this.#askWhole('components', [], options)) {
      (found[component - 1] ||= []).push(vertex);
    }
    return found;
  }

  pageRank({damping = 0.85, rounds = 20, ...options} = {}) {
    return byVertex(this.#askWhole('page_rank', [damping, rounds], options), 'rank');
  }

  betweenness(options) {
    return byVertex(this.#askWhole('betweenness', [], options), 'betweenness');
  }

  triangles(options) {
    return this.#askWhole('triangles', [], options)[0].triangles;
  }

  /* The vertices of a cycle; undefined if there is none. */
  cycle(options) {
    const found = column(this.#askWhole('cycle', [], options), 'vertex');
    return found.length > 0 ? found : undefined;
  }

  topologicalOrder(options) {
    return column(this.#askWhole('topological_order', [], options), 'vertex');
  }
}

function placed(place) {
  if (place instanceof Node) return place;
  throw refused('a graph lies below a node: give db.node(\'^name\', ...)');
}

/* Makes a graph below a node without children. `weight` is the property of edges that is their weight. */
function create(place, {weight = null} = {}) {
  return new Graph(place, placed(place)[GRAPH_CALL]('create', native.graphCreate, [weight]));
}

/* Opens the graph below a node; of a node of a snapshot, as it was then. */
function open(place) {
  return new Graph(place, placed(place)[GRAPH_CALL]('open', native.graphOpen, []));
}

module.exports = {create, open, Graph, Traversal, Path};
