import { mkdir } from "node:fs/promises";
import { z } from "zod";
import type { Scrape } from "../../src/capacity/observe/metrics-text.ts";
import { systemClock } from "../../src/core/clock.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { requiredDataset, writeDataset, type DataFile } from "../support/data-file.ts";
import { runIngest } from "../support/ingest-run.ts";
import { threadSecondsOf } from "../support/process-stats.ts";
import { MIB } from "../support/report.ts";
import { scrape } from "../support/scrape.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "compaction/lag",
  question:
    "What does compaction take when no row may wait longer than ENGINE_ICEBERG_MAX_LAG_SECS to be published, against " +
    "compaction at its own pace, under steady ingest?",
  notMeasured:
    "Days: a run is a few lags long, all of one day that gets rows all the time. With --scale the lag and the interval of " +
    "looks are shortened with the run, but not the rate, so that a lag has fewer bytes than a real one: what it adds is then " +
    "an upper bound.",
  options: z.strictObject({
    seconds: count.default(690).describe("that rows come for"),
    lag: count.default(300).describe("seconds"),
    mb: z.coerce.number().positive().default(10).describe("a second"),
    flushMs: count.default(1_000).describe("that a flush waits for rows: one makes one extent"),
    scale: count.default(1).describe("by which the run, the lag and the interval of looks are shortened"),
  }),
  measures: {
    merging: { unit: "CPU s/GB", better: "less", doc: "of the processes that merge" },
    server: { unit: "CPU s/GB", better: "less", doc: "of the server and these" },
    written: { unit: "MB/GB", better: "less", doc: "that merges have written" },
    merges: { unit: "merges", better: "less", doc: "that were done" },
    waited: {
      unit: "s",
      better: "less",
      doc: "the longest that rows waited for publication after a look, as the server says",
    },
  },
  rounds: 1,
  open: async (options, { folder }) => {
    await mkdir(folder, { recursive: true });
    const { columns, ndjson, ...rest } = requiredDataset("logs", ROWS);
    // Rows of now: those of one day, as they come.
    const live = Buffer.from(ndjson.toString("utf8").replaceAll(/^\{"at":"[^"]*",/gm, "{"));
    const data = await writeDataset({ ...rest, columns, ndjson: live }, folder);
    const sideOf = (name: string, lagSecs: number): Side => {
      let rounds = 0;
      // The first warms up what all share, the program's files and the disk: a tenth of a run is enough.
      return { name, round: async () => await run(data, { ...options, lagSecs, isShort: rounds++ === 0 }) };
    };
    return { sides: [sideOf("bounded", options.lag / options.scale), sideOf("own pace", 0)] };
  },
});

const ROWS = 60_000;
const LOOK_SECS = 10;
const WARM_UP_SHARE = 10;
const CONNECTIONS = 4;

type Run = {
  seconds: number;
  mb: number;
  flushMs: number;
  scale: number;
  /** 0 for none. */
  lagSecs: number;
  isShort: boolean;
};

async function run(data: DataFile, asked: Run): Promise<Record<string, number>> {
  const { seconds, mb, flushMs, scale, lagSecs, isShort } = asked;
  const server = await startBenchServer({
    tables: [{ database: "default", name: "logs", columns: data.columns }],
    env: {
      ENGINE_QUERY_WORKERS: "1",
      ENGINE_COMPACTION_POLL_SECS: String(Math.max(1, Math.round(LOOK_SECS / scale))),
      ENGINE_FLUSH_MAX_AGE_MS: String(flushMs),
      ENGINE_FLUSH_MAX_ROWS: "10000000",
      ...(lagSecs > 0 && { ENGINE_ICEBERG_MAX_LAG_SECS: String(Math.max(1, Math.round(lagSecs))) }),
    },
  });
  try {
    const before = { merging: mergingSeconds(server), server: server.cpuSeconds() };
    let waited = 0;
    const look = async () => {
      const ages = valuesOf(await scrape(server.url), "engine_compaction_unpublished_age_seconds");
      waited = Math.max(waited, ...ages);
    };
    let failure: Error | undefined;
    const looking = systemClock.every(1_000, () => void look().catch((error: Error) => (failure ??= error)));
    const durationMs = (seconds * 1_000) / scale / (isShort ? WARM_UP_SHARE : 1);
    const perSecond = (mb * 1e6) / BODY_BYTES;
    const job = { file: data.path, cut: { sizeBytes: BODY_BYTES }, tables: ["logs"], keyPrefix: "lag" };
    const result = await runIngest(server, {
      ...job,
      connections: CONNECTIONS,
      pace: { perSecond, durationMs },
    }).finally(() => looking.cancel());
    const { accepted, refused, failed, unsent } = result;
    if (refused + failed + unsent > 0) {
      throw new Error(`of ${accepted} bodies ${refused} were refused, ${failed} failed, ${unsent} never sent`);
    }
    if (failure !== undefined) throw failure;
    await look();
    const gigabytes = (accepted * BODY_BYTES) / 1e9;
    const metrics = await scrape(server.url);
    const merged = metrics.filter(({ name }) => name === "engine_compaction_merges_total");
    if (merged.some(({ labels, value }) => labels["outcome"] === "failed" && value > 0))
      throw new Error("a merge failed");
    return {
      merging: (mergingSeconds(server) - before.merging) / gigabytes,
      server: (server.cpuSeconds() - before.server) / gigabytes,
      written: total(metrics, "engine_compaction_output_bytes_total") / 1e6 / gigabytes,
      merges: merged.reduce((sum, { value }) => sum + value, 0),
      waited,
    };
  } finally {
    await server.stop();
  }
}

/** Of one request; the rate says how many. */
const BODY_BYTES = MIB / 2;

/** Everything that the server's process has started, ended or not: with one query process that nobody asks, merges. */
function mergingSeconds(server: BenchServer): number {
  const { main, others } = threadSecondsOf(server.pid);
  return server.cpuSeconds() - main - others;
}

function valuesOf(scraped: Scrape, metric: string): number[] {
  return scraped.filter(({ name }) => name === metric).map(({ value }) => value);
}

function total(scraped: Scrape, metric: string): number {
  return valuesOf(scraped, metric).reduce((sum, value) => sum + value, 0);
}
