import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { systemCodeOf } from "../../src/core/errors.ts";
import { loadDuckDb, quoteText, runSql } from "../../src/io/duckdb/duckdb.ts";
import { describeStatement, type HostileStatement } from "../query/hostile/corpus/corpus.test-kit.ts";
import { CANARY, Evidence, filesUnder, FileWatch } from "../query/hostile/corpus/evidence.test-kit.ts";
import type { Target } from "../query/hostile/corpus/texts.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** A server with two databases, `mine` and `theirs`, and a caller who may read the first. */
export type HostileWorld = {
  target: Target;
  /** Sends the statement as the caller and looks at what comes back. */
  query: (sql: string) => Promise<Answer>;
  /** The same by way of an export. */
  export: (sql: string) => Promise<Answer>;
  /** What is wrong with the server and its files by now; they are made as they were. */
  damage(): Promise<string[]>;
  /** What the other database answers to those who may read it. */
  theirRows(): Promise<string>;
  log(): string;
  evidence: Evidence;
  stop(): Promise<void>;
};

export type Answer = { status: number; leaks: string[] };

const ADMIN = "admin-token-of-the-test";
const DATABASES = ["mine", "theirs"] as const;

export async function startHostileWorld(): Promise<HostileWorld> {
  const { home, remove } = await temporaryHome();
  const env = {
    ENGINE_AUTH_TOKENS: `${ADMIN}:admin`,
    ENGINE_SANDBOX_RUNTIME: "off",
    // Extents stay as they are written.
    ENGINE_COMPACTION_POLL_SECS: "0",
  };
  const first = await startEngine({ home, env: { ...env, ENGINE_WRITE_FORMAT: "parquet" } });
  await ingest(first);
  await first.stop();
  const engine = await startEngine({ home, env: { ...env, ENGINE_WRITE_FORMAT: "tlm" } });
  await ingest(engine);
  const caller = await limitedToken(engine);
  const target = targetIn(home);
  const theirs = filesUnder(target.folder);
  const evidence = new Evidence(theirs);
  const watch = new FileWatch(target.root, (file) => !file.includes("/_exports/"));
  const catalog = new Set(["catalog.db", "catalog.db-wal", "catalog.db-shm"].map((name) => join(home, name)));
  const callersFiles = () =>
    filesUnder(home).filter((file) => !catalog.has(file) && !file.startsWith(`${target.folder}/`));
  const said = new Set<string>();
  return {
    target,
    evidence,
    log: () => engine.log(),
    query: async (sql) => {
      const headers = { "X-Database": "mine", "Content-Type": "text/plain", Accept: "text/csv" };
      const { status, text } = await send(engine, caller, "POST", "/v1/query", sql, headers);
      return { status, leaks: evidence.in(text, sql) };
    },
    export: (sql) => exported(engine, caller, evidence, sql),
    async damage() {
      const changes = watch.changes();
      if (changes.length > 0) watch.restore();
      const holding = callersFiles()
        .filter((file) => evidence.in(readIfThere(file), "").includes("the canary"))
        .map((file) => `${file} has the canary`);
      const probes = await Promise.all(Array.from({ length: 6 }, () => probe(engine, caller)));
      const poisoned = probes.filter((text) => text !== PROBED).map((text) => `a later query answers ${text}`);
      // What cannot be made good is said once.
      const lasting = [...holding, ...poisoned].filter((line) => !said.has(line));
      for (const line of lasting) said.add(line);
      return [...changes, ...new Set(lasting)];
    },
    theirRows: async () => {
      const headers = { "X-Database": "theirs", "Content-Type": "text/plain" };
      return (await send(engine, ADMIN, "POST", "/v1/query", "FROM logs ORDER BY ALL", headers)).text;
    },
    async stop() {
      await engine.stop();
      await remove();
    },
  };
}

