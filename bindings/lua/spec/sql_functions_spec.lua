-- Functions of the tree in SQL, in whatever Lua this is: they run in a Lua of the library's, which is none of the program's.

return function(spec)
  local function why(db, ...)
    local ok, e = pcall(db.sql, db, ...)
    return not ok and e.code .. ' ' .. e.message
  end

  spec('functions of the tree stand wherever expressions do', function(db, t)
    db:sql "CREATE FUNCTION gross(net, rate) DETERMINISTIC AS 'return net * (1 + rate)'"
    db:sql "CREATE FUNCTION initial(name) AS 'return name:sub(1, 1)'"
    db:sql "CREATE FUNCTION is_even(n) DETERMINISTIC AS 'return n % 2 == 0'"
    db:sql "INTERPRET LUA 'function answer() return 42 end'"
    db:sql 'CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, net INT CHECK (is_even(net)), n INT DEFAULT (answer()))'
    db:sql 'CREATE INDEX dear ON item(gross(net, 1))'
    db:sql "INSERT INTO item(name, net) VALUES ('apple', 2), ('bread', gross(2, 1))"
    t.equal((db:sql 'SELECT name, gross(net, 0.5) AS g, n FROM item ORDER BY gross(net, -2)'),
      {{name = 'bread', g = 6, n = 42}, {name = 'apple', g = 3, n = 42}})
    t.equal((db:sql 'SELECT name FROM item WHERE gross(net, 1) = 8'), {{name = 'bread'}})
    t.equal((db:sql 'SELECT initial(name) AS i, count(*) AS n FROM item GROUP BY initial(name)'), {{i = 'a', n = 1}, {i = 'b', n = 1}})
    t.equal(db:sql "UPDATE item SET net = gross(net, 1) WHERE initial(name) = 'a'", 1)
    t.equal((db:sql 'SELECT name FROM item WHERE gross(net, 1) = 8 ORDER BY 1'), {{name = 'apple'}, {name = 'bread'}})
    t.equal(why(db, "INSERT INTO item(name, net) VALUES ('x', 3)"):sub(1, 10), 'SQL 23514:')
    db:sql [[CREATE AGGREGATE product(x) AS '
      local all = 1
      return {step = function(x) all = all * x end, final = function() return all end}']]
    t.equal((db:sql 'SELECT product(net) AS p FROM item'), {{p = 16}})
    db:sql [[CREATE FUNCTION series(low, high) RETURNS TABLE(n) AS '
      local n = low - 1
      return function() n = n + 1 if n <= high then return n end end']]
    t.equal((db:sql 'SELECT n, (SELECT name FROM item WHERE id = series.n) AS name FROM series(2, 3)'), {{n = 2, name = 'bread'}, {n = 3}})
    db:sql [[CREATE TRIGGER tidy BEFORE INSERT ON item LANGUAGE lua AS '
      if new.name == "no" then error("not this one", 0) end
      new.name = new.name:lower()
      perilune.node("^seen", new.name).__ = true']]
    t.equal((db:sql "INSERT INTO item(name, net) VALUES ('CORN', 2) RETURNING name"), {{name = 'corn'}})
    t.equal(why(db, "INSERT INTO item(name, net) VALUES ('no', 2)"), 'SQL 38000: trigger tidy: not this one')
    t.equal(db.node('^seen').corn.__, true)
    db:sql [[CREATE FUNCTION drop(n, id) AS 'if n > 2 then return SQL("DELETE FROM item WHERE id = ?", id) end']]
    db:sql 'CREATE LUATRIGGER taken ON item POSTUPDATE "drop(net, id)"'
    db:sql 'UPDATE item SET net = net + 2 WHERE id = 3'
    t.equal((db:sql 'SELECT count(*) AS n FROM item'), {{n = 2}})
    -- One of the program's stands before one of the tree, and may be called by that.
    db:sql_function('answer', function() return 43 end)
    t.equal((db:sql 'SELECT answer() AS n'), {{n = 43}})
    db:sql [[CREATE FUNCTION asks() AS 'return SQL("SELECT answer() + 1 AS n")[1].n']]
    t.equal((db:sql 'SELECT asks() AS n'), {{n = 44}})
    db:sql_function('answer', nil)
    t.equal((db:sql 'SELECT asks() AS n'), {{n = 43}})
  end)

  spec('functions of the tree are part of their transaction', function(db, t)
    db:sql 'CREATE TABLE account(name TEXT PRIMARY KEY, money INT CHECK (money >= 0))'
    db:sql "INSERT INTO account VALUES ('ann', 10), ('ben', 0)"
    db:sql [[CREATE FUNCTION move(a, b, sum) AS '
      perilune.node("^moves"):incr()
      SQL("UPDATE account SET money = money + ? WHERE name = ?", sum, b)
      SQL("UPDATE account SET money = money - ? WHERE name = ?", sum, a)']]
    local money = "SELECT group_concat(money, ' ') AS m FROM account"
    db:sql "SELECT move('ann', 'ben', 4)"
    t.equal(why(db, "SELECT move('ann', 'ben', 40)"):sub(1, 29), 'SQL 38000: function move: mov')
    t.equal({db:sql(money)[1].m, db.node('^moves').__}, {'6 4', 1})
    db:transaction(function(tx)
      db:sql "SELECT move('ann', 'ben', 1)"
      t.equal({db:sql(money)[1].m, db.node('^moves').__}, {'5 5', 2})
      tx:rollback()
    end)
    t.equal({db:sql(money)[1].m, db.node('^moves').__}, {'6 4', 1})
    -- What others write meanwhile has it run again.
    local other, runs = t.perilune.open(db:path()), 0
    db:transaction(function()
      runs = runs + 1
      db:sql "SELECT move('ann', 'ben', 1)"
      if runs == 1 then other:sql "SELECT move('ben', 'ann', 2)" end
    end)
    t.equal({runs, db:sql(money)[1].m, db.node('^moves').__}, {2, '7 3', 3})
    other:close()
  end)

  spec('functions of the tree have limits', function(db, t)
    db:sql "CREATE FUNCTION forever() AS 'while true do pcall(error) end'"
    db:sql [[CREATE FUNCTION large() AS 'return #("x"):rep(128 * 1024 * 1024)']]
    db:sql [[CREATE FUNCTION deep() AS 'local function f() return ("x"):gsub("x", f) end return f()']]
    db:sql "CREATE FUNCTION outside() AS 'return os.time()'"
    local too_long = 'SQL 57014: function forever: it takes too long: let it do less, or raise the limit'
    -- With two Luas, one of them a LuaJIT: it takes five seconds of the processor.
    if rawget(_G, 'jit') or _VERSION == 'Lua 5.4' then t.equal(why(db, 'SELECT forever()'), too_long) end
    t.equal(why(db, 'SELECT large()'):find('memory', 1, true) ~= nil, true)
    -- In a coroutine, too, and one of many levels.
    local function nested(depth)
      return coroutine.wrap(function()
        if depth > 0 then return nested(depth - 1) end
        return why(db, 'SELECT deep()')
      end)()
    end
    t.equal(nested(20):find('overflow', 1, true) ~= nil, true)
    t.equal(why(db, 'SELECT outside()'):sub(1, 28), 'SQL 38000: function outside:')
    db:sql [[CREATE FUNCTION calls() AS 'return redis.call("GET", "a")']]
    t.equal(why(db, 'SELECT calls()'),
      'SQL 38000: function calls: redis.call is at a server: run the statement by its command SQL')
    db:sql [[CREATE OR REPLACE FUNCTION calls() AS 'return client("GET", "a")']]
    t.equal(why(db, 'SELECT calls()'):sub(1, 47), 'SQL 38000: function calls: client() is at a ser')
    db:sql "CREATE FUNCTION one() AS 'return 1'"
    t.equal((db:sql 'SELECT one() AS n'), {{n = 1}})
  end)

  -- A program's own globals and metatables of strings are none of theirs.
  spec('functions of the tree are in a Lua of their own', function(db, t)
    db:sql "CREATE FUNCTION version() AS 'return _VERSION .. tostring(pcall(function() return shared end))'"
    _G.shared = true
    t.equal((db:sql 'SELECT version() AS v'), {{v = 'Lua 5.1false'}})
    _G.shared = nil
  end)
end
