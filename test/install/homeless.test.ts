import { spawnSync } from "node:child_process";
import { chownSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { ingest, rowsOf } from "../support/client.ts";
import { cleanEnv, startEngine, temporaryHome } from "../support/engine.ts";

/** A user that no list has, as containers and services with users of their own choice run as. */
const UNKNOWN = 54_321;
/** It may read what root may: the checkout and Node may lie where only root looks. */
const AS_UNKNOWN = [
  "setpriv",
  `--reuid=${UNKNOWN}`,
  `--regid=${UNKNOWN}`,
  "--clear-groups",
  "--inh-caps=+dac_read_search",
  "--ambient-caps=+dac_read_search",
  "env",
  "-u",
  "HOME",
];

describe.skipIf(lacks("root", "prlimit"))("a user without a home folder", () => {
  let home = "";
  let remove = () => Promise.resolve();
  beforeAll(async () => {
    ({ home, remove } = await temporaryHome());
    chownSync(home, UNKNOWN, UNKNOWN);
  });
  afterAll(() => remove());

  test("serves with ENGINE_HOME", async () => {
    const engine = await startEngine({ home, prefix: AS_UNKNOWN });
    expect((await ingest(engine.url, "events", '{"body":"homeless"}')).status).toBe(200);
    expect(await rowsOf(engine.url, "SELECT body FROM events")).toEqual([{ body: "homeless" }]);
    expect(await engine.stop()).toMatchObject({ code: 0 });
  });

  test.each([
    ["an empty HOME", { HOME: "" }],
    ["a path that begins with ~", { ENGINE_HOME: "~/engine" }],
  ])("is told what to set, with %s", (_name, env) => {
    const words = [...AS_UNKNOWN.slice(1), ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
    const { status, stderr } = spawnSync("setpriv", [...words, process.execPath, "bin/engine.js", "config"], {
      env: cleanEnv(),
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: expect.stringMatching(/the user of this process has no home folder: set ENGINE_HOME[^\n]*\n$/),
    });
  });
});
