'use strict';
/* What Node finds of the order that examples/order.lua has written: node read.js PATH. */
const perilune = require('../..');
const {document} = require('../../documents');
const {keyvalue} = require('../../keyvalue');

const db = perilune.open(process.argv[2]);
console.log('document', JSON.stringify(document(db.node('^order', 101)).fetch() ?? null));
console.log('index', JSON.stringify(keyvalue(db.node('^shop')).get_by_index('customer', 'ada') ?? null));
console.log('row', JSON.stringify(db.node('^orders', 101).get() ?? null));
db.close();
