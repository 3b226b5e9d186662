/// <reference types="node" />

/**
 * The native interface of Perilune for Node.js. docs/reference/node.md is made from this file.
 */

/** A list without elements, as a value. */
export const EMPTY_LIST: unique symbol;
/** A map without entries, as a value. */
export const EMPTY_MAP: unique symbol;
/** The version of the library. */
export const version: string;

/** What a node may hold. A bigint comes back where a number is not exactly the integer. */
export type Value = string | number | bigint | boolean | null | typeof EMPTY_LIST | typeof EMPTY_MAP;
/** What may be written: bytes become a string of bytes. */
export type Given = Value | Uint8Array;
/** A subscript: the canonical text of a number is that number. */
export type Subscript = string | number | bigint | Uint8Array;
/** A subscript as it is answered. */
export type Key = string | number;
/** What a commit waits for. */
export type Durability = 'default' | 'none' | 'periodic' | 'fsync';

export interface OpenOptions {
  /** Create the database when it is missing; true unless told otherwise. */
  create?: boolean;
  readOnly?: boolean;
  durability?: Durability;
  /** Bytes that the file may take. */
  maxSize?: number;
  /** Seconds to wait for processes that open or close it. */
  timeout?: number;
  /** Seconds to wait for a page that a stopped process holds. */
  waitLimit?: number;
  fileMode?: number;
  shmDir?: string;
  anyFilesystem?: boolean;
  acceptLostCommits?: boolean;
}

export interface TransactionOptions {
  readOnly?: boolean;
  durability?: Durability;
  /** Seconds for all tries together; 10 unless told otherwise. */
  timeout?: number;
  /** Ask at once for the right to publish alone (behind a server: `INVALID`), or never: `CONFLICT` after three tries. */
  exclusive?: boolean | 'never';
}

export interface Transaction {
  /** Ends the innermost level, which answers `value`; nothing of it is written. */
  rollback(value?: unknown): never;
  /** Runs the outermost level again. */
  restart(): never;
  /** How often it has been run again. */
  readonly restarts: number;
  /** How many levels are open. */
  readonly level: number;
}

export interface Range {
  /** Where the walk begins, in its own direction; included. */
  from?: Subscript;
  /** As `from`, but not included. */
  after?: Subscript;
  /** Where it ends; included. */
  to?: Subscript;
  /** As `to`, but not included. */
  before?: Subscript;
  reverse?: boolean;
}

export interface WaitOptions {
  /** Seconds; without it there is no limit. */
  timeout?: number;
  /** Ends the wait; the promise is rejected with the signal's reason. */
  signal?: AbortSignal;
}

export interface Message {
  body: Buffer;
  /** The body as UTF-8. */
  readonly text: string;
  /** Its number in the channel, from 1. */
  number: number;
  /** How many before it were dropped unseen. */
  missed: number;
}

export interface ChannelOptions {
  whenFull?: 'refuse' | 'dropOldest';
  messages?: number;
  bytes?: number;
}

/** Opens or creates the database at `path`, a file or the address of a server; without one the default database. */
export function open(path?: string | null, options?: OpenOptions): Database;

export class Database {
  private constructor();
  /** The node of a name, `'^name'` in the database or `'name'` of this session alone, with subscripts. */
  node(name: string, ...subscripts: Subscript[]): Node;
  /** Walks over the names in the database, or the private ones. */
  names(options?: {local?: boolean}): IterableIterator<string>;
  /** Runs `work` as a transaction, again when it conflicts. It may not be async. */
  transaction<T>(work: (tx: Transaction) => T, options?: TransactionOptions): T;
  /** A database that reads what is there now; writing to it throws READ_ONLY. */
  snapshot(): Database;
  /** Sends a message; its number, 0 inside a transaction, with which it is posted. */
  post(channel: string, body: string | Uint8Array): number;
  /** Takes the oldest message away; undefined when the time is over. */
  receive(channel: string, options?: WaitOptions): Promise<Message | undefined>;
  /** Reads the first message after number `after` and leaves it for others. */
  follow(channel: string, after: number, options?: WaitOptions): Promise<Message | undefined>;
  /** Creates a channel or changes its bounds. */
  createChannel(channel: string, options?: ChannelOptions): void;
  /** Removes a channel and its messages; whether it was there. */
  removeChannel(channel: string): boolean;
  /** Releases all locks of this environment in the database. */
  unlockAll(): void;
  /** The file, or the address of the server. */
  readonly path: string;
  readonly isOpen: boolean;
  /** Whether it is a snapshot of another one. */
  readonly isSnapshot: boolean;
  /** Figures for operators. */
  stat(): Record<string, number | string>;
  /** What has been committed survives a crash of the machine; false if nothing had changed. */
  checkpoint(): boolean;
  /** The faults found in the whole database, as text; empty when it is whole. */
  verify(): string;
  /** Ends waits and watches; what is used afterwards throws CLOSED. */
  close(): void;
}

