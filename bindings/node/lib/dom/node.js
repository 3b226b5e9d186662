'use strict';
/*
 * A node of a document. Properties that a node of its kind has not are null.
 *
 * Most members are one call each, by the DOM's name; they are made from the lists below.
 */
const {STATUS, errorOf} = require('../errors');
const {live, attributesOf} = require('./lists');

const ELEMENT = 1;

class DomNode {
  #document;
  #number;

  constructor(document, number) {
    this.#document = document;
    this.#number = number;
    Object.freeze(this);
  }

  get ownerDocument() {
    return this.#document;
  }

  get nodeNo() {
    return this.#number;
  }

  get nodeValue() {
    return this.#document.call('nodeValue', this);
  }

  set nodeValue(text) {
    this.#document.call('setNodeValue', this, text);
  }

  /* All text below it. */
  get textContent() {
    return this.#document.call('textContent', this);
  }

  set textContent(text) {
    this.#document.call('setTextContent', this, text);
  }

  get tagName() {
    return this.nodeName;
  }

  get name() {
    return this.nodeName;
  }

  get target() {
    return this.nodeName;
  }

  get value() {
    return this.nodeValue;
  }

  set value(text) {
    this.nodeValue = text;
  }

  get data() {
    return this.nodeValue;
  }

  set data(text) {
    this.nodeValue = text;
  }

  get isId() {
    return this.nodeName === 'id' && this.ownerElement !== null;
  }

  /* ------------------------------------------------------------------------------- children --- */

  get childNodes() {
    return live(() => this.childNodesArray);
  }

  get childNodesArray() {
    return this.#document.callNodes('childNodes', this);
  }

  get childElements() {
    return this.childNodesArray.filter((child) => child.nodeType === ELEMENT);
  }

  hasChildNodes() {
    return this.firstChild !== null;
  }

  hasChildElements() {
    return this.childElements.length > 0;
  }

  appendElement({tagName, attributes = {}, text}) {
    const pairs = Object.entries(attributes).flatMap(([name, value]) => [name, String(value)]);
    return this.#document.callNode('appendElement', this, tagName, text, ...pairs);
  }

  isSameNode(other) {
    return this === other;
  }

  getElementsByTagName(name) {
    return live(() => this.#document.callNodes('getElementsByTagName', this, name));
  }

  getElementsByTagNameNS(namespace, localName) {
    return live(() => this.#document.callNodes('getElementsByTagNameNS', this, namespace, localName));
  }

  /* ----------------------------------------------------------------------------- attributes --- */

  get attributes() {
    return attributesOf(this);
  }

  hasAttributes() {
    return this.attributes.length > 0;
  }

  getAttribute(name) {
    return this.#document.call('getAttribute', this, name) || '';
  }

  getAttributeNS(namespace, localName) {
    return this.#document.call('getAttributeNS', this, namespace, localName) || '';
  }

  /* The attributes as an object, by name. */
  getAttributes() {
    const pairs = this.#document.call('getAttributes', this);
    const found = {};
    for (let i = 0; i < pairs.length; i += 2) found[pairs[i]] = pairs[i + 1];
    return found;
  }

  /* ------------------------------------------------------------------------------ user data --- */

  /* The node of the database for user data that is a subtree. */
  getUserDataNode(key) {
    return this.#document.place.node('node', this.#number, 'ud', key);
  }

  hasUserData() {
    return this.getUserDataKeys().length > 0;
  }

  /* --------------------------------------------------------------------------------- XPath --- */

  /* What the expression gives here: a number, string, boolean, or an array of nodes in document order. */
  evaluate(expression, {namespaces = {}, variables = {}, nodesMax} = {}) {
    const more = [];
    for (const [prefix, uri] of Object.entries(namespaces)) more.push('namespace', prefix, uri);
    for (const [name, value] of Object.entries(variables)) more.push('variable', name, value);
    if (nodesMax !== undefined) more.push('limit', 'nodes', nodesMax);
    const answer = this.#document.call('evaluate', this, expression, ...more);
    return Array.isArray(answer) ? answer.map((number) => this.#document.object(number)) : answer;
  }

  xpath(expression, options) {
    return this.evaluate(expression, options);
  }

  /* The nodes that it gives; an error for another value. */
  select(expression, options) {
    const found = this.evaluate(expression, options);
    if (!Array.isArray(found)) throw errorOf(STATUS.TYPE, 'select: the expression gives no nodes: use evaluate');
    return found;
  }

  /* The first of them, or null. */
  first(expression, options) {
    return this.select(expression, options)[0] || null;
  }

  output(indent) {
    return this.#document.call('output', this, indent);
  }
}

const words = (text) => text.trim().split(/\s+/);

function add(name, member) {
  Object.defineProperty(DomNode.prototype, name, {configurable: true, ...member});
}

for (const name of words('nodeType nodeName publicId systemId prefix localName namespaceURI length wholeText')) {
  add(name, {get() {
    return this.ownerDocument.call(name, this);
  }});
}
for (const name of words('parentNode ownerElement firstChild lastChild previousSibling nextSibling')) {
  add(name, {get() {
    return this.ownerDocument.callNode(name, this);
  }});
}
for (const name of words(`contains isEqualNode compareDocumentPosition normalize delete lookupPrefix lookupNamespaceURI
    isDefaultNamespace hasAttribute setAttribute removeAttribute hasAttributeNS setAttributeNS removeAttributeNS
    substringData appendData insertData deleteData replaceData setUserData getUserData deleteUserData getUserDataKeys`)) {
  add(name, {value(...given) {
    return this.ownerDocument.call(name, this, ...given);
  }});
}
for (const name of words(`appendChild insertBefore insertBeforeChildren replaceChild removeChild removeAsParent cloneNode
    getAttributeNode getAttributeNodeNS setAttributeNode removeAttributeNode splitText`)) {
  add(name, {value(...given) {
    return this.ownerDocument.callNode(name, this, ...given);
  }});
}

module.exports = {DomNode};
