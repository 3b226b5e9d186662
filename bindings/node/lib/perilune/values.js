'use strict';
/*
 * Values of the native interface: strings, numbers, bigints for integers that no number holds exactly, booleans,
 * null, and EMPTY_LIST and EMPTY_MAP for lists and maps without children. `undefined` is no value: it is answered
 * where there is none.
 *
 * The addon answers the last two as new symbols with the description `[]` or `{}`; `shown` makes them the two
 * constants.
 */
const EMPTY_LIST = Symbol('[]');
const EMPTY_MAP = Symbol('{}');

/* A value that came from the addon. */
function shown(value) {
  if (typeof value !== 'symbol') return value;
  return value.description === '[]' ? EMPTY_LIST : EMPTY_MAP;
}

module.exports = {EMPTY_LIST, EMPTY_MAP, shown};
