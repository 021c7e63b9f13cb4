import { randomFillSync } from "node:crypto";
import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { anExtent, aFlush, column } from "../../src/catalog/contract-fixtures.test-kit.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { openFilesystemStore } from "../../src/io/objectstore/filesystem.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { withCatalog } from "../support/catalog.ts";
import { MIB } from "../support/report.ts";

export const benchmark = defineBenchmark({
  name: "backup/copy",
  question:
    "How fast is a backup to a folder, and its restore, against `cp -r` of the data with every file synced, and how long " +
    "does a second backup take when nothing has changed?",
  notMeasured:
    "Object stores. Each is the command as users run it, its start included. Extents are random bytes with a row in the " +
    "catalog each: a backup looks at their size and checksum, and at nothing else.",
  options: z.strictObject({
    mib: z.coerce.number().positive().default(10_240).describe("of all extents"),
    extents: z.coerce.number().int().positive().default(640).describe("that share them"),
  }),
  measures: {
    create: { unit: "MiB/s", better: "more", doc: "of a first backup; of cp the copy" },
    restore: { unit: "MiB/s", better: "more", doc: "into an empty home; of cp the same copy" },
    unchanged: { unit: "s", better: "less", doc: "of a second backup" },
  },
  rounds: 3,
  open: async ({ mib, extents }, { folder }) => {
    const sizeBytes = Math.max(1, Math.floor((mib * MIB) / extents));
    const at = (name: string) => join(folder, name);
    await makeData(at("home"), { extents, sizeBytes });
    const copiedMib = (extents * sizeBytes) / MIB;
    return {
      sides: [
        { name: "engine", round: () => backUp(at, copiedMib) },
        { name: "cp", round: () => copyFiles(at, copiedMib) },
      ],
    };
  },
});

type At = (name: string) => string;

async function backUp(at: At, mib: number): Promise<Record<string, number>> {
  const [home, backups, restored] = [at("home"), at("backups"), at("restored")];
  const create = () => engine(home, ["create", backups, "--direct"]);
  const createSeconds = await timed(create);
  const unchanged = await timed(create);
  const restoreSeconds = await timed(() => engine(restored, ["restore", backups]));
  for (const folder of [backups, restored]) await rm(folder, { recursive: true });
  return { create: mib / createSeconds, restore: mib / restoreSeconds, unchanged };
}

async function copyFiles(at: At, mib: number): Promise<Record<string, number>> {
  const copy = at("copy");
  await mkdir(copy);
  const seconds = await timed(async () => {
    await run("cp", ["-r", join(at("home"), "data"), copy]);
    await run("sh", ["-c", 'find "$0" -type f -print0 | xargs -0 sync', copy]);
  });
  await rm(copy, { recursive: true });
  return { create: mib / seconds, restore: mib / seconds };
}

const ENTRY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
const EXTENTS_PER_COMMIT = 128;
const run = promisify(execFile);

async function engine(home: string, words: readonly string[]): Promise<void> {
  await run(process.execPath, [ENTRY, "backup", ...words], { env: { ...process.env, ENGINE_HOME: home } });
}

/** Seconds. */
async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = systemClock.monotonicMs();
  await work();
  return (systemClock.monotonicMs() - startedMs) / 1_000;
}

async function makeData(home: string, { extents, sizeBytes }: { extents: number; sizeBytes: number }): Promise<void> {
  const newId = uuidV7Source(systemClock, systemRandom);
  const store = await openFilesystemStore({ root: join(home, "data"), random: systemRandom, log: silentLog });
  await withCatalog(home, async (catalog) => {
    const columns = [column("at", "timestamp"), column("id")];
    const { table } = await catalog.createTable({ database: "default", name: "t", columns });
    const bytes = randomFillSync(Buffer.allocUnsafeSlow(sizeBytes));
    for (let made = 0; made < extents; made += EXTENTS_PER_COMMIT) {
      const some = Array.from({ length: Math.min(EXTENTS_PER_COMMIT, extents - made) }, (_, i) => {
        // Other bytes in each, so that no file system keeps them once.
        bytes.writeUInt32LE(made + i, 0);
        const id = newId();
        const key = `engine/default/t/2026-01-01/${id}.tlm`;
        return {
          put: store.put(key, Uint8Array.from(bytes)),
          extent: anExtent({ id, key, sizeBytes, checksum: checksumOf(bytes) }),
        };
      });
      await Promise.all(some.map(({ put }) => put));
      await catalog.commit([aFlush(table, { extents: some.map(({ extent }) => extent) })]);
    }
  });
}
