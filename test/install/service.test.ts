import { createServer, type Server } from "node:http";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { AUTH_OPTIONS } from "../../src/auth/options.ts";
import { loadConfig } from "../../src/config/load.ts";
import { valuesOf } from "../../src/config/option.ts";
import { ManualClock } from "../../src/core/clock.ts";
import { freePort } from "../../src/core/waiting.test-kit.ts";
import { toolRunner } from "../../src/install/run-tool.ts";
import { SERVE_UNIT } from "../../src/install/service/definition.ts";
import { Launchd } from "../../src/install/service/launchd.ts";
import { addSystemd, StandIns } from "../../src/install/service/stand-ins.test-kit.ts";

let standIns: StandIns;
let server: Server;
let port: number;
let home: string;

beforeEach(async () => {
  standIns = new StandIns();
  addSystemd(standIns);
  home = join(standIns.folder, "home");
  port = await freePort();
  server = createServer((_, response) => response.end(JSON.stringify({ status: "ok", version: "1.2.3" })));
});
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
  standIns.remove();
});

function engine(...argv: readonly string[]) {
  const env = { PATH: standIns.path, HOME: standIns.folder, ENGINE_HOME: home, ENGINE_TOKEN: "of-the-shell" };
  return runHere(["service", ...argv], { env });
}

/** The server of the service comes up when the manager starts it. */
async function install(...more: readonly string[]) {
  const state = join(standIns.folder, "state", "running");
  const timer = setInterval(() => {
    if (existsSync(state) && !server.listening) server.listen(port, "127.0.0.1");
  }, 10);
  const outcome = await engine("install", "--addr", `127.0.0.1:${port}`, ...more);
  clearInterval(timer);
  return outcome;
}

const unitFile = () => join(standIns.folder, ".config/systemd/user/engine.service");
const configFile = () => join(home, "service.toml");

