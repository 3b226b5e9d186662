-- SQL: rows as tables, with nodes in one transaction.

return function(spec)
  spec('statements answer rows', function(db, t)
    db:sql 'CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT UNIQUE, height REAL, photo BLOB)'
    local changed, last = db:sql('INSERT INTO users(name, height) VALUES (?, ?), (?, ?)', 'Ada', 1.5, 'Ben', nil)
    t.equal({changed, last}, {2, 2})
    local rows, names = db:sql('SELECT id, name, height FROM users ORDER BY id')
    t.equal(rows, {{id = 1, name = 'Ada', height = 1.5}, {id = 2, name = 'Ben'}})
    t.equal(names, {'id', 'name', 'height'})
    local seen = {}
    for row in db:rows('SELECT name FROM users WHERE id > ? ORDER BY name DESC', 0) do
      db:sql('DELETE FROM users WHERE name = ?', row.name)
      seen[#seen + 1] = row.name
    end
    t.equal(seen, {'Ben', 'Ada'})
    t.equal((db:sql 'SELECT * FROM users'), {})
    t.equal((db:sql('SELECT ?1 AS a, ?2 AS b, ?3 AS c, ?1 || ?1 AS d', "';", true, t.perilune.null)), {{a = "';", b = 1, d = "';';"}})
    db:sql('INSERT INTO users(name, photo) VALUES (?, x\'00ff\')', 'Cyd')
    t.equal((db:sql 'SELECT photo FROM users')[1].photo, '\0\255')
    db:sql 'DROP TABLE users'
  end)

  spec('errors say why', function(db, t)
    local function why(...)
      local ok, e = pcall(db.sql, db, ...)
      return not ok and e.code .. ' ' .. e.message
    end
    t.equal(why 'SELECT * FROM nowhere', 'SQL 42P01: no such table: nowhere (at byte 14)')
    t.equal(why 'SELECT', 'SQL 42601: incomplete input')
    t.equal(why('SELECT ?', {}):sub(1, 23), 'INVALID a parameter mus')
    t.equal(why('SELECT ?', 1, 2), 'SQL 22023: the statement has 1 parameters, and 2 were given')
    t.equal(why(7):sub(1, 26), 'INVALID a statement must b')
  end)

  spec('rows and nodes are one transaction', function(db, t)
    db:sql 'CREATE TABLE account(name TEXT PRIMARY KEY, money INT CHECK (money >= 0))'
    db:sql("INSERT INTO account VALUES ('ann', 10), ('ben', 0)")
    local transfers = db.node '^transfers'
    local function transfer(amount)
      return pcall(db.transaction, db, function()
        db:sql('UPDATE account SET money = money + ? WHERE name = ?', amount, 'ben')
        transfers:incr()
        db:sql('UPDATE account SET money = money - ? WHERE name = ?', amount, 'ann')
      end)
    end
    t.equal(transfer(4), true)
    local ok, e = transfer(40)
    t.equal({ok, e.message}, {false, '23514: CHECK constraint failed: money >= 0'})
    t.equal((db:sql 'SELECT * FROM account'), {{name = 'ann', money = 6}, {name = 'ben', money = 4}})
    t.equal(transfers.__, 1)
    -- Another connection changes what was read: the function runs again.
    local other, runs = t.perilune.open(db:path()), 0
    db:transaction(function()
      runs = runs + 1
      local money = db:sql("SELECT money FROM account WHERE name = 'ann'")[1].money
      if runs == 1 then other:sql "UPDATE account SET money = 100 WHERE name = 'ann'" end
      db:sql("UPDATE account SET money = ? WHERE name = 'ann'", money + 1)
    end)
    t.equal({runs, db:sql("SELECT money FROM account WHERE name = 'ann'")[1].money}, {2, 101})
    other:close()
    -- BEGIN holds for nodes as well.
    db:sql 'BEGIN'
    transfers.__ = 50
    db:sql 'DELETE FROM account'
    db:sql 'ROLLBACK'
    t.equal({transfers.__, #db:sql 'SELECT * FROM account'}, {1, 2})
    db:sql 'DROP TABLE account'
  end)

  -- A whole decimal is an integer, or its text where a number of Lua is not exactly it; one with a fraction is the number
  -- nearest to it, which has its digits.
  spec('decimals arrive exactly', function(db, t)
    db:sql 'CREATE TABLE price(id INTEGER PRIMARY KEY, d DECIMAL, two DECIMAL(10,2))'
    for i, text in ipairs {'0.1', '0.2', '-1234567890.12345', '999999999999.999', '0.000001', '-7'} do
      for _, given in ipairs {text, tonumber(text)} do
        db:sql('REPLACE INTO price(id, d) VALUES (?, ?)', i, given)
        local row = db:sql('SELECT d, CAST(d AS TEXT) AS text FROM price WHERE d = ?', given)[1]
        t.equal(row.d, tonumber(text))
        t.equal(tonumber(('%.15g'):format(row.d)), row.d)
        t.equal(tonumber(row.text), tonumber(text))
      end
    end
    db:sql("INSERT INTO price(id, d) VALUES (100, '123456789012345678')")
    t.equal(tostring((db:sql 'SELECT d FROM price WHERE id = 100')[1].d), '123456789012345678')
    t.equal((db:sql 'SELECT count(*) AS n FROM price WHERE d = 123456789012345678')[1].n, 1)
    t.equal((db:sql 'SELECT sum(d) AS s, max(d) * 3 AS m, min(d) + 0.2 AS a FROM price WHERE id < 3'), {{s = 0.3, m = 0.6, a = 0.3}})
    db:sql_function('same', function(d) return d end)
    t.equal((db:sql 'SELECT same(d) + same(d) AS d FROM price WHERE id = 1'), {{d = 0.2}})
    db:sql_function('same', nil)
    -- What a column does not keep is an error, and no other number.
    local function state(...)
      local ok, e = pcall(db.sql, db, ...)
      return not ok and e.message:sub(1, 5)
    end
    t.equal(state('UPDATE price SET two = ? WHERE id = 1', '0.125'), '22003')
    t.equal(state('UPDATE price SET two = ? WHERE id = 1', 0.125), '22003')
    t.equal(state('UPDATE price SET d = ? WHERE id = 1', '0.1234567890123456'), '22003')
    t.equal(state('SELECT d / 3 FROM price'), false)
    db:sql('UPDATE price SET two = ? WHERE id = 1', '12.50')
    t.equal((db:sql 'SELECT two, two * 2 AS twice FROM price WHERE id = 1'), {{two = 12.5, twice = 25}})
    db:sql 'DROP TABLE price'
  end)

  spec('statements call functions of the program', function(db, t)
    db:sql 'CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, net REAL)'
    db:sql("INSERT INTO item(name, net) VALUES ('apple', 2), ('bread', NULL)")
    local calls = 0
    db:sql_function('gross', function(net, rate)
      calls = calls + 1
      return net and net * (1 + rate)
    end)
    db:sql_function('initial', function(name) return name:sub(1, 1) end, {deterministic = true})
    t.equal((db:sql 'SELECT initial(name) AS i, gross(net, 0.5) AS g FROM item ORDER BY id'), {{i = 'a', g = 3}, {i = 'b'}})
    t.equal(calls, 2)
    t.equal((db:sql "SELECT name FROM item WHERE gross(net, 1) > 3 AND initial(name) = 'a'"), {{name = 'apple'}})
    db:sql 'UPDATE item SET name = initial(name)'
    t.equal((db:sql 'SELECT name FROM item WHERE id = 2'), {{name = 'b'}})
    local function why(text)
      local ok, e = pcall(db.sql, db, text)
      return not ok and e.code .. ' ' .. e.message
    end
    -- Errors of any kind end the statement, and nothing of it is left.
    db:sql_function('fails', function(kind)
      if kind == 'text' then error('no', 0) elseif kind == 'table' then error({message = 'a table'}) end
      if kind == 'close' then db:close() elseif kind == 'yield' then coroutine.yield() end
      return {}
    end)
    t.equal(why "UPDATE item SET net = fails('text')", 'SQL 38000: function fails: no')
    t.equal(why "SELECT fails('table')", 'SQL 38000: function fails: a table')
    t.equal(why("SELECT fails('close')"):find('cannot be closed', 1, true) ~= nil, true)
    t.equal(why("SELECT fails('yield')"):sub(1, 26), 'SQL 38000: function fails:')
    t.equal(why("SELECT fails('other')"):sub(1, 26), 'SQL 38000: function fails:')
    t.equal(why "SELECT upper('a')", false)
    local ok, e = pcall(db.sql_function, db, 'upper', print)
    t.equal({ok, e.code}, {false, 'SQL'})
    t.equal((db:sql 'SELECT count(*) AS n FROM item WHERE net = 2'), {{n = 1}})
    -- Another object of the database may be used, too by a function; it is another transaction.
    local other = t.perilune.open(db:path())
    db:sql_function('count_of', function(name)
      return other:sql('SELECT count(*) AS n FROM item WHERE name = ?', name)[1].n
    end)
    t.equal((db:sql "SELECT count_of('a') AS n"), {{n = 1}})
    t.equal(pcall(other.sql, other, "SELECT count_of('a')"), false)
    other:close()
    -- It is of the calling coroutine, takes many arguments, and can be replaced and taken back.
    db:sql_function('all', function(...) return select('#', ...) end)
    t.equal(coroutine.wrap(function() return (db:sql 'SELECT "all"(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) AS n')[1].n end)(), 12)
    db:sql_function('gross', function() return 'x' end)
    t.equal((db:sql 'SELECT gross() AS g'), {{g = 'x'}})
    for i = 1, 100 do db:sql_function('gross', function() return i end) end
    collectgarbage()
    t.equal((db:sql 'SELECT gross() AS g'), {{g = 100}})
    db:sql_function('gross', nil)
    t.equal(why('SELECT gross(1, 2)'):find('no such function', 1, true) ~= nil, true)
    db:sql 'DROP TABLE item'
  end)

  -- A function of the program's reads and writes in the transaction of the statement that calls it.
  spec('functions of the program are part of their statement', function(db, t)
    db:sql 'CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT)'
    db:sql("INSERT INTO item(name) VALUES ('apple'), ('bread'), ('cheese')")
    local seen, log = db.node '^seen', db.node '^log'
    db:sql_function('visit', function(id)
      return seen[id]:incr(1)
    end)
    t.equal((db:sql 'SELECT sum(visit(id)) AS n FROM item')[1].n, 3)
    t.equal((db:sql 'SELECT visit(id) AS n FROM item WHERE id = 2')[1].n, 2)
    t.equal({seen[1].__, seen[2].__, seen[3].__}, {1, 2, 1})
    -- What fails leaves nothing of it, also where the statement reads.
    db:sql_function('visit_and_fail', function(id)
      seen[id]:incr(1)
      if id == 3 then error('no', 0) end
    end)
    t.equal(pcall(db.sql, db, 'SELECT visit_and_fail(id) FROM item ORDER BY id'), false)
    t.equal(pcall(db.sql, db, 'UPDATE item SET name = visit_and_fail(id)'), false)
    db:transaction(function()
      log.__ = 'kept'
      t.equal(pcall(db.sql, db, 'SELECT visit_and_fail(id) FROM item ORDER BY id'), false)
      db:sql 'SELECT visit(1)'
    end)
    t.equal({seen[1].__, seen[2].__, seen[3].__, log.__}, {2, 2, 1, 'kept'})
    db:transaction(function(tx)
      db:sql 'SELECT visit(1)'
      tx:rollback()
    end)
    t.equal(seen[1].__, 2)
    -- It sees what the transaction has written, and runs statements, whose functions run as well.
    db:sql_function('names', function(below)
      local names = {}
      for _, row in ipairs((db:sql('SELECT name, visit(id) AS n FROM item WHERE id < ? ORDER BY id', below))) do
        names[#names + 1] = row.name .. row.n
      end
      return table.concat(names, ' ')
    end)
    db:transaction(function()
      db:sql "UPDATE item SET name = 'pear' WHERE id = 1"
      seen[2].__ = 10
      t.equal((db:sql 'SELECT names(3) AS n')[1].n, 'pear3 bread11')
    end)
    -- Nested transactions are levels; a level that fails is undone alone.
    db:sql_function('careful', function(id)
      pcall(db.transaction, db, function() seen[id]:incr(100); error('no') end)
      return db:transaction(function() return seen[id]:incr(1) end)
    end)
    t.equal((db:sql 'SELECT careful(3) AS n')[1].n, 2)
    -- It ends no transaction but its own, and takes no function away from the statement that runs.
    local function why(f)
      db:sql_function('wrong', f)
      local ok, e = pcall(db.sql, db, 'SELECT wrong()')
      return not ok and e.message
    end
    t.equal(why(function() db:rollback() end):find('raise an error', 1, true) ~= nil, true)
    t.equal(why(function() db:sql 'COMMIT' end):find('38000: function wrong', 1, true), 1)
    t.equal(why(function() db:sql 'DROP TABLE item' end):find('38000: function wrong', 1, true), 1)
    t.equal(why(function() db:sql_function('visit', nil) end):find('between statements', 1, true) ~= nil, true)
    -- A conflict runs the statement again, whatever the function makes of its error.
    local runs, other = 0, t.perilune.open(db:path())
    db:sql_function('meets', function()
      runs = runs + 1
      local before = db:get('^seen', 9) or 0
      if runs == 1 then other:set('^seen', 9, 5) end
      pcall(db.set, db, '^seen', 9, before + 1)
      return before + 1
    end)
    db:set('^seen', 9, 0)
    t.equal({(db:sql 'SELECT meets() AS n')[1].n, runs, db:get('^seen', 9)}, {6, 2, 6})
    runs = 0
    db:transaction(function() db:sql 'SELECT meets()'; log.__ = runs end)
    t.equal({runs, log.__, db:get('^seen', 9)}, {2, 2, 6})
    other:close()
    db:sql 'DROP TABLE item'
    seen:kill()
    log:kill()
  end)
end
