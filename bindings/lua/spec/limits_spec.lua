-- Address space: short of it, opening says what to do, and PERILUNE_MAX_SIZE does it.

local here = debug.getinfo(1, 'S').source:match '^@(.*)limits_spec'

-- The interpreter that runs this.
local function interpreter()
  local first = 0
  while arg[first - 1] do first = first - 1 end
  return arg[first]
end

return function(spec)
  -- What a process prints that opens a new database after `shell`, commands that limit it.
  local function opened(path, shell)
    local command = string.format("sh -c '%s; exec %s %schild.lua %s.limited open 2>&1'", shell, interpreter(), here, path)
    local pipe = assert(io.popen(command))
    local text = pipe:read '*a'
    pipe:close()
    os.remove(path .. '.limited')
    os.remove(path .. '.limited-shm')
    return text
  end

  spec('a process without address space for 1 TiB', function(_, t)
    -- Sanitizers take terabytes of it for themselves.
    local limit = os.getenv 'SANITIZED' and 'true' or 'ulimit -v 16000000'
    local refused = opened(t.file, 'unset PERILUNE_MAX_SIZE; ' .. limit)
    if not os.getenv 'SANITIZED' then
      t.equal(refused:find('raise `ulimit -v`', 1, true) ~= nil, true, refused)
      t.equal(refused:find('PERILUNE_MAX_SIZE=', 1, true) ~= nil, true, refused)
    end
    t.equal(opened(t.file, limit .. '; export PERILUNE_MAX_SIZE=1g'), 'opened\n')
  end)

  spec('PERILUNE_MAX_SIZE is a size', function(_, t)
    local refused = opened(t.file, 'export PERILUNE_MAX_SIZE=much')
    t.equal(refused:find('$PERILUNE_MAX_SIZE: a size is', 1, true) ~= nil, true, refused)
    t.equal(opened(t.file, 'export PERILUNE_MAX_SIZE='), 'opened\n')
  end)
end
