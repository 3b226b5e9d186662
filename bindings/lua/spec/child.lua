-- What the processes of processes_spec.lua run: child.lua PATH WHAT ID; and those of limits_spec.lua: child.lua PATH open

local path, what, id = arg[1], arg[2], arg[3]
local perilune = require 'perilune'
if what == 'open' then
  local good, e = pcall(perilune.open, path)
  print(good and 'opened' or tostring(e))
  return
end
local db = perilune.open(path, {durability = 'none'})
local step = db.node('^step')

local work = {
  count = function()
    for i = 1, 500 do
      db.node('^counter'):incr()
      db:transaction(function() step[i % 7].__ = step[i % 7]:get(0) + 1 end)
    end
  end,
  hold = function()
    db.node('^lock').a:grab()
    db.node('^ready').__ = true
    db.node('^go'):wait(60, nil)
  end,
  write = function() db.node('^told')[id].__ = 'by the child' end,
  collatz = function() dofile(arg[4]).worker(db, id) end,
}
work[what]()
db.node('^done')[id].__ = what
