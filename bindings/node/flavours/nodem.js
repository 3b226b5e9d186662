'use strict';
/* `require('perilune/nodem')`: what NodeM exports. */
module.exports = require('../lib/nodem');