async function send(
  { url }: Engine,
  token: string,
  method: string,
  path: string,
  body?: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string; bytes: Buffer }> {
  const answer = await fetch(url + path, {
    method,
    headers: { ...headers, Authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { body }),
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, text: bytes.toString("utf8"), bytes };
}

async function ingest(engine: Engine): Promise<void> {
  for (const database of DATABASES) {
    const label = database === "theirs" ? CANARY : "plain";
    const rows = Array.from({ length: 4 }, (_, i) => ({ at: `2026-01-01T00:00:0${i}Z`, label, body: "text" }));
    const body = rows.map((row) => JSON.stringify(row)).join("\n");
    for (const table of database === "theirs" ? ["logs"] : ["logs", "users"]) {
      const headers = { "X-Database": database, "X-Table": table, "X-Auto-Create": "true" };
      const more = table === "users" ? body.replaceAll('"body"', '"name"') : body;
      const { status, text } = await send(engine, ADMIN, "POST", "/v1/ingest", more, {
        ...headers,
        "Content-Type": "application/x-ndjson",
      });
      if (status !== 200) throw new Error(`ingest answers ${status}: ${text}`);
    }
  }
}

async function limitedToken(engine: Engine): Promise<string> {
  const body = JSON.stringify({ name: "a reader", role: "read", databases: ["mine"] });
  const headers = { "Content-Type": "application/json" };
  const { status, text } = await send(engine, ADMIN, "POST", "/v1/auth/tokens", body, headers);
  if (status !== 200) throw new Error(`no token was made: ${text}`);
  return (JSON.parse(text) as { token: string }).token;
}

function targetIn(home: string): Target {
  const root = join(home, "data", "engine");
  const folder = join(root, "theirs");
  const fileOf = (format: string): string => {
    const file = filesUnder(folder).find((one) => one.endsWith(`.${format}`));
    if (file === undefined) throw new Error(`there is no extent in ${format}`);
    return file;
  };
  return {
    root,
    folder,
    ownFolder: join(root, "mine"),
    tlm: fileOf("tlm"),
    parquet: fileOf("parquet"),
    catalog: join(home, "catalog.db"),
  };
}

const PROBE = "SELECT lower('A') AS a, upper('b') AS b, typeof(now()) AS c, count(*) AS n FROM logs";
const PROBED = '{"a":"a","b":"B","c":"TIMESTAMP_NS","n":8}\n';

async function probe(engine: Engine, caller: string): Promise<string> {
  const headers = { "X-Database": "mine", "Content-Type": "text/plain" };
  const { text } = await send(engine, caller, "POST", "/v1/query", PROBE, headers);
  // The same failure is the same answer.
  return text.replace(/,"request_id":"[^"]*"/, "");
}

async function exported(engine: Engine, caller: string, evidence: Evidence, sql: string): Promise<Answer> {
  const body = JSON.stringify({ query: sql, database: "mine" });
  const made = await send(engine, caller, "POST", "/v1/exports", body, { "Content-Type": "application/json" });
  if (made.status >= 300) return { status: made.status, leaks: evidence.in(made.text, sql) };
  const path = `/v1/exports/${(JSON.parse(made.text) as { id: string }).id}`;
  for (;;) {
    const { text } = await send(engine, caller, "GET", path);
    const { status } = JSON.parse(text) as { status: string };
    if (status === "done") {
      const { bytes } = await send(engine, caller, "GET", `${path}/download`);
      return { status: 200, leaks: evidence.in(await textOfParquet(bytes), sql) };
    }
    if (status !== "queued" && status !== "leased") return { status: 400, leaks: evidence.in(text, sql) };
    await delay(50);
  }
}

/** All that is in it, names included. */
async function textOfParquet(bytes: Uint8Array): Promise<string> {
  const { home, remove } = await temporaryHome();
  try {
    const file = join(home, "result.parquet");
    writeFileSync(file, bytes);
    const duckdb = await loadDuckDb();
    const connection = await duckdb.connect(await duckdb.open(":memory:"));
    const source = `read_parquet(${quoteText(file)})`;
    const names = await runSql(duckdb, connection, `SELECT column_name FROM (DESCRIBE FROM ${source})`);
    const rows = await runSql(duckdb, connection, `SELECT t::VARCHAR FROM ${source} AS t`);
    duckdb.disconnect_sync(connection);
    return `${names.join(",")}\n${rows.join("\n")}`;
  } finally {
    await remove();
  }
}

/** Files of queries come and go. */
function readIfThere(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return "";
    throw error;
  }
}

export type CorpusReport = { sent: number; statuses: Record<string, number>; findings: string[] };

export type CorpusRun = {
  statements: readonly HostileStatement[];
  /** How each is sent. */
  send: (sql: string) => Promise<Answer>;
  onBatch?: (report: CorpusReport) => void;
};

const BATCH = 64;
const IN_FLIGHT = 4;

/** Sends all statements, several at a time, and says which of them found something. */
export async function runCorpus(world: HostileWorld, run: CorpusRun): Promise<CorpusReport> {
  const report: CorpusReport = { sent: 0, statuses: {}, findings: [] };
  const note = (statement: HostileStatement, what: readonly string[]): void => {
    if (what.length === 0) return;
    const sql = statement.sql.replaceAll(world.target.root, "…");
    report.findings.push(`${describeStatement(statement)}: ${what.join("; ")}\n  ${sql}`);
  };
  for (let start = 0; start < run.statements.length; start += BATCH) {
    const batch = run.statements.slice(start, start + BATCH);
    const left = [...batch];
    const sendSome = async (): Promise<void> => {
      for (let statement = left.shift(); statement !== undefined; statement = left.shift()) {
        const { status, leaks } = await run.send(statement.sql);
        report.sent++;
        report.statuses[status] = (report.statuses[status] ?? 0) + 1;
        note(statement, leaks);
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, sendSome));
    const damage = await world.damage();
    if (damage.length > 0) {
      const numbers = `#${batch[0]?.index} to #${batch.at(-1)?.index}`;
      report.findings.push(`one of ${numbers}: ${damage.join("; ")}`);
      // One by one, to see which of them it was.
      for (const statement of batch) {
        await run.send(statement.sql);
        note(statement, await world.damage());
      }
    }
    run.onBatch?.(report);
  }
  return report;
}
