import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FEATURE_ROWS } from "../../roles/features.test-kit.ts";
import { ROLE_NAMES } from "../../src/config/kinds.ts";
import { loadConfig } from "../../src/config/load.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";

/** The units, as systemd reads them: what they do is shown by `npm run soak -- deployment`, which boots one. */

const FOLDER = fileURLToPath(new URL("../../deploy/systemd/", import.meta.url));
const read = (name: string) => readFileSync(join(FOLDER, name), "utf8");
const settingsOf = (unit: string, key: string) =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value = ""]) => value);

const guide = readFileSync(new URL("../../docs/deploy.md", import.meta.url), "utf8");

const server = read("engine@.service");
const node = read("engine-node.service");

/** What the unit's own variables configure, without its files. */
function configOf(unit: string, instance: string) {
  const pairs = settingsOf(unit, "Environment").map((pair) => pair.replaceAll("%i", instance).replaceAll("%S", "/s"));
  const env = Object.fromEntries(pairs.map((pair) => [pair.split("=")[0] ?? "", pair.replace(/^[^=]*=/, "")]));
  return loadConfig({ env, rows: FEATURE_ROWS, userHome: env["HOME"] ?? "" });
}

test.each(ROLE_NAMES)("the unit of servers starts the role %s, reachable from this machine alone", (role) => {
  const { config, warnings } = configOf(server, role);
  expect(warnings).toEqual([]);
  expect(config.roles).toEqual([role]);
  expect(config.home).toBe(`/s/engine/${role}`);
  expect(config.httpAddr.host).toBe("127.0.0.1");
});

test("a unit is stopped after the server would have ended by itself", () => {
  for (const unit of [server, node]) {
    const stopSecs = Number(settingsOf(unit, "TimeoutStopSec")[0]);
    expect(stopSecs).toBeGreaterThanOrEqual(configOf(server, "query").config.drainTimeoutSecs + 30);
    // What the unit and docs/deploy.md say of it.
    expect(stopSecs).toBe(330);
  }
  expect(server).toContain("covers a drain of");
});

test("sandboxes outlive the process of their node, in the machine's own mounts", () => {
  expect(settingsOf(node, "KillMode")).toEqual(["process"]);
  expect(settingsOf(node, "Delegate")).toEqual(["yes"]);
  expect(node).not.toMatch(/^(Protect|Private|ReadOnly|ReadWrite|Inaccessible|Bind|Root|Mount|Temporary|Dynamic)\w*=/m);
});

describe.skipIf(lacks("systemd-analyze"))("systemd", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "engine-units-"));
    cpSync(FOLDER, folder, { recursive: true });
    for (const name of readdirSync(folder)) {
      // It wants programs to be there.
      writeFileSync(join(folder, name), read(name).replaceAll("/usr/local/bin/engine", "/bin/true"));
    }
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("finds nothing wrong with the units, and with the drop-in of the guide that loads credentials", () => {
    const units = readdirSync(folder).map((name) => join(folder, name));
    expect(units).toHaveLength(3);
    const [, dropIn = ""] = /^# .*\/secrets\.conf\n(\[Service\]\n[^`]+)```/m.exec(guide) ?? [];
    expect(settingsOf(dropIn, "LoadCredential")).toHaveLength(1);
    mkdirSync(join(folder, "engine@.service.d"));
    writeFileSync(join(folder, "engine@.service.d", "secrets.conf"), dropIn);
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", ...units], { encoding: "utf8" });
    expect(stderr.split("\n").filter((line) => line.includes("engine"))).toEqual([]);
    expect(status).toBe(0);
  });

  test("counts at most 1.5 of 10 against the unit of servers", () => {
    const args = ["security", "--offline=yes", "--threshold=15", join(folder, "engine@.service")];
    expect(execFileSync("systemd-analyze", args, { encoding: "utf8" })).toContain("Overall exposure level");
  });
});
