import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { CommanderError, type Command } from "commander";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FEATURE_ROWS } from "../../roles/features.test-kit.ts";
import { FEATURES } from "../../roles/features.ts";
import { runChild, runHere } from "../../src/cli/cli.test-kit.ts";
import { buildProgram } from "../../src/cli/program.ts";
import { CliContext } from "../../src/client/context.ts";
import { OPTIONS } from "../../src/config/options.ts";
import { variablesOf } from "../../src/config/secret-file.ts";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/random.ts";
import { SKILLS } from "../../src/knowledge/mcp/install/skills.ts";
import { TOOLS } from "../../src/knowledge/mcp/tools.ts";
import { skillText } from "../../src/knowledge/skills/shipped/skill.ts";

let folder = "";
let home = "";
let target = "";

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "engine-skill-")));
  [home, target] = [join(folder, "home"), join(folder, "skills")];
  mkdirSync(home);
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...argv: readonly string[]) => runHere(["install-skill", ...argv]);
/** With a home of its own. */
const runAtHome = (...argv: readonly string[]) =>
  runChild(["install-skill", ...argv], { cwd: folder, env: { HOME: home, ENGINE_HOME: join(home, ".engine") } });

async function refused(...argv: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...argv);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^error: [^\n]+\n$/);
  return stderr;
}

const fileOf = (name: string) => join(target, name, "SKILL.md");

describe("engine install-skill", () => {
  test.for([
    [[], ["engine-data"]],
    [["--which", "data"], ["engine-data"]],
    [["--which", "deploy"], ["engine-deploy"]],
    [
      ["--which", "both"],
      ["engine-data", "engine-deploy"],
    ],
  ] as const)("%j writes %j, and leaves it as it is the second time", async ([flags, names]) => {
    const first = await run("--target", target, ...flags);
    expect([first.code, first.stderr]).toEqual([0, ""]);
    expect(readdirSync(target).toSorted()).toEqual(names);
    for (const name of names) {
      expect(readFileSync(fileOf(name), "utf8")).toMatch(
        new RegExp(`^---\nname: ${name}\ndescription: ".+"\n---\n\n# `),
      );
      expect(first.stdout).toContain(`${fileOf(name)} is written`);
      expect(statSync(fileOf(name)).mode & 0o777).toBe(0o644);
    }
    const inodes = names.map((name) => statSync(fileOf(name)).ino);
    expect((await run("--target", target, ...flags)).stdout).toContain("is there already");
    expect(names.map((name) => statSync(fileOf(name)).ino)).toEqual(inodes);
  });

  test("replaces what an earlier version wrote, and never what somebody changed or wrote", async () => {
    await run("--target", target);
    const [file, list] = [fileOf("engine-data"), join(target, "engine-data", ".engine-files.json")];
    const wanted = readFileSync(file, "utf8");
    writeFileSync(file, `${wanted}mine\n`);
    expect(await refused("--target", target)).toContain("SKILL.md was changed; move it away");
    expect(readFileSync(file, "utf8")).toBe(`${wanted}mine\n`);
    // As if that had been ours.
    const { createHash } = await import("node:crypto");
    const hash = createHash("sha256").update(`${wanted}mine\n`).digest("hex");
    writeFileSync(list, JSON.stringify({ files: { "SKILL.md": [hash] } }));
    expect((await run("--target", target)).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe(wanted);
    for (const broken of [
      "",
      "{",
      "[]",
      '{"files":null}',
      '{"files":{"SKILL.md":"x"}}',
      '{"files":{"__proto__":[]}}',
    ]) {
      writeFileSync(file, "other");
      writeFileSync(list, broken);
      expect(await refused("--target", target)).toContain("was not written by this program");
      expect(readFileSync(file, "utf8")).toBe("other");
    }
  });

  test("one file of somebody else keeps all from being written", async () => {
    mkdirSync(join(target, "engine-deploy"), { recursive: true });
    writeFileSync(fileOf("engine-deploy"), "mine");
    await refused("--target", target, "--which", "both");
    expect(readdirSync(target)).toEqual(["engine-deploy"]);
    expect(readdirSync(join(target, "engine-deploy"))).toEqual(["SKILL.md"]);
  });

  test("links and things in the way are refused, and nothing is written through them", async () => {
    const outside = join(folder, "outside");
    mkdirSync(outside);
    mkdirSync(target);
    symlinkSync(outside, join(target, "engine-data"));
    expect(await refused("--target", target)).toContain("engine-data is no folder");
    expect(readdirSync(outside)).toEqual([]);
    rmSync(join(target, "engine-data"));
    mkdirSync(join(target, "engine-data"));
    writeFileSync(join(outside, "file"), "kept");
    symlinkSync(join(outside, "file"), fileOf("engine-data"));
    expect(await refused("--target", target)).toContain("SKILL.md is no regular file");
    rmSync(fileOf("engine-data"));
    symlinkSync(join(outside, "nothing"), fileOf("engine-data"));
    await refused("--target", target);
    rmSync(fileOf("engine-data"));
    symlinkSync(join(outside, "file"), join(target, "engine-data", ".engine-files.json"));
    await refused("--target", target);
    expect([readFileSync(join(outside, "file"), "utf8"), readdirSync(outside)]).toEqual(["kept", ["file"]]);
    writeFileSync(join(folder, "a file"), "");
    expect((await run("--target", join(folder, "a file"))).code).toBe(1);
    expect(await refused("--target", "/dev/null/\u001b[31m")).not.toContain("\u001b");
  });

  test("a target with .. or through a link of the user is where that leads", async () => {
    mkdirSync(join(folder, "real"));
    symlinkSync("real", join(folder, "link"));
    expect((await run("--target", join(folder, "x", "..", "link"))).code).toBe(0);
    expect(readdirSync(join(folder, "real"))).toEqual(["engine-data"]);
    expect((await run("--target", "")).code).toBe(2);
    expect((await run()).code).toBe(2);
    expect((await run("--target", target, "--which", "../x")).code).toBe(2);
  });

  test("--also-link-claude links it, once, and takes nobody's place", async () => {
    const link = join(home, ".claude", "skills", "engine-data");
    for (let i = 0; i < 2; i++) {
      const { code, stdout, stderr } = await runAtHome("--target", "skills", "--also-link-claude");
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toContain(`${link} leads to it`);
      expect(readlinkSync(link)).toBe(join(target, "engine-data"));
    }
    rmSync(link);
    for (const make of [
      () => mkdirSync(link),
      () => writeFileSync(link, ""),
      () => symlinkSync(folder, link),
      () => symlinkSync(join(folder, "nothing"), link),
    ]) {
      make();
      rmSync(target, { recursive: true, force: true });
      const { code, stderr } = await runAtHome("--target", "skills", "--also-link-claude");
      expect(code).toBe(1);
      expect(stderr).toContain("exists and leads elsewhere");
      expect(readdirSync(folder)).toEqual(["home"]);
      rmSync(link, { recursive: true });
    }
    const own = await runAtHome("--target", "home/.claude/skills", "--also-link-claude");
    expect([own.code, own.stderr]).toEqual([0, ""]);
    expect(lstatSync(link).isDirectory()).toBe(true);
  });
});

const variables = new Set(Object.values({ ...OPTIONS, ...FEATURE_ROWS }).flatMap(variablesOf));
const tools = new Set(TOOLS.map(({ name }) => name));

describe.each(Object.values(SKILLS))("what the skill $name says", (skill) => {
  const text = skillText(skill);

  test("every command is one that the program takes", async () => {
    const program = await wholeProgram();
    const commands = commandsIn(text);
    expect(commands.length).toBeGreaterThan(10);
    for (const command of commands) expect([command, await problemOf(program, command)]).toEqual([command, ""]);
  });

  test("every command in its sentences is there", async () => {
    const program = await wholeProgram();
    for (const [, path = ""] of withoutFences(text).matchAll(/`engine ([a-z -]+)`/g)) {
      const words = path.split(" ");
      const leaf = words.reduce<Command | undefined>(
        (command, word) => command?.commands.find((child) => child.name() === word),
        program,
      );
      expect([path, leaf?.name()]).toEqual([path, words.at(-1)]);
    }
  });

  test("every flag in its sentences is one of some command", async () => {
    const flags = flagsOf(await wholeProgram());
    const named = [...withoutFences(text).matchAll(/`(--[a-z-]+)`/g)].map(([, flag]) => flag);
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((flag) => !flags.has(flag ?? ""))).toEqual([]);
  });

  test("every tool and variable is there", () => {
    const words = [...withoutFences(text).matchAll(/\b[a-z]+(?:_[a-z]+)+\b/g)].map(([word]) => word);
    expect(words.filter((word) => !tools.has(word))).toEqual([]);
    const named = [...text.matchAll(/\bENGINE_[A-Z_]+\b/g)].map(([name]) => name);
    expect(named.filter((name) => !variables.has(name))).toEqual([]);
  });
});

