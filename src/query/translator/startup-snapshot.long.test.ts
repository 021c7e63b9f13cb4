import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import { eventually } from "../../core/waiting.test-kit.ts";
import { StartupSnapshot } from "./startup-snapshot.ts";
import { createTranslatorHarness, kqlRequest, type TranslatorHarness } from "./translator.test-kit.ts";

let folder: string;
let built: string;
let harness: TranslatorHarness | undefined;
let snapshots: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-kql-snapshot-"));
  const snapshot = new StartupSnapshot({ folder, log: silentLog, clock: systemClock });
  await Promise.all([snapshot.build(), snapshot.build()]);
  built = (await snapshot.find()) ?? "";
  return () => rmSync(folder, { recursive: true, force: true });
}, 120_000);

beforeEach(() => {
  snapshots = mkdtempSync(join(folder, "test-"));
});

afterEach(async () => {
  await harness?.close();
  harness = undefined;
});

/** Starts a translator with what is in the folder, and says what it started from. */
async function startedFrom(snapshotDir: string, options = {}): Promise<string> {
  harness = createTranslatorHarness({ snapshotDir, ...options });
  const bounds = { signal: new AbortController().signal, memoryBytes: 2 ** 30 };
  expect(await harness.translator.translate(kqlRequest("print x = 1"), bounds)).toMatchObject({ kind: "query" });
  const metrics = await harness.metrics.registry.metrics();
  return /translator_starts_total{type="(\w+)"} 1/.exec(metrics)?.[1] ?? "";
}

const names = (): string[] => readdirSync(snapshots);
const nameOf = (path: string): string => path.split("/").at(-1) ?? "";
/** The name that a file of those bytes has, beside the one that was built. */
const namedFor = (bytes: Uint8Array): string =>
  nameOf(built).replace(/[0-9a-f]{64}/, createHash("sha256").update(bytes).digest("hex"));

test("one is built once, for this Node alone, and a translator starts from it", async () => {
  expect(readdirSync(folder).filter((name) => name.endsWith(".blob"))).toEqual([nameOf(built)]);
  expect(nameOf(built)).toContain(`node-${process.version}-${process.platform}-${process.arch}-`);
  copyFileSync(built, join(snapshots, nameOf(built)));
  expect(await startedFrom(snapshots)).toBe("snapshot");
  expect(names()).toEqual([nameOf(built)]);
});

test("without one a translator starts, and then one is built", async () => {
  expect(await startedFrom(join(snapshots, "new"), { snapshotDelayMs: 0 })).toBe("sources");
  await eventually(() => readdirSync(join(snapshots, "new")).some((name) => name.endsWith(".blob")));
  await eventually(() => readdirSync(join(snapshots, "new")).length === 1);
});

test.each([
  ["cut off", (bytes: Buffer) => bytes.subarray(0, bytes.length >> 1)],
  ["empty", () => Buffer.alloc(0)],
  [
    "changed in one byte",
    (bytes: Buffer) => Buffer.concat([bytes.subarray(0, -1), Buffer.from([(bytes.at(-1) ?? 0) ^ 1])]),
  ],
])("one that is %s is deleted, and the translator does without", async (_how, damage) => {
  writeFileSync(join(snapshots, nameOf(built)), damage(readFileSync(built)));
  expect(await startedFrom(snapshots)).toBe("sources");
  expect(names()).toEqual([]);
});

test("one that is whole and does not work is deleted, and the translator does without", async () => {
  const bytes = Buffer.alloc(100_000, "x");
  writeFileSync(join(snapshots, namedFor(bytes)), bytes);
  expect(await startedFrom(snapshots)).toBe("sources");
  expect(names()).toEqual([]);
});

test("one of another library is not used, and goes when there is a new one; one of another Node stays", async () => {
  const stale = nameOf(built).replace(/-[0-9a-f]{16}-/, "-0123456789abcdef-");
  const foreign = nameOf(built).replace(process.version, "v99.0.0");
  for (const name of [stale, foreign]) copyFileSync(built, join(snapshots, name));
  mkdirSync(join(snapshots, "build-abandoned"));
  utimesSync(join(snapshots, "build-abandoned"), 0, 0);
  mkdirSync(join(snapshots, "build-others"));
  const snapshot = new StartupSnapshot({ folder: snapshots, log: silentLog, clock: systemClock });
  expect(await snapshot.find()).toBeUndefined();
  await snapshot.build();
  const made = nameOf((await snapshot.find()) ?? "");
  expect(names().toSorted()).toEqual(["build-others", foreign, made].toSorted());
});

test("where none can be written a translator starts all the same", async () => {
  const file = join(snapshots, "file");
  writeFileSync(file, "");
  expect(await startedFrom(join(file, "below"), { snapshotDelayMs: 0 })).toBe("sources");
  const snapshot = new StartupSnapshot({ folder: join(file, "below"), log: silentLog, clock: systemClock });
  expect(await snapshot.find()).toBeUndefined();
  await snapshot.build();
  expect(names()).toEqual(["file"]);
});

test("a build that is stopped leaves nothing", async () => {
  const snapshot = new StartupSnapshot({ folder: snapshots, log: silentLog, clock: systemClock });
  const building = snapshot.build();
  await eventually(() => names().some((name) => name.startsWith("build-")));
  await snapshot.close();
  await building;
  expect(names()).toEqual([]);
});
