import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { DurabilityModel } from "./durability.ts";
import type { SystemCall, Trace, TraceOptions } from "./trace.ts";
import { pathOfDescriptor, stringOf, traceCommand } from "./trace.ts";

const source = (path: string) => new URL(`../../src/${path}`, import.meta.url).href;

// Puts each group of keys at the same time, one group after the other, and says which were acknowledged.
const PUTTER = `
const [{ openFilesystemStore }, { systemRandom }, { silentLog }] = await Promise.all([
  import(${JSON.stringify(source("io/objectstore/filesystem.ts"))}),
  import(${JSON.stringify(source("core/random.ts"))}),
  import(${JSON.stringify(source("core/log.ts"))}),
]);
const [root, ...groups] = process.argv.slice(1);
const { writeSync } = await import("node:fs");
const say = (text) => writeSync(1, text + "\\n");
const store = await openFilesystemStore({ root, random: systemRandom, log: silentLog });
for (const group of groups) {
  await Promise.all(group.split("+").map((key) => store.put(key, Buffer.from("bytes of " + key)).then(
    () => say("acknowledged " + key),
    (error) => say("failed " + key + " " + error.code),
  )));
}
`;

/** Node's own writes to standard output mark where in the trace a put was acknowledged. */
function acknowledgements(calls: readonly SystemCall[]): { key: string; at: SystemCall }[] {
  return calls.flatMap((at) => {
    const key = /^acknowledged (\S+)\n$/.exec(stringOf(at.args[1]) ?? "")?.[1];
    return at.name === "write" && key !== undefined ? [{ key, at }] : [];
  });
}

/** What would be lost by a power cut at each acknowledgement. */
function problemsAtAcknowledgement(trace: Trace, root: string): string[] {
  return acknowledgements(trace.calls).flatMap(({ key, at }) => {
    const model = new DurabilityModel();
    model.apply(trace.calls.filter((call) => call.end < at.start));
    return model.problemsOf(join(root, key));
  });
}

const isSyncOf = (path: string) => (call: SystemCall) =>
  call.name === "fsync" && pathOfDescriptor(call.args[0]) === path;

/** Calls on files below the folder, or on itself: Node also signals its threads and syncs its standard output. */
const concerning = (folder: string, calls: readonly SystemCall[]) =>
  calls.filter((call) => call.args.some((arg) => arg.includes(folder)));

const syncsIn = (folder: string, trace: Trace) =>
  concerning(folder, trace.calls).filter((call) => call.name === "fsync");

const failedKeys = (trace: Trace) => [...trace.stdout.matchAll(/^failed (\S+) EIO$/gm)].map((match) => match[1] ?? "");