describe.runIf(process.platform === "linux")("a service of systemd", () => {
  test("is installed with lingering, its token in a file for its user alone", async () => {
    const outcome = await install("--token", 'secret"\\%$x');
    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(outcome.stdout).toContain(`answers at http://127.0.0.1:${port}`);
    const calls = standIns.calls();
    expect(calls.filter((call) => call.startsWith("loginctl enable-linger"))).toHaveLength(1);
    expect(calls.slice(-3)).toEqual([
      "systemctl --user daemon-reload",
      "systemctl --user enable engine.service",
      "systemctl --user restart engine.service",
    ]);
    const unit = readFileSync(unitFile(), "utf8");
    expect(unit).toContain(`"serve" "--addr" "127.0.0.1:${port}"`);
    expect(unit).toContain(`Environment="ENGINE_HOME=${home}" "ENGINE_CONFIG=${configFile()}"`);
    expect(unit + calls.join("\n")).not.toMatch(/secret|of-the-shell/);
    expect(statSync(configFile()).mode & 0o777).toBe(0o600);
    const { config } = loadConfig({ env: { ENGINE_CONFIG: configFile() }, rows: AUTH_OPTIONS });
    expect(valuesOf(AUTH_OPTIONS, config).authTokens).toEqual([{ token: 'secret"\\%$x', role: "admin" }]);
  });

  test("installed twice changes nothing, and another token or address changes that", async () => {
    await install("--token", "one-token-of-many");
    standIns.calls();
    const before = [unitFile(), configFile()].map((file) => statSync(file).mtimeMs);
    for (const again of [["--token", "one-token-of-many"], []]) {
      expect(await install(...again)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^unchanged/) });
      expect(standIns.calls().some((call) => /restart|daemon-reload/.test(call))).toBe(false);
    }
    expect([unitFile(), configFile()].map((file) => statSync(file).mtimeMs)).toEqual(before);
    expect(await install("--token", "another-one")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^installed/),
    });
    expect(standIns.calls()).toContain("systemctl --user restart engine.service");
    expect(readFileSync(configFile(), "utf8")).not.toContain("one-token-of-many");
  });

  test("options of the user stay, and the token is not written over them", async () => {
    mkdirSync(home);
    writeFileSync(configFile(), '[log]\nlevel = "debug"\n', { mode: 0o644 });
    const refused = await install("--token", "one-token-of-many");
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("set auth.tokens there by hand") });
    expect(existsSync(unitFile())).toBe(false);
    expect(await install()).toMatchObject({ code: 0 });
    expect(readFileSync(configFile(), "utf8")).toBe('[log]\nlevel = "debug"\n');
    expect(statSync(configFile()).mode & 0o777).toBe(0o600);
  });

  test("status says what there is, for people and programs", async () => {
    expect(await engine("status", "--json")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('"installed": false'),
    });
    await install();
    expect((await engine("status")).stdout).toMatch(
      /running +yes, since 2026-11-27T01:02:03.000Z\nversion +1.2.3\nhealth +ok/,
    );
    const { code, stdout } = await engine("status", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ enabled: true, running: true, version: "1.2.3", health: "ok", home });
    await new Promise((resolve) => server.close(resolve));
    rmSync(join(standIns.folder, "state", "running"));
    expect(await engine("status")).toMatchObject({ code: 1, stdout: expect.stringMatching(/running +no, inactive/) });
  });

  test("is uninstalled, and leaves data and options", async () => {
    await install();
    standIns.calls();
    expect(await engine("uninstall")).toMatchObject({ code: 0 });
    expect(standIns.calls()[0]).toBe("systemctl --user disable --now engine.service");
    expect(existsSync(unitFile())).toBe(false);
    expect(existsSync(configFile())).toBe(true);
    expect(await engine("uninstall")).toMatchObject({ code: 0, stdout: "no service is installed\n" });
  });

  test("without the right to linger it is installed with a warning", async () => {
    mkdirSync(join(standIns.folder, "state"), { recursive: true });
    writeFileSync(join(standIns.folder, "state", "refuse"), "");
    expect(await install()).toMatchObject({ code: 0, stderr: expect.stringContaining("sudo loginctl enable-linger") });
  });

  test("an address that is taken, a unit of somebody else and a wrong flag are refused, and nothing is written", async () => {
    server.listen(port, "127.0.0.1");
    const taken = await engine("install", "--addr", `127.0.0.1:${port}`);
    expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining("something else listens") });
    expect([existsSync(unitFile()), existsSync(configFile())]).toEqual([false, false]);
    for (const flags of [
      ["--addr", "nowhere"],
      ["--addr", "127.0.0.1:0"],
      ["--token", "two words"],
      ["--token", ""],
    ]) {
      expect((await engine("install", ...flags)).code).toBe(2);
    }
    mkdirSync(join(unitFile(), ".."), { recursive: true });
    writeFileSync(unitFile(), "[Service]\nExecStart=/bin/true\n");
    for (const command of ["install", "uninstall", "status"]) {
      expect(await engine(command)).toMatchObject({ code: 1, stderr: expect.stringContaining("move it away first") });
    }
  });

  test("a failure of systemd is told in its own words", async () => {
    mkdirSync(join(standIns.folder, "state"), { recursive: true });
    writeFileSync(join(standIns.folder, "state", "refuse"), "");
    standIns.add(
      "systemctl",
      '[ "$1" = --version ] && echo "systemd 255" && exit 0; echo "Failed to connect to bus" >&2; exit 1',
    );
    expect(await install()).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/does not answer \(Failed to connect to bus\).*sudo loginctl enable-linger/),
    });
    const env = { PATH: "/nonexistent", HOME: standIns.folder, ENGINE_HOME: home };
    const none = await runHere(["service", "install"], { env });
    expect(none).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("has no systemd: have its own service manager"),
    });
  });
});

describe("an agent of launchd", () => {
  test("is loaded once, and reloaded when its file has changed", async () => {
    standIns.add(
      "launchctl",
      `case "$1 $2" in
"bootstrap gui/501") touch "$STATE/loaded" ;;
"bootout gui/501/engine.serve") rm "$STATE/loaded" ;;
"print gui/501/engine.serve") [ -e "$STATE/loaded" ] || exit 113; printf '\\tstate = running\\n\\tpid = 42\\n' ;;
esac`,
    );
    standIns.add("ps", "echo ' 1-02:03:04'");
    const clock = new ManualClock(1_800_000_000_000);
    const run = toolRunner({ PATH: standIns.path });
    const agent = new Launchd(SERVE_UNIT, { run, clock, userHome: "/Users/u", userId: 501 });
    await agent.prepare();
    await agent.activate({ hasChanged: true });
    expect(standIns.calls()).toContain(`launchctl bootstrap gui/501 ${agent.file}`);
    await agent.activate({ hasChanged: false });
    expect(standIns.calls()).not.toContain(`launchctl bootstrap gui/501 ${agent.file}`);
    await agent.activate({ hasChanged: true });
    expect(standIns.calls()).toContain("launchctl bootout gui/501/engine.serve");
    const elapsedMs = (((24 + 2) * 60 + 3) * 60 + 4) * 1000;
    const runningSinceMs = clock.nowMs() - elapsedMs;
    expect(await agent.state()).toEqual({ isEnabled: true, isRunning: true, runningSinceMs, detail: "running" });
    await agent.deactivate();
    expect(await agent.state()).toMatchObject({ isEnabled: false, isRunning: false, detail: "not loaded" });
  });
});
