import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { sleep, systemClock } from "../../src/core/clock.ts";
import type { CostPart, Costs } from "../../src/capacity/costs/costs.ts";
import { bytesAlone, memoryOfTree } from "../start/memory.ts";
import { prepareLoad } from "../support/generator.ts";
import { planOf } from "../support/ingest-run.ts";
import { cpuSecondsOf } from "../support/process-stats.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { writeRows } from "./rows-file.ts";
import type { StepContext } from "./step.ts";

export type MemoryObservation = Costs["memory"];

const CONNECTIONS = 500;
/** A server that has just started is idle by then. */
const IDLE_AFTER_MS = 1_000;
const BODIES_IN_FLIGHT = 4;

/** Of one process that has just started; `idleBytes` has its part alone. */
export async function measureMemory(context: StepContext): Promise<MemoryObservation> {
  const home = join(context.folder, "memory");
  await mkdir(home, { recursive: true });
  const server = await startBenchServer({ home });
  try {
    await sleep(systemClock, IDLE_AFTER_MS);
    return {
      idleBytes: { server: idleBytesOf(server.pid) },
      idleCores: await idleCoresOf(new Map([["server", server.pid]]), context),
      perConnectionBytes: await perConnection(server),
      perInFlightByte: await perInFlightByte(server, context),
    };
  } finally {
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

/** Resident bytes of a process and of those that it started, with what they share once. */
export function idleBytesOf(pid: number): number {
  return bytesAlone(memoryOfTree(pid));
}

/** Busy cores of processes that have nothing to do. */
export async function idleCoresOf(
  pids: ReadonlyMap<CostPart, number>,
  { brief }: Pick<StepContext, "brief">,
): Promise<Partial<Record<CostPart, number>>> {
  const before = [...pids].map(([part, pid]) => [part, cpuSecondsOf(pid)] as const);
  const startedMs = systemClock.monotonicMs();
  await sleep(systemClock, brief ? 200 : 3_000);
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  return Object.fromEntries(
    before.map(([part, cpu]) => [part, Math.max(0, cpuSecondsOf(pids.get(part) ?? 0) - cpu) / seconds]),
  );
}

async function perConnection(server: BenchServer): Promise<number> {
  const { hostname, port } = new URL(server.url);
  const before = server.memory().residentBytes;
  const sockets: Socket[] = [];
  try {
    while (sockets.length < CONNECTIONS) {
      const socket = connect({ host: hostname, port: Number(port) });
      sockets.push(socket);
      await once(socket, "connect");
    }
    await sleep(systemClock, IDLE_AFTER_MS);
    return Math.max(0, server.memory().residentBytes - before) / CONNECTIONS;
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

/** Bodies of 16 MiB, as many at a time as there are clients. */
async function perInFlightByte(server: BenchServer, { folder, seed, brief }: StepContext): Promise<number> {
  const [bodyBytes, repeatForMs] = brief ? [MIB, 100] : [16 * MIB, 2_000];
  const data = await writeRows(folder, { name: "in-flight", shape: "logs", sizeBytes: 2 * bodyBytes, seed });
  const plan = planOf(server.url, {
    file: data.path,
    cut: { sizeBytes: bodyBytes },
    connections: BODIES_IN_FLIGHT,
    tables: ["in_flight"],
    keyPrefix: "in_flight",
  });
  const generator = await prepareLoad({ ...plan, repeatForMs });
  const before = server.memory().residentBytes;
  server.resetPeak();
  const { failed, firstFailure } = await generator.run();
  if (failed > 0) throw new Error(`requests failed: ${firstFailure ?? ""}`);
  await rm(data.path);
  return Math.max(0, server.memory().peakBytes - before) / (BODIES_IN_FLIGHT * bodyBytes);
}
