'use strict';
/*
 * What is installed works: installed.js DATABASE, from a directory whose node_modules has it.
 */
const assert = require('node:assert');
const perilune = require('perilune');
const {server, mglobal} = require('perilune/mg-dbx-napi');
const graph = require('perilune/graph');

const db = perilune.open(process.argv[2]);
db.node('^installed').set('yes');
const other = new server();
assert.strictEqual(other.open({perilune: {path: process.argv[2]}}), '');
assert.strictEqual(new mglobal(other, 'installed').get(), 'yes');
other.close();
const g = graph.create(db.node('^graph'));
g.addVertex(1);
assert.deepStrictEqual(graph.open(db.node('^graph')).count(), {vertices: 1, edges: 0});
import('perilune/graph').then((made) => {
  assert.strictEqual(made.open, graph.open);
  db.close();
});
