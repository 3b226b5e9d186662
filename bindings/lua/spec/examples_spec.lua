-- The examples run, and print what they should.

local here = debug.getinfo(1, 'S').source:match '^@(.*)examples_spec'

-- What the chunk prints, run with `arguments` and `print` of its own.
local function output(chunk, ...)
  local lines = {}
  local old = print
  print = function(...)
    local words = {}
    for i = 1, select('#', ...) do words[i] = tostring((select(i, ...))) end
    lines[#lines + 1] = table.concat(words, ' ')
  end
  local good, message = pcall(chunk, ...)
  print = old
  if not good then error(message, 0) end
  return table.concat(lines, '\n')
end

return function(spec)
  local expected = {
    tour = 'older 38',
    job_queue = 'put back 1\njob 1 mail user1\njob 2 mail user2\njob 3 mail user3\njob 99 of a worker that died \nleft 0 0',
    sessions = 'expired 2\nid1 user1 1100\nid4 user4 1040\nid5 user5 1050',
    leaderboard = 'player0 550, player9 540, player8 530',
    counters = '/ 20 2026-01-01=10 2026-01-02=10\n/about 10 2026-01-01=5 2026-01-02=5',
    order = 'rolled back\n0 0 none\ncommitted\n1 1 2\n7 paper',
    cache = '144 computed\n144 found',
    csv_import = 'rows 2\n1 Ada 36 London\n2 Grace 85 Arlington, "VA"',
  }
  for name, text in pairs(expected) do
    spec(name .. '.lua', function(_, t)
      local printed = output(assert(loadfile(here .. '../../../examples/' .. name .. '.lua')), t.path)
      t.equal(printed:find(text, 1, true) and text or printed, text)
    end)
  end
end
