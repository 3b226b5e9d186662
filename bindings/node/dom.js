'use strict';
/* `require('perilune/dom')`: documents of XML. */
module.exports = require('./lib/dom');