describe.skipIf(lacks("strace"))("filesystem store under strace", () => {
  let folder: string;
  let root: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "engine-trace-test-"));
    root = join(folder, "new/data");
  });
  afterEach(() => rm(folder, { recursive: true }));

  const put = (groups: readonly string[], options?: TraceOptions) => {
    const node = [process.execPath, "--disable-warning=ExperimentalWarning", "--input-type=module", "-e", PUTTER];
    return traceCommand([...node, "--", root, ...groups], options);
  };

  it("syncs file, then renames, then syncs the folder; and every folder it made", async () => {
    const trace = await put(["p/db/t/day/x.tlm"]);
    expect(trace).toMatchObject({ exitCode: 0, stdout: "acknowledged p/db/t/day/x.tlm\n", stderr: "" });
    const target = join(root, "p/db/t/day/x.tlm");
    const one = (what: (call: SystemCall) => boolean) => {
      const found = trace.calls.filter(what);
      expect(found).toHaveLength(1);
      return found[0] as SystemCall;
    };
    const rename = one((call) => call.name.startsWith("rename") && call.args.includes(`"${target}"`));
    const temporary = stringOf(rename.args.find((arg) => arg.includes("/.tmp/"))) ?? "";
    const write = one((call) => call.name === "write" && call.args.includes('"bytes of p/db/t/day/x.tlm"'));
    const syncFile = one(isSyncOf(temporary));
    const syncFolder = one(isSyncOf(dirname(target)));
    const [{ at: acknowledged } = { at: write }] = acknowledgements(trace.calls);
    const order = [write, syncFile, rename, syncFolder, acknowledged];
    for (const [i, call] of order.slice(1).entries()) expect(order[i]?.end).toBeLessThan(call.start);
    for (const made of ["new", "new/data", "new/data/p", "new/data/p/db", "new/data/p/db/t", "new/data/p/db/t/day"]) {
      const mkdir = one((call) => call.name === "mkdir" && call.args[0] === `"${join(folder, made)}"`);
      const parents = trace.calls.filter(isSyncOf(dirname(join(folder, made))));
      expect(parents.some((sync) => sync.start > mkdir.end && sync.end < acknowledged.start)).toBe(true);
    }
    expect(problemsAtAcknowledgement(trace, root)).toEqual([]);
  });

  it("acknowledges nothing before its folders are durable when many arrive in fresh ones at once", async () => {
    const group = Array.from({ length: 12 }, (_, i) => `p/db${i % 2}/t${i % 3}/day/${i}`).join("+");
    const trace = await put([group, group.replaceAll("day", "next")]);
    expect(trace.stdout.match(/acknowledged/g)).toHaveLength(24);
    expect(problemsAtAcknowledgement(trace, root)).toEqual([]);
  });

  it("lets a sync count only for renames that ended before it began", async () => {
    const group = Array.from({ length: 12 }, (_, i) => `p/t/${i}`).join("+");
    const trace = await put(["p/t/first", group], { inject: "fsync:delay_enter=10000" });
    expect(trace.stdout.match(/acknowledged/g)).toHaveLength(13);
    expect(problemsAtAcknowledgement(trace, root)).toEqual([]);
    const folderSyncs = trace.calls.filter(isSyncOf(join(root, "p/t")));
    expect(folderSyncs.length, "puts that overlap share syncs").toBeLessThan(13);
  });

  it("costs a file written and synced, a rename and a folder synced, once its folders are known", async () => {
    const trace = await put(["p/a", "p/b"]);
    const [first, second] = acknowledgements(trace.calls);
    const between = concerning(folder, trace.calls).filter(
      (call) => call.start > (first?.at.end ?? Infinity) && call.end < (second?.at.start ?? 0),
    );
    expect(between.map((call) => call.name)).toEqual(["openat", "write", "fsync", "rename", "openat", "fsync"]);
  });

  it("acknowledges nothing that a failed sync lost, whichever sync it was, and notices it", async () => {
    const groups = ["p/t/1", "p/t/2+p/t/3", "p/u/4"];
    // One thread, so that the count of the injection is the count of the process.
    const env = { UV_THREADPOOL_SIZE: "1" };
    const syncs = syncsIn(folder, await put(groups, { env })).length;
    expect(syncs).toBeGreaterThan(10);
    for (let nth = 1; nth <= syncs; nth++) {
      await rm(join(folder, "new"), { recursive: true, force: true });
      const trace = await put(groups, { env, inject: `fsync:error=EIO:when=${nth}` });
      expect(syncsIn(folder, trace).filter((call) => call.error === "EIO")).toHaveLength(1);
      expect(problemsAtAcknowledgement(trace, root), `sync ${nth}`).toEqual([]);
      const failures = failedKeys(trace).map((key) => groups.findIndex((group) => group.includes(key)));
      const startFailed = trace.exitCode !== 0 && trace.stderr.includes("cannot be used: EIO");
      // Either the start fails, or the puts of exactly one group: what comes after makes new entries and succeeds.
      expect(new Set(failures).size, `sync ${nth}: ${trace.stdout}`).toBe(startFailed ? 0 : 1);
    }
  });

  it("does not sync again what a sync failed for", async () => {
    const trace = await put(["p/1"], { inject: "fsync:error=EIO" });
    const failed = syncsIn(folder, trace);
    expect(failed.length).toBeGreaterThan(0);
    expect(new Set(failed.map((call) => call.args[0])).size).toBe(failed.length);
    expect(trace.stdout).toBe("");
  });
});
