-- Tells of all sessions of express.js and leaves each a note, which its page shows: perilune visitor.lua [PATH]

local perilune = require 'perilune'
local db = perilune.open((...))

for id in db.node('^session'):subscripts() do
  local session = db.node('^session', id)
  print('visits', session.visits.__)
  session.note.__ = 'seen by Lua'
end
db:close()
