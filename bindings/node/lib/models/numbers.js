'use strict';
/*
 * Integers beyond 2^53 in texts of JSON, which JSON.parse would round and JSON.stringify does not take.
 *
 * Idea: on the way such an integer is a string that begins with a mark, and a string that begins with the mark has it
 * twice; the text itself is changed only between its strings. Texts without a long number go the short way.
 */
const MARK = '#';
/* Sixteen digits and more that are no part of a fraction or an exponent. */
const LONG = /(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;
const SOME = /\d{16}/;
const BACKSLASH = 92;

/* A string or a bigint as JSON.stringify is to have it. */
function marked(value) {
  if (typeof value === 'bigint') return `${MARK}${value}`;
  return value.startsWith(MARK) ? MARK + value : value;
}

/* The index behind the string that begins at `open`. */
function behind(text, open) {
  let close = open;
  for (;;) {
    close = text.indexOf('"', close + 1);
    let before = close - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((close - before) % 2 === 1) return close + 1;
  }
}

/* The text with `between` applied to what stands between strings, and `string` to strings that are values. */
function changed(text, between, string) {
  const parts = [];
  let at = 0;
  for (;;) {
    const open = text.indexOf('"', at);
    parts.push(between(text.slice(at, open < 0 ? text.length : open)));
    if (open < 0) return parts.join('');
    at = behind(text, open);
    const one = text.slice(open, at);
    parts.push(text[at] === ':' ? one : string(one));
  }
}

const double = (one) => (one[1] === MARK ? `"${MARK}${one.slice(1)}` : one);
const single = (one) => {
  if (one[1] !== MARK) return one;
  return one[2] === MARK ? `"${one.slice(2)}` : one.slice(2, -1);
};

function restored(key, value) {
  if (typeof value !== 'string' || value[0] !== MARK) return value;
  return value[1] === MARK ? value.slice(1) : BigInt(value.slice(1));
}

const mark = (number) => (Number.isSafeInteger(Number(number)) ? number : `"${MARK}${number}"`);

const exactly = {
  /* What JSON.stringify has made of marked values, as JSON. */
  written(text) {
    return text.includes(`"${MARK}`) ? changed(text, (part) => part, single) : text;
  },
  /* JSON.parse, with integers that a number does not hold as bigints. */
  read(text) {
    if (!SOME.test(text)) return JSON.parse(text);
    return JSON.parse(changed(text, (part) => part.replace(LONG, mark), double), restored);
  },
};

module.exports = {exactly, marked};
