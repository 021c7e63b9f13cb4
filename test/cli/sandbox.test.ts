import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { startLiveWorld, type LiveServer, type LiveWorld } from "../sandbox-routes/live.test-kit.ts";
import { startSandboxApi, type SandboxApi } from "../sandbox-routes/sandboxes.test-kit.ts";
import { line } from "../../src/sandbox/control/events/log.test-kit.ts";
import { LeasedBox } from "../../src/sandbox/control/scheduler/scheduler.test-kit.ts";
import { runHere, type Outcome } from "../../src/cli/cli.test-kit.ts";
import { CutWire, SeenOutput } from "../../src/cli/sandbox.test-kit.ts";

let api: SandboxApi;
beforeEach(async () => {
  api = await startSandboxApi();
});
afterEach(() => api.close());

const run = (command: string, ...argv: string[]): Promise<Outcome> =>
  runHere(["sandbox", command, ...argv, "--server", api.url], { env: { ENGINE_TOKEN: "ann" } });

async function json(command: string, ...argv: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await run(command, ...argv, "--json");
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

describe("engine sandbox create", () => {
  test("says all that its flags say", async () => {
    const folder = await mkdtemp(join(tmpdir(), "engine-cli-sandbox-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const script = join(folder, "set-up.sh");
    await writeFile(script, "apt-get update\n");
    const { code, stdout, stderr } = await run(
      "create",
      "--provider",
      "codex",
      "--name",
      "dev",
      "--image",
      "debian",
      "--cpus",
      "1.5",
      "--memory",
      "256",
      "--disk",
      "512",
      "--processes",
      "64",
      "--persistent",
      "--timeout",
      "60",
      "--env",
      "A=1=2",
      "--env",
      "B=",
      "--label",
      "team=x",
      "--allow-host",
      "github.com",
      "--allow-host",
      "*.npmjs.org",
      "--volume",
      "cache:/cache:ro",
      "--volume",
      "out:/out",
      "--port",
      "8080",
      "--script",
      script,
      "--detach",
    );
    expect([code, stderr]).toEqual([0, ""]);
    const { json: made } = await api.call("GET", `/api/v1/sandboxes/${stdout.trim()}`);
    expect(made["state"]).toBe("pending");
    expect(made["spec"]).toEqual({
      agent_provider: "codex",
      name: "dev",
      image: "debian",
      resource_limits: { cpu_cores: 1.5, memory_mb: 256, disk_mb: 512, max_processes: 64 },
      persistence: "persistent",
      network: { enabled: true, allowed_hosts: ["github.com", "*.npmjs.org"], dns_servers: [] },
      env_vars: { A: "1=2", B: "" },
      volumes: [
        { name: "cache", mount_path: "/cache", read_only: true, size_mb: 1_024 },
        { name: "out", mount_path: "/out", read_only: false, size_mb: 1_024 },
      ],
      ports: [{ port: 8080, name: null }],
      git_repos: [],
      credentials: [],
      skills: [],
      subagents: [],
      provisioning_scripts: [{ name: "set-up.sh", script: "apt-get update\n", user: "root", timeout_secs: 600 }],
      labels: { team: "x" },
      timeout_secs: 60,
      agent_config: null,
      binaries: [],
      pre_commands: [],
      working_directory: null,
      exclusions: [],
    });
  });

  test("names credentials, with what they are for", async () => {
    const asked = (text: string) => run("create", "--credential", text, "--detach");
    expect((await asked("gone:TOKEN@a.example,b.example")).stderr).toMatch(/there is no credential "gone"/);
    const { code, stderr } = await asked(":TOKEN");
    expect([code, stderr]).toEqual([2, expect.stringContaining("--credential takes id, id:VARIABLE")]);
  });

  test("waits until it runs, or says why it never will", async () => {
    await api.plane.report("node-1");
    const creating = [run("create"), run("create", "--json")];
    const holds: Awaited<ReturnType<typeof api.plane.claim>> = [];
    await expect
      .poll(async () => {
        holds.push(...(await api.plane.claim("node-1", 2)));
        return holds.length;
      })
      .toBe(2);
    const [first, second] = holds.map((hold) => new LeasedBox(api.plane, hold));
    for (const box of [first, second]) {
      await box?.desiredState();
      await box?.say("creating");
    }
    await first?.say("running");
    await second?.say("failed", "script set-up.sh ended with exit code 1");
    const outcomes = (await Promise.all(creating)).sort((a, b) => (a.code ?? 0) - (b.code ?? 0));
    expect(outcomes.map(({ code }) => code)).toEqual([0, 1]);
    expect(outcomes[0]?.stdout).toMatch(/^[0-9a-f-]{36}\n$|"state": "running"/);
    expect(outcomes[1]?.stderr).toMatch(/^error: sandbox \S+ failed: script set-up.sh ended with exit code 1\n$/);
  });

  test.each([
    [["--env", "nonsense"], '--env takes name=value, not "nonsense"'],
    [["--label", "=x"], '--label takes name=value, not "=x"'],
    [["--memory", "1GiB"], '--memory takes a number, not "1GiB"'],
    [["--port", "web"], '--port takes a number, not "web"'],
    [["--volume", "cache"], '--volume takes name:/path or name:/path:ro, not "cache"'],
  ])("refuses %j before it asks anybody", async (argv, message) => {
    expect(await run("create", ...argv)).toEqual({ code: 2, stdout: "", stderr: `error: ${message}\n` });
  });

  test("hands on what the server refuses", async () => {
    const messages = await Promise.all(
      [
        ["--provider", "clippy"],
        ["--memory", "1"],
        ["--script", "/nonexistent/x"],
      ].map(async (argv) => {
        const { code, stderr } = await run("create", ...argv);
        return `${code} ${stderr}`;
      }),
    );
    expect(messages[0]).toMatch(/^1 error: there is no such agent provider; there are claude-code, /);
    expect(messages[1]).toMatch(/^1 error: resource_limits\.memory_mb: /);
    expect(messages[2]).toMatch(/^1 error: the script cannot be read: ENOENT/);
  });
});

describe("engine sandbox", () => {
  test("lists, filters and shows", async () => {
    expect((await run("list")).stdout).toBe("there are no sandboxes\n");
    const { id: old } = await api.make({ name: "old", labels: { team: "x", tier: "1" } }, "creating", "running");
    const { id: young } = await api.make({ agent_provider: "opencode", persistence: "persistent" });
    const { stdout } = await run("ls");
    expect(stdout).toMatch(/^ID +NAME +STATE +PERSISTENCE +PROVIDER +CREATED *\n/);
    expect(stdout).toMatch(
      new RegExp(`${young} +- +pending +persistent +opencode .*\n${old} +old +running +ephemeral +codex `),
    );
    const ids = async (...more: string[]) => ((await json("list", ...more)) as { id: string }[]).map(({ id }) => id);
    expect(await ids()).toEqual([young, old]);
    expect(await ids("--state", "running")).toEqual([old]);
    expect(await ids("--provider", "opencode")).toEqual([young]);
    expect(await ids("--label", "team=x", "--label", "tier=1")).toEqual([old]);
    expect(await ids("--label", "team=x", "--label", "tier=2")).toEqual([]);
    expect((await run("list", "--state", "lost")).code).toBe(2);
    expect(await json("show", old)).toMatchObject({ id: old, spec: { name: "old" }, reason: null });
    expect((await run("show", old)).stdout).toContain("state               running\n");
    expect(await run("show", "nothing")).toEqual({
      code: 1,
      stdout: "",
      stderr: "error: there is no sandbox nothing\n",
    });
  });

  test("shows what one uses", async () => {
    const figures = {
      cpu_usage_percent: 12.5,
      memory_used_mb: 3,
      memory_limit_mb: 1_024,
      disk_used_mb: 4,
      disk_limit_mb: 4_096,
      network_rx_bytes: 5,
      network_tx_bytes: 6,
    };
    const { id } = await api.make({}, "creating", "running");
    api.onCall.handle = async () => ({ result: figures });
    expect(await json("stats", id)).toEqual(figures);
    expect((await run("stats", id)).stdout).toContain("cpu usage percent   12.5\n");
  });

  test("stops, starts, pauses and resumes", async () => {
    const { id, box } = await api.make({ persistence: "persistent" }, "creating", "running");
    const acts = async (command: string, state: Parameters<typeof box.say>[0]) => {
      const asked = run(command, id);
      const wanted = { pause: "paused", resume: "running", stop: "stopped" }[command];
      await expect.poll(async () => (await box.desiredState()).wanted).toBe(wanted);
      await box.say(state);
      return (await asked).stdout;
    };
    expect(await acts("pause", "paused")).toBe(`${id} is paused\n`);
    expect(await acts("resume", "running")).toBe(`${id} is running\n`);
    const refused = await run("start", id);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^error: the sandbox is running: /)]);
    expect(await acts("stop", "stopped")).toBe(`${id} is stopped\n`);
  });

  test("deletes several, and stops at one that is not there", async () => {
    const [{ id: first }, { id: second }] = [await api.make(), await api.make()];
    expect((await run("rm", first, second)).stdout).toBe(`deleted ${first}\ndeleted ${second}\n`);
    const { id: third } = await api.make();
    const outcome = await run("rm", third, first);
    expect(outcome).toEqual({
      code: 1,
      stdout: `deleted ${third}\n`,
      stderr: `error: there is no sandbox ${first}\n`,
    });
    const { id: last } = await api.make();
    expect(await json("rm", last)).toEqual({ deleted: [last] });
  });
});

