'use strict';
/*
 * Documents, lists and key/value stores in QEWD-JSdb's layout: what perilune/documents, /lists and /keyvalue are made of.
 *
 * An object is a node and how values lie below it; it holds nothing of what is stored. Each method is one call of
 * docs/reference/models.md, so one transaction, or a part of the one that is open; values travel as JSON.
 */
const {STATUS, errorOf} = require('../errors');
const {Node, MODELS_CALL} = require('../perilune/node');

const {exactly, marked} = require('./numbers');

const OPTIONS = ['first', 'typed', 'replace'];

function refused(what) {
  return errorOf(STATUS.TYPE, what);
}

function checked(options) {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown) throw refused(`there is no option ${unknown}: there are ${OPTIONS.join(', ')}`);
  return options;
}

/* What JSON.stringify would drop or turn into null is refused, but a property that is undefined. */
function checkedPart(key, value) {
  const isProperty = key !== '' && !Array.isArray(this);
  if (value === undefined && isProperty) return value;
  const kind = typeof value;
  if (kind === 'bigint') {
    if (BigInt.asIntN(64, value) === value) return marked(value);
    throw refused(`the value at ${JSON.stringify(key)} is ${value}n, more than an integer of 64 bits`);
  }
  if (kind === 'string') return marked(value);
  const isFine = kind === 'number' ? Number.isFinite(value) : ['string', 'boolean', 'object'].includes(kind);
  if (!isFine) throw refused(`the value at ${JSON.stringify(key)} is ${String(value)}, which JSON cannot say`);
  return value;
}

function encoded(value) {
  try {
    return exactly.written(JSON.stringify(value, checkedPart));
  } catch (error) {
    if (error.code === 'INVALID') throw error;
    throw refused(`the value has no JSON: ${error.message}`);
  }
}

class Model {
  #place;
  #options;

  constructor(place, options = {}) {
    if (!(place instanceof Node)) throw refused('it lies below a node: give db.node(\'^name\', ...)');
    this.#place = place;
    this.#options = checked({...options});
  }

  /* The node of the database below which it lies. */
  get place() {
    return this.#place;
  }

  get options() {
    return this.#options;
  }

  /* Makes a call; for this folder. */
  call(name, ...given) {
    const answer = this.#place[MODELS_CALL](name, given.map((one) => (one === undefined ? null : one)));
    return answer === null ? undefined : answer;
  }

  /* first and typed, those of the call before those of the object. */
  shape(options = {}) {
    const {first, typed} = {...this.#options, ...checked(options)};
    return [first, typed];
  }

  read(name, ...given) {
    const text = this.call(name, ...given);
    return text === undefined ? undefined : exactly.read(text);
  }
}

class Document extends Model {
  put(value, options = {}) {
    this.call(options.replace ? 'document.replace' : 'document.put', encoded(value), ...this.shape(options));
  }

  patch(value, options) {
    this.call('document.patch', encoded(value), ...this.shape(options));
  }

  fetch(options) {
    return this.read('document.fetch', ...this.shape(options));
  }

  /* Replaces it by what `f` makes of it, in one transaction, so that `f` may run several times; undefined deletes it. */
  update(f) {
    return this.place.db.transaction(() => {
      const value = f(this.fetch());
      if (value === undefined) this.delete();
      else this.put(value, {replace: true});
      return value;
    });
  }

  children({from, to, prefix, reverse} = {}) {
    return this.read('document.children', from, to, prefix, reverse);
  }

  leaves(options) {
    return this.read('document.leaves', ...this.shape(options));
  }

  count() {
    return this.call('document.count');
  }

  delete() {
    this.call('document.delete');
  }
}

class List extends Model {
  rpush(value, options) {
    return this.call('list.rpush', encoded(value), ...this.shape(options));
  }

  lpush(value, options) {
    return this.call('list.lpush', encoded(value), ...this.shape(options));
  }

  insert_before(position, value, options) {
    return this.call('list.insert_before', position, encoded(value), ...this.shape(options));
  }

  rpop(options) {
    return this.read('list.rpop', ...this.shape(options));
  }

  lpop(options) {
    return this.read('list.lpop', ...this.shape(options));
  }

  lrange(from, to, options) {
    return this.read('list.lrange', from, to, ...this.shape(options));
  }

  ltrim(from, to) {
    return this.call('list.ltrim', from, to);
  }

  find_no(position) {
    return this.call('list.find_no', position);
  }

  count() {
    return this.call('list.count');
  }

  check() {
    return this.read('list.check');
  }
}

class KeyValue extends Model {
  add(key, value, options) {
    return this.call('keyvalue.add', key, encoded(value), ...this.shape(options));
  }

  edit(key, value, options) {
    return this.call('keyvalue.edit', key, encoded(value), ...this.shape(options));
  }

  delete(key) {
    return this.call('keyvalue.delete', key);
  }

  get_by_key(key, options) {
    return this.read('keyvalue.get_by_key', key, ...this.shape(options));
  }

  get_by_index(property, value, withData, options) {
    return this.read('keyvalue.get_by_index', property, value, withData, ...this.shape(options));
  }

  addIndex(property, transform) {
    this.call('keyvalue.add_index', property, transform);
  }

  deleteIndex(property) {
    this.call('keyvalue.delete_index', property);
  }

  getIndices() {
    return this.read('keyvalue.indices');
  }

  reindex() {
    this.call('keyvalue.reindex');
  }

  check() {
    return this.read('keyvalue.check');
  }
}

module.exports = {Document, List, KeyValue, Model, encoded};
