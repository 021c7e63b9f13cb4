import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { observeIngest } from "../../costs/ingest-load.ts";
import { singleTarget } from "../../costs/ingest.ts";
import { writeRows } from "../../costs/rows-file.ts";
import { MIB } from "../../support/report.ts";
import { startBenchServer } from "../../support/server.ts";
import { defineCurve } from "../curve.ts";

export const curve = defineCurve({
  name: "clients",
  question: "What does a request of ten rows cost, and how long does it take, when many clients send them?",
  x: { unit: "clients", sizes: [1, 4, 16, 64, 256, 1_024], few: [1, 8] },
  series: {
    cpu: { unit: "µs/request", doc: "CPU time of the server", promise: "flat" },
    latency: {
      unit: "ms",
      doc: "median, where each client sends its next request when it has its answer",
      promise: "n log n",
    },
  },
  open: async ({ folder, seed, brief, signal }) => {
    const home = join(folder, "home");
    await mkdir(home, { recursive: true });
    const data = await writeRows(folder, { name: "rows", shape: "logs", sizeBytes: brief ? MIB : 20 * MIB, seed });
    const server = await startBenchServer({ home, env: { ENGINE_QUERY_WORKERS: "1" } });
    const target = singleTarget(server);
    const at = async (size: number) => {
      const [cpu, latency]: [number[], number[]] = [[], []];
      for (let round = 0; round < (brief ? 1 : 5); round++) {
        signal.throwIfAborted();
        const observed = await observeIngest(target, {
          name: `clients_${size}_${round}`,
          data,
          cut: { rows: 10 },
          clients: size,
          tables: 1,
          durationMs: brief ? 200 : 2_000,
          warmUpMs: round === 0 && !brief ? 2_000 : 0,
        });
        cpu.push(((observed.cpuSeconds["server"] ?? 0) / observed.requests) * 1e6);
        latency.push(observed.latencyMs.p50);
      }
      return { cpu, latency };
    };
    return { at, close: () => server.stop() };
  },
});
