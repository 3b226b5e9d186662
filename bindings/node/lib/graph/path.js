'use strict';
/*
 * Paths of a graph, and the ids of vertices.
 *
 * A vertex is an integer or a string. The string of an integer is that integer, and a node of the database is the string
 * that stands for it, so that a row of a table can be a vertex.
 */
const {STATUS, errorOf} = require('../errors');
const {Node} = require('../perilune/node');

const INTEGER = /^(?:0|-?[1-9]\d{0,18})$/;

/* The id that a vertex has when it comes back. */
function vertexOf(given) {
  const id = given instanceof Node ? String(given) : given;
  if (Number.isSafeInteger(id)) return id;
  if (typeof id !== 'string' && typeof id !== 'bigint') {
    throw errorOf(STATUS.TYPE, `a vertex is an integer, a string or a node of the database, not ${String(given)}`);
  }
  if (typeof id === 'string' && !INTEGER.test(id)) return id;
  const integer = BigInt(id);
  if (BigInt.asIntN(64, integer) !== integer) return String(id);
  const number = Number(integer);
  return Number.isSafeInteger(number) ? number : integer;
}

class Path {
  constructor(vertices, edges, cost) {
    this.vertices = vertices;
    this.edges = edges;
    this.cost = cost;
  }

  /* How many edges. */
  get length() {
    return this.edges.length;
  }

  get start() {
    return this.vertices[0];
  }

  /* The end. */
  get vertex() {
    return this.vertices[this.vertices.length - 1];
  }

  /* A-[KNOWS]->B<-[KNOWS]-C */
  toString() {
    return this.edges.reduce((text, edge, i) => {
      const isAhead = edge.source === this.vertices[i];
      return text + (isAhead ? `-[${edge.type}]->` : `<-[${edge.type}]-`) + this.vertices[i + 1];
    }, String(this.vertices[0]));
  }
}

/* A row of the question `edges`. */
function edgeOf({edge, source, type, target, weight}) {
  return {id: edge, source, type, target, weight: weight === null ? undefined : weight};
}

/* Rows of steps as paths. */
function pathsOf(rows) {
  const paths = [];
  let number;
  for (const row of rows) {
    if (row.path !== number) paths.push(new Path([], [], 0));
    number = row.path;
    const path = paths[paths.length - 1];
    path.vertices.push(row.vertex);
    if (row.edge !== null) path.edges.push(edgeOf(row));
    path.cost = row.cost;
  }
  return paths;
}

/* What the addon says of the last path: the start, and for each edge [edge, source, type, target, weight, vertex]. */
function walked(parts, cost) {
  const path = new Path([parts[0]], [], cost);
  for (let i = 1; i < parts.length; i += 6) {
    const [id, source, type, target, weight, vertex] = parts.slice(i, i + 6);
    path.edges.push({id, source, type, target, weight});
    path.vertices.push(vertex);
  }
  return path;
}

module.exports = {Path, edgeOf, pathsOf, vertexOf, walked};
