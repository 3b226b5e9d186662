'use strict';
/*
 * `setchildnodes` and `getchildnodes` of mg-dbx: the children of a node in one call.
 *
 * Writing is one atomic call, all or nothing; `{each: true}` writes one after the other, for loading. Reading goes through
 * a cursor with the values. `numerickeys` makes of a list of values the children 0, 1, 2 ..., and the other way round; the
 * list ends at the first number that is missing.
 */
const native = require('../addon');
const {STATUS, errorOf, lastError} = require('../errors');
const {TEXT} = require('./mglobal');

const MAX = 100;
const VALUES = 2;
const WITHOUT_EMPTY = 64;
const FROM = 1;
const TO = 2;

function isOptions(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value);
}

/* Takes the callback, the options and, if `withNodes`, the list of nodes from the end of the arguments. */
function taken(given, withNodes) {
  const rest = given.slice();
  const callback = typeof rest[rest.length - 1] === 'function' ? rest.pop() : null;
  const options = isOptions(rest[rest.length - 1]) ? rest.pop() : {};
  const nodes = withNodes ? rest.pop() : null;
  if (withNodes && !Array.isArray(nodes)) throw errorOf(STATUS.TYPE, 'setchildnodes: the nodes are an array');
  return {subscripts: rest, nodes, options, callback};
}

/* Runs `work` with the lock on the node, if the options ask for one. */
function locked(global, subscripts, options, work) {
  if (!options.lock) return work();
  const seconds = options.locktimeout === undefined ? -1 : options.locktimeout;
  const got = global.lock(...subscripts, seconds);
  if (got !== '1') throw errorOf(STATUS.INVALID, 'the lock was not to be had in time');
  try {
    return work();
  } finally {
    global.unlock(...subscripts);
  }
}

function finish(callback, work) {
  return callback ? require('./server').laterDo(callback, work) : work();
}

/* The batch of the addon: [count, ...subscripts, value, ...]. */
function listOf(subscripts, nodes, numeric) {
  const list = [];
  nodes.forEach((node, index) => {
    if (node === undefined || node === null) return;
    let key = index;
    let data = node;
    if (!numeric) {
      if (typeof node !== 'object') throw errorOf(STATUS.TYPE, `setchildnodes: node ${index} is no {key, data}`);
      key = node.key;
      data = node.data;
    }
    const keys = Array.isArray(key) ? key : [key];
    list.push(subscripts.length + keys.length, ...subscripts, ...keys, data);
  });
  return list;
}

function setchildnodes(global, given) {
  const {subscripts, nodes, options, callback} = taken(given, true);
  const list = listOf(subscripts, nodes, options.numerickeys);
  return finish(callback, () => locked(global, subscripts, options, () => {
    if (!global.encode() || native.setMany(global.h, Boolean(options.each), list) === undefined) {
      return global.db.failed('setchildnodes');
    }
    return '';
  }));
}

/* The children within the bounds of `options`, as {key, data}. */
function childrenOf(global, subscripts, options) {
  const node = native.node(global.db.handle, TEXT, global.name, ...global.fixed, ...subscripts);
  if (node === undefined) return undefined;
  const bounds = [];
  let which = 0;
  if (options.start !== undefined && options.start !== '') {
    which |= FROM;
    bounds.push(options.start);
  }
  if (options.end !== undefined && options.end !== '') {
    which |= TO;
    bounds.push(options.end);
  }
  const cursor = native.cursor(node, VALUES | WITHOUT_EMPTY, false, which, ...bounds);
  if (cursor === undefined) return undefined;
  const found = [];
  const max = options.max === undefined ? MAX : Number(options.max);
  while (found.length < max) {
    const key = native.cursorChild(cursor);
    if (key === undefined) throw lastError('getchildnodes');
    if (key === null) break;
    found.push({key, data: native.foundValue(global.db.handle, TEXT)});
  }
  native.cursorClose(cursor);
  return found;
}

/* As a list: up to the first number that is missing. */
function numbered(found) {
  const list = [];
  for (const {key, data} of found) {
    if (Number(key) < list.length) continue;
    if (key !== String(list.length)) break;
    list.push(data);
  }
  return list;
}

function getchildnodes(global, given) {
  const {subscripts, options, callback} = taken(given, false);
  return finish(callback, () => locked(global, subscripts, options, () => {
    const found = childrenOf(global, subscripts, options);
    if (!found) return global.db.failed('getchildnodes');
    if (options.numerickeys) return numbered(found);
    if (!options.getdata) return found.map(({key}) => key);
    return found.map(({key, data}) => (data === undefined ? {key} : {key, data}));
  }));
}

module.exports = {setchildnodes, getchildnodes};
