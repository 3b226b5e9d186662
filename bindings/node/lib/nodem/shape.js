'use strict';
/*
 * What NodeM and cache.node share: calls by object ({global, subscripts, ...} in, an object out) and, of NodeM, by position
 * (('^name', ...subscripts[, data]) in, a plain value out).
 *
 * A name with ^ in front is a global. By object `global` needs none and `local` is a name of this process's session only; by
 * position a name without ^ is a local one.
 *
 * Invariant: everything here is made of the addon's functions, in the mode of texts; a flavour says how answers look.
 */
const native = require('../addon');
const opening = require('../opening');
const {placeOf} = require('../mgdbx/place');
const {STATUS, codeOf, errorOf, invalid} = require('../errors');

/* The addon's mode for texts keeps names as they are when they have their ^; local names need the other one. */
const TEXT = 0;
const TYPED = 1;
const LIMIT = 512;

class Shape {
  constructor() {
    this.entry = null;
    this.handle = 0;
    this.nodes = new Map();
  }

  openAt(options) {
    if (this.entry) return;
    const {path, options: ours} = placeOf(options);
    this.entry = opening.acquire(path, ours);
    this.handle = this.entry.handle;
  }

  closeNow() {
    if (this.entry) opening.release(this.entry);
    this.entry = null;
    this.handle = 0;
    this.nodes.clear();
  }

  /* The handle of a name's node; encoded again when it is stale. */
  root(name, fresh) {
    let node = fresh ? undefined : this.nodes.get(name);
    if (node === undefined) {
      node = native.node(this.handle, name.startsWith('^') ? TEXT : TYPED, name);
      if (node === undefined) throw errorOf(native.status(), native.message());
      if (this.nodes.size >= LIMIT) this.nodes.clear();
      this.nodes.set(name, node);
    }
    return node;
  }

  /* Calls the addon with a name's node; `undefined` for nothing. */
  call(work, name, ...given) {
    let result = work(this.root(name, false), ...given);
    if (result === undefined && native.status() === STATUS.STALE) result = work(this.root(name, true), ...given);
    if (result === undefined && native.status() !== 0) throw errorOf(native.status(), native.message());
    return result;
  }

  /* A value as text, also of a local node, whose mode is another. */
  text(value) {
    return value === undefined ? '' : String(value);
  }

  /* The value; `undefined` for none, which the addon shows as '' where all is text. */
  get(name, subscripts) {
    const value = this.call(native.get, name, ...subscripts);
    return value === '' && this.data(name, subscripts) % 10 === 0 ? undefined : value;
  }

  data(name, subscripts) {
    return this.call(native.data, name, ...subscripts);
  }

  set(name, subscripts, data) {
    this.call(native.set, name, ...subscripts, data);
  }

  kill(name, subscripts, nodeOnly) {
    this.call(nodeOnly ? native.remove : native.kill, name, ...subscripts);
  }

  increment(name, subscripts, by) {
    return this.text(this.call(native.increment, name, ...subscripts, by));
  }

  /* The sibling of the last subscript; '' at the end. Without subscripts: the name beside it. */
  order(name, subscripts, backwards) {
    if (subscripts.length === 0) {
      const found = native.name(this.handle, backwards, name);
      if (found === undefined) throw errorOf(native.status(), native.message());
      return found === null ? '' : found;
    }
    const found = this.call(backwards ? native.previous : native.next, name, ...subscripts);
    return found === null ? '' : this.text(found);
  }

  /* The next node with a value: {subscripts, data}, or null. */
  query(name, subscripts, backwards) {
    const depth = this.call(native.query, name, backwards, ...subscripts);
    if (depth <= 0) return null;
    const found = [];
    for (let i = 1; i <= depth; i++) found.push(native.foundSubscript(this.handle, i, TEXT));
    return {subscripts: found, data: native.foundValue(this.handle, TEXT)};
  }

  lock(name, subscripts, seconds) {
    return this.call((node, ...given) => native.lock(node, 0, ...given), name, ...subscripts, seconds) === 1;
  }

  unlock(name, subscripts) {
    this.call(native.unlock, name, ...subscripts);
  }

  unlockAll() {
    if (native.unlockAll(this.handle) === undefined) throw errorOf(native.status(), native.message());
  }

  merge(to, toSubscripts, from, fromSubscripts) {
    const source = this.root(from, true);
    this.call((node, ...given) => native.merge(node, source, false, toSubscripts.length, ...given), to,
      ...toSubscripts, ...fromSubscripts);
  }

  /* Names from `lo` to `hi`, at most `max`. */
  names(local, {max, lo, hi}) {
    const mark = local ? '' : '^';
    const bare = (name) => String(name).replace(/^\^/, '');
    const found = [];
    let name = lo === undefined || lo === '' ? mark : mark + bare(lo);
    if (name !== mark && this.data(name, []) > 0) found.push(bare(name));
    const limit = max === undefined || max === 0 ? Infinity : Number(max);
    while (found.length < limit) {
      name = native.name(this.handle, false, name);
      if (name === undefined) throw errorOf(native.status(), native.message());
      if (name === null || (hi !== undefined && hi !== '' && bare(name) > bare(hi))) break;
      found.push(bare(name));
    }
    return found.slice(0, limit);
  }

  /* The name and the subscripts of a call by object. */
  addressOf(given) {
    const isLocal = given.global === undefined && given.local !== undefined;
    const name = isLocal ? given.local : given.global;
    if (typeof name !== 'string') throw invalid('a call by object has `global` (or `local`), a string');
    const subscripts = given.subscripts === undefined || given.subscripts === '' ? [] : given.subscripts;
    if (!Array.isArray(subscripts)) throw errorOf(STATUS.TYPE, '`subscripts` is an array');
    return {name: isLocal || name.startsWith('^') ? name : `^${name}`, subscripts};
  }
}

/* A text as NodeM's mode 'canonical' shows it: numbers of canonical form become numbers. */
function canonical(text) {
  if (typeof text !== 'string' || !/^-?(0|[1-9]\d*)?(\.\d*[1-9])?$/.test(text) || text === '' || text === '-') return text;
  const number = Number(text);
  const again = String(number).replace(/^(-?)0\./, '$1.');
  return again === text ? number : text;
}

module.exports = {Shape, canonical, codeOf};
