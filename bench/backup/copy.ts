import { randomFillSync } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { anExtent, aFlush, column } from "../../src/catalog/contract-fixtures.test-kit.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { openFilesystemStore } from "../../src/io/objectstore/filesystem.ts";
import { readArguments } from "../support/arguments.ts";
import { withCatalog } from "../support/catalog.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";

/**
 * How fast is a backup to a folder, and its restore, against `cp -r` of the data with every file synced, run in turn with
 * them; and how long does a second backup take when nothing has changed? Each is the command as users run it, its start
 * included.
 *
 * Extents are random bytes with a row in the catalog each: a backup looks at their size and checksum, and at nothing else.
 */
const FLAGS = {
  mib: { type: "string", default: "10240" },
  extents: { type: "string", default: "640" },
  rounds: { type: "string", default: "3" },
  folder: { type: "string" },
} as const;

const ENTRY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
const EXTENTS_PER_COMMIT = 128;

export async function main(args: readonly string[]): Promise<void> {
  const flags = readArguments(args, FLAGS);
  const [totalMib, extents, rounds] = [flags.count("mib"), flags.count("extents"), flags.count("rounds")];
  const root = mkdtempSync(join(flags.text("folder") ?? tmpdir(), "engine-bench-backup-"));
  console.log(machine());
  try {
    const sizeBytes = Math.max(1, Math.floor((totalMib * MIB) / extents));
    await makeData(join(root, "home"), { extents, sizeBytes });
    console.log(`${extents} extents of ${sizeBytes} bytes`);
    report(
      Array.from({ length: rounds }, () => round(root)),
      (extents * sizeBytes) / MIB,
    );
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

type Round = { cpSecs: number; createSecs: number; unchangedSecs: number; restoreSecs: number };

function round(root: string): Round {
  const at = (name: string): string => join(root, name);
  const [home, copy, backups, restored] = [at("home"), at("copy"), at("backups"), at("restored")];
  const cpSecs = timed(() => {
    mkdirSync(copy);
    execFileSync("cp", ["-r", join(home, "data"), copy]);
    execFileSync("sh", ["-c", `find '${copy}' -type f -print0 | xargs -0 sync`]);
  });
  rmSync(copy, { recursive: true });
  const createSecs = timed(() => engine(home, ["create", backups, "--direct"]));
  const unchangedSecs = timed(() => engine(home, ["create", backups, "--direct"]));
  const restoreSecs = timed(() => engine(restored, ["restore", backups]));
  for (const folder of [backups, restored]) rmSync(folder, { recursive: true });
  return { cpSecs, createSecs, unchangedSecs, restoreSecs };
}

function engine(home: string, words: readonly string[]): void {
  execFileSync(process.execPath, [ENTRY, "backup", ...words], {
    env: { ...process.env, ENGINE_HOME: home },
    stdio: "pipe",
  });
}

function timed(work: () => void): number {
  const startedMs = systemClock.monotonicMs();
  work();
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

function report(rounds: readonly Round[], totalMib: number): void {
  const of = (name: keyof Round): number => median(rounds.map((one) => one[name]));
  const cpSecs = of("cpSecs");
  const row = (what: string, secs: number): string[] => [
    what,
    shown(secs),
    shown(totalMib / secs),
    `${shown(cpSecs / secs)}×`,
  ];
  printTable(
    ["", "seconds", "MiB/s", "of cp"],
    [
      row("cp -r and sync", cpSecs),
      row("backup create", of("createSecs")),
      row("backup restore", of("restoreSecs")),
      row("create, unchanged", of("unchangedSecs")),
    ],
  );
}

if (import.meta.main) await main(process.argv.slice(2));
