import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findPostgresPrograms } from "../src/db/postgres/server-programs.ts";
import { startTestServer } from "../src/catalog/postgres/postgres.test-kit.ts";
import { endsWithThisProcess } from "../src/core/child-processes.test-kit.ts";
import { systemClock } from "../src/core/clock.ts";
import { delay, eventually, freePort } from "../src/core/waiting.test-kit.ts";
import { ingest, query } from "../test/support/client.ts";
import { cleanEnv } from "../test/support/engine.ts";
import { checkOut } from "../test/upgrade/check-out.ts";
import { EARLIER } from "../test/upgrade/earlier.ts";

/**
 * A rolling upgrade under load: `node scripts/rolling-upgrade.ts [commit] [quiet seconds]`.
 *
 * A cluster of that commit (the newest of `test/upgrade/earlier.ts` unless named) is replaced by this checkout, one server
 * after the other, in the order of `docs/operations.md`, while clients write and read through two edges. A client asks
 * the edges that `/health` says are well, as behind a load balancer, and sends nothing twice. Fails unless every request
 * succeeded, p99 stayed within three times that of the quiet time before, and every acknowledged row is there once.
 */
const [commit = EARLIER.at(-1)?.commit ?? "HEAD", quietSecs = "20"] = process.argv.slice(2);
const repository = fileURLToPath(new URL("..", import.meta.url));
const WRITERS = 4;
const READERS = 2;
const READY_WITHIN_MS = 120_000;
const HEALTH_EVERY_MS = 250;
const P99_FACTOR = 3;

type Member = { name: string; url: string; env: Record<string, string>; process?: ChildProcess };
type Phase = { name: string; latenciesMs: number[]; failures: string[] };

const folder = mkdtempSync(join(tmpdir(), "engine-rolling-"));
const server = await startTestServer(findPostgresPrograms()?.folder ?? "", {});
let members: Member[] = [];
async function main(): Promise<number> {
  const earlier = checkOut(commit, join(folder, "earlier"));
  members = await membersOf(await server.createDatabase());
  const edges = members.filter(({ name }) => name.startsWith("edge"));
  for (const member of members) await start(member, earlier);
  const load = new Load(edges.map(({ url }) => url));
  await load.for("warm-up", 5);
  const quiet = await load.for("quiet", Number(quietSecs));
  const upgrade = load.begin("upgrade");
  for (const member of members) {
    await stop(member);
    await start(member, join(repository, "bin/engine.js"));
    console.log(`${member.name} replaced`);
    await delay(2_000);
  }
  const rows = await load.end();
  const [before, during] = [quiet, upgrade].map(tell);
  const [edge] = edges;
  const there = await query(edge?.url ?? "", "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM t");
  console.log(`acknowledged ${rows}, there ${there.text.trim()}`);
  const isWhole = there.text === `{"n":${rows},"ids":${rows}}\n`;
  const failures = quiet.failures.length + upgrade.failures.length;
  return isWhole && failures === 0 && (during ?? Infinity) <= P99_FACTOR * (before ?? 0) ? 0 : 1;
}

/** In the order in which they start, and are replaced. */
async function membersOf(catalog: string): Promise<Member[]> {
  const common = {
    ENGINE_CATALOG_URL: catalog,
    ENGINE_LOCAL_DATA: join(folder, "data"),
    ENGINE_SANDBOX_RUNTIME: "off",
    ENGINE_GRPC_ADDR: "off",
  };
  const make = async (name: string, more: Record<string, string> = {}): Promise<Member> => {
    const address = `127.0.0.1:${await freePort()}`;
    const home = join(folder, name);
    mkdirSync(home);
    const role = name.replace(/-\d$/, "");
    const env = { ...common, ENGINE_HOME: home, ENGINE_ROLES: role, ENGINE_HTTP_ADDR: address, ...more };
    return { name, url: `http://${address}`, env };
  };
  const inner: Member[] = [];
  for (const name of ["committer", "query-1", "query-2", "compaction", "ingest-1", "ingest-2"]) {
    inner.push(await make(name));
  }
  const peers = (role: string): string =>
    inner.flatMap(({ name, url }) => (name.startsWith(role) ? url : [])).join(",");
  const peersOf = { ENGINE_QUERY_PEERS: peers("query"), ENGINE_INGEST_PEERS: peers("ingest") };
  return [...inner, await make("edge-1", peersOf), await make("edge-2", peersOf)];
}

