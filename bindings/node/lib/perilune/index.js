'use strict';
/*
 * The native interface: databases, nodes, transactions, watches, channels, with typed values.
 *
 * Invariants
 * - Reads and writes are synchronous, as the engine is in this process; what may wait for others (locks, changes,
 *   messages) also exists as a promise, and then waits on another thread.
 * - A Database is closed once; what is used after that throws CLOSED.
 */
const native = require('../addon');
const opening = require('../opening');
const {STATUS, PeriluneError, errorOf, lastError} = require('../errors');
const {transact, Rollback} = require('../transactions');
const {Node} = require('./node');
const {Watch} = require('./watch');
const {EMPTY_LIST, EMPTY_MAP} = require('./values');

const FULL = {refuse: 0, dropOldest: 1};

class Database {
  #entry = null;
  #path;

  constructor(entry, handle, path) {
    this.#entry = entry;
    this.#path = path;
    this.handle = handle;
    this.watches = new Set();
    this.waits = new Map();
  }

  /* --------------------------------------------------------------------------------- nodes --- */

  node(name, ...subscripts) {
    if (typeof name !== 'string') throw errorOf(STATUS.TYPE, 'node: the name is a string: "^name", or "name" for a private one');
    return new Node(this, name, subscripts);
  }

  /* Walks over the names in the database, or the private ones. */
  *names({local = false} = {}) {
    let name = local ? '' : '^';
    for (;;) {
      name = native.name(this.handle, false, name);
      if (name === undefined) throw lastError('names');
      if (name === null) return;
      yield name;
    }
  }

  /* -------------------------------------------------------------------------- transactions --- */

  /* Runs `work(tx)` as a transaction, again when it conflicts; answers what it answers. */
  transaction(work, options = {}) {
    if (typeof work !== 'function') throw errorOf(STATUS.TYPE, 'transaction takes a function');
    const given = {
      readOnly: options.readOnly,
      durability: opening.durabilityOf(options.durability),
      timeout: options.timeout,
      exclusive: exclusiveOf(options.exclusive),
    };
    const handle = this.handle;
    const tx = {
      rollback(value) {
        throw new Rollback(value);
      },
      restart() {
        throw new PeriluneError(STATUS.RESTART, 'transaction: it asks to be run again');
      },
      get restarts() {
        return native.restarts(handle);
      },
      get level() {
        return native.level(handle);
      },
    };
    return transact(handle, given, () => work(tx));
  }

  /* ------------------------------------------------------------------------------ snapshots --- */

  /* A database that reads what is there now, whatever is written later; writing to it throws READ_ONLY. */
  snapshot() {
    const handle = native.snapshot(this.handle);
    if (handle === undefined) throw lastError('snapshot');
    return new Database(null, handle, this.path);
  }

  /* ------------------------------------------------------------------------------- channels --- */

  /* Sends a string or bytes; the message's number, 0 inside a transaction, with which it is posted. */
  post(channel, body) {
    const number = native.post(this.handle, channel, body);
    if (number === undefined) throw lastError('post');
    return number;
  }

  /* Takes the oldest message away: {body, text, number, missed}; undefined when the time is over. */
  receive(channel, {timeout = Infinity, signal} = {}) {
    return this.#message(channel, -1, timeout, signal);
  }

  /* Reads the first message after number `after` and leaves it for others. */
  follow(channel, after, {timeout = Infinity, signal} = {}) {
    if (!(after >= 0)) throw errorOf(STATUS.TYPE, 'follow: the number of a message is not negative');
    return this.#message(channel, after, timeout, signal);
  }

