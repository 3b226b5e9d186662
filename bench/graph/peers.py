#!/usr/bin/env python3
"""SQLite, Kuzu and networkx over the graph that `graph_speed` has made, in its words: name, median and mean
CPU time in microseconds, sum of answers.

    cargo run --release -p perilune-graph --example graph_speed -- DIRECTORY
    pip install --target PEERS kuzu networkx; PYTHONPATH=PEERS bench/graph/peers.py DIRECTORY [sqlite] [kuzu] [networkx]

The sums are those of `graph_speed`, or the peer has answered something else. A peer that is not installed is left out.
"""

import csv
import os
import shutil
import sqlite3
import statistics
import sys
import time


def each(peer, name, things, work):
    times, total, before = [], 0, time.process_time()
    for thing in things:
        begun = time.perf_counter()
        total += work(thing)
        times.append((time.perf_counter() - begun) * 1e6)
    mean = (time.process_time() - before) * 1e6 / len(times)
    print(f"{peer:<9}{name:<14} {statistics.median(times):12.1f} {mean:12.1f} {total:12}", flush=True)


def numbers(directory, name):
    with open(os.path.join(directory, name)) as lines:
        return [int(line) for line in lines]


def edges(directory):
    with open(os.path.join(directory, "edges.csv")) as file:
        rows = csv.reader(file)
        next(rows)
        return [(int(source), int(target)) for source, _, target in rows]


TWO_HOPS = """
WITH RECURSIVE near(id, far) AS (
    SELECT ?1, 0 UNION SELECT e.target, far + 1 FROM near JOIN edge e ON e.source = near.id WHERE far < 2)
SELECT count(DISTINCT id) FROM near WHERE id <> ?1"""

PATH = """
WITH RECURSIVE near(id, far) AS (
    SELECT ?1, 0
    UNION SELECT e.target, far + 1 FROM near JOIN edge e ON e.source = near.id WHERE far < ?3
    UNION SELECT e.source, far + 1 FROM near JOIN edge e ON e.target = near.id WHERE far < ?3)
SELECT min(far) FROM near WHERE id = ?2"""


def sqlite(directory, starts, pairs):
    path = os.path.join(directory, "peer.sqlite")
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=OFF")

    def load(_):
        db.execute("CREATE TABLE edge(source INT, target INT)")
        db.executemany("INSERT INTO edge VALUES (?, ?)", edges(directory))
        db.execute("CREATE INDEX edge_out ON edge(source, target)")
        db.execute("CREATE INDEX edge_in ON edge(target, source)")
        db.execute("CREATE TABLE vertex(id INTEGER PRIMARY KEY)")
        db.execute("INSERT INTO vertex SELECT source FROM edge UNION SELECT target FROM edge")
        db.commit()
        return db.execute("SELECT count(*) FROM edge").fetchone()[0]

    def one(statement, *parameters):
        return db.execute(statement, parameters).fetchone()[0]

    def path_of(pair):
        # A level more until the other end is there: a statement cannot stop at it.
        for far in range(1, 20):
            found = one(PATH, *pair, far)
            if found is not None:
                return found
        return 0

    each("sqlite", "load", [0], load)
    each("sqlite", "point", starts, lambda start: one("SELECT count(*) FROM vertex WHERE id = ?", start))
    each("sqlite", "two hops", starts, lambda start: one(TWO_HOPS, start))
    each("sqlite", "shortest path", pairs[:8], path_of)


def kuzu(directory, starts, pairs):
    import kuzu as library

    path = os.path.join(directory, "peer.kuzu")
    for old in (path, path + ".wal"):
        if os.path.isdir(old):
            shutil.rmtree(old)
        elif os.path.exists(old):
            os.remove(old)
    connection = library.Connection(library.Database(path), num_threads=1)
    plain, vertices = os.path.join(directory, "kuzu.csv"), os.path.join(directory, "kuzu-vertices.csv")

    def load(_):
        pairs_of = edges(directory)
        with open(vertices, "w") as out:
            out.writelines(f"{vertex}\n" for vertex in sorted({end for pair in pairs_of for end in pair}))
        with open(plain, "w") as out:
            out.writelines(f"{source},{target}\n" for source, target in pairs_of)
        connection.execute("CREATE NODE TABLE V(id INT64, PRIMARY KEY(id))")
        connection.execute("CREATE REL TABLE LINK(FROM V TO V)")
        connection.execute(f"COPY V FROM '{vertices}'")
        connection.execute(f"COPY LINK FROM '{plain}'")
        return connection.execute("MATCH ()-[e:LINK]->() RETURN count(e)").get_next()[0]

    def prepared(statement):
        plan = connection.prepare(statement)
        return lambda **parameters: connection.execute(plan, parameters).get_next()[0]

    each("kuzu", "load", [0], load)
    point = prepared("MATCH (v:V) WHERE v.id = $a RETURN count(v)")
    two = prepared("MATCH (v:V)-[:LINK*1..2]->(w:V) WHERE v.id = $a AND w.id <> $a RETURN count(DISTINCT w.id)")
    way = prepared("MATCH p = (v:V)-[:LINK* SHORTEST 1..20]-(w:V) WHERE v.id = $a AND w.id = $b RETURN length(p)")
    each("kuzu", "point", starts, lambda start: point(a=start))
    each("kuzu", "two hops", starts, lambda start: two(a=start))
    each("kuzu", "shortest path", pairs, lambda pair: way(a=pair[0], b=pair[1]))


def networkx(directory, starts, pairs):
    import networkx as library

    graph = library.DiGraph()

    def load(_):
        graph.add_edges_from(edges(directory))
        return graph.number_of_edges()

    each("networkx", "load", [0], load)
    undirected = graph.to_undirected(as_view=True)
    within = library.single_source_shortest_path_length
    each("networkx", "two hops", starts, lambda start: len(within(graph, start, cutoff=2)) - 1)
    each("networkx", "shortest path", pairs, lambda pair: library.shortest_path_length(undirected, *pair))

    def ranked(_):
        # Ten rounds by hand: that of the library needs scipy, and ends by a tolerance.
        ranks = dict.fromkeys(graph, 1 / len(graph))
        for _ in range(10):
            stuck = sum(ranks[vertex] for vertex in graph if not graph.out_degree(vertex))
            following = dict.fromkeys(graph, (0.15 + 0.85 * stuck) / len(graph))
            for vertex in graph:
                for other in graph[vertex]:
                    following[other] += 0.85 * ranks[vertex] / graph.out_degree(vertex)
            ranks = following
        return int(sum(ranks.values()) * 1e6 + 0.5)

    each("networkx", "pagerank", [0], ranked)


def main():
    directory, wanted = sys.argv[1], sys.argv[2:] or ["sqlite", "kuzu", "networkx"]
    starts, ends = numbers(directory, "starts.txt"), numbers(directory, "pairs.txt")
    pairs = list(zip(ends[::2], ends[1::2]))
    for peer in (sqlite, kuzu, networkx):
        if peer.__name__ not in wanted:
            continue
        try:
            peer(directory, starts, pairs)
        except ImportError as missing:
            print(f"{peer.__name__}: left out: {missing}")


main()
