'use strict';
/* `require('perilune/models')`: the patterns on globals, each below a node. */
const patterns = require('./lib/models/patterns');

const make = (title) => (place) => new patterns[title](place);

module.exports = {
  ...patterns,
  set: make('Set'),
  hash: make('Hash'),
  records: make('Records'),
  columns: make('Columns'),
  relations: make('Relations'),
  network: make('Network'),
};
