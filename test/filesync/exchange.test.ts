import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { passResult, type PassResult } from "../../src/knowledge/filesync/file-sync.ts";
import { StdioAgent } from "../api/mcp-stdio.test-kit.ts";
import { CalledServices, type Json } from "../api/services.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { cleanEnv, startEngine } from "../support/engine.ts";

const PROGRAM = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

let cloud: CalledServices<"ann">;
beforeAll(async () => {
  cloud = await CalledServices.start([["ann", "write"]]);
});
afterAll(() => cloud.close());

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A machine with an engine, and a coding agent with memory files of one project. */
class Machine {
  readonly root = mkdtempSync(join(tmpdir(), "engine-machine-"));
  readonly files = join(this.root, "agent", "projects", "-work-web", "memory");

  constructor() {
    folders.push(this.root);
    mkdirSync(this.files, { recursive: true });
  }

  write(name: string, body: string): void {
    writeFileSync(
      join(this.files, name),
      `---\nname: ${name.slice(0, -3)}\nmetadata:\n  type: project\n---\n\n${body}\n`,
    );
  }

  read(name: string): string {
    return readFileSync(join(this.files, name), "utf8");
  }

  get env(): Record<string, string> {
    return {
      ENGINE_HOME: join(this.root, "home"),
      ENGINE_CA_HOME: join(this.root, "agent"),
      ENGINE_CA_QUIET_WINDOW: "0",
    };
  }

  async sync(more: Record<string, string> = {}, ...argv: string[]): Promise<PassResult & { code: number | null }> {
    const token = cloud.tokens.get("ann") ?? "";
    const env = { ...this.env, ENGINE_CLOUD_URL: cloud.url, ENGINE_CLOUD_TOKEN: token, ...more };
    const { code, stdout, stderr } = await runHere(["sync", "--json", ...argv], { env });
    if (stderr !== "") throw new Error(stderr);
    return { ...passResult.parse(JSON.parse(stdout)), code };
  }
}

async function onServer(): Promise<Json[]> {
  const answer = await cloud.json("ann", "GET", "/v1/agent/memory/changes");
  return answer["memory_nodes"] as Json[];
}

describe("two machines and a server", () => {
  test("come to say the same, and then nothing goes back and forth", async () => {
    const [one, two] = [new Machine(), new Machine()];
    one.write("port.md", "The gateway listens on 8443");
    expect((await one.sync()).cloud).toEqual({ pulled: 0, pushed: 1 });
    // The file is on the other machine as soon as its memory matters there.
    const other = await two.sync({ ENGINE_CA_PROMOTE_MIN_IMPORTANCE: "0.5" });
    expect([other.cloud, other.projects[0]?.done.map(({ file }) => file)]).toEqual([
      { pulled: 1, pushed: 0 },
      ["port.md", "MEMORY.md"],
    ]);
    expect(two.read("port.md")).toContain("The gateway listens on 8443");
    two.write("port.md", "The gateway listens on 9443");
    expect((await two.sync()).cloud).toEqual({ pulled: 0, pushed: 1 });
    const back = await one.sync();
    expect([back.cloud, back.projects[0]?.done]).toEqual([
      { pulled: 1, pushed: 0 },
      [{ file: "port.md", action: "written" }],
    ]);
    expect(one.read("port.md")).toContain("The gateway listens on 9443");
    const versions = (await onServer()).map(({ id, version }) => [id, version]);
    for (const machine of [one, two, one, two]) {
      const { cloud: exchanged, projects } = await machine.sync();
      expect([exchanged, projects[0]?.done]).toEqual([{ pulled: 0, pushed: 0 }, []]);
    }
    expect((await onServer()).map(({ id, version }) => [id, version])).toEqual(versions);
  });

  test("exchange one realm alone, and never that of one user", async () => {
    const machine = new Machine();
    const made = [
      { content: "For all of us", realm: "project:shared" },
      { content: "Of another project", realm: "project:other" },
      { content: "Of one user", realm: "user:somebody" },
    ];
    const home = await StdioAgent.start(machine.env["ENGINE_HOME"] ?? "", "2026-07-28", machine.env);
    for (const memory of made) await home.client.callTool({ name: "save_memory", arguments: memory });
    await home.close();
    expect((await machine.sync({ ENGINE_SYNC_REALM: "project:shared" }, "--cloud-only")).cloud?.pushed).toBe(1);
    expect((await machine.sync({}, "--cloud-only")).cloud?.pushed).toBe(1);
    const contents = (await onServer()).map(({ content }) => content);
    expect(contents).toEqual(expect.arrayContaining(["For all of us", "Of another project"]));
    expect(contents).not.toContain("Of one user");
  });
});

