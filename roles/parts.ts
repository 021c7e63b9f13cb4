import { systemClock, type Clock } from "../src/core/clock.ts";
import type { LoadedConfig } from "../src/config/load.ts";
import { uuidV7Source, type IdSource } from "../src/core/ids.ts";
import type { Cleanup } from "../src/core/lifecycle.ts";
import type { Log } from "../src/core/log.ts";
import { createMetrics, type Metrics } from "../src/core/metrics.ts";
import { systemRandom, type Random } from "../src/core/random.ts";
import { FEATURES, type EngineFeature } from "./features.ts";

export type PartsOptions = Pick<LoadedConfig, "config" | "origins"> & {
  /** Whether it is the engine of this machine (`engine serve`) and no deployment. */
  isLocal: boolean;
  /** Asks whoever sits at the terminal for a new password, after a sentence; undefined where nobody does. */
  askPassword?: ((why: string) => Promise<string>) | undefined;
  /** What the program consists of; those of `roles/features.ts` unless given. */
  features?: readonly EngineFeature[] | undefined;
};

/** What every role builds with. What is opened is closed with `cleanup`, the last first. */
export type Parts = PartsOptions & {
  features: readonly EngineFeature[];
  log: Log;
  metrics: Metrics;
  clock: Clock;
  random: Random;
  newId: IdSource;
  cleanup: Cleanup;
};

export function createParts(
  { config, origins, isLocal, askPassword, features = FEATURES }: PartsOptions,
  log: Log,
  cleanup: Cleanup,
): Parts {
  const [clock, random] = [systemClock, systemRandom];
  const metrics = createMetrics({ process: true });
  const newId = uuidV7Source(clock, random);
  return { config, origins, isLocal, askPassword, features, log, metrics, clock, random, newId, cleanup };
}
