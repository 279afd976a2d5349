#include "store/schema.h"

#include "store/sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One base-90 digit of a packed number: digit j of number p.k in column c, which is w digits wide (store/pack.h). */
#define DIGIT(c, w, j, weight)                                                                                         \
    "CASE WHEN " w ">" #j " THEN " #weight "*(unicode(substr(" c ",p.k*" w "+" #j "+1,1))-35) ELSE 0 END"
#define NUMBER(c, w)                                                                                                   \
    DIGIT(c, w, 0, 1)                                                                                                  \
    "+" DIGIT(c, w, 1, 90) "+" DIGIT(c, w, 2, 8100) "+" DIGIT(c, w, 3, 729000) "+" DIGIT(c, w, 4, 65610000) "+" DIGIT( \
        c, w, 5, 5904900000)

#define DEVICE(more)                                                                                                   \
    "CREATE TABLE device ( -- GPUs; NULL: the driver would not say\n"                                                  \
    "  device_index INTEGER PRIMARY KEY,\n"                                                                            \
    "  uuid TEXT, name TEXT, pci_bus_id TEXT, driver TEXT, architecture TEXT,\n"                                       \
    "  cuda_major INTEGER, cuda_minor INTEGER,\n"                                                                      \
    "  memory_kib INTEGER, power_limit_mw INTEGER, power_limit_default_mw INTEGER, pcie_kib_per_s INTEGER,\n"          \
    "  mig_enabled INTEGER, simulated INTEGER, visible INTEGER,\n"                                                     \
    "  has_energy_counter INTEGER, has_power_history INTEGER, has_gpm INTEGER" more "\n"                               \
    ")"

