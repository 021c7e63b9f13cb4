import { randomUUID } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { quantile } from "../../src/capacity/quantile.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { createLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { removeSwept } from "../../src/sandbox/runtime/removal.test-kit.ts";
import { openRuntime } from "../../src/sandbox/runtime/open-runtime.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { LIMITS } from "./limits.ts";
import { RuncByHand } from "./runc-by-hand.ts";
import { requireSandboxes } from "./with-server.ts";

export const benchmark = defineBenchmark({
  name: "sandbox/pause",
  question: "What do pause and resume of a sandbox take together, against those of runc on a machine of the same kind?",
  notMeasured: "HTTP: this process uses the runtime itself. Nothing runs in the machines. As root, on Linux.",
  options: z.strictObject({
    times: z.coerce.number().int().positive().default(20).describe("in one round, one after the other"),
  }),
  measures: {
    p50: { unit: "ms", better: "less", doc: "pause and resume: median" },
    p95: { unit: "ms", better: "less", doc: "pause and resume: but for 5 %" },
  },
  rounds: 5,
  hasPeers: true,
  open: async ({ times }) => {
    requireSandboxes("sandbox/pause");
    const ends: (() => Promise<void>)[] = [];
    const close = async () => {
      for (const end of ends.toReversed()) await end();
    };
    try {
      const ours = await openOurs(ends);
      const byHand = await RuncByHand.open(LIMITS);
      ends.push(() => byHand.close());
      const machine = await byHand.create();
      ends.push(() => machine.remove());
      const sides = [
        { name: "engine", round: () => repeated(times, ours) },
        { name: "runc", round: () => repeated(times, () => machine.pauseAndResume()) },
      ];
      return { sides, close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

const LEASE_MS = 600_000;

/** Resolves to what pauses and resumes a machine of the runtime. */
async function openOurs(ends: (() => Promise<void>)[]): Promise<() => Promise<void>> {
  const home = await mkdtemp(join(tmpdir(), "engine-bench-machines-"));
  ends.push(() => removeSwept(home));
  const runtime = await openRuntime({
    home,
    clock: systemClock,
    ids: uuidV7Source(systemClock, systemRandom),
    log: createLog("error"),
    runtime: "bubblewrap",
    firstHostId: 0x7000_0000,
    idRanges: 256,
    graceMs: 1_000,
    warm: { machines: 0, diskMb: LIMITS.diskMb },
    cgroupRoot: `engine-bench-${process.pid}`,
  });
  ends.push(() => runtime.close());
  const id = randomUUID();
  ends.push(() => runtime.remove(id));
  const machine = await runtime.create({
    id,
    image: undefined,
    limits: LIMITS,
    network: { enabled: false },
    volumes: [],
    hostname: "bench",
    env: {},
    keepsDisk: false,
    leaseMs: LEASE_MS,
    deadlineMs: undefined,
  });
  return async () => {
    await machine.pause();
    await machine.resume();
  };
}

async function repeated(times: number, run: () => Promise<void>): Promise<Record<string, number>> {
  const taken = new Float64Array(times);
  for (let i = 0; i < times; i++) {
    const startedMs = performance.now();
    await run();
    taken[i] = performance.now() - startedMs;
  }
  const sorted = taken.toSorted();
  return { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95) };
}
