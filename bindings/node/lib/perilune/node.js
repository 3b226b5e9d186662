'use strict';
/*
 * A node: the address of a place in a database. Immutable; costs an object, and of the addon only a number
 * (src/places.h).
 *
 * Every method takes subscripts below the node first; `set` and `incr` take the value last.
 */
const native = require('../addon');
const {STATUS, errorOf} = require('../errors');
const {shown} = require('./values');

const TYPED = 1;
const CHILDREN = {reverse: 1, values: 2, fromExclusive: 16, toExclusive: 32};
/* The name of the method by which lib/dom makes its calls. */
const DOCUMENT_CALL = Symbol('call on a document');
/* The name of the method by which lib/models makes its calls. */
const MODELS_CALL = Symbol('call on a model');
/* The name of the method by which lib/graph makes its calls. */
const GRAPH_CALL = Symbol('call on a graph');
const FROM = 1;
const TO = 2;
const DEPTH = 256;

class Node {
  #handle = 0;

  constructor(db, name, subscripts) {
    this.db = db;
    this.name = name;
    this.subscripts = Object.freeze(subscripts);
    Object.freeze(this);
  }

  /* Calls the addon with this node, encoded again if need be; `undefined` for nothing. */
  #call(what, work, given) {
    let result = work(this.#handle, ...given);
    if (result !== undefined) return result;
    if (native.status() === STATUS.STALE) {
      const handle = native.node(this.db.handle, TYPED, this.name, ...this.subscripts);
      if (handle === undefined) throw errorOf(native.status(), native.message(), what);
      this.#handle = handle;
      result = work(handle, ...given);
    }
    if (result === undefined && native.status() !== 0) throw errorOf(native.status(), native.message(), what);
    return result;
  }

  /* ------------------------------------------------------------------------------- addresses --- */

  /* The descendant with these subscripts more. */
  node(...subscripts) {
    return new Node(this.db, this.name, [...this.subscripts, ...subscripts]);
  }

  get parent() {
    return this.subscripts.length === 0 ? undefined : new Node(this.db, this.name, this.subscripts.slice(0, -1));
  }

  /* The last subscript; of a name, the name. */
  get key() {
    return this.subscripts.length === 0 ? this.name : this.subscripts[this.subscripts.length - 1];
  }

  toString() {
    return this.#call('toString', native.nodeText, []);
  }

  [MODELS_CALL](name, given) {
    return this.#call(name, native.modelsCall, [name, ...given]);
  }

  [GRAPH_CALL](what, work, given) {
    return this.#call(what, work, given);
  }

  /* ----------------------------------------------------------------------------------- values --- */

  get(...subscripts) {
    return shown(this.#call('get', native.get, subscripts));
  }

  getBytes(...subscripts) {
    return this.#call('getBytes', native.getBytes, subscripts);
  }

  set(...given) {
    this.#call('set', native.set, given);
  }

  /* Adds `by`, 1 if there is no argument; the last argument is `by` if there are any. */
  incr(...given) {
    return this.#call('incr', native.increment, given.length === 0 ? [1] : given);
  }

  data(...subscripts) {
    return this.#call('data', native.data, subscripts);
  }

  delete(...subscripts) {
    return this.#call('delete', native.remove, subscripts) === 1;
  }

  kill(...subscripts) {
    this.#call('kill', native.kill, subscripts);
  }

  /* Sets this node's value if it is `expected`; undefined on either side is no value. */
  compareAndSet(expected, desired) {
    const given = [expected !== undefined, desired !== undefined, expected, desired];
    return this.#call('compareAndSet', native.compareAndSet, given) === 1;
  }

  /* ------------------------------------------------------------------------------ subtrees --- */

  copy(to) {
    return this.#onto('copy', to, true);
  }

  merge(to) {
    return this.#onto('merge', to, false);
  }

  #onto(what, to, replace) {
    if (!(to instanceof Node)) throw errorOf(STATUS.TYPE, `${what} takes the node to write to`);
    const from = native.node(this.db.handle, TYPED, this.name, ...this.subscripts);
    if (from === undefined) throw errorOf(native.status(), native.message(), what);
    to.#call(what, (handle) => native.merge(handle, from, replace, 0), []);
    return to;
  }

  count(what = 'children') {
    if (what !== 'children' && what !== 'nodes') throw errorOf(STATUS.TYPE, 'count counts \'children\' or \'nodes\'');
    return this.#call('count', native.count, [what === 'nodes']);
  }

  /* Sets [[subscripts, value], ...] below this node: all or none, or with {each: true} one after the other. */
  setMany(entries, {each = false} = {}) {
    const list = [];
    for (const [subscripts, value] of entries) {
      const path = Array.isArray(subscripts) ? subscripts : [subscripts];
      list.push(path.length, ...path, value);
    }
    this.#call('setMany', native.setMany, [each, list]);
  }

