-- Documents of XML: objects with the DOM's names over one database.

local dom = require 'perilune.dom'

local PUBS = [[<pubs xmlns:p="urn:p"><pub id="g" name="Grogan's">open<p:seat/></pub><!--x--><pub name="Kehoe's"/></pubs>]]

return function(spec)
  local function new(db, xml)
    local doc = dom.at(db.node('^doc', 'x'))
    doc:parse(xml or PUBS)
    return doc
  end

  local function whole(t, doc, expected)
    t.equal(doc:check(), {})
    t.equal(doc:output(), expected)
  end

  spec('links, names and lists', function(db, t)
    local doc = new(db)
    local root = doc.documentElement
    t.equal({root.tagName, root.nodeType, root.nodeValue, root.nodeNo}, {'pubs', 1, nil, 2})
    local first = root.firstChild
    t.equal(first == root.childNodes[1], true, 'one node is one object')
    t.equal(first.parentNode == root and first:isSameNode(root.firstChild), true)
    t.equal({#root.childNodes, #root.childElements, root:hasChildNodes(), first:hasAttributes()}, {3, 2, true, true})
    t.equal({first.nextSibling.data, first.nextSibling.length, root.lastChild.name}, {'x', 1, 'pub'})
    t.equal(first.textContent, 'open')
    t.equal(first:getAttributes(), {id = 'g', name = "Grogan's"})
    t.equal(first.attributes[1].ownerElement == first, true)
    t.equal(doc:getElementById 'g' == first, true)
    t.equal(doc:getElementById 'none', nil)
    local seat = first.lastChild
    t.equal({seat.prefix, seat.localName, seat.namespaceURI}, {'p', 'seat', 'urn:p'})
    t.equal(#doc:getElementsByTagName 'pub', 2)
    t.equal(doc:getElementsByTagNameNS('urn:p', '*')[1] == seat, true)
    t.equal({root:contains(seat), seat:contains(root), first:compareDocumentPosition(seat)}, {true, false, 20})
    t.equal(doc:getNodeByNo(2) == root, true)
    t.equal(doc:getNodeByNo(99), nil)
    local seen = {}
    doc:walk(function(element)
      seen[#seen + 1] = element.tagName
      return #seen == 3
    end)
    t.equal(seen, {'pubs', 'pub', 'p:seat'})
    t.equal(tostring(root), 'node 2 of document ^doc("x")')
  end)

  spec('changes', function(db, t)
    local doc = new(db, '<a><b/></a>')
    local a = doc.documentElement
    local b = a.firstChild
    local c = a:appendElement {tagName = 'c', attributes = {n = 1}, text = 'one & two'}
    a:insertBefore(c, b)
    b:setAttribute('k', 'v')
    b:appendChild(doc:createTextNode 't')
    b.firstChild.data = 'text'
    whole(t, doc, '<a><c n="1">one &amp; two</c><b k="v">text</b></a>')
    c.textContent = ''
    t.equal(a:replaceChild(doc:createElementNS('urn:x', 'x:d'), c) == c, true)
    t.equal({b:getAttribute 'k', b:getAttribute 'none', b:hasAttribute 'k', b:removeAttribute 'k'}, {'v', nil, true, true})
    whole(t, doc, '<a><x:d xmlns:x="urn:x" /><b>text</b></a>')
    t.equal(a:removeChild(b) == b, true)
    t.equal(b.parentNode, nil)
    a:appendChild(b:cloneNode(true))
    a:insertBeforeChildren(doc:createElement 'w')
    a.firstChild:removeAsParent(true)
    local text = a.lastChild.firstChild
    text:insertData(0, '<')
    text:splitText(2)
    t.equal({text.data, text.wholeText, text:substringData(0, 1)}, {'<t', '<text', '<'})
    a:normalize()
    doc:createXMLDeclaration()
    whole(t, doc, '<?xml version="1.0" encoding="utf-8"?><a><x:d xmlns:x="urn:x" /><b>&lt;text</b></a>')
    b:setUserData('seen', 7)
    t.equal({b:getUserData 'seen', b:getUserDataKeys()[1], b:getUserDataNode('seen').__}, {7, 'seen', 7})
    b:delete()
    t.equal({b.nodeType, b.firstChild}, {})
    t.equal(a:output(1), '<a>\r\n <x:d xmlns:x="urn:x" />\r\n <b>\r\n  &lt;text\r\n </b>\r\n</a>')
  end)

  spec('XPath', function(db, t)
    local doc = new(db)
    t.equal(doc:xpath 'count(//pub)', 2)
    t.equal(doc:xpath "//pub[@name=\"Kehoe's\"]/@name"[1].value, "Kehoe's")
    t.equal(doc:evaluate 'string(//pub)', 'open')
    t.equal(doc:evaluate '//pub = "open"', true)
    t.equal(doc.documentElement:first 'pub[2]':getAttribute 'name', "Kehoe's")
    t.equal(doc:first '//none', nil)
    t.equal(#doc:select('//q:seat[$yes]', {namespaces = {q = 'urn:p'}, variables = {yes = true}}), 1)
    t.fails('SyntaxError', doc.xpath, doc, '//[')
    t.fails('EvaluationError', doc.xpath, doc, '//q:seat')
    t.fails('QuotaExceededError', doc.xpath, doc, '//*', {nodes_max = 2})
    t.fails('use evaluate', doc.select, doc, '1')
  end)

  spec('errors have their place and change nothing', function(db, t)
    local doc = new(db)
    local before = doc:output()
    local function code(part, f, ...)
      local good, e = pcall(f, ...)
      t.equal({good, e.code, tostring(e.message):find(part, 1, true) ~= nil}, {false, 'DOM', true}, tostring(e))
      return tostring(e)
    end
    local root = doc.documentElement
    local said = code('HierarchyRequestError: ', function() root.firstChild:appendChild(root) end)
    t.equal(said:find('dom_spec.lua', 1, true) ~= nil, true, said)
    code('ParseError', doc.parse, doc, '<a>', {replace = true})
    code('InvalidStateError', doc.parse, doc, '<a/>')
    code('InvalidCharacterError', doc.createElement, doc, '1')
    code('ConstraintError', root.setAttribute, root, 'id', 'g')
    code('NamespaceError', doc.createElementNS, doc, nil, 'a:b')
    t.fails('must be a text', root.setAttribute, root, 'x')
    t.fails('no field', function() root.colour = 'red' end)
    t.fails('no field', function() doc.colour = 'red' end)
    local other = dom.at(db.node('^doc', 'y'))
    t.fails('there is no document', other.xpath, other, '1')
    t.equal({other.documentElement, #other:getElementsByTagName '*', other:output()}, {nil, 0, ''})
    other:parse '<o/>'
    t.fails('importNode', other.documentElement.appendChild, other.documentElement, root)
    other.documentElement:appendChild(other:importNode(root.firstChild, true))
    t.equal(#other:check(), 0)
    t.equal(doc:output(), before)
    other.documentElement:appendChild(other:adoptNode(root.lastChild))
    t.equal(#root.childNodes, 2)
  end)

  spec('a change with nodes is one transaction', function(db, t)
    local doc = new(db, '<a/>')
    local ok = pcall(db.transaction, db, function()
      doc.documentElement:setAttribute('n', '1')
      db.node('^count'):incr()
      error 'no'
    end)
    t.equal({ok, doc:output(), db.node('^count').__}, {false, '<a />', nil})
    db:transaction(function()
      doc.documentElement:setAttribute('n', '1')
      db.node('^count'):incr()
    end)
    t.equal({doc:output(), db.node('^count').__}, {'<a n="1" />', 1})
  end)

  spec('JSON goes in and comes out', function(db, t)
    local doc = dom.at(db.node('^json'))
    local text = '{"b":1,"a":{"c":"x","d":[1.5,null,{}]}}'
    doc:parseJSON(text)
    t.equal({doc:outputAsJSON(), doc:outputAsJSON(doc:first '//d'), doc:check()}, {text, '[1.5,null,{}]', {}})
    t.fails('InvalidStateError', function() doc:parseJSON '1' end)
    local bad = dom.at(db.node('^bad'))
    t.fails('ParseError', function() bad:parseJSON '{"a":' end)
    t.fails('InvalidCharacterError', function() bad:parseJSON '{"not a name":1}' end)
    t.equal(bad.documentNode, nil)
  end)
end
