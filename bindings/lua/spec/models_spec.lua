-- Documents, lists and key/value stores: tables in, tables out, and the nodes between.

local documents, lists, keyvalue = require 'perilune.documents', require 'perilune.lists', require 'perilune.keyvalue'
local models = require 'perilune.models'
local perilune = require 'perilune'

return function(spec)
  spec('documents are put, patched, fetched and gone through', function(db, t)
    local doc = documents.at(db.node('^people', 'ada'))
    t.equal(doc:fetch(), nil)
    doc:put {name = 'Ada', likes = {'numbers', 'engines'}, at = {town = 'London'}}
    t.equal(db:get('^people', 'ada', 'likes', 0), 'numbers')
    doc:put {at = {street = 'St James'}}
    t.equal(doc:fetch(), {name = 'Ada', likes = {'numbers', 'engines'}, at = {town = 'London', street = 'St James'}})
    doc:patch {born = 1815, at = {street = perilune.null}}
    t.equal(doc:fetch(), {name = 'Ada', born = 1815, likes = {'numbers', 'engines'}, at = {town = 'London'}})
    t.equal(doc:count(), 4)
    local names = {}
    for name in doc:each {from = 'b', to = 'l', reverse = true} do names[#names + 1] = name end
    t.equal(names, {'likes', 'born'})
    local leaves = {}
    for path, value in doc:leaves() do leaves[#leaves + 1] = {path, value} end
    t.equal(leaves[1], {{'at', 'town'}, 'London'})
    t.equal(leaves[3], {{'likes', 0}, 'numbers'})
    t.equal(doc:update({'at'}, function(at)
      at.country = 'England'
      return at
    end), {town = 'London', country = 'England'})
    t.equal(doc:update(function(all) return {name = all.name, country = all.at.country, yes = true} end).country, 'England')
    t.equal(doc:fetch(), {name = 'Ada', country = 'England', yes = true})
    doc:put({'x'}, {replace = true})
    t.equal(doc:fetch(), {'x'})
    doc:update(function() return nil end)
    t.equal(doc:fetch(), nil)
    for _, value in ipairs {false, 7, 'text', perilune.null} do
      doc:put(value)
      t.equal(doc:fetch(), value)
    end
    doc:put({}, {replace = true})
    t.equal(doc:fetch(), {})
    local written = 0
    for _ in db:names(true) do written = written + 1 end
    t.equal(written, 0, 'nothing private is left')
  end)

  -- Who writes with one first element and reads with another gets no array; settree and SQL begin at 1.
  spec('each pair of first elements', function(db, t)
    local node = db.node('^d')
    local array, from_0, from_1 = {'a', 'b'}, {[0] = 'a', 'b'}, {['1'] = 'a', ['2'] = 'b'}
    documents.at(node):put({list = array})
    t.equal(documents.at(node):fetch().list, array)
    t.equal(documents.at(node, {first = 1}):fetch().list, from_0)
    t.equal(node.list:gettree(), from_0)
    t.equal(node.list:tojson(), '{"0":"a","1":"b"}')
    node:kill()
    documents.at(node, {first = 1}):put {list = array}
    t.equal(documents.at(node):fetch().list, array, 'of Lua a table from 1 is an array whoever has read it')
    t.equal(documents.at(node, {first = 1}):fetch().list, array)
    t.equal(node.list:tojson(), '["a","b"]')
    t.equal(db:get('^d', 'list', 0), nil)
    node:kill()
    node:settree {list = array}
    t.equal(documents.at(node):fetch({first = 1}).list, array)
    t.equal(from_1['1'], 'a')
    documents.at(node):put({list = array}, {replace = true, typed = false})
    t.equal(node.list:tojson(), '{"0":"a","1":"b"}')
  end)

  spec('lists', function(db, t)
    local list = lists.at(db.node('^l'))
    t.equal({list:rpush {a = 1}, list:rpush {a = 2}, list:lpush {a = 3}}, {1, 2, 3})
    t.equal(list:insert_before(1, {a = 4}), 4)
    t.equal(list:insert_before(9, {a = 4}), nil)
    t.equal(list:lrange(), {{a = 3}, {a = 4}, {a = 1}, {a = 2}})
    t.equal(list:lrange(-2), {{a = 1}, {a = 2}})
    t.equal(list:lrange(7), {})
    t.equal({list:count(), list:find_no(0), list:find_no(-1)}, {4, 3, 2})
    t.equal({list:lpop(), list:rpop()}, {{a = 3}, {a = 2}})
    t.equal({list:ltrim(0, 0), list:check(), list:lrange()}, {true, {}, {{a = 4}}})
    t.equal({list:rpop(), list:rpop()}, {{a = 4}})
    t.equal(db:data('^l'), 0)
  end)

  spec('key/value stores', function(db, t)
    local store = keyvalue.at(db.node('^kv'))
    store:addIndex('town', 'toLowerCase')
    t.equal(store:add('key_1', {name = 'Rob', town = 'Redhill'}), true)
    t.equal(store:add('key_1', {name = 'Rob', town = 'Redhill'}), false)
    t.equal(store:add('key_2', {name = 'Simon', town = 'St Albans'}), true)
    t.equal(store:get_by_key('key_2').name, 'Simon')
    t.equal(store:get_by_key 'key_9', nil)
    t.equal(store:get_by_index('town', 'redhill'), {'key_1'})
    t.equal(store:get_by_index('town', 'paris'), {})
    t.equal(store:get_by_index('name', 'paris'), nil)
    t.equal(store:get_by_index('town', 'redhill', true), {key_1 = {name = 'Rob', town = 'Redhill'}})
    t.equal(store:edit('key_1', {name = 'Rob', town = 'Oslo'}), true)
    t.equal({store:get_by_index('town', 'oslo'), store:getIndices(), store:check()}, {{'key_1'}, {'town'}, {}})
    store:deleteIndex 'town'
    store:reindex()
    t.equal({store:getIndices(), store:get_by_index('town', 'oslo')}, {{}})
    t.equal({store:delete 'key_1', store:delete 'key_1'}, {true, false})
  end)

  spec('patterns', function(db, t)
    local staff = models.records(db.node('^staff'))
    t.equal(staff:add_index {'role', 'office'}, 'by_role_and_office')
    t.equal({staff:insert {role = 'p', office = 'L'}, staff:insert {role = 'p', office = 'M'}}, {1, 2})
    t.equal(staff:find('by_role_and_office', {'p'}), {1, 2})
    t.equal(staff:find('by_role_and_office', {'p'}, 'M', nil, true), {{2, {role = 'p', office = 'M'}}})
    t.equal({staff:edit(1, {role = perilune.null}), staff:get(1), staff:check()}, {true, {office = 'L'}, {}})
    t.equal(staff:get(9), nil)
    t.equal({staff:insert {}, staff:count(), staff:delete(3), staff:ids()}, {3, 3, true, {1, 2}})
    local names = models.set(db.node('^names'))
    t.equal({names:add 'b', names:add(5), names:add 'b', names:has 'b', names:members()}, {true, true, false, true, {5, 'b'}})
    local hash = models.hash(db.node('^hash'))
    t.equal({hash:put('a', 1.5), hash:get 'a', hash:increment('a', 2), hash:all()}, {true, 1.5, 3.5, {a = 3.5}})
    local columns = models.columns(db.node('^table'))
    columns:put(2, {state = 'NY', name = 'George'})
    t.equal({columns:find('state', 'NY'), columns:row(2)}, {{2}, {name = 'George', state = 'NY'}})
    local shop = models.relations(db.node('^DATABASE'))
    shop:table('CUSTOMER', {'customer'})
    shop:table('ORDERS', {'order'}, 'CUSTOMER')
    t.fails('insert it first', function() shop:insert('ORDERS', {order = 1, customer = 9}) end)
    t.equal({shop:insert('CUSTOMER', {customer = 9}), shop:insert('ORDERS', {order = 1, customer = 9})}, {true, true})
    t.equal({shop:children('CUSTOMER', {9}, 'ORDERS'), #shop:rows('ORDERS', {})}, {{{customer = 9, order = 1}}, 1})
    local network = models.network(db.node('^net'))
    local rob, john = network:add_node {name = 'Rob'}, network:add_node {name = 'John'}
    t.equal({network:add_edge('knows', rob, john, {since = 2010}), network:neighbours(rob)}, {1, {2}})
    t.equal(network:get_edge(1), {type = 'knows', from = 1, to = 2, properties = {since = 2010}})
    db:transaction(function(tx)
      network:delete_node(rob)
      staff:delete(1)
      tx:rollback()
    end)
    t.equal({network:check(), network:edges 'knows', staff:count()}, {{}, {1}, 2})
    t.fails('argument 1', function() staff:insert(nil) end)
    t.fails('must be a text', function() staff:insert {a = {1}} end)
    t.fails('at most', function() staff:get(1, 2) end)
  end)

  spec('a call is a part of the transaction that is open, and a snapshot keeps what was there', function(db, t)
    local doc, list = documents.at(db.node('^d')), lists.at(db.node('^l'))
    db:transaction(function(tx)
      doc:put {a = 1}
      list:rpush {a = 1}
      t.equal(doc:fetch(), {a = 1})
      tx:rollback()
    end)
    t.equal({db:data('^d'), db:data('^l')}, {0, 0})
    doc:put {a = 1}
    local before = db:snapshot()
    doc:put {a = 2}
    t.equal(documents.at(before.node('^d')):fetch(), {a = 1})
    t.fails('read-only', function() documents.at(before.node('^d')):put {a = 3} end)
    before:close()
  end)

  spec('wrong arguments are errors that change nothing', function(db, t)
    local doc, list = documents.at(db.node('^d')), lists.at(db.node('^l'))
    local function fails(f, want)
      local good, message = pcall(f)
      message = tostring(message)
      t.equal(good, false)
      t.equal(message:find(want, 1, true) ~= nil, true, message)
      return message
    end
    fails(function() doc:put(nil) end, 'not nil')
    fails(function() doc:put {f = print} end, 'function')
    fails(function() doc:put {x = '\255'} end, 'no JSON')
    fails(function() doc:put({}, {frist = 1}) end, 'frist')
    fails(function() doc:put({}, {first = 0.5}) end, 'argument 2 must be a whole number')
    local message = fails(function() list:find_no 'x' end, 'argument 1 must be a whole number')
    t.equal(message:find('models_spec', 1, true) ~= nil, true, message)
    t.equal({db:data('^d'), db:data('^l')}, {0, 0})
  end)
end
