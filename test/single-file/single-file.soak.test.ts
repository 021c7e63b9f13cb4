import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { findLandlock } from "../../src/io/confinement/landlock.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { sandboxServer, TIMEOUT_MS } from "../sandboxes/server.test-kit.ts";
import { ingest, query, rowsOf } from "../support/client.ts";
import { startEngine } from "../support/engine.ts";
import { buildSingleFile, digestOf, runFile, unpackedIn } from "./single-file.test-kit.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};
const ON_LINUX = process.platform === "linux";

describe.skipIf(!ON_LINUX)("the single file", () => {
  let built: { file: string; folder: string };
  let again: { file: string; folder: string };
  let base: string;
  /** Where most tests have it unpacked. */
  let shared: string;

  beforeAll(async () => {
    [built, again] = await Promise.all([buildSingleFile("022"), buildSingleFile("077")]);
    base = mkdtempSync(join(tmpdir(), "engine-single-file-test-"));
    chmodSync(base, 0o755);
    shared = join(base, "shared");
  }, 300_000);
  afterAll(() => {
    for (const folder of [built.folder, again.folder, base]) rmSync(folder, { recursive: true, force: true });
  });

  const engine = (argv: readonly string[], env: Record<string, string> = {}) =>
    runFile(built.file, argv, { env: { ENGINE_RUNTIME_DIR: shared, HOME: join(base, "home"), ...env } });
  const says = { code: 0, stdout: `${version}\n`, stderr: "" };

  test("is the same, whatever the folder, the time and the umask", () => {
    expect(digestOf(again.file)).toBe(digestOf(built.file));
  });

  test("eight first starts at once unpack one program, and leave nothing else", async () => {
    const starts = await Promise.all(Array.from({ length: 8 }, () => engine(["--version"])));
    expect(new Set(starts.map((start) => JSON.stringify(start)))).toEqual(new Set([JSON.stringify(says)]));
    expect(unpackedIn(shared)).toHaveLength(1);
    const [folder = ""] = unpackedIn(shared);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(readFileSync(join(folder, "dist/distribution.json"), "utf8")).toBe('{"kind":"single-file"}\n');
    const root = join(folder, "..");
    expect(readdirSync(root).toSorted()).toEqual([basename(folder), "uses"]);
    expect(readdirSync(join(root, "uses", basename(folder)))).toEqual([]);
  });

  test("takes no script and no option of Node", async () => {
    const script = join(base, "script.js");
    writeFileSync(script, `require("node:fs").writeFileSync(${JSON.stringify(join(base, "ran"))}, "")`);
    for (const argv of [
      [script],
      ["-e", "1"],
      ["--eval=1"],
      ["-r", script],
      ["--", script],
      ["--build-snapshot", script],
    ]) {
      const { code, stderr } = await engine(argv);
      expect([argv, code]).toEqual([argv, 2]);
      expect(stderr).toMatch(/^error: /);
    }
    expect(existsSync(join(base, "ran"))).toBe(false);
  });

  test("unpacks again where a file of it was written to", async () => {
    const [folder = ""] = unpackedIn(shared);
    const file = join(folder, "dist/engine.js");
    writeFileSync(file, "!".repeat(statSync(file).size));
    expect(await engine(["--version"])).toEqual(says);
    expect(readdirSync(join(folder, "..")).filter((name) => /damaged|unpacking|lock/.test(name))).toEqual([]);
  });

  test("what a first start left that was killed is removed, and not used", async () => {
    const dir = join(base, "killed");
    const root = join(dir, `runtime-${process.getuid?.()}`);
    const left = () => (existsSync(root) ? readdirSync(root).filter((name) => /^(unpacking|lock)-/.test(name)) : []);
    const child = spawn(built.file, ["--version"], { env: { ENGINE_RUNTIME_DIR: dir }, stdio: "ignore" });
    const gone = once(child, "exit");
    await eventually(() => left().some((name) => name.startsWith("unpacking-")));
    child.kill("SIGKILL");
    await gone;
    expect([unpackedIn(dir), left().length]).toEqual([[], 2]);
    expect(await engine(["--version"], { ENGINE_RUNTIME_DIR: dir })).toEqual(says);
    expect([unpackedIn(dir).length, left()]).toEqual([1, []]);
    rmSync(dir, { recursive: true });
  });

  test("a file that was cut off or changed says so", async () => {
    const damaged = join(base, "damaged");
    const bytes = readFileSync(built.file);
    // The archive is the last that is in it.
    bytes.fill(0, bytes.length - 4_000_000, bytes.length - 3_000_000);
    writeFileSync(damaged, bytes, { mode: 0o755 });
    const env = { ENGINE_RUNTIME_DIR: join(base, "of-damaged") };
    const { code, stderr } = await runFile(damaged, ["--version"], { env });
    expect([code, stderr]).toEqual([1, `error: ${damaged} is damaged (its archive has changed): download it again\n`]);
    expect(unpackedIn(env.ENGINE_RUNTIME_DIR)).toEqual([]);
    rmSync(damaged);
  });

  const what =
    /^error: cannot unpack the program: (?<why>.*)\. Set ENGINE_RUNTIME_DIR to a folder of this user with \d+ MiB free, where programs may be run\n$/;
  const why = (stderr: string): string => what.exec(stderr)?.groups?.["why"] ?? stderr;

  describe.skipIf(lacks("root", "mounts"))("where it cannot be unpacked", () => {
    const mounted = (options: string): readonly string[] => [
      "unshare",
      "--mount",
      "sh",
      "-c",
      `mount -t tmpfs -o ${options} tmpfs "$ENGINE_RUNTIME_DIR" && shift && exec "$@"`,
      "sh",
      "",
    ];
    test.each([
      ["ro", "the file system is read-only"],
      ["size=100m", "the disk is full"],
      ["noexec", "is on a file system that runs no programs (noexec)"],
    ])("it says what to do: %s", async (options, reason) => {
      const dir = join(base, `mounted-${options}`);
      mkdirSync(dir);
      const { code, stderr } = await runFile(built.file, ["--version"], {
        env: { ENGINE_RUNTIME_DIR: dir },
        prefix: mounted(options),
      });
      expect([code, why(stderr)]).toEqual([1, expect.stringContaining(reason)]);
      expect(readdirSync(dir)).toEqual([]);
    });

    test("it takes no folder of another user, and none that others may write to", async () => {
      const [theirs, open] = [join(base, "theirs"), join(base, "open")];
      for (const dir of [theirs, open]) mkdirSync(join(dir, "runtime-0"), { recursive: true });
      chownSync(join(theirs, "runtime-0"), NOBODY, NOBODY);
      chmodSync(join(open, "runtime-0"), 0o777);
      const start = async (dir: string) => why((await engine(["--version"], { ENGINE_RUNTIME_DIR: dir })).stderr);
      expect(await start(theirs)).toBe(`${theirs}/runtime-0 belongs to user ${NOBODY}, not to 0`);
      expect(await start(open)).toBe(`${open}/runtime-0 is open to other users: chmod 700`);
    });
  });

  describe.skipIf(lacks("root"))("a user that the system does not know", () => {
    const UNKNOWN = 71_234;

    test("without a home folder is told what to set, and has it beside the data", async () => {
      chmodSync(built.folder, 0o755);
      chmodSync(join(built.folder, "out"), 0o755);
      const bare = await runFile(built.file, ["--version"], { uid: UNKNOWN });
      expect([bare.code, why(bare.stderr)]).toEqual([1, "this user has no home folder"]);
      const home = join(base, "data");
      mkdirSync(home);
      chownSync(home, UNKNOWN, UNKNOWN);
      expect(await runFile(built.file, ["--version"], { uid: UNKNOWN, env: { ENGINE_HOME: home } })).toEqual(says);
      expect(unpackedIn(home, UNKNOWN)).toHaveLength(1);
      // A home folder in which nothing can be written counts as none.
      const env = { ENGINE_HOME: home, HOME: "/" };
      expect(await runFile(built.file, ["--version"], { uid: UNKNOWN, env })).toEqual(says);
      rmSync(home, { recursive: true });
    });
  });

  describe("a server of it", () => {
    let home: string;
    const start = (env: Record<string, string> = {}) =>
      startEngine({ home, program: [built.file], env: { ENGINE_RUNTIME_DIR: shared, ...env } });

    beforeAll(() => {
      home = mkdtempSync(join(base, "home-"));
    });

    test("ingests and answers SQL and KQL, confined, and comes back after kill -9", async () => {
      const first = await start({ ENGINE_HTTP_DRIVER: "auto", ENGINE_QUERY_CONFINEMENT: confinement });
      expect(first.log()).not.toContain("ExperimentalWarning");
      expect((await ingest(first.url, "notes", '{"id":"a","n":1}\n{"id":"b","n":2}\n')).json.rows_ingested).toBe(2);
      const sum = [{ ids: "2", n: "3" }];
      expect(await rowsOf(first.url, "SELECT count(*)::VARCHAR AS ids, sum(n::INT)::VARCHAR AS n FROM notes")).toEqual(
        sum,
      );
      const kql = await query(first.url, "notes | summarize ids = count()", { "Content-Type": "application/x-kql" });
      expect([kql.status, kql.rows]).toEqual([200, [{ ids: 2 }]]);
      // Built by the plain Node, of which later translators start.
      await eventually(() => snapshotsIn(home).length === 1, 90_000);
      await first.stop("SIGKILL");
      const second = await start();
      expect(await rowsOf(second.url, "SELECT id FROM notes ORDER BY id")).toEqual([{ id: "a" }, { id: "b" }]);
      expect((await second.stop()).code).toBe(0);
    });

    test("takes staged rows", async () => {
      const engine = await start({ ENGINE_INGEST_MODE: "staged" });
      expect((await ingest(engine.url, "staged", '{"id":"a"}\n')).status).toBe(200);
      await eventually(async () => (await query(engine.url, "SELECT id FROM staged")).rows.length === 1);
      expect((await engine.stop()).code).toBe(0);
    });
  });

  describeInCage("sandboxes of it", () => {
    const server = sandboxServer(
      () => ({ ENGINE_RUNTIME_DIR: shared }),
      () => [built.file],
    );

    test("are made by it and worked in", { timeout: TIMEOUT_MS }, async () => {
      const made = await engine(["sandbox", "create", "--server", server.url, "--memory", "256", "--disk", "256"]);
      expect([made.code, made.stderr]).toEqual([0, ""]);
      const words = ["sandbox", "exec", "--server", server.url, made.stdout.trim(), "--", "sh", "-c", "id -u; exit 7"];
      expect(await engine(words)).toEqual({ code: 7, stdout: "1000\n", stderr: "" });
    });
  });
});

const NOBODY = 65_534;
/** Where the kernel can, a server that could not confine its queries would not start. */
const confinement = "missing" in findLandlock() ? "auto" : "required";

function snapshotsIn(home: string): string[] {
  return readdirSync(home, { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".blob") && !path.includes("build-"),
  );
}