export class Node implements Iterable<[Key, Value | undefined]> {
  private constructor();
  readonly db: Database;
  readonly name: string;
  readonly subscripts: readonly Subscript[];
  /** The last subscript; of a name, the name. */
  readonly key: Subscript;
  /** undefined for a name. */
  readonly parent: Node | undefined;
  /** The descendant with these subscripts more. */
  node(...subscripts: Subscript[]): Node;
  /** `^name(1,"x")`. */
  toString(): string;
  /** The value at the descendant; undefined if there is none. */
  get(...subscripts: Subscript[]): Value | undefined;
  /** The value as bytes. */
  getBytes(...subscripts: Subscript[]): Buffer | undefined;
  /** Subscripts, then the value. */
  set(...subscriptsAndValue: [...Subscript[], Given]): void;
  /** Subscripts, then what to add (1 without arguments); exact in decimal; the new value. */
  incr(...subscriptsAndBy: Subscript[]): number | bigint | string;
  /** 0 nothing, 1 a value, 10 descendants, 11 both. */
  data(...subscripts: Subscript[]): 0 | 1 | 10 | 11;
  /** Deletes the value; whether there was one. */
  delete(...subscripts: Subscript[]): boolean;
  /** Deletes the node and all below it. */
  kill(...subscripts: Subscript[]): void;
  /** Sets the value if it is `expected`; undefined is no value. */
  compareAndSet(expected: Given | undefined, desired: Given | undefined): boolean;
  /** Makes `to` a copy of this subtree. */
  copy(to: Node): Node;
  /** Writes this subtree over `to`. */
  merge(to: Node): Node;
  /** How many children, or values below. */
  count(what?: 'children' | 'nodes'): number;
  /** Sets many below this node: all or none, or with `each` one after the other, for loading. */
  setMany(entries: Iterable<[Subscript | Subscript[], Given]>, options?: {each?: boolean}): void;
  /** Reads many below this node, as of one moment. */
  getMany(paths: Iterable<Subscript | Subscript[]>): (Value | undefined)[];
  /** The child after `subscript`, or the first; undefined at the end. */
  next(subscript?: Subscript): Key | undefined;
  /** The child before `subscript`, or the last. */
  previous(subscript?: Subscript): Key | undefined;
  /** Walks over the children: subscript and value, undefined where there is only a subtree. */
  children(range?: Range): IterableIterator<[Key, Value | undefined]>;
  /** Walks over the subscripts of the children. */
  keys(range?: Range): IterableIterator<Key>;
  /** Walks over all nodes with a value, this one included, depth first. */
  nodes(options?: {reverse?: boolean}): IterableIterator<[Node, Value]>;
  [Symbol.iterator](): IterableIterator<[Key, Value | undefined]>;
  /** Takes the lock, waiting up to `timeout` seconds (0) with the event loop; counted. */
  lock(options?: {timeout?: number; shared?: boolean}): boolean;
  /** Counts it down; false if it was not held. */
  unlock(): boolean;
  /** How often it is held. */
  lockCount(): number;
  /** Waits for the lock beside the event loop; false when the time is over. */
  lockAsync(options?: WaitOptions & {shared?: boolean}): Promise<boolean>;
  /** Begins to watch this node, or with all below it. */
  watch(options?: {scope?: 'node' | 'subtree'}): Watch;
}

export class Watch implements AsyncIterable<true> {
  private constructor();
  /** Resolves to true after a touch, to false after `timeout` seconds. */
  wait(options?: {timeout?: number}): Promise<boolean>;
  [Symbol.asyncIterator](): AsyncIterator<true>;
  /** Ends it; who waits is rejected with CLOSED, a loop ends. */
  close(): void;
}

