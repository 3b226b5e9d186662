'use strict';
/* `require('perilune/lists')`: lists of documents. */
const {List} = require('./lib/models');

module.exports = {List, list: (place, options) => new List(place, options)};
