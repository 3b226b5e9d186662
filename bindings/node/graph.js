'use strict';
/* `require('perilune/graph')`: graphs of vertices and edges. */
module.exports = require('./lib/graph');
