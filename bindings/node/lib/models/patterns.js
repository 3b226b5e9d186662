'use strict';
/*
 * The patterns on globals of the literature: what perilune/models is made of. A class for each, a method for each call of
 * docs/reference/models.md.
 */
const {Model, encoded} = require('./index');

/* The arguments of each call: p as it is, j as JSON. Behind them > if the answer is JSON. */
const PATTERNS = {
  Set: {add: 'p', remove: 'p', has: 'p', members: '>', count: ''},
  Hash: {put: 'pp', get: 'p', delete: 'p', increment: 'pp', all: '>', count: ''},
  Records: {
    insert: 'j', put: 'pj', edit: 'pj', delete: 'p', get: 'p>', find: 'pjppp>', ids: '>', count: '',
    add_index: 'j', delete_index: 'p', indices: '>', check: '>',
  },
  Columns: {
    put: 'pj', row: 'p>', column: 'p>', find: 'pp>', range: 'ppp>', delete: 'p', rows: '>', columns: '>', check: '>',
  },
  Relations: {
    table: 'pjp', insert: 'pj', update: 'pjj', get: 'pj>', rows: 'pj>', children: 'pjp>', parent: 'pj>', delete: 'pjp',
    check: '>',
  },
  Network: {
    add_node: 'jp', add_edge: 'pppjp', get_node: 'p>', get_edge: 'p>', edit_node: 'pj', edit_edge: 'pj', delete_node: 'p',
    delete_edge: 'p', edges: 'p>', edges_of: 'ppp>', neighbours: 'ppp>', check: '>',
  },
};

function method(call, form) {
  const kinds = form.replace('>', '');
  const isJson = form.endsWith('>');
  return function made(...given) {
    const all = given.map((one, i) => (kinds[i] === 'j' && one !== undefined ? encoded(one) : one));
    return isJson ? this.read(call, ...all) : this.call(call, ...all);
  };
}

for (const [title, forms] of Object.entries(PATTERNS)) {
  const made = {[title]: class extends Model {
    constructor(place) {
      super(place);
    }
  }}[title];
  for (const [name, form] of Object.entries(forms)) {
    const value = method(`${title.toLowerCase()}.${name}`, form);
    Object.defineProperty(made.prototype, name, {value, writable: true, configurable: true});
  }
  exports[title] = made;
}
