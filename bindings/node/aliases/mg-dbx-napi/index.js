'use strict';
module.exports = require('perilune/mg-dbx-napi');
