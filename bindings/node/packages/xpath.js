'use strict';
/*
 * XPath over the document of the example, through qewd-mg-dbx or qewd-mg-dbx-napi: the counts that the package xpath gives on
 * every database. (Where it is wrong, as for //node(), it is left out.)
 */
const assert = require('node:assert');
const Wrapper = require(process.argv[2]);
const DocumentStore = require('ewd-document-store');

const COUNTS = {
  '/doc': 1, '/doc/foo': 2, '//foo': 3, '/doc/foo/bar': 9, '/doc/foo/*': 11, '/doc/aaa/descendant::*': 7, '//foo/descendant::*': 12,
  '//aaa/descendant::bar': 2, '//*': 22, '//bar': 11, '/*/*/*/bar': 2, '//bar/attribute::name': 9, '//bar/attribute::node()': 14,
  '//@name': 13, '//bar[@name]': 9, '//bar[@closed]': 1, '//bar[@*]': 10, '//foo[not(@*)]': 1, '//bar[@name="Grogan\'s"]': 1,
  '/doc/foo/bar[.=\'pub 5\']': 1, '//bar[3]': 2, '//bar[last()]': 3, '//foo[2]/bar[3]': 1, '//bar[parent::*/@location=\'Drumcondra\']': 4,
  '//bar[position()>3][2]': 1, '//bar[starts-with(@owner,\'J\')]': 2, '/doc/foo[1]/following-sibling::*': 2,
  '//bar[2]/following-sibling::*': 7, '//bar[string-length(@name)>7]': 8, '//comment()': 0,
};

const db = new Wrapper({database: {type: 'YottaDB', release: 'r1.30', architecture: 'x86'}});
assert.strictEqual(db.open().status, '');
const doc = new DocumentStore(db).use('xpath', ['dom']);
doc.enable_dom();
for (const [query, count] of Object.entries(COUNTS)) assert.strictEqual(doc.dom.xpath(query).length, count, query);
db.close();
