'use strict';
/*
 * `mglobal`: a global with the subscripts that are put in front of those of each call.
 *
 * Programs make 150,000 of them in a second. So an object owns nothing of the addon: it holds the number of an
 * entry in the addon's table (src/places.h). When another object has come to use that entry, the next call has the
 * node encoded again.
 *
 * A callback as the last argument is looked for only when the addon has refused it as a subscript: calls without
 * one pay nothing. Then the call is made again without it, and the callback gets the result.
 */
const native = require('../addon');
const {STATUS, errorOf} = require('../errors');

const TEXT = 0;
const DEFINED = {0: '0', 1: '1', 10: '10', 11: '11'};
const same = (result) => result;
const zero = () => '0';
const definedText = (result) => DEFINED[result];
const truthText = (result) => (result ? '1' : '0');
const textOrEnd = (result) => (result === null ? '' : result);

/*
 * A call that has answered `undefined`: there was nothing; or the node is to be encoded; or there is a callback; or it
 * has failed.
 */
function again(global, what, call, given, finish) {
  let status = native.status();
  if (status === STATUS.STALE) {
    if (!global.encode()) return global.db.failed(what);
    const result = call(global.h, ...given);
    if (result !== undefined) return finish(result);
    status = native.status();
  }
  if (status === 0) return '';
  if (typeof given[given.length - 1] === 'function') {
    return laterCall(global, what, call, given, finish);
  }
  return global.db.failed(what);
}

function laterCall(global, what, call, given, finish) {
  const {laterDo} = require('./server');
  const callback = given[given.length - 1];
  const rest = given.slice(0, -1);
  return laterDo(callback, () => {
    const result = call(global.h, ...rest);
    return result !== undefined ? finish(result) : again(global, what, call, rest, finish);
  });
}

const takeLock = (h, ...given) => native.lock(h, 0, ...given);

class mglobal {
  constructor(db, name, ...fixed) {
    this.db = db;
    this.name = name;
    this.fixed = fixed;
    this.h = 0;
    if (typeof db !== 'object' || db === null || !('handle' in db)) {
      throw errorOf(STATUS.TYPE, 'mglobal: the first argument is a server that was opened');
    }
    if (typeof name !== 'string') throw errorOf(STATUS.TYPE, 'mglobal: the name of a global is a string');
  }

  /* Has the node encoded; false: it cannot be. */
  encode() {
    const number = native.node(this.db.handle, TEXT, this.name, ...this.fixed);
    if (number === undefined) return false;
    this.h = number;
    return true;
  }

  /* The number of the node, encoded at the first call; 0: it cannot be, which the call then finds out. */
  first() {
    return this.encode() ? this.h : 0;
  }

  reset(name, ...fixed) {
    if (typeof name !== 'string') throw errorOf(STATUS.TYPE, 'reset: the name of a global is a string');
    this.name = name;
    this.fixed = fixed;
    this.h = 0;
    return '';
  }

  get(...given) {
    const result = native.get(this.h || this.first(), ...given);
    return result !== undefined ? result : again(this, 'get', native.get, given, same);
  }

  get_bx(...given) {
    const result = native.getBytes(this.h || this.first(), ...given);
    if (result !== undefined) return result;
    const found = again(this, 'get_bx', native.getBytes, given, same);
    return found === '' ? Buffer.alloc(0) : found;
  }

  set(...given) {
    return native.set(this.h || this.first(), ...given) !== undefined ? '0' : again(this, 'set', native.set, given, zero);
  }

  defined(...given) {
    const result = native.data(this.h || this.first(), ...given);
    return result !== undefined ? DEFINED[result] : again(this, 'defined', native.data, given, definedText);
  }

  delete(...given) {
    return native.kill(this.h || this.first(), ...given) !== undefined ? '0' : again(this, 'delete', native.kill, given, zero);
  }

  next(...given) {
    const result = native.next(this.h || this.first(), ...given);
    return result !== undefined ? textOrEnd(result) : again(this, 'next', native.next, given, textOrEnd);
  }

  previous(...given) {
    const result = native.previous(this.h || this.first(), ...given);
    return result !== undefined ? textOrEnd(result) : again(this, 'previous', native.previous, given, textOrEnd);
  }

  increment(...given) {
    const result = native.increment(this.h || this.first(), ...given);
    return result !== undefined ? result : again(this, 'increment', native.increment, given, same);
  }

  lock(...given) {
    if (typeof given[given.length - 1] === 'function') return this.lockLater(given);
    const result = native.lock(this.h, 0, ...given);
    return result !== undefined ? truthText(result) : again(this, 'lock', takeLock, given, truthText);
  }

  /* On a thread of its own, so that the event loop runs on. */
  lockLater(given) {
    const callback = given[given.length - 1];
    const rest = given.slice(0, -1);
    const db = this.db;
    const call = (h) => native.lockLater(h, (status, answer) => {
      db.waits.delete(wait);
      if (status < 0) return callback(true, db.keep(errorOf(status, answer, 'lock')));
      return callback(false, truthText(answer));
    }, 0, ...rest);
    let wait = call(this.h);
    if (wait === undefined) wait = again(this, 'lock', call, [], same);
    if (wait === '') return '';
    db.waits.add(wait);
    return null;
  }

  unlock(...given) {
    if (native.unlock(this.h, ...given) !== undefined) return '1';
    return again(this, 'unlock', native.unlock, given, () => '1');
  }

  merge(...given) {
    const callback = typeof given[given.length - 1] === 'function' ? given.pop() : null;
    const at = given.findIndex((one) => one instanceof mglobal);
    if (at < 0) throw errorOf(STATUS.TYPE, 'merge: one of the arguments is the mglobal to merge from');
    const from = given[at];
    const below = [...given.slice(0, at), ...given.slice(at + 1)];
    const call = (h) => native.merge(h, from.h, false, at, ...below);
    /* Encoding one of the two may make the other stale only when thousands are encoded between them. */
    if (!from.encode()) return this.db.failed('merge');
    const merge = () => (call(this.h) !== undefined ? '0' : again(this, 'merge', call, [], zero));
    return callback ? require('./server').laterDo(callback, merge) : merge();
  }

  setchildnodes(...given) {
    return require('./batches').setchildnodes(this, given);
  }

  getchildnodes(...given) {
    return require('./batches').getchildnodes(this, given);
  }

  close() {
    return '';
  }
}

module.exports = {mglobal, again, same, zero, TEXT};
