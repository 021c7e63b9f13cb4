import { seededRandom } from "../../src/core/random.ts";
import {
  errorXml,
  startMeddlingProxy,
  type Meddling,
  type MeddlingProxy,
} from "../../src/io/objectstore/s3/meddling-proxy.test-kit.ts";

/** How bad the way to the S3 server is. */
export type StoreFaults = {
  /** Share of the requests that are answered 503, from 0 to 1. */
  errorShare: number;
  /** Added to each of the others. */
  latencyMs: number;
};

const SLOW_DOWN: Meddling = { kind: "answer", status: 503, body: errorXml("SlowDown") };

/** A proxy that does this to requests, which ones being drawn from the seed. `faults` may be changed while it runs. */
export function startFaultyStore(endpoint: string, faults: StoreFaults, seed: number): Promise<MeddlingProxy> {
  const random = seededRandom(seed);
  return startMeddlingProxy(endpoint, () => {
    if (random.next() < faults.errorShare) return SLOW_DOWN;
    return faults.latencyMs > 0 ? { kind: "delay", delayMs: faults.latencyMs } : undefined;
  });
}
