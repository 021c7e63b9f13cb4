import type { Costs } from "../../src/capacity/costs/costs.ts";
import { systemCodeOf } from "../../src/core/errors.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import type { SandboxClient } from "../sandbox/client.ts";
import { RESOURCE_LIMITS } from "../sandbox/limits.ts";
import type { BenchServer } from "../support/server.ts";
import { residentBytesOfSandboxes } from "../support/sandbox-processes.ts";
import type { StepContext } from "./step.ts";

export type SandboxesObservation = NonNullable<Costs["sandboxes"]>;

/** As a server has by default. */
const WARM_POOL = 2;
/** The machine that was taken is replaced by then. */
const SETTLED_MS = 750;

/** Why there are no sandboxes here, in a sentence; undefined where there are. */
export async function whyNoSandboxes(): Promise<string | undefined> {
  try {
    const { SANDBOX_NEEDS } = await import("../sandbox/with-server.ts");
    return lacking(...SANDBOX_NEEDS);
  } catch (error) {
    if (systemCodeOf(error) !== "ERR_MODULE_NOT_FOUND") throw error;
    return "what starts them is not part of a release: measure from the sources";
  }
}

export async function measureSandboxes(context: StepContext): Promise<SandboxesObservation> {
  const { withServer } = await import("../sandbox/with-server.ts");
  const [rounds, lines, idle] = context.brief ? [2, 1_000, 2] : [10, 100_000, 10];
  const used = await withServer({ warmPool: WARM_POOL }, async (server, client) => {
    // The first of a server prepares the image, and fills the pool.
    await client.remove(await client.create({ resource_limits: RESOURCE_LIMITS }));
    await sleep(systemClock, SETTLED_MS);
    const started = await startsOf(server, client, rounds, context.signal);
    context.signal.throwIfAborted();
    return { ...started, eventsPerSecond: await eventsOf(client, lines) };
  });
  context.signal.throwIfAborted();
  // Prepared machines would be there before and after.
  const idleBytes = await withServer({ warmPool: 0 }, (server, client) => idleBytesOf(server, client, idle));
  return { ...used, idleBytes };
}

/** The CPU is that of starting one, putting it away, and preparing the next. */
async function startsOf(
  server: BenchServer,
  client: SandboxClient,
  rounds: number,
  signal: AbortSignal,
): Promise<Pick<SandboxesObservation, "startMs" | "startCpuSeconds">> {
  const ms = new Float64Array(rounds);
  const cpuBefore = server.cpuSeconds();
  for (let round = 0; round < rounds; round++) {
    signal.throwIfAborted();
    const startedMs = performance.now();
    const id = await client.begin({ resource_limits: RESOURCE_LIMITS });
    const text = await client.exec(id, ["/bin/echo", "hello"]);
    ms[round] = performance.now() - startedMs;
    if (text !== "hello\n") throw new Error(`the command wrote ${JSON.stringify(text)}`);
    await client.remove(id);
    await sleep(systemClock, SETTLED_MS);
  }
  const sorted = ms.toSorted();
  return {
    startMs: { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) },
    startCpuSeconds: (server.cpuSeconds() - cpuBefore) / rounds,
  };
}

/** Lines that a command writes as fast as it can. */
async function eventsOf(client: SandboxClient, lines: number): Promise<number> {
  const id = await client.create({ resource_limits: RESOURCE_LIMITS });
  const startedMs = performance.now();
  let events = 0;
  for await (const _event of client.events(id, ["/usr/bin/seq", String(lines)])) events++;
  const seconds = (performance.now() - startedMs) / 1_000;
  await client.remove(id);
  return events / seconds;
}

/** Of one that nobody uses: its own processes, and what the server has of it. */
async function idleBytesOf(server: BenchServer, client: SandboxClient, count: number): Promise<number> {
  // What only the first one needs is not of each.
  const first = await client.create({ resource_limits: RESOURCE_LIMITS });
  const residentBytes = () => server.memory().residentBytes + residentBytesOfSandboxes();
  const before = residentBytes();
  const ids: string[] = [];
  while (ids.length < count) ids.push(await client.create({ resource_limits: RESOURCE_LIMITS }));
  const bytes = Math.max(0, residentBytes() - before) / count;
  for (const id of [first, ...ids]) await client.remove(id);
  return bytes;
}
