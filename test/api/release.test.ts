import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { ingest, rowsOf } from "../support/client.ts";
import { cleanEnv, startEngine, temporaryHome } from "../support/engine.ts";

const run = promisify(execFile);
const BUNDLE = "dist/engine.js";

describe("the bundled release", () => {
  beforeAll(async () => {
    await run(process.execPath, ["scripts/build.ts"], { env: cleanEnv() });
  }, 60_000);

  test("prints its version", async () => {
    const { stdout } = await run(process.execPath, [BUNDLE, "--version"], { env: cleanEnv() });
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test.each(["tlm", "parquet"])("serves, with its threads and processes in the one file (%s)", async (format) => {
    const { home, remove } = await temporaryHome();
    const engine = await startEngine({ home, entry: BUNDLE, env: { ENGINE_WRITE_FORMAT: format } });
    expect((await ingest(engine.url, "events", '{"body":"bundled","n":1}')).status).toBe(200);
    expect(await rowsOf(engine.url, "SELECT body, n FROM events")).toEqual([{ body: "bundled", n: "1" }]);
    expect(await engine.stop()).toMatchObject({ code: 0 });
    await remove();
  });
});
