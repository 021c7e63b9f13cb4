import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { tryLock } from "../../src/db/sqlite/process-lock.ts";
import { runDeploy } from "./run-deploy.test-kit.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "engine-deploy-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const folder = (name = "lab") => join(home, "deployments", name);

const deploy = (words: readonly string[], env: Readonly<Record<string, string>> = {}) => runDeploy(home, words, env);

const INIT = ["init", "--name", "lab", "--target", "local", "--yes"];

describe("engine deploy init", () => {
  it("makes a workspace for its user alone", async () => {
    expect(await deploy([...INIT, "--json"])).toMatchObject({ code: 0, stderr: "" });
    expect(statSync(folder()).mode & 0o777).toBe(0o700);
    for (const file of readdirSync(folder())) expect(statSync(join(folder(), file)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(join(folder(), "deployment.json"), "utf8"))).toEqual({
      format: 1,
      name: "lab",
      target: "local",
      settings: {},
    });
    expect(await deploy(INIT)).toMatchObject({ code: 1, stderr: expect.stringContaining("--force") });
    expect(await deploy([...INIT, "--force"])).toMatchObject({ code: 0 });
  });

  it("shows every file with --print-only, no secret, and writes nothing", async () => {
    const env = { ENGINE_CATALOG_URL: "postgres://u:hunter2@db/engine", ENGINE_OBJSTORE_BUCKET: "things" };
    const { code, stdout } = await deploy([...INIT, "--print-only", "--json"], env);
    expect(code).toBe(0);
    const { files, commands } = JSON.parse(stdout) as { files: { path: string }[]; commands: string[] };
    expect(files.map(({ path }) => path)).toEqual([join(folder(), "engine.toml"), join(folder(), "deployment.json")]);
    expect(commands).toHaveLength(9);
    expect(stdout).not.toContain("hunter2");
    expect(readdirSync(home)).toEqual([]);
  });

  it("takes the catalog and the store of the environment into the deployment's file", async () => {
    const env = { ENGINE_CATALOG_URL: "postgres://u:p%22%5C@db/engine", ENGINE_OBJSTORE_BUCKET: "things" };
    expect((await deploy(INIT, env)).code).toBe(0);
    const text = readFileSync(join(folder(), "engine.toml"), "utf8");
    expect(text).toContain('catalog.url = "postgres://u:p%22%5C@db/engine"\n');
    expect(text).toContain('objstore.bucket = "things"\n');
  });

  it.each(["..", "../x", "/etc", "a/b", "A", "a b", "-a", "a-", "", "a\nb", "a".repeat(33), "$(id)", "__proto__"])(
    "refuses the name %j",
    async (name) => {
      for (const command of ["init", "up", "status", "destroy"]) {
        const { code, stderr } = await deploy([command, `--name=${name}`]);
        expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("--name is ") });
      }
      expect(readdirSync(home)).toEqual([]);
    },
  );

  it("refuses flags that mean nothing to a local deployment", async () => {
    for (const flag of ["--tool=tofu", "--region=eu-central-1", "--domain=example.com"]) {
      expect(await deploy([...INIT, flag])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("--target cloud"),
      });
    }
  });
});

describe("a workspace", () => {
  it("is worked on by one command at a time", async () => {
    await deploy(INIT);
    const lock = tryLock(join(home, "deployments", ".lab.lock"));
    expect(lock).toBeDefined();
    for (const words of [
      ["up", "--yes"],
      ["destroy", "--yes"],
      INIT.filter((word) => word !== "--name" && word !== "lab"),
    ]) {
      const { code, stderr } = await deploy([...words, "--name", "lab"]);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringContaining("another `engine deploy` is working"),
      });
    }
    lock?.release();
    expect(await deploy(["destroy", "--name", "lab", "--yes", "--force"])).toMatchObject({ code: 0 });
    expect(readdirSync(join(home, "deployments"))).toEqual([".lab.lock"]);
  });

  it("of a newer program, or a damaged one, is refused in a sentence", async () => {
    await deploy(INIT);
    const file = join(folder(), "deployment.json");
    const cases = {
      '{"format":2,"name":"lab","anything":[]}': "newer engine (format 2)",
      "": "it is no JSON",
      "[]": "is damaged",
      '{"format":1,"name":"lab","target":"elsewhere","settings":{}}': "target: ",
      '{"format":1,"name":"lab","target":"local","settings":{},"more":1}': "is damaged",
    };
    for (const [text, sentence] of Object.entries(cases)) {
      writeFileSync(file, text);
      for (const command of ["up", "status", "destroy"]) {
        const { code, stderr } = await deploy([command, "--name", "lab"]);
        expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(sentence) });
      }
    }
  });

  it("with a hostile state names the file, and signals no process", async () => {
    await deploy(INIT);
    mkdirSync(join(folder(), "local"));
    const file = join(folder(), "local", "state.json");
    const supervisor = { pid: 1, identity: "", version: "" };
    for (const state of [{ format: 1, supervisor, settled: 1, processes: {}, failures: {} }, { format: 1 }, null]) {
      writeFileSync(file, JSON.stringify(state));
      const { code, stderr } = await deploy(["status", "--name", "lab"]);
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`${file} is damaged`) });
    }
  });

  it("with options that the program refuses says which", async () => {
    await deploy(INIT);
    writeFileSync(join(folder(), "engine.toml"), 'log.level = "loud"\n');
    const { code, stderr } = await deploy(["up", "--name", "lab", "--yes"]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("log.level in ") });
  });

  it("says what to install where there is no PostgreSQL of a version that serves", async () => {
    await deploy(INIT);
    const programs = join(home, "bin");
    mkdirSync(programs);
    for (const name of ["initdb", "postgres", "pg_isready"]) {
      writeFileSync(join(programs, name), "#!/bin/sh\necho 'postgres (PostgreSQL) 9.6.1'\n");
      chmodSync(join(programs, name), 0o755);
    }
    const { findPostgresPrograms } = await import("../../src/db/postgres/server-programs.ts");
    const elsewhere = findPostgresPrograms("");
    const { stderr } = await deploy(["up", "--name", "lab"], { PATH: programs });
    // Where the machine has a newer one, that is taken, and the question is what cannot be asked.
    expect(stderr).toContain(elsewhere === undefined ? "version 9" : "standard input is no terminal; say --yes");
  });

  it("names what is deleted with it, and what stays elsewhere", async () => {
    const destroy = ["destroy", "--name", "lab", "--yes", "--force"];
    await deploy(INIT);
    expect((await deploy(destroy)).stderr).toContain("the catalog with all databases, all objects, settings,");
    await deploy(INIT, { ENGINE_CATALOG_URL: "postgres://u@db/engine", ENGINE_OBJSTORE_BUCKET: "things" });
    const { stderr } = await deploy(destroy);
    expect(stderr).toContain(": settings, the admin token and logs");
    expect(stderr).toContain("the catalog at catalog.url stays");
    expect(stderr).toContain("the objects in the bucket things stay");
  });

  it("needs a yes without a terminal, and the name to be destroyed", async () => {
    await deploy(INIT);
    expect(await deploy(["destroy", "--name", "lab"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--yes"),
    });
    expect(await deploy(["status", "--name", "lab", "--json"])).toMatchObject({ code: 1 });
    expect(await deploy(["up", "--name", "none"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("deploy init"),
    });
  });
});
