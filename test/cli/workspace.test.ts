import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { NODE, startSandboxApi, type SandboxApi } from "../sandbox-routes/sandboxes.test-kit.ts";
import { LeasedBox } from "../../src/sandbox/control/scheduler/scheduler.test-kit.ts";
import { runHere, type Outcome } from "../../src/cli/cli.test-kit.ts";

let api: SandboxApi;
beforeEach(async () => {
  api = await startSandboxApi();
});
afterEach(() => api.close());

const run = (argv: readonly string[], input = ""): Promise<Outcome> =>
  runHere(["workspace", ...argv, "--server", api.url], { env: { ENGINE_TOKEN: "ann" }, input });

async function did(...argv: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(argv);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

const json = async (...argv: string[]): Promise<unknown> => JSON.parse(await did(...argv, "--json"));

describe("engine workspace", () => {
  test("makes, lists, shows, changes and deletes workspaces", async () => {
    const flags = ["--provider", "codex", "--description", "mine", "--label", "team=a", "--env", "A=1=2"];
    const repos = ["--repo", "https://git.example/org/app.git#main", "--repo", "https://git.example/org/lib"];
    const id = (
      await did("create", "app", ...flags, ...repos, "--allow-host", "a.example", "--directory", "/workspace")
    ).trim();
    const shown = await json("show", id);
    expect(shown).toMatchObject({
      name: "app",
      description: "mine",
      labels: { team: "a" },
      spec: {
        agent: { provider: "codex" },
        environment: { A: "1=2" },
        repositories: [
          { url: "https://git.example/org/app.git", branch: "main" },
          { url: "https://git.example/org/lib" },
        ],
        network: { enabled: true, allowed_hosts: ["a.example"] },
        filesystem: { working_directory: "/workspace" },
      },
    });
    expect(await did("show", id)).toMatch(/^name {16}app$/m);
    const other = (await did("create", "other")).trim();
    expect(await json("list")).toMatchObject([{ id: other }, { id }]);
    expect(await json("list", "--label", "team=a")).toMatchObject([{ id }]);
    expect(await did("list", "--name", "oth")).toMatch(new RegExp(`^ID [^]*\n${other} +other +- `));
    expect(await did("list", "--name", "zzz")).toBe("there are no workspaces\n");
    expect(await did("edit", id, "--name", "new")).toBe(`${id}\n`);
    expect(await json("show", id)).toMatchObject({ name: "new", description: "mine", labels: { team: "a" } });
    expect(await did("rm", id, other)).toBe(`deleted ${id}\ndeleted ${other}\n`);
    expect(await run(["show", id])).toMatchObject({ code: 1, stderr: `error: there is no workspace ${id}\n` });
  });

  test("takes and prints TOML", async () => {
    const folder = await mkdtemp(join(tmpdir(), "engine-cli-workspace-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, "app.toml");
    const text = (name: string) => `[workspace]\nname = "${name}"\n\n[workspace.agent]\nprovider = "codex"\n`;
    await writeFile(file, text("app"));
    const id = (await did("import", file)).trim();
    const exported = await did("export", id);
    expect(exported).toContain('[workspace]\nname = "app"\n');
    const again = await run(["import", "-"], exported);
    expect(again.code).toBe(0);
    expect(await did("export", again.stdout.trim())).toBe(exported);
    await writeFile(file, `${text("two")}\n[workspace.environment]\nA = "b"\n`);
    await did("edit", id, "--file", file);
    expect(await json("show", id)).toMatchObject({ name: "two", spec: { environment: { A: "b" } } });
    await writeFile(file, '[workspace]\nname = "a\n');
    const wrong = await run(["edit", id, "--file", file]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/app\.toml: line 2, column \d+: /)]);
    const refused = await run(["import", file]);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("line 2, column")]);
    expect((await run(["import", join(folder, "none")])).stderr).toContain("the file cannot be read");
  });

  test("launches sandboxes, and tells how they come to be", async () => {
    await api.plane.report(NODE);
    const id = (await did("create", "app", "--label", "team=a")).trim();
    expect(await json("launch", id, "--name", "box")).toMatchObject({ workspace_id: id, status: "provisioning" });
    await api.plane.claim(NODE, 1);
    const outcome = async (
      steps: [step: string, status: string][],
      end: "running" | "failed",
      flags: string[] = [],
    ) => {
      const launching = run(["launch", id, "--label", "team=b", "--wait", ...flags]);
      let box: LeasedBox | undefined;
      await expect
        .poll(async () => (box ??= (await api.plane.claim(NODE, 1)).map((hold) => new LeasedBox(api.plane, hold))[0]))
        .toBeDefined();
      await box?.desiredState();
      await box?.say("creating");
      const events = steps.map(([step, status]) => ({
        type: "provisioning_step" as const,
        atMs: 1,
        data: { step, status },
      }));
      await box?.record({ events });
      await box?.say(end, end === "failed" ? "CloneRepositories: no way" : undefined);
      return await launching;
    };
    const done = await outcome(
      [
        ["PrepareDisk", "in_progress"],
        ["PrepareDisk", "completed"],
      ],
      "running",
    );
    const [sandbox = ""] = done.stdout.split("\n");
    expect(done).toEqual({
      code: 0,
      stdout: `${sandbox}\n`,
      stderr: "PrepareDisk: in progress\nPrepareDisk: completed\n",
    });
    const made = await api.call("GET", `/api/v1/sandboxes/${sandbox}`);
    expect(made.json).toMatchObject({ state: "running", spec: { labels: { team: "b" } } });
    const failed = await outcome([["CloneRepositories", "failed"]], "failed");
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(/^CloneRepositories: failed\nerror: sandbox .* failed: CloneRepositories: no way\n$/);
    const quiet = await outcome([["PrepareDisk", "completed"]], "running", ["--json"]);
    expect([quiet.stderr, JSON.parse(quiet.stdout)]).toEqual(["", expect.objectContaining({ status: "running" })]);
  });
});
