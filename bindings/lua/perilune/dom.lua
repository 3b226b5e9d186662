-- Documents of XML as objects with the DOM's names.
--
-- An object is a document and a node's number; it holds nothing of the document. Each reading looks at what is stored
-- then, each change is one transaction, or a part of the one that is open. One node is one object as long as
-- somebody refers to it, so that `==` tells nodes apart. docs/guide/xml.md introduces it; docs/reference/dom.md lists
-- the calls.
--
--   local dom = require 'perilune.dom'
--   local doc = dom.at(db.node('^doc', 'pubs'))
--   doc:parse('<pubs/>')
--   doc.documentElement:appendElement {tagName = 'pub', attributes = {name = 'Grogan\'s'}}

-- Taken now: the names may be the program's own later.
local error, getmetatable, ipairs, pairs, rawget, select, setmetatable = error, getmetatable, ipairs, pairs, rawget, select, setmetatable
local tostring, type, unpack = tostring, type, table.unpack or unpack -- luacheck: ignore
local open = io and io.open

local call = require('perilune').__dom
local NONE = {}

local Document, Node = {}, {} -- metatables
local methods, getters, setters = {}, {}, {} -- of nodes
local document_methods, document_getters = {}, {}

local function fail(message)
  error('perilune.dom: ' .. message, 3)
end

-- The object of node `number`, nil for nil.
local function object(document, number)
  if number == nil then return nil end
  local known = document.objects[number]
  if known == nil then
    known = setmetatable({ownerDocument = document, nodeNo = number}, Node)
    document.objects[number] = known
  end
  return known
end

local function objects(document, numbers)
  for i, number in ipairs(numbers) do numbers[i] = object(document, number) end
  return numbers
end

-- An argument for the call: nodes as their numbers.
local function given(document, argument)
  if getmetatable(argument) ~= Node then return argument end
  if argument.ownerDocument ~= document then fail 'the node is of another document: use importNode or adoptNode' end
  return argument.nodeNo
end

local function list(document, ...)
  local arguments, count = {...}, select('#', ...)
  for i = 1, count do arguments[i] = given(document, arguments[i]) end
  return arguments, count
end

-- How a call's answer looks: as it is, a node, or nodes. NB: brackets around what is returned make it no tail call, of
-- which Lua 5.1 would not know the place that an error names.
local function value_of(document, name, arguments, count)
  return (call(document.place, name, unpack(arguments, 1, count)))
end

local function node_of(document, name, arguments, count)
  return (object(document, call(document.place, name, unpack(arguments, 1, count))))
end

local function nodes_of(document, name, arguments, count)
  return (objects(document, call(document.place, name, unpack(arguments, 1, count))))
end

-- A method of nodes that is one call.
local function method(name, answer)
  methods[name] = function(self, ...)
    local document = self.ownerDocument
    local arguments, count = list(document, self, ...)
    return (answer(document, name, arguments, count))
  end
end

local function names(text)
  return text:gmatch '%S+'
end

for name in names [[contains isEqualNode compareDocumentPosition normalize delete lookupPrefix lookupNamespaceURI
  isDefaultNamespace getAttribute hasAttribute setAttribute removeAttribute getAttributeNS hasAttributeNS setAttributeNS
  removeAttributeNS substringData appendData insertData deleteData replaceData setUserData getUserData deleteUserData
  getUserDataKeys]] do
  method(name, value_of)
end
for name in names [[appendChild insertBefore insertBeforeChildren replaceChild removeChild removeAsParent cloneNode
  getAttributeNode getAttributeNodeNS setAttributeNode removeAttributeNode splitText]] do
  method(name, node_of)
end
for name in names 'getElementsByTagName getElementsByTagNameNS' do method(name, nodes_of) end

for name in names 'nodeType nodeName nodeValue publicId systemId textContent prefix localName namespaceURI length wholeText' do
  getters[name] = function(document, number) return call(document.place, name, number) end
end
for name in names 'parentNode ownerElement firstChild lastChild previousSibling nextSibling' do
  getters[name] = function(document, number) return object(document, call(document.place, name, number)) end
end
for name in names 'childNodes attributes' do
  getters[name] = function(document, number) return objects(document, call(document.place, name, number)) end
end
for alias, name in pairs {tagName = 'nodeName', name = 'nodeName', target = 'nodeName', value = 'nodeValue', data = 'nodeValue'} do
  getters[alias] = getters[name]
end

