import { randomUUID } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { createLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { removeSwept } from "../../src/sandbox/runtime/removal.test-kit.ts";
import { openRuntime } from "../../src/sandbox/runtime/open-runtime.ts";
import { median } from "../../src/capacity/quantile.ts";
import { printTable, shown } from "../support/report.ts";
import { RuncByHand, type ByHandOptions } from "./runc-by-hand.ts";

const LEASE_MS = 600_000;

/** Pause and resume at the runtime port, against those of runc on a machine of the same kind. */
export async function measureMachines(rounds: number, limits: ByHandOptions): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "engine-bench-machines-"));
  const runtime = await openRuntime({
    home,
    clock: systemClock,
    ids: uuidV7Source(systemClock, systemRandom),
    log: createLog("error"),
    runtime: "bubblewrap",
    firstHostId: 0x7000_0000,
    idRanges: 256,
    graceMs: 1_000,
    warm: { machines: 0, diskMb: limits.diskMb },
    cgroupRoot: `engine-bench-${process.pid}`,
  });
  const byHand = await RuncByHand.open(limits);
  const id = randomUUID();
  try {
    const hand = await byHand.create();
    const ours = await runtime.create({
      id,
      image: undefined,
      limits,
      network: { enabled: false },
      volumes: [],
      hostname: "bench",
      env: {},
      keepsDisk: false,
      leaseMs: LEASE_MS,
      deadlineMs: undefined,
    });
    const took = { runc: [] as number[], ours: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      took.runc.push(await msOf(() => hand.pauseAndResume()));
      took.ours.push(
        await msOf(async () => {
          await ours.pause();
          await ours.resume();
        }),
      );
    }
    await hand.remove();
    const ratio = median(took.ours.map((ms, i) => ms / (took.runc[i] ?? Number.NaN)));
    console.log(`\n${rounds} times: pause and resume`);
    printTable(
      ["", "p50 ms", "× runc"],
      [
        ["runc", shown(median(took.runc)), "1"],
        ["engine", shown(median(took.ours)), shown(ratio)],
      ],
    );
  } finally {
    await runtime.remove(id);
    await runtime.close();
    await byHand.close();
    await removeSwept(home);
  }
}

async function msOf(run: () => Promise<void>): Promise<number> {
  const beganAt = performance.now();
  await run();
  return performance.now() - beganAt;
}
