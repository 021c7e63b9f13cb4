import { seededRandom } from "../../src/core/random.ts";
import { ingest, ndjson, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

/**
 * Servers that are killed (`kill -9`) somewhere in a deletion of rows: the next one finds all matching rows or none, and
 * every other row; and the deletion comes to its end, once.
 */
export type KilledDeletions = {
  /** How often the rows were all there after a kill, and how often they were gone. */
  before: number;
  after: number;
  problems: string[];
};

const ENV = { ENGINE_FABRIC_SWEEP_SECS: "1", ENGINE_FABRIC_LEASE_SECS: "10" };
const EXTENTS = 10;
const ROWS = 400;
const HALF = (EXTENTS * ROWS) / 2;

export async function killDeletions(options: {
  seed: number;
  /** Where in the deletion each kill comes, from its request on. */
  delaysMs: readonly number[];
  env?: Record<string, string>;
}): Promise<KilledDeletions> {
  const { home, remove } = await temporaryHome();
  const start = (): Promise<Engine> => startEngine({ home, env: { ...ENV, ...options.env } });
  const random = seededRandom(options.seed);
  const found: KilledDeletions = { before: 0, after: 0, problems: [] };
  let engine = await start();
  try {
    for (const [round, delayMs] of options.delaysMs.entries()) {
      const table = `t${round}`;
      for (let i = 0; i < EXTENTS; i++) {
        const rows = Array.from({ length: ROWS }, (_, n) => ({
          who: n % 2 === 0 ? "gone" : "kept",
          body: `${i} ${n}`,
        }));
        const { status } = await ingest(engine.url, table, ndjson(rows));
        if (status !== 200) throw new Error(`ingest answered ${status}`);
      }
      const id = await begin(engine, table);
      await new Promise((resolve) => void setTimeout(resolve, delayMs * (0.5 + random.next())));
      await engine.stop("SIGKILL");
      engine = await start();
      const [gone, kept] = [await count(engine, table, "gone"), await count(engine, table, "kept")];
      if (gone === HALF) found.before++;
      else if (gone === 0) found.after++;
      else found.problems.push(`${table}: ${gone} of ${HALF} matching rows are left`);
      if (kept !== HALF) found.problems.push(`${table}: ${kept} of ${HALF} other rows are left`);
      found.problems.push(...(await end(engine, table, id)));
    }
  } finally {
    await engine.stop();
    await remove();
  }
  return found;
}

async function begin(engine: Engine, table: string): Promise<string> {
  const answer = await fetch(`${engine.url}/v1/catalog/tables/${table}/delete`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ where: "who = 'gone'" }),
  });
  if (answer.status !== 202) throw new Error(`the deletion was answered ${answer.status}: ${await answer.text()}`);
  return ((await answer.json()) as { id: string }).id;
}

async function count(engine: Engine, table: string, who: string): Promise<number> {
  const [row] = await rowsOf(
    engine.url,
    `SELECT count(*) AS n, count(DISTINCT body) AS d FROM ${table} WHERE who = '${who}'`,
  );
  if (row?.["n"] !== row?.["d"]) throw new Error(`rows are doubled: ${JSON.stringify(row)}`);
  return Number(row?.["n"]);
}

/** What is wrong when the deletion has come to its end. */
async function end(engine: Engine, table: string, id: string): Promise<string[]> {
  let seen: Record<string, unknown> = {};
  await eventually(async () => {
    const answer = await fetch(`${engine.url}/v1/catalog/deletions/${id}`);
    seen = (await answer.json()) as Record<string, unknown>;
    return seen["status"] === "done" || seen["status"] === "failed";
  });
  const problems: string[] = [];
  if (seen["status"] !== "done" || seen["rows"] !== HALF)
    problems.push(`${table}: the report is ${JSON.stringify(seen)}`);
  const [gone, kept] = [await count(engine, table, "gone"), await count(engine, table, "kept")];
  if (gone !== 0 || kept !== HALF)
    problems.push(`${table}: in the end ${gone} matching and ${kept} other rows are left`);
  return problems;
}
