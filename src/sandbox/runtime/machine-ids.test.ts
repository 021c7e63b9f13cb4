import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { describeInCage } from "./cage.test-kit.ts";
import { FIRST_HOST_ID, type TestRuntime, firstHostIdOf, run, specOf, testRuntime } from "./machines.test-kit.ts";
import { openRuntime, type RuntimeOptions } from "./open-runtime.ts";
import type { MachineSpec, Runtime } from "./runtime.ts";
import { removeSwept } from "./removal.test-kit.ts";

const OWNERS = "stat -c '%u %g %n' by-root by-agent";

describeInCage("ids of machines", () => {
  const test = testRuntime("ids");

  it("show right owners on a volume that several have", async () => {
    const path = await test.runtime.volumes.open("shared", 32);
    const volume = { name: "shared", mountPath: "/shared", readOnly: false, sizeMb: 32, path };
    const [one, two] = await Promise.all([0, 1].map(() => test.runtime.create(specOf({ volumes: [volume] }))));
    if (one === undefined || two === undefined) throw new Error("no machines");
    expect(firstHostIdOf(one)).not.toBe(firstHostIdOf(two));
    const at = { cwd: "/shared" };
    await run(one, "touch by-agent && chmod 777 . && chmod 600 by-agent", at);
    await run(two, "touch by-root", { ...at, user: "root" });
    for (const machine of [one, two]) {
      expect((await run(machine, OWNERS, at)).stdout).toBe("0 0 by-root\n1000 1000 by-agent\n");
      expect(await run(machine, "echo x >> by-agent; cat by-agent", at)).toMatchObject({ exitCode: 0 });
    }
    expect((await run(one, "cat by-agent", at)).stdout).toBe("x\nx\n");
    expect(statSync(join(path, "by-agent")).uid).toBe(1000);
    await Promise.all([one, two].map(({ id }) => test.runtime.remove(id)));
    await test.runtime.volumes.remove("shared");
  });

  it("stay those of a machine until it is removed, also when it is stopped and the node starts again", async () => {
    await inOtherHome(test, { idRanges: 3 }, async (open) => {
      const kept = specOf({ keepsDisk: true });
      const first = await open(async (runtime) => {
        const machine = await runtime.create(kept);
        await run(machine, "echo kept > ~/file");
        await machine.stop();
        return firstHostIdOf(await runtime.restart(kept));
      });
      await open(async (runtime) => {
        expect(await runtime.adopt(kept.id)).toMatchObject({ id: kept.id });
        const other = await runtime.create(specOf());
        const second = firstHostIdOf(other);
        expect(second).not.toBe(first);
        await expect(runtime.create(specOf())).rejects.toThrow("all 2 ranges of ids are taken by sandboxes");
        await runtime.remove(other.id);
        // What could not be made keeps none.
        await expect(runtime.create(specOf({ hostname: "x".repeat(100) }))).rejects.toMatchObject({ code: "failed" });
        const next = await runtime.create(specOf());
        expect(firstHostIdOf(next)).toBe(second);
        await Promise.all([kept.id, next.id].map((id) => runtime.remove(id)));
        const both = await Promise.all([0, 1].map(() => runtime.create(specOf())));
        expect(both.map(firstHostIdOf)).toContain(first);
        await Promise.all(both.map(({ id }) => runtime.remove(id)));
      });
    });
  });

  it("of before machines had their own stay with the machines that have them, whether these run or not", async () => {
    await inOtherHome(test, { idRanges: 1 }, async (open, home) => {
      const specs = { running: specOf(), stopped: specOf({ keepsDisk: true }), gone: specOf() };
      await open(async (runtime) => {
        for (const spec of Object.values(specs)) await run(await runtime.create(spec), "echo kept > ~/file");
        for (const spec of [specs.stopped, specs.gone]) await (await runtime.adopt(spec.id))?.stop();
      });
      for (const spec of Object.values(specs)) forgetIds(home, spec);
      await open(
        async (runtime) => {
          const running = await runtime.adopt(specs.running.id);
          if (running === undefined) throw new Error("it does not run any more");
          expect((await run(running, "cat ~/file; stat -c %U ~/file")).stdout).toBe("kept\nagent\n");
          const files = await runtime.openStopped(specs.stopped.id);
          expect(statSync(join(files?.path ?? "", "home/agent/file")).uid).toBe((files?.firstHostId ?? 0) + 1000);
          await files?.release();
          const stopped = await runtime.restart(specs.stopped);
          expect((await run(stopped, "cat ~/file; stat -c %U ~/file")).stdout).toBe("kept\nagent\n");
          expect([running, stopped].map(firstHostIdOf)).toEqual([FIRST_HOST_ID, FIRST_HOST_ID]);
          // Nothing of these is on a disk.
          expect(firstHostIdOf(await runtime.restart(specs.gone))).toBeGreaterThan(FIRST_HOST_ID);
          expect(firstHostIdOf(await runtime.create(specOf()))).toBeGreaterThan(FIRST_HOST_ID);
          await Promise.all((await runtime.list()).map((id) => runtime.remove(id)));
        },
        { idRanges: 8 },
      );
    });
  });

  it("are refused where this computer does not have them", async () => {
    const beyond = { ...test.options, firstHostId: 4_000_000_000, idRanges: 60_000 };
    await expect(openRuntime(beyond)).rejects.toMatchObject({
      code: "unable",
      message: expect.stringContaining("ENGINE_SANDBOX_ID_RANGES"),
    });
  });
});

type Open = <T>(use: (runtime: Runtime) => Promise<T>, wanted?: Partial<RuntimeOptions>) => Promise<T>;

/** A folder of a node in which runtimes work one after the other. */
async function inOtherHome(
  test: TestRuntime,
  wanted: Partial<RuntimeOptions>,
  task: (open: Open, home: string) => Promise<void>,
): Promise<void> {
  const home = join(test.home, randomUUID());
  mkdirSync(home);
  const options = { ...test.options, home, cgroupRoot: `engine-test-${randomUUID()}`, ...wanted };
  try {
    await task(async (use, later) => {
      const runtime = await openRuntime({ ...options, ...later });
      try {
        return await use(runtime);
      } finally {
        await runtime.close();
      }
    }, home);
  } finally {
    await removeSwept(home);
  }
}

/** Makes a machine's record what an earlier version wrote. */
function forgetIds(home: string, { id }: MachineSpec): void {
  const path = join(home, "machines", id, "machine.json");
  const { firstHostId, ...record } = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  expect(firstHostId).toBe(FIRST_HOST_ID);
  writeFileSync(path, JSON.stringify(record));
}
