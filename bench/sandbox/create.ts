import { z } from "zod";
import { quantile } from "../../src/capacity/quantile.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { LIMITS, RESOURCE_LIMITS } from "./limits.ts";
import { RuncByHand } from "./runc-by-hand.ts";
import { requireSandboxes, settled, startSandboxServer, type SandboxServer } from "./with-server.ts";

export const benchmark = defineBenchmark({
  name: "sandbox/create",
  question:
    "How long does it take from asking for a sandbox until a first command in it has ended, from a prepared machine and " +
    "cold, against runc run and runc exec by hand with the same namespaces, disk and limits?",
  notMeasured:
    "Several sandboxes at once: each is created on a quiet machine, and the server replaces a prepared machine between " +
    "measurements. The command's output is checked. As root, on Linux.",
  options: z.strictObject({
    times: z.coerce.number().int().positive().default(5).describe("in one round, one after the other"),
  }),
  measures: {
    p50: { unit: "ms", better: "less", doc: "until the first command has ended: median" },
    p95: { unit: "ms", better: "less", doc: "until the first command has ended: but for 5 %" },
  },
  rounds: 5,
  hasPeers: true,
  open: async ({ times }) => {
    requireSandboxes("sandbox/create");
    const ends: (() => Promise<void>)[] = [];
    const close = async () => {
      for (const end of ends.toReversed()) await end();
    };
    try {
      const prepared = await startUsed(2, ends);
      const cold = await startUsed(0, ends);
      const byHand = await RuncByHand.open(LIMITS);
      ends.push(() => byHand.close());
      const sides: Side[] = [
        engineSide("engine, prepared", prepared, times),
        engineSide("engine, cold", cold, times),
        { name: "runc by hand", round: () => repeated(times, () => makeByHand(byHand)) },
      ];
      return { sides, close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

const COMMAND = ["/bin/echo", "hello"];
const ECHOED = "hello\n";

/** The first sandbox of a server prepares the image, and fills the pool. */
async function startUsed(warmPool: number, ends: (() => Promise<void>)[]): Promise<SandboxServer> {
  const started = await startSandboxServer({ warmPool });
  ends.push(started.stop);
  const { client } = started;
  await client.remove(await client.create({ resource_limits: RESOURCE_LIMITS }));
  await settled();
  return started;
}

function engineSide(name: string, { server, client }: SandboxServer, times: number): Side {
  const make = async (): Promise<Made> => {
    const startedMs = performance.now();
    const id = await client.begin({ resource_limits: RESOURCE_LIMITS });
    check(await client.exec(id, COMMAND));
    return { ms: performance.now() - startedMs, remove: () => client.remove(id) };
  };
  return { name, round: () => repeated(times, make), processes: () => ({ server: server.pid }) };
}

async function makeByHand(byHand: RuncByHand): Promise<Made> {
  const startedMs = performance.now();
  const machine = await byHand.create();
  check(await machine.exec(COMMAND));
  return { ms: performance.now() - startedMs, remove: () => machine.remove() };
}

function check(text: string): void {
  if (text !== ECHOED) throw new Error(`the command wrote ${JSON.stringify(text)}`);
}

/** A sandbox that is there, and how long its first command took to end. */
type Made = { ms: number; remove: () => Promise<void> };

/** What is put away does not count. */
async function repeated(times: number, make: () => Promise<Made>): Promise<Record<string, number>> {
  const taken = new Float64Array(times);
  for (let i = 0; i < times; i++) {
    const { ms, remove } = await make();
    taken[i] = ms;
    await remove();
    await settled();
  }
  const sorted = taken.toSorted();
  return { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95) };
}