static const struct hec_schema_object objects[] = {
    {"table", "meta",
     "CREATE TABLE meta (\n"
     "  key TEXT PRIMARY KEY,\n"
     "  value TEXT NOT NULL\n"
     ") WITHOUT ROWID"},
    {"table", "device", DEVICE(",\n  vendor TEXT"), .from = 2},
    {"table", "device", DEVICE(""), .to = 1},
    {"table", "process",
     "CREATE TABLE process ( -- members of the observed tree\n"
     "  pid INTEGER NOT NULL, start_ns INTEGER NOT NULL,\n"
     "  end_ns INTEGER, -- NULL: alive when last seen\n"
     "  parent INTEGER, name TEXT,\n"
     "  cpu_ms INTEGER, rss_max_kib INTEGER, read_kib INTEGER, written_kib INTEGER,\n"
     "  PRIMARY KEY (pid, start_ns)\n"
     ") WITHOUT ROWID"},
    {"table", "gpu_process",
     "CREATE TABLE gpu_process ( -- processes with a context on a GPU, in the observed tree or not\n"
     "  device_index INTEGER NOT NULL, pid INTEGER NOT NULL,\n"
     "  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,\n"
     "  memory_max_kib INTEGER, sm_util_permille INTEGER, -- NULL: the driver would not say\n"
     "  visible INTEGER, -- 1: the pid exists where the run was observed\n"
     "  PRIMARY KEY (device_index, pid)\n"
     ") WITHOUT ROWID"},
    {"table", "event",
     "CREATE TABLE event (\n"
     "  id INTEGER PRIMARY KEY,\n"
     "  t_ns INTEGER NOT NULL, kind TEXT NOT NULL,\n"
     "  device_index INTEGER, -- NULL: not about one GPU\n"
     "  text TEXT NOT NULL\n"
     ")"},
    {"table", "unit",
     "CREATE TABLE unit ( -- units of work done\n"
     "  name TEXT PRIMARY KEY,\n"
     "  count REAL NOT NULL\n"
     ") WITHOUT ROWID"},
    {"table", "trace_name", "CREATE TABLE trace_name (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"},
    {"table", "track",
     "CREATE TABLE track ( -- where activities happen\n"
     "  id INTEGER PRIMARY KEY,\n"
     "  kind TEXT NOT NULL, -- process, thread, stream\n"
     "  pid INTEGER NOT NULL, rank INTEGER, device_index INTEGER, -- NULL: none\n"
     "  context INTEGER NOT NULL, stream INTEGER NOT NULL, -- stream: of a thread its id\n"
     "  name TEXT\n"
     ")"},
    {"table", "kernel",
     "CREATE TABLE kernel ( -- kernels by launch configuration; NULL: unknown\n"
     "  id INTEGER PRIMARY KEY,\n"
     "  name INTEGER NOT NULL, -- trace_name.id\n"
     "  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER,\n"
     "  registers INTEGER, static_shared_bytes INTEGER, dynamic_shared_bytes INTEGER\n"
     ")"},
    {"table", "frame",
     "CREATE TABLE frame ( -- the tree of call stacks\n"
     "  id INTEGER PRIMARY KEY,\n"
     "  parent INTEGER NOT NULL, -- frame.id, 0: outermost\n"
     "  file INTEGER NOT NULL, function INTEGER NOT NULL, -- trace_name.id\n"
     "  line INTEGER NOT NULL\n"
     ")"},
    {"table", "tracer",
     "CREATE TABLE tracer ( -- how each process was traced\n"
     "  pid INTEGER PRIMARY KEY,\n"
     "  mode TEXT NOT NULL, -- off, auto, full, graph\n"
     "  cupti_version INTEGER, driver_version INTEGER, library TEXT,\n"
     "  why TEXT, -- why there is no trace, or only a partial one\n"
     "  holder TEXT, -- another user of CUPTI that HEC stood down for\n"
     "  first_ns INTEGER, last_ns INTEGER, traced_ns INTEGER NOT NULL, holder_ns INTEGER NOT NULL,\n"
     "  windows INTEGER NOT NULL, records INTEGER NOT NULL,\n"
     "  dropped INTEGER NOT NULL, lost INTEGER NOT NULL, bad INTEGER NOT NULL,\n"
     "  self_ns INTEGER NOT NULL, estimate_ppm INTEGER, budget_ppm INTEGER\n"
     ")"},
    {"table", "activity_block",
     "CREATE TABLE activity_block ( -- up to 4096 activities of one kind on one track, packed\n"
     "  id INTEGER PRIMARY KEY, -- negative: an open block, rewritten about once a second\n"
     "  track INTEGER NOT NULL, -- track.id\n"
     "  kind TEXT NOT NULL, -- kernel, copy, memset, graph, sync, api, range, phase, step, value, stack, window, operator\n"
     "  t0_ns INTEGER NOT NULL, t1_ns INTEGER NOT NULL, -- first start, last end\n"
     "  n INTEGER NOT NULL,\n"
     "  total_ns INTEGER NOT NULL, amount REAL NOT NULL, -- sums of durations and of amounts (bytes, units)\n"
     "  data BLOB NOT NULL\n"
     ")"},
    {"index", "activity_in_order", "CREATE INDEX activity_in_order ON activity_block (t0_ns, kind)"},
    {"table", "activity_total",
     "CREATE TABLE activity_total ( -- all activities of a kind with one name\n"
     "  kind TEXT NOT NULL, name INTEGER NOT NULL, -- of a kernel kernel.id, of a stack frame.id, else trace_name.id\n"
     "  count INTEGER NOT NULL, total_ns INTEGER NOT NULL,\n"
     "  PRIMARY KEY (kind, name)\n"
     ") WITHOUT ROWID"},
    {"table", "series",
     "CREATE TABLE series ( -- one metric of one subject\n"
     "  id INTEGER PRIMARY KEY,\n"
     "  metric TEXT NOT NULL, subject INTEGER NOT NULL, -- GPU index, RAPL domain, pid, or 0 for the run\n"
     "  unit TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL,\n"
     "  UNIQUE (metric, subject)\n"
     ")"},
    {"table", "block",
     "CREATE TABLE block ( -- up to 512 values of a series, packed; read them through the view sample\n"
     "  id INTEGER PRIMARY KEY, -- negative: the series' open block, rewritten about once a second\n"
     "  series INTEGER NOT NULL, -- series.id\n"
     "  t0_us INTEGER NOT NULL, t1_us INTEGER NOT NULL, -- times of the first and the last value\n"
     "  n INTEGER NOT NULL,\n"
     "  v_base INTEGER NOT NULL, v_width INTEGER NOT NULL, v TEXT NOT NULL, -- values\n"
     "  r_base INTEGER NOT NULL, r_width INTEGER NOT NULL, r TEXT NOT NULL -- times less evenly spaced ones, us\n"
     ")"},
    {"index", "block_in_order", "CREATE INDEX block_in_order ON block (series, t0_us)"},
    {"table", "position",
     "CREATE TABLE position ( -- 0 to 511, for the view sample\n"
     "  k INTEGER PRIMARY KEY\n"
     ")"},
    {"view", "sample",
     "CREATE VIEW sample AS\n"
     "SELECT s.metric AS metric, s.subject AS subject,\n"
     "  1000*(b.t0_us + CASE WHEN b.n>1 THEN p.k*(b.t1_us-b.t0_us)/(b.n-1) ELSE 0 END + b.r_base\n"
     "    + " NUMBER(
         "b.r",
         "b.r_width") ") AS t_ns,\n"
                      "  CASE WHEN b.v_width>0 AND substr(b.v,p.k*b.v_width+1,1)='~' THEN NULL ELSE b.v_base\n"
                      "    + " NUMBER(
                          "b.v",
                          "b.v_width") " END AS value,\n"
                                       "  s.unit AS unit\n"
                                       "FROM series s CROSS JOIN block b ON b.series=s.id CROSS JOIN position p ON p.k<b.n"},
    {"view", "phase",
     "CREATE VIEW phase AS\n"
     "SELECT n.text AS name, t.count AS count, t.total_ns AS total_ns\n"
     "FROM activity_total t JOIN trace_name n ON n.id=t.name WHERE t.kind='phase' ORDER BY t.total_ns DESC"},
    {"view", "kernel_total",
     "CREATE VIEW kernel_total AS\n"
     "SELECT n.text AS name, sum(t.count) AS count, sum(t.total_ns) AS total_ns\n"
     "FROM activity_total t JOIN kernel k ON k.id=t.name JOIN trace_name n ON n.id=k.name\n"
     "WHERE t.kind='kernel' GROUP BY k.name ORDER BY total_ns DESC"},
    {NULL, NULL, NULL},
};

