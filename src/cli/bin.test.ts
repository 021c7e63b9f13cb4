import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "esbuild";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const BIN = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "engine-bin-"));
  mkdirSync(join(folder, "bin"));
  cpSync(BIN, join(folder, "bin", "engine.js"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs the copy of the program in the folder, under a Node that says it is of that version. */
function run(version: string | undefined, argv: readonly string[], env: Record<string, string> = {}) {
  writeFileSync(
    join(folder, "pretend.cjs"),
    `Object.defineProperty(process, "versions", { value: { ...process.versions, node: ${JSON.stringify(version)} } });`,
  );
  const pretend = version === undefined ? [] : ["--require", "./pretend.cjs"];
  const { status, stdout, stderr } = spawnSync(process.execPath, [...pretend, "bin/engine.js", ...argv], {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "", ...env },
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

function place(path: string, text: string): void {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), text);
}

describe("on a Node that is too old", () => {
  test.for(["12.22.12", "20.20.2", "22.18.0"])("%s says so in one sentence, with the command to use", (version) => {
    const { status, stdout, stderr } = run(version, ["sql", "SELECT 1", "--db=logs"]);
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^error: engine needs Node 22\.19 or newer and this is [\d.]+; run: npx -y -p node@22 -c .+\n$/,
    );
    expect(stderr).toContain(version);
  });

  test("the command is the one that was typed, whatever its quoting", () => {
    place("roles/main.ts", "console.log(JSON.stringify(process.argv.slice(2)));");
    const argv = ["sql", "SELECT 'it''s' AS \"x\"", "$HOME;`id`"];
    const { stderr } = run("18.0.0", argv);
    const command = /-c (.+)\n$/.exec(stderr)?.[1] ?? "";
    // What npx would be given, then what it would run.
    const given = spawnSync("sh", ["-c", `printf %s ${command}`], { encoding: "utf8" }).stdout;
    expect(given.startsWith("node bin/engine.js sql ")).toBe(true);
    const env = { PATH: `${join(process.execPath, "..")}:${process.env["PATH"] ?? ""}` };
    const ran = spawnSync("sh", ["-c", given], { cwd: folder, env, encoding: "utf8" });
    expect(JSON.parse(ran.stdout)).toEqual(argv);
  });

  test("npm start is typed as npm start", () => {
    expect(run("20.0.0", ["serve"], { npm_lifecycle_event: "start" }).stderr).toContain("-c 'npm start'\n");
  });
});

describe("on a Node that is new enough", () => {
  test.for(["22.19.0", "24.0.0", undefined])("%s runs the sources of a checkout", (version) => {
    place("roles/main.ts", "const text: string = 'from source'; console.log(text, ...process.argv.slice(2));");
    place("dist/engine.js", "console.log('from bundle');");
    expect(run(version, ["a", "b"])).toEqual({ status: 0, stdout: "from source a b\n", stderr: "" });
  });

  test("runs the bundle where there are no sources", () => {
    place("dist/engine.js", "console.log('from bundle'); process.exitCode = 4;");
    expect(run(undefined, [])).toEqual({ status: 4, stdout: "from bundle\n", stderr: "" });
  });

  test("a program that does not load is a failure", () => {
    place("dist/engine.js", "throw new Error('broken');");
    const { status, stderr } = run(undefined, []);
    expect(status).toBe(1);
    expect(stderr).toContain("Error: broken");
  });
});

test("it is written in syntax that Node 12 reads", () => {
  const source = readFileSync(BIN, "utf8");
  const translated = (target: string) => transformSync(source, { format: "esm", target }).code;
  expect(translated("node12.20")).toBe(translated("esnext"));
  // These came with Node 12.20 and 14.18.
  expect(source).not.toMatch(/from "node:/);
});
