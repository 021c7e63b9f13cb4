import "../src/core/reports.ts";
import "../src/core/warnings.ts";
import { isMainThread, workerData } from "node:worker_threads";

import type { SealResult, SealTask } from "../src/ingest/seal.ts";

/**
 * The one entry of the program. Usually it runs the command line; in the bundled release, where everything is this
 * file, it is also what worker threads and child processes start (see `src/core/isolate.ts`).
 */

/** The task of the sealing threads, under the name by which their pool calls it. */
export async function seal(task: SealTask): Promise<SealResult> {
  const thread = await import("../src/ingest/seal-thread.ts");
  return thread.seal(task);
}

const isolate = isolateName();
if (isolate === "catalog") await import("../src/catalog/sqlite/catalog-thread.ts");
else if (isolate === "query") await import("../src/query/scan/query-child.ts");
else if (isolate === "kql") await import("../src/query/translator/translator-child.ts");
else if (isolate === "query-probe") await import("../src/io/confinement/probe-child.ts");
else if (isolate === "merge") await import("../src/compaction/merge-child.ts");
else if (isolate === "csv") await import("../src/io/rows/csv-child.ts");
else if (isolate === "parquet") await import("../src/io/rows/parquet-child.ts");
else if (isolate === "recall") await import("../src/knowledge/memory/recall/recall-thread.ts");
else if (isolate === "rerank") await import("../src/knowledge/memory/rerank/rerank-thread.ts");
else if (isolate === undefined && isMainThread) await (await import("./command-line.ts")).runCommandLine();

function isolateName(): string | undefined {
  if (!isMainThread) return (workerData as { isolate?: string } | null)?.isolate;
  const flag = process.argv.indexOf("--isolate");
  return flag === 2 ? process.argv[3] : undefined;
}