const struct hec_schema_object *hec_schema_objects(void) {
    return objects;
}

bool hec_schema_has(unsigned version, const struct hec_schema_object *object) {
    return version >= object->from && (object->to == 0 || version <= object->to);
}

static int fill(sqlite3 *db) {
    char setup[160];
    snprintf(setup, sizeof setup, "PRAGMA page_size=%d; PRAGMA application_id=%d; PRAGMA user_version=%d;",
             HEC_SCHEMA_PAGE_BYTES, HEC_SCHEMA_APPLICATION_ID, HEC_SCHEMA_VERSION);
    int rc = sqlite3_exec(db, setup, NULL, NULL, NULL);
    for (const struct hec_schema_object *o = objects; rc == SQLITE_OK && o->name; o++)
        if (hec_schema_has(HEC_SCHEMA_VERSION, o))
            rc = sqlite3_exec(db, o->sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db,
                          "WITH RECURSIVE c(k) AS (SELECT 0 UNION ALL SELECT k+1 FROM c WHERE k<511) "
                          "INSERT INTO position SELECT k FROM c",
                          NULL, NULL, NULL);
    return rc;
}

void hec_schema_mark(struct hec_image *image, bool write_ahead) {
    /* sqlite.org/fileformat2.html, "File format version numbers" */
    image->bytes[18] = image->bytes[19] = write_ahead ? 2 : 1;
}

int hec_schema_image(unsigned char **bytes, size_t *length, struct hec_why *why) {
    struct hec_image image = {NULL, 0};
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY, NULL);
    if (rc == SQLITE_OK)
        rc = fill(db);
    int err = rc == SQLITE_OK ? hec_sql_image(db, &image, why)
                              : hec_sql_fail(db, rc, why, "cannot make the tables of a run file");
    sqlite3_close(db);
    if (image.bytes)
        hec_schema_mark(&image, true);
    *bytes = image.bytes;
    *length = image.length;
    return err;
}
