import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runChild, runHere } from "../../src/cli/cli.test-kit.ts";
import { planFolder } from "../../src/knowledge/mcp/install/owned-folder.ts";
import { pluginFiles } from "../../src/knowledge/mcp/install/plugin-files.ts";
import { SKILLS } from "../../src/knowledge/mcp/install/skills.ts";
import { skillText } from "../../src/knowledge/skills/shipped/skill.ts";

const FILES = [
  ".claude-plugin/plugin.json",
  ".engine-files.json",
  ".mcp.json",
  "LICENSE",
  "README.md",
  "commands/recall.md",
  "commands/remember.md",
  "hooks/hooks.json",
  "skills/engine-data/SKILL.md",
];
const SERVER = "http://127.0.0.1:9";

let folder = "";
let home = "";
let target = "";
let bin = "";
let env: Record<string, string>;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "engine-plugin-")));
  [home, target, bin] = [join(folder, "home"), join(folder, "plugin"), join(folder, "bin")];
  for (const each of [home, bin]) mkdirSync(each);
  writeFileSync(join(bin, "engine"), "#!/bin/sh\n", { mode: 0o755 });
  env = { ENGINE_HOME: home, PATH: bin };
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...argv: readonly string[]) => runHere(["install-plugin", ...argv], { env });

async function done(...argv: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...argv);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

async function refused(...argv: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...argv);
  expect([code, stdout]).toEqual([code === 2 ? 2 : 1, ""]);
  expect(stderr).toMatch(/^error: [^\n]+\n$/);
  return stderr;
}

/** As `engine connect` and `engine login` save it. */
function save(client: object | string): void {
  writeFileSync(join(home, "client.json"), typeof client === "string" ? client : JSON.stringify(client));
}

const fileOf = (path: string) => join(target, path);
const textOf = (path: string) => readFileSync(fileOf(path), "utf8");
const jsonOf = (path: string): unknown => JSON.parse(textOf(path));
const filesIn = (at: string): string[] =>
  readdirSync(at, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(at.length + 1))
    .toSorted();

