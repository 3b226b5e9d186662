/*
 * Graphs: vertices, edges, properties, questions, walks.
 *
 *     ./graph /tmp/graph.db
 */
#include "expect.h"

static perilune_value text(const char *bytes)
{
    return perilune_string(bytes, strlen(bytes));
}

static void add_road(perilune_session *session, perilune_graph *roads, const char *from, const char *to, double km)
{
    perilune_value source = text(from), target = text(to), length = perilune_double(km);
    int64_t edge;

    CHECK(session, perilune_graph_add_edge(session, roads, &source, "ROAD", 4, &target, &edge));
    CHECK(session, perilune_graph_set_edge(session, roads, edge, "km", 2, &length));
}

static perilune_graph *build(perilune_session *session)
{
    static const char *const cities[] = {"DC", "Chicago", "Denver", "SF"};
    perilune_value label = text("City"), value;
    perilune_graph *roads;
    place node;
    size_t i;

    CHECK(session, perilune_kill(session, at(&node, "^roads")));
    CHECK(session, perilune_graph_create(session, &node.node, "km", 2, &roads));
    for (i = 0; i < sizeof cities / sizeof *cities; i++) {
        value = text(cities[i]);
        CHECK(session, perilune_graph_add_vertex(session, roads, &value, &label, 1));
    }
    add_road(session, roads, "DC", "Chicago", 956);
    add_road(session, roads, "Chicago", "Denver", 1474);
    add_road(session, roads, "Denver", "SF", 2010);
    add_road(session, roads, "DC", "SF", 4540);
    return roads;
}

static void change(perilune_session *session, perilune_graph *roads)
{
    perilune_value dc = text("DC"), rome = text("Rome"), people = perilune_int(700000), value;
    perilune_sql_rows *rows;
    perilune_value find[3];
    uint64_t degree;

    CHECK(session, perilune_graph_set(session, roads, &dc, "people", 6, &people));
    CHECK(session, perilune_graph_get(session, roads, &dc, "people", 6, &value));
    EXPECT(value.type == PERILUNE_INT && value.as.i == 700000);
    CHECK(session, perilune_graph_get_edge(session, roads, 1, "km", 2, &value));
    EXPECT(value.type == PERILUNE_DOUBLE && value.as.d == 956);
    CHECK(session, perilune_graph_index(session, roads, "City", 4, "people", 6, 1));
    find[0] = text("City");
    find[1] = text("people");
    find[2] = people;
    CHECK(session, perilune_graph_ask(session, roads, "find", 4, find, 3, NULL, 0, &rows));
    EXPECT(perilune_sql_count(rows) == 1 && perilune_sql_columns(rows) == 1);
    CHECK(NULL, perilune_sql_value(rows, 0, 0, &value));
    EXPECT(same_text(&value, PERILUNE_STRING, "DC"));
    EXPECT(perilune_sql_value(rows, 0, 1, &value) == PERILUNE_NOT_FOUND);
    perilune_sql_close(rows);
    CHECK(session, perilune_graph_degree(session, roads, &dc, PERILUNE_OUT, NULL, 0, &degree));
    EXPECT(degree == 2);
    CHECK(session, perilune_graph_degree(session, roads, &dc, PERILUNE_BOTH, "RIVER", 5, &degree));
    EXPECT(degree == 0);

    EXPECT(perilune_graph_has_vertex(session, roads, &rome) == PERILUNE_NOT_FOUND);
    EXPECT(perilune_graph_add_edge(session, roads, &dc, "ROAD", 4, &rome, NULL) == PERILUNE_GRAPH);
    EXPECT(strncmp(perilune_message(session), "NO_VERTEX: ", 11) == 0);
    EXPECT(perilune_graph_delete_vertex(session, roads, &dc, 0) == PERILUNE_GRAPH);
    EXPECT(strncmp(perilune_message(session), "HAS_EDGES: ", 11) == 0);
    CHECK(session, perilune_graph_add_vertex(session, roads, &rome, NULL, 0));
    CHECK(session, perilune_graph_set_label(session, roads, &rome, "City", 4, 1));
    CHECK(session, perilune_graph_add_edge(session, roads, &rome, "FLIGHT", 6, &dc, NULL));
    CHECK(session, perilune_graph_delete_vertex(session, roads, &rome, 1));
    CHECK(session, perilune_graph_delete_edge(session, roads, 4));
    EXPECT(perilune_graph_delete_edge(session, roads, 4) == PERILUNE_GRAPH);
    add_road(session, roads, "DC", "SF", 4540);
}

static void ask(perilune_session *session, perilune_graph *roads)
{
    static const char *const way[] = {"DC", "Chicago", "Denver", "SF"};
    perilune_value ends[2], value;
    perilune_sql_rows *rows;
    size_t i;

    ends[0] = text("DC");
    ends[1] = text("SF");
    CHECK(session, perilune_graph_ask(session, roads, "shortest_path", 13, ends, 2, NULL, 0, &rows));
    EXPECT(perilune_sql_count(rows) == 2);
    perilune_sql_close(rows);
    CHECK(session, perilune_graph_ask(session, roads, "cheapest_path", 13, ends, 2, NULL, 0, &rows));
    EXPECT(perilune_sql_count(rows) == 4);
    for (i = 0; i < 4; i++) {
        CHECK(NULL, perilune_sql_value(rows, i, 2, &value));
        EXPECT(same_text(&value, PERILUNE_STRING, way[i]));
    }
    CHECK(NULL, perilune_sql_value(rows, 3, 3, &value));
    EXPECT(value.type == PERILUNE_DOUBLE && value.as.d == 956 + 1474 + 2010);
    perilune_sql_close(rows);
    CHECK(session, perilune_graph_ask(session, roads, "check", 5, NULL, 0, NULL, 0, &rows));
    CHECK(NULL, perilune_sql_value(rows, 0, 2, &value));
    EXPECT(perilune_sql_count(rows) == 1 && value.type == PERILUNE_NULL);
    perilune_sql_close(rows);
    EXPECT(perilune_graph_ask(session, roads, "weather", 7, NULL, 0, NULL, 0, &rows) == PERILUNE_INVALID);
    EXPECT(rows == NULL && strstr(perilune_message(session), "page_rank") != NULL);
}

