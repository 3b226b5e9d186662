---@meta _perilune
-- Perilune: a database of an ordered tree of nodes, ^name(subscript, ...), shared by processes.
--
-- This file is the module's front and its description for editors (LuaLS); the functions are in C.
-- docs/guide/lua.md introduces it, docs/reference/lua.md is the contract.

---A subscript: a number (integral ones are integers) or any bytes.
---@alias perilune.Subscript string|number
---What a node can hold; nil is no value.
---@alias perilune.Value string|number|boolean|lightuserdata|userdata|nil

---The address of a node; it never changes and holds no data itself.
---@class perilune.Node
---@field __ perilune.Value the value in the database
---@field [perilune.Subscript] perilune.Node the child with that subscript
---@operator call(...): perilune.Node
---@field get fun(self: perilune.Node, default?: any): any the value, or `default`
---@field set fun(self: perilune.Node, value: perilune.Value): any sets the value and returns it; nil deletes
---@field incr fun(self: perilune.Node, by?: number|string): number adds `by` (1), exactly; the new value
---@field cas fun(self: perilune.Node, expected: perilune.Value, desired: perilune.Value): boolean compare and set
---@field data fun(self: perilune.Node): integer 0 nothing, 1 a value, 10 children, 11 both
---@field has_value fun(self: perilune.Node): boolean
---@field has_tree fun(self: perilune.Node): boolean
---@field delete fun(self: perilune.Node): boolean deletes the value, not what is below
---@field kill fun(self: perilune.Node) deletes the node and all below it
---@field next fun(self: perilune.Node, after?: perilune.Subscript): perilune.Subscript?, perilune.Value
---@field previous fun(self: perilune.Node, before?: perilune.Subscript): perilune.Subscript?, perilune.Value
---@field subscripts fun(self: perilune.Node, range?: boolean|perilune.Range): fun(): perilune.Subscript
---@field pairs fun(self: perilune.Node, range?: boolean|perilune.Range): fun(): perilune.Subscript, perilune.Value
---@field ipairs fun(self: perilune.Node, first?: integer, last?: integer): fun(): integer, perilune.Value
---@field children fun(self: perilune.Node, range?: boolean|perilune.Range): fun(): perilune.Node, perilune.Value
---@field nodes fun(self: perilune.Node, reverse?: boolean): fun(): perilune.Node, perilune.Value depth first
---@field settree fun(self: perilune.Node, tree: table, filter?: function) stores a table, all or nothing
---@field gettree fun(self: perilune.Node, depth?: integer|function, filter?: function): table?
---@field getpiece fun(self: perilune.Node, first?: integer, last?: integer): string?, integer? a part of a string, and how long it is
---@field setpiece fun(self: perilune.Node, first: integer, text: string): integer writes a part of a string; how long it is then
---@field tojson fun(self: perilune.Node): string?
---@field fromjson fun(self: perilune.Node, text: string) replaces the subtree
---@field dump fun(self: perilune.Node, lines?: integer): string
---@field copy fun(self: perilune.Node, to: perilune.Node): perilune.Node replaces the tree at `to`
---@field merge fun(self: perilune.Node, to: perilune.Node): perilune.Node writes over the tree at `to`
---@field count fun(self: perilune.Node, what?: 'children'|'nodes'): integer
---@field depth fun(self: perilune.Node): integer
---@field name fun(self: perilune.Node): perilune.Subscript the last subscript, or the name
---@field varname fun(self: perilune.Node): string
---@field subscript fun(self: perilune.Node, index?: integer): perilune.Subscript?
---@field subsarray fun(self: perilune.Node): perilune.Subscript[]
---@field parent fun(self: perilune.Node, depth?: integer): perilune.Node?
---@field contains fun(self: perilune.Node, other: perilune.Node): boolean
---@field grab fun(self: perilune.Node, timeout?: number): boolean takes the lock; false after `timeout` seconds
---@field release fun(self: perilune.Node): boolean
---@field lock_incr fun(self: perilune.Node, timeout?: number): boolean
---@field lock_decr fun(self: perilune.Node): boolean
---@field lock fun(self: perilune.Node, timeout?: number): boolean releases all locks, then takes this one
---@field lock_count fun(self: perilune.Node): integer
---@field wait fun(self: perilune.Node, timeout?: number, known?: perilune.Value): boolean sleeps until it is written
---@field watch fun(self: perilune.Node, scope?: 'node'|'subtree'): perilune.Watch

---@class perilune.Range
---@field from? perilune.Subscript where the walk begins, included
---@field after? perilune.Subscript where it begins, excluded
---@field to? perilune.Subscript where it ends, included
---@field before? perilune.Subscript where it ends, excluded
---@field reverse? boolean from the last to the first

---@class perilune.Watch
---@field wait fun(self: perilune.Watch, timeout?: number): boolean
---@field descriptor fun(self: perilune.Watch): integer
---@field close fun(self: perilune.Watch)