export interface ModelOptions {
  /** The subscript of an array's first element; 0 unless told otherwise. */
  first?: number;
  /** Whether values keep their kinds; true unless told otherwise. False: as QEWD-JSdb stores and reads them. */
  typed?: boolean;
}

/** `perilune/documents`: a value of JSON below a node; every method is one transaction, or a part of the one that is open. */
export interface Document {
  /** The node below which it lies. */
  readonly place: Node;
  /** Merges the value into what is there, or takes its place. */
  put(value: unknown, options?: ModelOptions & {replace?: boolean}): void;
  /** Changes properties: null deletes one. */
  patch(value: unknown, options?: ModelOptions): void;
  /** The value; undefined if nothing is there. */
  fetch(options?: ModelOptions): any;
  /** Replaces it by what `f` makes of it; undefined deletes it. */
  update<T>(f: (value: any) => T): T;
  /** Names in order. */
  children(wanted?: {from?: string; to?: string; prefix?: string; reverse?: boolean}): Key[];
  /** Pairs of a path and a value, in order. */
  leaves(options?: ModelOptions): [Key[], any][];
  /** How many properties or elements. */
  count(): number;
  /** Deletes it. */
  delete(): void;
}

/** `perilune/lists`: documents in an order; positions count from 0, or from -1 at the end. */
export interface List {
  /** The node below which it lies. */
  readonly place: Node;
  /** Appends a value; the number of the new element. */
  rpush(value: unknown, options?: ModelOptions): number;
  /** Puts a value before all others. */
  lpush(value: unknown, options?: ModelOptions): number;
  /** Puts a value before a position; undefined if there is no such position. */
  insert_before(position: number, value: unknown, options?: ModelOptions): number | undefined;
  /** Takes the last value away. */
  rpop(options?: ModelOptions): any;
  /** Takes the first value away. */
  lpop(options?: ModelOptions): any;
  /** The values from `from` to `to`, which is included. */
  lrange(from?: number, to?: number, options?: ModelOptions): any[];
  /** Keeps those; false if there is no list. */
  ltrim(from?: number, to?: number): boolean;
  /** The number of an element. */
  find_no(position: number): number | undefined;
  /** How many there are. */
  count(): number;
  /** What contradicts the layout. */
  check(): string[];
}

/** `perilune/keyvalue`: documents by key, found by properties that are indexed. */
export interface KeyValue {
  /** The node below which it lies. */
  readonly place: Node;
  /** False if the key is empty or there. */
  add(key: string, value: unknown, options?: ModelOptions): boolean;
  /** False if the key is not there. */
  edit(key: string, value: unknown, options?: ModelOptions): boolean;
  /** False if the key is not there. */
  delete(key: string): boolean;
  /** The document; undefined if the key is not there. */
  get_by_key(key: string, options?: ModelOptions): any;
  /** Keys, or with data documents by key; undefined if the index has no entry at all. */
  get_by_index(property: string, value: string | number | boolean, withData?: boolean, options?: ModelOptions): any;
  /** Indexes a property of documents from now on; transform is toLowerCase, toString or toInteger. */
  addIndex(property: string, transform?: string): void;
  /** Entries stay until `reindex`. */
  deleteIndex(property: string): void;
  /** The properties that are indexed. */
  getIndices(): string[];
  /** Makes all entries anew. */
  reindex(): void;
  /** Entries that are missing or too many. */
  check(): string[];
}

/** A text, a number or a truth value, as members, ids and values of `perilune/models` are. */
export type Scalar = string | number | bigint | boolean;

/** An object of them; null is no field, and deletes one where fields are changed. */
export type Fields = Record<string, Scalar | null>;

/** The id of a vertex: an integer or a text. A node of the database stands for its text. */
export type Vertex = number | bigint | string;

/** From source to target, against that, or both. */
export type Direction = 'out' | 'in' | 'both';

/** Which edges are followed. */
export type Reach = {direction?: Direction, types?: string | string[]};

/** Limits, at which a search ends with an error. */
export type GraphLimits = {max_vertices?: number, max_edges?: number, max_milliseconds?: number};

/** Options of searches and algorithms: [what they mean](graph.md#options). */
export type GraphOptions = Reach & GraphLimits & {count?: number};

/** What an edge costs; undefined: it is not followed. */
export type Cost = (edge: Edge, graph: Graph) => number | undefined;

