import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { MIB } from "../support/report.ts";
import type { BenchServer } from "../support/server.ts";
import type { SandboxClient } from "./client.ts";
import { RESOURCE_LIMITS } from "./limits.ts";
import { requireSandboxes, startSandboxServer } from "./with-server.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "sandbox/traffic",
  question:
    "How fast are the events of a command in a sandbox, and files to it and from it; and what memory does that take?",
  notMeasured: "Several clients at once. As root, on Linux.",
  options: z.strictObject({
    lines: count.default(200_000).describe("that the command writes in one round"),
    fileMib: count.default(1_024).describe("of the file"),
  }),
  measures: {
    events: { unit: "events/s", better: "more", doc: "of the command, until the last" },
    output: { unit: "MiB/s", better: "more", doc: "text that the command writes" },
    upload: { unit: "MiB/s", better: "more", doc: "a file to the sandbox" },
    uploadAbove: { unit: "MiB", better: "less", doc: "memory of the server meanwhile, above that before" },
    download: { unit: "MiB/s", better: "more", doc: "the file from the sandbox" },
    downloadAbove: { unit: "MiB", better: "less", doc: "memory of the server meanwhile, above that before" },
  },
  rounds: 3,
  open: async ({ lines, fileMib }) => {
    requireSandboxes("sandbox/traffic");
    const { server, client, stop } = await startSandboxServer({ warmPool: 0 });
    let id: string;
    try {
      const limits = { ...RESOURCE_LIMITS, disk_mb: fileMib + 1_024, memory_mb: 2_048 };
      id = await client.create({ resource_limits: limits });
    } catch (error) {
      await stop();
      throw error;
    }
    const round = async () => {
      const upload = await transferred(server, fileMib, () => client.put(id, FILE, zeroes(fileMib)));
      const download = await transferred(server, fileMib, async () => {
        const bytes = await client.get(id, FILE);
        if (bytes !== fileMib * MIB) throw new Error(`${bytes} bytes came back`);
      });
      return {
        ...(await eventsOf(client, id, lines)),
        upload: upload.mibPerSecond,
        uploadAbove: upload.aboveMib,
        download: download.mibPerSecond,
        downloadAbove: download.aboveMib,
      };
    };
    return {
      sides: [{ name: "engine", round, processes: () => ({ server: server.pid }) }],
      close: async () => {
        await client.remove(id).finally(stop);
      },
    };
  },
});

const FILE = "/home/agent/big";

async function eventsOf(client: SandboxClient, id: string, lines: number): Promise<Record<string, number>> {
  const startedMs = performance.now();
  let [events, characters] = [0, 0];
  for await (const { event_type: type, data } of client.events(id, ["/usr/bin/seq", String(lines)])) {
    events += 1;
    if (type === "stdout") characters += String(data["text"]).length;
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  const written = Array.from({ length: lines }, (_, i) => String(i + 1).length + 1).reduce((sum, own) => sum + own, 0);
  if (characters !== written) throw new Error(`the command wrote ${written} characters, and ${characters} came`);
  return { events: events / seconds, output: characters / seconds / MIB };
}

type Transferred = { mibPerSecond: number; aboveMib: number };

async function transferred(server: BenchServer, mib: number, run: () => Promise<void>): Promise<Transferred> {
  server.resetPeak();
  const before = server.memory().residentBytes;
  const startedMs = performance.now();
  await run();
  const seconds = (performance.now() - startedMs) / 1_000;
  return { mibPerSecond: mib / seconds, aboveMib: (server.memory().peakBytes - before) / MIB };
}

function zeroes(mib: number): ReadableStream<Uint8Array> {
  const piece = new Uint8Array(MIB);
  let left = mib;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(piece);
      else controller.close();
    },
  });
}
