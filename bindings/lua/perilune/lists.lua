-- Lists of documents in JSdb's layout. docs/guide/documents.md introduces them; positions count from 0, or from -1 at
-- the end.
--
--   local queue = require 'perilune.lists'.at(db.node('^queue'))
--   queue:rpush {job = 1}
--   local job = queue:lpop()

local calls = require 'perilune.calls'

return {at = calls.maker {
  rpush = calls.writing('list.rpush', 1),
  lpush = calls.writing('list.lpush', 1),
  insert_before = calls.writing('list.insert_before', 2),
  rpop = calls.reading('list.rpop', 0),
  lpop = calls.reading('list.lpop', 0),
  lrange = calls.reading('list.lrange', 2),
  ltrim = calls.plain 'list.ltrim',
  find_no = calls.plain 'list.find_no',
  count = calls.plain 'list.count',
  check = function(self) return (calls.decoded(self, calls.call(self.node, 'list.check'))) end,
}}
