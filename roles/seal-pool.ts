import { INGEST_METRICS } from "../src/ingest/metrics.ts";
import { INGEST_OPTIONS } from "../src/ingest/options.ts";
import { valuesOf } from "../src/config/option.ts";
import { DEFAULT_SHAPE } from "../src/format/types.ts";
import { createSealPool, type SealPool } from "../src/ingest/seal-pool.ts";
import type { Parts } from "./parts.ts";

/** Threads that seal, for as long as the process runs; ready when it resolves. */
export async function openSealPool({ config, log, metrics, cleanup }: Parts): Promise<SealPool> {
  const { sealThreads: threads, parquetEncodings: encodings } = valuesOf(INGEST_OPTIONS, config);
  const sealPool = createSealPool({ threads, log, encodings });
  cleanup.defer(() => sealPool.close());
  INGEST_METRICS.of(metrics).sealQueue.watch({}, () => sealPool.queueDepth());
  await warmUp(sealPool);
  return sealPool;
}

/** Seals a row that goes nowhere, so that the first client does not wait for a thread to start and load its code. */
async function warmUp(sealPool: SealPool): Promise<void> {
  const bytes = new TextEncoder().encode('{"body":"warm"}\n');
  await sealPool.seal({
    columns: DEFAULT_SHAPE,
    bodies: [{ bytes, evolve: false, arrivedAtNs: 0n }],
    format: "tlm",
  });
}
