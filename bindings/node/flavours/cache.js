'use strict';
/* `require('perilune/cache')`: what cache.node exports. */
module.exports = require('../lib/nodem/cache');