/** What is left from a vertex at least. */
export type Estimate = (vertex: Vertex, graph: Graph) => number;

/** The edges by which a path goes on. */
export type Expander = (path: Path, graph: Graph) => Iterable<Edge | number>;

/** An edge, as `Graph` and `Path` answer it; a weight only where it has one. */
export type Edge = {id: number, source: Vertex, type: string, target: Vertex, weight?: number};

/** Of `perilune/graph`: a graph below a node. Each change is one transaction, or a part of the open one. */
export class Graph {
  /** The node of the database below which it lies. */
  readonly place: Node;
  /** The same graph in a snapshot of its database. */
  in(db: Database): Graph;
  /** Adds a vertex; its id. */
  addVertex(id: Vertex | Node, labels?: string[], properties?: Fields): Vertex;
  /** Deletes a vertex, and its edges if told so; without that one with edges is an error, HAS_EDGES. */
  deleteVertex(id: Vertex | Node, options?: {edges?: boolean}): void;
  /** Whether it is there. */
  hasVertex(id: Vertex | Node): boolean;
  /** Gives a vertex a label. */
  addLabel(id: Vertex | Node, label: string): void;
  /** Takes a label away. */
  removeLabel(id: Vertex | Node, label: string): void;
  /** The labels of a vertex. */
  labels(id: Vertex | Node): string[];
  /** A property of a vertex; undefined if there is none. */
  get(id: Vertex | Node, name: string): Value | undefined;
  /** Sets a property of a vertex; undefined deletes it. */
  set(id: Vertex | Node, name: string, value: Value | undefined): void;
  /** All properties of a vertex. */
  properties(id: Vertex | Node): Record<string, Value>;
  /** All vertices, or those with a label. */
  vertices(label?: string): Vertex[];
  /** The vertices with a label whose property has this value; by an index if there is one. */
  find(label: string, property: string, value: Value): Vertex[];
  /** Keeps an index of a property of the vertices with a label. */
  addIndex(label: string, property: string): void;
  /** Drops an index. */
  dropIndex(label: string, property: string): void;
  /** Adds an edge; its number. */
  addEdge(source: Vertex | Node, type: string, target: Vertex | Node, properties?: Fields): number;
  /** Deletes an edge. */
  deleteEdge(edge: number): void;
  /** A property of an edge; undefined if there is none. */
  getEdge(edge: number, name: string): Value | undefined;
  /** Sets a property of an edge; undefined deletes it. */
  setEdge(edge: number, name: string, value: Value | undefined): void;
  /** All properties of an edge. */
  edgeProperties(edge: number): Record<string, Value>;
  /** An edge; undefined if there is none. */
  edge(edge: number): Edge | undefined;
  /** The edges of a vertex, or of all: those that leave, unless the options name another direction. */
  edges(id?: Vertex | Node, options?: GraphOptions): Edge[];
  /** How many edges a vertex has; nothing is walked. */
  degree(id: Vertex | Node, direction?: Direction, type?: string): number;
  /** How many vertices and edges there are. */
  count(): {vertices: number, edges: number};
  /** What contradicts the layout; none if the graph is whole. */
  check(): string[];
  /** Describes a walk. */
  traversal(): Traversal;
  /** The path of the fewest edges; undefined if there is none. */
  shortestPath(from: Vertex | Node, to: Vertex | Node, options?: GraphOptions): Path | undefined;
  /** All of them, at most `count`. */
  shortestPaths(from: Vertex | Node, to: Vertex | Node, options?: GraphOptions): Path[];
  /** The cheapest path by weight, or by a function of an edge. */
  dijkstra(from: Vertex | Node, to: Vertex | Node, options?: GraphOptions & {cost?: Cost}): Path | undefined;
  /** As `dijkstra`, found sooner by `estimate`, which never says more than what is left from a vertex. */
  aStar(from: Vertex | Node, to: Vertex | Node, options?: GraphOptions & {cost?: Cost, estimate?: Estimate}): Path | undefined;
  /** The `count` cheapest paths that meet no vertex twice. */
  cheapestPaths(from: Vertex | Node, to: Vertex | Node, count: number, options?: GraphOptions): Path[];
  /** Arrays of vertices that hang together, the largest first. */
  components(options?: GraphOptions): Vertex[][];
  /** Rank by vertex; damping 0.85 and 20 rounds. */
  pageRank(options?: GraphOptions & {damping?: number, rounds?: number}): Map<Vertex, number>;
  /** On how many shortest paths a vertex lies. */
  betweenness(options?: GraphOptions): Map<Vertex, number>;
  /** How many triangles there are. */
  triangles(options?: GraphOptions): number;
  /** The vertices of a cycle; undefined if there is none. */
  cycle(options?: GraphOptions): Vertex[] | undefined;
  /** All vertices, each before those that its edges lead to; a cycle is an error. */
  topologicalOrder(options?: GraphOptions): Vertex[];
}

