-- A queue of jobs for any number of processes: lua job_queue.lua [PATH]
--
-- A job is a child of ^queue("ready"), in the order of arrival. A worker takes the first in a transaction, so no
-- two take the same; the lock on the job ends with the worker, so a job whose worker died is found again.

local perilune = require 'perilune'
local db = perilune.open((...))
local queue = db.node('^queue')

local function put(job)
  local number = queue.last:incr()
  queue.ready[number]:settree(job)
  return number
end

-- The number of the first job, now in "taken", or nil.
local function take()
  return db:transaction(function()
    local number = queue.ready:next()
    if not number then return nil end
    queue.ready[number]:copy(queue.taken[number])
    queue.ready[number]:kill()
    queue.taken[number]:grab()
    return number
  end)
end

local function done(number)
  queue.taken[number]:kill()
  queue.taken[number]:release()
end

-- Jobs of workers that died: nobody holds their lock.
local function put_back()
  local count = 0
  for number in queue.taken:subscripts() do
    local job = queue.taken[number]
    if job:lock_count() == 0 and job:grab(0) then
      job:copy(queue.ready[number])
      done(number)
      count = count + 1
    end
  end
  return count
end

queue:kill()
for i = 1, 3 do put {task = 'mail', to = 'user' .. i} end
queue.taken[99].task.__ = 'of a worker that died'
print('put back', put_back())

local number = take()
while number do
  print('job', number, queue.taken[number].task.__, queue.taken[number].to:get(''))
  done(number)
  number = take()
end
print('left', queue.ready:count(), queue.taken:count())
queue:kill()
