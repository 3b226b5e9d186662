'use strict';
/* `require('perilune/documents')`: documents of JSON. */
const {Document} = require('./lib/models');

module.exports = {Document, document: (place, options) => new Document(place, options)};