/** One of Neo4j's four answers: include_and_continue, include_and_prune, exclude_and_continue, exclude_and_prune. */
export type Verdict = `${'include' | 'exclude'}_and_${'continue' | 'prune'}`;

/** What an evaluator answers: whether a path counts, and whether it is followed (else it is). */
export type Evaluation = boolean | [boolean, boolean] | Verdict;

/** Of `Graph.traversal`: which paths a walk finds, in which order. Each method answers a new one. */
export class Traversal {
  /** Paths of few edges first, as without it. */
  breadthFirst(): Traversal;
  /** A path's continuations before its neighbours. */
  depthFirst(): Traversal;
  /** The path of the lowest cost first. */
  cheapestFirst(): Traversal;
  /** Where edges lead: direction and types, or a function that answers the edges by which a path goes on. */
  expand(how: Reach | Expander): Traversal;
  /** Asks a function about each path, besides those asked before. */
  evaluate(evaluator: (path: Path, graph: Graph) => Evaluation): Traversal;
  /** What is not met again: vertex_global, vertex_path, edge_global, edge_path, none, vertex_recent or edge_recent. */
  uniqueness(kind: string, recent?: number): Traversal;
  /** Paths of fewer edges do not count. */
  minDepth(depth: number): Traversal;
  /** Paths of so many edges are not followed. */
  maxDepth(depth: number): Traversal;
  /** What edges cost: their weight, 1, or what a function says. */
  cost(cost: 'weight' | 'one' | Cost): Traversal;
  /** Limits, at which the walk ends with an error. */
  limit(limits: {vertices?: number, edges?: number, milliseconds?: number}): Traversal;
  /** Walks from vertices, a path when it is asked for. */
  from(...starts: (Vertex | Node)[]): Generator<Path, void>;
  /** All paths of a walk. */
  all(...starts: (Vertex | Node)[]): Path[];
}

/** A path; its text is A-[KNOWS]->B<-[KNOWS]-C. */
export class Path {
  /** Its vertices, one more than edges. */
  readonly vertices: Vertex[];
  /** Its edges. */
  readonly edges: Edge[];
  /** What they cost together. */
  readonly cost: number;
  /** How many edges. */
  readonly length: number;
  /** The first vertex. */
  readonly start: Vertex;
  /** The last vertex. */
  readonly vertex: Vertex;
}

/** `set` of `perilune/models`: texts and numbers, in order. */
export interface SetModel {
  /** False if it is there. */
  add(member: Scalar): boolean;
  /** False if it is not there. */
  remove(member: Scalar): boolean;
  /** Whether it is a member. */
  has(member: Scalar): boolean;
  /** All, in order. */
  members(): Key[];
  /** How many. */
  count(): number;
}

/** `hash` of `perilune/models`: values by field. */
export interface Hash {
  /** Sets a field; true if it is new. */
  put(field: Scalar, value: Scalar): boolean;
  /** The value; undefined if it is not there. */
  get(field: Scalar): Value | undefined;
  /** Adds `by` (1) to the number there; the sum. */
  increment(field: Scalar, by?: number | bigint): Value;
  /** False if it is not there. */
  delete(field: Scalar): boolean;
  /** All fields. */
  all(): Fields;
  /** How many. */
  count(): number;
}

