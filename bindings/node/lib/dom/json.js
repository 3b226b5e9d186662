'use strict';
/*
 * JSON as elements, as QEWD-JSdb has it: a property is an element of its name, an array has the attribute type="array" and
 * children `val`, a leaf has its type and its text. What JSdb loses, null and what is empty, has a type of its own here,
 * which JSdb reads as an empty text.
 */

function write(element, value) {
  if (Array.isArray(value)) {
    element.setAttribute('type', 'array');
    for (const one of value) write(element.appendElement({tagName: 'val'}), one);
  } else if (value === null || value === undefined) {
    element.setAttribute('type', 'null');
  } else if (typeof value === 'object') {
    const entries = Object.entries(value);
    if (entries.length === 0) element.setAttribute('type', 'object');
    for (const [name, one] of entries) write(element.appendElement({tagName: name}), one);
  } else {
    element.setAttribute('type', typeof value);
    element.textContent = String(value);
  }
}

const LEAVES = {
  boolean: (text) => text.toLowerCase() === 'true',
  number: Number,
  null: () => null,
  object: () => ({}),
};

function read(element) {
  const type = element.getAttribute('type');
  const children = element.childElements;
  if (type === 'array') return children.map(read);
  if (children.length > 0) return Object.fromEntries(children.map((child) => [child.tagName, read(child)]));
  const text = element.textContent;
  return Object.hasOwn(LEAVES, type) ? LEAVES[type](text) : text;
}

module.exports = {write, read};
