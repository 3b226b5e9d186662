-- One order as a row of SQL, in an index and as a document, in one transaction: lua order.lua [PATH]
--
-- Rolled back, nothing of it is left; committed, all three tell of it.

local perilune = require 'perilune'
local documents, keyvalue = require 'perilune.documents', require 'perilune.keyvalue'
local db = perilune.open((...))

db:sql 'CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT, total INTEGER)'
local shop = keyvalue.at(db.node('^shop'))
shop:addIndex('customer', 'toLowerCase')

local function insert(id, customer, items, is_real)
  return db:transaction(function(tx)
    local total = 0
    for _, item in ipairs(items) do total = total + item.price end
    db:sql('INSERT INTO orders(id, customer, total) VALUES (?, ?, ?)', id, customer, total)
    shop:add(tostring(id), {customer = customer, total = total})
    documents.at(db.node('^order', id)):put {customer = customer, items = items}
    if not is_real then tx:rollback('rolled back') end
    return 'committed'
  end)
end

local function tell()
  local keys = shop:get_by_index('customer', 'ada') or {}
  local order = documents.at(db.node('^order', 101)):fetch()
  print(#db:sql 'SELECT id FROM orders', #keys, order and #order.items or 'none')
end

local items = {{name = 'pen', price = 2}, {name = 'paper', price = 5}}
print(insert(101, 'Ada', items, false))
tell()
print(insert(101, 'Ada', items, true))
tell()
print(db:sql('SELECT total FROM orders WHERE customer = ?', 'Ada')[1].total, db:get('^order', 101, 'items', 1, 'name'))

db:sql 'DROP TABLE orders'
for _, name in ipairs {'^shop', '^order'} do db.node(name):kill() end
db:close()
