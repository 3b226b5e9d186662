'use strict';
/*
 * NodeM's interface, from its documentation: `new Ydb()` or `new Gtm()`, calls by object and by position.
 *
 * By object a failure is an answer ({ok: false, errorCode, errorMessage}), by position it is thrown. With a function as the
 * last argument a call answers nothing and calls back with (error, result) in the next microtask. M's routines are not here.
 */
const native = require('../addon');
const {Shape, canonical} = require('./shape');
const {STATUS, PeriluneError, errorOf, invalid} = require('../errors');

const RESTART = -2;

class Ydb {
  #shape = new Shape();
  #mode = 'canonical';

  constructor() {
    this.tpRestart = 1;
    this.tpRollback = 2;
  }

  /* --------------------------------------------------------------------------- life of a connection --- */

  open(options, callback) {
    const given = typeof options === 'object' && options !== null ? options : {};
    return this.#object(typeof options === 'function' ? options : callback, () => {
      if (given.mode !== undefined) this.configure(given);
      this.#shape.openAt(given);
      return {ok: true, pid: process.pid, tid: process.pid};
    });
  }

  close() {
    this.#shape.closeNow();
  }

  configure(options) {
    const mode = (options || {}).mode;
    if (mode === 'canonical' || mode === 'string') this.#mode = mode;
    return {ok: true};
  }

  version() {
    return `Node.js Adaptor for Perilune: Version: ${native.version()} (ABI=${process.versions.modules}) [NodeM]`;
  }

  about() {
    return this.version();
  }

  help() {
    return 'get set data kill order previous nextNode previousNode increment lock unlock merge globalDirectory ' +
      'localDirectory transaction; see docs/guide/node.md of Perilune';
  }

  /* ------------------------------------------------------------------------------- forms of a call --- */

  #shown(value) {
    if (value === undefined) return '';
    return this.#mode === 'string' ? String(value) : canonical(typeof value === 'string' ? value : String(value));
  }

  #object(callback, work) {
    let result;
    try {
      result = work();
    } catch (error) {
      if (!(error instanceof PeriluneError) && !(error instanceof TypeError)) throw error;
      /* What ends a try of a transaction must reach its loop. */
      if (error.status === STATUS.CONFLICT && native.level(this.#shape.handle) > 0) throw error;
      result = {ok: false, errorCode: error.status, errorMessage: error.message};
    }
    if (typeof callback !== 'function') return result;
    const error = result && result.ok === false ? Object.assign(new Error(result.errorMessage), result) : null;
    queueMicrotask(() => callback(error, result));
    return undefined;
  }

  /*
   * A call in either form. `work(name, subscripts, given)` answers the properties of an object; `plain` makes of them what a
   * call by position answers. `values`: how many of the arguments by position follow the subscripts, with the property's name.
   */
  #call(args, value, work, plain) {
    const callback = typeof args[args.length - 1] === 'function' ? args[args.length - 1] : undefined;
    const rest = callback ? args.slice(0, -1) : args;
    if (typeof rest[0] === 'object' && rest[0] !== null) {
      const given = rest[0];
      return this.#object(callback, () => {
        const {name, subscripts} = this.#shape.addressOf(given);
        const answer = {ok: true};
        if (given.global !== undefined) answer.global = given.global;
        else answer.local = given.local;
        if (given.subscripts !== undefined) answer.subscripts = given.subscripts;
        return Object.assign(answer, work(name, subscripts, given));
      });
    }
    const run = () => {
      if (typeof rest[0] !== 'string') throw errorOf(STATUS.TYPE, 'the first argument is an object, or the name of a node');
      const given = {};
      const subscripts = rest.slice(1);
      if (value && subscripts.length > 0) given[value] = subscripts.pop();
      return plain(work(rest[0], subscripts, given));
    };
    if (!callback) return run();
    let result;
    try {
      result = run();
    } catch (error) {
      queueMicrotask(() => callback(error));
      return undefined;
    }
    queueMicrotask(() => callback(null, result));
    return undefined;
  }

  /* ---------------------------------------------------------------------------------------- nodes --- */

  data(...args) {
    return this.#call(args, null, (name, subs) => ({defined: this.#shape.data(name, subs)}), (found) => found.defined);
  }

  get(...args) {
    return this.#call(args, null, (name, subs) => {
      const value = this.#shape.get(name, subs);
      return {data: this.#shown(value), defined: value !== undefined};
    }, (found) => found.data);
  }

  set(...args) {
    return this.#call(args, 'data', (name, subs, given) => {
      this.#shape.set(name, subs, given.data);
      return {data: given.data};
    }, () => true);
  }

  kill(...args) {
    if (args.length === 0 || (args.length === 1 && typeof args[0] === 'function')) return this.#killLocals(args[0]);
    return this.#call(args, null, (name, subs, given) => {
      this.#shape.kill(name, subs, Boolean(given.nodeOnly));
      return {};
    }, () => true);
  }

  #killLocals(callback) {
    return this.#object(callback, () => {
      for (const name of this.#shape.names(true, {})) this.#shape.kill(name, [], false);
      return true;
    });
  }

  #sibling(args, backwards) {
    return this.#call(args, null, (name, subs) => {
      const result = this.#shown(this.#shape.order(name, subs, backwards));
      return {result, subscripts: [...subs.slice(0, -1), result]};
    }, (found) => found.result);
  }

  order(...args) {
    return this.#sibling(args, false);
  }

  next(...args) {
    return this.#sibling(args, false);
  }

  previous(...args) {
    return this.#sibling(args, true);
  }

  #node(args, backwards) {
    return this.#call(args, null, (name, subs) => {
      const found = this.#shape.query(name, subs, backwards);
      if (!found) return {defined: false};
      const subscripts = found.subscripts.map((one) => this.#shown(one));
      return {subscripts, data: this.#shown(found.data), defined: true};
    }, (found) => (found.defined ? found.subscripts : []));
  }

  nextNode(...args) {
    return this.#node(args, false);
  }

  next_node(...args) {
    return this.#node(args, false);
  }

  previousNode(...args) {
    return this.#node(args, true);
  }

  previous_node(...args) {
    return this.#node(args, true);
  }

  increment(...args) {
    return this.#call(args, 'increment', (name, subs, given) => ({
      data: this.#shown(this.#shape.increment(name, subs, given.increment === undefined ? 1 : given.increment)),
    }), (found) => found.data);
  }

  lock(...args) {
    return this.#call(args, 'timeout', (name, subs, given) => {
      const seconds = given.timeout === undefined ? -1 : Number(given.timeout);
      return {result: this.#shape.lock(name, subs, seconds)};
    }, (found) => found.result);
  }

  unlock(...args) {
    if (args.length === 0 || (args.length === 1 && typeof args[0] === 'function')) {
      return this.#object(args[0], () => {
        this.#shape.unlockAll();
        return true;
      });
    }
    return this.#call(args, null, (name, subs) => {
      this.#shape.unlock(name, subs);
      return {};
    }, () => true);
  }

  merge(given, callback) {
    return this.#object(callback, () => {
      const to = this.#shape.addressOf(given.to);
      const from = this.#shape.addressOf(given.from);
      this.#shape.merge(to.name, to.subscripts, from.name, from.subscripts);
      return {ok: true, from: given.from, to: given.to};
    });
  }

  globalDirectory(given, callback) {
    const options = typeof given === 'object' && given !== null ? given : {};
    return this.#object(typeof given === 'function' ? given : callback, () => this.#shape.names(false, options));
  }

  global_directory(given, callback) {
    return this.globalDirectory(given, callback);
  }

  localDirectory(given, callback) {
    const options = typeof given === 'object' && given !== null ? given : {};
    return this.#object(typeof given === 'function' ? given : callback, () => this.#shape.names(true, options));
  }

  local_directory(given, callback) {
    return this.localDirectory(given, callback);
  }

  /* ---------------------------------------------------------------------------------- the rest --- */

  function(given, ...rest) {
    const callback = rest[rest.length - 1];
    return this.#object(callback, () => {
      throw invalid('there are no M routines here');
    });
  }

  procedure(given, ...rest) {
    return this.function(given, ...rest);
  }

  routine(given, ...rest) {
    return this.function(given, ...rest);
  }

  transaction(work, options) {
    const {durabilityOf} = require('../opening');
    const {transact, Rollback} = require('../transactions');
    const isBatch = typeof options === 'object' && options !== null && options.type === 'Batch';
    const answer = (ok, code, message) => ({ok, statusCode: code, statusMessage: message});
    try {
      return transact(this.#shape.handle, {durability: isBatch ? durabilityOf('none') : 0}, () => {
        const result = work();
        if (result === 'Rollback' || result === this.tpRollback) throw new Rollback(answer(true, this.tpRollback, 'Rollback'));
        if (result === 'Restart' || result === this.tpRestart) throw new PeriluneError(RESTART, 'Restart');
        return answer(true, 0, 'Commit');
      });
    } catch (error) {
      if (!(error instanceof PeriluneError)) throw error;
      return {ok: false, errorCode: error.status, errorMessage: error.message};
    }
  }
}

/* NodeM's two names; either may be called without `new`. */
function made(name) {
  const constructor = function () {
    return new Ydb();
  };
  Object.defineProperty(constructor, 'name', {value: name});
  constructor.prototype = Ydb.prototype;
  return constructor;
}

module.exports = {Ydb: made('Ydb'), Gtm: made('Gtm')};