function getters.childElements(document, number)
  local elements = {}
  for _, child in ipairs(getters.childNodes(document, number)) do
    if child.nodeType == 1 then elements[#elements + 1] = child end
  end
  return elements
end

for name in names 'nodeValue value data' do
  setters[name] = function(document, number, text) call(document.place, 'setNodeValue', number, text) end
end
function setters.textContent(document, number, text)
  call(document.place, 'setTextContent', number, text)
end

function methods:hasChildNodes() return self.firstChild ~= nil end
function methods:hasChildElements() return #self.childElements > 0 end
function methods:hasAttributes() return #self.attributes > 0 end
function methods:isSameNode(other) return self == other end

-- The attributes as a table: name -> value.
function methods:getAttributes()
  local pairs_of, found = call(self.ownerDocument.place, 'getAttributes', self.nodeNo), {}
  for i = 1, #pairs_of, 2 do found[pairs_of[i]] = pairs_of[i + 1] end
  return found
end

-- Appends a new element: {tagName = ..., attributes = {name = value, ...}, text = ...}.
function methods:appendElement(new)
  local arguments = {self.nodeNo, new.tagName, new.text}
  local count = 3
  for name, text in pairs(new.attributes or NONE) do
    arguments[count + 1], arguments[count + 2] = name, tostring(text)
    count = count + 2
  end
  return (node_of(self.ownerDocument, 'appendElement', arguments, count))
end

-- The database node of the user data `key`, for data that is a subtree.
function methods:getUserDataNode(key)
  return self.ownerDocument.place('node', self.nodeNo, 'ud', key)
end

function methods:output(indent)
  return (call(self.ownerDocument.place, 'output', self.nodeNo, indent))
end

-- What the expression gives here: a number, text, truth value, or a table of nodes in document order. Options:
-- namespaces = {prefix = uri}, variables = {name = value}, nodes_max.
function methods:evaluate(expression, options)
  options = options or NONE
  local arguments, count = {self.nodeNo, expression}, 2
  local function triple(what, name, value)
    arguments[count + 1], arguments[count + 2], arguments[count + 3] = what, name, value
    count = count + 3
  end
  for prefix, uri in pairs(options.namespaces or NONE) do triple('namespace', prefix, uri) end
  for name, value in pairs(options.variables or NONE) do triple('variable', name, value) end
  if options.nodes_max then triple('limit', 'nodes', options.nodes_max) end
  local answer = value_of(self.ownerDocument, 'evaluate', arguments, count)
  return type(answer) == 'table' and objects(self.ownerDocument, answer) or answer
end
methods.xpath = methods.evaluate

-- The nodes that the expression gives; an error if it gives something else.
function methods:select(expression, options)
  local found = self:evaluate(expression, options)
  if type(found) ~= 'table' then fail 'the expression gives no nodes: use evaluate' end
  return found
end

-- The first of them, or nil.
function methods:first(expression, options)
  return self:select(expression, options)[1]
end

function Node.__index(self, key)
  local getter = getters[key]
  if getter then return getter(self.ownerDocument, self.nodeNo) end
  return methods[key]
end

function Node.__newindex(self, key, value)
  local setter = setters[key]
  if setter == nil then fail('a node has no field ' .. tostring(key) .. ' that can be set') end
  setter(self.ownerDocument, self.nodeNo, value)
end

function Node.__tostring(self)
  return 'node ' .. tostring(self.nodeNo) .. ' of ' .. tostring(self.ownerDocument)
end

-- Documents.

for name in names [[createElement createElementNS createAttribute createTextNode createComment createCDATASection
  createProcessingInstruction createXMLDeclaration createDocumentType createDocument getElementById]] do
  document_methods[name] = function(self, ...)
    return (node_of(self, name, list(self, ...)))
  end
end

for name in names 'documentNode documentElement doctype' do
  document_getters[name] = function(self) return object(self, call(self.place, name)) end
end
document_getters.docType = document_getters.doctype
document_getters.firstChild = document_getters.documentNode

-- What concerns the whole document is asked of its own node; there is nothing without one.
for name in names 'getElementsByTagName getElementsByTagNameNS select' do
  document_methods[name] = function(self, ...)
    local top = self.documentNode
    return top and top[name](top, ...) or {}
  end
end
for name in names 'evaluate xpath first' do
  document_methods[name] = function(self, ...)
    local top = self.documentNode
    if top == nil then fail('there is no document at ' .. tostring(self.place)) end
    return (top[name](top, ...))
  end
end

-- Reads a text into a new document, all of it or nothing. Options: trim, replace, keepExternalDtd.
function document_methods:parse(xml, options)
  local arguments = {xml}
  for name, wanted in pairs(options or NONE) do
    if wanted then arguments[#arguments + 1] = name end
  end
  return (node_of(self, 'parse', arguments, #arguments))
end

function document_methods:parseFile(path, options)
  local file, why = open(path, 'rb')
  if file == nil then fail(why) end
  local xml = file:read '*a'
  file:close()
  return (self:parse(xml, options))
end

function document_methods:output(indent)
  return (call(self.place, 'output', nil, indent))
end

-- What contradicts the layout, as texts; nothing if the document is whole.
function document_methods:check()
  return call(self.place, 'check')
end

-- Makes a document of a text of JSON; the text that a document, or one of its elements, says.
function document_methods:parseJSON(json)
  return (node_of(self, 'parseJSON', {json}, 1))
end

function document_methods:outputAsJSON(element)
  return (call(self.place, 'outputAsJSON', element and element.nodeNo))
end

function document_methods:removeDocument()
  call(self.place, 'removeDocument')
end

function document_methods:getNodeByNo(number)
  return object(self, call(self.place, 'nodeType', number) and number)
end

-- Copies a node of any document of the database into this one, or moves it here.
function document_methods:importNode(node, deep)
  return object(self, call(self.place, 'importNode', tostring(node.ownerDocument.place), node.nodeNo, deep or false))
end

function document_methods:adoptNode(node)
  return object(self, call(self.place, 'adoptNode', tostring(node.ownerDocument.place), node.nodeNo))
end

-- Calls f for each element, depth first, until it returns true.
function document_methods:walk(f)
  for _, element in ipairs(self:getElementsByTagName '*') do
    if f(element) then return end
  end
end

function Document.__index(self, key)
  local getter = document_getters[key]
  if getter then return getter(self) end
  return document_methods[key]
end

function Document.__newindex(_, key)
  fail('a document has no field ' .. tostring(key) .. ' that can be set')
end

function Document.__tostring(self)
  return 'document ' .. tostring(rawget(self, 'place'))
end

-- The document below a node of the database, whether or not there is one yet.
local function at(place)
  return setmetatable({place = place, objects = setmetatable({}, {__mode = 'v'})}, Document)
end

return {at = at}