---@class perilune.Transaction
---@field transaction fun(self: perilune.Transaction, f: function, ...: any): any
---@field rollback fun(self: perilune.Transaction, value?: any) ends this level: nothing is written
---@field restart fun(self: perilune.Transaction) runs the outermost level again
---@field restarts fun(self: perilune.Transaction): integer
---@field level fun(self: perilune.Transaction): integer

---@class perilune.Database: perilune.Transaction
---@field node fun(name: string, ...: perilune.Subscript): perilune.Node
---@field get fun(self: perilune.Database, node: perilune.Node|string, ...: perilune.Subscript): perilune.Value
---@field set fun(self: perilune.Database, node: perilune.Node|string, ...: any)
---@field incr fun(self: perilune.Database, node: perilune.Node|string, ...: any): number
---@field data fun(self: perilune.Database, node: perilune.Node|string, ...: perilune.Subscript): integer
---@field get_many fun(self: perilune.Database, nodes: perilune.Node[]): table
---@field set_many fun(self: perilune.Database, nodes: perilune.Node[], values: table)
---@field set_each fun(self: perilune.Database, nodes: perilune.Node[], values: table)
---@field lock fun(self: perilune.Database, nodes?: perilune.Node[], timeout?: number): boolean
---@field names fun(self: perilune.Database, private?: boolean): fun(): string
---@field post fun(self: perilune.Database, channel: string, message: string): integer
---@field receive fun(self: perilune.Database, channel: string, timeout?: number): string?, integer, integer
---@field follow fun(self: perilune.Database, channel: string, after: integer, timeout?: number): string?, integer, integer
---@field snapshot fun(self: perilune.Database): perilune.Database what is there now, to be read; close() it
---@field sql fun(self: perilune.Database, text: string, ...): any, any rows and names of columns, or rows changed and the last one
---@field rows fun(self: perilune.Database, text: string, ...): fun(): table? goes through the rows of a statement
---@field sql_function fun(self: perilune.Database, name: string, f: function?, options: table?) gives statements a function
---@field checkpoint fun(self: perilune.Database): boolean makes it survive a crash of the machine; false: nothing was new
---@field stat fun(self: perilune.Database): table<string, integer|string>
---@field verify fun(self: perilune.Database): true?, integer?, string?
---@field path fun(self: perilune.Database): string
---@field close fun(self: perilune.Database)

---@class perilune.Options
---@field create? boolean
---@field read_only? boolean
---@field durability? 'none'|'periodic'|'fsync'
---@field max_size? integer bytes
---@field timeout? number seconds
---@field wait_limit? number seconds
---@field file_mode? integer
---@field shm_dir? string
---@field any_filesystem? boolean
---@field accept_lost_commits? boolean

---@class perilune.Error
---@field code string as 'KEY_TOO_LONG', 'INVALID', 'CONFLICT'
---@field status integer
---@field message string what happened and what to do
---@field node? string the node's text

---@class perilune
---@field open fun(path?: string, options?: perilune.Options): perilune.Database
---@field use fun(db?: perilune.Database|string, options?: perilune.Options): perilune.Database sets and returns the default database
---@field node fun(name: string, ...: perilune.Subscript): perilune.Node a node of the default database
---@field inherit fun(node: function): function, table, table
---@field isnode fun(x: any): boolean
---@field compare fun(a: perilune.Node, b: perilune.Node): integer -1, 0 or 1: their order in the tree
---@field is_error fun(x: any): boolean
---@field transaction fun(id: string|table|function, f?: function): function
---@field rollback fun(value?: any)
---@field restart fun()
---@field lock fun(nodes?: perilune.Node[], timeout?: number): boolean
---@field install_sigbus fun() says which database it was when the kernel cannot give a page of one
---@field list fun(t: table): table marks a table as a list, for when it is empty
---@field null lightuserdata JSON's null
---@field empty_list userdata
---@field empty_map userdata
---@field DELETE userdata in a table for settree: deletes the value
---@field _VERSION string
local perilune = require '_perilune'

-- LuaJIT's part needs its FFI; without it the functions in C do all.
local extend = perilune.extend
perilune.extend = nil
if rawget(_G, 'jit') and extend then
  local good, with_ffi = pcall(require, 'perilune.ffi')
  if good then with_ffi(extend) end
end

-- What sends a transaction's function to a server; without `debug` nothing is sent. Loaded now: later the names of Lua's
-- functions may be the program's own.
local ship = perilune.ship
perilune.ship = nil
if ship then
  local good, sender = pcall(require, 'perilune.ship')
  ship(function(tools, db, options, tx, must, ...)
    if good then return sender(tools, perilune, db, options, tx, must, ...) end
    if must then tools.fail('INVALID', 'the function cannot run at the server: there is no library `debug` to read it') end
    return false
  end)
end

return perilune
