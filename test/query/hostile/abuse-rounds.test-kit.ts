import { signalProcess } from "../../../src/core/signals.test-kit.ts";
import { ANONYMOUS } from "../../../src/auth/caller.ts";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sleep, systemClock } from "../../../src/core/clock.ts";
import { EngineError, messageOf, systemCodeOf } from "../../../src/core/errors.ts";
import { seededRandom, type Random } from "../../../src/core/random.ts";
import { withBackstop } from "./backstop.test-kit.ts";
import { createQueryHarness, type QueryHarness } from "../../../src/query/query.test-kit.ts";

/**
 * Clients that leave at any moment, queries that run out of time or memory, and processes that die: what must hold
 * after any number of them is that nothing is left: no file, no process, no memory, and the next query works.
 */
export type AbuseReport = {
  rounds: number;
  /** How the queries ended, by code. */
  endings: Record<string, number>;
  /** Resident memory of this process after a third of the rounds, and at the end, collected. */
  rssBytes: { early: number; late: number };
  /** What was left. */
  files: string[];
  processes: number;
  /** How many processes there should be. */
  pool: number;
};

const GROWS = "SELECT count(*) AS n FROM range(1_000_000_000) a(x), range(1_000_000_000) b(y) WHERE x + y < 0";
const SPILLS = "SELECT x FROM range(20_000_000) a(x) ORDER BY hash(x)";
const EXHAUSTS = "SELECT len(range(2_000_000_000)) AS n";
const STREAMS = "SELECT x, md5(x::VARCHAR) AS hash FROM range(200_000) a(x)";
const FAILS = "SELECT nope FROM logs";
const LISTS = "SELECT * FROM system.queries, system.extents";

type Act = (harness: QueryHarness, random: Random) => Promise<string>;

const ACTS: readonly Act[] = [
  leaves(GROWS),
  leaves(SPILLS),
  leaves(STREAMS),
  leaves(LISTS),
  leavesWhileReading,
  runsOut,
  (harness) => query(harness, EXHAUSTS),
  (harness) => query(harness, FAILS),
  dies,
];

const CHILDREN = 2;

/** A query service over one small table, with little memory. */
export async function abuseHarness(): Promise<QueryHarness> {
  const memoryBytes = 64 * 1024 * 1024;
  const harness = createQueryHarness({ pool: { children: CHILDREN, memoryBytes }, service: { memoryBytes } });
  const columns = [
    { name: "at", type: { kind: "timestamp" } },
    { name: "label", type: { kind: "string" } },
  ] as const;
  await harness.addTable("default", "logs", columns, [{ format: "tlm", columns, rows: [{ at: 1n, label: "x" }] }]);
  return harness;
}

export async function abuseRounds(
  harness: QueryHarness,
  options: { rounds: number; seed: number },
): Promise<AbuseReport> {
  const { rounds, seed } = options;
  const random = seededRandom(seed);
  const endings: Record<string, number> = {};
  let early = 0;
  for (let round = 0; round < rounds; round++) {
    const act = ACTS[Math.floor(random.next() * ACTS.length)] ?? runsOut;
    const ending = await withBackstop(harness, () => act(harness, random));
    endings[ending] = (endings[ending] ?? 0) + 1;
    if (round === Math.floor(rounds / 3)) early = await settledRss(harness);
  }
  const late = await settledRss(harness);
  const processes = childrenOf(process.pid).length;
  const files = await filesLeft(harness);
  return { rounds, endings, rssBytes: { early, late }, files, processes, pool: CHILDREN };
}

async function query(harness: QueryHarness, sql: string, signal = new AbortController().signal): Promise<string> {
  try {
    await harness.text(sql, { signal });
    return "answered";
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    if (signal.aborted) return "left";
    throw error;
  }
}

function leaves(sql: string): Act {
  return async (harness, random) => {
    const client = new AbortController();
    const running = query(harness, sql, client.signal);
    await sleep(systemClock, random.next() * 60);
    client.abort(new Error("gone"));
    return running;
  };
}

/** Reads a little of the answer, then gives it up, or just goes. */
async function leavesWhileReading({ service }: QueryHarness, random: Random): Promise<string> {
  const client = new AbortController();
  const request = { caller: ANONYMOUS, database: "default", text: STREAMS, requestId: "abuse", signal: client.signal };
  const body = (await service.run(request)).body[Symbol.asyncIterator]();
  if (random.next() < 0.7) await body.next();
  if (random.next() < 0.5) client.abort(new Error("gone"));
  else await body.return?.();
  return "left while reading";
}

async function runsOut(harness: QueryHarness, random: Random): Promise<string> {
  return runOn(harness, random.next() < 0.5 ? GROWS : SPILLS, 10 + random.next() * 60);
}

async function runOn({ service }: QueryHarness, text: string, wallMs: number): Promise<string> {
  const request = {
    caller: ANONYMOUS,
    database: "default",
    text,
    requestId: "abuse",
    signal: new AbortController().signal,
  };
  return service.run({ ...request, budget: { wallMs } }).then(
    () => "answered",
    (error: unknown) => (error instanceof EngineError ? error.code : `failed: ${messageOf(error)}`),
  );
}

/** The process is killed from outside; where the query had none yet, it ends by its budget. */
async function dies(harness: QueryHarness, random: Random): Promise<string> {
  const running = runOn(harness, GROWS, 500);
  await sleep(systemClock, 5 + random.next() * 40);
  const killed = new Set(harness.pool.pids());
  for (const pid of killed) killIfThere(pid);
  const ending = await running;
  // Until the pool has heard of it, it lends dead processes out.
  while (harness.pool.pids().some((pid) => killed.has(pid))) await sleep(systemClock, 5);
  return ending;
}

function killIfThere(pid: number): void {
  try {
    signalProcess(pid, "SIGKILL");
  } catch (error) {
    if (systemCodeOf(error) !== "ESRCH") throw error;
  }
}

/** Once every process of the pool is new or idle, and garbage is collected where the flags allow it. */
async function settledRss(harness: QueryHarness): Promise<number> {
  for (let i = 0; i < 3; i++) await harness.rows("SELECT count(*) AS n FROM logs");
  await sleep(systemClock, 500);
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage.rss();
}

/** The files of a process that ended are removed after it, on a busy machine some time after it: what stays is left over. */
async function filesLeft(harness: QueryHarness): Promise<string[]> {
  for (let waits = 0; waits < 200 && filesOf(harness).length > 0; waits++) await sleep(systemClock, 100);
  return filesOf(harness);
}

function filesOf({ folder }: QueryHarness): string[] {
  const temporary = join(folder, "tmp");
  return readdirSync(temporary, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(temporary.length + 1));
}

/** Processes whose parent is the given one, zombies included. Linux only; none elsewhere. */
function childrenOf(parent: number): number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent);
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    // It ended meanwhile.
    return undefined;
  }
}
