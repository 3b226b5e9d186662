'use strict';
/* `require('perilune/keyvalue')`: documents by key. */
const {KeyValue} = require('./lib/models');

module.exports = {KeyValue, keyvalue: (place, options) => new KeyValue(place, options)};
