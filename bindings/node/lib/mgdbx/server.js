'use strict';
/*
 * What `server` of mg-dbx-napi and `dbx` of mg-dbx share: a connection, which here is a database of this environment.
 *
 * Results are strings. Errors are thrown, unless `open` was told `dberror_exceptions: false`: then the call answers ''
 * and geterrormessage() has the text. Wrong types always throw.
 *
 * Invariant: `close` works with any `this`, since programs store it as a method of their own objects.
 */
const native = require('../addon');
const opening = require('../opening');
const {STATUS, PeriluneError, errorOf, lastError, invalid} = require('../errors');
const {placeOf} = require('./place');
const {mglobal} = require('./mglobal');
const batches = require('./batches');

const NO_HANDLE = 0;
const CHARSETS = {'utf-8': false, 'utf8': false, 'utf-16': false, 'ascii': true, 'binary': true};

/* Calls back in the next microtask, as mg-dbx-napi does; answers what an asynchronous call answers. */
function later(callback, error, result) {
  queueMicrotask(() => callback(error, result));
  return null;
}

/* Runs `work` and calls back with what it answers or throws. */
function laterDo(callback, work) {
  let result;
  try {
    result = work();
  } catch (error) {
    if (error instanceof TypeError) throw error;
    return later(callback, true, error.message);
  }
  return later(callback, false, result);
}

class Connection {
  constructor() {
    this.handle = NO_HANDLE;
    this.entry = null;
    this.message = '';
    this.throws = true;
    this.exclusive = false;
    this.globals = new Map();
    this.functions = new Map();
    this.waits = new Set();
    this.charsetName = 'utf-8';
    this.close = (callback) => this.closeNow(callback);
  }

  /* ------------------------------------------------------------------------------- opening --- */

  open(options, callback) {
    const given = options || {};
    if (typeof given !== 'object') throw errorOf(STATUS.TYPE, 'open: the options are an object');
    this.throws = given.dberror_exceptions !== false;
    this.exclusive = given.transactions === 'exclusive';
    const {path, options: ours} = placeOf(given);
    if (this.entry) this.closeNow();
    if (typeof callback === 'function') {
      opening.acquireLater(path, ours, (error, entry) => {
        if (error) return callback(true, this.keep(error));
        return callback(false, this.opened(entry, given));
      });
      return null;
    }
    let entry;
    try {
      entry = opening.acquire(path, ours);
    } catch (error) {
      if (error instanceof TypeError || this.throws) throw error;
      return this.keep(error);
    }
    return this.opened(entry, given);
  }

  opened(entry, given) {
    this.entry = entry;
    this.handle = entry.handle;
    this.message = '';
    if (given.charset !== undefined) this.charset(given.charset);
    return '';
  }

  closeNow(callback) {
    for (const wait of this.waits) native.cancel(wait);
    this.waits.clear();
    this.globals.clear();
    if (this.entry) {
      /* What was begun and not committed does not outlive who began it, though the session may. */
      if (native.level(this.handle) > 0) this.rollbackAll();
      opening.release(this.entry);
    }
    this.entry = null;
    this.handle = NO_HANDLE;
    return typeof callback === 'function' ? later(callback, false, '1') : '1';
  }

  /* -------------------------------------------------------------------------------- errors --- */

  keep(error) {
    this.message = error.message;
    return error.message;
  }

  /* What a call that has failed answers, if it does not throw. */
  failed(what) {
    const status = native.status();
    const error = lastError(what);
    if (status === STATUS.CONFLICT && native.level(this.handle) > 0) this.rollbackAll();
    this.keep(error);
    if (this.throws || status === STATUS.TYPE) throw error;
    return '';
  }

  refused(error) {
    this.keep(error);
    if (this.throws) throw error;
    return '';
  }

  geterrormessage() {
    return this.message !== '' && native.status() !== 0 ? this.message : '';
  }

  /* ------------------------------------------------------------------------ about the database --- */

  version(callback) {
    const text = this.versionText();
    return typeof callback === 'function' ? later(callback, false, text) : text;
  }

  versionText() {
    return `Perilune ${native.version()}`;
  }

  dbversion(callback) {
    return this.version(callback);
  }

  namespace(...given) {
    const callback = given[given.length - 1];
    const path = this.entry ? native.path(this.handle) : '';
    return typeof callback === 'function' ? later(callback, false, path) : path;
  }

