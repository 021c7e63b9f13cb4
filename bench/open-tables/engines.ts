import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { installedBy } from "../../src/core/gates.test-kit.ts";
import { DUCKDB, SPARK, TRINO, type Dialect } from "../../test/open-tables/data.test-kit.ts";
import { documented, startSpark, startTrino } from "../../test/open-tables/engines.test-kit.ts";
import { startReaders, type Said } from "../../test/open-tables/readers.test-kit.ts";
import { timesOf } from "../query/pass.ts";
import { defineBenchmark, type Measure, type Side } from "../suite/benchmark.ts";
import { fillParquetTables, timeOf } from "../support/parquet-tables.ts";
import { startBenchServer } from "../support/server.ts";

const count = z.coerce.number().int().positive();

/** By measure. */
const QUESTIONS = {
  filtered: () => "SELECT count(*) AS a FROM t WHERE took > 500 AND level = 'ERROR'",
  grouped: () => "SELECT service AS a, count(*) AS b, max(took) AS c FROM t GROUP BY service ORDER BY service",
  window: ({ column, time }, rows) =>
    `SELECT count(*) AS a, sum(took) AS b FROM t WHERE ${column("at")} >= ${time(textOf(rows * 0.4))} ` +
    `AND ${column("at")} < ${time(textOf(rows * 0.41))}`,
  newest: ({ column, micros }) =>
    `SELECT ${micros(column("at"))} AS a, service AS b, took AS c FROM t ORDER BY ${column("at")} DESC LIMIT 100`,
  searched: () => "SELECT count(*) AS a FROM t WHERE body LIKE '%777%'",
} satisfies Record<string, (dialect: Dialect, rows: number) => string>;

const DOCS: Readonly<Record<keyof typeof QUESTIONS, string>> = {
  filtered: "rows that satisfy two conditions, counted",
  grouped: "all rows by a column of twenty values",
  window: "a hundredth of all time",
  newest: "the newest hundred rows",
  searched: "rows with a text somewhere, counted",
};

