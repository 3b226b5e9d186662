'use strict';
/*
 * `Cache` of cache.node, the shape that ewd-document-store and QEWD call: objects in, objects out, everything else as text.
 *
 * What differs from NodeM: `ok` is 1 or 0, `defined` is a number also in `get` and `next_node`, a lock answers '1' or '0'.
 */
const {Shape} = require('./shape');
const native = require('../addon');
const {PeriluneError} = require('../errors');

class Cache {
  #shape = new Shape();

  open(options, callback) {
    return this.#done(callback, () => {
      this.#shape.openAt(options || {});
      return {ok: 1, result: 1};
    });
  }

  close(callback) {
    return this.#done(callback, () => {
      this.#shape.closeNow();
      return {ok: 1, result: 1};
    });
  }

  version() {
    return `Perilune ${native.version()}; cache.node`;
  }

  about() {
    return this.version();
  }

  /* Runs a call; a failure is an answer, too; a callback gets (error, result). */
  #done(callback, work) {
    let result;
    try {
      result = work();
    } catch (error) {
      if (!(error instanceof PeriluneError)) throw error;
      result = {ok: 0, ErrorCode: error.code, ErrorMessage: error.message};
    }
    if (typeof callback !== 'function') return result;
    queueMicrotask(() => callback(result.ok ? 0 : 1, result));
    return undefined;
  }

  #call(given, callback, work) {
    return this.#done(callback, () => {
      const {name, subscripts} = this.#shape.addressOf(given);
      const answer = {ok: 1, global: given.global};
      if (given.subscripts !== undefined) answer.subscripts = given.subscripts;
      return Object.assign(answer, work(name, subscripts));
    });
  }

  get(given, callback) {
    return this.#call(given, callback, (name, subscripts) => {
      const value = this.#shape.get(name, subscripts);
      return {data: value === undefined ? '' : value, defined: this.#shape.data(name, subscripts)};
    });
  }

  set(given, callback) {
    return this.#call(given, callback, (name, subscripts) => {
      this.#shape.set(name, subscripts, given.data);
      return {data: given.data, result: 0};
    });
  }

  data(given, callback) {
    return this.#call(given, callback, (name, subscripts) => ({defined: this.#shape.data(name, subscripts)}));
  }

  kill(given, callback) {
    return this.#call(given, callback, (name, subscripts) => {
      this.#shape.kill(name, subscripts, false);
      return {result: 0};
    });
  }

  increment(given, callback) {
    return this.#call(given, callback, (name, subscripts) => ({
      data: this.#shape.increment(name, subscripts, given.increment === undefined ? 1 : given.increment),
    }));
  }

  #sibling(given, callback, backwards) {
    return this.#call(given, callback, (name, subscripts) => {
      const result = this.#shape.order(name, subscripts, backwards);
      return {result, subscripts: [...subscripts.slice(0, -1), result]};
    });
  }

  next(given, callback) {
    return this.#sibling(given, callback, false);
  }

  order(given, callback) {
    return this.#sibling(given, callback, false);
  }

  previous(given, callback) {
    return this.#sibling(given, callback, true);
  }

  #node(given, callback, backwards) {
    return this.#call(given, callback, (name, subscripts) => {
      const found = this.#shape.query(name, subscripts, backwards);
      return found ? {...found, defined: 1} : {defined: 0};
    });
  }

  next_node(given, callback) {
    return this.#node(given, callback, false);
  }

  previous_node(given, callback) {
    return this.#node(given, callback, true);
  }

  lock(given, callback) {
    return this.#call(given, callback, (name, subscripts) => {
      const seconds = given.timeout === undefined ? -1 : Number(given.timeout);
      return {result: this.#shape.lock(name, subscripts, seconds) ? '1' : '0'};
    });
  }

  unlock(given, callback) {
    return this.#call(given, callback, (name, subscripts) => {
      this.#shape.unlock(name, subscripts);
      return {result: 0};
    });
  }

  merge(given, callback) {
    return this.#done(callback, () => {
      const to = this.#shape.addressOf(given.to);
      const from = this.#shape.addressOf(given.from);
      this.#shape.merge(to.name, to.subscripts, from.name, from.subscripts);
      return {ok: 1, result: 1, to: given.to, from: given.from};
    });
  }

  global_directory(given, callback) {
    return this.#done(callback, () => this.#shape.names(false, given || {}));
  }

  function(given, callback) {
    return this.#done(callback, () => {
      throw new PeriluneError(-9, `function: there are no M routines here (${String(given && given.function)})`);
    });
  }
}

module.exports = {Cache};