async function start(member: Member, entry: string): Promise<void> {
  const log = openSync(join(folder, `${member.name}.log`), "a");
  const env = { ...cleanEnv(), ...member.env };
  member.process = endsWithThisProcess(
    spawn(process.execPath, [entry, "server"], { env, stdio: ["ignore", log, log] }),
  );
  closeSync(log);
  await eventually(() => isWell(member.url), READY_WITHIN_MS);
}

async function stop({ process: child }: Member): Promise<void> {
  if (child === undefined) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  await gone;
}

async function isWell(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    // Nobody listens: it is not well.
    return false;
  }
}

class Load {
  #phase: Phase = { name: "before", latenciesMs: [], failures: [] };
  #well: readonly string[];
  #acknowledged = 0;
  #isRunning = true;
  readonly #working: Promise<unknown>;

  constructor(edges: readonly string[]) {
    this.#well = edges;
    const writers = Array.from({ length: WRITERS }, (_, i) => this.#write(`writer-${i}`));
    const readers = Array.from({ length: READERS }, () => this.#read());
    this.#working = Promise.all([...writers, ...readers, this.#watch(edges)]);
  }

  begin(name: string): Phase {
    this.#phase = { name, latenciesMs: [], failures: [] };
    return this.#phase;
  }

  async for(name: string, secs: number): Promise<Phase> {
    const phase = this.begin(name);
    await delay(secs * 1000);
    return phase;
  }

  /** Resolves to how many rows were acknowledged. */
  async end(): Promise<number> {
    this.#isRunning = false;
    await this.#working;
    return this.#acknowledged;
  }

  async #watch(edges: readonly string[]): Promise<void> {
    while (this.#isRunning) {
      const health = await Promise.all(edges.map(isWell));
      this.#well = edges.filter((_url, i) => health[i]);
      await delay(HEALTH_EVERY_MS);
    }
  }

  async #write(name: string): Promise<void> {
    for (let n = 0; this.#isRunning; n++) {
      const body = `${JSON.stringify({ id: `${name}-${n}` })}\n`;
      if (await this.#timed(n, (url) => ingest(url, "t", body))) this.#acknowledged++;
    }
  }

  async #read(): Promise<void> {
    for (let n = 0; this.#isRunning; n++) {
      // The table comes with the first row.
      if (this.#acknowledged > 0) await this.#timed(n, (url) => query(url, "SELECT count(*) AS n FROM t"));
      await delay(20);
    }
  }

  /** One request to an edge that is well; whether it succeeded. */
  async #timed(n: number, send: (url: string) => Promise<{ status: number; text: string }>): Promise<boolean> {
    const phase = this.#phase;
    const url = this.#well[n % Math.max(this.#well.length, 1)];
    const startedMs = systemClock.monotonicMs();
    const problem = url === undefined ? "no edge is well" : await problemOf(send(url));
    phase.latenciesMs.push(systemClock.monotonicMs() - startedMs);
    if (problem === undefined) return true;
    phase.failures.push(problem);
    await delay(100);
    return false;
  }
}

async function problemOf(answer: Promise<{ status: number; text: string }>): Promise<string | undefined> {
  try {
    const { status, text } = await answer;
    return status === 200 ? undefined : `${status} ${text}`;
  } catch (error) {
    return String(error);
  }
}

/** Prints the phase and gives its p99 in ms. */
function tell({ name, latenciesMs, failures }: Phase): number {
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? Infinity;
  const [p50, p99, most] = [at(0.5), at(0.99), at(1)].map((ms) => ms.toFixed(1));
  console.log(`${name}: ${sorted.length} requests, ${failures.length} failed; ms: p50 ${p50}, p99 ${p99}, max ${most}`);
  for (const failure of new Set(failures.slice(0, 20))) console.log(`  ${failure}`);
  return at(0.99);
}

try {
  process.exitCode = await main();
} finally {
  for (const { process: child } of members) child?.kill("SIGKILL");
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