  charset(name, callback) {
    const known = String(name).toLowerCase();
    if (typeof name === 'string' && Object.prototype.hasOwnProperty.call(CHARSETS, known)) {
      this.charsetName = known;
      if (this.entry) native.latin1(this.handle, CHARSETS[known]);
    }
    return typeof callback === 'function' ? later(callback, false, this.charsetName) : this.charsetName;
  }

  settimeout(seconds) {
    return String(seconds);
  }

  setloglevel() {
    return '';
  }

  logmessage() {
    return '';
  }

  sleep(ms) {
    const time = Number(ms);
    if (time > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, time);
    return '';
  }

  benchmark() {
    return '';
  }

  /* ------------------------------------------------------------------------ globals by name --- */

  global(name) {
    let global = this.globals.get(name);
    if (!global) {
      if (typeof name !== 'string') throw errorOf(STATUS.TYPE, 'the name of a global is a string');
      const LIMIT = 1000;
      if (this.globals.size >= LIMIT) this.globals.clear();
      global = new mglobal(this, name);
      this.globals.set(name, global);
    }
    return global;
  }

  set(name, ...given) {
    return this.global(name).set(...given);
  }

  get(name, ...given) {
    return this.global(name).get(...given);
  }

  get_bx(name, ...given) {
    return this.global(name).get_bx(...given);
  }

  delete(name, ...given) {
    return this.global(name).delete(...given);
  }

  defined(name, ...given) {
    return this.global(name).defined(...given);
  }

  next(name, ...given) {
    return this.global(name).next(...given);
  }

  previous(name, ...given) {
    return this.global(name).previous(...given);
  }

  increment(name, ...given) {
    return this.global(name).increment(...given);
  }

  lock(name, ...given) {
    return this.global(name).lock(...given);
  }

  unlock(name, ...given) {
    return this.global(name).unlock(...given);
  }

  merge(name, ...given) {
    return this.global(name).merge(...given);
  }

  getchildnodes(name, ...given) {
    return batches.getchildnodes(this.global(name), given);
  }

  setchildnodes(name, ...given) {
    return batches.setchildnodes(this.global(name), given);
  }

  /* --------------------------------------------------------------------------- transactions --- */

  tstart(callback) {
    this.noCallback(callback, 'tstart');
    if (native.begin(this.handle, false, 0, 0, this.exclusive) === undefined) return this.failed('tstart');
    return this.number(0);
  }

  tcommit(callback) {
    this.noCallback(callback, 'tcommit');
    if (native.commit(this.handle) === undefined) {
      const status = native.status();
      const message = native.message();
      native.giveUp(this.handle);
      const error = errorOf(status, message, 'tcommit');
      this.keep(error);
      if (this.throws) throw error;
      return this.number(status);
    }
    return this.number(0);
  }

  trollback(callback) {
    this.noCallback(callback, 'trollback');
    if (!this.rollbackAll()) return this.failed('trollback');
    return this.number(0);
  }

  /* Drops all levels and the series of tries. */
  rollbackAll() {
    const done = native.rollback(this.handle, true) !== undefined;
    if (done) native.giveUp(this.handle);
    return done;
  }

  tlevel(callback) {
    this.noCallback(callback, 'tlevel');
    const level = native.level(this.handle);
    return level === undefined ? this.failed('tlevel') : this.number(level);
  }

  noCallback(callback, what) {
    if (typeof callback === 'function') throw errorOf(STATUS.TYPE, `${what} takes no callback: it is synchronous`);
  }

  /* The text of a number; mg-dbx answers the number. */
  number(number) {
    return String(number);
  }

  /* ------------------------------------------------------------------- M's routines, SQL, classes --- */

  /* Ours: what `function` calls by that name. */
  registerFunction(name, work) {
    if (typeof name !== 'string' || typeof work !== 'function') {
      throw errorOf(STATUS.TYPE, 'registerFunction takes a name and a function');
    }
    this.functions.set(name, work);
  }

  function(name, ...given) {
    const callback = typeof given[given.length - 1] === 'function' ? given.pop() : null;
    const call = () => {
      const work = this.functions.get(name);
      if (!work) return this.refused(invalid(`function: no M routines here; registerFunction('${name}', ...) gives it one`));
      const result = work(...given);
      return result === undefined ? '' : String(result);
    };
    return callback ? laterDo(callback, call) : call();
  }

  sql() {
    throw invalid('sql: mg-dbx\'s SQL is IRIS\'s and MGSQL\'s; see docs/guide/node.md');
  }

  classmethod() {
    throw invalid('classmethod: there are no classes of IRIS here');
  }
}

module.exports = {Connection, PeriluneError, later, laterDo};