/** `records` of `perilune/models`: objects by id, with indexes of one or more of their properties. */
export interface Records {
  /** Adds a record; its id, the next number. */
  insert(record: Fields): number;
  /** Puts a record in the place of the one with that id; true if there was none. */
  put(id: Scalar, record: Fields): boolean;
  /** Changes properties; false if it is not there. */
  edit(id: Scalar, changes: Fields): boolean;
  /** False if it is not there. */
  delete(id: Scalar): boolean;
  /** The record; undefined if it is not there. */
  get(id: Scalar): Fields | undefined;
  /** Ids under the values of an index's first properties, the next one between `from` and `to`; with data pairs of id and record. */
  find(index: string, values?: Scalar[], from?: Scalar, to?: Scalar, withData?: boolean): any[];
  /** All ids, in order. */
  ids(): Key[];
  /** How many. */
  count(): number;
  /** Indexes properties in that order; the name of the index. */
  add_index(properties: string[]): string;
  /** False if there is none. */
  delete_index(index: string): boolean;
  /** The names of the indexes. */
  indices(): string[];
  /** Entries that are missing or too many. */
  check(): string[];
}

/** `columns` of `perilune/models`: cells that lie by column, found by row and by value. */
export interface Columns {
  /** Sets cells of a row; null deletes one. */
  put(row: Scalar, cells: Fields): void;
  /** The cells of a row; undefined if it has none. */
  row(row: Scalar): Fields | undefined;
  /** Pairs of row and value. */
  column(column: string): [Key, Scalar][];
  /** Rows with that value. */
  find(column: string, value: Scalar): Key[];
  /** Rows whose value lies there, in the order of values. */
  range(column: string, from?: Scalar, to?: Scalar): Key[];
  /** False if it has no cell. */
  delete(row: Scalar): boolean;
  /** All, in order. */
  rows(): Key[];
  /** The names of all columns. */
  columns(): Key[];
  /** Entries that are missing or too many. */
  check(): string[];
}

/** `relations` of `perilune/models`: tables beside the node, whose rows belong to rows of the table above. */
export interface Relations {
  /** Makes a table known, with the names of its keys and the table above it. */
  table(table: string, keys: string[], parent?: string): void;
  /** False if it is there; a row with the keys of the table above belongs to that row. */
  insert(table: string, row: Fields): boolean;
  /** Changes fields, and the row that it belongs to; false if it is not there. */
  update(table: string, keys: Scalar[], changes: Fields): boolean;
  /** The row with those keys; undefined if it is not there. */
  get(table: string, keys: Scalar[]): Fields | undefined;
  /** Rows with these first keys. */
  rows(table: string, keys?: Scalar[]): Fields[];
  /** Rows of the table `child` that belong to that row. */
  children(table: string, keys: Scalar[], child: string): Fields[];
  /** The row that it belongs to; undefined if there is none. */
  parent(table: string, keys: Scalar[]): Fields | undefined;
  /** False if it is not there; without `cascade` an error if rows belong to it. */
  delete(table: string, keys: Scalar[], cascade?: boolean): boolean;
  /** Links that lead from one side alone. */
  check(): string[];
}

/** `network` of `perilune/models`: nodes and edges with properties. */
export interface Network {
  /** Adds a node; its id, without one the next number. */
  add_node(properties: Fields, id?: Scalar): Key;
  /** Adds an edge between two nodes that are there; its id. */
  add_edge(type: string, from: Scalar, to: Scalar, properties?: Fields, id?: Scalar): Key;
  /** Its properties; undefined if it is not there. */
  get_node(id: Scalar): Fields | undefined;
  /** The edge; undefined if it is not there. */
  get_edge(id: Scalar): {type: string; from: Key; to: Key; properties: Fields} | undefined;
  /** Changes properties; false if it is not there. */
  edit_node(id: Scalar, changes: Fields): boolean;
  /** Changes properties; false if it is not there. */
  edit_edge(id: Scalar, changes: Fields): boolean;
  /** Deletes it with its edges; false if it is not there. */
  delete_node(id: Scalar): boolean;
  /** False if it is not there. */
  delete_edge(id: Scalar): boolean;
  /** The edges of a type. */
  edges(type: string): Key[];
  /** The edges that leave it, come in, or both. */
  edges_of(id: Scalar, direction?: 'out' | 'in' | 'both', type?: string): Key[];
  /** The nodes at their other ends, each once. */
  neighbours(id: Scalar, direction?: 'out' | 'in' | 'both', type?: string): Key[];
  /** Edges that are not named on all sides. */
  check(): string[];
}

/** An error of the database: `code` is a status of perilune.h without PERILUNE_. Wrong types are TypeErrors with INVALID. */
export class PeriluneError extends Error {
  readonly code: string;
  readonly status: number;
  /** Of a graph, what it refuses: NO_VERTEX, VERTEX_EXISTS, NO_EDGE, HAS_EDGES, NOT_A_GRAPH, NOT_EMPTY or COST. */
  readonly reason?: string;
}

