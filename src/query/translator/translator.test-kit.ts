import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import { createMetrics, type Metrics } from "../../core/metrics.ts";
import type { Confinement } from "../../io/confinement/confinement.ts";
import { openConfinement } from "../../io/confinement/open-confinement.ts";
import type { KqlRequest } from "../kql/contract.ts";
import { lendSnapshot } from "./shared-snapshot.test-kit.ts";
import { createTranslator, type Translator, type TranslatorOptions } from "./translator.ts";

/** A translator for tests: a real process, in a folder that goes with it. */
export type TranslatorHarness = {
  folder: string;
  metrics: Metrics;
  translator: Translator;
  close(): Promise<void>;
};

const MIB = 1024 * 1024;

/** That of this machine, tried once. */
const confinement: Confinement = await openConfinement({ log: silentLog, tempDir: tmpdir() });

export function createTranslatorHarness(
  options: Partial<TranslatorOptions> = {},
  folder = mkdtempSync(join(tmpdir(), "engine-kql-test-")),
): TranslatorHarness {
  const tempDir = join(folder, "tmp");
  const metrics = createMetrics();
  const translator = createTranslator({
    log: silentLog,
    clock: systemClock,
    metrics,
    confinement,
    tempDir,
    snapshotDir: lendSnapshot(join(folder, "kql")),
    memoryBytes: 1024 * MIB,
    retryAfterSecs: 1,
    // None is built but where a test asks for it: it takes a processor for seconds.
    snapshotDelayMs: 3_600_000,
    ...options,
  });
  const close = async (): Promise<void> => {
    await translator.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { folder, metrics, translator, close };
}

/** A request without tables. */
export function kqlRequest(text: string): KqlRequest {
  return { text, tables: [], tableNames: [], nowNs: 0n, keys: [] };
}

/** A text that takes seconds to bind: each of so many variables names the one before it twice. */
export function chainedLets(count: number): string {
  const lets = Array.from({ length: count }, (_, i) => `let v${i + 1} = v${i} + v${i};`);
  return `let v0 = 1;\n${lets.join("\n")}\nprint x = v${count}`;
}