describe("engine sandbox logs", () => {
  let world: LiveWorld;
  let server: LiveServer;
  beforeAll(async () => {
    world = await startLiveWorld();
    server = await world.startServer();
  });
  afterAll(() => world.close());

  const logs = (id: string, flags: readonly string[] = [], url = server.url, stdout?: SeenOutput) =>
    runHere(["sandbox", "logs", id, ...flags, "--server", url], {
      env: { ENGINE_TOKEN: "t" },
      ...(stdout !== undefined && { stdout }),
    });
  const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => line(`line ${from + i}`));
  const text = (from: number, to: number) =>
    lines(from, to)
      .map(({ data }) => `${String(data["line"])}\n`)
      .join("");

  test("prints the newest lines, as text or JSON", async () => {
    const id = await world.newSandbox();
    await world.append(id, [...lines(1, 120), line("bell \u0007")]);
    expect((await logs(id)).stdout).toBe(`${text(22, 120)}bell \\u0007\n`);
    expect((await logs(id, ["--tail", "2"])).stdout).toBe("line 120\nbell \\u0007\n");
    const [one] = (await logs(id, ["--tail", "2", "--json"])).stdout.split("\n");
    expect(JSON.parse(one ?? "")).toMatchObject({ seq: 120, stream: "stdout", line: "line 120" });
    const bad = await logs(id, ["--tail", "many"]);
    expect([bad.code, bad.stderr]).toEqual([1, expect.stringContaining("accepted are integers from 0 to 10000")]);
    expect((await logs("nothing")).stderr).toBe("error: there is no sandbox nothing\n");
  });

  test("misses none that is written while it has lost the connection, also before the first", async () => {
    for (const tail of ["0", "2"]) {
      const id = await world.newSandbox();
      // Events that are no lines have no part in it.
      await world.append(id, [...lines(1, 3), { type: "stats", atMs: 1, data: {} }]);
      const wire = new CutWire(server.url);
      const stdout = new SeenOutput();
      const following = logs(id, ["--follow", "--tail", tail], await wire.open(), stdout);
      const past = tail === "0" ? "" : text(2, 3);
      await expect.poll(() => stdout.text()).toBe(past);
      await expect.poll(() => wire.said).toContain("retry: ");
      // The client has it a moment later.
      await new Promise((resolve) => setTimeout(resolve, 200));
      wire.breakAll();
      await world.append(id, lines(4, 200));
      await expect.poll(() => stdout.text()).toBe(`${past}${text(4, 200)}`);
      const sql = "UPDATE sandboxes SET deleted_at_ms = 1 WHERE id = ?";
      await world.catalog.records.transact([{ sql, values: [id] }]);
      await world.catalog.signals.send("sandbox_events", id);
      expect((await following).code).toBe(0);
      wire.close();
    }
  });

  test("follows them to the end of the sandbox, over connections that break, without loss or repetition", async () => {
    const id = await world.newSandbox();
    await world.append(id, lines(1, 300));
    const wire = new CutWire(server.url);
    wire.cuts = [20_000, 9_000];
    const stdout = new SeenOutput();
    const following = logs(id, ["--follow", "--tail", "250"], await wire.open(), stdout);
    await expect.poll(() => stdout.text()).toBe(text(51, 300));
    await world.append(id, [{ type: "stats", atMs: 1, data: {} }, ...lines(301, 302)]);
    await expect.poll(() => stdout.text()).toBe(text(51, 302));
    expect(wire.connections).toBe(3);
    // The server sends its clients elsewhere: not the end.
    const next = await world.startServer();
    wire.leadTo(next.url);
    server.events.close();
    await server.close();
    await expect.poll(() => next.events.following).toBe(1);
    await world.append(id, lines(303, 303));
    await expect.poll(() => stdout.text()).toBe(text(51, 303));
    const sql = "UPDATE sandboxes SET deleted_at_ms = 1 WHERE id = ?";
    await world.catalog.records.transact([{ sql, values: [id] }]);
    await world.catalog.signals.send("sandbox_events", id);
    expect((await following).code).toBe(0);
    wire.close();
  });
});
