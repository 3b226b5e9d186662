-- The module changes nothing about signals: seen by strace, beside the bare interpreter.

-- The interpreter that runs this.
local function interpreter()
  local first = 0
  while arg[first - 1] do first = first - 1 end
  return arg[first]
end

return function(spec)
  -- How many calls of each name while the Lua that runs this runs `code`.
  local function calls(t, code)
    local script, trace = t.new_path(), t.new_path()
    local file = assert(io.open(script, 'w'))
    file:write(code)
    file:close()
    -- The search for leaks, in the build with sanitizers, is itself a tracer: there can be but one.
    local command = string.format("ASAN_OPTIONS=detect_leaks=0 "
      .. "strace -f -qq -e trace=rt_sigaction,rt_sigprocmask,clone,clone3 -o '%s' '%s' '%s'",
      trace, interpreter(), script)
    local good = os.execute(command)
    assert(good == true or good == 0, 'failed (strace is needed: apt-get install strace): ' .. command)
    local count = {rt_sigaction = 0, rt_sigprocmask = 0, CLONE_THREAD = 0}
    for line in io.lines(trace) do
      for name in pairs(count) do
        -- NB: SIGRT_1 is the C library's own, for setuid() in programs with threads. A call during which
        -- another thread was seen has a second line.
        local other = line:find('resumed>', 1, true) or line:find('(SIGRT_1,', 1, true)
        if line:find(name, 1, true) and not other then count[name] = count[name] + 1 end
      end
    end
    os.remove(script)
    os.remove(trace)
    return count
  end

  spec('no handler is set and no signal blocked', function(db, t)
    local bare = calls(t, '')
    local used = calls(t, string.format([[
      local perilune = require 'perilune'
      local db = perilune.open('%s')
      local n = db.node('^n')
      n.a.b.__ = 1
      db:transaction(function() n.a.b:incr() end)
      n:grab() n:release()
      n.a:wait(0.01)
      for _ in n:subscripts() do end
      n:settree {1, 2, {3}} n:gettree() n:kill()
      db:close()
    ]], t.path))
    t.equal(used.rt_sigaction, bare.rt_sigaction)
    -- The C library blocks all signals while it makes a thread; so does this one, and then brings back what was.
    assert(used.rt_sigprocmask <= bare.rt_sigprocmask + 7 * (used.CLONE_THREAD - bare.CLONE_THREAD))
  end)

  -- What a child of this interpreter says that loses a page of its database, which somebody cuts.
  local function loses_a_page(t, path, prelude)
    local script, said = t.new_path(), t.new_path()
    local file = assert(io.open(script, 'w'))
    file:write(string.format([[
      local perilune = require 'perilune'
      %s
      local db = perilune.open('%s', {durability = 'none'})
      db.node('^n').a.__ = 1
      os.execute "truncate -s 16384 '%s'"
      print(db.node('^n').a.__)
    ]], prelude, path, path))
    file:close()
    local good = os.execute(string.format("{ '%s' '%s'; } >'%s' 2>&1", interpreter(), script, said))
    assert(good ~= true and good ~= 0, 'a process without its page went on')
    file = assert(io.open(said))
    local text = file:read '*a'
    file:close()
    os.remove(script)
    os.remove(said)
    return text
  end

  spec('a process that asks says which file it was when a page is lost', function(_, t)
    local path = t.path .. '.cut'
    local escaped = path:gsub('%p', '%%%0')
    local message = 'perilune: ' .. escaped .. ': byte %d+ cannot be had: the file was cut to 16384 bytes'
    local said = loses_a_page(t, path, 'perilune.install_sigbus() perilune.install_sigbus()')
    assert(said:find(message), said)
    os.remove(path)
    os.remove(path .. '-shm')
    said = loses_a_page(t, path, '')
    assert(not said:find('cannot be had', 1, true), said)
    os.remove(path)
    os.remove(path .. '-shm')
  end)
end
