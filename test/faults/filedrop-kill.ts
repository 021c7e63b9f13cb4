import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { seededRandom } from "../../src/core/random.ts";
import { delay, eventually, freePort } from "../../src/core/waiting.test-kit.ts";
import { query, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/**
 * Two nodes that look after dropped files and are killed (`kill -9`) at random, one after the other or both, while files
 * keep coming. What must hold in the end: every row of every good file is there once, no row of a bad one is, and every
 * good file is deleted.
 */
export type DropKillOptions = {
  seed: number;
  files: number;
  kills: number;
  /** Of both nodes: they share a catalog. */
  env: Record<string, string>;
  /** Makes a file appear as a whole; on a shared disk unless given. */
  put?: (key: string, content: string) => Promise<void>;
};

export type DropKillReport = { kills: number; rows: number; bad: number; problems: string[] };

const ROWS_PER_FILE = 3;
const BAD_EVERY = 50;
const SETTLE_MS = 300_000;

export async function killDroppers(options: DropKillOptions): Promise<DropKillReport> {
  const random = seededRandom(options.seed);
  const place = await temporaryHome();
  const data = join(place.home, "data");
  const put = options.put ?? ((key: string, content: string) => putOnDisk(data, key, content));
  const env = {
    ENGINE_LOCAL_DATA: data,
    ENGINE_FILEDROP_ENABLED: "1",
    ENGINE_FILEDROP_POLL_SECS: "1",
    ENGINE_FILEDROP_DELETE_AFTER_INGEST: "1",
    ...options.env,
  };
  const ports = [await freePort(), await freePort()];
  const start = (i: number) => startEngine({ home: join(place.home, `node-${i}`), env, port: ports[i] ?? 0 });
  const nodes = new Map<number, Engine>([
    [0, await start(0)],
    [1, await start(1)],
  ]);
  try {
    const dropping = dropAll(options.files, put, () => delay(random.next() * 30));
    for (let kill = 0; kill < options.kills; kill++) {
      await delay(500 + random.next() * 6_000);
      const struck = random.next() < 0.3 ? [0, 1] : [Math.floor(random.next() * 2)];
      await Promise.all(struck.map(async (i) => nodes.get(i)?.stop("SIGKILL")));
      for (const i of struck) nodes.set(i, await start(i));
    }
    await dropping;
    return { kills: options.kills, ...(await check(nodes.get(0)?.url ?? "", options)) };
  } finally {
    await Promise.all([...nodes.values()].map((node) => node.stop("SIGKILL")));
    await place.remove();
  }
}

async function putOnDisk(data: string, key: string, content: string): Promise<void> {
  const path = join(data, key);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.tmp`, content);
  renameSync(`${path}.tmp`, path);
}

const isBad = (n: number): boolean => n % BAD_EVERY === 0;

async function dropAll(
  files: number,
  put: (key: string, content: string) => Promise<void>,
  rest: () => Promise<void>,
): Promise<void> {
  for (let n = 0; n < files; n++) {
    const rows = Array.from({ length: ROWS_PER_FILE }, (_, i) => `{"body":"${n}-${i}","file":"f${n}"}\n`);
    await put(`ingest/shop/t${n % 3}/${String(n).padStart(5, "0")}.ndjson`, `${rows.join("")}${isBad(n) ? "{\n" : ""}`);
    if (n % 10 === 0) await rest();
  }
}

async function check(url: string, { files }: DropKillOptions): Promise<Omit<DropKillReport, "kills">> {
  const good = Array.from({ length: files }, (_, n) => n).filter((n) => !isBad(n));
  const states = async () => {
    const sql = "SELECT state, count(*) AS n FROM system.filedrop GROUP BY state";
    const { rows } = await query(url, sql, { "X-Database": "shop" });
    return Object.fromEntries(rows.map(({ state, n }) => [String(state), Number(n)]));
  };
  const isSettled = async () => {
    const { deleted = 0, gone = 0, rejected = 0 } = await states();
    return deleted + gone === good.length && rejected === files - good.length;
  };
  const problems: string[] = [];
  await eventually(isSettled, SETTLE_MS).catch(async () => {
    problems.push(`files are in the states ${JSON.stringify(await states())}`);
  });
  const seen = new Map<string, number>();
  for (const table of ["t0", "t1", "t2"]) {
    const sql = `SELECT body, count(*) AS n FROM ${table} GROUP BY body`;
    for (const { body, n } of await rowsOf(url, sql, "shop")) seen.set(String(body), Number(n));
  }
  for (const n of good) {
    for (let i = 0; i < ROWS_PER_FILE; i++) {
      const body = `${n}-${i}`;
      if (seen.get(body) !== 1) problems.push(`row ${body} is there ${seen.get(body) ?? 0} times`);
      seen.delete(body);
    }
  }
  for (const body of seen.keys()) problems.push(`row ${body} is of a file that was to be rejected`);
  return { rows: good.length * ROWS_PER_FILE, bad: files - good.length, problems };
}
