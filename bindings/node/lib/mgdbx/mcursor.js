'use strict';
/*
 * `mcursor`: steps from a position, in either direction.
 *
 * The first step is a search. From the second in one direction on there is a cursor of the addon, which is several times
 * as fast and still sees what is written ahead of it; whatever ends it (the end of a transaction) makes the next step a
 * search again.
 *
 * A cursor that is left before its end is closed when it is collected, which Node does between two turns of the event loop:
 * a loop that makes many would keep them all. So the last few are open, and who comes back to a closed one searches again.
 *
 * Single level: the position is the subscript last answered; after the end it is '', so that stepping begins again.
 * Multilevel: the end stays the end, and the walk goes on beyond the subtree, as M's $QUERY; callers compare prefixes.
 */
const native = require('../addon');
const {STATUS, errorOf, invalid} = require('../errors');
const {TEXT} = require('./mglobal');

const REVERSE = 1;
const VALUES = 2;
const FROM_EXCLUSIVE = 16;
const WITHOUT_EMPTY = 64;
const FROM = 1;
const DEPTH = 256;
const BATCH_MAX = 1000;

/* Cursors of the addon that are open at once. */
const OPEN_MAX = 64;
const recent = new Array(OPEN_MAX).fill(null);
let opened = 0;

/* Notes a cursor that was opened; the one that has been open longest is closed. */
function noted(cursor) {
  const place = opened++ % OPEN_MAX;
  if (recent[place] !== null) native.cursorClose(recent[place]);
  recent[place] = cursor;
  return cursor;
}

let ends = null;

class mcursor {
  constructor(db, query, options) {
    if (typeof db !== 'object' || db === null || !('handle' in db)) {
      throw errorOf(STATUS.TYPE, 'mcursor: the first argument is a server that was opened');
    }
    this.db = db;
    this.reset(query, options);
  }

  reset(query, options) {
    const given = query || {};
    this.options = options || {};
    this.isSql = given.sql !== undefined;
    this.global = given.global === undefined ? '' : given.global;
    if (typeof this.global !== 'string') throw errorOf(STATUS.TYPE, 'mcursor: the name of a global is a string');
    const key = given.key === undefined ? [] : given.key;
    if (!Array.isArray(key)) throw errorOf(STATUS.TYPE, 'mcursor: key is an array');
    this.key = key.slice();
    this.ended = 0;
    this.direction = 0;
    this.cursor = null;
    this.h = 0;
    this.withData = Boolean(this.options.getdata);
    this.parent = this.key.slice(0, -1);
    this.seed = this.key.length > 0 ? this.key[this.key.length - 1] : '';
    if (this.options.globaldirectory) this.step = this.stepName;
    else if (this.options.multilevel) this.step = this.stepNode;
    else this.step = this.options.batch ? this.stepBatch : this.stepChild;
    return '';
  }

  next(callback) {
    return this.answer(1, callback);
  }

  previous(callback) {
    return this.answer(-1, callback);
  }

  answer(direction, callback) {
    if (this.isSql) throw invalid('a cursor over SQL: there is none here');
    if (typeof callback !== 'function') return this.step(direction);
    return require('./server').laterDo(callback, () => this.step(direction));
  }

  execute() {
    throw invalid('a cursor over SQL: there is none here');
  }

  cleanup() {
    throw invalid('a cursor over SQL: there is none here');
  }

  close() {
    this.drop();
    return '';
  }

  drop() {
    if (this.cursor !== null) native.cursorClose(this.cursor);
    this.cursor = null;
  }

  /* Calls the addon with the node `fixed`, encoded when it is not yet. */
  at(fixed, call, what) {
    let result = this.h === 0 ? undefined : call(this.h);
    if (result === undefined && (this.h === 0 || native.status() === STATUS.STALE)) {
      const number = native.node(this.db.handle, TEXT, this.global, ...fixed);
      if (number === undefined) return this.db.failed(what);
      this.h = number;
      result = call(number);
    }
    return result;
  }

  /* Whether there is a cursor for a step in `direction`, made from the second step on. */
  hasCursor(direction, open) {
    if (this.direction !== direction) {
      this.drop();
      this.direction = direction;
      return false;
    }
    if (this.cursor === null) {
      const cursor = open();
      this.cursor = cursor === undefined || cursor === '' ? null : noted(cursor);
    }
    return this.cursor !== null;
  }

  /* ------------------------------------------------------------------------------ one level --- */

  openChildren(direction, from) {
    const flags = VALUES | WITHOUT_EMPTY | FROM_EXCLUSIVE | (direction < 0 ? REVERSE : 0);
    const open = (h) => (from === '' ? native.cursor(h, flags, false, 0) : native.cursor(h, flags, false, FROM, from));
    return this.at(this.parent, open, 'mcursor');
  }

