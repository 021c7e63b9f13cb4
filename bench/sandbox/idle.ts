import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { MIB } from "../support/report.ts";
import { residentBytesOfSandboxes } from "../support/sandbox-processes.ts";
import { RESOURCE_LIMITS } from "./limits.ts";
import { requireSandboxes, withServer } from "./with-server.ts";

export const benchmark = defineBenchmark({
  name: "sandbox/idle",
  question: "What memory does an idle sandbox take, by its own processes and in the server?",
  notMeasured:
    "What only the first sandbox of a server needs, and memory of the kernel. Pages that several processes have count in " +
    "shares. As root, on Linux.",
  options: z.strictObject({
    sandboxes: z.coerce.number().int().positive().default(100).describe("that are idle together"),
  }),
  measures: {
    processes: { unit: "MiB", better: "less", doc: "of one sandbox's own processes (proportional set size)" },
    server: { unit: "MiB", better: "less", doc: "of the server's process, for one sandbox" },
  },
  rounds: 3,
  open: async ({ sandboxes }) => {
    requireSandboxes("sandbox/idle");
    return { sides: [{ name: "engine", round: () => idleBytesOf(sandboxes) }] };
  },
});

async function idleBytesOf(count: number): Promise<Record<string, number>> {
  return await withServer({ warmPool: 0 }, async (server, client) => {
    const create = () => client.create({ resource_limits: RESOURCE_LIMITS });
    const first = await create();
    const before = { server: server.memory().residentBytes, processes: residentBytesOfSandboxes() };
    const ids = await Promise.all(Array.from({ length: count }, create));
    const mibEach = (bytes: number) => bytes / count / MIB;
    const values = {
      processes: mibEach(residentBytesOfSandboxes() - before.processes),
      server: mibEach(server.memory().residentBytes - before.server),
    };
    for (const id of [first, ...ids]) await client.remove(id);
    return values;
  });
}
