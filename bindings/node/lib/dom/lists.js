'use strict';
/*
 * Live lists: arrays that are read again whenever they are looked at, with the DOM's `item`, and for attributes its calls by
 * name.
 */

/* A list whose elements `read` answers; `more` are members besides. */
function live(read, more = {}) {
  return new Proxy([], {
    get(_, key) {
      if (Object.hasOwn(more, key)) return more[key];
      const now = read();
      if (key === 'item') return (index) => now[index] || null;
      const found = now[key];
      return typeof found === 'function' ? found.bind(now) : found;
    },
    has: (_, key) => key in read() || key in more || key === 'item',
    set: () => false,
  });
}

/* The attributes of an element. */
function attributesOf(element) {
  const {ownerDocument} = element;
  return live(() => ownerDocument.callNodes('attributes', element), {
    getNamedItem: (name) => element.getAttributeNode(name),
    setNamedItem: (attribute) => element.setAttributeNode(attribute),
    removeNamedItem(name) {
      const attribute = element.getAttributeNode(name);
      return attribute && element.removeAttributeNode(attribute);
    },
  });
}

module.exports = {live, attributesOf};
