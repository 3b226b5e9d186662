'use strict';
/*
 * Documents of XML as objects with the DOM's names, and those of QEWD-JSdb's.
 *
 * A Dom is a document, a DomNode one of its nodes. Neither holds anything of the document: each property is read when it
 * is asked for, each change is one transaction, or a part of the one that is open. docs/guide/xml.md introduces them;
 * docs/reference/dom.md lists the calls that they make.
 *
 * Invariant: a node is one object as long as somebody refers to it, so `===` tells nodes apart.
 */
const fs = require('fs');
const {STATUS, errorOf} = require('../errors');
const {Node, DOCUMENT_CALL} = require('../perilune/node');
const {shown} = require('../perilune/values');
const {DomNode} = require('./node');
const {encoded} = require('../models');
const {exactly} = require('../models/numbers');

const PARSE_OPTIONS = ['trim', 'replace', 'keepExternalDtd'];

class Dom {
  #place;
  #objects = new Map();
  #gone;

  constructor(place) {
    if (!(place instanceof Node)) throw errorOf(STATUS.TYPE, 'dom: the document lies below a node: dom(db.node(\'^doc\', \'x\'))');
    this.#place = place;
    this.#gone = new FinalizationRegistry((number) => {
      const known = this.#objects.get(number);
      if (known && known.deref() === undefined) this.#objects.delete(number);
    });
  }

  /* The node of the database below which the document is. */
  get place() {
    return this.#place;
  }

  /* Makes a call of docs/reference/dom.md; for this folder. `undefined` is an argument that is left out. */
  call(name, ...given) {
    return shown(this.#place[DOCUMENT_CALL](name, given.map((one) => this.#given(name, one))));
  }

  #given(name, argument) {
    if (!(argument instanceof DomNode)) return argument === undefined ? null : argument;
    if (argument.ownerDocument === this) return argument.nodeNo;
    throw errorOf(STATUS.TYPE, `${name}: the node is of another document: use importNode or adoptNode`);
  }

  /* The object of a node by its number; null for null. */
  object(number) {
    if (number === null) return null;
    const known = this.#objects.get(number);
    const alive = known && known.deref();
    if (alive) return alive;
    const made = new DomNode(this, number);
    this.#objects.set(number, new WeakRef(made));
    this.#gone.register(made, number);
    return made;
  }

  callNode(name, ...given) {
    return this.object(this.call(name, ...given));
  }

  callNodes(name, ...given) {
    return this.call(name, ...given).map((number) => this.object(number));
  }

  /* -------------------------------------------------------------------------- the document --- */

  get documentNode() {
    return this.callNode('documentNode');
  }

  get documentElement() {
    return this.callNode('documentElement');
  }

  get docType() {
    return this.callNode('doctype');
  }

  get doctype() {
    return this.docType;
  }

  get firstChild() {
    const node = this.documentNode;
    return node && node.firstChild;
  }

  createDocument() {
    return this.callNode('createDocument');
  }

  removeDocument() {
    this.call('removeDocument');
  }

  createElement(tagName) {
    return this.callNode('createElement', tagName);
  }

  createElementNS(namespace, name) {
    return this.callNode('createElementNS', namespace, name);
  }

  createAttribute(name, value) {
    return this.callNode('createAttribute', name, value);
  }

  createTextNode(text) {
    return this.callNode('createTextNode', text);
  }

  createComment(text) {
    return this.callNode('createComment', text);
  }

  createCDATASection(text) {
    return this.callNode('createCDATASection', text);
  }

  createProcessingInstruction(target, data) {
    return this.callNode('createProcessingInstruction', target, data);
  }

  createXMLDeclaration(version, encoding) {
    return this.callNode('createXMLDeclaration', version, encoding);
  }

  createDocumentType(name, publicId, systemId) {
    return this.callNode('createDocumentType', name, publicId, systemId);
  }

  /* A copy of a node of any document of the database; it stands nowhere. */
  importNode(node, deep = false) {
    return this.callNode('importNode', String(node.ownerDocument.place), node.nodeNo, deep);
  }

  /* Takes a node out of its document into this one. */
  adoptNode(node) {
    return this.callNode('adoptNode', String(node.ownerDocument.place), node.nodeNo);
  }

  getNodeByNo(number) {
    return this.call('nodeType', number) === null ? null : this.object(number);
  }

  getElementById(id) {
    return this.callNode('getElementById', id);
  }

  getElementsByTagName(name) {
    return this.#whole((top) => top.getElementsByTagName(name), []);
  }

  getElementsByTagNameNS(namespace, localName) {
    return this.#whole((top) => top.getElementsByTagNameNS(namespace, localName), []);
  }

  #whole(work, otherwise) {
    const top = this.documentNode;
    return top === null ? otherwise : work(top);
  }

  /* --------------------------------------------------------------------------------- XPath --- */

  evaluate(expression, options) {
    return this.#searched().evaluate(expression, options);
  }

  xpath(expression, options) {
    return this.evaluate(expression, options);
  }

  select(expression, options) {
    return this.#searched().select(expression, options);
  }

  first(expression, options) {
    return this.#searched().first(expression, options);
  }

  #searched() {
    const top = this.documentNode;
    if (top === null) throw errorOf(STATUS.INVALID, `there is no document at ${this.place}: parse or create one`);
    return top;
  }

  /* Calls `f` for each element, depth first, with `params` until it sets `params.stop`. */
  walk(params, f) {
    params.stop = false;
    for (const element of this.callNodes('getElementsByTagName', this.#searched(), '*')) {
      f.call(element, params);
      if (params.stop) break;
    }
    delete params.stop;
    return params;
  }

  /* -------------------------------------------------------------------------- in and out --- */

  /* Reads a text into a new document, all of it or nothing. */
  parse(xml, options = {}) {
    const unknown = Object.keys(options).find((name) => !PARSE_OPTIONS.includes(name));
    if (unknown) throw errorOf(STATUS.TYPE, `parse has no option ${unknown}; it has ${PARSE_OPTIONS.join(', ')}`);
    return this.callNode('parse', xml, ...PARSE_OPTIONS.filter((name) => options[name]));
  }

  parseFile(file, options) {
    return this.parse(fs.readFileSync(file), options);
  }

  output(indent) {
    return this.call('output', undefined, indent);
  }

  /* Makes a document of a value that JSON can say, in one transaction. */
  parseJSON(value) {
    return this.callNode('parseJSON', encoded(value));
  }

  /* The value that parseJSON has made a document of. */
  outputAsJSON() {
    return exactly.read(this.call('outputAsJSON'));
  }

  /* What contradicts the layout, as texts; none if the document is whole. */
  check() {
    return this.call('check');
  }
}

/* The document below a node of the database, whether or not there is one yet. */
function dom(place) {
  return new Dom(place);
}

module.exports = {dom, Dom, DomNode};