test("the check of commands finds what is wrong", async () => {
  const program = await wholeProgram();
  for (const wrong of [
    "engine nothing",
    "engine recall",
    "engine recall x y",
    "engine recall x --nowhere",
    "engine deploy init --target moon",
    "engine ingest push x",
    "engine deploy",
  ]) {
    expect(await problemOf(program, wrong)).not.toBe("");
  }
});

async function wholeProgram(): Promise<Command> {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const context = new CliContext({
    clock: systemClock,
    random: systemRandom,
    env: {},
    stdin,
    stdout,
    stderr,
    version: "",
    serve: () => Promise.resolve(0),
    rows: () => Promise.resolve({}),
    migrations: () => Promise.resolve([]),
  });
  return await buildProgram(context, FEATURES);
}

/** In fences, without assignments in front. */
function commandsIn(text: string): string[] {
  const fenced = [...text.matchAll(/^~~~sh\n([^]*?)^~~~$/gm)].flatMap(([, lines]) => (lines ?? "").trim().split("\n"));
  return fenced.map((line) => line.replace(/^(?:[A-Z_]+=\S+ )+/, ""));
}

function withoutFences(text: string): string {
  return text.replace(/^~~~sh\n[^]*?^~~~$/gm, "");
}

/** What the program itself says of a command line; nothing is run. */
async function problemOf(program: Command, line: string): Promise<string> {
  const words = [...line.replace(/ < \S+$/, "").matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, plain]) => single ?? double ?? plain ?? "",
  );
  if (words.shift() !== "engine") return "is no command of the engine";
  let command = program;
  while (words[0] !== undefined) {
    const next = command.commands.find((child) => child.name() === words[0]);
    if (next === undefined) break;
    command = next;
    words.shift();
  }
  if (command.commands.length > 0) return `there is no ${words[0] ?? "command"} below ${command.name()}`;
  let isRun = false;
  command
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .action(() => void (isRun = true));
  try {
    await command.parseAsync(words, { from: "user" });
    return isRun ? "" : "does nothing";
  } catch (error) {
    if (error instanceof CommanderError) return error.message;
    throw error;
  }
}

function flagsOf(command: Command): Set<string> {
  const own = command.options.flatMap(({ long }) => (long === null || long === undefined ? [] : [long]));
  return new Set([...own, ...command.commands.flatMap((child) => [...flagsOf(child)])]);
}