/** What an expression of XPath gives. */
export type XPathResult = string | number | boolean | DomNode[];

/** A document of XML, from `dom(node)` of `perilune/dom`; see the [guide](../guide/xml.md). Errors have the code DOM and the DOM's name. */
export interface Dom {
  /** The node of the database below which it is. */
  readonly place: Node;
  /** The document's own node; null if there is no document. */
  readonly documentNode: DomNode | null;
  readonly documentElement: DomNode | null;
  readonly docType: DomNode | null;
  readonly doctype: DomNode | null;
  /** The first node of the document. */
  readonly firstChild: DomNode | null;
  /** Reads a text (or bytes, UTF-8) into a new document, all of it or nothing. */
  parse(xml: string | Uint8Array, options?: ParseOptions): DomNode;
  parseFile(file: string, options?: ParseOptions): DomNode;
  /** The document as XML; with `indent` each node on a line. */
  output(indent?: number): string;
  /** Makes a document of a value that JSON can say, in one transaction. */
  parseJSON(value: unknown): DomNode;
  /** The value of such a document. */
  outputAsJSON(): unknown;
  createDocument(): DomNode;
  removeDocument(): void;
  createElement(tagName: string): DomNode;
  /** An element that declares its namespace. */
  createElementNS(namespace: string | null, name: string): DomNode;
  createAttribute(name: string, value?: string): DomNode;
  createTextNode(text: string): DomNode;
  createComment(text: string): DomNode;
  createCDATASection(text: string): DomNode;
  createProcessingInstruction(target: string, data?: string): DomNode;
  /** Puts it at the beginning of the document. */
  createXMLDeclaration(version?: string, encoding?: string): DomNode;
  /** Puts it before the outermost element; `html4_strict` and its kin know their identifiers. */
  createDocumentType(name: string, publicId?: string | null, systemId?: string | null): DomNode;
  /** A copy of a node of any document of the database; an `id` comes along. */
  importNode(node: DomNode, deep?: boolean): DomNode;
  /** Takes a node out of its document into this one. */
  adoptNode(node: DomNode): DomNode;
  getNodeByNo(number: number): DomNode | null;
  getElementById(id: string): DomNode | null;
  /** Live, in document order; `*` is any. */
  getElementsByTagName(name: string): readonly DomNode[];
  getElementsByTagNameNS(namespace: string | null, localName: string): readonly DomNode[];
  /** What an expression of XPath 1.0 gives: a value, or an array of nodes in document order. */
  evaluate(expression: string, options?: XPathOptions): XPathResult;
  /** The same by JSdb's name. */
  xpath(expression: string, options?: XPathOptions): XPathResult;
  /** The nodes; an error if it gives another value. */
  select(expression: string, options?: XPathOptions): DomNode[];
  /** The first of them, or null. */
  first(expression: string, options?: XPathOptions): DomNode | null;
  /** Calls `f`, whose `this` is an element, for each, depth first, until it sets `params.stop`. */
  walk<P extends object>(params: P, f: (this: DomNode, params: P & {stop?: boolean}) => void): P;
  /** What contradicts the layout; none if the document is whole. */
  check(): string[];
}

export interface ParseOptions {
  /** White space as JSdb has it: line ends removed, ends trimmed, empty texts dropped. */
  trim?: boolean;
  /** Remove the document that is there. */
  replace?: boolean;
  /** Keep the name of an external DTD, which is never read. */
  keepExternalDtd?: boolean;
}

export interface XPathOptions {
  /** Names of namespaces by the prefixes that the expression uses. */
  namespaces?: Record<string, string>;
  variables?: Record<string, string | number | boolean>;
  /** How many looks at nodes it may take. */
  nodesMax?: number;
}

