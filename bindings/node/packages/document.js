'use strict';
/*
 * A generated document, in kind like the clinical ones that QEWD-JSdb is measured with, through its DOM: what was parsed is
 * counted and put out again, and is the same over both wrappers.
 */
const assert = require('node:assert');
const DocumentStore = require('ewd-document-store');

const ENTRIES = 40;

function generated() {
  const entries = [];
  for (let i = 0; i < ENTRIES; i++) {
    const code = `<code code="${1000 + i}" system="2.16.${i}"/>`;
    entries.push(`<entry typeCode="DRIV" n="${i}"><!--entry ${i}--><observation classCode="OBS">${code}` +
      `<text>Observation ${i} of a patient</text><value unit="mm" value="${i * 7}"/></observation></entry>`);
  }
  return `<?xml version="1.0"?><ClinicalDocument><title>Generated</title><section id="s1">${entries.join('')}</section></ClinicalDocument>`;
}

function parsed(name) {
  const Wrapper = require(name);
  const db = new Wrapper({database: {type: 'YottaDB', release: 'r1.30', architecture: 'x86'}});
  assert.strictEqual(db.open().status, '');
  const doc = new DocumentStore(db).use('clinical', [name]);
  doc.delete();
  doc.enable_dom();
  let text;
  doc.dom.parser.parseText(generated(), (dom) => {
    assert.strictEqual(dom.error, undefined);
    assert.strictEqual(dom.getElementsByTagName('entry').length, ENTRIES);
    assert.strictEqual(dom.xpath('//code[@code="1007"]').length, 1);
    assert.strictEqual(dom.getElementById('s1').nodeName, 'section');
    text = dom.output();
  });
  db.close();
  return text;
}

const first = parsed('qewd-mg-dbx');
assert.ok(first.includes('<code code="1039" system="2.16.39" />'), first.slice(0, 500));
assert.strictEqual(parsed('qewd-mg-dbx-napi'), first);
