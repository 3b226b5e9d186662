-- One order as a row of SQL, in an index and as a document, in one transaction: lua order.lua [PATH [MODE]]
--
-- Rolled back, nothing of it is left; committed, all three tell of it. With a MODE, `rollback` or `commit`, it does only
-- that and leaves what it wrote for others to read: bindings/node/packages/order does so.

local perilune = require 'perilune'
local documents, keyvalue = require 'perilune.documents', require 'perilune.keyvalue'
local path, mode = ...
local db = perilune.open(path)

db:sql 'CREATE TABLE IF NOT EXISTS orders(id INTEGER PRIMARY KEY, customer TEXT, total INTEGER)'
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
if mode ~= 'commit' then
  print(insert(101, 'Ada', items, false))
  tell()
end
if mode ~= 'rollback' then
  print(insert(101, 'Ada', items, true))
  tell()
  print(db:sql('SELECT total FROM orders WHERE customer = ?', 'Ada')[1].total, db:get('^order', 101, 'items', 1, 'name'))
end
if not mode then
  db:sql 'DROP TABLE orders'
  for _, name in ipairs {'^shop', '^order'} do db.node(name):kill() end
end
db:close()