export const benchmark = defineBenchmark({
  name: "open-tables/engines",
  question:
    "How long do queries of Spark, Trino or DuckDB over the catalog of the engine take, against the same files registered " +
    "in a SQL catalog of PyIceberg's (which Spark reads as a catalog of folders, Trino by register_table, and DuckDB by " +
    "iceberg_scan of the metadata file)?",
  notMeasured:
    "Many at a time, and files in a bucket. The time is that of a client in Python until it has all rows. An engine is one " +
    "process with 1 GB, to which both catalogs are known.",
  options: z.strictObject({
    engine: z.enum(["spark", "trino", "duckdb"]).default("duckdb").describe("spark, trino, duckdb"),
    rows: count.default(2_000_000),
    files: count.default(8),
    times: count.default(3).describe("each query in one round, of which the median counts"),
    warmUp: count.default(10).describe("rounds in the one that warms up, for programs that get faster for long"),
  }),
  measures: Object.fromEntries(
    Object.entries(DOCS).map(([name, doc]): [string, Measure] => [name, { unit: "ms", better: "less", doc }]),
  ),
  rounds: 7,
  hasPeers: true,
  open: async ({ engine, rows, files, times, warmUp }, { folder }) => {
    const python = programOf("install-iceberg-readers", "python3-venv");
    const sqlalchemy = programOf("install-sqlalchemy", "python3-venv");
    const home = join(folder, "home");
    await mkdir(home, { recursive: true });
    await fillParquetTables(home, [{ name: TABLE }], { rows, files });
    const server = await startBenchServer({ home });
    const started: { close: () => Promise<void> }[] = [{ close: () => server.stop() }];
    const close = async () => {
      for (const one of started.toReversed()) await one.close();
    };
    try {
      const registered = await register(server.url, { python, sqlalchemy, folder: join(folder, "pyiceberg") });
      if (registered.files !== files) throw new Error(`the catalog lists ${registered.files} files, not ${files}`);
      const client = await STARTS[engine](server.url, registered, python);
      started.push(client);
      const sideOf = (name: string, ask: (sql: string) => Promise<Said>): Side => {
        const rowsOf = async (question: keyof typeof QUESTIONS) => {
          const said = await ask(QUESTIONS[question](client.dialect, rows));
          if (said.rows === undefined) throw new Error(`${name}: ${said.error}: ${said.message}`);
          return said.rows;
        };
        let rounds = 0;
        const questions = Object.keys(QUESTIONS) as (keyof typeof QUESTIONS)[];
        return {
          name,
          answers: async () => {
            const all: unknown[][][] = [];
            for (const question of questions) all.push(await rowsOf(question));
            return all;
          },
          round: async () => {
            const repeats = rounds++ === 0 ? warmUp : 1;
            return await timesOf(
              questions.map((question) => ({ name: question })),
              times * repeats,
              async ({ name: question }) => {
                const startedMs = systemClock.monotonicMs();
                await rowsOf(question);
                return systemClock.monotonicMs() - startedMs;
              },
            );
          },
          processes: () => ({ server: server.pid }),
        };
      };
      return { sides: [sideOf("engine's catalog", client.ours), sideOf("PyIceberg's catalog", client.theirs)], close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

const DATABASE = "bench";
const TABLE = "events";
const FULL_NAME = `${DATABASE}.${TABLE}`;
/** Nobody asks for one. */
const TOKEN = "any";
const REGISTER = fileURLToPath(new URL("register.py", import.meta.url));

/** The time of a row as `2026-01-01 02:00:00`. */
function textOf(row: number): string {
  return new Date(Number(timeOf(Math.floor(row)) / 1_000_000n)).toISOString().slice(0, 19).replace("T", " ");
}

/** What a script of `.ci` has installed; throws a sentence that says what it needs. */
function programOf(script: Parameters<typeof installedBy>[0], ...needs: Parameters<typeof installedBy>[1][]): string {
  const found = installedBy(script, ...needs);
  if (found !== undefined) return found;
  throw new Error(`this needs ${needs.join(", ")}: install these, and run .ci/${script} once`);
}

type Registered = { warehouse: string; location: string; metadata: string; files: number };

async function register(
  url: string,
  { python, sqlalchemy, folder }: { python: string; sqlalchemy: string; folder: string },
): Promise<Registered> {
  await mkdir(folder);
  const find = "import os, sqlalchemy; print(os.path.dirname(os.path.dirname(sqlalchemy.__file__)))";
  const { stdout: path } = await promisify(execFile)(sqlalchemy, ["-c", find]);
  const env = { ...process.env, PYTHONPATH: path.trim(), PYTHONDONTWRITEBYTECODE: "1" };
  const { stdout } = await promisify(execFile)(python, [REGISTER, url, FULL_NAME, folder], { env });
  return JSON.parse(stdout) as Registered;
}

/** An engine that knows both catalogs. */
type Started = {
  dialect: Dialect;
  ours: (sql: string) => Promise<Said>;
  theirs: (sql: string) => Promise<Said>;
  close: () => Promise<void>;
};
type Start = (url: string, registered: Registered, python: string) => Promise<Started>;

const STARTS: Readonly<Record<"spark" | "trino" | "duckdb", Start>> = {
  spark: async (url, { warehouse }) => {
    const own = "spark.sql.catalog.own";
    const client = startSpark(enginesFolder(), "1.11.0", {
      lake: { url, token: TOKEN },
      settings: {
        [own]: "org.apache.iceberg.spark.SparkCatalog",
        [`${own}.type`]: "hadoop",
        [`${own}.warehouse`]: `file://${warehouse}`,
        [`${own}.cache-enabled`]: "false",
      },
    });
    const asking = (catalog: string) => (sql: string) => client.ask({ catalog, table: FULL_NAME, sql });
    return { dialect: SPARK, ours: asking("lake"), theirs: asking("own"), close: async () => client.close() };
  },
  trino: async (url, { location, metadata, warehouse }) => {
    const [lake = ""] = documented("Trino", { url, token: TOKEN });
    const own = [
      "connector.name=iceberg",
      "iceberg.catalog.type=TESTING_FILE_METASTORE",
      `hive.metastore.catalog.dir=file://${join(dirname(warehouse), "metastore")}`,
      "iceberg.register-table-procedure.enabled=true",
      "fs.hadoop.enabled=true",
    ].join("\n");
    const trino = await startTrino(enginesFolder(), { lake, own });
    const { client } = trino;
    try {
      const named = `'${DATABASE}', '${TABLE}', '${location}', '${basename(metadata)}'`;
      for (const run of [`CREATE SCHEMA own.${DATABASE}`, `CALL own.system.register_table(${named})`]) {
        const { rows, error, message } = await client.ask({ run });
        if (rows === undefined) throw new Error(`Trino: ${error}: ${message}`);
      }
    } catch (error) {
      await trino.stop();
      throw error;
    }
    const asking = (catalog: string) => (sql: string) => client.ask({ catalog, table: FULL_NAME, sql });
    return { dialect: TRINO, ours: asking("lake"), theirs: asking("own"), close: () => trino.stop() };
  },
  duckdb: async (url, { metadata }, python) => {
    const client = startReaders(python, url, TOKEN);
    return {
      dialect: DUCKDB,
      ours: (sql) => client.ask({ client: "duckdb", table: FULL_NAME, sql }),
      theirs: (sql) => client.ask({ client: "duckdb", table: FULL_NAME, sql, metadata }),
      close: async () => client.close(),
    };
  },
};

function enginesFolder(): string {
  return programOf("install-iceberg-engines", "Java", "Maven", "python3-venv");
}