describe("engine install-plugin", () => {
  test("without a saved server its tools are those of engine mcp", async () => {
    expect(await done("--target", target)).toContain(`${target} has the plugin; its server is \`engine mcp\``);
    expect(filesIn(target)).toEqual(FILES);
    expect(jsonOf(".mcp.json")).toEqual({ mcpServers: { engine: { command: "engine", args: ["mcp"] } } });
    expect(jsonOf(".claude-plugin/plugin.json")).toMatchObject({ name: "engine-memory", version: "1.2.3" });
    expect(textOf("LICENSE")).toBe(readFileSync("LICENSE", "utf8"));
    expect(textOf("skills/engine-data/SKILL.md")).toBe(skillText(SKILLS.data));
    expect(textOf("README.md").split(/\s+/).length).toBeGreaterThan(40);
    for (const command of ["recall", "remember"]) {
      expect(textOf(`commands/${command}.md`)).toMatch(
        /^---\ndescription: [^\n]+\nargument-hint: <\w+>\n---\n[^]*\$ARGUMENTS\n$/,
      );
    }
    const inodes = FILES.map((path) => statSync(fileOf(path)).ino);
    expect(await done("--target", target)).toContain("has the plugin already");
    expect(FILES.map((path) => statSync(fileOf(path)).ino)).toEqual(inodes);
  });

  test("with a saved server it is that one; a token is its user's alone to read", async () => {
    save({ url: SERVER, token: "secret-of-the-test" });
    const before = process.umask(0);
    try {
      expect(await done("--target", target)).not.toContain("secret-of-the-test");
    } finally {
      process.umask(before);
    }
    const entry = { type: "http", url: `${SERVER}/mcp/v1` };
    const withToken = { mcpServers: { engine: { ...entry, headers: { Authorization: "Bearer secret-of-the-test" } } } };
    expect(jsonOf(".mcp.json")).toEqual(withToken);
    expect(statSync(fileOf(".mcp.json")).mode & 0o777).toBe(0o600);
    chmodSync(fileOf(".mcp.json"), 0o644);
    await done("--target", target);
    expect(statSync(fileOf(".mcp.json")).mode & 0o777).toBe(0o600);
    for (const path of FILES.filter((path) => path !== ".mcp.json")) expect(textOf(path)).not.toContain("secret-of");
    save({ url: SERVER });
    await done("--target", target);
    expect(jsonOf(".mcp.json")).toEqual({ mcpServers: { engine: entry } });
    // What only the environment has is in no file.
    env = { ...env, ENGINE_TOKEN: "secret-of-the-environment", ENGINE_SERVER_URL: "http://127.0.0.1:10" };
    await done("--target", target);
    expect(jsonOf(".mcp.json")).toEqual({ mcpServers: { engine: entry } });
  });

  test("a session that ends, a damaged file and a variable of the agent are refused", async () => {
    const session = { refresh_token: "r", expires_at: "2030-01-01T00:00:00Z" };
    save({ url: SERVER, token: "secret-of-the-test", ...session });
    expect(await refused("--target", target)).toContain("ends too soon");
    save("{");
    expect(await refused("--target", target)).toContain("client.json is damaged");
    save({ url: SERVER, token: "a${HOME}" });
    expect(await refused("--target", target)).toContain("would take for a variable");
    expect(existsSync(target)).toBe(false);
  });

  test("a folder of somebody else needs --force, which leaves the other files", async () => {
    mkdirSync(target);
    await done("--target", target);
    rmSync(target, { recursive: true });
    mkdirSync(target);
    for (const name of ["mine", "README.md"]) writeFileSync(fileOf(name), "mine");
    expect(await refused("--target", target)).toContain("exists and was not written by this program");
    expect(filesIn(target)).toEqual(["README.md", "mine"]);
    await done("--target", target, "--force");
    expect(filesIn(target)).toEqual([...FILES, "mine"].toSorted());
    expect([textOf("mine"), textOf("README.md")]).toEqual(["mine", expect.stringContaining("# engine-memory")]);
    expect(await done("--target", target)).toContain("already");
  });

  test("a file of ours that somebody changed stays, unless --force is given", async () => {
    await done("--target", target);
    const hooks = textOf("hooks/hooks.json");
    writeFileSync(fileOf("hooks/hooks.json"), "{}");
    rmSync(fileOf("LICENSE"));
    expect(await refused("--target", target)).toContain("hooks/hooks.json was changed");
    expect([textOf("hooks/hooks.json"), existsSync(fileOf("LICENSE"))]).toEqual(["{}", false]);
    await done("--target", target, "--force");
    expect([textOf("hooks/hooks.json"), existsSync(fileOf("LICENSE"))]).toEqual([hooks, true]);
  });

  test("a run that was killed in the middle is finished by the next", async () => {
    await done("--target", target);
    const list = fileOf(".engine-files.json");
    save({ url: SERVER });
    // The list is there before the files: of those one is new, and the others are as they were.
    const before = textOf(".mcp.json");
    const plan = await planFolder(
      target,
      pluginFiles({ version: "2.0.0", licence: "another", server: { url: SERVER } }),
      { force: false, isOursAlone: true, advice: "" },
    );
    writeFileSync(list, plan.during);
    writeFileSync(fileOf("LICENSE"), "another");
    expect(textOf(".mcp.json")).toBe(before);
    await done("--target", target);
    expect(textOf(".mcp.json")).toContain(SERVER);
    expect(textOf("LICENSE")).toBe(readFileSync("LICENSE", "utf8"));
  });

  test("nothing is written through links below the folder, also with --force", async () => {
    const outside = join(folder, "outside");
    mkdirSync(outside);
    for (const path of ["hooks", "skills/engine-data", ".claude-plugin", "README.md", ".engine-files.json"]) {
      mkdirSync(dirname(fileOf(path)), { recursive: true });
      symlinkSync(outside, fileOf(path));
      expect(await refused("--target", target, "--force")).toMatch(/is no (folder|regular file); nothing was changed/);
      expect([readdirSync(outside), filesIn(target)]).toEqual([[], [path]]);
      rmSync(target, { recursive: true });
    }
    symlinkSync(join(folder, "nothing"), target);
    expect(await refused("--target", target, "--force")).toContain("is no folder");
    rmSync(target);
    // The folder itself may be a link of its user's.
    symlinkSync(outside, target);
    await done("--target", join(folder, "x", "..", "plugin"));
    expect(filesIn(outside)).toEqual(FILES);
    expect(await refused("--target", "/dev/null/\u001b[31m")).not.toContain("\u001b");
    expect(await refused("--target", " ")).toContain("names no folder");
  });

  test("by default it is where the agent loads it from", async () => {
    const user = { HOME: join(folder, "user"), ENGINE_HOME: home };
    mkdirSync(user.HOME);
    const { code, stdout } = await runChild(["install-plugin"], { env: user });
    expect(code).toBe(0);
    expect(stdout).toContain("the agent loads it when it starts next");
    expect(filesIn(join(user.HOME, ".claude/skills/engine-memory"))).toEqual(FILES);
  });

  test("warns where the hooks would not find the program", async () => {
    rmSync(join(bin, "engine"));
    expect((await run("--target", target)).stderr).toContain("warning: engine is not on the PATH");
  });
});

describe("what a hook runs", () => {
  /** Every command of `hooks.json`, through a shell as the agent runs it. */
  async function runHooks(): Promise<{ event: string; status: number | null; stdout: string; stderr: string }[]> {
    await run("--target", target);
    const { hooks } = jsonOf("hooks/hooks.json") as { hooks: Record<string, { hooks: { command: string }[] }[]> };
    return Object.entries(hooks).map(([event, [group]]) => {
      const options = { env: { HOME: home, PATH: `${bin}:/usr/bin:/bin` }, input: "{}", encoding: "utf8" } as const;
      const { status, stdout, stderr } = spawnSync("/bin/sh", ["-c", group?.hooks[0]?.command ?? ""], options);
      return { event, status, stdout, stderr };
    });
  }
  const EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"];

  test("names its event", async () => {
    writeFileSync(join(bin, "engine"), '#!/bin/sh\necho "$@"\necho noise >&2\n');
    const outcomes = await runHooks();
    expect(outcomes.map(({ event }) => event)).toEqual(EVENTS);
    for (const { event, status, stdout, stderr } of outcomes) {
      expect([status, stdout, stderr]).toEqual([0, `plugin-hook ${event}\n`, ""]);
    }
  });

  test.for([
    ["a program that is missing", undefined],
    ["a program without the command", "#!/bin/sh\necho 'error: unknown command' >&2\nexit 2\n"],
    ["a program that crashes", "#!/bin/sh\nkill -9 $$\n"],
  ] as const)("%s says nothing and blocks nothing", async ([, program]) => {
    rmSync(join(bin, "engine"));
    if (program !== undefined) writeFileSync(join(bin, "engine"), program, { mode: 0o755 });
    for (const { status, stdout, stderr } of await runHooks()) expect([status, stdout, stderr]).toEqual([0, "", ""]);
  });
});
