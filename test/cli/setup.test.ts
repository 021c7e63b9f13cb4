import {
  chmodSync,
  existsSync,
  lstatSync,
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
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runChild } from "../../src/cli/cli.test-kit.ts";
import { readAgentFile } from "../../src/knowledge/mcp/setup/agent-file.ts";

/** `engine setup`, in a project and a home of its own. */
const OURS = { command: "engine", args: ["mcp"] };
let folder = "";
let project = "";
let home = "";
let bin = "";

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "engine-setup-")));
  [project, home, bin] = [join(folder, "project"), join(folder, "home"), join(folder, "bin")];
  for (const each of [project, home, bin]) mkdirSync(each);
  writeFileSync(join(bin, "engine"), "#!/bin/sh\n", { mode: 0o755 });
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...argv: readonly string[]) =>
  runChild(["setup", ...argv], { cwd: project, env: { HOME: home, ENGINE_HOME: join(home, ".engine"), PATH: bin } });

async function done(...argv: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...argv);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

async function refused(...argv: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...argv);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^error: [^\n]+\n$/);
  return stderr;
}

describe("engine setup", () => {
  test.for([
    ["claude-code", () => join(project, ".mcp.json")],
    ["cursor", () => join(project, ".cursor", "mcp.json")],
    ["windsurf", () => join(home, ".codeium", "windsurf", "mcp_config.json")],
  ] as const)("%s: makes the file, and leaves it as it is the second time", async ([agent, fileOf]) => {
    const file = fileOf();
    expect(await done(agent)).toContain(`${file} has the engine now`);
    const text = readFileSync(file, "utf8");
    expect(JSON.parse(text)).toEqual({ mcpServers: { engine: OURS } });
    const { ino } = statSync(file);
    expect(await done(agent)).toContain(`${file} has the engine already`);
    expect([readFileSync(file, "utf8"), statSync(file).ino]).toEqual([text, ino]);
    expect(readdirSync(dirname(file))).toEqual([file.slice(dirname(file).length + 1)]);
  });

  test("adds to what is there, byte for byte, and keeps the mode", async () => {
    const file = join(project, ".mcp.json");
    const before = `{
\t"2": 1e400, "1": 12345678901234567890,
\t"mcpServers": {
\t\t"zed": { "command": "z", "env": { "T": "\\u0041}{\\"" } },
\t\t"10": {"url": "http://x"}
\t},
\t"__proto__": {"a": 1},
\t"last": [ ]
}`;
    writeFileSync(file, before);
    chmodSync(file, 0o600);
    await done("claude-code");
    const after = readFileSync(file, "utf8");
    const added = ',\n\t\t"engine": {\n\t\t\t"command": "engine",\n\t\t\t"args": [\n\t\t\t\t"mcp"\n\t\t\t]\n\t\t}';
    expect(after).toBe(before.replace('"http://x"}', `"http://x"}${added}`));
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("puts an entry of ours that differs right, in its place", async () => {
    const file = join(project, ".mcp.json");
    writeFileSync(file, '{"mcpServers": {"a": 1, "engine": {"command": "old"}, "b": 2}}');
    expect(await done("claude-code")).toContain("has the engine anew");
    const { mcpServers } = JSON.parse(readFileSync(file, "utf8")) as { mcpServers: object };
    expect(Object.entries(mcpServers)).toEqual([
      ["a", 1],
      ["engine", OURS],
      ["b", 2],
    ]);
  });

  test.for([
    ["{", "is no JSON"],
    ["\u0000\u0001", "is no JSON"],
    ['{"mcpServers": {"a": 1,}}', "is no JSON"],
    ['{"mcpServers": {} // mine\n}', "is no JSON"],
    ['\ufeff{"mcpServers": {}}', "is no JSON"],
    ['{"a\u001b[31m', "is no JSON"],
    ["[]", "holds no JSON object"],
    ["null", "holds no JSON object"],
    ['"text"', "holds no JSON object"],
    ['{"mcpServers": []}', '"mcpServers" in'],
    ['{"mcpServers": null}', '"mcpServers" in'],
    [Buffer.from([0x7b, 0xff, 0x7d]), "cannot read"],
    [`{"a": "${"x".repeat(1_048_576)}"}`, "longer than 1 MiB"],
  ] as const)("refuses a broken file and leaves it alone: %j", async ([content, said]) => {
    const file = join(project, ".mcp.json");
    writeFileSync(file, content);
    const stderr = await refused("claude-code");
    expect(stderr).toContain(said);
    // oxlint-disable-next-line no-control-regex -- control characters are what it is about
    expect(stderr).not.toMatch(/\u001b/);
    expect(readFileSync(file).equals(Buffer.from(content))).toBe(true);
  });

  test("follows a link within the folder, and none out of it", async () => {
    const [file, real, outside] = [join(project, ".mcp.json"), join(project, "shared.json"), join(folder, "outside")];
    writeFileSync(real, '{"x": 1}');
    symlinkSync("shared.json", file);
    await done("claude-code");
    expect(lstatSync(file).isSymbolicLink()).toBe(true);
    expect(JSON.parse(readFileSync(real, "utf8"))).toEqual({ x: 1, mcpServers: { engine: OURS } });
    rmSync(file);
    writeFileSync(outside, "{}");
    symlinkSync(outside, file);
    expect(await refused("claude-code")).toContain("leads out of");
    expect(readFileSync(outside, "utf8")).toBe("{}");
    rmSync(file);
    symlinkSync(join(folder, "nothing"), file);
    expect(await refused("claude-code")).toContain("is a link to nothing");
    mkdirSync(join(folder, "elsewhere"));
    symlinkSync(join(folder, "elsewhere"), join(project, ".cursor"));
    expect(await refused("cursor")).toContain("leads out of");
    expect(readdirSync(join(folder, "elsewhere"))).toEqual([]);
    rmSync(file);
    mkdirSync(file);
    expect(await refused("claude-code")).toContain("is no regular file");
  });

  test("a folder that cannot be written is told, and nothing is left behind", async () => {
    writeFileSync(join(project, ".cursor"), "a file");
    expect(await refused("cursor")).toMatch(/cannot (read|write) /);
    expect(readdirSync(project)).toEqual([".cursor"]);
  });

  test("--print writes nothing", async () => {
    const { code, stdout, stderr } = await run("cursor", "--print");
    expect([code, stderr]).toEqual([0, `${join(project, ".cursor", "mcp.json")} would be\n`]);
    expect(JSON.parse(stdout)).toEqual({ mcpServers: { engine: OURS } });
    expect(existsSync(join(project, ".cursor"))).toBe(false);
    await done("cursor");
    expect((await run("cursor", "--print")).stderr).toContain("stays as it is");
  });

  test("lists the agents that it knows, and tells others what to configure", async () => {
    const listed = await done("list");
    for (const agent of ["claude-code", "cursor", "windsurf"]) expect(listed).toContain(agent);
    for (const name of ["__proto__", "../x", "\u001b[31m"]) {
      const { code, stdout, stderr } = await run(name);
      expect([code, JSON.parse(stdout)]).toEqual([0, { mcpServers: { engine: OURS } }]);
      // oxlint-disable-next-line no-control-regex -- control characters are what it is about
      expect(stderr).toMatch(/^the agent [^\u001b]* is not known/);
    }
    expect(readdirSync(project)).toEqual([]);
  });

  test("warns where the agent would not find the program", async () => {
    rmSync(join(bin, "engine"));
    const { code, stderr } = await run("claude-code");
    expect([code, stderr]).toEqual([0, "warning: engine is not on the PATH, where Claude Code will look for it\n"]);
  });
});

test("whatever a file holds, all of it stays", async () => {
  const file = join(project, ".mcp.json");
  const servers = fc.dictionary(fc.string(), fc.jsonValue());
  const config = fc.tuple(fc.dictionary(fc.string(), fc.jsonValue()), fc.option(servers, { nil: undefined }));
  const indent = fc.constantFrom(undefined, 1, 2, "\t");
  await fc.assert(
    fc.asyncProperty(config, indent, async ([others, own], space) => {
      const before = { ...others, ...(own === undefined ? {} : { mcpServers: own }) };
      if (own === undefined) delete before["mcpServers"];
      writeFileSync(file, JSON.stringify(before, undefined, space));
      const { text } = await readAgentFile(project, [".mcp.json"]);
      const parsed: unknown = JSON.parse(text);
      const wanted = { ...before, mcpServers: { ...own, engine: OURS } };
      expect(JSON.stringify(parsed)).toBe(JSON.stringify(JSON.parse(JSON.stringify(wanted))));
    }),
    { numRuns: 300 },
  );
});