/** A node of a document. One node is one object. Properties that it has not are null; offsets count UTF-16 units. */
export interface DomNode {
  readonly ownerDocument: Dom;
  /** Its number, by which `getNodeByNo` finds it. */
  readonly nodeNo: number;
  readonly nodeType: number;
  readonly nodeName: string;
  nodeValue: string | null;
  /** All text below it; set: replaces its children by one text. */
  textContent: string;
  /** The name, of an element. */
  readonly tagName: string;
  readonly name: string;
  readonly target: string;
  value: string | null;
  data: string | null;
  readonly publicId: string | null;
  readonly systemId: string | null;
  readonly parentNode: DomNode | null;
  /** The element of an attribute. */
  readonly ownerElement: DomNode | null;
  readonly isId: boolean;
  readonly firstChild: DomNode | null;
  readonly lastChild: DomNode | null;
  readonly previousSibling: DomNode | null;
  readonly nextSibling: DomNode | null;
  /** Live, with the methods of arrays and `item`. */
  readonly childNodes: readonly DomNode[];
  readonly childNodesArray: DomNode[];
  readonly childElements: DomNode[];
  hasChildNodes(): boolean;
  hasChildElements(): boolean;
  appendChild(child: DomNode): DomNode;
  insertBefore(child: DomNode, before?: DomNode | null): DomNode;
  replaceChild(child: DomNode, old: DomNode): DomNode;
  /** Takes it away; it stays stored unless it is to be deleted. */
  removeChild(child: DomNode, forGood?: boolean): DomNode | null;
  appendElement(element: {tagName: string; attributes?: Record<string, string | number>; text?: string}): DomNode;
  /** Makes `child` the only child, and the children its own. */
  insertBeforeChildren(child: DomNode): DomNode;
  /** Takes this node away and leaves its children. */
  removeAsParent(forGood?: boolean): DomNode | null;
  /** Removes it for good, with all below it. */
  delete(): void;
  /** A copy without ids. */
  cloneNode(deep?: boolean): DomNode;
  /** Joins neighbouring texts, drops empty ones. */
  normalize(): void;
  contains(other: DomNode): boolean;
  isSameNode(other: DomNode): boolean;
  isEqualNode(other: DomNode): boolean;
  /** Bits: 1 disconnected, 2 preceding, 4 following, 8 contains, 16 contained, 32 by number. */
  compareDocumentPosition(other: DomNode): number;
  /** Live, with `item`, `getNamedItem`, `setNamedItem` and `removeNamedItem`. */
  readonly attributes: readonly DomNode[];
  hasAttributes(): boolean;
  /** As an object, by name. */
  getAttributes(): Record<string, string>;
  /** `''` if there is none. */
  getAttribute(name: string): string;
  hasAttribute(name: string): boolean;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): boolean;
  getAttributeNode(name: string): DomNode | null;
  /** The one that was there. */
  setAttributeNode(attribute: DomNode): DomNode | null;
  removeAttributeNode(attribute: DomNode): DomNode;
  getAttributeNS(namespace: string | null, localName: string): string;
  hasAttributeNS(namespace: string | null, localName: string): boolean;
  /** Declares a prefix that nothing declares; one that means something else is an error. */
  setAttributeNS(namespace: string | null, name: string, value: string): void;
  removeAttributeNS(namespace: string | null, localName: string): boolean;
  getAttributeNodeNS(namespace: string | null, localName: string): DomNode | null;
  readonly prefix: string | null;
  readonly localName: string | null;
  readonly namespaceURI: string | null;
  lookupPrefix(namespace: string): string | null;
  lookupNamespaceURI(prefix?: string | null): string | null;
  isDefaultNamespace(namespace: string | null): boolean;
  getElementsByTagName(name: string): readonly DomNode[];
  getElementsByTagNameNS(namespace: string | null, localName: string): readonly DomNode[];
  readonly length: number;
  readonly wholeText: string;
  substringData(offset: number, count: number): string;
  appendData(text: string): void;
  insertData(offset: number, text: string): void;
  deleteData(offset: number, count: number): void;
  replaceData(offset: number, count: number, text: string): void;
  /** The second part, a new node. */
  splitText(offset: number): DomNode;
  /** What a program keeps at the node; no output shows it. */
  setUserData(key: string, value: Given): void;
  getUserData(key: string): Value | null;
  deleteUserData(key: string): boolean;
  getUserDataKeys(): string[];
  hasUserData(): boolean;
  /** The node of the database for data that is a subtree. */
  getUserDataNode(key: string): Node;
  evaluate(expression: string, options?: XPathOptions): XPathResult;
  xpath(expression: string, options?: XPathOptions): XPathResult;
  select(expression: string, options?: XPathOptions): DomNode[];
  first(expression: string, options?: XPathOptions): DomNode | null;
  output(indent?: number): string;
}
