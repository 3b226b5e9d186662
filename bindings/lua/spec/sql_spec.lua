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
      if kind == 'node' then return db.node '^x':get() elseif kind == 'nested' then return #db:sql 'SELECT 1' end
      if kind == 'close' then db:close() elseif kind == 'yield' then coroutine.yield() end
      return {}
    end)
    t.equal(why "UPDATE item SET net = fails('text')", 'SQL 38000: function fails: no')
    t.equal(why "SELECT fails('table')", 'SQL 38000: function fails: a table')
    t.equal(why("SELECT fails('node')"):find('its functions use another session', 1, true) ~= nil, true)
    t.equal(why("SELECT fails('nested')"):find('its functions use another session', 1, true) ~= nil, true)
    t.equal(why("SELECT fails('close')"):find('cannot be closed', 1, true) ~= nil, true)
    t.equal(why("SELECT fails('yield')"):sub(1, 26), 'SQL 38000: function fails:')
    t.equal(why("SELECT fails('other')"):sub(1, 26), 'SQL 38000: function fails:')
    t.equal(why "SELECT upper('a')", false)
    local ok, e = pcall(db.sql_function, db, 'upper', print)
    t.equal({ok, e.code}, {false, 'SQL'})
    t.equal((db:sql 'SELECT count(*) AS n FROM item WHERE net = 2'), {{n = 1}})
    -- Another object of the database may be used by a function; it is another transaction.
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
end
