import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runChild, runHere, startServer, type TestServer } from "./cli.test-kit.ts";

let folder = "";
let home = "";
let server: TestServer;
let authorization: (string | undefined)[] = [];
let health: { status: number; body: string };

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-connect-"));
  home = join(folder, "new", "home");
  authorization = [];
  health = { status: 200, body: '{"status":"ok","version":"9.9.9"}' };
  server = await startServer((request, _, response) => {
    authorization.push(request.headers.authorization);
    if (request.url !== "/health") response.setHeader("X-Engine-Rows", "0");
    response.writeHead(health.status).end(request.url === "/health" ? health.body : "");
  });
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

const run = (argv: readonly string[], env: Record<string, string> = {}) =>
  runHere(argv, { env: { ENGINE_HOME: home, ...env } });

describe("connect", () => {
  test("saves server and token for this user alone, and clients use them", async () => {
    const env = { ENGINE_HOME: home };
    const { code, stdout, stderr } = await runChild(["connect", `${server.url}/`, "--token", "t-1"], { env });
    expect([code, stderr]).toEqual([0, ""]);
    const file = join(home, "client.json");
    expect(stdout).toBe(`${server.url} is saved in ${file}, with its token\n`);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ url: server.url, token: "t-1" });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(home).mode & 0o777).toBe(0o700);
    expect((await runChild(["sql", "SELECT 1"], { env })).code).toBe(0);
    expect(authorization.at(-1)).toBe("Bearer t-1");
  });

  test("replaces what was saved, at once and whatever its mode was", async () => {
    await run(["connect", server.url, "--token", "t-1"]);
    const file = join(home, "client.json");
    rmSync(file);
    writeFileSync(file, "damaged", { mode: 0o644 });
    const { code, stdout } = await run(["connect", server.url, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ url: server.url, token_set: false, file, answers: true });
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ url: server.url });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(home)).toEqual(["client.json"]);
  });

  test("leaves a token of the environment there", async () => {
    await run(["connect", server.url], { ENGINE_TOKEN: "t-env" });
    expect(readFileSync(join(home, "client.json"), "utf8")).not.toContain("t-env");
  });

  test("saves a server that does not answer yet, with a warning", async () => {
    const { code, stderr } = await run(["connect", "http://127.0.0.1:1"]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^warning: no engine answers at http:\/\/127\.0\.0\.1:1/);
  });

  test.for([["127.0.0.1:7777"], ["ftp://h"], [""], ["http://u:hunter2@h"]])("refuses %j", async ([url = ""]) => {
    const { code, stderr } = await run(["connect", url]);
    expect(code).toBe(2);
    expect(stderr).toContain("error: the address is not accepted; expected an http:// or https:// address");
    expect(stderr).not.toContain("hunter2");
  });

  test.for(["", "two words"])("refuses the token %j", async (token) => {
    const { code, stderr } = await run(["connect", server.url, "--token", token]);
    expect(code).toBe(2);
    expect(stderr).toContain('error: --token is "********"; expected');
  });

  test("a home that cannot be written is told", async () => {
    writeFileSync(join(folder, "file"), "");
    const { code, stderr } = await runHere(["connect", server.url], {
      env: { ENGINE_HOME: join(folder, "file", "home") },
    });
    expect(code).toBe(1);
    expect(stderr).toContain("error: cannot save the server: ");
  });
});

describe("the server of a client command", () => {
  test("flag, then variable, then what was saved, then this machine", async () => {
    const status = async (argv: readonly string[], env: Record<string, string> = {}) => {
      const { stdout } = await run(["status", "--json", ...argv], env);
      const { url, origin } = JSON.parse(stdout) as { url: string; origin: string };
      return [url, origin];
    };
    expect(await status([])).toEqual(["http://127.0.0.1:7777", "default"]);
    await run(["connect", server.url]);
    expect(await status([])).toEqual([server.url, "engine connect"]);
    const env = { ENGINE_SERVER_URL: "http://127.0.0.1:2" };
    expect(await status([], env)).toEqual(["http://127.0.0.1:2", "ENGINE_SERVER_URL"]);
    expect(await status(["--server", "http://127.0.0.1:3"], env)).toEqual(["http://127.0.0.1:3", "--server"]);
  });

  test("the saved token goes to no other server", async () => {
    await run(["connect", "http://127.0.0.1:1", "--token", "t-1"]);
    await run(["sql", "SELECT 1", "--server", server.url]);
    expect(authorization).toEqual([undefined]);
  });

  test.for(["{", "[]", '{"url":1}', '{"url":"nowhere"}', '{"url":"http://h","token":"a b"}'])(
    "saved as %s is damage",
    async (text) => {
      await run(["connect", server.url]);
      writeFileSync(join(home, "client.json"), text);
      const { code, stderr } = await run(["status"]);
      expect(code).toBe(2);
      expect(stderr).toBe(`error: ${join(home, "client.json")} is damaged; run \`engine connect URL\` again\n`);
    },
  );
});

describe("status", () => {
  test("shows server, token and health, and never the token", async () => {
    await run(["connect", server.url, "--token", "hunter2"]);
    const { code, stdout } = await run(["status"]);
    expect(code).toBe(0);
    expect(stdout).toBe(`server   ${server.url} (engine connect)\ntoken    set\nhealth   ok, version 9.9.9\n`);
    expect(JSON.parse((await run(["status", "--json"])).stdout)).toEqual({
      url: server.url,
      origin: "engine connect",
      token_set: true,
      health: { status: "ok", version: "9.9.9" },
    });
  });

  test("says how the server confines its queries", async () => {
    health.body = '{"status":"ok","version":"9.9.9","query_confinement":"none (perl is not\\u001b[2J installed)"}';
    const { stdout } = await run(["status", "--server", server.url]);
    expect(stdout).toContain("health   ok, version 9.9.9\nquery confinement: none (perl is not");
    expect(stdout).not.toContain("\u001b");
    expect(JSON.parse((await run(["status", "--json", "--server", server.url])).stdout)).toMatchObject({
      health: { query_confinement: expect.stringContaining("none") },
    });
  });

  test("of a server that drains is a failure that says so", async () => {
    health = { status: 503, body: '{"status":"draining","version":"9.9.9"}' };
    const { code, stdout } = await run(["status", "--server", server.url]);
    expect(code).toBe(1);
    expect(stdout).toContain("health   draining, version 9.9.9\n");
  });

  test.for([
    [200, "<html>hello</html>"],
    [503, "busy"],
    [200, "null"],
  ] as const)("of something else (%i %s) is told", async ([status, body]) => {
    health = { status, body };
    const { code, stderr } = await run(["status", "--server", server.url]);
    expect(code).toBe(1);
    expect(stderr).toContain(`error: what answers at ${server.url} (${status}) is no engine`);
  });

  test("of nothing prints what is known, and fails", async () => {
    const { code, stdout, stderr } = await run(["status", "--json", "--server", "http://127.0.0.1:1"]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ url: "http://127.0.0.1:1", health: null });
    expect(stderr).toContain("error: no engine answers at http://127.0.0.1:1");
  });
});
