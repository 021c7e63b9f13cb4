import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { delay } from "../../src/core/waiting.test-kit.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { queryData } from "./data.ts";
import { QueryClient } from "./query-client.ts";
import { seedHome } from "./seed.ts";

export const benchmark = defineBenchmark({
  name: "query/kql-start",
  question:
    "How long does the first query in KQL of a server take, with a start-up snapshot of the translator from an earlier " +
    "start, and without one?",
  notMeasured: "The start of the server, and of its query processes: it has answered SELECT 1 before.",
  options: z.strictObject({
    rows: z.coerce.number().int().positive().default(100_000).describe("of events, of which one is asked for"),
  }),
  measures: { first: { unit: "ms", better: "less", doc: "from the request to the last byte of its answer" } },
  rounds: 5,
  open: async ({ rows }, { folder }) => {
    const data = await queryData(join(folder, "data"), rows);
    const plan = { format: "parquet", cut: { rows: 50_000 } } as const;
    const [made, none] = [
      await seedHome(join(folder, "home-snapshot"), data, plan),
      await seedHome(join(folder, "home-without"), data, plan),
    ];
    await withServer(made.home, async (server) => {
      await firstQuery(server);
      await snapshotIn(snapshotsOf(made.home));
    });
    return {
      sides: [
        { name: "snapshot", round: async () => ({ first: await withServer(made.home, firstQuery) }) },
        {
          name: "no snapshot",
          round: async () => {
            await rm(snapshotsOf(none.home), { recursive: true, force: true });
            return { first: await withServer(none.home, firstQuery) };
          },
        },
      ],
    };
  },
});

function snapshotsOf(home: string): string {
  return join(home, "cache", "kql");
}

async function withServer<T>(home: string, use: (server: BenchServer) => Promise<T>): Promise<T> {
  const server = await startBenchServer({ home });
  try {
    return await use(server);
  } finally {
    await server.stop();
  }
}

async function firstQuery({ url }: BenchServer): Promise<number> {
  const [sql, kql] = [new QueryClient(url), new QueryClient(url, { language: "kql" })];
  try {
    await sql.run("SELECT 1");
    const { ms, body } = await kql.run("events | take 1 | count", { keep: true });
    if (body !== '{"Count":1}\n') throw new Error(`the first query answers ${body}`);
    return ms;
  } finally {
    sql.close();
    kql.close();
  }
}

const SNAPSHOT_POLLS = 120;
const SNAPSHOT_POLL_MS = 500;

/** Resolves when it is made, some seconds after the first start. */
async function snapshotIn(folder: string): Promise<void> {
  for (let i = 0; i < SNAPSHOT_POLLS; i++) {
    const names = await readdir(folder).catch(() => []);
    if (names.some((name) => name.endsWith(".blob"))) return;
    await delay(SNAPSHOT_POLL_MS);
  }
  throw new Error("the translator made no start-up snapshot");
}
