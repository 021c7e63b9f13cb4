import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { addSystemd, StandIns } from "../../src/install/service/stand-ins.test-kit.ts";

let standIns: StandIns;
let home = "";
beforeEach(() => {
  standIns = new StandIns();
  addSystemd(standIns);
  home = join(standIns.folder, "home");
});
afterEach(() => standIns.remove());

function run(argv: readonly string[], more: Record<string, string> = {}) {
  const agent = join(standIns.folder, ".claude");
  const env = { PATH: standIns.path, HOME: standIns.folder, ENGINE_HOME: home, ENGINE_CA_HOME: agent, ...more };
  return runHere(argv, { env });
}

const worker = (...argv: string[]) => run(["worker", ...argv]);
const CLOUD = { ENGINE_CLOUD_URL: "https://engine.example.com", ENGINE_CLOUD_TOKEN: "a-token-of-the-cloud" };
const unitFile = () => join(standIns.folder, ".config/systemd/user/engine-sync.service");
const configFile = () => join(home, "sync.toml");

describe.runIf(process.platform === "linux")("the service that syncs memories", () => {
  test("is installed with what the command was given, its token in a file for its user alone", async () => {
    const chosen = { ENGINE_CA_DUP_COSINE: "0.8-0.9", ENGINE_EMBED_PROVIDER: "ollama" };
    const outcome = await run(["worker", "install", "--interval", "45", "--cc-only"], { ...CLOUD, ...chosen });
    expect(outcome).toMatchObject({ code: 0, stderr: "", stdout: `installed: ${unitFile()}\n` });
    const calls = standIns.calls();
    expect(calls.slice(-3)).toEqual([
      "systemctl --user daemon-reload",
      "systemctl --user enable engine-sync.service",
      "systemctl --user restart engine-sync.service",
    ]);
    const unit = readFileSync(unitFile(), "utf8");
    expect(unit).toContain('"sync" "--watch" "--cc-only"\n');
    expect(unit).toContain(`Environment="ENGINE_HOME=${home}" "ENGINE_CONFIG=${configFile()}"`);
    expect(unit + calls.join("\n")).not.toContain("a-token");
    expect(statSync(configFile()).mode & 0o777).toBe(0o600);
    // The program reads what was written as it was meant.
    const { stdout } = await run(["config", "--json"], { ENGINE_CONFIG: configFile() });
    expect(stdout).toMatch(/"ENGINE_CA_DUP_COSINE"[^}]*0\.80-0\.90|0\.80-0\.90[^}]*"ENGINE_CA_DUP_COSINE"/);
    expect(stdout).toMatch(/"ENGINE_EMBED_PROVIDER"[^}]*ollama|ollama[^}]*"ENGINE_EMBED_PROVIDER"/);
    expect(stdout).toMatch(/"ENGINE_CA_SYNC_POLL_SECS"[^}]*45|45[^}]*"ENGINE_CA_SYNC_POLL_SECS"/);
  });

  test("is left as it is by the same again, and uninstalled with its token", async () => {
    await run(["worker", "install"], CLOUD);
    standIns.calls();
    expect(await run(["worker", "install"], CLOUD)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^unchanged/),
    });
    expect(standIns.calls().some((call) => /restart|daemon-reload/.test(call))).toBe(false);
    expect(await worker("uninstall")).toMatchObject({ code: 0, stdout: `removed ${unitFile()}\n` });
    expect(() => readFileSync(configFile())).toThrow("ENOENT");
    expect(await worker("uninstall")).toMatchObject({ code: 0, stdout: "no service is installed\n" });
  });

  test("says how it is, and what its last pass came to", async () => {
    expect(await worker("status")).toMatchObject({ code: 1, stdout: expect.stringMatching(/^no service[^]*none yet/) });
    await worker("install");
    expect(await worker("status")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/running +yes\nlast pass +none yet/),
    });
    const files = join(standIns.folder, ".claude/projects/-work-web/memory");
    mkdirSync(files, { recursive: true });
    writeFileSync(join(files, "a.md"), "One");
    const quiet = { ENGINE_CA_QUIET_WINDOW: "0" };
    expect((await run(["sync"], quiet)).stdout).toBe("-work-web/a.md  saved in the memory\n");
    expect((await worker("status")).stdout).toMatch(/last pass +\S+; 1 project; 1 change\n$/);
    writeFileSync(join(files, "b.md"), "one ");
    const told = '-work-web  duplicate: "b" (b.md) of "a" (a.md)\n';
    expect((await run(["sync"], quiet)).stdout).toBe(`-work-web/b.md  saved in the memory\n${told}`);
    expect((await worker("status")).stdout).toMatch(
      /last pass +\S+; 1 project; 1 change; to review: 0 stale, 1 duplicate\n$/,
    );
    expect((await run(["sync"], quiet)).stdout).toBe(told);
    await run(["sync"], { ENGINE_CLOUD_URL: "http://127.0.0.1:9" });
    const failing = await worker("status", "--json");
    expect([failing.code, JSON.parse(failing.stdout)]).toEqual([
      1,
      expect.objectContaining({ running: true, last: expect.objectContaining({ cloud: expect.anything() }) }),
    ]);
    rmSync(join(standIns.folder, "state", "running"));
    expect(await worker("status")).toMatchObject({ code: 1, stdout: expect.stringMatching(/running +no, inactive/) });
  });

  test("is not installed over a file of somebody else, nor with flags that contradict each other", async () => {
    mkdirSync(join(standIns.folder, ".config/systemd/user"), { recursive: true });
    writeFileSync(unitFile(), "[Service]\nExecStart=/bin/true\n");
    expect(await worker("install")).toMatchObject({ code: 1, stderr: expect.stringContaining("move it away first") });
    for (const flags of [["--cc-only", "--cloud-only"], ["--cloud-only"], ["--interval", "0"], ["--interval", "1e3"]])
      expect((await worker("install", ...flags)).code).toBe(2);
  });
});
