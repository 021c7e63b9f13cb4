import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { expect, it } from "vitest";
import { systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { Egress } from "../../network/egress/egress.ts";
import { expectLeft, NOTHING, readIfThere, run, specOf, testRuntime } from "../../runtime/machines.test-kit.ts";
import { describeInCage } from "../../runtime/cage.test-kit.ts";
import type { Machine } from "../../runtime/runtime.ts";
import { specOf as sandboxSpecOf } from "../../contract/spec.test-kit.ts";
import type { SandboxState } from "../../contract/states.ts";
import { NO_COMPANIONS } from "./companions.ts";
import { SandboxEnvironments } from "./environment.ts";

const MIB = 1024 * 1024;
const signal = AbortSignal.timeout(60_000);

describeInCage("files of a machine", () => {
  const test = testRuntime("environment");

  /** Groups of helpers, in all hierarchies. */
  function groups(id: string): string[] {
    return ["", ...readdirSync("/sys/fs/cgroup")]
      .map((name) => join("/sys/fs/cgroup", name, test.options.cgroupRoot, `helpers-${id}`))
      .filter((group) => readIfThere(join(group, "cgroup.procs")) !== "" || isFolder(group));
  }
  const pidsIn = (group: string) => readFileSync(join(group, "cgroup.procs"), "utf8").split("\n").filter(Boolean);

  it("are handled by helpers with limits of their own, also while it stands still or is stopped", async () => {
    const { runtime } = test;
    const spec = specOf({ keepsDisk: true, network: { enabled: false } });
    const now: { machine: Machine | undefined; state: SandboxState } = {
      machine: await runtime.create(spec),
      state: "running",
    };
    const desired = () => ({
      sandboxId: spec.id,
      tenant: "t",
      spec: sandboxSpecOf({ persistence: "persistent" }),
      state: now.state,
      wanted: "running" as const,
      version: 1,
      recordedBatch: 0,
    });
    const environments = new SandboxEnvironments({
      runtime,
      egress: new Egress({
        allowedRanges: [],
        upstream: undefined,
        certificates: undefined,
        sources: NO_COMPANIONS.sources,
        clock: systemClock,
        log: silentLog,
      }),
      providerUrls: {},
      find: () => ({ machine: now.machine, desired: desired() }),
      clock: systemClock,
      log: silentLog,
    });
    const put = (path: string, text: string) =>
      environments.filesOf(spec.id).put({ path }, Readable.from([Buffer.from(text)]), signal);

    expect(groups(spec.id)).toEqual([]);
    // One that is not over yet.
    const body = new PassThrough();
    const putting = environments.filesOf(spec.id).put({ path: "/home/agent/slow" }, body, signal);
    body.write(Buffer.alloc(4 * MIB));
    await expect.poll(() => groups(spec.id).length).toBeGreaterThan(0);
    for (const group of groups(spec.id)) await expect.poll(() => pidsIn(group)).toHaveLength(1);
    const [pid = ""] = pidsIn(groups(spec.id)[0] ?? "");
    expect(readFileSync(`/proc/${pid}/cmdline`, "latin1")).toContain("helper.pl");
    expect(limitOf(groups(spec.id))).toBe(128 * MIB);
    // The machine's own limits and its freezer are not theirs.
    await now.machine?.pause();
    await put("/home/agent/file", "while it stood still");
    body.end();
    await putting;
    await now.machine?.resume();
    if (now.machine === undefined) throw new Error("there is no machine");
    expect((await run(now.machine, "cat file; stat -c %s slow")).stdout).toBe(`while it stood still${4 * MIB}\n`);
    await environments.end(spec.id);
    expect(groups(spec.id)).toEqual([]);

    await now.machine.stop();
    Object.assign(now, { machine: undefined, state: "stopped" });
    await put("/home/agent/file", "while it was stopped");
    expect(limitOf(groups(spec.id))).toBe(128 * MIB);
    await environments.end(spec.id);
    expect(groups(spec.id)).toEqual([]);
    await runtime.remove(spec.id);
    await expectLeft(test, NOTHING);
  });
});

function isFolder(path: string): boolean {
  try {
    return readdirSync(path).length > 0;
  } catch {
    // There is none.
    return false;
  }
}

/** Bytes of memory, by the file of whichever version of cgroups limits it. */
function limitOf(groups: readonly string[]): number {
  const files = groups.flatMap((group) => ["memory.limit_in_bytes", "memory.max"].map((name) => join(group, name)));
  return Number(files.map(readIfThere).find((text) => text !== ""));
}
