'use strict';
/*
 * Traversals: which paths a walk over a graph finds, in which order, described as Neo4j's framework has it.
 *
 *   for (const path of g.traversal().breadthFirst().expand({types: 'KNOWS'}).maxDepth(2).from(7)) console.log(String(path));
 *
 * Invariants
 * - What no function of the program decides runs in the library: a step crosses into it once, for its path.
 * - A traversal never changes: each method answers another one, so that parts of it can be shared.
 * - A walk sees one state: that of the open transaction, of the snapshot that the graph is of, or of a snapshot of its own.
 */
const native = require('../addon');
const {STATUS, errorOf, lastError} = require('../errors');
const {vertexOf, walked} = require('./path');

const EVALUATIONS = {
  include_and_continue: [true, true],
  include_and_prune: [true, false],
  exclude_and_continue: [false, true],
  exclude_and_prune: [false, false],
};

/* Whether a path counts, and whether it is followed, by all evaluators. */
function judged(evaluators, path, graph) {
  let [includes, continues] = [true, true];
  for (const evaluator of evaluators) {
    const answer = evaluator(path, graph);
    const pair = typeof answer === 'string' ? EVALUATIONS[answer] : Array.isArray(answer) ? answer : [answer, true];
    if (!pair) {
      throw errorOf(STATUS.TYPE, `an evaluator answers a truth value, two in an array, or one of ${Object.keys(EVALUATIONS).join(', ')}`);
    }
    includes = includes && Boolean(pair[0]);
    continues = continues && Boolean(pair[1]);
  }
  return [includes, continues];
}

/* A walk of the addon: a path at a time. */
class Walk {
  #walk;

  constructor(graph, starts, options) {
    this.#walk = graph.call('walk', native.graphWalk, [JSON.stringify(options), ...starts.map(vertexOf)]);
  }

  #done(answer) {
    if (answer === undefined) throw lastError('walk');
    return answer;
  }

  /* [vertex, depth, cost] of the next path; null at the end. */
  next() {
    return this.#done(native.graphNext(this.#walk));
  }

  path(cost) {
    return walked(this.#done(native.graphPath(this.#walk)), cost);
  }

  prune() {
    this.#done(native.graphPrune(this.#walk));
  }

  /* Goes on from the last path by these edges, each [edge, cost, rank]. */
  lead(leads) {
    this.#done(native.graphLead(this.#walk, Float64Array.from(leads.flat())));
  }

  close() {
    native.graphWalkClose(this.#walk);
  }
}

function ended({walk, end}) {
  if (walk) walk.close();
  end();
}

/* What was left without return() is ended when it is collected: at most 64 snapshots are open at once. */
const left = new FinalizationRegistry(ended);

class Traversal {
  #graph;
  #how;

  constructor(graph, how = {options: {}, evaluators: [], least: 0}) {
    this.#graph = graph;
    this.#how = how;
  }

  #with(changes, options) {
    return new Traversal(this.#graph, {...this.#how, ...changes, options: {...this.#how.options, ...options}});
  }

  breadthFirst() {
    return this.#with({}, {order: 'breadth'});
  }

  depthFirst() {
    return this.#with({}, {order: 'depth'});
  }

  cheapestFirst() {
    return this.#with({}, {order: 'cheapest'});
  }

  /* Where edges lead: {direction, types}, or a function of a path, and the graph as the walk sees it, that answers edges. */
  expand(how) {
    if (typeof how === 'function') return this.#with({expander: how});
    const unknown = Object.keys(how).find((name) => name !== 'direction' && name !== 'types');
    if (unknown) throw errorOf(STATUS.TYPE, `an expander has direction and types, not ${unknown}`);
    return this.#with({expander: undefined}, how);
  }

  /* Asks a function about each path, besides those asked before. */
  evaluate(evaluator) {
    return this.#with({evaluators: [...this.#how.evaluators, evaluator]});
  }

  uniqueness(kind, recent) {
    return this.#with({}, {uniqueness: kind, recent});
  }

  minDepth(depth) {
    return this.#with({least: depth});
  }

  maxDepth(depth) {
    return this.#with({most: depth}, {max_depth: depth});
  }

  /* What edges cost: 'weight', 'one', or a function of an edge and the graph. */
  cost(cost) {
    return typeof cost === 'function' ? this.#with({price: cost}) : this.#with({price: undefined}, {cost});
  }

  limit({vertices, edges, milliseconds}) {
    return this.#with({}, {max_vertices: vertices, max_edges: edges, max_milliseconds: milliseconds});
  }

  /* Walks from vertices, lazily: an iterator of paths. Who leaves it by hand calls return(), as a loop does by itself. */
  from(...starts) {
    const state = {end() {}};
    const paths = this.#paths(starts, state);
    left.register(paths, state);
    return paths;
  }

  *#paths(starts, state) {
    [state.graph, state.end] = this.#graph.view();
    try {
      state.walk = new Walk(state.graph, starts, this.#how.options);
      for (let path = this.#step(state); path; path = this.#step(state)) yield path;
    } finally {
      ended(state);
    }
  }

  all(...starts) {
    return [...this.from(...starts)];
  }

  /* The next path that counts; undefined at the end. `state.last` is the path that the program is to lead on first. */
  #step(state) {
    const {walk, graph} = state;
    const {evaluators, expander, price, least, most} = this.#how;
    const decides = expander || price;
    for (;;) {
      if (state.last) this.#lead(state, state.last);
      state.last = undefined;
      const found = walk.next();
      if (found === null) return undefined;
      const [, depth, cost] = found;
      const isWanted = depth >= least;
      const path = isWanted || decides || evaluators.length > 0 ? walk.path(cost) : undefined;
      const [includes, continues] = judged(evaluators, path, graph);
      if (!continues) walk.prune();
      else if (decides && !(depth >= most)) state.last = path;
      if (includes && isWanted) return path;
    }
  }

  #lead({walk, graph}, path) {
    const {expander, price, options} = this.#how;
    const reach = {direction: options.direction, types: options.types};
    const edges = expander ? expander(path, graph) : graph.edges(path.vertex, reach);
    const leads = [...edges].map((given) => {
      const edge = typeof given === 'object' ? given : graph.edge(given) || {id: given};
      const weight = options.cost === 'weight' && edge.weight !== undefined ? edge.weight : 1;
      const one = price ? price(edge, graph) : weight;
      return [edge.id, one, path.cost + one];
    });
    walk.lead(leads);
  }
}

module.exports = {Traversal, Walk};