  stepChild(direction) {
    let found;
    if (this.seed !== '' && this.hasCursor(direction, () => this.openChildren(direction, this.seed))) {
      found = native.cursorChild(this.cursor);
      if (found !== undefined && found !== null && this.withData) {
        const data = native.foundValue(this.db.handle, TEXT);
        this.seed = found;
        return this.shown(found, data === undefined ? '' : data);
      }
      if (found === undefined) this.drop();
    }
    if (found === undefined) {
      const step = direction > 0 ? native.next : native.previous;
      found = this.at(this.parent, (h) => step(h, this.seed), 'mcursor');
      if (found === undefined) return this.db.failed('mcursor');
      this.direction = direction;
    }
    if (found === null) {
      this.drop();
      this.direction = 0;
      this.seed = '';
      return null;
    }
    this.seed = found;
    if (!this.withData) return this.options.format === 'url' ? this.shown(found) : found;
    const data = this.at(this.parent, (h) => native.get(h, found), 'mcursor');
    return this.shown(found, data === undefined ? '' : data);
  }

  /* As it is answered; mg-dbx has a text of it, if asked for. */
  shown(key, data) {
    if (this.options.format === 'url' && this.db.hasUrls) return urlOf(key, data);
    return data === undefined ? {key} : {key, data};
  }

  /* Ours: {batch: n} answers up to n at once, in an array, and reads ahead. */
  stepBatch(direction) {
    const wanted = Math.max(1, Math.min(BATCH_MAX, Math.trunc(this.options.batch) || 1));
    if (ends === null) ends = new Int32Array(2 * BATCH_MAX + 1);
    let text;
    if (this.direction === direction && this.cursor !== null) text = native.cursorBatch(this.cursor, wanted, ends);
    if (text === undefined) {
      this.drop();
      const cursor = this.openChildren(direction, this.seed);
      if (cursor === undefined || cursor === '') return this.db.failed('mcursor');
      this.cursor = noted(cursor);
      this.direction = direction;
      text = native.cursorBatch(cursor, wanted, ends);
    }
    if (text === undefined) return this.db.failed('mcursor');
    if (text === null) {
      this.drop();
      this.seed = '';
      return null;
    }
    const found = partsOf(text, this.withData);
    const last = found[found.length - 1];
    this.seed = this.withData ? last.key : last;
    return found;
  }

  /* ------------------------------------------------------------------------------ all levels --- */

  openNodes(direction) {
    const flags = VALUES | FROM_EXCLUSIVE | (direction < 0 ? REVERSE : 0);
    return this.at([], (h) => native.cursor(h, flags, true, 0, ...this.key), 'mcursor');
  }

  stepNode(direction) {
    if (this.ended === direction) return null;
    this.ended = 0;
    if (this.hasCursor(direction, () => this.openNodes(direction))) {
      const packed = native.cursorNode(this.cursor);
      if (packed !== undefined) return this.node(packed, direction);
      this.drop();
    }
    const depth = this.at([], (h) => native.query(h, direction < 0, ...this.key), 'mcursor');
    if (depth === undefined) return this.db.failed('mcursor');
    this.direction = direction;
    return this.node(depth < 0 ? depth : depth * DEPTH, direction);
  }

  /* What a step has found: the subscripts that it shares with the one before are there already. */
  node(packed, direction) {
    const depth = Math.trunc(packed / DEPTH);
    if (packed < 0 || depth === 0) {
      this.drop();
      this.direction = 0;
      this.ended = direction;
      return null;
    }
    const shared = packed % DEPTH;
    const key = shared > 0 && shared <= this.key.length ? this.key.slice(0, shared) : [];
    for (let i = key.length + 1; i <= depth; i++) key.push(native.foundSubscript(this.db.handle, i, TEXT));
    this.key = key;
    const copy = key.slice();
    if (!this.withData) return this.shown(copy);
    const data = native.foundValue(this.db.handle, TEXT);
    return this.shown(copy, data === undefined ? '' : data);
  }

  /* ----------------------------------------------------------------------------------- names --- */

  stepName(direction) {
    const from = this.global.startsWith('^') ? this.global : `^${this.global}`;
    const found = native.name(this.db.handle, direction < 0, from);
    if (found === undefined) return this.db.failed('mcursor');
    this.global = found === null ? '' : found;
    return found;
  }
}

/* The parts of a batch of the addon. */
function partsOf(text, withData) {
  const count = ends[0];
  const found = new Array(count);
  const isList = typeof text !== 'string';
  let before = 0;
  for (let i = 0; i < count; i++) {
    const end = ends[2 * i + 1];
    const key = isList ? text[2 * i] : text.substring(before, end);
    const valueEnd = ends[2 * i + 2];
    before = end;
    if (withData) {
      let data = '';
      if (valueEnd >= 0) data = isList ? text[2 * i + 1] : text.substring(end, valueEnd);
      found[i] = {key, data};
    } else {
      found[i] = key;
    }
    if (valueEnd >= 0) before = valueEnd;
  }
  return found;
}

/* As mg-dbx's format 'url'. */
function urlOf(key, data) {
  const parts = Array.isArray(key) ? key.map((one, i) => `key${i + 1}=${encodeURIComponent(one)}`)
    : [`key=${encodeURIComponent(key)}`];
  if (data !== undefined) parts.push(`data=${encodeURIComponent(data)}`);
  return parts.join('&');
}

module.exports = {mcursor};