/* A walk goes on in its own transaction alone; Chicago is pruned, and from DC the walk is led by one edge. */
static int body(perilune_session *session, void *context)
{
    perilune_graph *roads = context;
    perilune_value start = text("DC");
    perilune_graph_step step, before;
    perilune_graph_walk *walk;
    perilune_graph_lead lead = {1, 5.0, 5.0};
    const char *options = "{\"order\": \"cheapest\"}";
    int status = perilune_graph_walk_open(session, roads, &start, 1, options, strlen(options), &walk);

    if (status != PERILUNE_OK)
        return status;
    CHECK(session, perilune_graph_walk_next(session, walk, &step));
    EXPECT(step.depth == 0 && step.edge == 0 && step.source.type == PERILUNE_ABSENT);
    EXPECT(perilune_graph_walk_lead(session, walk, &lead, 1) == PERILUNE_OK);
    CHECK(session, perilune_graph_walk_next(session, walk, &step));
    EXPECT(same_text(&step.vertex, PERILUNE_STRING, "Chicago") && step.cost == 5 && step.weight.as.d == 956);
    EXPECT(same_text(&step.type, PERILUNE_STRING, "ROAD") && same_text(&step.source, PERILUNE_STRING, "DC"));
    CHECK(NULL, perilune_graph_walk_step(walk, 0, &before));
    EXPECT(same_text(&before.vertex, PERILUNE_STRING, "DC"));
    EXPECT(perilune_graph_walk_step(walk, 2, &before) == PERILUNE_NOT_FOUND);
    CHECK(NULL, perilune_graph_walk_prune(walk));
    EXPECT(perilune_graph_walk_lead(session, walk, &lead, 1) == PERILUNE_NOT_FOUND);
    EXPECT(perilune_graph_walk_next(session, walk, &step) == PERILUNE_NOT_FOUND);
    perilune_graph_walk_close(walk);
    return PERILUNE_OK;
}

static void walks(perilune_db *db, perilune_session *session, perilune_graph *roads)
{
    perilune_value start = text("DC");
    perilune_session *snapshot;
    perilune_graph_walk *walk;
    perilune_graph_step step;
    const char *limited = "{\"max_edges\": 2}";
    int paths = 0;

    EXPECT(perilune_graph_walk_open(session, roads, &start, 1, NULL, 0, &walk) == PERILUNE_TRANSACTION_STATE);
    CHECK(session, perilune_transaction(session, NULL, body, roads));

    /* A snapshot stays as it is while others write. */
    CHECK(NULL, perilune_snapshot_open(db, &snapshot));
    CHECK(snapshot, perilune_graph_walk_open(snapshot, roads, &start, 1, NULL, 0, &walk));
    CHECK(session, perilune_graph_delete_vertex(session, roads, &start, 1));
    while (perilune_graph_walk_next(snapshot, walk, &step) == PERILUNE_OK)
        paths++;
    EXPECT(paths == 4 && step.depth == 2);
    EXPECT(perilune_graph_walk_next(session, walk, &step) == PERILUNE_TRANSACTION_STATE);
    perilune_graph_walk_close(walk);
    CHECK(snapshot,
          perilune_graph_walk_open(snapshot, roads, &start, 1, limited, strlen(limited), &walk));
    while ((paths = perilune_graph_walk_next(snapshot, walk, NULL)) == PERILUNE_OK)
        ;
    EXPECT(paths == PERILUNE_LIMIT_REACHED);
    perilune_graph_walk_close(walk);
    perilune_session_close(snapshot);

    /* A walk of one transaction does not go on in the next. */
    start = text("Chicago");
    CHECK(session, perilune_begin(session, NULL));
    CHECK(session, perilune_graph_walk_open(session, roads, &start, 1, NULL, 0, &walk));
    CHECK(session, perilune_commit(session));
    CHECK(session, perilune_begin(session, NULL));
    EXPECT(perilune_graph_walk_next(session, walk, &step) == PERILUNE_TRANSACTION_STATE);
    CHECK(session, perilune_rollback(session));
    perilune_graph_walk_close(walk);
}

int main(int count, char **arguments)
{
    perilune_db *db;
    perilune_session *session;
    perilune_graph *roads, *none;
    place node;

    if (count != 2) {
        fprintf(stderr, "use: graph DATABASE\n");
        return 2;
    }
    CHECK(NULL, perilune_open(arguments[1], NULL, &db));
    CHECK(NULL, perilune_session_open(db, &session));
    EXPECT(perilune_graph_open(session, at(&node, "^nowhere"), &none) == PERILUNE_GRAPH && none == NULL);
    roads = build(session);
    change(session, roads);
    ask(session, roads);
    walks(db, session, roads);
    perilune_graph_close(roads);
    CHECK(session, perilune_graph_open(session, at(&node, "^roads"), &roads));
    perilune_graph_close(roads);
    CHECK(session, perilune_kill(session, &node.node));
    perilune_session_close(session);
    perilune_close(db);
    puts("graph: good");
    return 0;
}
