-- Documents by key, found by properties that are indexed, in JSdb's layout. docs/guide/documents.md introduces them.
--
--   local people = require 'perilune.keyvalue'.at(db.node('^people'))
--   people:addIndex('town', 'toLowerCase')
--   people:add('key_1', {name = 'Rob', town = 'Redhill'})
--   local keys = people:get_by_index('town', 'redhill')

local calls = require 'perilune.calls'

local function texts(name)
  return function(self) return (calls.decoded(self, calls.call(self.node, name))) end
end

return {at = calls.maker {
  add = calls.writing('keyvalue.add', 2),
  edit = calls.writing('keyvalue.edit', 2),
  delete = calls.plain 'keyvalue.delete',
  get_by_key = calls.reading('keyvalue.get_by_key', 1),
  get_by_index = calls.reading('keyvalue.get_by_index', 3),
  addIndex = calls.plain 'keyvalue.add_index',
  deleteIndex = calls.plain 'keyvalue.delete_index',
  getIndices = texts 'keyvalue.indices',
  reindex = calls.plain 'keyvalue.reindex',
  check = texts 'keyvalue.check',
}}
