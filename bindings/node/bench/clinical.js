'use strict';
/*
 * A clinical document of the mix of QEWD-JSdb's benchmark.xml, which is a third party's: made anew each time, the same for one
 * seed. 1,556 elements, 1,423 attributes (53 of them with a prefix), 357 texts, 132 comments and 2 instructions: 3,471 nodes
 * with the document's own, at most 14 deep, one text an element, in about 90 KB with its white space. Stored they are 28,312
 * nodes of the database, as those of benchmark.xml.
 */
const COUNTS = {elements: 1556, attributes: 1423, prefixed: 53, texts: 357, comments: 132};
const DEPTH_MAX = 14;
const TAGS = ['section', 'entry', 'observation', 'act', 'code', 'value', 'text', 'title', 'templateId', 'statusCode',
  'effectiveTime', 'participant', 'participantRole', 'entryRelationship', 'author', 'time', 'low', 'high', 'component'];
const NAMES = ['root', 'code', 'codeSystem', 'displayName', 'value', 'classCode', 'moodCode', 'typeCode', 'extension'];
const WORDS = ['Systolic', 'pressure', 'of', '132', 'mmHg', '&lt;', 'normal', '&amp;', 'repeat', 'Ärztin', 'in', 'weeks'];

/* Small numbers by chance, the same for one seed. */
function chance(seed) {
  let state = seed >>> 0;
  return (bound) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

/* Places `count` things on the elements, at most `most` on each. */
function spread(below, elements, count, most, give) {
  for (let left = count; left > 0;) {
    const element = elements[below(elements.length)];
    if (give(element, most)) left--;
  }
}

function tree(below) {
  const root = {tag: 'ClinicalDocument', depth: 1, children: [], attributes: [], text: ''};
  const elements = [root];
  while (elements.length < COUNTS.elements) {
    // Mostly below one of the last: documents are deeper than they are broad.
    const parent = elements[below(4) === 0 ? below(elements.length) : Math.max(0, elements.length - 1 - below(12))];
    if (parent.depth >= DEPTH_MAX - 1) continue;
    const element = {tag: TAGS[below(TAGS.length)], depth: parent.depth + 1, children: [], attributes: [], text: ''};
    parent.children.push(element);
    elements.push(element);
  }
  return elements;
}

function fill(below, elements) {
  const named = (name) => (element) => {
    if (element.attributes.some(([known]) => known === name)) return false;
    element.attributes.push([name, `2.16.840.1.${below(100000)}`]);
    return true;
  };
  spread(below, elements.slice(1), COUNTS.prefixed - 1, 1, named('xsi:type'));
  elements[0].attributes.push(['xmlns:xsi', 'http://www.w3.org/2001/XMLSchema-instance']);
  spread(below, elements, COUNTS.attributes - COUNTS.prefixed, 5,
    (element, most) => element.attributes.length < most && named(NAMES[below(NAMES.length)])(element));
  spread(below, elements, COUNTS.texts, 1, (element) => {
    if (element.text !== '') return false;
    element.text = Array.from({length: 2 + below(5)}, () => WORDS[below(WORDS.length)]).join(' ');
    return true;
  });
  spread(below, elements, COUNTS.comments, 9, (element) => {
    element.children.splice(below(element.children.length + 1), 0, {comment: ` ${WORDS[below(5)]} ${below(1000)} `});
    return true;
  });
}

function written(element, out, indent) {
  if (element.comment !== undefined) {
    out.push(`${indent}<!--${element.comment}-->\n`);
    return;
  }
  const attributes = element.attributes.map(([name, value]) => ` ${name}="${value}"`).join('');
  if (element.children.length === 0) {
    out.push(element.text === '' ? `${indent}<${element.tag}${attributes}/>\n`
      : `${indent}<${element.tag}${attributes}>${element.text}</${element.tag}>\n`);
    return;
  }
  // One text an element, before its children: JSdb keeps only one of two.
  out.push(`${indent}<${element.tag}${attributes}>${element.text}\n`);
  for (const child of element.children) written(child, out, `${indent} `);
  out.push(`${indent}</${element.tag}>\n`);
}

/* The document as text. */
function clinical(seed = 7) {
  const below = chance(seed);
  const elements = tree(below);
  fill(below, elements);
  const out = ['<?xml version="1.0" encoding="utf-8"?>\n', '<?xml-stylesheet type="text/xsl" href="CDA.xsl"?>\n'];
  written(elements[0], out, '');
  return out.join('');
}

module.exports = {clinical, COUNTS};
if (require.main === module) process.stdout.write(clinical(Number(process.argv[2] || 7)));