  #message(channel, after, timeout, signal) {
    const seconds = timeout === Infinity ? -1 : timeout;
    return this.wait('receive', signal, (done) => native.receive(this.handle, done, channel, after, seconds))
      .then((found) => {
        if (!Array.isArray(found)) return undefined;
        const [body, number, missed] = found;
        return {body, number, missed, get text() {
          return body.toString('utf8');
        }};
      });
  }

  createChannel(channel, {whenFull = 'refuse', messages = 0, bytes = 0} = {}) {
    if (!Object.prototype.hasOwnProperty.call(FULL, whenFull)) {
      throw errorOf(STATUS.TYPE, 'createChannel: whenFull is \'refuse\' or \'dropOldest\'');
    }
    if (native.channelCreate(this.handle, channel, FULL[whenFull], messages, bytes) === undefined) {
      throw lastError('createChannel');
    }
  }

  removeChannel(channel) {
    const removed = native.channelRemove(this.handle, channel);
    if (removed === undefined) throw lastError('removeChannel');
    return removed === 1;
  }

  /* Begins a wait of the addon and answers a promise; for this module. */
  wait(what, signal, begin) {
    return new Promise((resolve, reject) => {
      if (signal && signal.aborted) {
        reject(signal.reason);
        return;
      }
      const wait = begin((status, answer) => {
        this.waits.delete(wait);
        if (signal) signal.removeEventListener('abort', aborted);
        if (status < 0) reject(errorOf(status, answer, what));
        else resolve(answer);
      });
      const aborted = () => {
        native.cancel(wait);
        this.waits.delete(wait);
        reject(signal.reason);
      };
      if (wait === undefined) {
        reject(lastError(what));
        return;
      }
      this.waits.set(wait, reject);
      if (signal) signal.addEventListener('abort', aborted, {once: true});
    });
  }

  unlockAll() {
    if (native.unlockAll(this.handle) === undefined) throw lastError('unlockAll');
  }

  /* --------------------------------------------------------------------------- about the file --- */

  get path() {
    return this.#path === undefined ? native.path(this.handle) : this.#path;
  }

  get isOpen() {
    return this.handle !== 0;
  }

  /* Whether it is a snapshot of another one. */
  get isSnapshot() {
    return this.#entry === null;
  }

  stat() {
    const text = native.stat(this.handle);
    if (text === undefined) throw lastError('stat');
    return JSON.parse(text);
  }

  checkpoint() {
    const taken = native.checkpoint(this.handle);
    if (taken === undefined) throw lastError('checkpoint');
    return taken === 1;
  }

  /* The faults found in the whole database, as text; '' is a whole one. */
  verify() {
    const report = native.verify(this.handle);
    if (report === undefined) throw lastError('verify');
    return report;
  }

  close() {
    if (this.handle === 0) return;
    for (const watch of [...this.watches]) watch.close();
    for (const [wait, reject] of this.waits) {
      native.cancel(wait);
      reject(new PeriluneError(STATUS.CLOSED, 'the database was closed'));
    }
    this.waits.clear();
    if (native.level(this.handle) > 0) {
      native.rollback(this.handle, true);
      native.giveUp(this.handle);
    }
    if (this.#entry) opening.release(this.#entry);
    else native.close(this.handle);
    this.handle = 0;
  }
}

if (Symbol.dispose) {
  Database.prototype[Symbol.dispose] = Database.prototype.close;
  Watch.prototype[Symbol.dispose] = Watch.prototype.close;
}

/* What C takes for the option `exclusive`. */
function exclusiveOf(wanted) {
  if (wanted === undefined || typeof wanted === 'boolean') return wanted ? 1 : 0;
  if (wanted === 'never') return -1;
  throw errorOf(STATUS.TYPE, `exclusive is true, false or 'never', not ${String(wanted)}`);
}

/* Opens or creates the database at `path`, a file or the address of a server; without one the default database. */
function open(path, options = {}) {
  if (path !== undefined && path !== null && typeof path !== 'string') throw errorOf(STATUS.TYPE, 'open: the path is a string');
  if (typeof options !== 'object' || options === null) throw errorOf(STATUS.TYPE, 'open: the options are an object');
  const entry = opening.acquire(path === undefined ? null : path, options);
  return new Database(entry, entry.handle);
}

module.exports = {open, Database, Node, Watch, PeriluneError, EMPTY_LIST, EMPTY_MAP, version: native.version()};
