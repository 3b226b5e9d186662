'use strict';
/* `require('perilune/mg-dbx-napi')`: what mg-dbx-napi exports. */
module.exports = require('../lib/mgdbx/napi');
