-- Five minutes of Perilune: lua tour.lua [PATH]

local perilune = require 'perilune'
local db = perilune.open((...))

local person = db.node('^tour_person')
person:kill()

person[21].name.__ = 'Ada'
person[21].age.__ = 36
person[21].age:incr()
person[23]:settree {name = 'Grace', tags = {'navy', 'cobol'}}

for id in person:subscripts() do print(person[id].name.__, person[id].age:get('age unknown')) end
print(person[23]:tojson())

-- All or nothing, and run again when another process was faster.
local older = db:transaction(function(tx, id)
  local age = person[id].age
  if not age.__ then tx:rollback('no age') end
  return age:incr()
end, 21)
print('older', older)

print(person:dump())
person:kill()