  /* The values at [subscripts, ...], as of one moment. */
  getMany(paths) {
    const list = [];
    for (const one of paths) {
      const path = Array.isArray(one) ? one : [one];
      list.push(path.length, ...path);
    }
    return Array.from(this.#call('getMany', native.getMany, [list]), shown);
  }

  /* --------------------------------------------------------------------------- going through --- */

  /* The child after `subscript`, or the first; undefined at the end. */
  next(subscript) {
    const found = this.#call('next', native.child, subscript === undefined ? [false] : [false, subscript]);
    return found === null ? undefined : found;
  }

  previous(subscript) {
    const found = this.#call('previous', native.child, subscript === undefined ? [true] : [true, subscript]);
    return found === null ? undefined : found;
  }

  /* Walks over the children: [subscript, value], value undefined where there is only a subtree. */
  *children({from, after, to, before, reverse = false} = {}) {
    let flags = CHILDREN.values;
    let bounds = 0;
    const given = [];
    if (reverse) flags |= CHILDREN.reverse;
    if (after !== undefined) flags |= CHILDREN.fromExclusive;
    if (before !== undefined) flags |= CHILDREN.toExclusive;
    const first = after === undefined ? from : after;
    const last = before === undefined ? to : before;
    if (first !== undefined) {
      bounds |= FROM;
      given.push(first);
    }
    if (last !== undefined) {
      bounds |= TO;
      given.push(last);
    }
    const cursor = this.#call('children', native.cursor, [flags, false, bounds, ...given]);
    try {
      for (;;) {
        const subscript = native.cursorChild(cursor);
        if (subscript === null) return;
        if (subscript === undefined) throw errorOf(native.status(), native.message(), 'children');
        yield [subscript, shown(native.foundValue(this.db.handle, TYPED))];
      }
    } finally {
      native.cursorClose(cursor);
    }
  }

  *keys(range) {
    for (const [subscript] of this.children(range)) yield subscript;
  }

  /* Walks over all nodes with a value, this one included, depth first: [node, value]. */
  *nodes({reverse = false} = {}) {
    const flags = CHILDREN.values | (reverse ? CHILDREN.reverse : 0);
    const cursor = this.#call('nodes', native.cursor, [flags, true, 0]);
    try {
      for (;;) {
        const packed = native.cursorNode(cursor);
        if (packed === undefined) throw errorOf(native.status(), native.message(), 'nodes');
        if (packed < 0) return;
        const depth = Math.trunc(packed / DEPTH);
        const subscripts = [];
        for (let i = 1; i <= depth; i++) subscripts.push(native.foundSubscript(this.db.handle, i, TYPED));
        const value = shown(native.foundValue(this.db.handle, TYPED));
        yield [new Node(this.db, this.name, subscripts), value];
      }
    } finally {
      native.cursorClose(cursor);
    }
  }

  [Symbol.iterator]() {
    return this.children();
  }

  [DOCUMENT_CALL](name, given) {
    return this.#call(name, native.domCall, [name, ...given]);
  }

  /* ---------------------------------------------------------------------------------- locks --- */

  /* Takes the lock at once or, with `timeout` seconds, after a wait that stops the event loop. */
  lock({timeout = 0, shared = false} = {}) {
    return this.#call('lock', native.lock, [shared ? 1 : 0, timeout]) === 1;
  }

  unlock() {
    return this.#call('unlock', native.unlock, []) === 1;
  }

  lockCount() {
    return this.#call('lockCount', native.lockCount, []);
  }

  /* Waits for the lock without stopping the event loop; false when the time is over. */
  lockAsync({timeout = Infinity, shared = false, signal} = {}) {
    const seconds = timeout === Infinity ? -1 : timeout;
    return this.db.wait('lock', signal, (done) => this.#call('lock', native.lockLater, [done, shared ? 1 : 0, seconds]))
      .then((answer) => answer === 1);
  }

  /* Begins to watch this node's value, or with all below it; see Watch. */
  watch({scope = 'subtree'} = {}) {
    const {Watch} = require('./watch');
    if (scope !== 'subtree' && scope !== 'node') throw errorOf(STATUS.TYPE, 'a watch is of scope \'node\' or \'subtree\'');
    return new Watch(this.db, (touched) => this.#call('watch', native.watch, [touched, scope === 'subtree' ? 1 : 0, -1]));
  }
}

module.exports = {Node, TYPED, DOCUMENT_CALL, MODELS_CALL, GRAPH_CALL};