test("a machine whose catalog was made anew gets everything back", async () => {
  const machine = new Machine();
  machine.write("a.md", "One");
  await machine.sync();
  const other = await CalledServices.start<"ann">([["ann", "write"]]);
  try {
    const asked: Record<string, string> = {
      ENGINE_CLOUD_URL: other.url,
      ENGINE_CLOUD_TOKEN: other.tokens.get("ann") ?? "",
    };
    expect((await machine.sync(asked)).cloud).toEqual({ pulled: 0, pushed: expect.any(Number) });
    rmSync(join(machine.env["ENGINE_HOME"] ?? "", "catalog.db"));
    rmSync(machine.files, { recursive: true });
    const again = await machine.sync(asked);
    expect(again.cloud?.pulled).toBeGreaterThan(0);
    expect(again.cloud?.pushed).toBe(0);
  } finally {
    await other.close();
  }
});

describe("a server that cannot be asked", () => {
  test("leaves the files in step, and is told of", async () => {
    const machine = new Machine();
    machine.write("a.md", "One");
    const gone = await machine.sync({ ENGINE_CLOUD_URL: "http://127.0.0.1:9" });
    expect([gone.code, gone.projects[0]?.done]).toEqual([1, [{ file: "a.md", action: "saved" }]]);
    expect(gone.cloud?.error).toContain("ECONNREFUSED");
    const refused = await machine.sync({ ENGINE_CLOUD_TOKEN: "nobody-has-this-token" });
    expect([refused.code, refused.cloud?.error]).toEqual([1, expect.stringContaining("answered 401")]);
    expect((await machine.sync()).cloud).toMatchObject({ pushed: 1 });
  });

  test("is not believed what is no answer", async () => {
    const strange = createServer((_request, response) => response.end('{"memory_nodes": [{"id": 7}]}'));
    await new Promise<void>((resolve) => strange.listen(0, "127.0.0.1", resolve));
    const { port } = strange.address() as { port: number };
    try {
      const { code, cloud: result } = await new Machine().sync({ ENGINE_CLOUD_URL: `http://127.0.0.1:${port}` });
      expect([code, result?.error]).toEqual([1, expect.stringContaining("is it an engine of this version?")]);
    } finally {
      strange.close();
    }
  });
});

test("engine mcp syncs files when it opens the engine, unless it is told not to", async () => {
  const machine = new Machine();
  machine.write("a.md", "The zebra sleeps at noon");
  const recalled = async (more: Record<string, string>) => {
    const agent = await StdioAgent.start(machine.env["ENGINE_HOME"] ?? "", "2026-07-28", { ...machine.env, ...more });
    try {
      await eventually(() =>
        (more["ENGINE_CA_SYNC_ON_MCP"] === "0" ? /answered by this process/ : /files of coding agents synced/).test(
          agent.log,
        ),
      );
      const { structuredContent } = await agent.client.callTool({
        name: "recall_memory",
        arguments: { query: "zebra" },
      });
      return (structuredContent as { memories: unknown[] }).memories.length;
    } finally {
      await agent.close();
    }
  };
  expect(await recalled({ ENGINE_CA_SYNC_ON_MCP: "0" })).toBe(0);
  expect(await recalled({})).toBe(1);
});

test("a command that asks the engine of the home one thing leaves files alone", async () => {
  const machine = new Machine();
  machine.write("a.md", "The zebra sleeps at noon");
  const env = { ...cleanEnv(), ...machine.env };
  const asked = spawnSync(process.execPath, [PROGRAM, "recall", "zebra"], { env, encoding: "utf8" });
  expect([asked.status, asked.stderr, asked.stdout]).toEqual([0, "", "nothing that is remembered fits\n"]);
  const { projects } = await machine.sync({}, "--cc-only");
  expect(projects[0]?.done).toEqual([{ file: "a.md", action: "saved" }]);
});

test("engine serve syncs files as they change, where that is asked for", async () => {
  const machine = new Machine();
  const env = { ...machine.env, ENGINE_CA_WATCH: "1", ENGINE_CA_SYNC_POLL_SECS: "1", ENGINE_AUTH_BACKEND: "env" };
  const engine = await startEngine({ home: machine.env["ENGINE_HOME"] ?? "", env });
  try {
    const saved = async () => {
      const answer = (await (await fetch(`${engine.url}/v1/agent/memory/changes`)).json()) as { memory_nodes: Json[] };
      return answer.memory_nodes.map(({ content }) => content);
    };
    machine.write("a.md", "One");
    await eventually(async () => (await saved()).join() === "One");
    machine.write("a.md", "Another");
    await eventually(async () => (await saved()).join() === "Another");
  } finally {
    expect((await engine.stop()).code).toBe(0);
  }
});
